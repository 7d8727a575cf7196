#include "report/diagnose_compare.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "plan/words.h"
#include "report/json.h"

namespace assay {
namespace {

constexpr double kLineLeast = 0.002;  // of the longest step
constexpr size_t kFindingsMost = 1000;

double number_of(const Json& object, const char* key) {
  const auto at = object.find(key);
  if (at == object.end() || !at->is_number()) return 0;
  const double value = at->get<double>();
  return std::isfinite(value) && value > 0 ? value : 0;
}

void read_ledger(const Json& lines, Ledger& ledger) {
  if (!lines.is_array()) return;
  for (const Json& line : lines) {
    if (!line.is_object()) continue;
    const auto name = line.find("account");
    if (name == line.end() || !name->is_string()) continue;
    for (int i = 0; i < kAccounts; ++i) {
      const Account a = static_cast<Account>(i);
      if (name->get_ref<const std::string&>() == info(a).key)
        ledger[a] = Seconds(number_of(line, "seconds"));
    }
  }
}

void read_period(const Json& doc, DiagnosisSide& side) {
  const auto periods = doc.find("periods");
  if (periods == doc.end() || !periods->is_array() || periods->empty()) return;
  const Json& first = periods->front();
  if (!first.is_object() || !first.contains("lines") || !first["lines"].is_array()) return;
  for (const Json& line : first["lines"]) {
    if (!line.is_object() || side.period.size() >= kFindingsMost) continue;
    const auto name = line.find("name");
    if (name == line.end() || !name->is_string()) continue;
    side.period.emplace_back(sanitize(name->get<std::string>(), 30), number_of(line, "share"));
  }
}

double share_in_period(const DiagnosisSide& side, const std::string& account) {
  for (const auto& [name, share] : side.period) {
    if (name == account) return share;
  }
  return 0;
}

bool has_periods(const std::vector<DiagnosisSide>& sides) {
  return std::all_of(sides.begin(), sides.end(),
                     [](const DiagnosisSide& s) { return !s.has_step && !s.period.empty(); });
}

// Accounts in the order in which they first come.
std::vector<std::string> period_accounts(const std::vector<DiagnosisSide>& sides) {
  std::vector<std::string> names;
  for (const DiagnosisSide& s : sides) {
    for (const auto& [name, share] : s.period) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

// Periods differ in length and size, so their accounts are compared as shares.
std::string period_table(const std::vector<DiagnosisSide>& sides) {
  std::vector<std::vector<std::string>> rows{{"% of the time"}};
  for (const DiagnosisSide& s : sides) rows[0].push_back(sanitize(s.name, 30));
  rows[0].push_back("change");
  for (const std::string& account : period_accounts(sides)) {
    std::vector<std::string> row{account};
    for (const DiagnosisSide& s : sides) {
      row.push_back(fmt::format("{:.1f}", 100 * share_in_period(s, account)));
    }
    row.push_back(fmt::format("{:+.1f}", 100 * (share_in_period(sides.back(), account) -
                                                share_in_period(sides.front(), account))));
    rows.push_back(std::move(row));
  }
  return "Compare  measured periods\n\n" + table(rows) + "\n";
}

std::string period_verdict(const std::vector<DiagnosisSide>& sides) {
  std::string most;
  double change = 0;
  for (const std::string& account : period_accounts(sides)) {
    const double d =
        share_in_period(sides.back(), account) - share_in_period(sides.front(), account);
    if (std::abs(d) > std::abs(change)) most = account, change = d;
  }
  if (std::abs(change) < 0.001) return "The periods went the same way.";
  return fmt::format("The largest change is {}: {:.1f} % of the time instead of {:.1f} %.", most,
                     100 * share_in_period(sides.back(), most),
                     100 * share_in_period(sides.front(), most));
}

std::string difference(const DiagnosisSide& from, const DiagnosisSide& to) {
  std::string gone, fresh;
  for (const std::string& c : from.causes) {
    if (std::find(to.causes.begin(), to.causes.end(), c) == to.causes.end())
      gone += (gone.empty() ? "" : ", ") + c;
  }
  for (const std::string& c : to.causes) {
    if (std::find(from.causes.begin(), from.causes.end(), c) == from.causes.end())
      fresh += (fresh.empty() ? "" : ", ") + c;
  }
  std::string text;
  if (!gone.empty()) text += "Gone: " + gone + "\n";
  if (!fresh.empty()) text += "New:  " + fresh + "\n";
  return text.empty() ? "The same findings.\n" : text;
}

std::string verdict(const std::vector<DiagnosisSide>& sides) {
  const DiagnosisSide& a = sides.front();
  const DiagnosisSide& b = sides.back();
  if (has_periods(sides)) return period_verdict(sides);
  if (!a.has_step || !b.has_step) return "No step was measured on both sides.";
  const double noise = std::max(a.spread.v, b.spread.v);
  if (std::abs(a.step.v - b.step.v) <= noise)
    return fmt::format("No significant difference: {} against {}, spread {}.", seconds(a.step.v),
                       seconds(b.step.v), seconds(noise));
  const bool faster = b.step < a.step;
  return fmt::format("{} is {:.2f} times {} than {}: {} against {} a step.", b.name,
                     faster ? a.step / b.step : b.step / a.step, faster ? "faster" : "slower",
                     a.name, seconds(b.step.v), seconds(a.step.v));
}

}  // namespace

bool is_diagnosis(const std::string& text) {
  return text.substr(0, 400).find("assay.diagnose/1") != std::string::npos;
}

bool read_diagnosis(const std::string& text, const std::string& file, DiagnosisSide& side,
                    Diagnostics& problems) {
  const std::optional<Json> read =
      read_document(text, file, "assay.diagnose/1", "not a document of `assay diagnose`",
                    "write one with `assay diagnose FILES -o FILE`", problems);
  if (!read) return false;
  const Json& doc = *read;
  if (const auto measured = doc.find("measured"); measured != doc.end() && measured->is_object()) {
    side.step = Seconds(number_of(*measured, "step_s"));
    side.spread = Seconds(number_of(*measured, "spread_s"));
    side.has_step = side.step.v > 0;
    if (measured->contains("ledger")) read_ledger((*measured)["ledger"], side.ledger);
  }
  read_period(doc, side);
  const auto findings = doc.find("findings");
  if (findings == doc.end() || !findings->is_array()) return true;
  for (const Json& f : *findings) {
    if (!f.is_object() || side.causes.size() >= kFindingsMost) continue;
    const auto cause = f.find("cause");
    if (cause == f.end() || !cause->is_string()) continue;
    side.causes.push_back(sanitize(cause->get<std::string>(), 40));
    side.shares.push_back(number_of(f, "share"));
  }
  return true;
}

namespace {

std::string step_table(const std::vector<DiagnosisSide>& sides) {
  double longest = 0;
  for (const DiagnosisSide& s : sides) longest = std::max(longest, s.step.v);
  const double unit = longest < 1 ? 1e-3 : 1;
  std::vector<std::vector<std::string>> rows{{longest < 1 ? "ms a step" : "seconds a step"}};
  for (const DiagnosisSide& s : sides) rows[0].push_back(sanitize(s.name, 30));
  rows[0].push_back("change");
  const auto add = [&](const std::string& name, auto&& of) {
    std::vector<std::string> row{name};
    for (const DiagnosisSide& s : sides) row.push_back(fmt::format("{:.2f}", of(s) / unit));
    row.push_back(fmt::format("{:+.2f}", (of(sides.back()) - of(sides.front())) / unit));
    rows.push_back(std::move(row));
  };
  add("step", [](const DiagnosisSide& s) { return s.step.v; });
  for (int i = 0; i < kAccounts; ++i) {
    const Account a = static_cast<Account>(i);
    const bool shown = std::any_of(sides.begin(), sides.end(), [&](const DiagnosisSide& s) {
      return s.ledger[a].v > kLineLeast * longest;
    });
    if (shown) add(account_name(a), [a](const DiagnosisSide& s) { return s.ledger[a].v; });
  }
  return "Compare  measured steps\n\n" + table(rows) + "\n";
}

}  // namespace

std::string diagnose_compare_text(const std::vector<DiagnosisSide>& sides, const Style& style,
                                  const Stamp& stamp) {
  std::string out = has_periods(sides) ? period_table(sides) : step_table(sides);
  out += difference(sides.front(), sides.back());
  if (!style.quiet) out += "\n" + footer(stamp) + "\n";
  return trimmed_lines(out + "\n" + bold(wrap(verdict(sides), style.width), style) + "\n");
}

std::string diagnose_compare_json(const std::vector<DiagnosisSide>& sides, const Stamp& stamp) {
  Json doc = start_document("assay.diagnose-compare/1", stamp);
  doc["sides"] = Json::array();
  for (const DiagnosisSide& s : sides) {
    Json ledger = Json::object();
    for (int i = 0; i < kAccounts; ++i) {
      const Account a = static_cast<Account>(i);
      if (s.ledger[a].v > 0) ledger[std::string(info(a).key)] = s.ledger[a].v;
    }
    Json period = Json::object();
    for (const auto& [name, share] : s.period) period[name] = share;
    doc["sides"].push_back({{"name", sanitize(s.name)},
                            {"step_s", s.step.v},
                            {"ledger", ledger},
                            {"period", period},
                            {"causes", s.causes},
                            {"shares", s.shares}});
  }
  doc["verdict"] = verdict(sides);
  return print(doc);
}

}  // namespace assay
