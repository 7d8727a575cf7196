// The words and the evidence of a finding in one rank's trace.
#pragma once

#include "diagnose/kernel_waste.h"
#include "diagnose/trace_idle.h"

namespace assay {

// What the text of a finding may draw on.
struct FindingInput {
  const Trace& trace;
  const StepView& view;
  const StepGraph& graph;
  const KernelTable& table;
  const IdleSplit& idle;
  const DeviceModel& device;
  // The mean step over the one that was replayed: prices and kernels' times are of the mean.
  double longer = 1;
};
// A time of the replayed step, of the mean one.
int64_t of_the_mean(const FindingInput&, int64_t ns);

// A cause with its price, as found by the replay.
struct Priced {
  Cause cause = Cause::kHealthy;
  Seconds gain;    // what no other finding counts
  Seconds after;   // the step without it (and without those found before it)
  Seconds base;    // of the step as it is
  Seconds alone;   // what it gives back by itself
  Seconds device;  // memory-bound: of the gain, what the device saves without fewer launches
  // `after` for a host that is faster or slower than the replay's by what is known of it: they
  // differ where the host would then set the pace.
  Seconds fast_host, slow_host;
  Confidence confidence = Confidence::kMedium;
  Waste waste;  // of kernels; empty for the host's causes
  // Another, smaller repair; zero: none. no-tensor-cores: the step with TF32; launch-bound: with an
  // optimizer of one call; memory-bound: with fused norms and activations, uncompiled.
  Seconds alternative;
};

// Title, detail, fix, gain, share, step_after and evidence.
Finding describe(const Priced&, const FindingInput&);

// The one finding of a run without any; of low confidence where idle time is left unexplained.
Finding healthy(const FindingInput&, Seconds step);

}  // namespace assay
