// The exact account of a device's time: unions of intervals in integer nanoseconds.
//
// Definitions: an event with a negative duration counts in no union. span = last end - first start
// over all device events. busy = union of all; idle = span - busy. exposed communication = union of
// communication minus what the union of compute covers. exposed memory = union of copies and sets
// minus what compute and communication cover.
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

struct Breakdown {
  int64_t start_ns = 0, end_ns = 0;
  int64_t span_ns = 0, busy_ns = 0, idle_ns = 0;
  int64_t compute_ns = 0, communication_ns = 0, memory_ns = 0;  // unions
  int64_t overlapped_communication_ns = 0;                      // hidden behind compute
  int64_t exposed_communication_ns = 0, exposed_memory_ns = 0;
  int64_t kernels = 0, copies = 0, streams = 0, negative_durations = 0;
};

// The whole file, all devices together; or only what lies in [from, to), events cut at the edges.
Breakdown breakdown(const Trace&);
Breakdown breakdown(const Trace&, int64_t from_ns, int64_t to_ns);

}  // namespace assay
