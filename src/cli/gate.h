// `--fail-if 'mfu < 0.40'`: a figure, a comparison, a number. For CI: a true one means exit 1.
#pragma once

#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "plan/cost.h"

namespace assay {

struct Gate {
  std::string text;    // as written
  std::string figure;  // mfu, step_time, tokens_per_s, days, gpu_hours, cost, energy, memory
  bool below = false;  // `<` or `<=`; else above
  bool or_equal = false;
  double limit = 0;
};

// Figures in the units of JSON: shares, seconds, days, dollars, kWh, GB.
tl::expected<Gate, std::string> parse_gate(const std::string& text);

// Whether the condition holds, so that the gate fails.
bool tripped(const Gate&, const Prediction&, const RunFigures&);

}  // namespace assay
