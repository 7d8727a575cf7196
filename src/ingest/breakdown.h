// The exact account of a device's time: unions of intervals in integer nanoseconds.
//
// Definitions: an event with a negative duration counts in `negative_durations` and nowhere else.
// span = last end - first start over all device events. busy = union of all; idle = span - busy.
// exposed communication = union of communication minus what the union of compute covers. exposed
// memory = union of copies and sets minus what compute and communication cover.
#pragma once

#include <vector>

#include "ingest/trace.h"

namespace assay {

struct Interval64 {
  int64_t start_ns = 0, end_ns = 0;
};
using Intervals = std::vector<Interval64>;  // sorted, disjoint, none empty

Intervals union_of(Intervals any_order);
Intervals subtract(const Intervals&, const Intervals&);
Intervals intersect(const Intervals&, const Intervals&);
int64_t length_ns(const Intervals&);

// What `busy` leaves of [start, end): the gaps, in order.
Intervals gaps(const Intervals& busy, int64_t start_ns, int64_t end_ns);

struct Breakdown {
  int64_t start_ns = 0, end_ns = 0;
  int64_t span_ns = 0, busy_ns = 0, idle_ns = 0;
  int64_t compute_ns = 0, communication_ns = 0, memory_ns = 0;  // unions
  int64_t overlapped_communication_ns = 0;                      // hidden behind compute
  int64_t exposed_communication_ns = 0, exposed_memory_ns = 0;
  // Durations added up, whatever overlaps; negative ones left out. Saturates at 2^63 - 1.
  int64_t compute_sum_ns = 0, communication_sum_ns = 0, memory_sum_ns = 0;
  int64_t kernels = 0, copies = 0, streams = 0, negative_durations = 0;
  int64_t communication_kernels = 0;  // of `kernels`
};

// The whole file, all devices together; or only what lies in [from, to), events cut at the edges.
// `copies` counts copies and sets; `streams` counts pairs of device and stream.
Breakdown breakdown(const Trace&);
Breakdown breakdown(const Trace&, int64_t from_ns, int64_t to_ns);

}  // namespace assay
