// A part of scenario.cc: cells that are blank because the notes state them.
#pragma once

#include "validate/scenario.h"

namespace assay {

// The run with sharding and attention from its notes where their cells, and the framework's name,
// say nothing: only from clauses of a few words that are about nothing else.
Run with_notes(Run);

// What everything free that the row holds says, its task and model's name included.
Remarks remarks_of(const Run&);

}  // namespace assay
