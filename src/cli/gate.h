// `--fail-if 'mfu < 0.40'`: a figure, a comparison, a number. For CI: a true one means exit 1.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "plan/cost.h"
#include "report/plan_report.h"
#include "report/simulate_report.h"

namespace assay {

struct Gate {
  std::string text;    // as written
  std::string figure;  // a name of gate_figure_names()
  bool below = false;  // `<` or `<=`; else above
  bool or_equal = false;
  double limit = 0;
};

// What gates ask for, in the units of screens: shares, seconds, days, dollars, kWh, GiB. A figure
// that is not known here has no value.
struct GateFigures {
  double mfu = 0, step_time = 0, tokens_per_s = 0, memory = 0;
  std::optional<double> days, gpu_hours, cost, energy;
  std::optional<double> goodput, days_with_failures, cost_with_failures;
};
// Of a plan: `days` and `cost` are of its steps alone, and beside them what weeks make of them.
GateFigures gate_figures(const Prediction&, const RunFigures&, const PlanOutlook&);
// Of simulated runs, means: all of them with failures.
GateFigures gate_figures(const SimulateResult&);

const std::vector<std::string>& gate_figure_names();

tl::expected<Gate, std::string> parse_gate(const std::string& text);

// Why the gate fails, in words; nothing where it does not. A figure that is not known fails it: a
// gate that cannot be asked is no pass.
std::optional<std::string> tripped(const Gate&, const GateFigures&);

}  // namespace assay
