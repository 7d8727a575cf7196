#include "cli/site_levers.h"

#include <algorithm>

#include <fmt/format.h>

namespace assay {
namespace {

// Of a forecast that one could have: what the story of the lagging pump tells.
constexpr Seconds kLead{120};
constexpr double kRecall = 0.7;
constexpr double kMorePower = 1.2;

struct Variant {
  std::string name, change;
  std::vector<std::string> settings;
};

std::vector<Variant> variants(const Site& site) {
  std::vector<Variant> all;
  const Cooling& c = site.cooling;
  if (c.rejection != HeatRejection::kChiller && !c.trim_chiller)
    all.push_back({"trim chiller", "none -> in hot hours", {"site.cooling.trim_chiller=true"}});
  if (c.method == CoolingMethod::kDirectLiquid && c.pump_tau.v > 0 &&
      c.control == ThermalControl::kReactive) {
    all.push_back(
        {"pump control",
         fmt::format("reactive -> {:.0f} % of load steps foreseen", 100 * kRecall),
         {"site.cooling.control=forecast", fmt::format("site.cooling.forecast_lead={:g}s", kLead.v),
          fmt::format("site.cooling.forecast_recall={:g}", kRecall)}});
  }
  const double megawatts = kMorePower * site.power.contracted.v / 1e6;
  all.push_back({"contracted power",
                 fmt::format("{:.3g} -> {:.3g} MW", site.power.contracted.v / 1e6, megawatts),
                 {fmt::format("site.power.contracted={:.6g}MW", megawatts)}});
  return all;
}

bool same_hours(const SiteSeries& a, const SiteSeries& b) {
  for (size_t i = 0; i < a.hours.size(); ++i) {
    const SiteHour &x = a.hours[i], &y = b.hours[i];
    if (x.thermal_clock != y.thermal_clock || x.running != y.running || x.cap_clock != y.cap_clock)
      return false;
  }
  return true;
}

bool same_weather(const std::vector<SiteSeries>& a, const std::vector<SiteSeries>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_hours);
}

}  // namespace

std::vector<Lever> site_levers(const SpecInput& input, const FacilityOptions& options) {
  std::vector<Lever> levers;
  for (Variant& v : variants(*input.site)) {
    Operations run = *input.operations;
    Site site = *input.site;
    if (!lay_over(v.settings, catalog(), run, site).empty()) continue;
    std::vector<SiteSeries> weather =
        facility_weather(site, input.setting->cluster, options, weather_count(options.hours));
    const SiteSeries series = std::move(weather.back());
    weather.pop_back();
    if (same_hours(*input.series, series) && same_weather(*input.other_weather, weather)) continue;
    SpecInput other = input;
    other.site = &site;
    other.series = &series;
    other.other_weather = &weather;
    levers.push_back({v.name, v.change, std::move(v.settings), make_spec(other).spec});
  }
  return levers;
}

}  // namespace assay
