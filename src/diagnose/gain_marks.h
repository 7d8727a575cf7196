// What the host was doing when it was not calling the device: fetching data, working on values that
// it has read from the device, collecting garbage, or nothing that anybody recorded.
//
// The loader is known by its annotation (`enumerate(DataLoader)#...__next__`) or Python frame, the
// collector by its frame. A stretch of more than a millisecond in which no thread that launches
// work records an operator, a runtime call or an annotation is a pause: input work when the next
// thing to reach the device, in the same step, is a copy from the host; work on what was read when
// the last thing before it was a copy to the host of so many values that they explain it; the
// loader's when its thread that copies batches to pinned memory has just begun, which holds the
// interpreter meanwhile; else the interpreter's own.
#pragma once

#include <cstdint>
#include <string_view>

#include "ingest/breakdown.h"
#include "ingest/trace.h"

namespace assay {

struct HostMarks {
  Intervals data;    // fetching or preparing the next batch
  Intervals pins;    // held by the loader's thread that copies batches to pinned memory
  Intervals reads;   // working on values read from the device
  Intervals pauses;  // garbage collection, or nothing recorded
  bool data_named = false, collection_named = false;
  bool loader_in_process = true;  // no sign of worker processes
  // About an operator was recorded for every operation that was launched, so that silence of the
  // host means something. Else pauses are merely what the file does not tell.
  bool host_recorded = true;
};
HostMarks host_marks(const Trace&);

struct HostSplit {
  int64_t work_ns = 0, data_ns = 0, pin_ns = 0, read_ns = 0, pause_ns = 0;
};
// How [from, to) divides; what comes first in the list has it where several claim it.
HostSplit split_host(const HostMarks&, int64_t from_ns, int64_t to_ns);

bool is_loader(std::string_view name);
bool is_collection(std::string_view name);

}  // namespace assay
