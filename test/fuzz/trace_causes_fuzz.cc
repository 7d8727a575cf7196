// Any bytes: a profiler trace is read, and what was read is diagnosed. The ledger's leaves sum to
// the step whatever the file says, and every finding is worth what findings must be.
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/assert.h"
#include "diagnose/infer_steps.h"
#include "diagnose/trace_causes.h"
#include "ingest/kineto.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace assay;
  Diagnostics warnings;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Result<Trace> trace = read_kineto_text(text, "fuzz.json", warnings);
  if (!trace) return 0;
  infer_steps(*trace);
  const TraceDiagnosis d = diagnose_trace(*trace);
  const bool diagnosed = !d.analysis.findings.empty();
  ASSERT(!diagnosed || std::abs(d.step.paid().v - d.step_time.v) <= 1e-6 * (1 + d.step_time.v));
  for (const Finding& f : d.analysis.findings) {
    ASSERT(f.cause == Cause::kHealthy || f.share >= kWorthFixing);
    ASSERT(std::isfinite(f.gain.v) && std::isfinite(f.share));
    for (const Evidence& e : f.evidence) ASSERT(e.rows.size() <= kEvidenceRows);
  }
  return 0;
}
