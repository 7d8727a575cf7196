// The document of a simulated run, for documents that hold several. Only for the .cc files of
// report/.
#pragma once

#include "report/json.h"
#include "report/simulate_report.h"

namespace assay {

// Adds everything about the run to `doc`.
Json simulate_document(const SimulateResult&, Json doc);

}  // namespace assay
