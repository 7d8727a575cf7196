// Statistics that a few bad values cannot move, and a test for two modes.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace assay {

double median_of(std::vector<double> values);  // 0 when there are none
// 1.4826 times the median distance to the median: the standard deviation of a normal sample.
double robust_sigma(const std::vector<double>& values);
double quantile_of(std::vector<double> values, double q);  // nearest rank; 0 when there are none

struct TwoModes {
  double low = 0, high = 0;  // medians of the two
  double boundary = 0;       // half-way between the nearest members
  size_t low_count = 0, high_count = 0;
  double p_value = 1;
};

// Whether the values fall into two groups, with at least two members each, at a significance of
// kModesLevel; none otherwise. How far apart the groups must be to matter is the caller's question.
//
// The statistic is the share of the variance that the best cut into two explains. The null is the
// uniform distribution, the flattest that still has one mode (as for Hartigan's dip): any other
// single mode is more concentrated, and a cut explains less of it. Its distribution for n values is
// found by simulation with fixed seeds, so that the same values always give the same answer.
std::optional<TwoModes> two_modes(std::vector<double> values);
constexpr double kModesLevel = 0.01;

}  // namespace assay
