// What one rank's profiler trace says of a training step: where the time went, why the device
// waited or worked in vain, and what each repair would give back.
//
// The passes, in order:
//   1. step_view    finds the steps of the file and takes the median one (or the whole file).
//   2. kernel_class says what every kernel is.
//   3. trace_ledger books the step, to the nanosecond, in the accounts of src/ledger.
//   4. idle causes  gives every idle nanosecond of the device to what the host was doing.
//   5. gain         replays the step with one cause removed and everything else kept.
// A cause becomes a finding when the replay gives back kWorthFixing of the step, both by itself and
// on top of those found before it; the smaller of the two is its gain, so the gains of the findings
// never count anything twice.
#pragma once

#include <array>

#include "diagnose/finding.h"
#include "ingest/breakdown.h"
#include "ingest/trace.h"
#include "world/accelerator.h"
#include "world/kernels.h"

namespace assay {

// What is known beside the file. Null: looked up in the catalog by the trace's device name; where
// that fails too, rules that need the device's peaks are left out and a note says so.
struct TraceContext {
  const Accelerator* accelerator = nullptr;
  const Kernels* kernels = nullptr;
};

// A stretch in which the device waited, and what for; kHealthy: nothing explains it.
struct CauseSpan {
  int64_t start_ns = 0, end_ns = 0;
  Cause cause = Cause::kHealthy;
};

struct TraceDiagnosis {
  Breakdown whole;   // the whole file, as breakdown(trace)
  Breakdown window;  // of the step that was looked at
  Ledger step;       // its ledger; leaves sum to step_time
  // Measured: the median step, or the mean where steps are uneven; the whole file where it has
  // none.
  Seconds step_time;
  // The slowest step takes kUneven times the fastest: `step`, idle_ns and `unexplained` are means
  // over all whole steps, in nanoseconds that sum exactly; `window` is still the median's.
  bool uneven = false;
  Seconds spread;                  // between the slowest and the fastest step
  int steps = 0;                   // 0: the file has none, and the whole file was looked at
  int64_t from_ns = 0, to_ns = 0;  // the median step

  // Idle time of the step by cause; with `unexplained` they sum to its length less its busy time.
  std::array<int64_t, kCauses> idle_ns{};
  Seconds unexplained;           // idle time that no rule could give to a cause
  std::vector<CauseSpan> spans;  // the longest idle stretches, at most kEvidenceRows

  // The same step replayed without any change: how far the replay is to be trusted.
  Seconds replayed;

  std::string accelerator;  // catalog name that the peaks were taken from; empty: unknown
  Analysis analysis;        // findings ranked by gain; exactly one `healthy` when there is none
};

// Never fails: a trace without device events gives an empty diagnosis with a note and no finding.
TraceDiagnosis diagnose_trace(const Trace&, const TraceContext& = {});

}  // namespace assay
