#include "sim/late_batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "sim/expect.h"
#include "sim/many.h"
#include "sim/prepare.h"
#include "sim/quiet_spec.h"

namespace assay {
namespace {

DataPath tailed(int64_t depth, double median, double p99) {
  DataPath d;
  d.latency_median = Seconds(median);
  d.latency_p99 = Seconds(p99);
  d.prefetch = depth;
  return d;
}

LateFetches late_fetches(const DataPath& d, double ranks, Seconds step) {
  const DataStall stall = data_stall(d, ranks, step, LateFetches::rare_rate(step));
  return LateFetches(d, ranks, step, step, stall.usual);
}

std::vector<LateBatch> within(const LateFetches& f, uint64_t seed, Seconds work) {
  std::vector<LateBatch> all;
  LateBatches late(f, seed);
  for (; late.next().work < work.v * kNanosecondsPerSecond; late.advance())
    all.push_back(late.next());
  return all;
}

// Waits of one kind: how often, how long, and how uneven from day to day.
struct Waits {
  double per_day = 0, mean_s = 0, longest_tenth_s = 0, day_spread = 0;
};

Waits described(const std::vector<std::pair<double, double>>& waits, int days) {
  std::vector<double> lengths, by_day(static_cast<size_t>(days), 0.0);
  for (const auto& [at_s, wait_s] : waits) {
    lengths.push_back(wait_s);
    const auto day = static_cast<size_t>(at_s / kSecondsPerDay);
    by_day[std::min(day, by_day.size() - 1)] += wait_s;
  }
  std::sort(lengths.begin(), lengths.end());
  Waits w;
  const double sum = std::accumulate(lengths.begin(), lengths.end(), 0.0);
  w.per_day = static_cast<double>(lengths.size()) / days;
  w.mean_s = sum / static_cast<double>(std::max<size_t>(1, lengths.size()));
  if (!lengths.empty()) w.longest_tenth_s = lengths[lengths.size() * 9 / 10];
  double squares = 0;
  for (const double day : by_day) squares += (day - sum / days) * (day - sum / days);
  w.day_spread = std::sqrt(squares / days);
  return w;
}

// The naive twin takes every step, waits for whatever is late, and writes down the waits of the
// fetches that come less than once an hour.
std::vector<std::pair<double, double>> step_by_step(const DataPath& d, double ranks, Seconds step,
                                                    int days, double& excess) {
  const SlowestFetch slowest(d, ranks);
  Stream luck(77, 1);
  const auto steps = static_cast<size_t>(days * kSecondsPerDay / step.v);
  const auto depth = static_cast<size_t>(d.prefetch);
  std::vector<double> consumed(steps + depth, 0.0);
  std::vector<std::pair<double, double>> rare;
  for (size_t n = depth; n < consumed.size(); ++n) {
    const double u = luck.uniform();
    const double due = consumed[n - 1] + step.v;
    consumed[n] = std::max(due, consumed[n - depth] + slowest.quantile(u).v);
    if (consumed[n] > due && -std::log(u) < LateFetches::rare_rate(step))
      rare.push_back({static_cast<double>(n - depth) * step.v, consumed[n] - due});
  }
  excess = consumed.back() / (static_cast<double>(steps) * step.v) - 1;
  return rare;
}

TEST(LateBatches, AgreeWithEveryStep) {
  struct Row {
    int64_t depth;
    double median, p99, ranks, step_s;
  };
  const Row rows[] = {
      {2, 0.05, 1, 1024, 4},    // late every few hours
      {1, 0.05, 1, 8192, 8},    //
      {4, 0.05, 1, 1024, 0.8},  // late all the time, and rarely very late
      {8, 0.1, 4, 512, 4},      //
      {32, 0.1, 4, 4096, 4},    // a deep prefetch: a long wait shortens those behind it
  };
  for (const Row& r : rows) {
    const DataPath d = tailed(r.depth, r.median, r.p99);
    const Seconds step(r.step_s);
    const int days = r.step_s < 1 ? 20 : 100;
    double excess = 0;
    const Waits naive = described(step_by_step(d, r.ranks, step, days, excess), days);
    std::vector<std::pair<double, double>> drawn;
    constexpr int kTimes = 10;
    for (const LateBatch& b :
         within(late_fetches(d, r.ranks, step), 5, Seconds(kTimes * days * kSecondsPerDay)))
      drawn.push_back({b.work / kNanosecondsPerSecond, to_seconds(b.wait).v});
    const Waits fast = described(drawn, kTimes * days);
    const std::string what = "depth " + std::to_string(r.depth) + ", step " +
                             std::to_string(r.step_s) + " s, " + std::to_string(r.ranks);
    const double noise = 4 / std::sqrt(naive.per_day * days);
    EXPECT_GT(naive.per_day, 0.2) << what;
    EXPECT_NEAR(fast.per_day / naive.per_day, 1, noise) << what;
    EXPECT_NEAR(fast.mean_s / naive.mean_s, 1, 0.02 + noise) << what;
    EXPECT_NEAR(fast.longest_tenth_s / naive.longest_tenth_s, 1, 0.05 + 2 * noise) << what;
    EXPECT_NEAR(fast.day_spread / naive.day_spread, 1, 0.1 + 2 * noise) << what;
    const DataStall stall = data_stall(d, r.ranks, step, LateFetches::rare_rate(step));
    EXPECT_NEAR(stall.total(), excess, 0.03 * excess + 1e-4) << what;
    EXPECT_NEAR(fast.mean_s * fast.per_day / kSecondsPerDay, stall.rare, 0.05 * excess + 1e-4)
        << what;
  }
}

TEST(LateBatches, DeeperFasterOrHedgedMovesNone) {
  const Seconds step(4), work(60 * kSecondsPerDay);
  const DataPath base = tailed(2, 0.05, 0.5);
  std::map<double, Nanoseconds> before;
  for (const LateBatch& b : within(late_fetches(base, 1024, step), 9, work))
    before[b.work] = b.wait;
  ASSERT_GT(before.size(), 100u);
  std::vector<DataPath> better(4, base);
  better[0].prefetch = 3;
  better[1].latency_p99 = Seconds(0.45);
  better[2].hedges = 1;
  better[2].hedge_same_path = 0.5;
  better[3].cached = 0.5;
  for (const DataPath& d : better) {
    const std::vector<LateBatch> after = within(late_fetches(d, 1024, step), 9, work);
    EXPECT_GT(after.size(), 0u);
    EXPECT_LT(after.size(), before.size());
    for (const LateBatch& b : after) {
      ASSERT_TRUE(before.contains(b.work));
      EXPECT_LE(b.wait, before[b.work]);
    }
  }
}

TEST(LateBatches, NothingIsLateWithoutATail) {
  EXPECT_TRUE(
      within(LateFetches(DataPath{}, 1024, Seconds(1), Seconds(1), 0), 1, Seconds(1e9)).empty());
  EXPECT_TRUE(
      within(late_fetches(tailed(64, 1e-3, 5e-3), 1e5, Seconds(4)), 1, Seconds(1e9)).empty());
  DataPath cached = tailed(1, 0.05, 1);
  cached.cached = 1;
  EXPECT_TRUE(within(late_fetches(cached, 1024, Seconds(1)), 1, Seconds(1e9)).empty());
}

RunSpec waiting_run(int64_t depth) {
  RunSpec s = quiet(1024, 20);
  s.step.step = Seconds(4);
  s.data = tailed(depth, 0.05, 0.6);
  return s;
}

// What is expected is what runs lose on average; days and runs differ by luck.
TEST(LateBatches, RunsDifferAndTheirMeanIsExpected) {
  const RunSpec s = waiting_run(2);
  ManyOptions options;
  options.runs = 60;
  const ManyResult many = simulate_many(s, options);
  const Expectation mean = expect_run(s);
  const double expected = 1 - mean.goodput / mean.slowdown;
  ASSERT_GT(expected, 0.0005);
  EXPECT_NEAR(1 - many.useful_share.mean, expected, 0.05 * expected);
  EXPECT_GT(many.useful_share.p95 - many.useful_share.p5, 0.1 * expected);
  const RunResult run = traced(s, 4);
  double most = 0, least = 1;
  for (const SeriesPoint& p : run.series) {
    most = std::max(most, p.busy);
    least = std::min(least, p.busy);
  }
  EXPECT_GT(most - least, 0.3 * expected);  // a constant share would be none
  double waited = 0;
  for (const RunEvent& e : run.events) {
    if (e.track == "input" && e.name == "late batch") waited += (e.end - e.begin).v;
  }
  EXPECT_GT(waited, 0.0);
  const double usual =
      data_stall(s.data, 1024, s.step.step, s.step.step / LateFetches::kApart).usual;
  const double stepped = run.period.v - waited;
  EXPECT_NEAR(run.ledger[Account::kStorage].v / 1024, waited + stepped * usual / (1 + usual), 1);
}

TEST(LateBatches, DeeperPrefetchIsNeverWorseInAnyRun) {
  std::vector<double> last(20, 0.0);  // by seed
  for (const int64_t depth : {1, 2, 3, 4, 8}) {
    const Simulator runs(waiting_run(depth));
    for (size_t seed = 0; seed < last.size(); ++seed) {
      const double useful = runs.run(seed).useful_share;
      EXPECT_GE(useful, last[seed]) << seed << ", " << depth;
      last[seed] = useful;
    }
  }
  for (const double useful : last) EXPECT_NEAR(useful, 1, 1e-3);
}

// Failures change when a step is taken, not how late its batch is.
TEST(LateBatches, KeepTheirLuckWhateverElseHappens) {
  const auto waits = [](const RunSpec& s) {
    std::vector<int64_t> ms;
    for (const RunEvent& e : traced(s, 6).events) {
      if (e.name == "late batch") ms.push_back(std::llround((e.end - e.begin).v * 1e3));
    }
    return ms;
  };
  RunSpec s = waiting_run(2);
  const std::vector<int64_t> before = waits(s);
  ASSERT_GT(before.size(), 50u);
  s.failures = {failure("software", 2e-5, Extent::kProcess)};
  s.checkpoints = {tier("remote", Extent::kSite, 1800)};
  s.checkpoints[0].stall = Seconds(30);
  s.site.hours.assign(24, RunHour{});
  s.site.hours[12].thermal_clock = 0.7;
  const std::vector<int64_t> after = waits(s);
  // A failure or a slower hour may cut one in two, and there is a little less work.
  size_t found = 0, at = 0;
  for (const int64_t wait : after) {
    const auto same =
        std::find(before.begin() + static_cast<std::ptrdiff_t>(at), before.end(), wait);
    if (same == before.end()) continue;
    ++found;
    at = static_cast<size_t>(same - before.begin()) + 1;
  }
  EXPECT_GT(static_cast<double>(found), 0.95 * static_cast<double>(after.size()));
  EXPECT_GT(after.size(), before.size() * 8 / 10);
}

}  // namespace
}  // namespace assay
