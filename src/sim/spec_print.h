// For tests: every number of a RunSpec as text, so that two specs can be compared.
#pragma once

#include <string>

#include <fmt/format.h>

#include "sim/run.h"

namespace assay {

class SpecPrinter {
 public:
  std::string text;

  template <class... T>
  void line(const T&... values) {
    (add(values), ...);
    text += '\n';
  }

 private:
  void add(const std::string& s) { text += s + ' '; }
  template <class T>
  void add(const T& value) {
    if constexpr (requires { value.v; }) {
      text += fmt::format("{} ", value.v);
    } else if constexpr (std::is_enum_v<T>) {
      text += fmt::format("{} ", static_cast<int>(value));
    } else {
      text += fmt::format("{} ", value);
    }
  }
};

inline std::string print(const RunSpec& s) {
  SpecPrinter p;
  p.line(s.gpus, s.gpus_per_node, s.period, s.target_tokens, s.step.step, s.step.tokens,
         s.step.fetched, s.step.clock_bound);
  for (const ClockPoint& c : s.step.by_clock) p.line(c.clock, c.factor);
  for (const GroupPoint& g : s.step.by_group) p.line(g.share, g.factor);
  for (const FailureProcess& f : s.failures) {
    p.line(f.name, f.per_gpu_hour, f.extent, f.detection, f.detection_sigma, f.replaced, f.shape,
           f.frailty);
  }
  for (const ShockProcess& h : s.shocks)
    p.line(h.name, h.nodes, h.per_year, h.duration_mean, h.duration_sigma, h.detection,
           h.takes_nodes, h.slow_by);
  p.line(s.corruption.per_gpu_hour, s.corruption.frailty, s.corruption.detection_median,
         s.corruption.detection_sigma, s.corruption.replayed);
  p.line(s.maintenance.every, s.maintenance.duration, s.infant.multiplier, s.infant.decay);
  p.line(s.memory.demand_median, s.memory.demand_sigma, s.memory.limit, s.memory.node);
  p.line(s.repair.median, s.repair.mean, s.spares.nodes, s.spares.prepulled);
  const Recovery& r = s.recovery;
  p.line(r.policy, r.requeue_wait, r.swap, r.allocation, r.init_base, r.init_per_gpu,
         r.standby_share, r.compile, r.warmup, r.replicas, r.replicas_least, r.leave_stall,
         r.rejoin_stall, r.whole_job, r.replica_nodes, r.heal);
  for (const CheckpointTier& t : s.checkpoints)
    p.line(t.name, t.survives, t.rule, t.interval, t.least, t.stall, t.persist, t.restore,
           t.starves);
  p.line(s.kept_checkpoints, s.peer.part, s.peer.host_copy, s.peer.port, s.peer.spread);
  const Stragglers& g = s.stragglers;
  p.line(g.jitter, g.ranks, g.slow_nodes, g.slow_by, g.fail_slow_per_node_day, g.fail_slow_least,
         g.fail_slow_most, g.fail_slow_by, g.slow_link_per_node_day, g.slow_link_mean,
         g.slow_link_by, g.evicted_after);
  const DataPath& d = s.data;
  p.line(d.latency_median, d.latency_p99, d.ranks, d.prefetch, d.hedges, d.hedge_quantile,
         d.hedge_same_path, d.cached, d.starved, d.demand);
  p.line(s.start.queue_median, s.start.queue_sigma, s.start.image, s.start.registry,
         s.start.node_pull, s.start.prepulled, s.start.kept);
  for (const RunHour& h : s.site.hours)
    p.line(h.thermal_clock, h.facility_clock, h.powered, h.outage);
  return p.text;
}

}  // namespace assay
