// What contradicts itself in how a run is operated, although every value is within its limits.
#pragma once

#include "world/rules.h"

namespace assay {

// `value` is what the section was read from; problems are placed there.
void check_operations(const Operations&, const Value& value, Diagnostics&);

}  // namespace assay
