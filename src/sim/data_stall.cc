#include "sim/data_stall.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace assay {
namespace {

constexpr double kP99Score = 2.3263478740408408;  // normal_quantile(0.99)
// Steps of the recurrence. Each takes another of as many equal strata of luck, in a scrambled
// order: with independent draws the tail's own noise would be two points of stall share, so it is a
// few tenths.
constexpr uint32_t kStepBits = 16;
constexpr int64_t kSteps = int64_t{1} << kStepBits;
// Table of the tail: beyond e^-60 no draw of any cluster comes.
constexpr double kTailMost = 60;
constexpr int kCells = 4096;

struct Latency {
  double log_median, sigma;
  // ln P(one request takes longer than t)
  double log_tail(double t) const {
    if (t <= 0) return 0;
    const double score = sigma > 0 ? (std::log(t) - log_median) / sigma
                                   : (std::log(t) < log_median ? -100.0 : 100.0);
    if (score < 30) return std::log(0.5 * std::erfc(score / std::sqrt(2.0)));
    return -0.5 * score * score - std::log(score * std::sqrt(2 * M_PI));  // asymptotic
  }
};

// The middle of the n-th stratum: a bijection of 16-bit numbers by odd factors and shifts.
double stratum(int64_t n) {
  uint32_t x = static_cast<uint32_t>(n);
  for (const uint32_t factor : {0x9E37u, 0x85EBu, 0xC2B3u}) {
    x = (x * factor + 0x1235u) & 0xFFFFu;
    x ^= x >> 7;
  }
  return (x + 0.5) / static_cast<double>(kSteps);
}

}  // namespace

SlowestFetch::SlowestFetch(const DataPath& d, double ranks) : ranks_(ranks) {
  const double sigma =
      d.latency_p99 > d.latency_median ? std::log(d.latency_p99 / d.latency_median) / kP99Score : 0;
  const Latency one{std::log(d.latency_median.v), sigma};
  const double delay = d.latency_median.v * std::exp(sigma * normal_quantile(d.hedge_quantile));
  const double same = d.hedges > 0 ? d.hedge_same_path : 0;
  const double miss = 1 - d.cached;
  const double low = one.log_median - 9 * sigma - 1e-3;
  const double high = one.log_median + 11 * sigma + 1e-3;
  for (int i = 0; i <= kCells && miss > 0; ++i) {
    const double log_time = low + (high - low) * i / kCells;
    const double t = std::exp(log_time);
    double log_tail = 0;
    for (int64_t k = 0; k <= d.hedges; ++k)
      log_tail += one.log_tail(t - static_cast<double>(k) * delay);
    const double tail = (1 - same) * std::exp(log_tail) + same * std::exp(one.log_tail(t));
    const double minus_log = tail > 0 ? -std::log(miss * tail) : kTailMost;
    log_time_.push_back(log_time);
    minus_log_tail_.push_back(std::min(minus_log, kTailMost));
    if (minus_log >= kTailMost) break;
  }
}

Seconds SlowestFetch::quantile(double u) const { return exceeded_at(-std::log(u)); }

Seconds SlowestFetch::exceeded_at(double rate) const {
  if (log_time_.empty()) return Seconds(0);
  // P(one <= t) = e^(-rate / N), so its tail is 1 - e^(-rate / N).
  const double wanted = -std::log(-std::expm1(-rate / ranks_));
  const auto above = std::upper_bound(minus_log_tail_.begin(), minus_log_tail_.end(), wanted);
  if (above == minus_log_tail_.begin()) return Seconds(0);  // a cache hit, or faster than any
  if (above == minus_log_tail_.end()) return Seconds(std::exp(log_time_.back()));
  const size_t i = static_cast<size_t>(above - minus_log_tail_.begin());
  const double span = minus_log_tail_[i] - minus_log_tail_[i - 1];
  const double part = span > 0 ? (wanted - minus_log_tail_[i - 1]) / span : 0;
  return Seconds(std::exp(log_time_[i - 1] + part * (log_time_[i] - log_time_[i - 1])));
}

DataStall data_stall(const DataPath& d, double ranks, Seconds step, double rare_rate) {
  if (d.latency_median.v <= 0 || step.v <= 0 || d.cached >= 1) return {};
  const SlowestFetch slowest(d, ranks);
  const int64_t depth = std::max<int64_t>(1, d.prefetch);
  // A look-ahead longer than the slowest fetch never runs dry.
  const double ahead = static_cast<double>(depth) * step.v;
  if (slowest.quantile(1 - 0.5 / static_cast<double>(kSteps)).v <= ahead) return {};
  std::vector<double> consumed(static_cast<size_t>(std::min(depth, kSteps)), 0.0);
  double now = 0, rare = 0, usual = 0;
  for (int64_t n = 0; n < kSteps; ++n) {
    const double rate = -std::log(stratum(n));
    const double ready =
        consumed[static_cast<size_t>(n) % consumed.size()] + slowest.exceeded_at(rate).v;
    const double waited = std::max(0.0, ready - (now + step.v));
    now += step.v + waited;
    (rate < rare_rate ? rare : usual) += waited;
    consumed[static_cast<size_t>(n) % consumed.size()] = now;
  }
  const double nominal = static_cast<double>(kSteps) * step.v;
  return {rare / nominal, usual / nominal};
}

Starvation save_starvation(const DataPath& d, const CheckpointTier& t, Seconds interval,
                           Seconds step) {
  if (t.starves <= 0 || t.persist.v <= 0 || interval.v <= 0) return {};
  // Of the time of a starved save, what is not stepped.
  const double waiting = t.starves / (1 + d.starved + t.starves);
  double ahead = 0;  // batches when the save begins; the one that is consumed is not ahead
  if (d.demand > 0 && d.demand < 1 && d.starved <= 0) {
    const Seconds between = std::max(Seconds(0), interval + t.stall - t.persist);
    ahead = std::min(static_cast<double>(std::max<int64_t>(0, d.prefetch - 1)),
                     between / step * (1 / d.demand - 1));
  }
  const Seconds lasts = ahead / waiting * step;
  const Seconds waited = std::max(Seconds(0), t.persist - lasts) * waiting;
  if (waited.v <= 0) return {};
  return {std::min(t.starves * interval, waited), lasts};
}

}  // namespace assay
