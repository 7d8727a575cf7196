#include "base/statistics.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(Statistics, QuantilesAreLinearBetweenOrderStatistics) {
  EXPECT_EQ(quantile({3, 1, 2}, 0.5), 2);
  EXPECT_EQ(quantile({4, 1, 2, 3}, 0.5), 2.5);
  EXPECT_EQ(quantile({7}, 0.05), 7);
  EXPECT_EQ(quantile({1, 2}, 0), 1);
  EXPECT_EQ(quantile({1, 2}, 1), 2);
  EXPECT_NEAR(quantile({0, 10, 20, 30, 40}, 0.95), 38, 1e-12);
}

TEST(Statistics, Moments) {
  EXPECT_EQ(mean({}), 0);
  EXPECT_EQ(mean({1, 2, 6}), 3);
  EXPECT_EQ(variance({5}), 0);
  EXPECT_EQ(variance({1, 2, 3}), 1);
}

}  // namespace
}  // namespace assay
