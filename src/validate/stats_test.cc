#include "validate/stats.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

RowResult row(const std::string& source, double measured, double predicted,
              const std::string& sweep = "") {
  RowResult r;
  r.source = source;
  r.usable = true;
  r.measured_s = measured;
  r.predicted_s = predicted;
  r.low_s = predicted * 0.9;
  r.high_s = predicted * 1.1;
  r.sweep = sweep;
  return r;
}

std::vector<const RowResult*> pointers(const std::vector<RowResult>& rows) {
  std::vector<const RowResult*> out;
  for (const RowResult& r : rows) out.push_back(&r);
  return out;
}

TEST(Stats, MedianAndQuantileAsPythonHasThem) {
  EXPECT_EQ(score_median({3, 1, 2}), 2);
  EXPECT_EQ(score_median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(score_quantile({5, 1, 2, 3, 4}, 0.9), 5);
  EXPECT_EQ(score_quantile({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 0.9), 10);
  EXPECT_EQ(score_quantile({7}, 0.9), 7);
}

TEST(Stats, OneSourceByHand) {
  const std::vector<RowResult> rows = {row("a", 1, 1.1), row("a", 1, 0.8), row("a", 1, 1.0),
                                       row("a", 1, 1.3), row("a", 1, 0.95)};
  const GroupStats g = stats_of("source", "a", pointers(rows));
  EXPECT_EQ(g.predicted, 5);
  EXPECT_EQ(g.sources, 1);
  EXPECT_NEAR(*g.median, 0.1, 1e-12);  // of 0, .05, .1, .2, .3
  EXPECT_NEAR(*g.mean, 0.13, 1e-12);
  EXPECT_NEAR(*g.p90, 0.3, 1e-12);
  EXPECT_NEAR(*g.bias, 0.0, 1e-12);      // of -.2, -.05, 0, .1, .3
  EXPECT_NEAR(*g.coverage, 0.6, 1e-12);  // 0.99-1.21, 0.9-1.1 and 0.855-1.045 hold 1
  EXPECT_NEAR(*g.range_width, 0.2, 1e-12);
}

TEST(Stats, SourcesWeighAlikeAndSmallOnesDoNot) {
  std::vector<RowResult> rows;
  for (int i = 0; i < 50; ++i) rows.push_back(row("big", 1, 1.1));
  for (int i = 0; i < 5; ++i) rows.push_back(row("small", 1, 1.3));
  for (int i = 0; i < 4; ++i) rows.push_back(row("tiny", 1, 9));
  const GroupStats g = stats_of("all", "all", pointers(rows));
  EXPECT_EQ(g.sources, 2);
  EXPECT_EQ(g.predicted, 59);
  EXPECT_NEAR(*g.median, 0.2, 1e-12);
  EXPECT_NEAR(*g.bias, 0.2, 1e-12);
}

TEST(Stats, UnusableAndFailedRowsDoNotCount) {
  std::vector<RowResult> rows = {row("a", 1, 2), row("a", 1, 2), row("a", 1, 2)};
  rows[0].usable = false;
  rows[1].status = RunStatus::kUnsupported;
  rows[2].predicted_s.reset();
  const GroupStats g = stats_of("source", "a", pointers(rows));
  EXPECT_EQ(g.rows, 3);
  EXPECT_EQ(g.usable, 2);
  EXPECT_EQ(g.predicted, 0);
  EXPECT_FALSE(g.median);
}

TEST(Stats, RegretOfThePickedPlan) {
  const std::vector<RowResult> rows = {
      row("a", 10, 11, "x"), row("a", 12, 10, "x"), row("a", 20, 30, "x"),  // picks 12, best 10
      row("a", 5, 5, "y"),   row("a", 6, 7, "y"),                           // picks the best
      row("a", 1, 1, "z")};                                                 // no choice
  const std::vector<double> r = regrets(pointers(rows));
  ASSERT_EQ(r.size(), 2u);
  const GroupStats g = stats_of("source", "a", pointers(rows));
  EXPECT_NEAR(*g.regret_max, 0.2, 1e-12);
  EXPECT_NEAR(*g.regret_mean, 0.1, 1e-12);
}

TEST(Stats, MemoryAndOutOfMemory) {
  std::vector<RowResult> rows = {row("a", 1, 1), row("a", 1, 1), row("a", 1, 1)};
  rows[0].measured_mem_gb = 50;
  rows[0].predicted_mem_gb = 55;
  rows[1].failed_for_memory = true;
  rows[1].fits = true;
  rows[2].failed_for_memory = true;
  rows[2].fits = false;
  const GroupStats g = stats_of("source", "a", pointers(rows));
  EXPECT_EQ(g.memory_rows, 1);
  EXPECT_NEAR(*g.memory_median, 0.1, 1e-12);
  EXPECT_EQ(g.oom_rows, 2);
  EXPECT_EQ(g.oom_called_fitting, 1);
}

}  // namespace
}  // namespace assay
