// Which kernels move data between ranks: by name, metadata, launching op and stream together (the
// rule is in the .cc). Internal to the Kineto reader, but for the names, which others may ask.
#pragma once

#include <string_view>

#include "ingest/trace.h"

namespace assay {

// Sets `role` of every device event and `collective` of those that communicate.
void assign_roles(Trace&);

bool names_communication_kernel(std::string_view kernel);
bool names_collective_op(std::string_view op_or_annotation);

}  // namespace assay
