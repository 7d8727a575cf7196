// Quantiles and moments of samples, by definitions that do not depend on the library.
#pragma once

#include <vector>

namespace assay {

// Linear between order statistics (Hyndman and Fan's type 7). REQUIRES: sorted, not empty.
double sorted_quantile(const std::vector<double>& sorted, double q);

// The same of any order.
double quantile(std::vector<double> values, double q);

double mean(const std::vector<double>&);      // zero when empty
double variance(const std::vector<double>&);  // of the population it was drawn from; zero below two

}  // namespace assay
