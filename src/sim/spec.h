// From descriptions to a run's numbers: setting, plan and prediction, operations, site -> RunSpec.
//
// Every number that is not stated is derived here, in one place, and said in `assumed`:
//   checkpoint   parameters x (weight + optimizer bytes); state_path.h has its way to storage and
//                back, with the input that shares it.
//   clocks       the step is predicted again at lower clocks,
//   links        with one degraded link,
//   groups       and for every number of elastic replicas (group_steps.h).
//   failures     counts over exposure, by kind; racks, power units, leaves and the site as shocks.
#pragma once

#include "perf/predict.h"
#include "sim/run.h"
#include "site/series.h"
#include "world/describe.h"

namespace assay {

struct SpecInput {
  const Setting* setting = nullptr;
  const Plan* plan = nullptr;  // complete
  const Prediction* prediction = nullptr;
  const Operations* operations = nullptr;
  const Site* site = nullptr;                              // null: none given
  const SiteSeries* series = nullptr;                      // hour by hour; null: a perfect site
  const std::vector<SiteSeries>* other_weather = nullptr;  // of the same hours; null: none
  Seconds period{30 * 86400.0};
  double tokens = 0;  // target; zero: run the whole period
};

struct SpecResult {
  RunSpec spec;
  Bytes checkpoint;  // of the whole job
  Bytes restored;    // what storage serves when all of it starts again
  Bandwidth storage_write, storage_read;
  Bytes storage_capacity;             // zero: not stated
  std::vector<Assumption> assumed;    // what neither the descriptions nor the catalog say
  std::vector<SpecProblem> problems;  // what plan and operations contradict each other in
};

SpecResult make_spec(const SpecInput&);

// Bytes of one complete checkpoint: weights and optimizer, once.
Bytes checkpoint_bytes(const Setting&);

// Problems of a spec in the words of the descriptions (`run.spares`, `site.storage`), with a fix,
// each at the place of the field, or of the nearest mapping above it, that `origins` knows.
Diagnostics spec_problems(const SpecResult&, const Origins& origins = {});

}  // namespace assay
