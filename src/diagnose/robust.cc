#include "diagnose/robust.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/random.h"

namespace assay {
namespace {

// splitmix64: small, seeded, the same on every machine.
class Uniform {
 public:
  explicit Uniform(uint64_t seed) : state_(seed) {}
  double next() {
    state_ += 0x9e3779b97f4a7c15ull;
    return static_cast<double>(mix_bits(state_) >> 11) * 0x1.0p-53;
  }

 private:
  uint64_t state_;
};

struct Cut {
  size_t low_count = 0;
  double explained = 0;  // share of the variance
};

// The best cut of sorted values with at least two on each side.
Cut best_cut(const std::vector<double>& sorted) {
  const size_t n = sorted.size();
  double sum = 0;
  for (const double v : sorted) sum += v;
  const double mean = sum / static_cast<double>(n);
  double total = 0;
  for (const double v : sorted) total += (v - mean) * (v - mean);
  Cut best;
  if (!(total > 0)) return best;
  double left = 0;
  for (size_t i = 1; i < n; ++i) {
    left += sorted[i - 1];
    if (i < 2 || n - i < 2) continue;
    const double k = static_cast<double>(i), rest = static_cast<double>(n - i);
    const double a = left / k - mean, b = (sum - left) / rest - mean;
    const double explained = (k * a * a + rest * b * b) / total;
    if (explained > best.explained) best = {i, explained};
  }
  return best;
}

// How often a uniform sample of this size is cut as well as that.
double chance_of(double explained, size_t n) {
  constexpr size_t kTrials = 2000;
  constexpr size_t kLargest = 200;  // beyond it the statistic hardly varies: about 0.75
  const size_t size = std::min(n, kLargest);
  Uniform random(0x61737361u + size);
  size_t as_good = 0;
  std::vector<double> sample(size);
  for (size_t trial = 0; trial < kTrials; ++trial) {
    for (double& v : sample) v = random.next();
    std::sort(sample.begin(), sample.end());
    as_good += best_cut(sample).explained >= explained ? 1 : 0;
  }
  return static_cast<double>(as_good + 1) / static_cast<double>(kTrials + 1);
}

double middle(const std::vector<double>& sorted, size_t from, size_t to) {
  const size_t n = to - from;
  const size_t half = from + n / 2;
  return n % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

}  // namespace

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return middle(values, 0, values.size());
}

double robust_sigma(const std::vector<double>& values) {
  constexpr double kNormal = 1.4826;  // 1 / 0.6745, the upper quartile of the normal distribution
  const double center = median_of(values);
  std::vector<double> distance;
  for (const double v : values) distance.push_back(std::abs(v - center));
  return kNormal * median_of(std::move(distance));
}

double quantile_of(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  const double rank = q * static_cast<double>(values.size() - 1) + 0.5;
  const size_t at = std::min(values.size() - 1, static_cast<size_t>(std::max(rank, 0.0)));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

std::optional<TwoModes> two_modes(std::vector<double> values) {
  if (values.size() < 5) return std::nullopt;  // four values never reach the level
  std::sort(values.begin(), values.end());
  const Cut cut = best_cut(values);
  if (cut.low_count == 0) return std::nullopt;
  TwoModes modes;
  modes.p_value = chance_of(cut.explained, values.size());
  if (modes.p_value > kModesLevel) return std::nullopt;
  modes.low_count = cut.low_count;
  modes.high_count = values.size() - cut.low_count;
  modes.low = middle(values, 0, cut.low_count);
  modes.high = middle(values, cut.low_count, values.size());
  modes.boundary = (values[cut.low_count - 1] + values[cut.low_count]) / 2;
  return modes;
}

}  // namespace assay
