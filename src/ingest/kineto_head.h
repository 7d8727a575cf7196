// What a trace says of itself outside its events: devices, rank, process groups, what was recorded.
// Internal to the Kineto reader.
#pragma once

#include <string_view>

#include "ingest/kineto_scan.h"
#include "ingest/trace.h"

namespace assay {

bool head_key(std::string_view key);  // whether read_head wants its value

// REQUIRES: `value` lies in a window (it is padded).
void read_head(std::string_view key, scan::Slice value, Trace& trace);

}  // namespace assay
