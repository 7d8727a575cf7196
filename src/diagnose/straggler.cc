#include "diagnose/straggler.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "diagnose/what_if_graph.h"

namespace assay {
namespace {

// Above it, forward and backward of a microbatch are slow together, which data explains and a
// disturbance does not. Threshold of the study; its job with uneven sequences measures 0.99.
constexpr double kUnevenData = 0.9;
constexpr double kSlowRank = 0.03;  // above the mean of its stage: outside what healthy nodes show

std::string step_ms(Seconds s) { return fmt::format("{:.1f} ms", s.v * 1e3); }
std::string percent(double share) { return fmt::format("{:.1f} %", share * 100); }

std::string kind_of(const WhatIf& w, const WhatIfSlice& slice) {
  return sanitize(w.kinds[static_cast<size_t>(slice.id)], 60);
}

Evidence slices_evidence(const OperationTrace& trace, const WhatIf& w, const std::string& title,
                         const std::string& what, const std::vector<WhatIfSlice>& slices) {
  Evidence e;
  e.title = title;
  e.file = sanitize(trace.file);
  e.columns = {what, "step if only it is slow", "slowdown", "step without it", "explains"};
  for (const WhatIfSlice& s : slices) {
    if (e.rows.size() >= kEvidenceRows) break;
    const std::string name = &slices == &w.types ? kind_of(w, s) : fmt::format("{}", s.id);
    // Evening out one slice can save more than evening out all: that one explains all of it.
    e.rows.push_back({name, step_ms(s.alone), fmt::format("{:.4f}", s.slowdown), step_ms(s.without),
                      percent(std::clamp(s.explains, 0.0, 1.0))});
  }
  return e;
}

void price(Finding& f, const WhatIf& w, Seconds gain) {
  f.gain = gain;
  f.share = gain / w.original;
  f.step_after = w.original - gain;
}

// Mean computing time of one pass, forward and backward, by stage or by rank.
struct Passes {
  double sum_ns = 0;
  int64_t forwards = 0;
  Seconds each() const {
    return Seconds(forwards == 0 ? 0 : sum_ns * 1e-9 / static_cast<double>(forwards));
  }
};

template <class Key>
std::map<int32_t, Passes> passes(const OperationTrace& trace, const Key& key) {
  std::vector<StepRole> roles;
  for (const std::string& type : trace.types) roles.push_back(step_role(type));
  std::map<int32_t, Passes> all;
  for (const Operation& op : trace.operations) {
    const StepRole role = roles[op.type];
    if (role != StepRole::kForward && role != StepRole::kBackward) continue;
    Passes& p = all[key(op)];
    p.sum_ns += static_cast<double>(op.duration_ns);
    p.forwards += role == StepRole::kForward;
  }
  return all;
}

void stage_finding(const OperationTrace& trace, const WhatIf& w, Analysis& out) {
  if (w.split.stages / w.original < kWorthFixing || w.stages.empty()) return;
  const int32_t slow = w.stages.front().id;
  const std::map<int32_t, Passes> by_stage =
      passes(trace, [](const Operation& op) { return op.stage; });
  Seconds others;
  for (const auto& [stage, p] : by_stage)
    if (stage != slow) others += p.each() / static_cast<double>(by_stage.size() - 1);
  const auto own = by_stage.find(slow);
  Finding f;
  f.cause = Cause::kStraggler;
  price(f, w, w.split.stages);
  f.title = fmt::format("Stage {} has more work than the others", slow);
  f.detail = fmt::format(
      "A microbatch takes {} there, forward and backward, and {} on the others; every stage waits "
      "for it. With the same work spread evenly the step takes {} instead of {}.",
      step_ms(own == by_stage.end() ? Seconds() : own->second.each()), step_ms(others),
      step_ms(*f.step_after), step_ms(w.original));
  f.fix = slow == w.stage_count - 1
              ? "Move layers off the last stage, which also has the loss: in Megatron "
                "--decoder-last-pipeline-num-layers with fewer layers than the rest."
              : fmt::format(
                    "Move layers off stage {}: set the number of layers of each stage by "
                    "its measured time, not by count.",
                    slow);
  f.where = {fmt::format("stage {}", slow)};
  if (!w.types.empty()) f.where.push_back(kind_of(w, w.types.front()));
  f.confidence = Confidence::kHigh;
  f.evidence.push_back(slices_evidence(trace, w, "what each stage costs", "stage", w.stages));
  f.evidence.push_back(
      slices_evidence(trace, w, "what each type of operation costs", "operation", w.types));
  out.findings.push_back(std::move(f));
}

void rank_finding(const OperationTrace& trace, const WhatIf& w, Analysis& out) {
  if (w.split.ranks / w.original < kWorthFixing) return;
  std::map<int32_t, int32_t> stage_of;
  for (const Operation& op : trace.operations) stage_of[op.rank] = op.stage;
  const auto by_rank = passes(trace, [](const Operation& op) { return op.rank; });
  const auto by_stage = passes(trace, [](const Operation& op) { return op.stage; });
  std::vector<std::pair<double, int32_t>> slow;
  for (const auto& [rank, p] : by_rank) {
    const Seconds stage = by_stage.at(stage_of[rank]).each();
    if (stage.v > 0 && p.each() / stage - 1 >= kSlowRank)
      slow.emplace_back(-(p.each() / stage - 1), rank);
  }
  std::sort(slow.begin(), slow.end());
  Finding f;
  f.cause = Cause::kStraggler;
  price(f, w, w.split.ranks);
  f.title = slow.size() == 1 ? fmt::format("Rank {} computes slower than its peers", slow[0].second)
                             : "Some ranks compute slower than their peers";
  Evidence e;
  e.title = "ranks slower than the mean of their stage";
  e.file = sanitize(trace.file);
  e.columns = {"rank", "stage", "a microbatch", "mean of the stage", "slower by"};
  for (const auto& [excess, rank] : slow) {
    if (e.rows.size() >= kEvidenceRows) break;
    if (f.where.size() < 8) f.where.push_back(fmt::format("rank {}", rank));
    e.rows.push_back({fmt::format("{}", rank), fmt::format("{}", stage_of[rank]),
                      step_ms(by_rank.at(rank).each()), step_ms(by_stage.at(stage_of[rank]).each()),
                      percent(-excess)});
  }
  f.detail = fmt::format(
      "{} of {} ranks are at least {} slower than the mean of their stage, in every step; the "
      "others wait for them. If they ran like their stage the step would take {} instead of {}.",
      slow.size(), w.rank_count, percent(kSlowRank), step_ms(*f.step_after), step_ms(w.original));
  f.fix =
      "Check clocks, throttle reasons and ECC of these devices; move the job off their nodes "
      "(Slurm: --exclude) and run the node's acceptance probe.";
  f.confidence = slow.empty() ? Confidence::kLow : Confidence::kHigh;
  f.evidence.push_back(std::move(e));
  f.evidence.push_back(slices_evidence(trace, w, "what each rank costs", "rank", w.workers));
  out.findings.push_back(std::move(f));
}

void variation_finding(const OperationTrace& trace, const WhatIf& w, Analysis& out) {
  if (w.split.variation / w.original < kWorthFixing || w.types.empty()) return;
  const bool data = w.forward_backward_correlation >= kUnevenData;
  Finding f;
  f.cause = Cause::kStraggler;
  price(f, w, w.split.variation);
  const std::string kind = kind_of(w, w.types.front());
  f.title = data ? "Microbatches are uneven" : fmt::format("{} takes uneven time", kind);
  f.detail = fmt::format(
      "The same operation of the same rank takes longer for some microbatches than for others "
      "(forward and backward are slow together: correlation {:.2f}), and everybody waits for the "
      "longest. With even microbatches the step takes {} instead of {}.",
      w.forward_backward_correlation, step_ms(*f.step_after), step_ms(w.original));
  f.fix = data
              ? "Balance sequences over microbatches and ranks by their cost (attention grows with "
                "the square of the length), not by their count: sort and pack by length."
              : "Look for pauses of the host: collect garbage at the same step on every rank "
                "(gc.freeze(), Megatron --manual-gc), and pin the ranks to their NUMA node.";
  f.where = {kind};
  const auto stage = std::max_element(
      w.stages.begin(), w.stages.end(),
      [](const WhatIfSlice& a, const WhatIfSlice& b) { return a.explains < b.explains; });
  if (stage != w.stages.end() && stage->explains >= 0.5)
    f.where.push_back(fmt::format("stage {}", stage->id));
  f.confidence = data ? Confidence::kHigh : Confidence::kMedium;
  f.evidence.push_back(
      slices_evidence(trace, w, "what each type of operation costs", "operation", w.types));
  f.evidence.push_back(slices_evidence(trace, w, "what each rank costs", "rank", w.workers));
  out.findings.push_back(std::move(f));
}

// A pipeline of p stages idles for (p - 1) passes of a chunk; twice the chunks halve them.
void bubble_finding(const OperationTrace& trace, const WhatIf& w, Analysis& out) {
  if (w.stage_count < 2) return;
  Seconds pass;
  for (size_t kind = 0; kind < w.kinds.size(); ++kind) {
    const StepRole role = step_role(w.kinds[kind]);
    if (role == StepRole::kForward || role == StepRole::kBackward) pass += w.ideal_of[kind];
  }
  const Seconds bubble = pass * static_cast<double>(w.stage_count - 1);
  const Seconds gain = bubble / 2;
  if (gain / w.original < kWorthFixing || bubble > w.ideal) return;
  Finding f;
  f.cause = Cause::kPipelineBubble;
  f.title = "The pipeline fills and drains with too few microbatches";
  price(f, w, gain);
  f.detail = fmt::format(
      "{} stages and {} microbatches a step leave every rank idle for {} of the {} of an even "
      "step. Twice the chunks of layers a stage halve that.",
      w.stage_count, w.microbatches, step_ms(bubble), step_ms(w.ideal));
  f.fix =
      "Interleave: Megatron --num-layers-per-virtual-pipeline-stage with half the layers of a "
      "stage; or more, smaller microbatches; or fewer stages.";
  f.where = {"every stage"};
  f.confidence = Confidence::kMedium;
  Evidence e;
  e.title = "fill and drain";
  e.file = sanitize(trace.file);
  e.columns = {"stages", "microbatches", "forward and backward of one", "idle a step"};
  e.rows.push_back({fmt::format("{}", w.stage_count), fmt::format("{}", w.microbatches),
                    step_ms(pass), step_ms(bubble)});
  f.evidence.push_back(std::move(e));
  out.findings.push_back(std::move(f));
}

}  // namespace

Analysis diagnose_operations(const OperationTrace& trace, const WhatIf& w) {
  Analysis out;
  if (!w.usable) {
    out.open.push_back({fmt::format("{}: no step could be replayed", sanitize(trace.file)),
                        "a table with whole steps of at least one rank"});
    return out;
  }
  out.notes.push_back(
      fmt::format("replay of {} steps of {} ranks: {} a step, {} if all work were evenly spread: "
                  "slowdown {:.4f}",
                  w.steps.size(), w.rank_count, step_ms(w.original), step_ms(w.ideal), w.slowdown));
  out.notes.push_back(
      fmt::format("of the slowdown, stages differ: {}, ranks differ: {}, microbatches differ: {}",
                  step_ms(w.split.stages), step_ms(w.split.ranks), step_ms(w.split.variation)));
  if (w.unmatched > 0)
    out.notes.push_back(fmt::format(
        "{} transfers have one end only: ranks are missing, and nothing is gained there",
        w.unmatched));
  if (w.unreplayable_steps > 0)
    out.notes.push_back(
        fmt::format("{} steps are left out: their order contradicts itself", w.unreplayable_steps));
  stage_finding(trace, w, out);
  rank_finding(trace, w, out);
  variation_finding(trace, w, out);
  bubble_finding(trace, w, out);
  std::stable_sort(out.findings.begin(), out.findings.end(),
                   [](const Finding& a, const Finding& b) { return a.gain > b.gain; });
  return out;
}

}  // namespace assay
