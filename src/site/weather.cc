#include "site/weather.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/assert.h"
#include "base/random.h"

namespace assay {
namespace {

constexpr int kDays[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
constexpr double kPercentile = 0.996;
// The mean of daily ranges is wider than the range of the mean day, since extremes fall at
// different hours: 0.85 to 0.9 over 23 sites and four months (the hourly weather that
// test/data/figures/README.md names).
constexpr double kMeanDay = 0.9;
// Wet-bulb moves less within a day than dry-bulb: 0.3 to 0.4 over the same sites.
constexpr double kWetAmplitude = 0.35;
// Wet-bulb where it is not known: a usual depression, and a third of the day's range.
constexpr double kUsualDepression = 4;
// How much a season's mean differs between years: 0.5 to 1 K over most land in summer (maps of the
// local standard deviation in Hansen, Sato and Ruedy, PNAS 2012, doi 10.1073/pnas.1205276109; read
// from memory), and no more than most of the month's own.
constexpr double kSeasonK = 0.8;
constexpr double kSeasonMost = 0.7;
constexpr int64_t kSeasonHours = kHoursPerYear / 4;
constexpr double kDayToDay = 0.7;  // correlation of neighbouring days; usual in mid-latitudes

double share_of_month(double limit, double mean, double amplitude, double sigma) {
  double share = 0;
  for (int h = 0; h < 24; ++h) {
    const double t = mean + amplitude * std::cos(2 * std::numbers::pi * h / 24);
    share += normal_cdf((limit - t) / sigma) / 24;
  }
  return share;
}

double fit_sigma(double mean, double amplitude, double extreme) {
  double low = 0.2, high = 20;
  for (int i = 0; i < 50; ++i) {
    const double sigma = (low + high) / 2;
    (share_of_month(extreme, mean, amplitude, sigma) > kPercentile ? low : high) = sigma;
  }
  return low;
}

}  // namespace

int month_of(int64_t hour) {
  int64_t day = (hour % kHoursPerYear) / 24;
  int m = 0;
  while (day >= kDays[m]) day -= kDays[m++];
  return m;
}

int hour_of_day(int64_t hour) { return static_cast<int>(hour % 24); }

Weather::Weather(const Climate& c) : warmest_(c.warmest_hour) {
  ASSERT(c.mean_c.size() == 12 && c.range_k.size() == 12);
  for (size_t m = 0; m < 12; ++m) {
    const double amplitude = c.range_k[m] / 2 * kMeanDay;
    const double extreme = c.extreme_c.size() == 12 ? c.extreme_c[m] : c.mean_c[m] + 2 * amplitude;
    dry_[m] = {c.mean_c[m], amplitude, fit_sigma(c.mean_c[m], amplitude, extreme)};
    const bool known = c.wet_mean_c.size() == 12;
    const double wet_mean = known ? c.wet_mean_c[m] : c.mean_c[m] - kUsualDepression;
    const double wet_amplitude = c.range_k[m] / 2 * kWetAmplitude;
    const double wet_extreme = c.wet_extreme_c.size() == 12
                                   ? c.wet_extreme_c[m]
                                   : wet_mean + (extreme - c.mean_c[m]) * 0.6;
    wet_[m] = {wet_mean, wet_amplitude, fit_sigma(wet_mean, wet_amplitude, wet_extreme)};
  }
}

double Weather::base(int64_t hour, bool wet) const {
  const int m = month_of(hour);
  const Month& month = wet ? wet_[m] : dry_[m];
  const double phase = 2 * std::numbers::pi * (hour_of_day(hour) - warmest_) / 24;
  return month.mean + month.amplitude * std::cos(phase);
}

WeatherHour Weather::mean(int64_t hour) const {
  const double dry = base(hour, false);
  return {dry, std::min(dry, base(hour, true))};
}

double Weather::sigma(int64_t hour, bool wet) const {
  const int m = month_of(hour);
  return wet ? wet_[m].sigma : dry_[m].sigma;
}

// The anomaly is a moving average of independent days, so that any hour can be asked for alone.
WeatherHour Weather::sample(int64_t hour, uint64_t seed) const {
  constexpr int kMemory = 12;
  const int64_t day = hour / 24;
  double score = 0, weight = 1, norm = 0;
  for (int i = 0; i < kMemory; ++i) {
    Stream s(seed, cause_id("weather"), static_cast<uint64_t>(day + kMemory - i));
    score += weight * normal_quantile(s.uniform());
    norm += weight * weight;
    weight *= kDayToDay;
  }
  score /= std::sqrt(norm);
  // Seasons differ from year to year as well; the sum of both keeps the month's variance.
  Stream season(seed, cause_id("season"), static_cast<uint64_t>(hour / kSeasonHours));
  const double all = sigma(hour, false);
  const double part = std::min(kSeasonK / all, kSeasonMost);
  score = std::sqrt(1 - part * part) * score + part * normal_quantile(season.uniform());
  const double dry = base(hour, false) + score * all;
  return {dry, std::min(dry, base(hour, true) + score * sigma(hour, true))};
}

double Weather::share_below(double limit_c, bool wet) const {
  double share = 0;
  for (int m = 0; m < 12; ++m) {
    const Month& month = wet ? wet_[m] : dry_[m];
    share += kDays[m] * share_of_month(limit_c, month.mean, month.amplitude, month.sigma) / 365;
  }
  return share;
}

double Weather::quantile(double share, bool wet) const {
  double low = -60, high = 60;
  for (int i = 0; i < 40; ++i) {
    const double t = (low + high) / 2;
    (share_below(t, wet) < share ? low : high) = t;
  }
  return high;
}

WeatherHour design_hour(const Weather& weather) {
  return {weather.quantile(kPercentile, false), weather.quantile(kPercentile, true)};
}

}  // namespace assay
