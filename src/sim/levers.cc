// The changes an operator could make to a run, one at a time.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/closed_form.h"
#include "sim/many.h"

namespace assay {
namespace {

// What inspection of nodes instead of a collective's time-out gives: ByteRobust Table 3, 2 to 60 s.
constexpr Seconds kInspection{10};
// Cold restart against warm standby: FT-HSDP at 98,304 GPUs 900 s and 600 s; ByteRobust 10.87 times
// for the whole recovery. The cautious end.
constexpr double kStandbyShare = 0.33;
// P99 of what fails within a repair.
constexpr double kSpareQuantile = 0.99;

std::string duration(Seconds s) {
  if (s.v < 0.1) return fmt::format("{:.2g} ms", s.v * 1e3);
  if (s.v < 120) return fmt::format("{:.3g} s", s.v);
  if (s.v < 2 * kSecondsPerHour) return fmt::format("{:.3g} min", s.v / 60);
  return fmt::format("{:.3g} h", s.v / kSecondsPerHour);
}

class Levers {
 public:
  explicit Levers(const RunSpec& base) : base_(base) {}

  template <class Change>
  void add(std::string name, std::string change, Change&& apply) {
    Lever lever{std::move(name), std::move(change), base_};
    apply(lever.spec);
    if (check(lever.spec).empty()) list.push_back(std::move(lever));
  }

  std::vector<Lever> list;

 private:
  const RunSpec& base_;
};

// Failures a day that take a node out.
double replacements_per_day(const RunSpec& s) {
  double rate = 0;
  for (const FailureProcess& f : s.failures) {
    if (f.extent == Extent::kNode) rate += f.per_gpu_hour * f.replaced;
  }
  return rate * static_cast<double>(s.gpus) * 24;
}

void add_recovery(const RunSpec& s, Levers& levers) {
  const double within = replacements_per_day(s) * s.repair.mean.v / kSecondsPerDay;
  const int64_t spares = poisson_quantile(within, kSpareQuantile);
  if (spares > s.spares.nodes) {
    levers.add("spares", fmt::format("{} -> {} nodes", s.spares.nodes, spares),
               [&](RunSpec& c) { c.spares.nodes = spares; });
  } else if (s.spares.nodes > std::max<int64_t>(1, 2 * spares)) {
    levers.add("fewer spares", fmt::format("{} -> {} nodes", s.spares.nodes, spares),
               [&](RunSpec& c) { c.spares.nodes = spares; });
  }
  Seconds slowest(0);
  for (const FailureProcess& f : s.failures) slowest = std::max(slowest, f.detection);
  if (slowest > kInspection) {
    levers.add("detection", fmt::format("up to {} -> {}", duration(slowest), duration(kInspection)),
               [](RunSpec& c) {
                 for (FailureProcess& f : c.failures)
                   f.detection = std::min(f.detection, kInspection);
               });
  }
  if (s.recovery.policy == RecoveryPolicy::kRequeue) {
    levers.add("warm standby", "requeue -> warm standby", [](RunSpec& c) {
      c.recovery.policy = RecoveryPolicy::kWarmStandby;
      c.recovery.standby_share = std::min(c.recovery.standby_share, kStandbyShare);
    });
  }
  const Seconds init = s.recovery.init_base + s.recovery.init_per_gpu * static_cast<double>(s.gpus);
  if (init.v > 0) {
    levers.add("initialisation", fmt::format("{} -> {}", duration(init), duration(init / 2)),
               [](RunSpec& c) {
                 c.recovery.init_base /= 2;
                 c.recovery.init_per_gpu /= 2;
               });
  }
}

void add_checkpoints(const RunSpec& s, Levers& levers) {
  if (s.checkpoints.empty()) return;
  const Simulator now(s);
  RunSpec best = s;
  for (CheckpointTier& t : best.checkpoints) t.rule = IntervalRule::kOptimal;
  const Simulator optimal(best);
  const double ratio = optimal.intervals().back() / now.intervals().back();
  if (std::isfinite(optimal.mtbf().v) && std::abs(std::log(ratio)) > 0.1) {
    levers.add("checkpoint interval",
               fmt::format("{} -> {}", duration(now.intervals().back()),
                           duration(optimal.intervals().back())),
               [&](RunSpec& c) { c.checkpoints = best.checkpoints; });
  }
  const CheckpointTier& last = s.checkpoints.back();
  if (last.stall.v > 1) {
    levers.add("asynchronous save", fmt::format("stall {} -> 1 s", duration(last.stall)),
               [](RunSpec& c) {
                 CheckpointTier& t = c.checkpoints.back();
                 t.persist += t.stall - Seconds(1);
                 t.stall = Seconds(1);
               });
  }
  if (last.restore.v > 10) {
    levers.add("storage bandwidth", "restore and persist in half the time", [](RunSpec& c) {
      c.checkpoints.back().restore /= 2;
      c.checkpoints.back().persist /= 2;
    });
  }
  // What it costs follows from sizes and ports; where they are not known, nothing is promised.
  const PeerCopy& p = s.peer;
  const bool known = p.part.v > 0 && p.host_copy.v > 0 && p.port.v > 0;
  if (s.checkpoints.size() == 1 && s.gpus > s.gpus_per_node && last.survives > Extent::kNode &&
      known) {
    const CheckpointTier peer = peer_tier(p, kPeerInterval);
    levers.add("peer-memory tier",
               fmt::format("none -> every 30 s, stall {}", duration(peer.stall)),
               [&](RunSpec& c) { c.checkpoints.insert(c.checkpoints.begin(), peer); });
  }
}

void add_slowness(const RunSpec& s, Levers& levers) {
  const Stragglers& g = s.stragglers;
  if (g.slow_nodes > 0 && g.slow_by > 0) {
    levers.add("no slow nodes", fmt::format("{:.2g} % of nodes -> none", 100 * g.slow_nodes),
               [](RunSpec& c) { c.stragglers.slow_nodes = 0; });
  }
  if (g.jitter > 0) {
    levers.add("jitter", fmt::format("{:.2g} % -> {:.2g} %", 100 * g.jitter, 50 * g.jitter),
               [](RunSpec& c) { c.stragglers.jitter /= 2; });
  }
  if (s.data.latency_median.v <= 0 || Simulator(s).data_excess() - s.data.starved < 1e-4) return;
  levers.add("prefetch", fmt::format("{} -> {} batches", s.data.prefetch, s.data.prefetch * 4),
             [](RunSpec& c) { c.data.prefetch *= 4; });
  if (s.data.hedges == 0) {
    levers.add("hedged reads", "none -> 1, on another path", [](RunSpec& c) { c.data.hedges = 1; });
  }
}

}  // namespace

std::vector<Lever> standard_levers(const RunSpec& spec) {
  Levers levers(spec);
  add_recovery(spec, levers);
  add_checkpoints(spec, levers);
  add_slowness(spec, levers);
  return std::move(levers.list);
}

}  // namespace assay
