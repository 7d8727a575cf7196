// Work that is done only so that the host can read its result: the norm behind `norm().item()`, the
// comparison and the reduction behind a check for NaN, the histogram of a gradient. Who does not
// read does not compute it either, so it goes with the synchronisation.
#pragma once

#include "diagnose/gain_graph.h"

namespace assay {

// Sets HostCall::for_read, HostCall::kept and StepGraph::anomaly_mode. A read is a call that waits
// for the device inside the step. Going back from it, the launches of its own copy are its own, and
// then those of operators that make a number or a truth of a tensor (kReducers) or compare
// (kComparisons). The first launch of anything else ends it: a loss is the model's, and stays.
void mark_reads(const Trace&, StepGraph&);

// The step without what was only read. In PyTorch's anomaly mode every gradient is checked, and
// every operator of the forward pass keeps the stack it was called from; then its host's work per
// launch is taken to be that of the backward pass, which keeps none.
StepGraph without_reads(StepGraph, const Trace&);

}  // namespace assay
