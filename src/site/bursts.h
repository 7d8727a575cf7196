// What load steps cost on a loop whose pump lags, by the temperature of its supply: the link
// between the second-by-second model of site/heat.h and the hours of a run.
//
// A step from rest to full load heats the plates before the flow follows; the parts throttle until
// it does. One step at a supply temperature costs so many seconds of the slowest part, and a job in
// lock-step waits for that. The table is made once for a site; asking it is a look-up.
// docs/models/heat.md.
#pragma once

#include <vector>

#include "site/heat.h"
#include "world/cluster.h"

namespace assay {

class BurstTable {
 public:
  // Supply temperatures between `coldest_c` and `hottest_c` can be asked.
  BurstTable(const Accelerator&, const Cooling&, double coldest_c, double hottest_c);

  // Seconds of full-clock work that the slowest part loses at one load step. Zero for plants
  // without a lagging pump; never less at a warmer supply.
  Seconds lost(double supply_c) const;
  // Share of a day's clocks that is left with the plant's load steps.
  double clock(double supply_c) const;

 private:
  double coldest_c_ = 0;
  double steps_per_day_ = 0;
  std::vector<double> lost_s_;  // by kelvin from the coldest
};

// The loop and the controller of a plant, at one supply temperature.
HeatSetup loop_of(const Accelerator&, const Cooling&, double supply_c);

}  // namespace assay
