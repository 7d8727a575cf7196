// The steps of a recording that marks none: a profiler that was opened around a few of them,
// without a schedule. Each ends with the optimizer (its annotation, or its kernels where the host
// was not recorded), and each launches as much as the others.
#pragma once

#include "ingest/trace.h"

namespace assay {

// Adds an annotation for each step that it finds, and sets steps_inferred. A trace with marked
// steps, with one step only, or whose parts between two updates differ, stays as it is.
void infer_steps(Trace&);
// Steps launch as many operations as one another, to this share.
constexpr double kSameLaunches = 0.05;

}  // namespace assay
