// The space of plans that a workload, a cluster and a stack allow, and a walk over all of it.
//
// What varies: tp, pp, vpp and schedule, cp, ep, etp, ZeRO stage, sharding group, sequence
// parallel, micro-batch, recompute (none, selective, full, full on a part of the layers). What the
// stack cannot do is left out: pipelines and ZeRO-0/1 belong to `3d` stacks; `fsdp` and `jax`
// stacks shard weights over all or a part of the data-parallel ranks; `zero` stacks try stages 1
// to 3. A zero-bubble schedule or a folded one is tried only where it is the stack's own. Keys that
// a person stated stay as stated; precision, overlap and compilation stay as the stack (or the
// person) has them.
//
// Bounds, so that the space is finite and sensible: tp divides the heads and is at most 64 or the
// scale-up domain; context parallel leaves at least 1,024 tokens on a rank; pipelines are not
// deeper than the model; micro-batches divide what one data-parallel rank works through in a step.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "perf/predict.h"

namespace assay {

struct RecomputeChoice {
  Recompute kind = Recompute::kNone;
  double layers = 1;
};

// Whether the plan runs whole layers again of a stage that has too few for its share: no part of a
// layer runs again, and the working memory of a whole one would be counted.
bool part_of_a_layer(const Model&, const Plan&);

// One point of everything but micro-batch and recompute, in `plan`; `dp` is what is left.
struct Shape {
  Plan plan;
  int64_t dp = 1;
};

// The ZeRO stages that a stack's programs have, which a search tries.
std::vector<int64_t> zero_stages(const Stack&);

class Space {
 public:
  // `base` holds stated values and defaults; `stated` the keys of `base` that must stay.
  Space(const Setting&, const Plan& base, std::set<std::string> stated);

  // Every shape, small degrees first; always the same order. Some thousands at most.
  std::vector<Shape> shapes() const;

  // Micro-batches of a rank that works through `batch / dp` sequences, ascending.
  const std::vector<int64_t>& micro_batches(int64_t dp) const;

  // Full recompute on all layers first, then on fewer, then none: memory grows along this list.
  const std::vector<RecomputeChoice>& by_memory() const { return by_memory_; }
  // Choices beside that order (selective).
  const std::vector<RecomputeChoice>& others() const { return others_; }

  int64_t batch() const { return batch_; }

 private:
  bool free(const char* key) const { return stated_.count(key) == 0; }
  std::vector<int64_t> axis(const char* key, int64_t stated, std::vector<int64_t> values) const;
  void fill_recompute();
  std::vector<int64_t> tensor_axis() const;
  std::vector<int64_t> pipeline_axis(int64_t rest) const;
  std::vector<int64_t> context_axis(int64_t rest) const;
  std::vector<int64_t> expert_axis(int64_t ranks) const;
  std::vector<Plan> expert_plans(const Plan&, int64_t dp) const;
  std::vector<Plan> pipeline_plans(const Plan&) const;
  std::vector<Plan> sharding_plans(const Plan&, int64_t dp) const;

  const Setting& setting_;
  Plan base_;
  std::set<std::string> stated_;
  int64_t accelerators_;
  int64_t batch_;
  std::vector<RecomputeChoice> by_memory_, others_;
  mutable std::vector<std::pair<int64_t, std::vector<int64_t>>> micro_batches_;  // by dp, a cache
};

// What a stack can do, by how it shards.
bool has_pipelines(const Stack&);
bool has_tensor_parallel(const Stack&);

// All divisors of n, ascending. Empty for n < 1.
std::vector<int64_t> divisors(int64_t n);

}  // namespace assay
