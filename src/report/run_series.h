// A run through its days: goodput, power, coolant and clocks, as figures, as plots on a screen and
// as counters of a trace.
#pragma once

#include "report/simulate_report.h"

namespace assay {

// One bucket of ManyResult::series. Without a site the coolant is not known.
struct DayPoint {
  double day = 0;  // at which it begins, from zero
  Band goodput;    // over the runs
  Band clock;      // relative to the step's, over the runs
  Watts power;     // at the meter, mean; accelerators that do not step draw what they draw at rest
  double coolant_c = 0, coolant_max_c = 0, outside_c = 0;
};
std::vector<DayPoint> day_series(const SimulateResult&);

// What a node draws at rest, over what it draws while it steps.
double rest_share(const SimulateResult&);

// The four figures as plots, two beside each other where the screen is wide enough; only those that
// are known and move. Empty for runs of less than two days.
std::string series_text(const SimulateResult&, const Style&);

// A figure over time, for a trace.
struct TraceCounter {
  std::string name;                                // with its unit: `facility power, MW`
  std::vector<std::pair<Seconds, double>> values;  // from then on
};
// Of one run that was made with `bucket`.
std::vector<TraceCounter> run_counters(const SimulateResult&, const RunResult&, Seconds bucket);

}  // namespace assay
