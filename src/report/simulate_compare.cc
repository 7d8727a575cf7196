#include "report/simulate_compare.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "plan/words.h"
#include "report/explain_parts.h"
#include "report/json.h"

namespace assay {
namespace {

constexpr double kLossLeast = 0.002;  // of what was paid, on any side

double finite_number(const Json& doc, const JsonPath& path) {
  const double value = number(doc, path);
  return std::isfinite(value) ? value : 0;
}

Band band_at(const Json& doc, const char* key, double by = 1) {
  Band b;
  b.mean = by * finite_number(doc, {key, "mean"});
  b.p5 = by * finite_number(doc, {key, "p5"});
  b.p50 = by * finite_number(doc, {key, "p50"});
  b.p95 = by * finite_number(doc, {key, "p95"});
  return b;
}

double loss_share(const SimulationSide& s, Account a) {
  return s.paid_gpu_s > 0 ? s.ledger[a].v / s.paid_gpu_s : 0;
}

std::string share_band(const Band& b) {
  return fmt::format("{:.1f} % ({:.1f}-{:.1f})", 100 * b.mean, 100 * b.p5, 100 * b.p95);
}

using Rows = std::vector<std::vector<std::string>>;

Rows figures_of(const std::vector<SimulationSide>& sides) {
  Rows rows{{""}};
  for (const SimulationSide& s : sides) rows[0].push_back(sanitize(s.name, 30));
  const auto row = [&](const char* name, auto&& of) {
    std::vector<std::string> cells{name};
    for (const SimulationSide& s : sides) cells.push_back(of(s));
    rows.push_back(std::move(cells));
  };
  const auto known = [](const std::string& s) { return s.empty() ? std::string("-") : s; };
  row("workload", [&](const SimulationSide& s) { return known(s.workload); });
  row("cluster", [&](const SimulationSide& s) { return known(s.cluster); });
  row("run", [&](const SimulationSide& s) { return known(s.operations); });
  row("site", [&](const SimulationSide& s) { return known(s.site); });
  row("step time", [](const SimulationSide& s) { return seconds(s.step_s); });
  row("MFU of the step", [](const SimulationSide& s) { return percent(s.mfu); });
  row("goodput", [](const SimulationSide& s) { return share_band(s.goodput); });
  row("nominal, of what is paid",
      [](const SimulationSide& s) { return share_band(s.useful_share); });
  row("days", [](const SimulationSide& s) { return significant(s.days.mean); });
  row("tokens", [](const SimulationSide& s) { return scaled(s.tokens.mean); });
  row("interruptions", [](const SimulationSide& s) { return significant(s.interruptions.mean); });
  row("cost",
      [](const SimulationSide& s) { return s.usd > 0 ? dollars(s.usd) : std::string("no price"); });
  row("per million tokens", [](const SimulationSide& s) {
    return s.usd > 0 && s.tokens.mean > 0 ? dollars(s.usd / s.tokens.mean * 1e6) : "-";
  });
  row("energy", [](const SimulationSide& s) { return energy(s.kwh); });
  return rows;
}

Rows losses_of(const std::vector<SimulationSide>& sides) {
  std::vector<std::pair<double, Account>> order;
  for (int i = 0; i < kAccounts; ++i) {
    const Account a = static_cast<Account>(i);
    double most = 0;
    for (const SimulationSide& s : sides) most = std::max(most, loss_share(s, a));
    if (most > kLossLeast) order.emplace_back(most, a);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  Rows rows{{"of what is paid"}};
  for (const SimulationSide& s : sides) rows[0].push_back(sanitize(s.name, 30));
  rows[0].emplace_back("change");
  for (const auto& [most, account] : order) {
    std::vector<std::string> cells{account_name(account)};
    for (const SimulationSide& s : sides)
      cells.push_back(fmt::format("{:.1f} %", 100 * loss_share(s, account)));
    const double change = loss_share(sides.back(), account) - loss_share(sides.front(), account);
    cells.push_back(std::abs(change) < 0.0005 ? "0.0" : fmt::format("{:+.1f}", 100 * change));
    rows.push_back(std::move(cells));
  }
  return rows;
}

// Failures of two runs strike at the same moments only where seeds and runs are the same.
bool same_luck(const SimulationSide& a, const SimulationSide& b) {
  return a.seed == b.seed && a.runs == b.runs;
}

std::string simulations_verdict(const std::vector<SimulationSide>& sides) {
  const SimulationSide &a = sides.front(), &b = sides.back();
  const double change = 100 * (b.goodput.mean - a.goodput.mean);
  std::string text = fmt::format("{} has {:.1f} % goodput, {:.1f} points {} than {}",
                                 sanitize(b.name, 60), 100 * b.goodput.mean, std::abs(change),
                                 change < 0 ? "less" : "more", sanitize(a.name, 60));
  const bool overlap = a.goodput.p95 >= b.goodput.p5 && b.goodput.p95 >= a.goodput.p5;
  if (overlap && !same_luck(a, b)) text += ", within the luck of runs";
  const bool priced = a.usd > 0 && b.usd > 0 && a.tokens.mean > 0 && b.tokens.mean > 0;
  if (priced && a.workload == b.workload) {
    const double dearer = b.usd / b.tokens.mean / (a.usd / a.tokens.mean) - 1;
    text += fmt::format("; a token costs {:.1f} % {}", 100 * std::abs(dearer),
                        dearer < 0 ? "less" : "more");
  }
  return text + ".";
}

}  // namespace

bool is_simulation(const std::string& text) {
  return text.substr(0, 400).find("assay.simulate/1") != std::string::npos;
}

bool read_simulation(const std::string& text, const std::string& file, SimulationSide& side,
                     Diagnostics& problems) {
  const std::optional<Json> read =
      read_document(text, file, "assay.simulate/1", "not a document of `assay simulate`",
                    "write one with `assay simulate ... -o FILE`", problems);
  if (!read) return false;
  const Json& doc = *read;
  const auto word = [&](const JsonPath& path) { return sanitize(text_at(doc, path), 40); };
  side.workload = word({"description", "workload", "name"});
  side.cluster = word({"description", "cluster", "name"});
  side.operations = word({"run"});
  side.site = word({"site"});
  side.seed = word({"assay", "seed"});
  side.runs = finite_number(doc, {"runs", "done"});
  side.step_s = finite_number(doc, {"plan", "step_s"});
  side.mfu = finite_number(doc, {"plan", "mfu"});
  side.paid_gpu_s = finite_number(doc, {"paid_gpu_s", "mean"});
  side.usd = finite_number(doc, {"usd_per_gpu_hour"}) * side.paid_gpu_s / kSecondsPerHour;
  side.kwh = finite_number(doc, {"energy", "kwh"});
  side.goodput = band_at(doc, "goodput");
  side.useful_share = band_at(doc, "useful_share");
  side.days = band_at(doc, "period_s", 1 / kSecondsPerDay);
  side.tokens = band_at(doc, "tokens");
  side.interruptions = band_at(doc, "interruptions");
  for (int i = 0; i < kAccounts; ++i) {
    const Account a = static_cast<Account>(i);
    side.ledger[a] =
        Seconds(std::max(0.0, finite_number(doc, {"ledger_gpu_s", info(a).key, "mean"})));
  }
  return true;
}

std::string simulate_compare_text(const std::vector<SimulationSide>& sides, const Style& style,
                                  const Stamp& stamp) {
  std::string out = fmt::format("Compare  {} simulated runs\n\n", sides.size());
  const bool luck = std::all_of(sides.begin(), sides.end(),
                                [&](const SimulationSide& s) { return same_luck(s, sides[0]); });
  out += table(figures_of(sides)) + "\nWhat each loses where\n" + table(losses_of(sides));
  if (!luck) out += "\nNote: other seeds or numbers of runs, so some of the change is luck.\n";
  if (!style.quiet) out += "\n" + footer(stamp) + "\n";
  return trimmed_lines(out + "\n" + bold(wrap(simulations_verdict(sides), style.width), style) +
                       "\n");
}

std::string simulate_compare_json(const std::vector<SimulationSide>& sides, const Stamp& stamp) {
  Json doc = start_document("assay.simulate-compare/1", stamp);
  doc["sides"] = Json::array();
  for (const SimulationSide& s : sides) {
    Json lost = Json::object();
    for (int i = 0; i < kAccounts; ++i) {
      const Account a = static_cast<Account>(i);
      if (s.ledger[a].v > 0) lost[std::string(info(a).key)] = loss_share(s, a);
    }
    doc["sides"].push_back({{"name", sanitize(s.name)},
                            {"workload", s.workload},
                            {"cluster", s.cluster},
                            {"run", s.operations},
                            {"site", s.site},
                            {"goodput", s.goodput.mean},
                            {"useful_share", s.useful_share.mean},
                            {"days", s.days.mean},
                            {"tokens", s.tokens.mean},
                            {"interruptions", s.interruptions.mean},
                            {"cost_usd", s.usd},
                            {"kwh", s.kwh},
                            {"share_of_paid", std::move(lost)}});
  }
  doc["verdict"] = simulations_verdict(sides);
  return print(doc);
}

}  // namespace assay
