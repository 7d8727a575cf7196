#include "report/simulate_report.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "plan/words.h"
#include "report/plan_report.h"
#include "report/result_json.h"
#include "report/run_ledger.h"
#include "report/run_series.h"
#include "report/simulate_json.h"

namespace assay {
namespace {

constexpr double kHour = kSecondsPerHour;
constexpr size_t kCausesShown = 6;
constexpr double kSameInterval = 0.05;  // intervals this close lose the same
constexpr int64_t kTraceParts = 4000;

// A few bad runs can pull the mean out of what nine of ten see, as far as a screen shows it.
bool skewed(const Band& b) {
  constexpr double kShown = 0.0005;
  return b.mean < b.p5 - kShown || b.mean > b.p95 + kShown;
}

std::string percent_band(const Band& b) {
  const std::string range = fmt::format("p5 {:.1f}, p95 {:.1f}", 100 * b.p5, 100 * b.p95);
  if (!skewed(b)) return fmt::format("{:.1f} % ({})", 100 * b.mean, range);
  return fmt::format("{:.1f} % (median {:.1f}, {}; few runs pull the mean)", 100 * b.mean,
                     100 * b.p50, range);
}

// The date at which the site's hours begin: `1 July`.
std::string date_of_hour(int64_t hour) {
  constexpr std::pair<const char*, int> kMonths[] = {
      {"January", 31},   {"February", 28}, {"March", 31},    {"April", 30},
      {"May", 31},       {"June", 30},     {"July", 31},     {"August", 31},
      {"September", 30}, {"October", 31},  {"November", 30}, {"December", 31}};
  int64_t day = hour / 24;
  for (const auto& [name, days] : kMonths) {
    if (day < days) return fmt::format("{} {}", day + 1, name);
    day -= days;
  }
  return "31 December";
}

std::string heading(const SimulateResult& r, const Style& style) {
  const Setting& s = r.plan.description.setting;
  std::string out = wrap("Simulate  " + workload_line(s), style.width, 10) + "\n";
  out += wrap("On        " + cluster_line(s), style.width, 10) + "\n";
  std::string with = "With      " + layout(r.plan.plan, r.plan.prediction.dp) + "; step " +
                     seconds(r.plan.prediction.step.v) + "; run: " + r.operations_name;
  if (!r.site_name.empty()) with += "; site: " + r.site_name;
  out += wrap(with, style.width, 10) + "\n";
  out += fmt::format(
      "Runs      {} of {} days{}{}{}\n", count(r.many.done),
      significant(r.spec.spec.period.v / kSecondsPerDay),
      r.spec.spec.target_tokens > 0
          ? fmt::format(" at most, until {} tokens", scaled(r.spec.spec.target_tokens))
          : "",
      r.site ? ", from " + date_of_hour(r.site->start_hour) : "",
      r.many.partial() ? fmt::format(" (PARTIAL: {} were asked for)", count(r.many.requested))
                       : "");
  return out;
}

std::string causes_text(const SimulateResult& r, const Style& style) {
  std::vector<CauseBand> causes = r.many.causes;
  double planned = 0;
  std::erase_if(causes, [&](const CauseBand& c) {
    if (c.name != kPlannedStop) return false;
    planned += c.interruptions.mean;
    return true;
  });
  std::stable_sort(causes.begin(), causes.end(), [](const CauseBand& a, const CauseBand& b) {
    return a.interruptions.mean > b.interruptions.mean;
  });
  const double all = r.many.interruptions.mean;
  const auto whole = [](double n) { return count(std::llround(n)); };
  std::string out = fmt::format("Interruptions  {} (p5 {}, p95 {})", whole(all),
                                whole(r.many.interruptions.p5), whole(r.many.interruptions.p95));
  if (all > 0) {
    out += ": ";
    for (size_t i = 0; i < causes.size() && i < kCausesShown; ++i) {
      if (causes[i].interruptions.mean <= 0) break;
      out += fmt::format("{}{} {:.0f} %", i ? ", " : "", causes[i].name,
                         100 * causes[i].interruptions.mean / all);
    }
    out += fmt::format("; one every {}", duration(r.many.period.mean / all));
  }
  if (planned > 0) out += fmt::format("; and {} for planned maintenance", whole(planned));
  return wrap(out, style.width, 15) + "\n";
}

// Whether a tier saves at all within the run.
bool saves(const SimulateResult& r, size_t tier) { return r.intervals[tier] < r.spec.spec.period; }

Json checkpoint_json(const SimulateResult& r) {
  Json out = {{"bytes", r.spec.checkpoint.v},
              {"storage_write_bytes_per_s", r.spec.storage_write.v},
              {"tiers", Json::array()}};
  for (size_t i = 0; i < r.spec.spec.checkpoints.size() && i < r.intervals.size(); ++i) {
    const CheckpointTier& t = r.spec.spec.checkpoints[i];
    out["tiers"].push_back(
        {{"name", t.name},
         {"interval_s", saves(r, i) ? Json(r.intervals[i].v) : Json(nullptr)},
         {"best_interval_s",
          i < r.best_intervals.size() ? Json(r.best_intervals[i].v) : Json(nullptr)},
         {"stall_s", t.stall.v},
         {"persist_s", t.persist.v},
         {"restore_s", t.restore.v}});
  }
  out["formulas"] = Json::array();
  for (const FormulaError& f : r.formulas) {
    out["formulas"].push_back({{"name", f.name},
                               {"period_s", f.period.v},
                               {"goodput", f.ettr},
                               {"regret", f.regret},
                               {"first_order_promises", f.claimed},
                               {"promise_error", f.claim_error}});
  }
  return out;
}

std::string checkpoint_text(const SimulateResult& r, const Style& style) {
  std::string out = fmt::format("Checkpoint     {} to storage of {}",
                                fmt::format("{} GB", significant(r.spec.checkpoint.v / 1e9)),
                                bandwidth(r.spec.storage_write.v));
  for (size_t i = 0; i < r.spec.spec.checkpoints.size() && i < r.intervals.size(); ++i) {
    const CheckpointTier& t = r.spec.spec.checkpoints[i];
    if (!saves(r, i)) {
      const bool elastic = r.spec.spec.recovery.policy == RecoveryPolicy::kElastic;
      out += fmt::format(
          "; {} not once within the run: {}", t.name,
          elastic ? "replicas that live hold the state" : "too few failures would go back to it");
      continue;
    }
    out += fmt::format("; {} every {}, {} stall", t.name, duration(r.intervals[i].v),
                       seconds(t.stall.v));
    if (t.persist.v > 0) out += fmt::format(", persisted in {}", seconds(t.persist.v));
    const double best = i < r.best_intervals.size() ? r.best_intervals[i].v : 0;
    if (t.rule != IntervalRule::kFixed && r.intervals[i] <= t.least) {
      out += " (the shortest that is run: interval_least)";
    } else if (best > 0 && std::abs(best / r.intervals[i].v - 1) > kSameInterval) {
      out += fmt::format(" (best for this failure rate: every {})", duration(best));
    } else if (best > 0) {
      out += " (the best for this failure rate)";
    }
  }
  return wrap(out, style.width, 15) + "\n";
}

// The two formulas that everybody uses, against the exact expression for the same failures, save
// and restart: their interval is forgiving, the goodput that they promise is not.
std::string formulas_text(const SimulateResult& r, const Style& style) {
  std::string intervals;
  const FormulaError *daly = nullptr, *best = nullptr;
  for (const FormulaError& f : r.formulas) {
    if (f.name == "young" || f.name == "daly") {
      intervals += fmt::format("{}{} every {} (-{:.2f} pt)", intervals.empty() ? "" : ", ",
                               f.name == "young" ? "Young" : "Daly",
                               duration(f.period.v - r.spec.spec.checkpoints.back().stall.v),
                               100 * std::max(0.0, f.regret));
    }
    if (f.name == "daly") daly = &f;
    if (f.name == "optimal") best = &f;
  }
  if (daly == nullptr || best == nullptr) return "";
  const double off_pt = 100 * daly->claim_error;
  const std::string holds =
      std::abs(off_pt) < 0.05
          ? "which holds"
          : fmt::format("{:.1f} pt too {}", std::abs(off_pt), off_pt > 0 ? "much" : "little");
  const std::string out = fmt::format(
      "Formulas       failures and saves alone leave {:.1f} % at best; {}; to first order they "
      "promise {:.1f} %, {}",
      100 * best->ettr, intervals, 100 * daly->claimed, holds);
  return wrap(out, style.width, 15) + "\n";
}

std::string options(const std::vector<std::string>& settings) {
  std::string all;
  for (const std::string& s : settings) all += (all.empty() ? "--set " : " --set ") + s;
  return all;
}

// What to add to the command line. A line that is full ends as a shell's goes on.
std::string options_text(const std::vector<std::string>& settings, size_t width) {
  const std::string indent = "      ";
  std::string out = indent;
  size_t column = indent.size();
  for (const std::string& s : settings) {
    const std::string option = "--set " + s;
    if (column > indent.size() && column + 1 + option.size() + 2 > width) {
      out += " \\\n" + indent;
      column = indent.size();
    }
    if (column > indent.size()) out += " ";
    out += option;
    column += option.size() + 1;
  }
  return out + "\n";
}

std::string levers_text(const SimulateResult& r, const Style& style) {
  if (r.levers.empty() && !r.levers_cut) return "";
  std::vector<LeverResult> levers = r.levers;
  std::stable_sort(levers.begin(), levers.end(), [](const LeverResult& a, const LeverResult& b) {
    return a.useful_share.mean > b.useful_share.mean;
  });
  const double price = r.money.usd_per_gpu_hour;
  const size_t width = static_cast<size_t>(style.width);
  const std::string head = left("Best levers (same seeds, paired)", width - 42) +
                           right("steps kept", 12) + right("p5 to p95", 18) + right("worth", 12) +
                           "\n";
  std::string out;
  for (const LeverResult& l : levers) {
    if (l.useful_share.mean <= 0.0001) continue;
    const double hours = l.useful_share.mean * r.many.paid.mean / kHour;
    const std::string range =
        fmt::format("{:+.2f} to {:+.2f}", 100 * l.useful_share.p5, 100 * l.useful_share.p95);
    // A long one stands alone, its figures at the end of its last line.
    const std::string name = wrap("  " + l.name + ": " + l.change, style.width - 42, 4);
    const size_t last = name.rfind('\n');
    const size_t used = name.size() - (last == std::string::npos ? 0 : last + 1);
    out += name + std::string(width - 42 > used ? width - 42 - used : 1, ' ') +
           right(fmt::format("{:+.2f} pt", 100 * l.useful_share.mean), 12) + right(range, 18) +
           right(price > 0 ? dollars(hours * price) : scaled(hours) + " GPU-h", 12) + "\n";
    if (!style.quiet) out += options_text(l.settings, width);
  }
  if (r.levers_cut) out += "  (PARTIAL: interrupted while levers were measured)\n";
  return out.empty() ? "" : head + out;
}

std::string money_text(const SimulateResult& r, const Style& style) {
  const RunMoney& m = r.money;
  const RunEnergy e = run_energy(r);
  std::string out;
  if (e.kwh > 0) {
    std::string line = fmt::format("Energy         {} at the meter", energy(e.kwh));
    if (e.carbon_kg > 0) line += fmt::format(", {} t of CO2", significant(e.carbon_kg / 1000));
    if (e.water_l > 0) line += fmt::format(", {} m3 of water", significant(e.water_l / 1000));
    out += wrap(line, style.width, 15) + "\n";
  }
  std::string shares;
  for (const auto& [name, share] : m.shares) {
    if (share >= 0.005)
      shares += fmt::format("{}{} {:.0f} %", shares.empty() ? "" : ", ", name, 100 * share);
  }
  if (!m.rented && m.people_unknown) shares += ", people not stated";
  if (m.energy_in_rent > 1) {
    shares += fmt::format("; its energy alone would cost {} times the rent",
                          significant(m.energy_in_rent));
  } else if (m.energy_in_rent > 0) {
    shares += fmt::format(" (of which energy would be {:.1f} %)", 100 * m.energy_in_rent);
  }
  if (!shares.empty())
    out +=
        wrap(fmt::format("Cost           {} a GPU-hour: {}", dollars(m.usd_per_gpu_hour), shares),
             style.width, 15) +
        "\n";
  return out;
}

// A period that is longer than the weather that was made for it meets the same weather again.
std::string weather_text(const SimulateResult& r, const Style& style) {
  if (!r.site || r.site->hours.empty()) return "";
  const double known = static_cast<double>(r.site->hours.size()) / 24;
  const double asked = r.many.period.p95 / kSecondsPerDay;
  if (asked <= known + 1) return "";
  return wrap(fmt::format("Weather  the {} days of this site repeat: the longest runs take {} days",
                          significant(known), significant(asked)),
              style.width, 9) +
         "\n";
}

std::string verdict(const SimulateResult& r) {
  const ManyResult& m = r.many;
  const double tokens = m.tokens.mean;
  std::string text =
      fmt::format("{:.1f} % goodput ({}{:.1f}-{:.1f})", 100 * m.goodput.mean,
                  skewed(m.goodput) ? fmt::format("median {:.1f}, ", 100 * m.goodput.p50) : "",
                  100 * m.goodput.p5, 100 * m.goodput.p95);
  const double mfu = r.plan.prediction.mfu * m.useful_share.mean;
  text += fmt::format(", {:.1f} % of peak over everything paid", 100 * mfu);
  if (r.spec.spec.target_tokens > 0 && m.finished <= 0) {
    text += fmt::format("; not done: {} of {} tokens in {}", scaled(tokens),
                        scaled(r.spec.spec.target_tokens), duration(m.period.mean));
  } else if (r.spec.spec.target_tokens > 0) {
    // A few late runs pull the mean out of what nine of ten see.
    text += fmt::format("; {} tokens in {} (median; {}-{})", scaled(r.spec.spec.target_tokens),
                        duration(m.period.p50), significant(m.period.p5 / kSecondsPerDay),
                        significant(m.period.p95 / kSecondsPerDay));
    if (m.finished < 1) text += fmt::format("; {:.0f} % of runs finish", 100 * m.finished);
  } else {
    text += fmt::format("; {} tokens", scaled(tokens));
  }
  if (r.money.usd_per_gpu_hour > 0)
    text += fmt::format("; {}", dollars(m.paid.mean / kHour * r.money.usd_per_gpu_hour));
  return text + ".";
}

Json causes_json(const ManyResult& m) {
  Json all = Json::array();
  for (const CauseBand& c : m.causes) {
    all.push_back({{"cause", c.name},
                   {"interruptions", band_json(c.interruptions)},
                   {"lost_gpu_s", band_json(c.lost)}});
  }
  return all;
}

// By day: goodput, power, coolant and clocks.
Json days_json(const SimulateResult& r) {
  Json all = Json::array();
  const std::vector<DayPoint> days = day_series(r);
  for (size_t i = 0; i < days.size(); ++i) {
    const DayPoint& d = days[i];
    Json point{{"day", d.day},
               {"goodput", band_json(d.goodput)},
               {"busy", band_json(r.many.series[i].busy)},
               {"clock", band_json(d.clock)},
               {"power_w", d.power.v}};
    if (r.site) {
      point["coolant_c"] = {{"mean", d.coolant_c}, {"max", d.coolant_max_c}};
      point["outside_c"] = d.outside_c;
    }
    all.push_back(std::move(point));
  }
  return all;
}

void add_money(Json& doc, const SimulateResult& r) {
  doc["usd_per_gpu_hour"] = r.money.usd_per_gpu_hour;
  const RunEnergy drawn = run_energy(r);
  doc["energy"] = {{"kwh", drawn.kwh}, {"carbon_kg", drawn.carbon_kg}, {"water_l", drawn.water_l}};
  doc["kwh_per_gpu_hour"] = r.money.kwh_per_gpu_hour;
  doc["kg_co2_per_gpu_hour"] = r.money.kg_co2_per_gpu_hour;
  doc["water_l_per_gpu_hour"] = r.money.water_l_per_gpu_hour;
  doc["rented"] = r.money.rented;
  doc["energy_in_rent"] = r.money.energy_in_rent;
  doc["cost_shares"] = Json::object();
  for (const auto& [name, share] : r.money.shares) doc["cost_shares"][name] = share;
}

Json levers_json(const SimulateResult& r) {
  Json all = Json::array();
  for (const LeverResult& l : r.levers) {
    const double hours = l.useful_share.mean * r.many.paid.mean / kHour;
    const double price = r.money.usd_per_gpu_hour;
    all.push_back({{"name", l.name},
                   {"change", l.change},
                   {"command", options(l.settings)},
                   {"gpu_hours", hours},
                   {"usd", price > 0 ? Json(hours * price) : Json(nullptr)},
                   {"useful_share", band_json(l.useful_share)},
                   {"goodput", band_json(l.goodput)},
                   {"period_s", band_json(l.period)}});
  }
  return all;
}

}  // namespace

std::string simulate_text(const SimulateResult& r, const Style& style, const Stamp& stamp) {
  std::string out = heading(r, style) + "\n";
  out += wrap(fmt::format("Goodput   {} of the job's time", percent_band(r.many.goodput)),
              style.width, 10) +
         "\n";
  out +=
      wrap(fmt::format("Useful    {:.1f} % of peak over everything paid; steps at nominal speed {}",
                       100 * r.plan.prediction.mfu * r.many.useful_share.mean,
                       percent_band(r.many.useful_share)),
           style.width, 10) +
      "\n\n";
  out += ledger_text(r, style) + ranges_text(r, style) + "\n" + causes_text(r, style) +
         checkpoint_text(r, style) + formulas_text(r, style);
  out += money_text(r, style);
  const std::string series = series_text(r, style);
  if (!series.empty()) out += "\n" + series;
  out += weather_text(r, style);
  const std::string levers = levers_text(r, style);
  if (!levers.empty()) out += "\n" + levers;
  if (style.verbose || !style.quiet) {
    if (!r.spec.assumed.empty()) out += "\n";
    for (const Assumption& a : r.spec.assumed)
      out +=
          wrap(fmt::format("Assumed  {} = {}: {}", a.path, a.value, a.why), style.width, 9) + "\n";
  }
  if (!style.quiet) out += "\n" + footer(stamp) + "\n";
  return trimmed_lines(out + "\n" + bold(wrap(verdict(r), style.width), style) + "\n");
}

Json simulate_document(const SimulateResult& r, Json doc) {
  const ManyResult& m = r.many;
  doc["description"] = description_json(r.plan.description.setting);
  doc["plan"] = candidate_json(r.plan.plan, r.plan.prediction, r.plan.description.setting);
  doc["site"] = r.site_name;
  doc["run"] = r.operations_name;
  doc["operations"] = value_json(r.plan.description.operations);
  doc["origins"] = origins_json(r.plan.description.origins);
  doc["runs"] = {
      {"requested", m.requested}, {"done", m.done}, {"partial", m.partial() || r.levers_cut}};
  doc["period_s"] = band_json(m.period);
  doc["paid_gpu_s"] = band_json(m.paid);
  doc["goodput"] = band_json(m.goodput);
  doc["useful_share"] = band_json(m.useful_share);
  doc["tokens"] = band_json(m.tokens);
  doc["finished"] = m.finished;
  add_ledger(doc, r);
  doc["interruptions"] = band_json(m.interruptions);
  doc["causes"] = causes_json(m);
  doc["mtbf_s"] = std::isfinite(r.mtbf.v) ? Json(r.mtbf.v) : Json(nullptr);
  doc["checkpoint"] = checkpoint_json(r);
  doc["series_bucket_s"] = m.bucket.v;
  doc["series"] = days_json(r);
  doc["levers"] = levers_json(r);
  add_money(doc, r);
  if (r.site) {
    FacilityTotals t = totals(*r.site);
    for (const SiteSeries& s : r.other_weather)
      t.hottest_coolant_c = std::max(t.hottest_coolant_c, totals(s).hottest_coolant_c);
    doc["facility"] = {{"pue", t.pue},
                       {"highest_w", t.highest.v},
                       {"mean_clock", t.clock},
                       {"mean_running", t.running},
                       {"scheduled", t.scheduled},
                       {"hottest_coolant_c", t.hottest_coolant_c}};
  }
  std::vector<Assumption> assumed = r.plan.description.assumed;
  assumed.insert(assumed.end(), r.spec.assumed.begin(), r.spec.assumed.end());
  doc["assumed"] = assumed_json(assumed);
  doc["verdict"] = verdict(r);
  return doc;
}

std::string simulate_json(const SimulateResult& r, const Stamp& stamp) {
  return print(simulate_document(r, start_document("assay.simulate/1", stamp)));
}

Seconds trace_bucket(Seconds period) {
  return std::max(Seconds(kSecondsPerHour), period / static_cast<double>(kTraceParts));
}

std::string run_trace_json(const SimulateResult& r, const RunResult& run, Seconds bucket,
                           const std::string& title) {
  Json events = Json::array();
  std::vector<std::string> tracks;
  for (const RunEvent& e : run.events) {
    const auto at = std::find(tracks.begin(), tracks.end(), e.track);
    const size_t track = static_cast<size_t>(at - tracks.begin());
    if (at == tracks.end()) {
      tracks.push_back(e.track);
      events.push_back({{"ph", "M"},
                        {"name", "thread_name"},
                        {"pid", 1},
                        {"tid", track},
                        {"args", {{"name", e.track}}}});
    }
    Json event{{"name", e.name}, {"pid", 1}, {"tid", track}, {"ts", e.begin.v * 1e6}};
    if (e.end > e.begin) {
      event["ph"] = "X";
      event["dur"] = (e.end - e.begin).v * 1e6;
    } else {
      event["ph"] = "i";
      event["s"] = "t";
    }
    if (e.machine >= 0) event["args"] = {{"machine", e.machine}, {"value", e.value}};
    events.push_back(std::move(event));
  }
  for (const TraceCounter& c : run_counters(r, run, bucket)) {
    for (const auto& [at, value] : c.values) {
      events.push_back({{"ph", "C"},
                        {"name", c.name},
                        {"pid", 1},
                        {"ts", at.v * 1e6},
                        {"args", {{"value", value}}}});
    }
  }
  const Json doc{{"traceEvents", events}, {"displayTimeUnit", "ms"}, {"traceName", title}};
  return doc.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace assay
