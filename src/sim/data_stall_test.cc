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

}  // namespace
}  // namespace assay
