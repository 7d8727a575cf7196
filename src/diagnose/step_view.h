// The steps of a trace, and the one that is looked at.
//
// A step is the host's `ProfilerStep#N` interval. Its device work is what it launched, wherever
// that ran; in a steady run both have the same period. The median step stands for all. Steps that
// began before the first recorded device event are left out where others remain: the device may
// have been busy with work that the profiler did not see, and the profiler's start slows the host.
#pragma once

#include <cstdint>
#include <vector>

#include "ingest/trace.h"

namespace assay {

struct StepView {
  int steps = 0;                   // that launch work; 0: none, and the window is the whole file
  int64_t from_ns = 0, to_ns = 0;  // the median step, or first to last device event
  int64_t fastest_ns = 0, slowest_ns = 0;
};

// Steps with a duration that is not positive, and steps that launch nothing, are ignored. A trace
// without device events and steps gives an empty window.
StepView step_view(const Trace&);

}  // namespace assay
