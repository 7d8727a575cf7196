#include "plan/cost.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

Setting small_job(double tokens) {
  Setting s;
  s.workload.seq = 1000;
  s.workload.global_batch = 10;
  s.workload.tokens = tokens;
  s.cluster.nodes = 2;
  s.cluster.node.accelerators = 8;
  s.cluster.node.host_power = Watts(1000);
  s.cluster.node.nameplate = Watts(10000);
  s.cluster.pue = 1.5;
  return s;
}

Prediction of_step(double seconds) {
  Prediction p;
  p.step = p.low = p.high = Seconds(seconds);
  p.power = Watts(500);
  return p;
}

TEST(RunFigures, OfLessThanAStepIsOneStep) {
  EXPECT_EQ(run_figures(small_job(1e6), of_step(2)).time_s.value, 200);
  EXPECT_EQ(run_figures(small_job(1), of_step(2)).time_s.value, 2);
}

TEST(RunFigures, RangesFollowFromThoseOfTheStepAndOfMemory) {
  Prediction p = of_step(2);
  p.low = Seconds(1.6), p.high = Seconds(2.5), p.tokens_per_s = 1000;
  EXPECT_DOUBLE_EQ(tokens_range(p).low, 800);
  EXPECT_DOUBLE_EQ(tokens_range(p).high, 1250);
  p.memory.reserved = Bytes(1e9);
  const Interval memory = memory_range(p.memory);
  EXPECT_NEAR(memory.value / memory.low - 1, MemoryUse::kError90, 1e-12);
  EXPECT_NEAR(1 - memory.value / memory.high, MemoryUse::kError90, 1e-12);
}

// A job on a part of a node pays for that part of its host, in watts as in dollars.
TEST(RunFigures, PowerIsOfTheNodesThatAreUsed) {
  Setting s = small_job(1e6);
  EXPECT_NEAR(run_figures(s, of_step(2)).power_w, 1.5 * 2 * (1000 + 8 * 500), 1e-6);
  s.accelerators = 2;
  EXPECT_NEAR(run_figures(s, of_step(2)).power_w, 1.5 * 0.25 * (1000 + 8 * 500), 1e-6);
  s.cluster.node.nameplate = Watts(3000);
  EXPECT_NEAR(run_figures(s, of_step(2)).power_w, 1.5 * 0.25 * 3000, 1e-6);
}

}  // namespace
}  // namespace assay
