#include "base/random.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/assert.h"

namespace assay {
namespace {

template <size_t N>
double polynomial(const std::array<double, N>& c, double x) {
  double sum = 0;
  for (size_t i = N; i-- > 0;) sum = sum * x + c[i];
  return sum;
}

// M. J. Wichura, Algorithm AS 241: The Percentage Points of the Normal Distribution, Applied
// Statistics 37 (1988): three rational approximations, of degree 7.
constexpr std::array<double, 8> kCentreOver = {3.3871328727963666080e0,  1.3314166789178437745e+2,
                                               1.9715909503065514427e+3, 1.3731693765509461125e+4,
                                               4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                               3.3430575583588128105e+4, 2.5090809287301226727e+3};
constexpr std::array<double, 8> kCentreUnder = {1.0,
                                                4.2313330701600911252e+1,
                                                6.8718700749205790830e+2,
                                                5.3941960214247511077e+3,
                                                2.1213794301586595867e+4,
                                                3.9307895800092710610e+4,
                                                2.8729085735721942674e+4,
                                                5.2264952788528545610e+3};
constexpr std::array<double, 8> kMiddleOver = {
    1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
    3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
    2.27238449892691845833e-2, 7.74545014278341407640e-4};
constexpr std::array<double, 8> kMiddleUnder = {1.0,
                                                2.05319162663775882187e0,
                                                1.67638483018380384940e0,
                                                6.89767334985100004550e-1,
                                                1.48103976427480074590e-1,
                                                1.51986665636164571966e-2,
                                                5.47593808499534494600e-4,
                                                1.05075007164441684324e-9};
constexpr std::array<double, 8> kTailOver = {6.65790464350110377720e0,  5.46378491116411436990e0,
                                             1.78482653991729133580e0,  2.96560571828504891230e-1,
                                             2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                             2.71155556874348757815e-5, 2.01033439929228813265e-7};
constexpr std::array<double, 8> kTailUnder = {1.0,
                                              5.99832206555887937690e-1,
                                              1.36929880922735805310e-1,
                                              1.48753612908506148525e-2,
                                              7.86869131145613259100e-4,
                                              1.84631831751005468180e-5,
                                              1.42151175831644588870e-7,
                                              2.04426310338993978564e-15};

// The series for x < shape + 1, the continued fraction (Lentz) beyond: Abramowitz and Stegun 6.5.29
// and 6.5.31.
constexpr int kIterationsMost = 10000;
constexpr double kTiny = 1e-300;
constexpr double kEpsilon = 1e-16;

double gamma_series(double x, double shape) {
  double term = 1 / shape, sum = term;
  for (int n = 1; n < kIterationsMost && term > sum * kEpsilon; ++n) {
    term *= x / (shape + n);
    sum += term;
  }
  return sum * std::exp(shape * std::log(x) - x - std::lgamma(shape));
}

double gamma_fraction(double x, double shape) {
  double b = x + 1 - shape, c = 1 / kTiny, d = 1 / b, h = d;
  for (int n = 1; n < kIterationsMost; ++n) {
    const double a = -n * (n - shape);
    b += 2;
    d = 1 / (std::abs(a * d + b) < kTiny ? kTiny : a * d + b);
    c = std::abs(b + a / c) < kTiny ? kTiny : b + a / c;
    const double step = c * d;
    h *= step;
    if (std::abs(step - 1) < kEpsilon) break;
  }
  return h * std::exp(shape * std::log(x) - x - std::lgamma(shape));
}

// Scores of the gamma table: +-5 standard deviations, 1/32 apart.
constexpr double kScoreMost = 5;
constexpr double kScoreStep = 1.0 / 32;
constexpr size_t kScores = 2 * static_cast<size_t>(kScoreMost / kScoreStep) + 1;

}  // namespace

double exponential_quantile(double u, double mean) { return -mean * std::log(u); }

double normal_quantile(double u) {
  const double q = u - 0.5;
  if (std::abs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * polynomial(kCentreOver, r) / polynomial(kCentreUnder, r);
  }
  double r = std::sqrt(-std::log(q < 0 ? u : 1 - u));
  double x = 0;
  if (r <= 5) {
    r -= 1.6;
    x = polynomial(kMiddleOver, r) / polynomial(kMiddleUnder, r);
  } else {
    r -= 5;
    x = polynomial(kTailOver, r) / polynomial(kTailUnder, r);
  }
  return q < 0 ? -x : x;
}

double lognormal_quantile(double u, double median, double sigma) {
  return sigma == 0 ? median : median * std::exp(sigma * normal_quantile(u));
}

double log_uniform_quantile(double u, double least, double most) {
  return least * std::pow(most / least, u);
}

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

// E[max] = integral of 1 - F^n above zero minus integral of F^n below it, by Simpson's rule; F^n in
// logarithms, so that n may be any number.
double expected_max_normal(double n) {
  if (n <= 1) return 0;
  constexpr double kReach = 12, kStep = 1.0 / 256;
  const auto power = [&](double x) {
    const double above = normal_cdf(-x);
    return std::exp(n * std::log1p(-above));
  };
  const auto integrand = [&](double x) { return 1 - power(x) - power(-x); };
  double sum = 0;
  for (double x = 0; x < kReach; x += kStep) {
    sum += integrand(x) + 4 * integrand(x + kStep / 2) + integrand(x + kStep);
  }
  return sum * kStep / 6;
}

double gamma_cdf(double x, double shape) {
  if (x <= 0) return 0;
  return x < shape + 1 ? gamma_series(x, shape) : 1 - gamma_fraction(x, shape);
}

// Newton's method in y = ln x, kept inside a bracket: a step that leaves it is a halving instead.
double gamma_quantile(double u, double shape) {
  double low = std::log(shape), high = low;
  while (gamma_cdf(std::exp(low), shape) > u && low > -700) low -= 2 + 1 / shape;
  while (gamma_cdf(std::exp(high), shape) < u && high < 700) high += 1;
  double y = 0.5 * (low + high);
  for (int i = 0; i < 100 && high - low > 1e-14; ++i) {
    const double x = std::exp(y);
    const double error = gamma_cdf(x, shape) - u;
    (error < 0 ? low : high) = y;
    const double slope = std::exp(shape * y - x - std::lgamma(shape));
    const double next = y - error / slope;
    const bool inside = next > low && next < high;
    const double step = (inside ? next : 0.5 * (low + high)) - y;
    y += step;
    if (std::abs(step) < 1e-14 * (1 + std::abs(y))) break;
  }
  return std::exp(y);
}

GammaTable::GammaTable(double shape) : log_value_(kScores) {
  ASSERT(shape >= 0.01);
  for (size_t i = 0; i < kScores; ++i) {
    const double score = -kScoreMost + static_cast<double>(i) * kScoreStep;
    log_value_[i] = std::log(gamma_quantile(normal_cdf(score), shape) / shape);
    if (i > 0) log_value_[i] = std::max(log_value_[i], log_value_[i - 1]);
  }
}

double GammaTable::at_score(double normal_score) const {
  const double score = std::clamp(normal_score, -kScoreMost, kScoreMost);
  const double at = (score + kScoreMost) / kScoreStep;
  const size_t cell = std::min(static_cast<size_t>(at), kScores - 2);
  const double part = at - static_cast<double>(cell);
  return std::exp(log_value_[cell] + part * (log_value_[cell + 1] - log_value_[cell]));
}

}  // namespace assay
