// A profiler trace with its diagnosis: device streams, steps, and a track that says why the device
// waited. Chrome's JSON, for ui.perfetto.dev.
#pragma once

#include <iosfwd>

#include "diagnose/trace_causes.h"

namespace assay {

// Streams out as it goes: a trace of any size needs no more memory than it has already.
void write_annotated_trace(const Trace&, const TraceDiagnosis&, std::ostream&);

}  // namespace assay
