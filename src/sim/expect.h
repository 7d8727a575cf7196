// What a run delivers on average, without running it: the closed forms of closed_form.h put
// together for a whole spec. Costs less than a millisecond beside what preparing the spec
// costs; `Simulator` is what it is tested against.
//
//   goodput = places x pool x planned stops x hours x input      (start-up aside)
//
//   places   the product, over the places where checkpoints are kept, of the exact effective time
//            under the failures that this place and no more frequent one survives. What has to be
//            done again because it was not yet persisted, or because a corruption had gone
//            unnoticed, is part of the restart.
//   elastic  instead of restarts, stalls of everyone and replicas that are away. Both begin at
//            random and share their time where they overlap: e^(-rate x duration). Only what takes
//            every replica down goes back to a checkpoint.
//   pool     machines in repair are Poisson whatever the repairs' distribution (M/G/infinity), with
//            the mean that has come up since the start; the job waits while there are more of them
//            than spares.
//   hours    the share of the accelerators that the site lets run.
//   input    what waits for late batches leave (late_batches.h).
//
// Steps are slower than nominal by jitter, data stalls, replays, the site's clocks, and the largest
// excess of the machines that are slow at a time, whose number is Poisson.
//
// To first order only: causes that overlap, spares that are gone together with a rack, jobs that
// wait for a least number of replicas.
#pragma once

#include "sim/run.h"

namespace assay {

struct Expectation {
  double goodput = 1;   // as RunResult::goodput, over `time`
  double slowdown = 1;  // a step over its nominal time, while stepping
  Seconds time{0};      // until the tokens are done, or the period; infinite: never
  Seconds mtbf{0};      // of the job; infinite: nothing fails
  Seconds interval{0};  // work between saves in the safest place; zero: no saves
  // What goodput is the product of: failures and saves; machines that are missing (of the job, or
  // replicas that are away, with everyone's stalls); planned stops; the site's hours; waits for
  // late batches; the start.
  double places = 1, machines = 1, planned = 1, hours = 1, input = 1, start = 1;
};

// REQUIRES: check(spec) is empty.
Expectation expect_run(const RunSpec&);

}  // namespace assay
