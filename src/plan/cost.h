// What a step time means for the whole run: days, accelerator-hours, dollars, kWh.
//
//   steps  = tokens / (sequences per step x tokens per sequence)
//   time   = steps x step time            (no failures, no restarts: `simulate` adds them)
//   cost   = accelerators x price x time
//   energy = nodes x what one draws in this step (world/node_power.h) x PUE x time
//
// Ranges follow from the range of the step time. Where no price is known, the cost is zero and
// `price_known` says so.
#pragma once

#include "plan/words.h"
#include "world/describe.h"

namespace assay {

struct RunFigures {
  double tokens = 0;
  double steps = 0;
  Interval time_s, accelerator_hours, cost_usd, energy_kwh;
  double price_per_hour = 0;  // one accelerator
  bool price_known = false;
  bool price_stated = false;  // by the cluster; else the accelerator's catalog price
  double power_w = 0;         // whole job, at the meter (PUE included)
};

RunFigures run_figures(const Setting&, const Prediction&);
// The same, knowing what was assumed: an assumed price is not a stated one.
RunFigures run_figures(const Description&, const Prediction&);

// The mark of what the calibrated model predicts; of a cost, which rests on a price, too; and of a
// setting that somebody may have stated.
constexpr char kPredicted = 'c';
char cost_mark(const RunFigures&);
char setting_mark(const Description&, const std::string& path);

// Accelerators that the job uses.
int64_t accelerators_used(const Setting&);
// Tokens (samples of a recommendation model) per optimizer step; at least one.
double tokens_per_step(const Workload&);
// With the range that follows from the step time's.
Interval mfu_range(const Prediction&);
Interval tokens_range(const Prediction&);  // per second
// Of the worst rank, in bytes: nine of ten measured peaks lie within it (MemoryUse::kError90).
Interval memory_range(const MemoryUse&);

// Figures beyond those of Predictor::figures(): `days`, `cost`, `energy` and what they rest on.
const std::vector<std::string>& run_figure_names();
// REQUIRES: `figure` is one of run_figure_names(). `step` is the derivation of the step time.
Derivation explain_run(const Description&, const Prediction&, const std::string& figure,
                       Derivation step);

}  // namespace assay
