// A part of scenario.cc: what a row says that was not taken as it stands.
#pragma once

#include "validate/scenario.h"

namespace assay {

// Adds to `assumed`. REQUIRES: everything else of the scenario is set.
void tell_unread(const Run&, Scenario&);

}  // namespace assay
