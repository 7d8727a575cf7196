#include "ingest/breakdown.h"

#include <algorithm>
#include <utility>

namespace assay {

Intervals union_of(Intervals any_order) {
  std::sort(any_order.begin(), any_order.end(),
            [](const Interval64& a, const Interval64& b) { return a.start_ns < b.start_ns; });
  Intervals merged;
  for (const Interval64& i : any_order) {
    if (i.end_ns <= i.start_ns) continue;
    if (!merged.empty() && i.start_ns <= merged.back().end_ns) {
      merged.back().end_ns = std::max(merged.back().end_ns, i.end_ns);
    } else {
      merged.push_back(i);
    }
  }
  return merged;
}

Intervals intersect(const Intervals& a, const Intervals& b) {
  Intervals both;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const int64_t start = std::max(a[i].start_ns, b[j].start_ns);
    const int64_t end = std::min(a[i].end_ns, b[j].end_ns);
    if (start < end) both.push_back({start, end});
    a[i].end_ns < b[j].end_ns ? ++i : ++j;
  }
  return both;
}

Intervals subtract(const Intervals& a, const Intervals& b) {
  Intervals rest;
  size_t j = 0;
  for (Interval64 i : a) {
    while (j < b.size() && b[j].end_ns <= i.start_ns) ++j;
    for (size_t k = j; k < b.size() && b[k].start_ns < i.end_ns; ++k) {
      if (i.start_ns < b[k].start_ns) rest.push_back({i.start_ns, b[k].start_ns});
      i.start_ns = std::max(i.start_ns, b[k].end_ns);
    }
    if (i.start_ns < i.end_ns) rest.push_back(i);
  }
  return rest;
}

int64_t length_ns(const Intervals& intervals) {
  int64_t sum = 0;
  for (const Interval64& i : intervals) sum += i.end_ns - i.start_ns;
  return sum;
}

Intervals gaps(const Intervals& busy, int64_t start_ns, int64_t end_ns) {
  if (start_ns >= end_ns) return {};
  return subtract({{start_ns, end_ns}}, busy);
}

namespace {

int64_t saturating_add(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

// Device events come sorted by start, so a union grows at its end.
void extend(Intervals& merged, Interval64 i) {
  if (i.end_ns <= i.start_ns) return;
  if (!merged.empty() && i.start_ns <= merged.back().end_ns) {
    merged.back().end_ns = std::max(merged.back().end_ns, i.end_ns);
  } else {
    merged.push_back(i);
  }
}

struct Unions {
  Intervals all, compute, communication, memory;
  std::vector<std::pair<int32_t, int32_t>> streams;
  size_t streams_most = 4096;  // then equal ones are dropped
};

void count(const DeviceEvent& e, Interval64 cut, Unions& u, Breakdown& b) {
  const int64_t length = cut.end_ns - cut.start_ns;
  extend(u.all, cut);
  if (e.role == Role::kMemory) {
    extend(u.memory, cut);
    b.memory_sum_ns = saturating_add(b.memory_sum_ns, length);
  } else if (e.role == Role::kCommunication) {
    extend(u.communication, cut);
    b.communication_sum_ns = saturating_add(b.communication_sum_ns, length);
  } else {
    extend(u.compute, cut);
    b.compute_sum_ns = saturating_add(b.compute_sum_ns, length);
  }
}

void note_stream(const DeviceEvent& e, Unions& u) {
  const std::pair<int32_t, int32_t> stream(e.device, e.stream);
  if (u.streams.empty() || u.streams.back() != stream) u.streams.push_back(stream);
  if (u.streams.size() < u.streams_most) return;
  std::sort(u.streams.begin(), u.streams.end());
  u.streams.erase(std::unique(u.streams.begin(), u.streams.end()), u.streams.end());
  // A file may claim a stream for every kernel: sorting must stay rare.
  u.streams_most = std::max(u.streams_most, 2 * u.streams.size());
}

void sum_up(Unions& u, Breakdown& b) {
  std::sort(u.streams.begin(), u.streams.end());
  u.streams.erase(std::unique(u.streams.begin(), u.streams.end()), u.streams.end());
  b.streams = static_cast<int64_t>(u.streams.size());
  b.span_ns = b.end_ns - b.start_ns;
  b.busy_ns = length_ns(u.all);
  b.idle_ns = b.span_ns - b.busy_ns;
  b.compute_ns = length_ns(u.compute);
  b.communication_ns = length_ns(u.communication);
  b.memory_ns = length_ns(u.memory);
  b.overlapped_communication_ns = length_ns(intersect(u.communication, u.compute));
  b.exposed_communication_ns = b.communication_ns - b.overlapped_communication_ns;
  const Intervals behind_compute = subtract(u.memory, u.compute);
  b.exposed_memory_ns = length_ns(subtract(behind_compute, u.communication));
}

}  // namespace

Breakdown breakdown(const Trace& trace) { return breakdown(trace, INT64_MIN, INT64_MAX); }

Breakdown breakdown(const Trace& trace, int64_t from_ns, int64_t to_ns) {
  Breakdown b;
  Unions u;
  bool any = false;
  for (const DeviceEvent& e : trace.device) {
    const int64_t end_ns = e.start_ns + e.duration_ns;
    if (e.start_ns >= to_ns || (from_ns != INT64_MIN && end_ns <= from_ns)) continue;
    e.kind == DeviceKind::kKernel ? ++b.kernels : ++b.copies;
    b.communication_kernels += e.role == Role::kCommunication ? 1 : 0;
    note_stream(e, u);
    if (e.duration_ns < 0) {
      ++b.negative_durations;
      continue;
    }
    const Interval64 cut{std::max(e.start_ns, from_ns), std::min(end_ns, to_ns)};
    b.start_ns = any ? std::min(b.start_ns, cut.start_ns) : cut.start_ns;
    b.end_ns = any ? std::max(b.end_ns, cut.end_ns) : cut.end_ns;
    any = true;
    count(e, cut, u, b);
  }
  sum_up(u, b);
  return b;
}

}  // namespace assay
