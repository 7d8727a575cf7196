// A device that no longer waits draws more power, and under its power limit its clocks fall: the
// kernels of a starved step are faster than they will be once it is fed. A 410M-parameter model on
// the H200: kernels of 106 ms a step while the loader stalls, 117 ms without the stall.
#pragma once

#include "base/units.h"
#include "diagnose/kernel_table.h"
#include "diagnose/kernel_waste.h"

namespace assay {

// The clock that the device holds when it runs this step once every `period`, over its burst clock:
// perf/clocks.h with the step's own mix of kernels. 1 where the device is unknown.
double held_clock_of(const StepGraph&, const KernelTable&, const DeviceModel&, Seconds period);

// The step with its arithmetic stretched by the fall of the clock from `before` to `after`.
StepGraph at_clock(StepGraph, const KernelTable&, double before, double after);

}  // namespace assay
