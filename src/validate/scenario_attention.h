// A part of scenario.cc: attention.
#pragma once

#include "validate/scenario.h"

namespace assay {

// REQUIRES: setting, stack and precision of the scenario are set.
void apply_attention(const Run&, Scenario&);

}  // namespace assay
