#include "sim/many.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sim/full_spec.h"

namespace assay {
namespace {

bool same(const Band& a, const Band& b) {
  return a.p5 == b.p5 && a.p50 == b.p50 && a.p95 == b.p95 && a.mean == b.mean;
}

TEST(Many, SameBytesForAnyNumberOfThreads) {
  RunSpec s = everything_on(1024, 10);
  s.site.others.assign(2, s.site.hours);
  for (RunHour& h : s.site.others[0]) h.thermal_clock *= 0.9;  // runs draw their weather, too
  const ManyResult one = simulate_many(s, {24, 5, 1, nullptr, {}});
  for (const int threads : {2, 3, 7}) {
    const ManyResult many = simulate_many(s, {24, 5, threads, nullptr, {}});
    for (size_t a = 0; a < one.ledger.size(); ++a) EXPECT_TRUE(same(one.ledger[a], many.ledger[a]));
    const Band ManyResult::*bands[] = {&ManyResult::paid,         &ManyResult::period,
                                       &ManyResult::goodput,      &ManyResult::useful_share,
                                       &ManyResult::tokens,       &ManyResult::interruptions,
                                       &ManyResult::spares_empty, &ManyResult::longest_run};
    for (const Band ManyResult::*band : bands) EXPECT_TRUE(same(one.*band, many.*band));
    ASSERT_EQ(one.series.size(), many.series.size());
    for (size_t i = 0; i < one.series.size(); ++i) {
      EXPECT_TRUE(same(one.series[i].goodput, many.series[i].goodput));
      EXPECT_TRUE(same(one.series[i].busy, many.series[i].busy));
      EXPECT_TRUE(same(one.series[i].clock, many.series[i].clock));
    }
    for (size_t c = 0; c < one.causes.size(); ++c) {
      EXPECT_TRUE(same(one.causes[c].lost, many.causes[c].lost)) << one.causes[c].name;
    }
    EXPECT_EQ(one.finished_at, many.finished_at);
  }
}

// Some changes that never hurt.
std::vector<Lever> changes(const RunSpec& base) {
  RunSpec spares = base, inspected = base, smooth = base;
  spares.spares.nodes += 8;
  for (FailureProcess& f : inspected.failures) f.detection = std::min(f.detection, Seconds(10));
  smooth.stragglers.jitter = 0;
  return {{"spares", "", {}, spares}, {"detection", "", {}, inspected}, {"jitter", "", {}, smooth}};
}

// The same for levers: pairs are pairs, whoever runs first.
TEST(Many, LeversAreTheSameForAnyNumberOfThreads) {
  RunSpec s = everything_on(512, 10);
  s.site.others.assign(2, s.site.hours);
  for (RunHour& h : s.site.others[1]) h.thermal_clock *= 0.9;
  const std::vector<Lever> levers = changes(s);
  const std::vector<LeverResult> one = measure_levers(s, levers, {9, 3, 1, nullptr, {}});
  const std::vector<LeverResult> four = measure_levers(s, levers, {9, 3, 4, nullptr, {}});
  ASSERT_EQ(one.size(), four.size());
  for (size_t i = 0; i < one.size(); ++i) {
    EXPECT_TRUE(same(one[i].useful_share, four[i].useful_share)) << one[i].name;
    EXPECT_TRUE(same(one[i].period, four[i].period)) << one[i].name;
  }
}

// The risk of a date is counted, run by run.
TEST(Many, DeadlinesAreCountedInRuns) {
  RunSpec s = everything_on(1024, 40);
  s.target_tokens = s.step.tokens * 8 * kSecondsPerDay / s.step.step.v;
  const ManyResult r = simulate_many(s, {40, 5, 2, nullptr, {}});
  ASSERT_EQ(r.finished_at.size(), 40u);
  EXPECT_TRUE(std::is_sorted(r.finished_at.begin(), r.finished_at.end()));
  EXPECT_EQ(r.later_than(Seconds(r.finished_at.front() - 1)), 1);
  EXPECT_EQ(r.later_than(Seconds(r.finished_at.front())), 1 - 1.0 / 40);
  EXPECT_EQ(r.later_than(Seconds(r.finished_at[29])), 0.25);
  EXPECT_EQ(r.later_than(Seconds(r.finished_at.back())), 0);
  // Within the period of some: the others are late whatever the date.
  s.period = Seconds(r.finished_at[19]);
  const ManyResult cut = simulate_many(s, {40, 5, 2, nullptr, {}});
  EXPECT_EQ(cut.later_than(Seconds(100 * kSecondsPerDay)), 1 - cut.finished);
  EXPECT_NEAR(cut.finished, 0.5, 0.026);
  // A run without a target is never done.
  s.target_tokens = 0;
  EXPECT_EQ(simulate_many(s, {4, 5, 2, nullptr, {}}).later_than(s.period), 1);
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
  s.spares.nodes = 0;
  const std::vector<Lever> levers = changes(s);
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
  const LeverResult same_spec = measure_levers(s, {{"none", "", {}, s}}, o)[0];
  EXPECT_EQ(same_spec.goodput.p5, 0);
  EXPECT_EQ(same_spec.goodput.p95, 0);
}

}  // namespace
}  // namespace assay
