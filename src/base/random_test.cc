#include "base/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/statistics.h"

namespace assay {
namespace {

TEST(Random, StreamsAreNamedAndFixed) {
  // Fixed by value: a change of these bytes changes every simulation that was ever published.
  Stream s(1, cause_id("gpu"), 0);
  EXPECT_EQ(s.bits(), 8167351359742709290ULL);
}

TEST(Random, StreamsDoNotMeet) {
  std::set<uint64_t> seen;
  size_t count = 0;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    for (const char* cause : {"gpu", "nic", "software"}) {
      for (uint64_t index = 0; index < 2000; ++index) {
        Stream s(seed, cause_id(cause), index);
        for (int k = 0; k < 3; ++k, ++count) seen.insert(s.bits());
      }
    }
  }
  EXPECT_EQ(seen.size(), count);
}

// First draws of neighbouring streams must look independent: mean, variance and the correlation
// between neighbours of 1e5 streams within 5 standard errors.
TEST(Random, FirstDrawsOfNeighboursAreIndependent) {
  std::vector<double> u;
  for (uint64_t i = 0; i < 100000; ++i) u.push_back(Stream(7, cause_id("x"), i).uniform());
  EXPECT_NEAR(mean(u), 0.5, 5 * std::sqrt(1.0 / 12 / 1e5));
  EXPECT_NEAR(variance(u), 1.0 / 12, 5 * std::sqrt(1.0 / 180 / 1e5));
  double product = 0;
  for (size_t i = 1; i < u.size(); ++i) product += (u[i] - 0.5) * (u[i - 1] - 0.5);
  EXPECT_NEAR(product / 1e5, 0, 5.0 / 12 / std::sqrt(1e5));
}

TEST(Random, UnitIntervalIsOpen) {
  EXPECT_GT(unit_interval(0), 0);
  EXPECT_LT(unit_interval(~0ULL), 1);
}

// Known points: tables of the normal distribution, and the inverse of what erfc says.
TEST(Random, NormalQuantile) {
  EXPECT_EQ(normal_quantile(0.5), 0);
  EXPECT_NEAR(normal_quantile(0.975), 1.959963984540054, 1e-14);
  EXPECT_NEAR(normal_quantile(0.99), 2.3263478740408408, 1e-14);
  EXPECT_NEAR(normal_quantile(1e-10), -6.361340902404056, 1e-12);
  for (const double u : {1e-15, 1e-6, 0.01, 0.07, 0.2, 0.4, 0.6, 0.925, 0.999}) {
    EXPECT_NEAR(normal_cdf(normal_quantile(u)) / u, 1, 1e-12) << u;
  }
}

TEST(Random, ClosedQuantiles) {
  EXPECT_NEAR(exponential_quantile(std::exp(-2.0), 3), 6, 1e-12);
  EXPECT_NEAR(lognormal_quantile(0.5, 54, 1.9), 54, 1e-12);
  EXPECT_EQ(lognormal_quantile(0.9, 54, 0), 54);
  EXPECT_NEAR(log_uniform_quantile(0.5, 10, 1000), 100, 1e-10);
}

TEST(Random, GammaQuantileInvertsItsDistribution) {
  EXPECT_NEAR(gamma_cdf(1, 1), 1 - std::exp(-1.0), 1e-14);
  EXPECT_NEAR(gamma_cdf(2, 0.5), std::erf(std::sqrt(2.0)), 1e-14);
  EXPECT_NEAR(gamma_cdf(30, 20), 0.9781265315586092, 1e-12);
  for (const double shape : {0.05, 0.5, 1.0, 3.0, 200.0}) {
    for (const double u : {1e-4, 0.1, 0.5, 0.9, 0.9999}) {
      EXPECT_NEAR(gamma_cdf(gamma_quantile(u, shape), shape) / u, 1, 1e-9) << shape << " " << u;
    }
  }
}

TEST(Random, GammaTableFollowsTheQuantile) {
  for (const double shape : {0.2, 0.5, 2.0}) {
    const GammaTable table(shape);
    double sum = 0, last = 0;
    constexpr int kPoints = 20000;
    for (int i = 0; i < kPoints; ++i) {
      const double value = table((i + 0.5) / kPoints);
      EXPECT_GE(value, last);
      sum += last = value;
    }
    EXPECT_NEAR(sum / kPoints, 1, 0.003) << shape;
    for (const double u : {0.01, 0.3, 0.5, 0.8, 0.99, 0.9999}) {
      EXPECT_NEAR(table(u) / (gamma_quantile(u, shape) / shape), 1, 0.002) << shape << " " << u;
    }
  }
}

TEST(Random, LargestOfManyNormals) {
  EXPECT_EQ(expected_max_normal(1), 0);
  EXPECT_NEAR(expected_max_normal(2), 1 / std::sqrt(M_PI), 1e-9);
  EXPECT_NEAR(expected_max_normal(3), 1.5 / std::sqrt(M_PI), 1e-9);
  EXPECT_NEAR(expected_max_normal(1024), 3.23, 0.02);
  EXPECT_NEAR(expected_max_normal(8192), 3.79, 0.02);
  EXPECT_NEAR(expected_max_normal(16384), 3.96, 0.02);
}

}  // namespace
}  // namespace assay
