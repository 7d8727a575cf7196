// What a RunSpec may not be. Every rule says how to mend it.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/kernel.h"
#include "sim/run.h"

namespace assay {
namespace {

constexpr double kGpusMost = 1e8;
constexpr double kPeriodMost = 100 * 365.25 * kSecondsPerDay;
constexpr double kRateMost = 10;  // per accelerator and hour; a run of nothing but failures
// Expected arrivals of one run: some seconds, and some thousand times what is published.
constexpr double kEventsMost = 2e6;
// Arrivals times the machines that are slow at once, each of which is looked at: some seconds.
constexpr double kLooksMost = 2e9;
constexpr size_t kHoursMost = 1000000;

class Checker {
 public:
  std::vector<SpecProblem> problems;

  void add(std::string path, std::string message, std::string fix) {
    problems.push_back({std::move(path), std::move(message), std::move(fix)});
  }
  // Also catches NaN.
  void within(const std::string& path, double value, double least, double most) {
    if (value >= least && value <= most) return;
    add(path, fmt::format("{:.6g} is outside {} to {}", value, least, most),
        value < least ? "raise it" : "lower it");
  }
  void time(const std::string& path, Seconds value) {
    if (value.v >= 0 && value.v <= kPeriodMost) return;
    add(path, fmt::format("{:.3g} s is outside 0 to 100 years", value.v),
        value.v < 0 ? "raise it" : "lower it");
  }
  void share(const std::string& path, double value) { within(path, value, 0, 1); }
};

// One mistake in the exposure makes every rate impossible: it is said once.
void check_rates(const RunSpec& s, Checker& c) {
  const auto wrong = [](const FailureProcess& f) {
    return !(f.per_gpu_hour >= 0 && f.per_gpu_hour <= kRateMost);
  };
  const auto first = std::find_if(s.failures.begin(), s.failures.end(), wrong);
  if (first == s.failures.end()) return;
  const auto more = std::count_if(first + 1, s.failures.end(), wrong);
  std::string message =
      fmt::format("{:.3g} is outside 0 to {:.3g} a GPU-hour", first->per_gpu_hour, kRateMost);
  if (more > 0) message += fmt::format(", and so are {} others", more);
  c.add(fmt::format("failures[{}].per_gpu_hour", first - s.failures.begin()), message,
        "it is `count` over `exposure_gpu_hours`: correct either");
}

void check_failures(const RunSpec& s, Checker& c) {
  check_rates(s, c);
  for (size_t i = 0; i < s.failures.size(); ++i) {
    const FailureProcess& f = s.failures[i];
    const std::string path = fmt::format("failures[{}]", i);
    if (f.name.empty()) c.add(path + ".name", "a failure has no name", "name it");
    for (size_t j = 0; j < i; ++j) {
      if (s.failures[j].name == f.name) {
        c.add(path + ".name", fmt::format("`{}` is there twice", f.name), "add their rates");
      }
    }
    c.time(path + ".detection", f.detection);
    c.within(path + ".detection_sigma", f.detection_sigma, 0, 10);
    c.share(path + ".replaced", f.replaced);
    c.within(path + ".shape", f.shape, 0.1, 10);
    if (f.frailty != 0) c.within(path + ".frailty", f.frailty, 0.01, 1e6);
    if (f.extent > Extent::kNode) {
      c.add(path + ".extent", "a failure of several nodes is a shock", "move it to `shocks`");
    }
  }
  for (size_t i = 0; i < s.shocks.size(); ++i) {
    const ShockProcess& h = s.shocks[i];
    const std::string path = fmt::format("shocks[{}]", i);
    if (h.name.empty()) c.add(path + ".name", "a shock has no name", "name it");
    c.within(path + ".nodes", static_cast<double>(h.nodes), 0, kGpusMost);
    c.within(path + ".per_year", h.per_year, 0, 1e6);
    c.time(path + ".duration_mean", h.duration_mean);
    c.within(path + ".duration_sigma", h.duration_sigma, 0, 10);
    c.time(path + ".detection", h.detection);
    c.within(path + ".slow_by", h.slow_by, 0, 100);
    if (!h.takes_nodes && h.nodes < 1)
      c.add(path + ".nodes", "a site without its nodes is an outage", "set `takes_nodes`");
  }
  const SilentCorruption& k = s.corruption;
  c.within("corruption.per_gpu_hour", k.per_gpu_hour, 0, kRateMost);
  if (k.frailty != 0) c.within("corruption.frailty", k.frailty, 0.01, 1e6);
  c.time("corruption.detection_median", k.detection_median);
  c.within("corruption.detection_sigma", k.detection_sigma, 0, 10);
  c.share("corruption.replayed", k.replayed);
  c.within("infant.multiplier", s.infant.multiplier, 1, 1000);
  c.time("infant.decay", s.infant.decay);
}

void check_recovery(const RunSpec& s, Checker& c) {
  const Recovery& r = s.recovery;
  c.time("repair.median", s.repair.median);
  c.time("repair.mean", s.repair.mean);
  if (s.repair.mean < s.repair.median) {
    c.add("repair.mean", "the mean is below the median", "repair times have a long tail");
  }
  c.within("spares.nodes", static_cast<double>(s.spares.nodes), 0, kGpusMost);
  c.time("recovery.requeue_wait", r.requeue_wait);
  c.time("recovery.swap", r.swap);
  c.time("recovery.allocation", r.allocation);
  c.time("recovery.init_base", r.init_base);
  c.time("recovery.init_per_gpu", r.init_per_gpu);
  c.share("recovery.standby_share", r.standby_share);
  c.time("recovery.compile", r.compile);
  c.time("recovery.warmup", r.warmup);
  c.time("recovery.leave_stall", r.leave_stall);
  c.time("recovery.rejoin_stall", r.rejoin_stall);
  c.share("recovery.whole_job", r.whole_job);
  c.time("maintenance.every", s.maintenance.every);
  c.time("maintenance.duration", s.maintenance.duration);
  if (s.maintenance.every.v > 0 && s.maintenance.every.v < 60) {
    c.add("maintenance.every", "maintenance more than once a minute", "write it in days");
  }
  if (r.policy != RecoveryPolicy::kElastic) return;
  const int64_t per_node = std::min(s.gpus, s.gpus_per_node);
  const int64_t nodes = per_node > 0 ? s.gpus / per_node : 0;
  c.within("recovery.replica_nodes", static_cast<double>(r.replica_nodes), 1, kGpusMost);
  c.time("recovery.heal", r.heal);
  const int64_t most = nodes / std::max<int64_t>(1, r.replica_nodes);
  if (r.replicas < 2 || r.replicas > most) {
    const std::string unit =
        r.replica_nodes > 1
            ? fmt::format("; one that holds the whole model has {} nodes", r.replica_nodes)
            : "";
    c.add("recovery.replicas",
          fmt::format("{} nodes cannot be {} replicas{}", nodes, r.replicas, unit),
          most < 2 ? "use a plan with fewer tensor, pipeline and context ranks, or another recovery"
                   : fmt::format("elastic recovery needs replicas of whole nodes: 2 to {}", most));
  }
  c.within("recovery.replicas_least", static_cast<double>(r.replicas_least), 1,
           static_cast<double>(std::max<int64_t>(1, r.replicas)));
}

void check_checkpoints(const RunSpec& s, Checker& c) {
  for (size_t i = 0; i < s.checkpoints.size(); ++i) {
    const CheckpointTier& t = s.checkpoints[i];
    const std::string path = fmt::format("checkpoints[{}]", i);
    c.time(path + ".interval", t.interval);
    c.time(path + ".least", t.least);
    c.time(path + ".stall", t.stall);
    c.time(path + ".persist", t.persist);
    c.time(path + ".restore", t.restore);
    c.within(path + ".starves", t.starves, 0, 1e6);
    if (t.rule == IntervalRule::kFixed && !(t.interval.v > 0)) {
      c.add(path + ".interval", "a fixed interval of zero", "state it, or let it be optimal");
    }
    if (i > 0 && t.survives <= s.checkpoints[i - 1].survives) {
      c.add(path + ".survives", "survives no more than the more frequent tier before it",
            "order tiers from the most frequent to the safest, or drop it");
    }
  }
  if (s.checkpoints.size() > 8) c.add("checkpoints", "more than 8 tiers", "drop some");
  c.within("kept_checkpoints", static_cast<double>(s.kept_checkpoints), 0, 1e9);
}

void check_slowness(const RunSpec& s, Checker& c) {
  const Stragglers& g = s.stragglers;
  c.within("stragglers.jitter", g.jitter, 0, 10);
  c.within("stragglers.ranks", static_cast<double>(g.ranks), 0, kGpusMost);
  c.share("stragglers.slow_nodes", g.slow_nodes);
  c.within("stragglers.slow_by", g.slow_by, 0, 100);
  c.within("stragglers.fail_slow_per_node_day", g.fail_slow_per_node_day, 0, 1000);
  c.within("stragglers.fail_slow_least", g.fail_slow_least.v, 1e-3, kPeriodMost);
  c.within("stragglers.fail_slow_most", g.fail_slow_most.v, g.fail_slow_least.v, kPeriodMost);
  c.within("stragglers.fail_slow_by", g.fail_slow_by, 0, 100);
  c.within("stragglers.slow_link_per_node_day", g.slow_link_per_node_day, 0, 1000);
  c.time("stragglers.slow_link_mean", g.slow_link_mean);
  c.within("stragglers.slow_link_by", g.slow_link_by, 0, 100);
  c.time("stragglers.evicted_after", g.evicted_after);
  const DataPath& d = s.data;
  c.time("data.latency_median", d.latency_median);
  c.time("data.latency_p99", d.latency_p99);
  if (d.latency_median.v > 0 && d.latency_p99 < d.latency_median) {
    c.add("data.latency_p99", "below the median", "the 99th percentile is the larger one");
  }
  c.within("data.ranks", static_cast<double>(d.ranks), 0, kGpusMost);
  c.within("data.prefetch", static_cast<double>(d.prefetch), 1, 1e6);
  c.within("data.hedges", static_cast<double>(d.hedges), 0, 64);
  c.within("data.hedge_quantile", d.hedge_quantile, 0.01, 0.9999);
  c.share("data.hedge_same_path", d.hedge_same_path);
  c.share("data.cached", d.cached);
  c.within("data.starved", d.starved, 0, 1e6);
  c.within("data.demand", d.demand, 0, 1e6 + 1);
}

void check_hours(const std::string& path, const std::vector<RunHour>& hours, Checker& c) {
  if (hours.size() > kHoursMost) c.add(path, "more than a million hours", "fewer");
  for (size_t i = 0; i < hours.size() && c.problems.size() < 100; ++i) {
    const RunHour& h = hours[i];
    // A path for each of a million hours would cost more than the check.
    if (h.thermal_clock >= 0.01 && h.thermal_clock <= 1 && h.facility_clock >= 0.01 &&
        h.facility_clock <= 1 && h.powered >= 0 && h.powered <= 1)
      continue;
    const std::string at = fmt::format("{}[{}]", path, i);
    c.within(at + ".thermal_clock", h.thermal_clock, 0.01, 1);
    c.within(at + ".facility_clock", h.facility_clock, 0.01, 1);
    c.share(at + ".powered", h.powered);
  }
}

void check_site(const RunSpec& s, Checker& c) {
  c.time("start.queue_median", s.start.queue_median);
  c.within("start.queue_sigma", s.start.queue_sigma, 0, 10);
  c.within("start.image", s.start.image.v, 0, 1e18);
  c.within("start.registry", s.start.registry.v, 0, 1e18);
  c.within("start.node_pull", s.start.node_pull.v, 0, 1e18);
  c.share("start.prepulled", s.start.prepulled);
  const HostMemory& m = s.memory;
  c.within("memory.demand_median", m.demand_median.v, 0, 1e18);
  if (m.demand_median.v > 0) {
    c.within("memory.demand_sigma", m.demand_sigma, 0, 10);
    c.within("memory.node", m.node.v, 1, 1e18);
    c.within("memory.limit", m.limit.v, 0, 1e18);
    c.time("memory.kill_detection", m.kill_detection);
    c.time("memory.crash_detection", m.crash_detection);
  }
  c.within("site.step", s.site.step.v, 1, kPeriodMost);
  check_hours("site.hours", s.site.hours, c);
  for (size_t k = 0; k < s.site.others.size(); ++k) {
    const std::string path = fmt::format("site.others[{}]", k);
    if (s.site.others[k].size() != s.site.hours.size())
      c.add(path, "not as long as the site's hours", "give every weather the same hours");
    check_hours(path, s.site.others[k], c);
  }
}

void check_step(const RunSpec& s, Checker& c) {
  c.within("gpus", static_cast<double>(s.gpus), 1, kGpusMost);
  c.within("gpus_per_node", static_cast<double>(s.gpus_per_node), 1, 1e6);
  if (s.gpus > s.gpus_per_node && s.gpus_per_node > 0 && s.gpus % s.gpus_per_node != 0) {
    c.add("gpus", fmt::format("{} is not whole nodes of {}", s.gpus, s.gpus_per_node),
          "use all accelerators of a node");
  }
  c.within("period", s.period.v, 1, kPeriodMost);
  c.within("target_tokens", s.target_tokens, 0, 1e30);
  if (s.target_tokens > 0 && !(s.step.tokens > 0)) {
    c.add("step.tokens", "a token target without tokens per step", "state them");
  }
  c.within("step.step", s.step.step.v, 1e-9, kPeriodMost);
  c.within("step.tokens", s.step.tokens, 0, 1e30);
  c.time("step.fetched", s.step.fetched);
  c.share("step.clock_bound", s.step.clock_bound);
  const double paid = s.step.ledger.paid().v;
  if (paid != 0 && !(std::abs(paid - s.step.step.v) <= 1e-6 * s.step.step.v)) {
    c.add("step.ledger", "does not sum to the step", "fill it from the same prediction");
  }
  for (const Seconds leaf : s.step.ledger.leaf) {
    if (!(leaf.v >= 0)) c.add("step.ledger", "has a negative leaf", "fill it from a prediction");
  }
  for (size_t i = 0; i < s.step.by_clock.size(); ++i) {
    const std::string path = fmt::format("step.by_clock[{}]", i);
    c.within(path + ".clock", s.step.by_clock[i].clock,
             i > 0 ? s.step.by_clock[i - 1].clock * (1 + 1e-9) : 1e-3, 10);
    c.within(path + ".factor", s.step.by_clock[i].factor, 0.1, 1000);
  }
  for (size_t i = 0; i < s.step.by_group.size(); ++i) {
    const std::string path = fmt::format("step.by_group[{}]", i);
    c.within(path + ".share", s.step.by_group[i].share,
             i > 0 ? s.step.by_group[i - 1].share * (1 + 1e-9) : 1e-9, 1);
    c.within(path + ".factor", s.step.by_group[i].factor, 0.01, 1000);
  }
}

// A description that would simulate for hours is refused like one that cannot be.
void check_cost(const RunSpec& s, Checker& c) {
  const double machines = static_cast<double>(
      s.gpus / std::max<int64_t>(1, std::min(s.gpus, s.gpus_per_node)) + s.spares.nodes);
  const double days = s.period.v / kSecondsPerDay;
  double per_gpu_hour = s.corruption.per_gpu_hour;
  for (const FailureProcess& f : s.failures) per_gpu_hour += f.per_gpu_hour;
  const double gpus = machines * static_cast<double>(std::min(s.gpus, s.gpus_per_node));
  double events = per_gpu_hour * gpus * 24 * days * std::max(1.0, s.infant.multiplier);
  events +=
      (s.stragglers.fail_slow_per_node_day + s.stragglers.slow_link_per_node_day) * machines * days;
  for (const ShockProcess& h : s.shocks) {
    const double domains = h.nodes > 0 ? machines / static_cast<double>(h.nodes) + 1 : 1;
    events += domains * h.per_year / 365.25 * days;
  }
  if (!(events <= kEventsMost)) {
    c.add("failures", fmt::format("{:.3g} failures in one run", events),
          "lower the rates (published ones are about 2e-5 per GPU-hour) or the days");
    return;
  }
  const Stragglers& g = s.stragglers;
  // A log-uniform duration has the mean (most - least) / ln(most / least).
  const double ratio = std::log(g.fail_slow_most.v / g.fail_slow_least.v);
  const double lasts =
      ratio > 0 ? (g.fail_slow_most - g.fail_slow_least).v / ratio : g.fail_slow_least.v;
  double slow = machines * (g.slow_nodes + (g.fail_slow_per_node_day * lasts +
                                            g.slow_link_per_node_day * g.slow_link_mean.v) /
                                               kSecondsPerDay);
  for (const ShockProcess& h : s.shocks) {
    if (!h.takes_nodes) slow += machines * h.per_year / kSecondsPerYear * h.duration_mean.v;
  }
  if (!(events * slow <= kLooksMost)) {
    c.add("stragglers", fmt::format("{:.3g} slow machines at once", slow),
          "lower `slow_nodes` or `fail_slow_per_node_day`, or the days");
  }
}

}  // namespace

std::vector<SpecProblem> check(const RunSpec& s) {
  Checker c;
  check_step(s, c);
  check_failures(s, c);
  check_recovery(s, c);
  check_checkpoints(s, c);
  check_slowness(s, c);
  check_site(s, c);
  if (c.problems.empty()) check_cost(s, c);
  return c.problems;
}

}  // namespace assay
