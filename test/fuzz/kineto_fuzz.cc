// Any bytes as a profiler trace: rows that refer to each other only within bounds, in order, and a
// breakdown whose parts add up.
#include <cstdint>

#include "base/assert.h"
#include "ingest/breakdown.h"
#include "ingest/kineto.h"

namespace {

template <class Rows>
void require_index(int32_t index, const Rows& rows) {
  ASSERT(index >= -1 && (index < 0 || static_cast<size_t>(index) < rows.size()));
}

void check_rows(const assay::Trace& t) {
  int64_t last = INT64_MIN;
  for (const assay::DeviceEvent& e : t.device) {
    ASSERT(e.start_ns >= last && e.name < t.strings.size());
    last = e.start_ns;
    require_index(e.launch, t.runtime);
    require_index(e.op, t.host);
    require_index(e.collective, t.collectives);
  }
  for (size_t i = 0; i < t.host.size(); ++i) {
    const assay::HostEvent& e = t.host[i];
    ASSERT(e.parent < static_cast<int32_t>(i) && e.parent >= -1);
    ASSERT(static_cast<size_t>(e.thread) < t.threads.size() && e.shapes < t.strings.size());
    require_index(e.collective, t.collectives);
  }
  for (const assay::RuntimeEvent& e : t.runtime) {
    require_index(e.host, t.host);
    ASSERT(static_cast<size_t>(e.thread) < t.threads.size());
  }
}

void check_breakdown(const assay::Breakdown& b) {
  ASSERT(b.busy_ns >= 0 && b.idle_ns >= 0 && b.busy_ns + b.idle_ns == b.span_ns);
  ASSERT(b.compute_ns <= b.busy_ns && b.communication_ns <= b.busy_ns);
  ASSERT(b.compute_ns + b.exposed_communication_ns + b.exposed_memory_ns == b.busy_ns);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  assay::Diagnostics warnings;
  assay::KinetoLimits limits;
  limits.json_bytes = uint64_t{16} << 20;
  limits.event_bytes = uint64_t{1} << 20;
  const assay::Result<assay::Trace> t =
      assay::read_kineto_text(bytes, "fuzz.json", warnings, limits);
  (void)assay::render(warnings);
  if (!t) return 0;
  check_rows(*t);
  check_breakdown(assay::breakdown(*t));
  return 0;
}
