// How sure a prediction is: a 90 % range around the median, and whether the plan lies outside
// everything that was measured when the model was calibrated. docs/models/range.md.
#pragma once

#include "ledger/ledger.h"
#include "perf/layout.h"
#include "world/setting.h"

namespace assay {

struct Range {
  double low = 0.85, high = 1.15;  // factors on the median
  double spread = 0.15;            // of its logarithm, without what stretches one end alone or is
                                   // a wait for storage, which no plan changes
  bool extrapolated = false;
  bool experts_wait = false;  // `high` is that of expert layers that wait for the host
};

// No run on any accelerator did better (TPU v5p: `best_share` in catalog/kernels.yaml).
constexpr double kBestShareSeen = 0.715;

// What the host may take for the expert layers of a step; zero where none waits for it.
Seconds expert_host_time(const Setting&, const Plan&, const Layout&);

Range prediction_range(const Setting&, const Plan&, const Layout&, const Ledger&);

// The best MFU that was ever published on such accelerators in that precision; zero: none is known.
double best_measured(const Kernels&, Precision);

}  // namespace assay
