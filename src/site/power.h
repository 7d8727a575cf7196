// Power of an accelerator, and what clock a power limit leaves.
// docs/models/power-and-cooling.md.
#pragma once

#include "site/heat.h"
#include "world/node_power.h"

namespace assay {

// Watts that leak above those at 60 C.
double leakage(const GpuThermal&, double junction_c);

// At a load between 0 and 1, a clock relative to full, and a junction temperature.
Watts gpu_power(const GpuThermal&, double load, double clock, double junction_c);

// The clock at which that power is exactly `limit`; 1 where full clock stays below, `kLeastClock`
// where even that is too much.
constexpr double kLeastClock = 0.1;
constexpr double kLeakNeutral = 60;  // C, at which the leakage term is zero
double clock_under_cap(const GpuThermal&, double load, Watts limit, double junction_c);

// The thermal constants of an accelerator: the H200's, with its own limits. Resistances scale so
// that the design's rise at the power limit stays the same.
GpuThermal thermal_of(const Accelerator&);

// Training speed under a power cap at a coolant this much warmer than the reference: -0.11 % a
// kelvin, measured on the H200.
double speed_at(double coolant_c, double reference_c);

}  // namespace assay
