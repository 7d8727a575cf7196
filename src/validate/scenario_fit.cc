#include "validate/scenario_fit.h"

#include <algorithm>

#include "perf/memory.h"
#include "perf/predict.h"
#include "validate/cells.h"
#include "validate/text.h"

namespace assay {
namespace {

// A run that ran fitted. Where a stack that shards weights is run with its recompute not stated,
// and its default needs far more memory than there is, the run recomputed whole layers, the one
// switch that these frameworks have. Where that does not fit either the default stays, because then
// something else is not as described. So it does for 3D stacks, which have many other switches, for
// expert models, whose memory is the less certain. Where the micro-batch is a guess, not even the
// smallest fits.
// `kFar` is what the memory model misses by on runs whose recompute is stated.
constexpr double kFar = 1.25;

}  // namespace

void fit_recompute(const Run& run, Scenario& s) {
  if (s.recompute_stated || s.plan.recompute == Recompute::kFull || !run.measured_s()) return;
  if (run.ran_out_of_memory() || s.setting.workload.model.experts > 0) return;
  if (s.setting.stack.sharding == Sharding::k3d) return;
  Predictor predictor(s.setting);
  Plan plan = s.plan;
  if (predictor.impossible(plan)) return;
  Plan least = plan;
  if (!run.micro_batch) least.micro_batch = 1;
  if (predictor.impossible(least)) return;
  const MemoryUse first = predictor.memory(least);
  if (first.reserved.v <= kFar * first.capacity.v) return;
  plan.recompute = Recompute::kFull;
  if (predictor.impossible(plan)) return;
  const MemoryUse second = predictor.memory(plan);
  if (second.reserved.v > kFar * second.capacity.v) return;
  s.plan = plan;
  std::erase_if(s.assumed, [](const std::string& a) { return a.starts_with("recompute "); });
  s.assumed.push_back("recompute full: without it the run does not fit");
}

// Likewise for sharding: where a stack replicates weights unless asked otherwise, nothing is
// stated, and a whole copy needs far more memory than there is however much is recomputed, weights
// were sharded. Where nothing says how a framework shards, it replicates what fits.
void fit_sharding(const Run& run, bool unknown, Scenario& s) {
  if (stated_sharding(run).zero) return;
  if (s.plan.dp == 1 || s.setting.stack.sharding != Sharding::kFsdp) return;
  const bool shares = s.plan.zero > 0;
  if (shares && !unknown) return;
  const bool ran = run.measured_s() && !run.ran_out_of_memory() && run.micro_batch;
  if (!shares && (!ran || s.setting.workload.model.experts > 0)) return;
  Predictor predictor(s.setting);
  Plan plan = s.plan;
  plan.zero = 0;
  if (!s.recompute_stated) plan.recompute = Recompute::kFull;
  if (predictor.impossible(plan)) return;
  const MemoryUse whole = predictor.memory(plan);
  const bool fits = whole.reserved.v <= kFar * whole.capacity.v;
  if (fits == !shares) return;
  if (!fits) {
    plan.zero = 3;
    if (predictor.impossible(plan)) return;
    const MemoryUse sharded = predictor.memory(plan);
    if (sharded.reserved.v > kFar * sharded.capacity.v) return;
  }
  s.plan.zero = fits ? 0 : 3;
  if (fits) s.plan.sharding_group = 0;
  std::erase_if(s.assumed, [](const std::string& a) { return a.starts_with("ZeRO-"); });
  s.assumed.push_back(fits ? "ZeRO-0: a copy fits, and nothing says that it is sharded"
                           : "ZeRO-3: without it the run does not fit");
}

// Likewise for state: where whole copies of 32-bit weights with their optimizer are far more than
// there is, however much is recomputed, and 16-bit ones are not, the model was held in 16 bits.
void fit_state(const Run& run, Scenario& s) {
  Stack& stack = s.setting.stack;
  const bool whole = stack.sharding == Sharding::kFsdp && s.plan.zero == 0 &&
                     s.plan.offload_optimizer == 0 && s.plan.offload_parameters == 0;
  if (!whole || stack.weight_bytes != 4 || stack.cast_bytes > 0 ||
      single_precision(s.plan.precision) || s.setting.workload.task == Task::kLora)
    return;
  if (!run.measured_s() || run.ran_out_of_memory() || !run.micro_batch) return;
  const std::string told =
      clause_words(run.precision + " ; " + run.notes + " ; " + run.overlap_notes);
  if (says_any(told, {"fp32", "float32", "32 bit", "mixed"})) return;
  Plan plan = s.plan;
  if (!s.recompute_stated) plan.recompute = Recompute::kFull;
  const auto far = [&](const Setting& setting) {
    Predictor predictor(setting);
    if (predictor.impossible(plan)) return true;
    const MemoryUse use = predictor.memory(plan);
    return use.reserved.v > kFar * use.capacity.v;
  };
  if (!far(s.setting)) return;
  Setting narrow = s.setting;
  narrow.stack.weight_bytes = narrow.stack.gradient_bytes = 2;
  narrow.stack.optimizer_bytes = 4, narrow.stack.accumulate_bytes = 6;
  if (far(narrow)) return;
  s.setting.stack = narrow.stack;
  s.assumed.push_back("weights and state in 16 bits: in 32 the run is far from fitting");
}

}  // namespace assay
