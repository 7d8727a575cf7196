#include "site/schedule.h"

#include <numeric>

#include "base/assert.h"
#include "site/weather.h"

namespace assay {
namespace {

constexpr int kDay = 24;

HourWindow window(const std::vector<double>& profile, int hours, double sign) {
  ASSERT(profile.size() == kDay && hours >= 1 && hours <= kDay);
  HourWindow best;
  for (int start = 0; start < kDay; ++start) {
    double sum = 0;
    for (int i = 0; i < hours; ++i) sum += profile[static_cast<size_t>((start + i) % kDay)];
    const double mean = sum / hours;
    if (start == 0 || sign * mean < sign * best.mean) best = {start, hours, mean};
  }
  return best;
}

}  // namespace

HourWindow best_window(const std::vector<double>& profile, int hours) {
  return window(profile, hours, 1);
}
std::vector<double> price_profile(const Tariff& t) {
  constexpr double kPerMwh = 1000 * kJoulesPerKwh;
  std::vector<double> profile(kDay, t.flat.v * kPerMwh);
  if (t.flat.v <= 0 && t.usd_per_mwh.size() == kDay) profile = t.usd_per_mwh;
  for (double& p : profile) p += t.delivery.v * kPerMwh;
  return profile;
}

std::vector<double> carbon_profile(const Tariff& t) {
  if (t.carbon_g_per_kwh.size() == kDay) return t.carbon_g_per_kwh;
  return std::vector<double>(kDay, t.carbon_g_per_kwh.empty() ? 0 : t.carbon_g_per_kwh[0]);
}

HourWindow chosen_window(const Site& site, int month) {
  const int hours = static_cast<int>(site.schedule.hours);
  switch (site.schedule.policy) {
    case HourPolicy::kAlways:
      return {};
    case HourPolicy::kCheapHours:
      return best_window(price_profile(site.power.tariff), hours);
    case HourPolicy::kCleanHours:
      return best_window(carbon_profile(site.power.tariff), hours);
    case HourPolicy::kCoolHours:
      break;
  }
  const Weather weather(site.climate);
  std::vector<double> outside;
  int64_t hour = 0;
  while (month_of(hour) != month) hour += kDay;
  for (int h = 0; h < kDay; ++h) outside.push_back(weather.mean(hour + h).dry_c);
  return best_window(outside, hours);
}

}  // namespace assay
