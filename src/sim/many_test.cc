#include "sim/many.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sim/full_spec.h"

namespace assay {
namespace {

bool same(const Band& a, const Band& b) {
  return a.p5 == b.p5 && a.p50 == b.p50 && a.p95 == b.p95 && a.mean == b.mean;
}

TEST(Many, SameBytesForAnyNumberOfThreads) {
  const RunSpec s = everything_on(1024, 10);
  const ManyResult one = simulate_many(s, {24, 5, 1, nullptr, {}});
  for (const int threads : {2, 3, 7}) {
    const ManyResult many = simulate_many(s, {24, 5, threads, nullptr, {}});
    for (size_t a = 0; a < one.ledger.size(); ++a) EXPECT_TRUE(same(one.ledger[a], many.ledger[a]));
    EXPECT_TRUE(same(one.goodput, many.goodput));
    ASSERT_EQ(one.series.size(), many.series.size());
    for (size_t i = 0; i < one.series.size(); ++i) {
      EXPECT_TRUE(same(one.series[i].goodput, many.series[i].goodput));
    }
  }
}

TEST(Many, BandsAreOrderedAndMeansSum) {
  const ManyResult r = simulate_many(everything_on(1024, 10), {50, 1, 2, nullptr, {}});
  EXPECT_EQ(r.done, 50);
  EXPECT_FALSE(r.partial());
  for (const Band& b : r.ledger) {
    EXPECT_LE(b.p5, b.p50);
    EXPECT_LE(b.p50, b.p95);
  }
  EXPECT_NEAR(r.mean.paid().v / r.paid.mean, 1, 1e-12);
  EXPECT_EQ(r.series.size(), 10u);
  EXPECT_GT(r.goodput.p5, 0.3);
  EXPECT_LT(r.goodput.p95, 1.0);
  double interruptions = 0;
  for (const CauseBand& c : r.causes) {
    if (c.name != "maintenance") interruptions += c.interruptions.mean;
  }
  EXPECT_NEAR(interruptions, r.interruptions.mean, 1e-9);
}

TEST(Many, CancelKeepsWhatIsKnown) {
  std::atomic<bool> cancel{false};
  ManyOptions o;
  o.runs = 1000;
  o.threads = 2;
  o.cancel = &cancel;
  o.progress = [&](int64_t done) {
    if (done == 10) cancel = true;
  };
  const ManyResult r = simulate_many(everything_on(512, 5), o);
  EXPECT_TRUE(r.partial());
  EXPECT_GE(r.done, 10);
  EXPECT_LE(r.done, 12);
  EXPECT_TRUE(std::isfinite(r.goodput.p50));
  cancel = true;
  o.progress = {};
  EXPECT_EQ(simulate_many(everything_on(512, 5), o).done, 0);
}

TEST(Many, LeversMeetTheSameLuck) {
  RunSpec s = everything_on(4096, 10);
  s.checkpoints.erase(s.checkpoints.begin(), s.checkpoints.begin() + 2);
  s.checkpoints[0].rule = IntervalRule::kFixed;
  s.checkpoints[0].interval = Seconds(3600);
  s.checkpoints[0].stall = Seconds(20);
  s.spares.nodes = 0;
  const std::vector<Lever> levers = standard_levers(s);
  EXPECT_GE(levers.size(), 8u);
  ManyOptions o;
  o.runs = 12;
  o.threads = 2;
  const std::vector<LeverResult> results = measure_levers(s, levers, o);
  ASSERT_EQ(results.size(), levers.size());
  for (const LeverResult& r : results) {
    EXPECT_EQ(r.pairs, 12);
    EXPECT_GE(r.goodput.mean, -0.002) << r.name << " " << r.change;
  }
  // The base against itself is exactly nothing.
  const LeverResult same_spec = measure_levers(s, {{"none", "", s}}, o)[0];
  EXPECT_EQ(same_spec.goodput.p5, 0);
  EXPECT_EQ(same_spec.goodput.p95, 0);
}

}  // namespace
}  // namespace assay
