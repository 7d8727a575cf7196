// Figures that `assay plan` prints beside those of its plan: what a run over weeks makes of it,
// what was tried, what would move it, what would make it fit.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "report/explain_parts.h"
#include "report/plan_report.h"

namespace assay {

char weeks_mark(const Json& weeks) { return text_at(weeks, {"mark"}) == "c" ? 'c' : 'a'; }

namespace {

constexpr const char* kGoodputPage = "docs/models/goodput.md";
constexpr const char* kSearchPage = "docs/internals/life-of-a-plan.md";

// ---- over weeks

Derivation mtbf_of(const Json& weeks) {
  return figure("mean time between failures", number(weeks, {"mtbf_s"}), "s",
                "1 / (sum of the rates x accelerators), shocks included", weeks_mark(weeks),
                fmt::format("run: {}; {}", text_at(weeks, {"run"}), kGoodputPage));
}

Derivation interval_of(const Json& weeks) {
  Derivation d = figure("work between saves", number(weeks, {"checkpoint_interval_s"}), "s",
                        "the interval that loses least at this failure rate, or the stated one",
                        weeks_mark(weeks), kGoodputPage);
  if (at(weeks, {"mtbf_s"}).is_number()) d.inputs = {mtbf_of(weeks)};
  return d;
}

Derivation slowdown_of(const Json& weeks) {
  return figure("slowdown", number(weeks, {"slowdown"}), "x",
                "1 / mean of nominal over real step: jitter, data stalls, replays, clocks, the "
                "slowest machine",
                weeks_mark(weeks), kGoodputPage);
}

Derivation goodput_of(const Json& weeks) {
  const char mark = weeks_mark(weeks);
  Derivation d = figure("goodput", 100 * number(weeks, {"goodput"}), "%",
                        "product of what each leaves of the time", mark, kGoodputPage);
  const auto factor = [&](const char* key, const char* name, const char* equation) {
    const double share = number(weeks, {"factors", key});
    if (share < 1) d.inputs.push_back(figure(name, 100 * share, "%", equation, mark));
  };
  factor("failures_and_saves", "failures and saves",
         "exact effective time of each place of checkpoints");
  if (!d.inputs.empty()) {
    std::vector<Derivation>& rests_on = d.inputs.back().inputs;
    if (at(weeks, {"mtbf_s"}).is_number()) rests_on.push_back(mtbf_of(weeks));
    if (at(weeks, {"checkpoint_interval_s"}).is_number()) {
      rests_on.push_back(interval_of(weeks));
      rests_on.back().inputs.clear();  // it stands above
    }
  }
  factor("missing_machines", "machines in repair or away",
         "P(in repair <= spares), or replicas that are up");
  factor("planned_stops", "planned stops", "1 - stop / time between them");
  factor("site_hours", "hours of the site", "share of the accelerators that it powers");
  factor("late_batches", "waits for late batches", "steps / (steps + waits)");
  factor("start_up", "start", "1 - start-up / time");
  return d;
}

Derivation days_of(const Json& weeks, const Json& result) {
  Derivation d =
      figure("days with failures", number(weeks, {"days"}), "days",
             "days without failures x slowdown / goodput", weeks_mark(weeks), kGoodputPage);
  if (at(result, {"run", "days"}).is_number())
    d.inputs.push_back(figure("days without failures", number(result, {"run", "days"}), "days",
                              "`assay explain` of the plan has its equation"));
  d.inputs.push_back(slowdown_of(weeks));
  d.inputs.push_back(goodput_of(weeks));
  return d;
}

// Of the job alone: the spares' part of the cost is stated beside it.
double job_cost(const Json& weeks) {
  const Json& spares = at(weeks, {"spares_usd"});
  return number(weeks, {"cost_usd"}) - (spares.is_number() ? spares.get<double>() : 0);
}

Derivation price_of(const Json& weeks, const Json& result) {
  const double hours = number(weeks, {"gpu_hours"});
  const double price = at(weeks, {"usd_per_gpu_hour"}).is_number()
                           ? number(weeks, {"usd_per_gpu_hour"})
                       : hours > 0 ? job_cost(weeks) / hours
                                   : 0;
  const bool stated = text_at(result, {"run", "marks", "price_usd_per_gpu_hour"}) == "s";
  return figure("price", price, "$/h", "", stated ? 's' : 'a', "cluster.price");
}

Derivation spares_cost_of(const Json& weeks) {
  Derivation d = figure("cost of spares", number(weeks, {"spares_usd"}), "$",
                        "nodes x accelerators of a node x hours x price", weeks_mark(weeks),
                        "docs/models/economics.md");
  d.inputs = {figure("spare nodes", number(weeks, {"spare_nodes"}), "", "", weeks_mark(weeks),
                     "run: " + text_at(weeks, {"run"}))};
  return d;
}

Derivation cost_of(const Json& weeks, const Json& result) {
  Derivation price = price_of(weeks, result);
  const char mark = price.mark == 'a' ? 'a' : weeks_mark(weeks);
  Derivation job = figure("cost of the job", job_cost(weeks), "$",
                          "accelerators of the job x hours x price; spares aside", mark,
                          "docs/models/economics.md");
  Derivation hours = figure("GPU-hours", number(weeks, {"gpu_hours"}), "h",
                            "accelerators x days x 24", weeks_mark(weeks), kGoodputPage);
  hours.inputs = {days_of(weeks, result)};
  job.inputs = {std::move(hours), std::move(price)};
  if (!at(weeks, {"spares_usd"}).is_number()) return job;
  Derivation all =
      figure("cost", number(weeks, {"cost_usd"}), "$", "of the job, and of its spares meanwhile",
             mark, "docs/models/economics.md");
  all.inputs = {std::move(job), spares_cost_of(weeks)};
  return all;
}

// ---- beside the best plan

Derivation step_of(const Json& result, const char* name) {
  Derivation d = figure(name, number(result, {"step_s"}), "s", "the accounts of its ledger", 'c',
                        "docs/models/step.md");
  d.inputs = {figure("MFU, of its own peak", 100 * number(result, {"mfu"}), "%", "")};
  const double reserved = number(result, {"memory_bytes", "reserved"});
  if (reserved > 0) d.inputs.push_back(figure("memory, worst rank", reserved, "B", ""));
  return d;
}

Derivation lever_figure(const Json& doc, const Json& lever) {
  std::string command = text_at(lever, {"command"});
  if (command.empty()) command = text_at(lever, {"label"});  // what no option does
  Derivation d = figure(text_at(lever, {"label"}), 100 * number(lever, {"step_change"}), "%",
                        "time per token with " + command +
                            " over that without, less 1; where it changes what fits or the batch, "
                            "the rest of the plan is searched again",
                        'c', kSearchPage);
  d.inputs = {step_of(at(doc, {"best"}), "step time of the plan"),
              step_of(at(lever, {"result"}), "step time with it")};
  return d;
}

Derivation memory_of(const Json& bytes, const char* name) {
  Derivation d =
      figure(name, number(bytes, {"reserved"}), "B",
             "allocated x fragmentation + outside the allocator", 'c', "docs/models/memory.md");
  Derivation allocated = figure("allocated", number(bytes, {"allocated"}), "B", "sum of the parts");
  for (const char* part :
       {"weights", "gradients", "optimizer", "activations", "buffers", "framework"}) {
    allocated.inputs.push_back(figure(part, number(bytes, {part}), "B", ""));
  }
  d.inputs = {std::move(allocated)};
  return d;
}

Derivation fix_figure(const Json& fix) {
  const std::string command = text_at(fix, {"command"});
  const Json& bytes = at(fix, {"result", "memory_bytes"});
  Derivation d = memory_of(bytes, "");
  d.name = text_at(fix, {"label"});
  d.equation = fmt::format("memory of the best plan with {}, searched and predicted",
                           command.empty() ? d.name : command);
  d.inputs.push_back(figure("there is", number(bytes, {"capacity"}), "B",
                            "nominal memory less what driver and context hold", 's'));
  d.inputs.push_back(step_of(at(fix, {"result"}), "step time with it"));
  return d;
}

Derivation miss_figure(const Json& miss) {
  const Json& bytes = at(miss, {"memory_bytes"});
  Derivation d =
      figure("misses_by", number(miss, {"over_bytes"}), "B",
             "reserved - usable, of the plan that needs least", 'c', "docs/models/memory.md");
  d.inputs = {memory_of(bytes, "reserved"),
              figure("usable", number(bytes, {"capacity"}), "B",
                     "nominal memory less what driver and context hold", 's')};
  return d;
}

// As the screen's last line of the ledger adds them up.
std::optional<DocumentFigure> rest_figure(const Json& ledger) {
  Derivation d =
      figure("everything_else", 0, "s", "accounts too small for a line of their own; -v shows them",
             'c', "docs/models/step.md");
  size_t line = 0;
  for (const Json& account : ledger) {
    const bool own =
        line++ < kLedgerLinesMost && std::abs(number(account, {"share"})) >= kLedgerShareLeast;
    if (own) continue;
    d.value += number(account, {"seconds"});
    d.inputs.push_back(figure(text_at(account, {"account"}), number(account, {"seconds"}), "s", "",
                              text_at(account, {"mark"}) == "a" ? 'a' : 'c'));
  }
  if (line == 0) return std::nullopt;
  return DocumentFigure{std::move(d), ""};
}

std::optional<DocumentFigure> count_figure(const Json& plans, const std::string& name) {
  if (number(plans, {"possible"}) <= 0) return std::nullopt;  // the plan was stated
  const auto of = [&](const char* key, const char* equation) {
    return figure(key, number(plans, {key}), "plans", equation, 'c', kSearchPage);
  };
  const Derivation possible = of("possible", "plans of the space that the software can run");
  const Derivation tried = of(
      "tried", "of the possible, predicted; the rest cannot fit");
  Derivation d = name == "possible" ? possible
                 : name == "tried"  ? tried
                                    : of("fitting", "of the predicted, reserved <= usable memory");
  if (name == "tried") d.inputs = {possible};
  if (name == "fitting") d.inputs = {tried};
  return DocumentFigure{std::move(d), ""};
}

std::optional<DocumentFigure> runner_up_figure(const Json& doc) {
  const Json& second = at(doc, {"runner_up"});
  if (!second.is_object() || number(doc, {"best", "step_s"}) <= 0) return std::nullopt;
  const double more = number(second, {"step_s"}) / number(doc, {"best", "step_s"}) - 1;
  Derivation d = figure("runner_up", 100 * more, "%",
                        "its step time over that of the best plan, less 1; it lost by " +
                            text_at(second, {"why_lost"}),
                        'c', kSearchPage);
  d.inputs = {step_of(at(doc, {"best"}), "step time of the best plan"),
              step_of(second, "step time of the runner-up")};
  return DocumentFigure{std::move(d), ""};
}

// A lever or a fix by its label or its command, whole or up to the end of a word (`800G fabric`)
// where that is one of them only.
const Json* what_if(const Json& list, const std::string& asked) {
  if (asked.empty()) return nullptr;
  const Json* begins = nullptr;
  int64_t beginning = 0;
  for (const Json& w : list) {
    for (const char* key : {"label", "command"}) {
      const std::string name = plain_label(text_at(w, {key}));
      if (name == asked) return &w;
      const bool words = asked.find('-') != std::string::npos;  // a single one may be a figure
      if (words && name.starts_with(asked + "-")) begins = &w, ++beginning;
    }
  }
  return beginning == 1 ? begins : nullptr;
}

}  // namespace

std::optional<DocumentFigure> outlook_figure(const Json& weeks, const Json& result,
                                             const std::string& name) {
  if (!weeks.is_object()) return std::nullopt;
  const auto known = [](Derivation d) {
    return std::optional<DocumentFigure>(DocumentFigure{std::move(d), ""});
  };
  if (name == "goodput") return known(goodput_of(weeks));
  if (name == "slowdown") return known(slowdown_of(weeks));
  if (name == "steps_slower") {
    Derivation d = figure(name, 100 * (number(weeks, {"slowdown"}) - 1), "%", "slowdown - 1",
                          weeks_mark(weeks), kGoodputPage);
    d.inputs = {slowdown_of(weeks)};
    return known(std::move(d));
  }
  if (name == "mtbf" && at(weeks, {"mtbf_s"}).is_number()) return known(mtbf_of(weeks));
  if (name == "checkpoint_interval" && at(weeks, {"checkpoint_interval_s"}).is_number())
    return known(interval_of(weeks));
  if (name == "spares" && at(weeks, {"spare_nodes"}).is_number()) {
    Derivation d = figure(name, number(weeks, {"spare_nodes"}), "nodes",
                          "the larger of run.spares and run.spare_share x nodes", weeks_mark(weeks),
                          kGoodputPage);
    if (at(weeks, {"mtbf_s"}).is_number()) d.inputs.push_back(mtbf_of(weeks));
    if (at(weeks, {"spares_usd"}).is_number()) d.inputs.push_back(spares_cost_of(weeks));
    return known(std::move(d));
  }
  if (name == "days_with_failures" && at(weeks, {"days"}).is_number())
    return known(days_of(weeks, result));
  if (name == "cost_with_failures" && at(weeks, {"cost_usd"}).is_number())
    return known(cost_of(weeks, result));
  return std::nullopt;
}

const std::vector<std::string>& outlook_figures() {
  static const std::vector<std::string> names{
      "goodput", "slowdown",           "steps_slower",      "mtbf", "checkpoint_interval",
      "spares",  "days_with_failures", "cost_with_failures"};
  return names;
}

const std::vector<std::string>& plan_figures() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all = outlook_figures();
    all.insert(all.end(),
               {"runner_up", "everything_else", "possible", "tried", "fitting", "misses_by"});
    return all;
  }();
  return names;
}

std::optional<DocumentFigure> plan_figure(const Json& doc, const std::string& name) {
  if (name == "runner_up") return runner_up_figure(doc);
  if (name == "everything_else") return rest_figure(at(doc, {"best", "ledger"}));
  if (name == "possible" || name == "tried" || name == "fitting")
    return count_figure(at(doc, {"plans"}), name);
  if (name == "misses_by" && at(doc, {"nearest_miss"}).is_object())
    return DocumentFigure{miss_figure(at(doc, {"nearest_miss"})), ""};
  const std::string asked = plain_label(name);
  if (const Json* lever = what_if(at(doc, {"levers"}), asked))
    return DocumentFigure{lever_figure(doc, *lever), ""};
  if (const Json* fix = what_if(at(doc, {"fixes"}), asked))
    return DocumentFigure{fix_figure(*fix), ""};
  return outlook_figure(at(doc, {"best", "over_weeks"}), at(doc, {"best"}), name);
}

std::vector<std::string> plan_figures(const Json& doc) {
  std::vector<std::string> names = plan_figures();
  for (const char* list : {"levers", "fixes"}) {
    for (const Json& w : at(doc, {list})) {
      const std::string label = text_at(w, {"label"});
      names.push_back(plain_label(label.empty() ? text_at(w, {"command"}) : label));
    }
  }
  std::erase_if(names, [&](const std::string& name) { return !plan_figure(doc, name); });
  return names;
}

}  // namespace assay
