// A part of scenario.cc: remarks.
#pragma once

#include "validate/scenario.h"

namespace assay {

// REQUIRES: all cells of their own are applied to the scenario.
void apply_remarks(const Remarks&, Scenario&);

}  // namespace assay
