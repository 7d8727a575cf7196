// Assembly of one optimizer step from the cost of one micro-batch: host, clocks, pipeline, gradient
// and parameter traffic, optimizer. Pure function; predict.cc keeps what can be kept between plans.
#pragma once

#include <vector>

#include "ledger/ledger.h"
#include "perf/layer.h"
#include "perf/layout.h"
#include "world/setting.h"

namespace assay {

// Traffic of gradients or of weights between data-parallel ranks: `times` a step, each so long on
// the wire, of which so much shows beside computation.
struct Exchange {
  double times = 1, wire = 0, shown = 0;
  // What is hidden still costs computation.
  double cost(double contention) const { return times * (shown + (wire - shown) * contention); }
};

// A collective of an exchange as it was costed, kept only when somebody asks where a figure comes
// from; one exchange has `count` of them.
struct WireRecord {
  bool gradients;
  const char* of;    // layers, experts
  const char* what;  // all-gather
  Bytes each;
  double count;  // passes of a micro-batch that gather among them
  Group group;
  Seconds time;  // of all
};

// Memory-bound work of a step that no layer has: gradients added up, weights cast, experts' weights
// laid out, copies between buffers of collectives and tensors.
struct Moves {
  Seconds added, cast, laid_out, copied;
};

struct Step {
  Ledger ledger;     // one step, per accelerator; its sum is the step time
  double clock = 1;  // held clock over burst clock
  double draw = 0;   // mean power drawn, of (tdp - idle)
  // One micro-batch through the slowest stage, through the mean of them, both with what they wait
  // for the busiest experts, and on to the next (or to the host, where activations are parked); of
  // the mean, the forward pass and the gradients of weights.
  Seconds slowest, mean, hop;
  Seconds forward, weights;
  Exchange gradients, parameters;
  Moves moves;
  double updated = 0;  // parameters that a rank's optimizer steps, on the device or the host
  Bytes update;        // read and written for each, in one kernel
  Seconds tied;  // gradients of a tied embedding, between the ends of a pipeline
};

// The host's work around an optimizer step.
Seconds step_host(const Setting&, const Layout&);

// `record`, where given, receives every collective of both exchanges; the step does not depend on
// it.
Step assemble_step(const Setting&, const Plan&, const Layout&, const Links&, const MicrobatchCost&,
                   std::vector<WireRecord>* record = nullptr);

}  // namespace assay
