#include "report/run_ledger.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "plan/words.h"
#include "report/run_series.h"

namespace assay {
namespace {

constexpr double kRunLineLeast = 0.0005;  // of what was paid: smaller lines are `everything else`

// `useful` and what a step loses are one line on this screen: the step has its own (assay plan).
bool within_step(Account a) {
  return a <= Account::kCommPipeline && a != Account::kThermal && a != Account::kFacilityCap;
}

// Accelerators that compute, kept or not; the others wait at rest.
bool computes(Account a) {
  return a <= Account::kHostCopy || a == Account::kLostWork || a == Account::kCorruption ||
         a == Account::kWarmup;
}

// Hours at load that draw as much as an account's hours do.
double hours_at_load(const SimulateResult& r, Account a, double rest) {
  return r.many.mean[a].v / kSecondsPerHour * (computes(a) ? 1 : rest);
}

// Hours that the site keeps from running are at rest in its own figures already.
double drawn_hours(const SimulateResult& r) {
  const double rest = rest_share(r);
  double hours = 0;
  for (int i = 0; i < kAccounts; ++i) {
    const Account a = static_cast<Account>(i);
    hours += hours_at_load(r, a, a == Account::kCurtailment ? 1 : rest);
  }
  return hours;
}

// Energy by account: the run's, shared out by what accelerators draw.
std::array<double, kAccounts> kwh_by_account(const SimulateResult& r) {
  const double rest = rest_share(r), total = run_energy(r).kwh;
  std::array<double, kAccounts> out{};
  double sum = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = hours_at_load(r, static_cast<Account>(i), rest);
    sum += out[i];
  }
  for (double& kwh : out) kwh *= sum > 0 ? total / sum : 0;
  return out;
}

struct Line {
  std::string name;
  Band gpu_s;
  double kwh = 0;
};

void add(Line& line, const Band& b, double mean, double kwh) {
  line.gpu_s.mean += mean;
  line.gpu_s.p5 += b.p5;
  line.gpu_s.p95 += b.p95;
  line.kwh += kwh;
}

bool of_the_step(Account a) {
  return within_step(a) || a == Account::kBubble || a == Account::kStageImbalance ||
         a == Account::kExpertImbalance || (a >= Account::kLaunch && a <= Account::kGarbage);
}

// Parts of a kept step grow together, so their percentiles may be added; those of `everything else`
// are too small to matter.
std::vector<Line> ledger_lines(const SimulateResult& r) {
  const double paid = r.many.paid.mean;
  const std::array<double, kAccounts> kwh = kwh_by_account(r);
  std::vector<Line> lines;
  Line steps{"steps kept", {}, 0}, rest{"everything else", {}, 0};
  for (size_t i = 0; i < kAccounts; ++i) {
    const Account a = static_cast<Account>(i);
    const double mean = r.many.mean[a].v;
    const Band& band = r.many.ledger[i];
    if (of_the_step(a)) {
      add(steps, band, mean, kwh[i]);
    } else if (mean > kRunLineLeast * paid) {
      lines.push_back({account_name(a), band, kwh[i]});
      lines.back().gpu_s.mean = mean;
    } else {
      add(rest, band, mean, kwh[i]);
    }
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const Line& a, const Line& b) { return a.gpu_s.mean > b.gpu_s.mean; });
  lines.insert(lines.begin(), steps);
  if (rest.gpu_s.mean > 0) lines.push_back(rest);
  return lines;
}

}  // namespace

RunEnergy run_energy(const SimulateResult& r) {
  const double hours = drawn_hours(r);
  return {hours * r.money.kwh_per_gpu_hour, hours * r.money.kg_co2_per_gpu_hour,
          hours * r.money.water_l_per_gpu_hour};
}

std::string ledger_text(const SimulateResult& r, const Style& style) {
  const double paid = r.many.paid.mean;
  const double price = r.money.usd_per_gpu_hour;
  const size_t width = static_cast<size_t>(style.width);
  const bool ranges = style.width >= 96;  // on a narrow screen they go first
  const size_t numbers = ranges ? 55 : 40;
  const int columns = std::max(6, style.width - 26 - static_cast<int>(numbers));
  std::string out = left("Where every GPU-hour went", width - numbers) + right("share", 8) +
                    (ranges ? right("p5 to p95", 15) : "") + right("GPU-h", 10) +
                    right(price > 0 ? "cost" : "", 11) + right("energy", 11) + "\n";
  const auto row = [&](const std::string& name, const std::string& shown_bar, double gpu_s,
                       const std::string& range, double kwh) {
    return "  " + left(name, 23) + left(shown_bar, static_cast<size_t>(columns)) + " " +
           right(fmt::format("{:.1f} %", 100 * gpu_s / paid), 8) +
           (ranges ? right(range, 15) : "") + right(scaled(gpu_s / kSecondsPerHour), 10) +
           right(price > 0 ? dollars(gpu_s / kSecondsPerHour * price) : "", 11) +
           right(kwh > 0 ? energy(kwh) : "", 11) + "\n";
  };
  double kwh = 0;
  for (const Line& l : ledger_lines(r)) {
    const std::string range =
        fmt::format("{:.1f} to {:.1f}", 100 * l.gpu_s.p5 / paid, 100 * l.gpu_s.p95 / paid);
    out += row(l.name, bar(l.gpu_s.mean / paid, columns, style), l.gpu_s.mean, range, l.kwh);
    kwh += l.kwh;
  }
  return out + row("total", "", paid, "", kwh);
}

std::string ranges_text(const SimulateResult& r, const Style& style) {
  if (!style.verbose) return "";
  const double price = r.money.usd_per_gpu_hour;
  const auto range = [](double low, double high, std::string (*shown)(double)) {
    return shown(low) + " - " + shown(high);
  };
  std::vector<std::vector<std::string>> rows{{"p5 - p95", "GPU-hours", "kWh"}};
  if (price > 0) rows.front().push_back("dollars");
  for (const Line& l : ledger_lines(r)) {
    const double low = l.gpu_s.p5 / kSecondsPerHour, high = l.gpu_s.p95 / kSecondsPerHour;
    // An account's accelerators draw the same in every run.
    const double kwh = l.gpu_s.mean > 0 ? l.kwh / (l.gpu_s.mean / kSecondsPerHour) : 0;
    rows.push_back({l.name, range(low, high, [](double v) { return scaled(v); }),
                    range(low * kwh, high * kwh, [](double v) { return energy(v); })});
    if (price > 0)
      rows.back().push_back(range(low * price, high * price, [](double v) { return dollars(v); }));
  }
  return "\n" + table(rows);
}

Json band_json(const Band& b, double scale) {
  return {{"mean", b.mean * scale},
          {"p5", b.p5 * scale},
          {"p50", b.p50 * scale},
          {"p95", b.p95 * scale}};
}

void add_ledger(Json& doc, const SimulateResult& r) {
  const ManyResult& m = r.many;
  const std::array<double, kAccounts> kwh = kwh_by_account(r);
  Json all = Json::object(), gpu_s = Json::object(), energy_kwh = Json::object();
  for (size_t i = 0; i < kAccounts; ++i) {
    const double mean = m.mean[static_cast<Account>(i)].v;
    if (m.ledger[i].p95 <= 0 && mean <= 0) continue;
    const std::string key(info(static_cast<Account>(i)).key);
    gpu_s[key] = band_json(m.ledger[i]);
    if (kwh[i] > 0) energy_kwh[key] = kwh[i];
    const double price = r.money.usd_per_gpu_hour;
    all[key] = {
        {"gpu_hours", band_json(m.ledger[i], 1 / kSecondsPerHour)},
        {"usd", price > 0 ? band_json(m.ledger[i], price / kSecondsPerHour) : Json(nullptr)},
        {"kwh", band_json(m.ledger[i], mean > 0 ? kwh[i] / mean : 0)}};
  }
  doc["ledger"] = std::move(all);
  doc["ledger_gpu_s"] = std::move(gpu_s);
  doc["ledger_kwh"] = std::move(energy_kwh);
}

}  // namespace assay
