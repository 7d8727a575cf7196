#include "sim/prepare.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/assert.h"
#include "sim/closed_form.h"
#include "sim/data_stall.h"

namespace assay {
namespace {

// Probability that a day's peak of host memory is above what it meets first.
FailureProcess memory_process(const HostMemory& m, int64_t gpus_per_node) {
  FailureProcess p;
  p.name = "out of memory";
  const bool contained = m.limit.v > 0 && m.limit <= m.node;
  const double wall = contained ? m.limit.v : m.node.v;
  const double score = std::log(wall / m.demand_median.v) / std::max(1e-9, m.demand_sigma);
  p.per_gpu_hour = normal_cdf(-score) / 24 / static_cast<double>(gpus_per_node);
  // A killed container is a program's death; a node without memory dies and reboots.
  p.extent = contained ? Extent::kProcess : Extent::kNode;
  p.detection = contained ? m.kill_detection : m.crash_detection;
  p.replaced = 0;
  return p;
}

}  // namespace

CheckpointTier peer_tier(const PeerCopy& p, Seconds interval) {
  ASSERT(p.part.v > 0 && p.host_copy.v > 0 && p.port.v > 0);
  CheckpointTier t;
  t.name = "peer memory";
  t.survives = Extent::kNode;
  t.interval = interval;
  t.stall = p.part / p.host_copy;
  t.persist = p.part / p.port;
  t.restore = p.part / p.port + p.part / p.host_copy + p.spread;
  return t;
}

Frailty::Frailty(double shape) : table_(shape) {
  // The table rises with the quality, so a cell's upper end bounds it; the margin covers rounding.
  constexpr double kMargin = 1 + 1e-9, kQualityMost = 1 - 0x1p-53;
  for (size_t i = 1; i <= kCells; ++i) {
    const double upper = static_cast<double>(i) / kCells;
    most.push_back(kMargin * factor(std::min(upper, kQualityMost)));
  }
}

double Frailty::factor(double quality) const { return std::max(table_(quality), 1e-9); }

PreparedRun::PreparedRun(RunSpec s) : spec(std::move(s)) {
  node_gpus = std::min(spec.gpus, spec.gpus_per_node);
  nodes = spec.gpus / node_gpus;
  machines = nodes + spec.spares.nodes;
  horizon = to_ns(spec.period);
  if (spec.step.ledger.paid().v <= 0) spec.step.ledger[Account::kUseful] = spec.step.step;
  if (spec.target_tokens > 0 && spec.step.tokens > 0) {
    target_work = spec.target_tokens / spec.step.tokens * spec.step.step.v * kNanosecondsPerSecond;
  }
  const Repair& r = spec.repair;
  if (r.median.v > 0 && r.mean > r.median)
    repair_sigma = std::sqrt(2 * std::log(r.mean / r.median));
  const double all = static_cast<double>(spec.gpus);
  const Stragglers& slow = spec.stragglers;
  if (slow.jitter > 0) {
    jitter_excess =
        slow.jitter * expected_max_normal(slow.ranks > 0 ? static_cast<double>(slow.ranks) : all);
  }
  const double ranks = spec.data.ranks > 0 ? static_cast<double>(spec.data.ranks) : all;
  const Seconds fetched = spec.step.fetched.v > 0 ? spec.step.fetched : spec.step.step;
  // A store without bandwidth to spare paces the steps, and latency hides behind the longer ones.
  const Seconds paced = fetched * (1 + spec.data.starved);
  const Seconds step = spec.step.step;
  const DataStall stall = data_stall(spec.data, ranks, paced, LateFetches::rare_rate(step));
  data_usual = stall.usual * (paced / step) + spec.data.starved;
  data_excess = stall.rare * (paced / step) + data_usual;
  late.emplace(spec.data, ranks, step, paced, stall.usual);
  prepare_failures();
  prepare_schedule();
}

void PreparedRun::prepare_failures() {
  std::vector<FailureProcess> all = spec.failures;
  if (spec.memory.demand_median.v > 0) all.push_back(memory_process(spec.memory, node_gpus));
  for (const FailureProcess& f : all) {
    PreparedProcess p;
    p.spec = f;
    p.id = cause_id(f.name);
    p.whole_job = f.extent == Extent::kProcess;
    const int64_t gpus = p.whole_job ? spec.gpus : node_gpus;
    p.per_second = f.per_gpu_hour * static_cast<double>(gpus) / kSecondsPerHour;
    if (f.frailty > 0 && !p.whole_job) {
      p.frailty = &frailties.try_emplace(f.frailty, f.frailty).first->second;
    }
    processes.push_back(p);
    cause_names.push_back(f.name);
  }
  if (spec.corruption.frailty > 0) {
    frailties.try_emplace(spec.corruption.frailty, spec.corruption.frailty);
  }
  for (const ShockProcess& s : spec.shocks) cause_names.push_back(s.name);
  cause_corruption = cause_names.size();
  cause_maintenance = cause_corruption + 1;
  cause_site = cause_corruption + 2;
  cause_names.insert(cause_names.end(), {"silent corruption", std::string(kPlannedStop), "site"});
  const double rate = rate_upto(Extent::kSite) + spec.corruption.per_gpu_hour *
                                                     static_cast<double>(spec.gpus) /
                                                     kSecondsPerHour;
  mtbf = Seconds(rate > 0 ? 1 / rate : std::numeric_limits<double>::infinity());
}

double PreparedRun::corruption_rate() const {
  return spec.corruption.per_gpu_hour * static_cast<double>(spec.gpus) / kSecondsPerHour;
}

double PreparedRun::rate_upto(Extent upto) const {
  double rate = 0;
  for (const PreparedProcess& p : processes) {
    const double machines_of = p.whole_job ? 1 : static_cast<double>(nodes);
    if (p.spec.extent <= upto) rate += p.per_second * machines_of;
  }
  for (const ShockProcess& s : spec.shocks) {
    const Extent extent = !s.takes_nodes ? Extent::kProcess
                          : s.nodes > 0  ? Extent::kDomain
                                         : Extent::kSite;
    const double domains =
        s.nodes > 0 ? std::ceil(static_cast<double>(nodes) / static_cast<double>(s.nodes)) : 1;
    if (extent <= upto) rate += domains * s.per_year / kSecondsPerYear;
  }
  return rate;
}

double PreparedRun::rollbacks_upto(Extent upto) const {
  if (spec.recovery.policy != RecoveryPolicy::kElastic) return rate_upto(upto);
  // Replicas that live know the state; only what takes all of them down goes back to a save.
  const Extent within = std::min(upto, Extent::kDomain);
  const double all = rate_upto(within) * spec.recovery.whole_job;
  return all + (upto > within ? rate_upto(upto) - rate_upto(within) : 0);
}

std::optional<CheckpointCosts> PreparedRun::tier_costs(size_t index) const {
  const CheckpointTier& t = spec.checkpoints[index];
  // The failures that this tier and no more frequent one survives.
  double rate = rollbacks_upto(t.survives);
  if (index > 0) rate -= rollbacks_upto(spec.checkpoints[index - 1].survives);
  rate = std::max(0.0, rate);
  // Only the last tier reaches back before a corruption.
  if (index + 1 == spec.checkpoints.size()) rate += corruption_rate();
  if (rate <= 0) return {};
  const Seconds restart = restart_time(spec.gpus, static_cast<int>(index), true);
  return CheckpointCosts{Seconds(1 / rate), std::max(t.stall, Seconds(1e-6)), spec.recovery.swap,
                         restart};
}

CheckpointTier PreparedRun::tier_with_interval(size_t index, Seconds before) const {
  CheckpointTier t = spec.checkpoints[index];
  if (t.rule != IntervalRule::kFixed) {
    // Without failures one save is one too many.
    const std::optional<CheckpointCosts> costs = tier_costs(index);
    Seconds period(std::numeric_limits<double>::infinity());
    if (costs && t.rule == IntervalRule::kYoung) period = young_period(*costs);
    if (costs && t.rule == IntervalRule::kDaly) period = daly_period(*costs);
    if (costs && t.rule == IntervalRule::kOptimal) period = optimal_period(*costs);
    t.interval = std::max(period - t.stall, t.least);
  }
  t.interval = std::max({t.interval, t.persist, before, spec.step.step});
  return t;
}

void PreparedRun::prepare_schedule() {
  Seconds before(0);
  for (size_t i = 0; i < spec.checkpoints.size(); ++i) {
    const CheckpointTier t = tier_with_interval(i, before);
    SaveTier save;
    save.stall = to_ns(t.stall);
    save.survives = t.survives;
    if (i == 0) {
      // Nothing saves beyond the run's end; a finite interval keeps the arithmetic finite.
      before = std::min(t.interval, spec.period * 2);
      schedule.interval = before.v * kNanosecondsPerSecond;
    } else {
      const double times = std::min(1e9, std::ceil(t.interval / before * (1 - 1e-12)));
      save.every = schedule.tiers.back().every * std::max<int64_t>(1, static_cast<int64_t>(times));
      before = Seconds(schedule.interval / kNanosecondsPerSecond * static_cast<double>(save.every));
    }
    intervals.push_back(before);
    const Starvation starvation = save_starvation(spec.data, t, before, spec.step.step);
    save.starve = to_ns(std::min(starvation.wait, t.persist));
    save.starve_after = starvation.after.v * kNanosecondsPerSecond;
    save.persist = to_ns(t.persist);
    schedule.tiers.push_back(save);
  }
}

Seconds PreparedRun::restart_time(int64_t gpus, int tier, bool cold) const {
  const Recovery& r = spec.recovery;
  Seconds init = r.init_base + r.init_per_gpu * static_cast<double>(gpus);
  if (!cold) init *= r.standby_share;
  Seconds total = init + r.compile + r.warmup;
  if (cold) total += r.allocation;
  if (tier >= 0 && static_cast<size_t>(tier) < spec.checkpoints.size()) {
    total += spec.checkpoints[static_cast<size_t>(tier)].restore;
  }
  return total;
}

Seconds PreparedRun::image_pull(double pulling) const {
  const StartUp& s = spec.start;
  if (s.image.v <= 0 || pulling <= 0) return Seconds(0);
  const double each = s.node_pull.v > 0 ? s.image.v / s.node_pull.v : 0;
  const double shared = s.registry.v > 0 ? s.image.v * pulling / s.registry.v : 0;
  return Seconds(std::max(each, shared));
}

double PreparedRun::group_factor(double share) const {
  const std::vector<GroupPoint>& points = spec.step.by_group;
  if (points.empty()) return 1;
  if (share <= points.front().share) return points.front().factor;
  for (size_t i = 1; i < points.size(); ++i) {
    const GroupPoint &a = points[i - 1], &b = points[i];
    if (share > b.share) continue;
    return a.factor + (b.factor - a.factor) * (share - a.share) / (b.share - a.share);
  }
  return points.back().factor;
}

double PreparedRun::clock_factor(double clock) const {
  const std::vector<ClockPoint>& points = spec.step.by_clock;
  if (points.empty()) return 1 + spec.step.clock_bound * (1 / clock - 1);
  if (clock <= points.front().clock) {
    return points.front().factor * points.front().clock / clock;
  }
  for (size_t i = 1; i < points.size(); ++i) {
    const ClockPoint &a = points[i - 1], &b = points[i];
    if (clock > b.clock) continue;
    return a.factor + (b.factor - a.factor) * (clock - a.clock) / (b.clock - a.clock);
  }
  return points.back().factor;
}

}  // namespace assay
