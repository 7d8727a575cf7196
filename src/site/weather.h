// Hours of weather from twelve months of figures.
//
// An hour is the month's mean, a cosine of the day and the day's own anomaly, which is normal with
// the standard deviation that puts the month's stated extreme at its 99.6th percentile. Months flow
// into each other. docs/models/power-and-cooling.md has the error against measured years.
#pragma once

#include <cstdint>

#include "world/site.h"

namespace assay {

constexpr int64_t kHoursPerYear = 8760;

struct WeatherHour {
  double dry_c = 0, wet_c = 0;
};

// Prepared once for a climate; cheap to ask.
class Weather {
 public:
  explicit Weather(const Climate&);

  // Mean of that hour over years; `hour` counts from 1 January and may exceed a year.
  WeatherHour mean(int64_t hour) const;
  // One possible year: seasons and days have anomalies, days correlated with their neighbours.
  WeatherHour sample(int64_t hour, uint64_t seed) const;
  // Share of the year's hours in which the temperature is at or below `limit`.
  double share_below(double limit_c, bool wet) const;
  // The temperature that this share of a year's hours stay below.
  double quantile(double share, bool wet) const;
  // Standard deviations of the anomaly in that hour's month.
  double sigma(int64_t hour, bool wet) const;

 private:
  double base(int64_t hour, bool wet) const;

  struct Month {
    double mean, amplitude, sigma;
  };
  Month dry_[12], wet_[12];
  double warmest_ = 15;
};

// What 99.6 % of a year's hours stay below, as ASHRAE's design conditions are.
WeatherHour design_hour(const Weather&);

int month_of(int64_t hour);     // 0 to 11
int hour_of_day(int64_t hour);  // 0 to 23

}  // namespace assay
