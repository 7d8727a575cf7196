// Assembly of one optimizer step from the cost of one micro-batch: host, clocks, pipeline, gradient
// and parameter traffic, optimizer. Pure function; predict.cc keeps what can be kept between plans.
#pragma once

#include "ledger/ledger.h"
#include "perf/layer.h"
#include "perf/layout.h"
#include "world/setting.h"

namespace assay {

struct Step {
  Ledger ledger;     // one step, per accelerator; its sum is the step time
  double clock = 1;  // held clock over burst clock
  double draw = 0;   // mean power drawn, of (tdp - idle)
  // One micro-batch through the slowest stage, through the mean of them, both with what they wait
  // for the busiest experts, and on to the next (or to the host, where activations are parked); of
  // the mean, the forward pass and the gradients of weights.
  Seconds slowest, mean, hop;
  Seconds forward, weights;
};

// The host's work around an optimizer step.
Seconds step_host(const Setting&, const Layout&);

Step assemble_step(const Setting&, const Plan&, const Layout&, const Links&, const MicrobatchCost&);

}  // namespace assay
