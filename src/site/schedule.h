// Which hours of a day to run, and what that is worth: cheap, clean or cool ones.
#pragma once

#include <vector>

#include "site/series.h"
#include "world/site.h"

namespace assay {

struct HourWindow {
  int start = 0;  // first hour, 0 to 23; wraps around midnight
  int hours = 24;
  double mean = 0;  // of the profile within the window
  bool contains(int hour_of_day) const { return (hour_of_day - start + 24) % 24 < hours; }
};

// The window of consecutive hours with the lowest mean. REQUIRES: 24 figures.
HourWindow best_window(const std::vector<double>& profile, int hours);

// Price or carbon of each hour of the day; a flat figure repeated.
std::vector<double> price_profile(const Tariff&);   // dollars per MWh, delivery included
std::vector<double> carbon_profile(const Tariff&);  // grams per kWh

// The window that a policy chooses; all day for `always`. `month` 0 to 11 matters for cool hours.
HourWindow chosen_window(const Site&, int month);

}  // namespace assay
