// A training run by its own log: where the period went, steps that are slow, a run that slowed down
// or stood still, restarts and the work they lost.
//
// A line of the log stands for as many iterations as lines are usually apart. Iterations that come
// again after a restart were lost the first time. Step times are compared among lines of the same
// batch size, since batches grow at the start of a run.
#pragma once

#include <cstdint>
#include <vector>

#include "diagnose/finding.h"
#include "ingest/training_log.h"

namespace assay {

// The period that a log covers. All parts but `wall` are disjoint and sum to it.
struct TrainingPeriod {
  Seconds wall;
  Seconds steps;       // kept iterations, at the usual time
  Seconds slow_steps;  // what kept iterations took beyond the usual time
  Seconds warm_up;     // the same for the first line after a start
  Seconds lost_work;   // iterations that were done again
  Seconds checkpoint, evaluation;
  Seconds start_up;  // from the start of the trainer to its first step, and down before a restart
  Seconds gaps;      // between lines, beyond the steps, and nothing in the log says why
  Seconds other;     // of the wall-clock time, in no line

  int64_t iterations = 0;  // kept
  int64_t repeated = 0;
  int64_t unlogged = 0;  // jumps of the counter: lines that are missing
  int restarts = 0;
  int64_t nan_losses = 0, skipped = 0;
  int64_t log_interval = 1;
  Seconds usual_step;      // median of the lines with the most common batch size
  double usual_batch = 0;  // that size; zero: not stated
};

struct TrainingDiagnosis {
  Analysis analysis;
  TrainingPeriod period;
};

TrainingDiagnosis diagnose_training_log(const TrainingLog&);

}  // namespace assay
