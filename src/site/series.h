// A period of a site, hour by hour: what the weather, the plant, the grid and the schedule leave to
// a cluster. Made by site_series() (site/year.h), consumed by the simulator.
//
// Hours are local; hour 0 of the series is `start_hour` of a year that begins on a Monday, 1
// January 00:00, and has no leap day. All arrays are of equal length.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"

namespace assay {

struct SiteHour {
  double outside_c = 0;   // dry-bulb
  double coolant_c = 0;   // supply at the accelerators: Cluster::inlet_c of that hour
  double clock = 1;       // sustained clock over that at the plant's setpoint; heat and cap
  double running = 1;     // share of the accelerators that power and cooling allow
  bool scheduled = true;  // the policy uses this hour
  Watts it_power;         // racks, with the share above running under load, the rest idle
  Watts facility_power;   // at the meter
  EnergyPrice price;
  double carbon_g_per_kwh = 0;
  double water_l_per_kwh = 0;  // per kWh of IT energy
};

// Outages of the whole site: a Poisson process of log-normal durations.
struct OutageProcess {
  double per_year = 0;
  Seconds mean;         // of one
  double sigma_ln = 1;  // of the logarithm of the duration
};

struct SiteSeries {
  int64_t start_hour = 0;  // of the year, 0 to 8759
  std::vector<SiteHour> hours;
  OutageProcess outages;
};

}  // namespace assay
