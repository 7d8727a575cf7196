#include "ingest/breakdown.h"

#include <algorithm>

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

}  // namespace assay
