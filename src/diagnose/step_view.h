// The steps of a trace, and the one that is looked at.
//
// A step is the host's `ProfilerStep#N` interval; its device work is what it launched, wherever
// that ran. In a steady run both have the same period, and the host's interval is the window. But a
// short profile of few launches never fills the device's queue, and the host runs ahead of a device
// that takes much longer: then the window is the device's, from the start of one step's first work
// to that of the next.
//
// The median step stands for all, unless they are uneven: then time is booked over all of them.
// Steps that began before the first recorded device event are left out where others remain: the
// device may have been busy with work that the profiler did not see, and the profiler's start slows
// the host.
#pragma once

#include <cstdint>
#include <vector>

#include "ingest/trace.h"

namespace assay {

struct StepWindow {
  int64_t from_ns = 0, to_ns = 0;
  int64_t host_from_ns = 0, host_to_ns = 0;  // when the host launched it
};

struct StepView {
  int steps = 0;                   // that launch work; 0: none, and the window is the whole file
  int64_t from_ns = 0, to_ns = 0;  // the median step, or first to last device event
  int64_t fastest_ns = 0, slowest_ns = 0;
  // When the host launched the step: the window itself, unless the device sets the pace.
  int64_t host_from_ns = 0, host_to_ns = 0;
  bool device_paced = false;
  // All whole steps, in order of length, where the slowest takes kUneven times the fastest; else
  // empty. At most kStepsBooked, evenly picked.
  std::vector<StepWindow> uneven;
};
// Assumed: below it the median step speaks for all of them, and is less disturbed.
constexpr double kUneven = 1.2;
constexpr size_t kStepsBooked = 256;

// Steps with a duration that is not positive, and steps that launch nothing, are ignored. A trace
// without device events and steps gives an empty window.
StepView step_view(const Trace&);

}  // namespace assay
