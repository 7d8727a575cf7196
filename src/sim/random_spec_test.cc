// Specs that nobody would write: whatever passes `check` must run to its end, with leaves that sum
// (asserted inside), shares within 0 and 1, and no number that is none.
#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "sim/expect.h"
#include "sim/full_spec.h"

namespace assay {
namespace {

class Chooser {
 public:
  explicit Chooser(uint64_t seed) : luck_(seed, cause_id("random spec")) {}
  bool coin(double p = 0.5) { return luck_.uniform() < p; }
  double between(double low, double high) { return low + (high - low) * luck_.uniform(); }
  double scale() { return std::pow(10.0, between(-3, 2.5)); }
  int64_t whole(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(luck_.bits() % static_cast<uint64_t>(high - low + 1));
  }
  Seconds time(double most) { return coin(0.15) ? Seconds(0) : Seconds(most * luck_.uniform()); }

 private:
  Stream luck_;
};

RunSpec random_spec(uint64_t seed) {
  Chooser c(seed);
  RunSpec s = everything_on(8 * c.whole(1, 200), c.between(0.01, 12));
  const double storm = c.scale(), uneven = c.between(0.02, 5);
  for (FailureProcess& f : s.failures) {
    f.per_gpu_hour *= storm * c.scale();
    f.detection = c.time(4000);
    f.replaced = c.between(0, 1);
    f.shape = c.coin() ? 1 : c.between(0.3, 3);
    f.frailty = c.coin() ? 0 : uneven;
  }
  for (ShockProcess& h : s.shocks) {
    h.per_year *= storm * c.scale();
    h.duration_mean = c.time(40000);
    h.nodes = h.nodes == 0 ? 0 : c.whole(1, 40);
    h.takes_nodes = h.nodes == 0 || c.coin();
    h.slow_by = c.between(0, 2);
  }
  s.corruption.per_gpu_hour *= storm * c.scale();
  s.corruption.detection_median = c.time(90000);
  s.maintenance = {c.coin() ? Seconds(c.between(600, 200000)) : Seconds(0), c.time(20000)};
  s.spares.nodes = c.whole(0, 6);
  s.spares.prepulled = c.coin();
  s.repair.median = c.time(50000);
  s.repair.mean = s.repair.median * c.between(1, 10);
  const int64_t nodes = s.gpus / 8;
  s.recovery.replicas = nodes > 4 ? c.whole(2, nodes) : nodes;
  s.recovery.policy = static_cast<RecoveryPolicy>(c.whole(0, s.recovery.replicas > 1 ? 2 : 1));
  s.recovery.replicas_least = c.whole(1, s.recovery.replicas);
  s.recovery.replica_nodes = c.whole(1, std::max<int64_t>(1, nodes / s.recovery.replicas));
  s.recovery.heal = c.time(900);
  if (c.coin()) s.step.by_group = {{0.3, c.between(0.8, 2)}, {0.7, c.between(0.8, 2)}, {1, 1}};
  s.start.kept = c.coin();
  s.start.prepulled = c.between(0, 1);
  s.recovery.leave_stall = c.time(600);
  s.recovery.rejoin_stall = c.time(600);
  s.recovery.whole_job = c.between(0, 1);
  s.recovery.swap = c.time(2000);
  while (!s.checkpoints.empty() && c.coin(0.3)) s.checkpoints.erase(s.checkpoints.begin());
  for (CheckpointTier& t : s.checkpoints) {
    t.rule = static_cast<IntervalRule>(c.whole(0, 3));
    t.interval = Seconds(c.between(0.1, 20000));
    t.stall = c.time(500);
    t.persist = c.time(3000);
    t.restore = c.time(3000);
    t.starves = c.coin() ? 0 : c.between(0, 2);
  }
  s.kept_checkpoints = c.whole(0, 3);
  s.data.latency_median = c.time(2);
  s.data.latency_p99 = s.data.latency_median * c.between(1, 60);
  s.data.prefetch = c.whole(1, 8);
  s.data.hedges = c.whole(0, 2);
  if (c.coin(0.7)) s.data = {};  // as costly to prepare as many a run
  for (RunHour& h : s.site.hours) {
    h.outage = c.coin(0.03);
    if (c.coin(0.1)) h.powered = c.between(0, 1);
    if (c.coin(0.02)) h.powered = 0;
  }
  s.site.step = Seconds(c.between(60, 7200));
  if (c.coin(0.3)) s.target_tokens = c.between(0, 2) * s.period.v / 5 * 16e6;
  return s;
}

TEST(RandomSpec, WhateverPassesTheCheckIsSound) {
  int tried = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const RunSpec s = random_spec(seed);
    if (!check(s).empty()) continue;
    ++tried;
    const RunResult r = Simulator(s).run(seed, {seed % 8 == 0, Seconds(43200)});
    ASSERT_TRUE(r.goodput >= 0 && r.goodput <= 1) << seed;
    ASSERT_TRUE(r.useful_share >= 0 && r.useful_share <= 1) << seed;
    ASSERT_LE(r.period.v, s.period.v * (1 + 1e-12)) << seed;
    if (seed % 4 == 0) {  // about as costly as the run
      const Expectation expected = expect_run(s);
      ASSERT_TRUE(expected.goodput >= 0 && expected.goodput <= 1) << seed;
      ASSERT_TRUE(expected.slowdown > 0 && std::isfinite(expected.slowdown)) << seed;
      ASSERT_TRUE(expected.time.v > 0) << seed;
    }
    for (const Seconds leaf : r.ledger.leaf) {
      ASSERT_TRUE(std::isfinite(leaf.v) && leaf.v >= 0) << seed;
    }
    for (const CauseCount& c : r.causes) {
      ASSERT_TRUE(c.lost.v >= 0 && c.lost.v <= r.paid.v * (1 + 1e-9)) << seed << " " << c.name;
    }
    for (const SeriesPoint& p : r.series) {
      ASSERT_TRUE(p.goodput >= 0 && p.goodput <= p.busy + 1e-9 && p.busy <= 1) << seed;
    }
    for (const RunEvent& e : r.events) ASSERT_LE(e.begin, e.end) << seed;
    ASSERT_TRUE(!r.finished || std::abs(r.tokens / s.target_tokens - 1) < 1e-6) << seed;
  }
  EXPECT_GT(tried, 150);
}

}  // namespace
}  // namespace assay
