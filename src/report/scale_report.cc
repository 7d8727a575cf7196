#include "report/scale_report.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "report/plan_report.h"
#include "report/result_json.h"

namespace assay {
namespace {

constexpr int64_t kWrongChoicesMost = 6;  // lines of their own; the rest is summed
constexpr int64_t kBatchShown = 8;        // times the batch that is there: no more is offered

std::string ratio(double r) { return r > 0 ? fmt::format("{:.2f}x", r) : "-"; }

std::string growth_text(const ScalePoint& p) {
  if (p.growth < 0.005) return "";
  return fmt::format("{} {}", account_name(p.grew), points(p.growth));
}

// A price makes dollars as sure as it is.
char dollars_mark(const Description& d) { return cost_mark(run_figures(d, Prediction{})); }

std::string points_table(const std::vector<ScalePoint>& all, const Description& d,
                         const Style& style) {
  const std::string c(1, kPredicted);
  std::vector<std::vector<std::string>> rows{
      {"GPUs", "step", "MFU", "speed-up", "efficiency", "doubling", "$/M tokens", "what binds"},
      {"s", c, c, c, c, c, std::string(1, dollars_mark(d)), c}};
  std::string notes;
  int64_t before = 0;  // the size that fits before this one
  for (const ScalePoint& p : all) {
    if (!p.fits) {
      rows.push_back({count(p.accelerators), "-", "-", "-", "-", "-", "-",
                      p.possible ? "does not fit" : "not possible"});
      if (!p.why_not.empty()) {
        notes +=
            wrap(fmt::format("  {} GPUs: {}", count(p.accelerators), p.why_not), style.width, 4);
        notes += "\n";
      }
      continue;
    }
    rows.push_back({count(p.accelerators), seconds(p.prediction.step.v), percent(p.prediction.mfu),
                    ratio(p.speedup), percent(p.efficiency),
                    p.accelerators == 2 * before ? ratio(p.marginal) : "-",
                    p.usd_per_mtoken > 0 ? significant(p.usd_per_mtoken) : "-",
                    fmt::format("{} {}", account_name(p.binds), percent(p.binds_share))});
    before = p.accelerators;
  }
  if (style.width < 96) {  // the price goes first
    for (std::vector<std::string>& row : rows) row.erase(row.end() - 2);
  }
  return table(rows) + notes;
}

std::string plans_list(const std::vector<ScalePoint>& all, const Style& style) {
  std::string out;
  for (const ScalePoint& p : all) {
    if (!p.fits) continue;
    std::string line =
        fmt::format("  {}  {}", right(count(p.accelerators), 7), layout(p.plan, p.prediction.dp));
    if (p.prediction.extrapolated) line += "  (outside what was measured)";
    out += wrap(line, style.width, 11) + "\n";
  }
  return out;
}

std::string curve(const std::vector<ScalePoint>& all, const Style& style) {
  const int columns = std::min(50, style.width - 50);
  const std::string title = left("Efficiency, of ideal scaling", static_cast<size_t>(columns) + 21);
  std::string out = title + "what grew (points)\n";
  for (const ScalePoint& p : all) {
    if (!p.fits) continue;
    out += fmt::format("  {}  {} {}  {}\n", right(count(p.accelerators), 7),
                       bar(p.efficiency, columns, style), left(percent(p.efficiency), 7),
                       growth_text(p));
  }
  return trimmed_lines(out);
}

const ScalePoint* last_fitting(const std::vector<ScalePoint>& all) {
  for (size_t i = all.size(); i > 0; --i) {
    if (all[i - 1].fits) return &all[i - 1];
  }
  return nullptr;
}

std::string wrong_choice_text(const ScaleResult& r) {
  const Attribution& wrong = r.wrong_choice;
  if (wrong.changes.empty()) return "";
  std::string out = "\nWhat the fixed plan gets wrong at the last size (switching one at a time)\n";
  const auto row = [&out](const std::string& name, const std::string& values, double step_s,
                          double mfu) {
    out += left(name, 30) + left(values, 25);
    out += step_s == 0
               ? right("none", 22)
               : right(seconds(step_s), 10) + right("MFU " + points(mfu), 12) + "  " + kPredicted;
    out += "\n";
  };
  int64_t shown = 0, more = 0;
  double more_s = 0, more_mfu = 0;
  for (const Change& c : wrong.changes) {
    if (!c.step_s || std::abs(*c.step_s) < 1e-6) continue;  // what costs no time
    if (shown < kWrongChoicesMost) {
      ++shown, row("  ~ " + c.path, c.before + " -> " + c.after, *c.step_s, *c.mfu);
      for (const Switched& w : c.with)
        out += fmt::format("  + {}{} -> {}\n", left(w.path, 26), w.before, w.after);
    } else {
      ++more, more_s += *c.step_s, more_mfu += *c.mfu;
    }
  }
  if (more > 0) row(fmt::format("    {} more", count(more)), "", more_s, more_mfu);
  row("    interaction", "", wrong.interaction_step_s, wrong.interaction_mfu);
  return out + together_note(wrong);
}

// A single node has no fabric of its own; what joins more of them is an assumption.
std::string joined_by(const Cluster& c) {
  return c.nodes == 1 && !c.fabric.name.empty() ? ", joined by " + c.fabric.name : "";
}

// Sizes that could have a sequence or more each, but not the same number: their replicas are fewer
// than there could be, and what looks like scaling is arithmetic.
std::string uneven_text(const ScaleResult& r, const Setting& s) {
  const int64_t batch = s.workload.global_batch;
  std::vector<std::string> uneven;
  int64_t all = 1;  // a batch that would do, while it is no longer than a batch may be
  for (const ScalePoint& p : r.best) {
    const int64_t n = p.accelerators;
    if (n < 1 || batch < 1) return "";
    if (n <= batch && batch % n != 0) uneven.push_back(count(n));
    if (all <= kBatchShown * batch) all = std::lcm(all, n);
  }
  if (uneven.empty()) return "";
  std::string text = fmt::format(
      "Note: {} sequences do not divide among {} GPUs: plans there have fewer replicas than they "
      "could",
      count(batch), fmt::join(uneven, ", "));
  if (all <= kBatchShown * batch)
    text += fmt::format("; --set workload.global_batch={} suits all sizes", all);
  return text;
}

// Whose doublings are meant: where a plan is kept, two tables stand above.
std::string whose(const ScaleResult& r) {
  if (!r.fixed.empty()) return "the kept plan";
  return r.whole_plan ? "the stated plan" : "the best plans";
}

std::string break_even_text(const ScaleResult& r) {
  const std::vector<ScalePoint>& main = r.fixed.empty() ? r.best : r.fixed;
  const auto doubles = [](const ScalePoint& a, const ScalePoint& b) {
    return a.fits && b.fits && b.accelerators == 2 * a.accelerators;
  };
  if (main.size() == 1) return "One size was asked for: where doubling stops paying is not said.";
  if (std::adjacent_find(main.begin(), main.end(), doubles) == main.end())
    return "No size here is twice the one before: where doubling stops paying is not said.";
  if (!r.break_even) {
    return fmt::format("Every doubling here gives {} at least {:g}x the tokens per second.",
                       whose(r), kDoublingPays);
  }
  double marginal = 0, dearer = 0;
  for (size_t i = 1; i < main.size(); ++i) {
    if (main[i - 1].accelerators != *r.break_even) continue;
    marginal = main[i].marginal;
    dearer = marginal > 0 ? 2 / marginal - 1 : 0;
  }
  return fmt::format(
      "Break-even of {} at {} GPUs: the next doubling gives {:.2f}x (less than {:g}x), a token "
      "costs "
      "{} more.",
      whose(r), count(*r.break_even), marginal, kDoublingPays, percent(dearer));
}

std::string verdict(const ScaleResult& r) {
  const std::vector<ScalePoint>& main = r.fixed.empty() ? r.best : r.fixed;
  const ScalePoint* first = first_fitting(main);
  const ScalePoint* last = last_fitting(main);
  if (!first && main.size() == 1)
    return fmt::format("No plan fits {} GPUs.", count(main[0].accelerators));
  if (!first) return "No plan at any of these sizes.";
  if (main.size() == 1) {
    const Prediction& p = first->prediction;
    return fmt::format("{} GPUs: {} MFU, {} a step, {} tokens per second.",
                       count(first->accelerators), percent(p.mfu), seconds(p.step.v),
                       scaled(p.tokens_per_s));
  }
  if (first == last && r.fixed.empty()) {
    return fmt::format(
        "{} GPUs: {} MFU; no other of these sizes fits, so that nothing is compared.",
        count(first->accelerators), percent(first->prediction.mfu));
  }
  std::string text = fmt::format("{} -> {} GPUs: {:.2f}x", count(first->accelerators),
                                 count(last->accelerators), last->speedup);
  if (r.fixed.empty()) {
    text += fmt::format(" the tokens per second, {} of ideal", percent(last->efficiency));
    if (r.break_even) text += fmt::format("; past {} GPUs it stops paying", count(*r.break_even));
    return text + ".";
  }
  text += " with the plan kept";
  if (!r.best.back().fits) return text + ".";
  text += fmt::format(", {:.2f}x with the best plans", r.best.back().speedup);
  if (r.fixed.back().fits) {
    const double faster =
        r.best.back().prediction.tokens_per_s / r.fixed.back().prediction.tokens_per_s;
    text += fmt::format(" (at {} GPUs {:.2f} times as fast)", count(last->accelerators), faster);
  }
  if (!r.wrong_choice.changes.empty() && r.wrong_choice.changes[0].step_s) {
    const Change& c = r.wrong_choice.changes[0];
    text += fmt::format("; {} {} -> {} matters most", c.path, c.before, c.after);
  }
  return text + ".";
}

// Tokens per second over all the time of the run.
double delivered(const ScalePoint& p, const PlanOutlook& o) {
  if (!p.fits || !o.best) return 0;
  return p.prediction.tokens_per_s * o.best->expected.goodput / o.best->expected.slowdown;
}

std::string outlook_table(const ScaleResult& r, const Description& d, const ScaleOutlook& outlook,
                          const Style& style) {
  if (outlook.best.empty()) return "";
  std::vector<std::vector<std::string>> rows{
      {"GPUs", "goodput", "speed-up", "efficiency", "doubling", "days", "cost"}};
  const bool stated = outlook.best.front().stated;
  rows.push_back(std::vector<std::string>(rows[0].size(), stated ? "c" : "a"));
  rows.back().front() = "s";
  if (dollars_mark(d) == 'a') rows.back().back() = "a";
  double first = 0, previous = 0, first_gpus = 0, previous_gpus = 0;
  std::string name, notes;
  for (size_t i = 0; i < r.best.size(); ++i) {
    const ScalePoint& p = r.best[i];
    const PlanOutlook& o = outlook.best[i];
    const double now = delivered(p, o);
    const double gpus = static_cast<double>(p.accelerators);
    if (!o.why_not.empty())
      notes +=
          wrap(fmt::format("  {} GPUs: {}", count(p.accelerators), o.why_not), style.width, 4) +
          "\n";
    if (!(now > 0)) continue;
    name = o.operations_name;
    if (first == 0) first = now, first_gpus = gpus;
    const Outlook& best = *o.best;
    rows.push_back({count(p.accelerators), percent(best.expected.goodput), ratio(now / first),
                    percent(now / first * first_gpus / gpus),
                    gpus == 2 * previous_gpus ? ratio(now / previous) : "-",
                    best.ends() ? duration(best.expected.time.v) : "does not end",
                    best.ends() && best.usd > 0 ? dollars(best.usd) : "-"});
    previous = now, previous_gpus = gpus;
  }
  if (rows.size() < 3) return notes.empty() ? "" : "\nOver weeks: not estimated\n" + notes;
  return fmt::format("\nOver weeks, with failures and spares (run: {}; closed forms)\n", name) +
         table(rows) + notes;
}

Json point_json(const ScalePoint& p, const Description& d) {
  Json j;
  j["accelerators"] = p.accelerators;
  j["fits"] = p.fits;
  if (!p.fits) {
    j["possible"] = p.possible;
    j["why_not"] = p.why_not;
    return j;
  }
  j["speedup"] = p.speedup;
  j["efficiency"] = p.efficiency;
  j["marginal"] = p.marginal > 0 ? Json(p.marginal) : Json(nullptr);
  j["usd_per_million_tokens"] = p.usd_per_mtoken > 0 ? Json(p.usd_per_mtoken) : Json(nullptr);
  // `binds` is older than what its name says: the account that grew most.
  j["binds"] = {{"account", info(p.grew).key}, {"growth", p.growth}};
  j["largest"] = {{"account", info(p.binds).key}, {"share", p.binds_share}};
  j["mark"] = std::string(1, kPredicted);
  Description here = d;
  here.setting = sized(d.setting, p.accelerators);
  j["result"] = candidate_json(p.plan, p.prediction, here.setting);
  j["run"] = run_json(run_figures(here, p.prediction));
  j["ledger"] = ledger_json(p.prediction.ledger, p.prediction.step);
  return j;
}

// Only where it is another size than without failures.
std::string weeks_text(const ScaleResult& r, const ScaleOutlook& outlook) {
  if (outlook.best.empty() || outlook.break_even == r.break_even || !r.fixed.empty()) return "";
  if (!outlook.break_even) return " With failures every doubling pays.";
  return fmt::format(" With failures it is {} GPUs.", count(*outlook.break_even));
}

}  // namespace

void relate_outlook(const ScaleResult& r, ScaleOutlook& outlook) {
  for (size_t i = 1; i < r.best.size() && !outlook.break_even; ++i) {
    if (r.best[i].accelerators != 2 * r.best[i - 1].accelerators) continue;
    const double before = delivered(r.best[i - 1], outlook.best[i - 1]);
    const double now = delivered(r.best[i], outlook.best[i]);
    if (before > 0 && now < kDoublingPays * before && r.best[i].fits && outlook.best[i].best)
      outlook.break_even = r.best[i - 1].accelerators;
  }
}

std::string scale_text(const ScaleResult& r, const Description& d, const Style& style,
                       const Stamp& stamp, const ScaleOutlook& outlook) {
  const Setting& s = d.setting;
  std::string out = wrap("Scale  " + workload_line(s), style.width, 7) + "\n";
  out += wrap("On     " + cluster_line(s), style.width, 7) + "\n";
  out += "With   " + s.stack.name + "; the batch stays the same at every size\n";
  if (r.beyond_cluster)
    out += fmt::format("       sizes beyond the cluster are imagined as more of the same nodes{}\n",
                       joined_by(s.cluster));
  if (const std::string note = uneven_text(r, s); !note.empty())
    out += wrap("       " + note, style.width, 7) + "\n";
  if (!r.fixed.empty()) {
    const ScalePoint* first = first_fitting(r.fixed);
    std::string kept = "One plan kept, only data parallelism grows";
    if (first) kept += ": " + layout(first->plan, first->prediction.dp);
    out += "\n" + wrap(kept, style.width, 2) + "\n" + points_table(r.fixed, d, style);
    out += "\nThe best plan at each size\n" + points_table(r.best, d, style);
  } else {
    out += "\n" + points_table(r.best, d, style);
  }
  out += outlook_table(r, d, outlook, style);
  out += "\n" + curve(r.fixed.empty() ? r.best : r.fixed, style);
  out += "\nBest plans\n" + plans_list(r.best, style);
  out += wrong_choice_text(r) + "\n" +
         wrap(break_even_text(r) + weeks_text(r, outlook), style.width) + "\n";
  if (!style.quiet) out += fmt::format("{}\n{}\n", kMarks, footer(stamp));
  // Of the sizes that promise too much the one that does so most.
  const auto most =
      std::max_element(r.best.begin(), r.best.end(), [](const auto& a, const auto& b) {
        return (a.fits ? a.prediction.mfu : 0) < (b.fits ? b.prediction.mfu : 0);
      });
  std::string last = verdict(r);
  if (most != r.best.end() && most->fits)
    last +=
        beyond_record(count(most->accelerators) + " GPUs", d.setting, most->plan, most->prediction);
  return out + "\n" + bold(wrap(last, style.width), style) + "\n";
}

std::string scale_json(const ScaleResult& r, const Description& d, const Stamp& stamp,
                       const ScaleOutlook& outlook) {
  const Setting& s = d.setting;
  Json doc = start_document("assay.scale/1", stamp);
  doc["break_even"] = r.break_even ? Json(*r.break_even) : Json(nullptr);
  doc["break_even_over_weeks"] = outlook.break_even ? Json(*outlook.break_even) : Json(nullptr);
  doc["doubling_pays"] = kDoublingPays;
  doc["beyond_cluster"] = r.beyond_cluster;
  Json best = Json::array(), fixed = Json::array(), wrong = Json::array();
  for (size_t i = 0; i < r.best.size(); ++i) {
    best.push_back(point_json(r.best[i], d));
    if (i < outlook.best.size())
      best.back()["over_weeks"] = outlook_json(outlook.best[i].best, outlook.best[i]);
  }
  for (const ScalePoint& p : r.fixed) fixed.push_back(point_json(p, d));
  for (const Change& c : r.wrong_choice.changes) wrong.push_back(change_json(c));
  doc["best"] = std::move(best);
  doc["fixed"] = std::move(fixed);
  doc["wrong_choice"] = std::move(wrong);
  doc["wrong_choice_interaction"] = {{"mfu", r.wrong_choice.interaction_mfu},
                                     {"step_s", r.wrong_choice.interaction_step_s}};
  doc["assumed"] = assumed_json(d.assumed);
  doc["origins"] = origins_json(d.origins);
  doc["description"] = description_json(s);
  return print(doc);
}

}  // namespace assay
