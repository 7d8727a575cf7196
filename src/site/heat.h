// A group of accelerators on one cooling loop, second by second: junctions, cold plates, a pump
// that lags, firmware that throttles, and a controller that reacts, foresees or caps.
// docs/models/heat.md has the equations, the sources and the measured error.
//
// Temperatures are Celsius. Flow is relative to full flow. Clocks are relative to the clock that
// the load runs at when nothing is hot. Deterministic in its seed; luck of the load, of the parts
// and of the forecast come from streams of their own, so controllers can be compared on the same
// day.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "world/site.h"

namespace assay {

// One accelerator: power, thermal resistances to the coolant, what its firmware does when hot.
// Defaults are an H200, measured (test/data/telemetry/h200_thermal.csv.gz) where nothing else is
// said.
inline constexpr double kFlowExponent = 0.8;  // turbulent film, Dittus-Boelter

struct GpuThermal {
  Watts tdp{700};
  Watts idle{119};              // with a context, at full clock
  double clock_exponent = 2.4;  // dynamic power over clock; assumed voltage scaling
  Watts leak{70};               // at 60 C; with the rate below it gives the measured -0.12 %/K
  double leak_per_k = 0.02;
  double die_k_per_w = 0.0344;    // junction to plate, within 0.27 s
  double plate_k_per_w = 0.0092;  // plate to coolant at full flow; grows as flow^-0.8
  double plate_j_per_k = 400;     // heat capacity of a cold plate; assumed
  double coolant_w_per_k = 73;    // heat that the full flow takes per kelvin: 1.5 L/min/kW
  double hbm_k_per_w = 0.0141;    // memory over plate, from the same measurement
  double hbm_offset_k = 7.1;
  double max_c = 87, slowdown_c = 89, shutdown_c = 95, hbm_max_c = 95;
  double hysteresis_k = 3;  // clocks come back below max - this; assumed
  double step_down = 0.03;  // a second, two 15 MHz steps of about 1.0; rate assumed
  double step_up = 0.015;
  double hardware_clock = 0.5;  // of the hardware slowdown
};

struct CoolingLoop {
  double supply_c = 42;
  double swing_k = 2;  // above and below it over a day, highest six hours after it passes the mean
  Seconds pump_tau{90};
  Seconds pump_delay{5};
  double flow_min = 0.35;
  double slew_per_s = 1;  // fastest change of flow
};

// Load alternates between low and busy; durations are log-normal.
struct LoadCycle {
  Seconds low_median{420}, busy_median{1200};
  double sigma_ln = 0.5;
  double low = 0.10;  // of the dynamic power
};

struct HeatControl {
  ThermalControl policy = ThermalControl::kReactive;
  double gain = 0.04;             // flow per kelvin
  double integral_gain = 0.0008;  // flow per kelvin and second
  double target_c = 72;
  // Forecast: a share of load steps is announced ahead of time, with timing noise.
  Seconds lead{120};
  double recall = 0.7;
  Seconds noise{15};
  // Cap: power is held so that the plate stays cool enough this far ahead.
  Seconds cap_horizon{8};
  double cap_margin_k = 0.5;
};

struct HeatSetup {
  GpuThermal gpu;
  CoolingLoop loop;
  LoadCycle load;
  HeatControl control;
  int accelerators = 8;  // in lock-step
  double spread = 0.03;  // of parts' resistances: three standard deviations, normal
  Seconds quiet{60};     // events closer than this are one
};

struct HeatResult {
  double days = 0;
  double load_steps = 0;  // to busy
  double events = 0;      // first accelerator of the group that begins to throttle
  Seconds throttled;      // accelerator-seconds with clocks held down
  Seconds lost_mean;      // of one accelerator
  Seconds lost_slowest;   // of the group: it runs at the pace of its slowest
  double pump_power = 0;  // mean of flow^3
  double hottest_c = 0;   // junction
  double hottest_hbm_c = 0;
  int64_t slowdowns = 0;  // hardware slowdowns
  int64_t shutdowns = 0;
  int64_t steps = 0;  // of the integrator
};

// `days` of the group. Fractions are allowed; start is midnight of an average day.
HeatResult simulate_heat(const HeatSetup&, double days, uint64_t seed);

// The sum over runs with seeds `first`, `first + 1`, ...
HeatResult simulate_heat_runs(const HeatSetup&, double days_each, int runs, uint64_t first);

// Junction at which a steady load at full clocks settles with that flow, leakage included; 1000
// where it runs away.
double steady_junction(const GpuThermal&, double supply_c, double flow);

// The least flow that holds full load below the limit; above 1: there is none.
double critical_flow(const GpuThermal&, const CoolingLoop&);

// How long before a load step the pump must be told. Infinite where full flow is not enough, zero
// where the flow at rest is.
Seconds critical_lead(const GpuThermal&, const CoolingLoop&);

// Share of throttle events that a forecast removes, in closed form: recall x P(lead + noise >=
// critical lead), or none where the plant has no capacity.
double forecast_reduction(const GpuThermal&, const CoolingLoop&, const HeatControl&);

}  // namespace assay
