// Batches that come so late that every rank waits, each where it is.
//
// Most waits of a data loader's tail are short and come many times an hour: over an hour they are a
// share of every step (data_stall.h). What comes less than once an hour of work on average makes
// days and runs differ, and stands where it is. A fetch that is exceeded `rate` times a step and
// takes L lets steps wait for
//
//   L - D T - (waits of the last D - 1 steps),
//
// the recurrence of data_stall.h with all steps left out that do not wait.
//
// Luck: candidates come once an hour of work that is tried, lost work included, whatever the
// storage; each has a severity v below 1, and takes the latency that is exceeded v times an hour.
// So a deeper prefetch, a hedge or a faster store shortens waits and drops some, but moves none,
// and nothing else that happens to the job changes which step is late. Candidates are drawn by
// halves of the severity, so that those that are never late cost nothing.
#pragma once

#include <optional>

#include "base/random.h"
#include "sim/data_stall.h"
#include "sim/kernel.h"

namespace assay {

// What all runs of a spec share.
struct LateFetches {
  // `step` as it is worked, `hidden` the time behind which one fetch hides, `usual` the excess of
  // `hidden` by waits that are no candidates.
  LateFetches(const DataPath&, double ranks, Seconds step, Seconds hidden, double usual);

  // Work between two candidates on average, and the rate of them a step.
  static constexpr Seconds kApart{kSecondsPerHour};
  static double rare_rate(Seconds step) { return step / kApart; }

  std::optional<SlowestFetch> slowest;  // none: nothing is ever late
  Seconds step;
  Seconds ahead;        // a fetch that takes longer is late
  double window = 0;    // steps whose waits give a fetch more time
  double severity = 0;  // below which a candidate is late
};

struct LateBatch {
  double work = 0;  // nanoseconds of work, lost work included, before it is missed
  Nanoseconds wait = 0;
};

// One after the other, without end; the work of one that never comes is infinite.
class LateBatches {
 public:
  LateBatches(const LateFetches&, uint64_t seed);
  const LateBatch& next() const { return next_; }
  void advance();

 private:
  // Candidates of severities between a power of a half and the next.
  struct Half {
    Stream luck;
    double most;      // severity
    double work = 0;  // of the next candidate
    double severity = 0;
  };
  static void draw(Half&);

  const LateFetches& fetches_;
  std::vector<Half> halves_;
  LateBatch next_;
  std::vector<LateBatch> recent_;  // within the window
};

}  // namespace assay
