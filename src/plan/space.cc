#include "plan/space.h"

#include <algorithm>

#include "perf/memory.h"
#include "plan/cost.h"
#include "world/model_size.h"

namespace assay {
namespace {

constexpr int64_t kTensorMost = 64;            // the widest tensor parallelism anybody reports
constexpr int64_t kContextTokensLeast = 1024;  // below this, context parallel only adds latency
constexpr int kRecomputeSteps = 8;             // parts of the layers that full recompute may cover

void keep_at_most(std::vector<int64_t>& values, int64_t most) {
  std::erase_if(values, [most](int64_t v) { return v > most; });
}

}  // namespace

std::vector<int64_t> zero_stages(const Stack& stack) {
  switch (stack.sharding) {
    case Sharding::k3d:
      return {0, 1};
    case Sharding::kFsdp:
      return {0, 2, 3};  // replicas; gathered weights may be kept until the backward pass
    case Sharding::kZero:
      return {1, 2, 3};
    case Sharding::kJax:
      return {3};
  }
  return {};
}

bool part_of_a_layer(const Model& m, const Plan& p) {
  const double layers = static_cast<double>(layer_count(m)) / static_cast<double>(p.pp);
  // A recommendation model has none.
  return p.recompute == Recompute::kFull && layers > 0 && p.recompute_layers * layers < 1;
}

bool has_pipelines(const Stack& s) { return s.sharding == Sharding::k3d; }
bool has_tensor_parallel(const Stack& s) { return s.sharding != Sharding::kZero; }
std::vector<int64_t> divisors(int64_t n) {
  std::vector<int64_t> low, high;
  for (int64_t d = 1; d * d <= n; ++d) {
    if (n % d != 0) continue;
    low.push_back(d);
    if (d != n / d) high.push_back(n / d);
  }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

Space::Space(const Setting& setting, const Plan& base, std::set<std::string> stated)
    : setting_(setting),
      base_(base),
      stated_(std::move(stated)),
      accelerators_(accelerators_used(setting)),
      batch_(std::max<int64_t>(setting.workload.global_batch, 1)) {
  if (free("dp")) base_.dp = 0;
  fill_recompute();
}

void Space::fill_recompute() {
  const bool transformer = setting_.workload.model.kind == ModelKind::kTransformer;
  if (!free("recompute") || !transformer) {
    const Recompute kind = free("recompute") ? Recompute::kNone : base_.recompute;
    by_memory_ = {{kind, base_.recompute_layers}};
    return;
  }
  // So many layers run again, whole or in part, is what was asked for; none at all was not.
  if (!free("recompute_layers") && base_.recompute_layers > 0) {
    by_memory_ = {{Recompute::kFull, base_.recompute_layers}};
    others_ = {{Recompute::kSelective, base_.recompute_layers}};
    return;
  }
  for (int i = kRecomputeSteps; i >= 1; --i) {
    by_memory_.push_back({Recompute::kFull, static_cast<double>(i) / kRecomputeSteps});
  }
  by_memory_.push_back({Recompute::kNone, 1});
  others_ = {{Recompute::kSelective, 1}};
}

std::vector<int64_t> Space::axis(const char* key, int64_t stated,
                                 std::vector<int64_t> values) const {
  return free(key) ? values : std::vector<int64_t>{stated};
}

std::vector<int64_t> Space::tensor_axis() const {
  const Model& m = setting_.workload.model;
  std::vector<int64_t> values = divisors(accelerators_);
  keep_at_most(values,
               std::max(kTensorMost, std::min<int64_t>(setting_.cluster.scaleup_domain(), 256)));
  std::erase_if(values, [&m](int64_t tp) { return !splits_heads(m, tp); });
  if (!has_tensor_parallel(setting_.stack)) values = {1};
  return axis("tp", base_.tp, values);
}

std::vector<int64_t> Space::pipeline_axis(int64_t rest) const {
  const Model& m = setting_.workload.model;
  std::vector<int64_t> values = divisors(rest);
  keep_at_most(values, std::max<int64_t>(m.layers + m.encoder_layers, 1));
  if (!has_pipelines(setting_.stack) || m.kind != ModelKind::kTransformer) values = {1};
  return axis("pp", base_.pp, values);
}

std::vector<int64_t> Space::context_axis(int64_t rest) const {
  std::vector<int64_t> values = divisors(rest);
  keep_at_most(values, std::max<int64_t>(setting_.workload.seq / kContextTokensLeast, 1));
  std::erase_if(values,
                [this](int64_t cp) { return setting_.workload.seq % (2 * cp) != 0 && cp > 1; });
  if (setting_.workload.model.kind != ModelKind::kTransformer) values = {1};
  return axis("cp", base_.cp, values);
}

std::vector<int64_t> Space::expert_axis(int64_t ranks) const {
  std::vector<int64_t> values{1};
  if (setting_.workload.model.experts > 0) values = divisors(setting_.workload.model.experts);
  std::erase_if(values, [ranks](int64_t ep) { return ranks % ep != 0; });
  return axis("ep", base_.ep, values);
}

std::vector<Plan> Space::expert_plans(const Plan& plan, int64_t dp) const {
  std::vector<Plan> plans;
  for (int64_t ep : expert_axis(plan.tp * plan.cp * dp)) {
    std::vector<int64_t> inside{base_.etp};
    if (free("etp") && ep > 1 && plan.tp > 1) inside = {1, plan.tp};
    for (int64_t etp : inside) {
      Plan p = plan;
      p.ep = ep;
      p.etp = etp;
      plans.push_back(p);
    }
  }
  return plans;
}

std::vector<Plan> Space::pipeline_plans(const Plan& plan) const {
  const int64_t layers = setting_.workload.model.layers + setting_.workload.model.encoder_layers;
  std::vector<int64_t> chunks{1};
  if (plan.pp > 1) chunks = divisors((layers + plan.pp - 1) / plan.pp);
  std::vector<Plan> plans;
  for (int64_t vpp : axis("vpp", base_.vpp, chunks)) {
    Plan p = plan;
    p.vpp = vpp;
    const bool stated = !free("schedule");
    if (stated && (base_.schedule == Schedule::kInterleaved) != (vpp > 1) && free("vpp")) continue;
    if (!stated) p.schedule = vpp > 1 ? Schedule::kInterleaved : Schedule::kOneFOneB;
    plans.push_back(p);
    if (!stated && vpp == 1 && plan.pp > 1 &&
        (base_.schedule == Schedule::kZeroBubble || folded(base_.schedule))) {
      p.schedule = base_.schedule;
      plans.push_back(p);
    }
  }
  return plans;
}

std::vector<Plan> Space::sharding_plans(const Plan& plan, int64_t dp) const {
  std::vector<Plan> plans;
  for (int64_t zero : axis("zero", base_.zero, zero_stages(setting_.stack))) {
    std::vector<int64_t> groups{0};
    if (zero == 3 || (zero == 2 && setting_.stack.sharding == Sharding::kFsdp)) {
      const int64_t copies = dp * plan.cp;  // ranks that share the weights
      for (int64_t g : divisors(copies)) {
        const bool fills_node = g * plan.tp >= setting_.cluster.node.accelerators;
        if (g > 1 && g < copies && fills_node) groups.push_back(g);
      }
    }
    for (int64_t group : axis("sharding_group", base_.sharding_group, groups)) {
      for (int64_t sp : axis("sequence_parallel", base_.sequence_parallel ? 1 : 0,
                             plan.tp > 1 ? std::vector<int64_t>{1, 0} : std::vector<int64_t>{1})) {
        Plan p = plan;
        p.zero = zero;
        p.sharding_group = group;
        p.sequence_parallel = sp != 0;
        plans.push_back(p);
      }
    }
  }
  return plans;
}

std::vector<Shape> Space::shapes() const {
  std::vector<Shape> all;
  for (int64_t tp : tensor_axis()) {
    if (accelerators_ % tp != 0) continue;
    for (int64_t pp : pipeline_axis(accelerators_ / tp)) {
      if (accelerators_ % (tp * pp) != 0) continue;
      for (int64_t cp : context_axis(accelerators_ / (tp * pp))) {
        const int64_t dp = accelerators_ / (tp * pp * cp);
        if (dp * tp * pp * cp != accelerators_ || batch_ % dp != 0) continue;
        if (base_.dp > 0 && base_.dp != dp) continue;
        Plan plan = base_;
        plan.tp = tp;
        plan.pp = pp;
        plan.cp = cp;
        for (const Plan& e : expert_plans(plan, dp)) {
          for (const Plan& c : pipeline_plans(e)) {
            for (const Plan& s : sharding_plans(c, dp)) all.push_back({s, dp});
          }
        }
      }
    }
  }
  return all;
}

const std::vector<int64_t>& Space::micro_batches(int64_t dp) const {
  for (const auto& [known, values] : micro_batches_) {
    if (known == dp) return values;
  }
  std::vector<int64_t> values = divisors(batch_ / dp);
  micro_batches_.emplace_back(dp, axis("micro_batch", base_.micro_batch, values));
  return micro_batches_.back().second;
}

}  // namespace assay
