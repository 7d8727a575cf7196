// Why the device waited: every idle nanosecond of the step's window goes to one cause.
//
// An idle stretch ends with an operation, and that operation was launched by a call. After the call
// the device merely takes up its work (launch latency, the gap between kernels). Before it, the
// stretch belongs to what the host was doing: fetching data, waiting in a synchronising call,
// copying pageable memory, allocating, pausing, or launching.
//
// Launching needs a second look. A host that has just been held (by a synchronisation, a copy, the
// loader) starts from an empty queue, and the device idles at its pace until it is ahead again.
// Over the section between two such holds, the host needs H to launch what the device computes in
// D; only H - D of the idle time is the launches' own, the rest is the price of having been held,
// and goes to the hold.
#pragma once

#include <array>
#include <vector>

#include "diagnose/finding.h"
#include "diagnose/gain_graph.h"
#include "diagnose/gain_marks.h"
#include "diagnose/step_view.h"

namespace assay {

struct IdleGap {
  int64_t start_ns = 0, end_ns = 0;
  Cause cause = Cause::kHealthy;  // of its largest part; kHealthy: nothing explains it
  int32_t next = -1;              // the device event that ended it
};

struct IdleSplit {
  std::array<int64_t, kCauses> by_cause{};
  int64_t unexplained_ns = 0;  // before work launched unseen, or in silence outside any step
  std::vector<IdleGap> gaps;   // the longest first, at most kEvidenceRows
};

// What holds the host in a call of that kind.
Cause cause_of(const HostCall&);

// by_cause and unexplained sum exactly to the window's length less its busy time. `marks` are
// host_marks(trace).
IdleSplit idle_split(const Trace&, const StepView&, const StepGraph&, const HostMarks& marks);

// The sums over several steps, with the longest gaps of all.
void add(const IdleSplit& step, IdleSplit& sum);
// A sum's share of one step; what does not divide evenly goes to the largest part, so that the
// parts still sum to the whole number of nanoseconds that is the mean idle time.
IdleSplit mean(IdleSplit sum, int64_t steps);

}  // namespace assay
