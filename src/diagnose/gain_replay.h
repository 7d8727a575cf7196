// Replays a step graph: when would the device and the host have been done?
//
// A call starts when the call before it has returned and the host's work between them is done. An
// operation starts when the one before it in its stream has ended (and the gap between kernels has
// passed), its launch has reached the device, and the operation of another stream that it waits for
// has ended. A synchronising call returns when the device has caught up; a launch returns when the
// device's queue has room. The step is repeated until the period is steady, for a host that runs
// ahead fills the queue only after some steps.
#pragma once

#include "base/units.h"
#include "diagnose/gain_graph.h"

namespace assay {

struct ReplayOptions {
  // The host's work and calls are multiplied by this: the profiler slows the host, never the
  // device, so what must hold without the profiler is replayed with a faster host as well.
  double host_scale = 1;
};

// The period of the step, or the time of the whole file where it does not repeat.
Seconds replay(const StepGraph&, const ReplayOptions& = {});

}  // namespace assay
