// A cluster at a site through the hours of a period: weather, plant, limits and schedule together.
#pragma once

#include "site/power.h"
#include "site/series.h"
#include "site/weather.h"
#include "world/site.h"

namespace assay {

struct FacilityOptions {
  int64_t start_hour = 0;  // of the year
  int64_t hours = kHoursPerYear;
  uint64_t seed = 0;  // of the weather; zero: the mean of many years
  // What an accelerator draws in the step that runs (Prediction::power); zero: no step is known.
  Watts step_power{};
};

// REQUIRES: a site that the rules of world/site_rules.h accept.
SiteSeries facility_series(const Site&, const Cluster&, const FacilityOptions&);
// How many kinds of weather a run's luck is drawn from: twenty, fewer where a run meets years of it
// anyway.
int64_t weather_count(int64_t hours);
// The same hours in `count` kinds of weather: seeds follow from the options' own, so two sites or
// two plants meet the same ones.
std::vector<SiteSeries> facility_weather(const Site&, const Cluster&, const FacilityOptions&,
                                         int64_t count);

struct FacilityTotals {
  double it_kwh = 0, facility_kwh = 0;
  Dollars energy_cost;
  double carbon_kg = 0, water_l = 0;
  double pue = 1;        // of the period
  Watts highest;         // at the meter
  double running = 0;    // mean share of accelerators that run, scheduled hours
  double clock = 1;      // mean, running hours
  double scheduled = 1;  // share of hours
  double hottest_coolant_c = 0;
};
FacilityTotals totals(const SiteSeries&);

// The share of the contracted power that curtailment leaves in that hour; 1 outside all windows.
double power_left(const Power&, int64_t hour_of_year);

// Sustained clock at that coolant over the one at `reference_c`: leakage under the cap, and the
// junction's limit.
double clock_at_coolant(const Accelerator&, CoolingMethod, double coolant_c, double reference_c);

// The coolant that keeps a junction as warm as air at `inlet_c` does: 25 C in air is about 42 C on
// a cold plate. A step is predicted in air at Cluster::inlet_c, so an hour's clocks are relative to
// this, and a colder supply is never worse, whatever the plant's setpoint.
double coolant_like_air(const Accelerator&, CoolingMethod, double inlet_c);

// How much more often parts fail than at the reference: twice as often every ten kelvin above it.
// Published rates come from machines in air, and colder water is not credited.
double wear_at(double coolant_c, double reference_c);

}  // namespace assay
