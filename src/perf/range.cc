// The half-width of a 90 % range, on a log scale, is put together from what made held-out runs
// miss:
//
//     q^2 = stack^2 + architecture^2 + experts^2 + (host x launch share)^2
//           + (offload x share of the step in which the host optimizes)^2
//           + (share of the step lost to jitter and input)^2
//
// and laid about the median with a lean to the slow side.
//
// `Stack::spread` and `Kernels::spread` are the 90 % quantiles of leave-one-source-out errors
// (tools/calibrate --loo) where there are runs, and an honest guess, marked a, where there are
// none. Expert models scatter more than their stack, since routing, dispatch and release matter; so
// do steps in which the device waits for the host. Ranges are not widened to look safe: `assay
// validate` prints how many runs they hold.
#include "perf/range.h"

#include <algorithm>
#include <cmath>

#include "perf/rank.h"
#include "world/model_size.h"

namespace assay {
namespace {

// Quantile 0.9 of held-out errors of expert models is 0.27 (75 runs), of dense ones 0.15 (720
// runs).
constexpr double kExperts = 0.24;
// Held-out launch-bound runs miss by the host's speed, which no description states.
constexpr double kHost = 0.20;
// An optimizer on the host takes 1 to 24 ns per parameter and rank, by processor, threads and
// launcher (docs/models/step.md); the middle is 4.
constexpr double kOffload = 1.5;
constexpr double kWidest = 0.60;
// Runs lose time for reasons that no description holds, and few win any: of sources that were never
// fitted 19 % of the runs were slower than a symmetric range and 3 % faster (data/blind_runs.csv,
// 251 sources). So the slow end is farther, by as much as the fast one is nearer.
constexpr double kLeaning = 0.2;
// Nothing was measured out there, so this cannot be fitted: half as wide again, assumed.
constexpr double kOutside = 1.5;

// The largest of each that a usable run of data/training_runs.csv used.
constexpr int64_t kRanksSeen = 11616, kTensorSeen = 32, kPipelineSeen = 48, kExpertSeen = 64;
constexpr int64_t kContextSeen = 8, kMicroBatchSeen = 64, kChunksSeen = 24;
constexpr int64_t kSequenceSeen = 262144;

// Parts of a model that no published run with readable settings had: their kernels are assumed.
bool never_ran(const Model& m) {
  const MixerKind kind = m.mixer.kind;
  const bool mixer = kind == MixerKind::kGatedLinear || kind == MixerKind::kWkv7 ||
                     kind == MixerKind::kRgLru || kind == MixerKind::kWkv;
  return mixer || m.layer_embedding > 0 || m.residual_streams > 1 || m.merged_cross;
}

bool outside(const Setting& s, const Layout& l) {
  return l.ranks > kRanksSeen || l.tp > kTensorSeen || l.pp * l.ends > kPipelineSeen ||
         l.ep > kExpertSeen || l.cp > kContextSeen || l.micro_batch > kMicroBatchSeen ||
         l.vpp > kChunksSeen || s.workload.seq > kSequenceSeen ||
         s.workload.model.kind != ModelKind::kTransformer || never_ran(s.workload.model);
}

}  // namespace

// Whether graphs are captured, no description says for sure, and the same recipes take from 2 to
// 6.5 ms a layer and pass.
Seconds expert_host_time(const Setting& s, const Plan& p, const Layout& l) {
  const Model& m = s.workload.model;
  if (m.experts == 0 || p.cuda_graphs) return Seconds(0);
  const Seconds each = m.kv_lora_rank > 0 ? s.stack.expert_host_latent : s.stack.expert_host;
  const double layers = real(moe_layers(m)) / real(l.pp);
  const double passes = 2.0 * real(l.microbatches) * layers;
  return each * (passes / s.cluster.node.host_speed);
}

Range prediction_range(const Setting& s, const Plan& p, const Layout& l, const Ledger& g) {
  const double experts = s.workload.model.experts > 0 ? kExperts : 0;
  const Seconds paid = g.paid();
  const double host = kHost * (g[Account::kLaunch] / paid);
  const double offload = kOffload * p.offload_optimizer * (g[Account::kOptimizer] / paid);
  const double stack = s.stack.spread, kernels = s.kernels.spread;
  // Ranks that wait for the slowest, and for input, wait between nothing and twice the mean.
  const double stragglers = g[Account::kStraggler] / paid, storage = g[Account::kStorage] / paid;
  const double own = std::sqrt(stack * stack + kernels * kernels + experts * experts + host * host +
                               offload * offload + stragglers * stragglers);
  double q = std::hypot(own, std::sqrt(storage * (storage + 2 * stragglers)));
  Range r;
  r.extrapolated = outside(s, l);
  const double wider = r.extrapolated ? kOutside : 1;
  r.spread = std::min(own * wider, kWidest);
  q = std::min(q * wider, kWidest);
  r.low = std::exp(-(1 - kLeaning) * q);
  const double slow = std::exp((1 + kLeaning) * q);
  const double waiting = expert_host_time(s, p, l) / paid;
  r.experts_wait = waiting > slow;
  r.high = std::max(slow, waiting);
  return r;
}

double best_measured(const Kernels& k, Precision p) {
  return quantised(p) ? k.best_share_narrow : k.best_share;
}

}  // namespace assay
