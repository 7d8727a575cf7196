#include "sim/data_stall.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace assay {
namespace {

DataPath jittery(int64_t depth, int64_t hedges = 0) {
  DataPath d;
  d.latency_median = Seconds(0.020);
  d.latency_p99 = Seconds(0.400);
  d.prefetch = depth;
  d.hedges = hedges;
  return d;
}

double data_stall_excess(const DataPath& d, double ranks, Seconds step) {
  return data_stall(d, ranks, step, 1e-3).total();
}

double stall_share(const DataPath& d, double ranks, Seconds step = Seconds(0.020)) {
  const double excess = data_stall_excess(d, ranks, step);
  return 100 * excess / (1 + excess);
}

// An independent simulation of the same recurrence (prefetch under jitter; log-normal p50 20 ms,
// p99 400 ms, step 20 ms), in per cent of time, to two points: its own noise on the heavy tail.
TEST(DataStall, AgreesWithAnIndependentSimulation) {
  struct Row {
    int64_t depth, hedges;
    double ranks, stalled;
  };
  const Row rows[] = {{8, 0, 1, 26.8},     {16, 0, 8, 48.1},     {32, 0, 64, 60.0},
                      {64, 0, 1, 1.9},     {64, 0, 64, 40.2},    {64, 0, 1024, 71.3},
                      {256, 0, 64, 4.5},   {256, 0, 1024, 30.4}, {16, 1, 8, 2.5},
                      {16, 1, 1024, 42.4}, {64, 1, 1024, 0.7},   {16, 4, 8192, 29.5},
                      {32, 4, 1024, 0.01}};
  for (const Row& r : rows) {
    EXPECT_NEAR(stall_share(jittery(r.depth, r.hedges), r.ranks), r.stalled, 2)
        << r.depth << " deep, " << r.hedges << " hedges, " << r.ranks << " ranks";
  }
}

TEST(DataStall, HedgesOnTheSameSlowPathDoNotHelp) {
  DataPath d = jittery(64, 4);
  EXPECT_LT(stall_share(d, 1024), 1);
  d.hedge_same_path = 0.1;
  EXPECT_NEAR(stall_share(d, 1024), 47, 4);
}

// The naive twin draws every rank.
TEST(DataStall, OneDrawStandsForAllRanks) {
  const DataPath d = jittery(16);
  constexpr int kRanks = 8, kSteps = 40000;
  Stream s(5, 1);
  std::vector<double> c(kSteps + 16, 0.0);
  for (size_t n = 16; n < c.size(); ++n) {
    double slowest = 0;
    for (int r = 0; r < kRanks; ++r) {
      const double sigma = std::log(20.0) / 2.3263478740408408;
      slowest = std::max(slowest, lognormal_quantile(s.uniform(), 0.020, sigma));
    }
    c[n] = std::max(c[n - 1] + 0.020, c[n - 16] + slowest);
  }
  const double excess = c.back() / (kSteps * 0.020) - 1;
  EXPECT_NEAR(stall_share(d, kRanks), 100 * excess / (1 + excess), 2);
}

// What is rare and what is usual are parts of one whole, wherever the line is drawn.
TEST(DataStall, RareAndUsualAreTheWhole) {
  const DataPath d = jittery(16, 1);
  const DataStall all = data_stall(d, 1024, Seconds(0.020), 1e9);
  EXPECT_EQ(all.usual, 0);
  EXPECT_GT(all.rare, 0.1);
  double last = all.rare;
  for (const double rate : {0.1, 0.01, 0.001, 0.0}) {
    const DataStall parts = data_stall(d, 1024, Seconds(0.020), rate);
    EXPECT_NEAR(parts.total(), all.rare, 1e-9);
    EXPECT_LT(parts.rare, last);
    last = parts.rare;
  }
  EXPECT_EQ(last, 0);
}

TEST(DataStall, NeverWorseWithDepthHedgesOrCache) {
  double last = 1e9;
  for (const int64_t depth : {1, 2, 4, 8, 16, 64, 512}) {
    const double excess = data_stall_excess(jittery(depth), 512, Seconds(0.05));
    EXPECT_LE(excess, last);
    last = excess;
  }
  EXPECT_LE(data_stall_excess(jittery(8, 1), 512, Seconds(0.05)),
            data_stall_excess(jittery(8, 0), 512, Seconds(0.05)));
  DataPath cached = jittery(8);
  cached.cached = 0.9;
  EXPECT_LT(data_stall_excess(cached, 1, Seconds(0.05)),
            data_stall_excess(jittery(8), 1, Seconds(0.05)));
  cached.cached = 1;
  EXPECT_EQ(data_stall_excess(cached, 512, Seconds(0.05)), 0);
  EXPECT_EQ(data_stall_excess(DataPath{}, 512, Seconds(0.05)), 0);
}

// Every fetch of every rank, tick by tick: asked for when a batch is consumed, served in order by a
// store of some bandwidth that a save halves, answered after its own latency. A step starts when
// every rank has its batch. Time is in steps, saves in steps of work.
struct Store {
  double demand = 0;                      // of its bandwidth, by all ranks
  double save_every = 0, save_lasts = 0;  // zero: none
};

double fetch_by_fetch(const Store& store, int ranks, int depth, double p50, double p99, int steps) {
  constexpr double kTick = 0.02;
  const double sigma = p50 > 0 ? std::log(p99 / p50) / 2.3263478740408408 : 0;
  Stream luck(11, 1);
  int64_t asked = depth, served = 0;  // batches; the first of those that wait is being served
  double left = store.demand;         // of it
  std::vector<double> ready;          // by batch
  double now = 0, busy_until = 0, save_until = 0, next_save = store.save_every;
  int done = 0;
  bool stepping = false;
  while (done < steps) {
    for (double budget = now < save_until ? kTick / 2 : kTick; budget > 0 && served < asked;) {
      const double piece = std::min(budget, left);
      budget -= piece;
      left -= piece;
      if (left > 1e-12) break;
      double latency = 0;
      for (int r = 0; r < ranks && p50 > 0; ++r)
        latency = std::max(latency, lognormal_quantile(luck.uniform(), p50, sigma));
      ready.push_back(now + latency);
      ++served;
      left = store.demand;
    }
    if (stepping && now >= busy_until) {
      stepping = false;
      ++done;
      ++asked;
      if (store.save_every > 0 && done >= next_save) {
        next_save += store.save_every;
        save_until = now + store.save_lasts;
      }
    }
    if (!stepping && static_cast<size_t>(done) < ready.size() &&
        ready[static_cast<size_t>(done)] <= now) {
      stepping = true;
      // A step that had not to wait begins where the one before ended, within the tick.
      busy_until = (now - busy_until < kTick ? busy_until : now) + 1;
    }
    now += kTick;
  }
  return now / steps - 1;
}

// The simulator's two terms for the same store.
double by_formula(const Store& store, int ranks, int depth, double p50, double p99) {
  DataPath d;
  d.latency_median = Seconds(p50);
  d.latency_p99 = Seconds(p99);
  d.prefetch = depth;
  d.demand = store.demand;
  d.starved = std::max(0.0, store.demand - 1);
  const double paced = 1 + d.starved;
  double excess = data_stall_excess(d, ranks, Seconds(paced)) * paced + d.starved;
  CheckpointTier t;
  t.persist = Seconds(store.save_lasts);
  t.starves = std::max(0.0, 2 * store.demand - 1) - d.starved;
  if (store.save_every > 0)
    excess +=
        save_starvation(d, t, Seconds(store.save_every), Seconds(1)).wait.v / store.save_every;
  return excess;
}

TEST(DataStall, BandwidthLatencyAndSavesAgreeWithEveryFetch) {
  struct Row {
    Store store;
    int ranks, depth;
    double p50, p99;
  };
  const Row rows[] = {
      {{0.5, 0, 0}, 16, 16, 1, 20},      // the tail alone
      {{0.2, 0, 0}, 64, 64, 1, 20},      //
      {{1.3, 0, 0}, 16, 16, 0.01, 0.1},  // bandwidth alone
      {{1.5, 0, 0}, 16, 16, 1, 20},      // both: the tail hides behind the wait for bandwidth
      {{0.8, 200, 40}, 8, 8, 0, 0},      // a save longer than what is ahead
      {{0.8, 200, 40}, 8, 2, 0, 0},      //
      {{0.8, 200, 40}, 8, 64, 0, 0},     // and shorter
      {{0.95, 100, 30}, 8, 32, 0, 0},    // too little bandwidth to fill it again
      {{0.45, 200, 100}, 8, 4, 0, 0},    // half of the store is enough
  };
  for (const Row& r : rows) {
    const double naive = fetch_by_fetch(r.store, r.ranks, r.depth, r.p50, r.p99, 20000);
    const double formula = by_formula(r.store, r.ranks, r.depth, r.p50, r.p99);
    EXPECT_NEAR(formula, naive, 0.01 + 0.1 * naive)
        << "demand " << r.store.demand << ", depth " << r.depth << ", p50 " << r.p50;
  }
}

TEST(DataStall, DeeperPrefetchNeverStarvesMore) {
  DataPath d;
  d.demand = 0.9;
  CheckpointTier t;
  t.persist = Seconds(60);
  t.stall = Seconds(1);
  t.starves = 0.8;
  double last = 1e9;
  for (const int64_t depth : {0, 1, 2, 8, 32, 128, 512}) {
    d.prefetch = depth;
    const double waited_s = save_starvation(d, t, Seconds(600), Seconds(1)).wait.v;
    EXPECT_LE(waited_s, last) << depth;
    EXPECT_GE(waited_s, 0);
    last = waited_s;
  }
  EXPECT_EQ(last, 0);
  // A save that never ends starves every step, whatever is ahead.
  t.persist = Seconds(6000);
  EXPECT_NEAR(save_starvation(d, t, Seconds(600), Seconds(1)).wait.v, 0.8 * 600, 1e-9);
  // Without bandwidth to spare nothing is ahead.
  d.starved = 0.2;
  d.demand = 1.2;
  t.persist = Seconds(60);
  EXPECT_NEAR(save_starvation(d, t, Seconds(600), Seconds(1)).wait.v, 0.8 / 2.0 * 60, 1e-9);
}

}  // namespace
}  // namespace assay
