// A part of scenario.cc: what a run that ran must have done to fit.
#pragma once

#include "validate/scenario.h"

namespace assay {

// `unknown`: nothing says how the framework shards. REQUIRES: all else of the scenario is set.
void fit_sharding(const Run&, bool unknown, Scenario&);
// REQUIRES, for these two: fit_sharding was called.
void fit_state(const Run&, Scenario&);
void fit_recompute(const Run&, Scenario&);

}  // namespace assay
