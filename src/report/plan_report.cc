#include "report/plan_report.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "perf/memory.h"
#include "perf/range.h"
#include "plan/scale.h"
#include "plan/space.h"
#include "report/measured.h"
#include "report/result_json.h"

namespace assay {

std::string beyond_record(const std::string& name, const Setting& s, const Plan& plan,
                          const Prediction& p) {
  const double best = best_measured(s.kernels, plan.precision);
  if (best <= 0 || p.mfu <= best) return "";
  return fmt::format(" {}: {} MFU, and no published run on such accelerators passed {}.", name,
                     percent(p.mfu), percent(best));
}

namespace {

constexpr std::string_view kSamePeak = "* against the same peak.";
constexpr int kBarColumns = 44;

// Two columns of figures: `  MFU  46.8 %  (43-49)   TFLOPS per GPU  463`.
std::string figure_row(int width, const std::string& a, const std::string& value,
                       const std::string& extra, const std::string& b, const std::string& value_b) {
  // What fills its column still stands apart from the next.
  const auto cell = [](const std::string& text, size_t columns) {
    return left(text.size() >= columns ? text + " " : text, columns);
  };
  std::string row = "  " + cell(a, 19) + cell(value, 13) + cell(extra, 13) + cell(b, 16) + value_b;
  // What is too long for a narrow screen moves closer to its name.
  for (size_t gap;
       row.size() > static_cast<size_t>(width) && (gap = row.rfind("  ")) != std::string::npos;)
    row.erase(gap, 1);
  return row + "\n";
}

std::string heading(const PlanResult& r, const Style& style) {
  const Description& d = r.description;
  const int width = style.width;
  std::string out =
      measured_text(r, style) + wrap("Plan   " + workload_line(d.setting), width, 7) + "\n";
  out += wrap("On     " + cluster_line(d.setting), width, 7) + "\n";
  out += "With   " + d.stack_name + "\n";
  if (r.searched) {
    std::string tried = fmt::format("Tried  {} ", count(r.search.tried));
    tried += r.search.tried < r.search.possible
                 ? fmt::format(
                       "of {} plans ({})", count(r.search.possible),
                       r.search.tried > 0 ? "the rest cannot fit" : "not even the most frugal fit")
                 : "plans";
    // Some software has pipelines, too: a search of its plans leaves them to whoever states one.
    const bool pipelines = has_pipelines(d.setting.stack) || d.plan_keys.contains("pp");
    if (!pipelines && d.setting.workload.model.kind == ModelKind::kTransformer)
      tried += ", without pipelines";
    if (r.search.tried > 0) tried += fmt::format(", {} fit", count(r.search.fitting));
    if (!d.plan_keys.empty()) {
      tried += fmt::format("; kept as stated: {}", fmt::join(d.plan_keys, ", "));
    }
    if (style.timing) tried += fmt::format(", in {}", seconds(r.elapsed_s));
    out += wrap(tried, width, 7) + "\n";
  } else if (r.measured) {
    out += "Tried  the plan that was run\n";
  } else {
    out += "Tried  the stated plan only; drop its tp, pp or micro_batch to search\n";
  }
  return out + "\n";
}

// Where layers do not divide among the stages, how many each holds: `stages of 7 x 12 + 8 layers`.
std::string uneven_stages(const PlanResult& r) {
  const Model& m = r.description.setting.workload.model;
  if (r.plan.pp <= 1 || m.kind == ModelKind::kDlrm) return "";
  std::vector<std::pair<int64_t, int64_t>> runs;  // stages, layers of each
  Stages split = stages_of(m, r.plan);
  split.folded = false;  // one by one, whoever holds them
  for (int64_t first = 0; first < split.pp;) {
    const StageRun run = stage_run(m, split, first);
    const int64_t layers = std::llround(run.content.dense_layers + run.content.moe_layers);
    if (!runs.empty() && runs.back().second == layers) {
      runs.back().first += run.count;
    } else {
      runs.emplace_back(run.count, layers);
    }
    first += run.count;
  }
  if (runs.size() == 1) return "";
  std::vector<std::string> words;
  for (const auto& [stages, layers] : runs) {
    words.push_back(stages > 1 ? fmt::format("{} x {}", stages, layers) : std::to_string(layers));
  }
  return fmt::format(", stages of {} layers", fmt::join(words, " + "));
}

std::string best_plan(const PlanResult& r, const Style& style) {
  const size_t indent = 21;
  const std::string title = r.searched ? "Best plan" : "Stated plan";
  std::string out =
      wrap(left(title, indent) + layout(r.plan, r.prediction.dp, "   "), style.width, indent) +
      "\n";
  out += wrap(std::string(indent, ' ') + policy(r.plan, r.prediction.dp) + uneven_stages(r),
              style.width, indent) +
         "\n";
  return out;
}

// A figure with its mark.
std::string marked(const std::string& value, char mark) {
  return fmt::format("{} {}", value, mark);
}

std::string money_rows(const PlanResult& r, int width) {
  const RunFigures& run = r.run;
  const std::string price = run.price_known ? fmt::format("at {}/h {}", dollars(run.price_per_hour),
                                                          run.price_stated ? 's' : 'a')
                                            : "no price known";
  std::string out = figure_row(
      width, "cost", run.price_known ? marked(dollars(run.cost_usd.value), cost_mark(run)) : "-",
      run.price_known ? dollars_range(run.cost_usd) : "", "price", price);
  out += figure_row(
      width, "energy", marked(energy(run.energy_kwh.value), kPredicted),
      energy_range(run.energy_kwh), "power",
      fmt::format("{}, PUE {:g} {}", marked(watts(run.power_w), kPredicted),
                  r.description.setting.cluster.pue, setting_mark(r.description, "cluster.pue")));
  return out;
}

std::string figures(const PlanResult& r, int width) {
  const Prediction& p = r.prediction;
  const Setting& s = r.description.setting;
  const double n = static_cast<double>(accelerators_used(s));
  const auto predicted = [](const std::string& value) { return marked(value, kPredicted); };
  std::string out =
      figure_row(width, "MFU", predicted(percent(p.mfu)), percent_range(mfu_range(p)),
                 "TFLOPS per GPU", predicted(significant(p.model_flops.v / p.step.v / n / 1e12)));
  out += figure_row(
      width, "step time", predicted(seconds(p.step.v)),
      seconds_range({p.step.v, p.low.v, p.high.v}),
      s.workload.model.kind == ModelKind::kDlrm ? "samples per s" : "tokens per s",
      fmt::format("{} {}", predicted(scaled(p.tokens_per_s)), scaled_range(tokens_range(p))));
  out += figure_row(width, "run", predicted(duration(r.run.time_s.value)),
                    duration_range(r.run.time_s), "GPU-hours",
                    fmt::format("{} {}", predicted(scaled(r.run.accelerator_hours.value)),
                                scaled_range(r.run.accelerator_hours)));
  out += money_rows(r, width);
  out += figure_row(
      width, "memory, worst rank", predicted(gibibytes(p.memory.reserved.v)),
      gibibytes_range(memory_range(p.memory)), "headroom",
      fmt::format("{} of {}", predicted(gibibytes((p.memory.capacity - p.memory.reserved).v)),
                  gibibytes(p.memory.capacity.v)));
  if (p.experts_wait) {
    out += wrap(
               "                     slow end of the step: expert layers that wait for their "
               "host (no CUDA graphs)",
               width, 21) +
           "\n";
  }
  return out;
}

std::string outlook_money(const Outlook& o) {
  return duration(o.expected.time.v) + (o.usd > 0 ? ", " + dollars(o.usd) : "");
}

// Over weeks: goodput, and what the run then takes.
std::string outlook_text(const PlanOutlook& outlook, const Style& style) {
  if (!outlook.why_not.empty())
    return wrap("  goodput            not estimated: " + outlook.why_not, style.width, 21) + "\n";
  if (!outlook.best) return "";
  const Outlook& o = *outlook.best;
  const Expectation& e = o.expected;
  std::string out =
      figure_row(style.width, "goodput", percent(e.goodput) + (outlook.stated ? " c" : " a"),
                 "closed form", "with failures", o.ends() ? outlook_money(o) : "does not end");
  std::string why = std::isfinite(e.mtbf.v) ? fmt::format("a failure every {}", duration(e.mtbf.v))
                                            : std::string("nothing fails");
  if (e.interval.v > 0 && e.interval < e.time)
    why += fmt::format(", a checkpoint every {}", duration(e.interval.v));
  if (e.slowdown > 1.0005) why += fmt::format(", steps {} slower", percent(e.slowdown - 1));
  if (o.spares > 0) {
    why += fmt::format(", {} spare {}", count(o.spares), o.spares == 1 ? "node" : "nodes");
    if (o.ends() && o.spares_usd > 0) why += fmt::format(" ({} of it)", dollars(o.spares_usd));
  }
  why += fmt::format("; run: {} {}", outlook.operations_name, outlook.stated ? 'c' : 'a');
  return out + wrap("                     " + why, style.width, 21) + "\n";
}

// One unit and one number of decimals for the whole ledger, so that the column reads as a sum.
struct LedgerUnit {
  const char* name;
  double size;
  int decimals;
};

LedgerUnit ledger_unit(double step_s) {
  if (step_s < 0.9995) return {"ms", 1e-3, step_s < 0.0995 ? 2 : 1};
  return {"seconds", 1, step_s < 99.5 ? 2 : 1};
}

std::string ledger_text(const PlanResult& r, const Style& style) {
  const size_t width = static_cast<size_t>(style.width);
  const LedgerUnit unit = ledger_unit(r.prediction.step.v);
  const std::string title = "Where one step goes";
  std::string out =
      title + right(fmt::format("{}   share", unit.name), width - title.size() - 4) + "\n";
  const int columns = std::max(8, std::min(kBarColumns, style.width - 48));
  const auto row = [&](const std::string& name, double secs, double share, char mark) {
    const std::string numbers = right(fmt::format("{:.{}f}", secs / unit.size, unit.decimals), 9) +
                                right(fmt::format("{:.1f} %", share * 100), 8) + "  " + mark;
    const size_t used = 22 + static_cast<size_t>(columns);
    out += "  " + left(name, 20) + bar(share, columns, style) +
           std::string(width > used + 20 ? width - used - 20 : 1, ' ') + numbers + "\n";
  };
  double rest = 0, rest_share = 0;
  for (size_t i = 0; i < r.ledger.size(); ++i) {
    const LedgerLine& line = r.ledger[i];
    if (style.verbose || (i < kLedgerLinesMost && std::abs(line.share) >= kLedgerShareLeast)) {
      row(account_name(line.account), line.seconds, line.share, line.mark);
    } else {
      rest += line.seconds, rest_share += line.share;
    }
  }
  if (std::abs(rest_share) >= kLedgerShareLeast) row("everything else", rest, rest_share, 'c');
  return out;
}

std::string levers_text(const PlanResult& r, const Style& style) {
  if (r.levers.empty()) return "";
  const size_t width = static_cast<size_t>(style.width);
  const std::string title = "What would move it most";
  std::string out =
      "\n" + title + right("time per token   MFU *    memory   ", width - title.size());
  out = trimmed_lines(out) + "\n";
  for (const WhatIf& w : r.levers) {
    const std::string name = "  " + w.label;
    const double mfu = r.prediction.mfu / (1 + w.step_change);
    const std::string tail = right(signed_percent(w.step_change), 9) + right(percent(mfu), 9) +
                             right(gibibytes(w.prediction.memory.reserved.v), 10) + "  " +
                             kPredicted;
    out += with_tail(name, tail, style.width);
    if (w.other_plan)
      out += wrap("      " + layout(w.plan, w.prediction.dp), style.width, 6) + "\n";
  }
  // The legend says it elsewhere; without it an MFU above 100 % is wrong.
  if (style.quiet) out += fmt::format("  {}\n", kSamePeak);
  return out;
}

// The faster step need not be the sooner end; ranked as the search ranks.
std::string runner_up_outlook(const PlanResult& r, const PlanOutlook& outlook) {
  if (!outlook.best || !outlook.runner_up) return "";
  const auto weeks = [](const Prediction& p, const Outlook& o) {
    return cautious(p) / p.step * o.expected.time.v;
  };
  const double other = weeks(r.runner_up->prediction, *outlook.runner_up);
  if (!(other < weeks(r.prediction, *outlook.best))) return "";
  return fmt::format(" With failures it would be done sooner: {} goodput, {}.",
                     percent(outlook.runner_up->expected.goodput),
                     outlook_money(*outlook.runner_up));
}

std::string runner_up_text(const PlanResult& r, const PlanOutlook& outlook, const Style& style) {
  if (!r.runner_up) return "";
  const Prediction& p = r.runner_up->prediction;
  const double slower = p.step / r.prediction.step - 1;
  std::string text = fmt::format("Runner-up: {}; step time {} {}.", layout(r.runner_up->plan, p.dp),
                                 signed_percent(slower), kPredicted);
  return "\n" + wrap(text, style.width, 2) + "\n" +
         wrap("  It lost by: " + r.why_lost + "." + runner_up_outlook(r, outlook), style.width, 4) +
         "\n";
}

std::string assumptions(const PlanResult& r, const Style& style) {
  const std::vector<Assumption>& assumed = r.description.assumed;
  if (!style.verbose || assumed.empty()) return "";
  std::string out = "\nAssumed, because nothing was stated\n";
  for (const Assumption& a : assumed) {
    const std::string what = a.path.empty() ? a.value : fmt::format("{} = {}", a.path, a.value);
    out += wrap(fmt::format("  {}  ({})", what, a.why), style.width, 4) + "\n";
  }
  return out;
}

std::string legend(const PlanResult& r, const Style& style, const Stamp& stamp) {
  if (style.quiet) return "";
  std::string out =
      "\n" +
      wrap(fmt::format("{}: {} {} (-v lists them)", kMarks, r.description.assumed.size(),
                       r.description.assumed.size() == 1 ? "setting" : "settings"),
           style.width) +
      "\n";
  std::string ranges = "Ranges hold 90 % of runs.  ";
  if (!r.levers.empty()) ranges += fmt::format("{}  ", kSamePeak);
  out += wrap(ranges + footer(stamp), style.width) + "\n";
  return out;
}

bool above_record(const PlanResult& r) {
  return !beyond_record("", r.description.setting, r.plan, r.prediction).empty();
}

std::string verdict(const PlanResult& r, const PlanOutlook& outlook) {
  if (r.measured && r.measured->step_s > 0) {
    const double step = r.prediction.step.v, measured = r.measured->step_s;
    return fmt::format("{}: {} predicted, {} measured ({}). {}", sanitize(r.measured->id, 60),
                       seconds(step), seconds(measured), signed_percent(step / measured - 1),
                       limit_sentence(r.prediction));
  }
  const std::string record =
      above_record(r)
          ? fmt::format(" (no published run passed {})",
                        percent(best_measured(r.description.setting.kernels, r.plan.precision)))
          : std::string();
  std::string text =
      fmt::format("{} MFU{}, {}", percent(r.prediction.mfu), record, duration(r.run.time_s.value));
  if (r.run.price_known) text += ", " + dollars(r.run.cost_usd.value);
  if (outlook.best && outlook.best->ends())
    text += fmt::format("; with failures {}", outlook_money(*outlook.best));
  return text + ". " + limit_sentence(r.prediction);
}

// What should make a reader careful with the figures. A search finds the place where a model is
// most wrong, so a promise beyond every run is told.
std::vector<std::string> cautions(const PlanResult& r) {
  const Setting& s = r.description.setting;
  const MemoryUse& memory = r.prediction.memory;
  std::vector<std::string> all;
  if (r.prediction.extrapolated)
    all.push_back("This lies outside what was ever measured; trust the slow end.");
  if (above_record(r)) {
    all.push_back(fmt::format(
        "No published run on such accelerators did better than {} MFU: trust the slow end.",
        percent(best_measured(s.kernels, r.plan.precision))));
  }
  const int64_t layers = layer_count(s.workload.model), chunks = r.plan.pp * r.plan.vpp;
  if (!r.searched && r.plan.vpp > 1 && layers % chunks != 0) {
    all.push_back(fmt::format(
        "{} chunks do not divide {} layers: some have one more. Most frameworks refuse that.",
        chunks, layers));
  }
  if (!host_holds(s, r.plan, memory.parked)) {
    std::vector<std::string> what;
    if (r.plan.offload_optimizer > 0) what.emplace_back("optimizer");
    if (r.plan.offload_parameters > 0) what.emplace_back("weights");
    if (memory.parked.v > 0) what.emplace_back("parked activations");
    all.push_back(
        fmt::format("What is kept on the host ({}) needs {} of its memory, and a node has {}.",
                    fmt::join(what, ", "), gibibytes(host_memory(s, r.plan, memory.parked).v),
                    gibibytes(s.cluster.node.host_memory.v)));
  }
  if (r.plan.recompute == Recompute::kNone && r.description.plan_keys.contains("recompute_layers"))
    all.push_back("plan.recompute_layers changes nothing: nothing is recomputed (plan.recompute).");
  if (memory.tight() && memory.fits()) {
    all.push_back(fmt::format(
        "Memory is within {:.1f} % of what there is, the median error of its predictions.",
        100 * MemoryUse::kMedianError));
  }
  const std::vector<int64_t> stages = zero_stages(s.stack);
  const bool known = std::find(stages.begin(), stages.end(), r.plan.zero) != stages.end();
  if (!known && r.plan.zero > 0 && r.prediction.dp * r.plan.cp > 1) {
    all.push_back(
        fmt::format("ZeRO-{} is not among what {} does by itself ({}): a search tries it "
                    "only where it is stated.",
                    r.plan.zero, s.stack.name, fmt::join(stages, ", ")));
  }
  if (r.kernels_assumed) {
    all.push_back(fmt::format("No kernel of {} was measured: their times are assumed (a).",
                              s.cluster.accelerator.name));
  }
  return all;
}

std::string next_commands(const PlanResult& r, const Stamp& stamp, int width) {
  std::string job = stamp.inputs + stamp.settings;
  if (r.measured) {
    if (stamp.saved.empty())
      return "Next:  the same with -o row.json: explain, compare, scale go on\n";
    job = stamp.saved;
  }
  const std::string result = stamp.saved.empty() ? job + stamp.gpus : stamp.saved;
  return command_lines(fmt::format("Next:  assay explain {} mfu", result), width, 9) + "\n" +
         command_lines(fmt::format("       assay scale {} --gpus {}", job,
                                   usual_sizes(r.description.setting.cluster)),
                       width, 9) +
         "\n";
}

std::string found_text(const PlanResult& r, const Style& style, const Stamp& stamp,
                       const PlanOutlook& outlook) {
  std::string out = heading(r, style) + best_plan(r, style) + "\n" + figures(r, style.width);
  out += outlook_text(outlook, style) + "\n";
  out += ledger_text(r, style) + levers_text(r, style) + runner_up_text(r, outlook, style);
  for (const std::string& caution : cautions(r)) out += "\n" + warning(caution, style) + "\n";
  out += assumptions(r, style) + legend(r, style, stamp);
  if (!style.quiet) out += next_commands(r, stamp, style.width);
  return out + "\n" + bold(wrap(verdict(r, outlook), style.width), style) + "\n";
}

std::string memory_sum(const MemoryUse& m) {
  const auto gb = [](Bytes b) { return fmt::format("{:.1f}", b.v / kGiB.v); };
  return fmt::format(
      "weights {} + gradients {} + optimizer {} + activations {} + buffers {} + framework {} = {}; "
      "{} reserved of {}  {}",
      gb(m.weights), gb(m.gradients), gb(m.optimizer), gb(m.activations), gb(m.buffers),
      gb(m.framework), gb(m.allocated), gb(m.reserved), gibibytes(m.capacity.v), kPredicted);
}

std::string fixes_text(const PlanResult& r, const Style& style) {
  if (r.fixes.empty()) return r.what_ifs ? "Nothing that was tried makes it fit.\n" : "";
  std::string out = "It would fit with any one of:\n";
  for (const WhatIf& w : r.fixes) {
    std::string name = "  " + (w.command.empty() ? w.label : w.command);
    if (!w.command.empty() && !w.label.empty()) name += "  (" + w.label + ")";
    const std::string tail = right(gibibytes(w.prediction.memory.reserved.v), 9) + ", " +
                             percent(w.prediction.mfu) + " MFU  " + kPredicted;
    out += with_tail(name, left(tail, 29), style.width);
    if (w.other_plan)
      out += wrap("      " + layout(w.plan, w.prediction.dp), style.width, 6) + "\n";
  }
  return out;
}

std::string missed_text(const PlanResult& r, const Style& style, const Stamp& stamp) {
  std::string out = heading(r, style);
  const std::string over = gibibytes(r.miss->over().v);
  const std::string where = layout(r.miss->plan, r.miss->dp);
  const std::string answer =
      r.searched
          ? fmt::format("No plan fits. The closest misses by {} per GPU ({}).", over, where)
          : fmt::format("The stated plan does not fit: it misses by {} per GPU ({}).", over, where);
  out += wrap(answer, style.width, 2) + "\n";
  out += "  " + wrap(memory_sum(r.miss->memory), style.width - 4, 4) + "\n";
  out += fixes_text(r, style);
  out += assumptions(r, style);
  if (!style.quiet) out += fmt::format("\n{}\n{}\n", kMarks, footer(stamp));
  return out + "\n" + bold("Does not fit: " + over + " too much on every GPU.", style) + "\n";
}

std::string impossible_text(const PlanResult& r, const Style& style) {
  std::string out = heading(r, style);
  const Impossible why = r.impossible.value_or(Impossible{
      "plan", "no split of the accelerators divides the batch", "change the batch or --gpus"});
  out += wrap(fmt::format("No plan is possible. {}: {}", why.setting, why.reason), style.width, 2) +
         "\n";
  if (!why.fix.empty()) out += wrap("  fix: " + why.fix, style.width, 4) + "\n";
  return out + "\n" + bold(fmt::format("Not possible: {}.", why.reason), style) + "\n";
}

Json what_if_json(const WhatIf& w, const Setting& s) {
  Json j;
  j["label"] = w.label;
  j["command"] = w.command;
  j["step_change"] = w.step_change;
  j["mark"] = std::string(1, kPredicted);
  j["result"] = candidate_json(w.plan, w.prediction, s);
  return j;
}

void add_best(Json& doc, const PlanResult& r, const PlanOutlook& outlook) {
  const Setting& s = r.description.setting;
  Json best = candidate_json(r.plan, r.prediction, s);
  best["run"] = run_json(r.run);
  best["over_weeks"] = outlook_json(outlook.best, outlook);
  Json ledger = Json::array();
  for (const LedgerLine& line : r.ledger) {
    ledger.push_back({{"account", info(line.account).key},
                      {"seconds", line.seconds},
                      {"share", line.share},
                      {"mark", std::string(1, line.mark)}});
  }
  best["ledger"] = std::move(ledger);
  doc["best"] = std::move(best);
  Json runner_up = nullptr;
  if (r.runner_up) {
    runner_up = candidate_json(r.runner_up->plan, r.runner_up->prediction, s);
    runner_up["why_lost"] = r.why_lost;
    runner_up["over_weeks"] = outlook_json(outlook.runner_up, outlook);
  }
  doc["runner_up"] = std::move(runner_up);
  Json levers = Json::array();
  for (const WhatIf& w : r.levers) levers.push_back(what_if_json(w, s));
  doc["levers"] = std::move(levers);
  Json top = Json::array();
  for (const Candidate& c : r.search.top) top.push_back(candidate_json(c.plan, c.prediction, s));
  doc["top"] = std::move(top);
}

void add_miss(Json& doc, const PlanResult& r) {
  const Setting& s = r.description.setting;
  doc["best"] = nullptr;
  if (r.miss) {
    doc["nearest_miss"] = {{"over_bytes", r.miss->over().v},
                           {"dp", r.miss->dp},
                           {"plan", plan_json_of(r.miss->plan)},
                           {"memory_bytes", memory_json(r.miss->memory)}};
  }
  if (r.impossible && !r.miss) {
    doc["impossible"] = {{"setting", r.impossible->setting},
                         {"reason", r.impossible->reason},
                         {"fix", r.impossible->fix}};
  }
  Json fixes = Json::array();
  for (const WhatIf& w : r.fixes) fixes.push_back(what_if_json(w, s));
  doc["fixes"] = std::move(fixes);
}

}  // namespace

std::string plan_text(const PlanResult& r, const Style& style, const Stamp& stamp,
                      const PlanOutlook& outlook) {
  if (r.fits) return found_text(r, style, stamp, outlook);
  if (r.miss) return missed_text(r, style, stamp);
  return impossible_text(r, style);
}

std::string plan_json(const PlanResult& r, const Stamp& stamp, const PlanOutlook& outlook) {
  const Description& d = r.description;
  Json doc = start_document("assay.plan/1", stamp);
  doc["names"] = {
      {"workload", d.workload_name}, {"cluster", d.cluster_name}, {"stack", d.stack_name}};
  if (r.measured) doc["row"] = measured_json(*r.measured);
  doc["fits"] = r.fits;
  doc["searched"] = r.searched;
  doc["stated"] = d.plan_keys;
  doc["kernels_assumed"] = r.kernels_assumed;
  doc["plans"] = {
      {"possible", r.search.possible}, {"tried", r.search.tried}, {"fitting", r.search.fitting}};
  if (r.fits) {
    add_best(doc, r, outlook);
  } else {
    add_miss(doc, r);
  }
  doc["assumed"] = assumed_json(d.assumed);
  doc["origins"] = origins_json(d.origins);
  doc["warnings"] = diagnostics_json(d.warnings);
  doc["cautions"] = r.fits ? Json(cautions(r)) : Json::array();
  doc["description"] = description_json(d.setting);
  return print(doc);
}

}  // namespace assay
