// Makes a trace of rows: sorts them, finds each host event's parent, each device event's launch
// call and the op behind it, and the steps. Internal to the Kineto reader; every cost is linear but
// the sorting, whatever the file holds.
#pragma once

#include "ingest/trace.h"

namespace assay {

void join(Trace&);

}  // namespace assay
