// A period of a site, hour by hour: what the weather, the plant, the grid and the schedule leave to
// a cluster. Made by facility_series() (site/facility.h); an adapter turns it into the hours of a
// simulated run (sim/run.h).
//
// Hours are local; the first is `start_hour` of a year that begins on 1 January 00:00 and has no
// leap day.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"

namespace assay {

struct SiteHour {
  double outside_c = 0;         // dry-bulb
  double coolant_c = 0;         // supply at the accelerators: Cluster::inlet_c of that hour
  double thermal_clock = 1;     // clocks over those in air at Cluster::inlet_c, held down by heat
  double cap_clock = 1;         // and by the facility's power cap; both multiply
  double wear = 1;              // failure rate of parts over that at the reference temperature
  double running = 1;           // share of the accelerators that power and cooling allow
  bool scheduled = true;        // the policy uses this hour
  Watts it_power;               // racks: the running share under load, the rest at rest
  Watts facility_power;         // at the meter
  EnergyPrice price;            // delivered
  double carbon_g_per_kwh = 0;  // at the meter
  double water_l = 0;           // evaporated in this hour
};

struct SiteSeries {
  int64_t start_hour = 0;  // of the year, 0 to 8759
  std::vector<SiteHour> hours;
};

}  // namespace assay
