// A part of scenario.cc: recomputation.
#pragma once

#include "validate/scenario.h"

namespace assay {

// REQUIRES: setting, degrees and stack of the scenario are set.
void apply_recompute(const Run&, Scenario&);

}  // namespace assay
