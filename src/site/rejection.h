// How heat leaves the site: what supply temperature the plant can hold in given weather, what it
// draws for that, and how much water it takes.
#pragma once

#include "site/weather.h"

namespace assay {

struct PlantState {
  double supply_c = 0;    // at the accelerators; the setpoint where the plant can hold it
  double heat_share = 1;  // of the asked heat that can be rejected below supply_max_c
  Watts fans, pumps, chiller;
  double water_l_per_h = 0;
  bool free_cooling = false;  // no chiller runs
  Watts power() const { return fans + pumps + chiller; }
};

// The plant under a heat load. `rated` is the heat that approaches and shares are stated at.
PlantState plant_at(const Cooling&, const WeatherHour&, Watts heat, Watts rated);

// Heat that the plant can reject at that weather without going above supply_max_c; `rated` where
// the plant states no capacity.
Watts plant_capacity(const Cooling&, const WeatherHour&, Watts rated);

// Facility power over IT power.
double pue(const PlantState&, Watts it, double ups_loss);

}  // namespace assay
