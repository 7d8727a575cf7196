#include "sim/late_batches.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace assay {
namespace {

// The rarest candidates come once in 2^24 hours of work, longer than anybody runs.
constexpr uint64_t kHalves = 24;
// Longer than any answer is waited for; keeps sums of times within their range.
constexpr Seconds kWaitMost{kSecondsPerYear};

}  // namespace

LateFetches::LateFetches(const DataPath& d, double ranks, Seconds worked, Seconds hidden,
                         double usual)
    : step(worked) {
  if (d.latency_median.v <= 0 || hidden.v <= 0 || d.cached >= 1) return;
  const double depth = static_cast<double>(std::max<int64_t>(1, d.prefetch));
  window = depth - 1;
  ahead = hidden * (depth + window * usual);
  const SlowestFetch all(d, ranks);
  const auto late = [&](double v) { return all.exceeded_at(v * rare_rate(step)) > ahead; };
  const double least = std::ldexp(1.0, -static_cast<int>(kHalves));
  if (!late(least)) return;
  double low = least, high = 1;
  if (late(high)) low = high;
  while (high - low > 1e-12) {
    const double middle = (low + high) / 2;
    (late(middle) ? low : high) = middle;
  }
  severity = high;
  slowest = all;
}

LateBatches::LateBatches(const LateFetches& f, uint64_t seed) : fetches_(f) {
  double most = 1;
  for (uint64_t i = 0; f.slowest && i < kHalves; ++i, most /= 2) {
    if (most / 2 >= f.severity) continue;  // never late
    halves_.push_back({Stream(seed, cause_id("late batch"), i), most});
    draw(halves_.back());
  }
  advance();
}

void LateBatches::draw(Half& h) {
  const double apart = LateFetches::kApart.v * kNanosecondsPerSecond / (h.most / 2);
  h.work += exponential_quantile(h.luck.uniform(), apart);
  h.severity = h.most * (1 - h.luck.uniform() / 2);
}

void LateBatches::advance() {
  next_ = {std::numeric_limits<double>::infinity(), 0};
  const double window = fetches_.window * fetches_.step.v * kNanosecondsPerSecond;
  while (!halves_.empty()) {
    Half& first = *std::min_element(halves_.begin(), halves_.end(),
                                    [](const Half& a, const Half& b) { return a.work < b.work; });
    const double work = first.work, severity = first.severity;
    if (work > static_cast<double>(kTimeMax)) return;  // nor will any later one come
    draw(first);
    if (severity >= fetches_.severity) continue;
    std::erase_if(recent_, [&](const LateBatch& b) { return b.work < work - window; });
    const double rate = severity * LateFetches::rare_rate(fetches_.step);
    Seconds wait = fetches_.slowest->exceeded_at(rate) - fetches_.ahead;
    for (const LateBatch& b : recent_) wait -= to_seconds(b.wait);
    if (to_ns(wait) <= 0) continue;
    next_ = {work, to_ns(std::min(wait, kWaitMost))};
    recent_.push_back(next_);
    return;
  }
}

}  // namespace assay
