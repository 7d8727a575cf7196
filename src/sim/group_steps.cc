#include "sim/group_steps.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace assay {
namespace {

// Sizes between are interpolated.
constexpr int64_t kSizesMost = 32;

// Step time of `dp` ranks and the sequences in one; nothing where it is impossible.
struct Size {
  double step = 0;
  int64_t batch = 0;
};

Size predicted(const Setting& whole, Plan plan, int64_t dp, int64_t dp_whole, ElasticBatch policy) {
  Setting s = whole;
  s.accelerators = plan.tp * plan.pp * plan.cp * dp;
  plan.dp = 0;
  const int64_t each = std::max<int64_t>(1, plan.micro_batch) * dp;
  const int64_t batch = whole.workload.global_batch;
  s.workload.global_batch =
      policy == ElasticBatch::kKeep ? (batch + each - 1) / each * each : batch / dp_whole * dp;
  Predictor predictor(s);
  // Ranks that are left need not be whole sharding groups.
  Plan whole_copies = plan;
  whole_copies.sharding_group = 0;
  if (predictor.impossible(whole_copies)) return {};
  return {predictor.predict(plan).step.v, s.workload.global_batch};
}

}  // namespace

int64_t group_accelerators(const Plan& p) {
  const int64_t experts = p.ep * std::max<int64_t>(1, p.etp);
  return p.pp * std::lcm(p.tp * p.cp, p.ep > 1 ? experts : 1);
}

int64_t replica_nodes(const Plan& p, int64_t accelerators_per_node) {
  return std::lcm(group_accelerators(p), accelerators_per_node) / accelerators_per_node;
}

Plan elastic_plan(const Plan& plan, int64_t dp, int64_t replicas) {
  Plan p = plan;
  const int64_t ranks = dp * p.cp;
  if (p.zero > 0 && p.sharding_group == 0 && replicas > 0) {
    p.sharding_group = std::max<int64_t>(1, ranks / replicas);  // of the smallest replica
  }
  return p;
}

std::vector<GroupPoint> group_steps(const Setting& whole, const Plan& plan, int64_t dp,
                                    int64_t least, double stride, ElasticBatch policy) {
  std::vector<GroupPoint> points;
  const Size all = predicted(whole, plan, dp, dp, policy);
  if (all.step <= 0 || dp < 2) return points;
  const double count = std::floor(static_cast<double>(dp - std::max<int64_t>(1, least)) / stride);
  const double every = stride * std::max(1.0, std::ceil((count + 1) / kSizesMost));
  for (double away = std::floor(count * stride / every) * every; away > 0.5; away -= every) {
    const int64_t size = dp - std::llround(away);
    if (size < 1) continue;
    const Size s = predicted(whole, plan, size, dp, policy);
    if (s.step <= 0) continue;
    const double share = static_cast<double>(size) / static_cast<double>(dp);
    // With `keep` a step has the same tokens whatever the size, else as many as there are ranks.
    const double tokens = policy == ElasticBatch::kKeep ? 1 : share;
    points.push_back({share, s.step / all.step * share / tokens});
  }
  points.push_back({1, 1});
  return points;
}

}  // namespace assay
