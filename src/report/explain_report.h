// The chain from a figure to its equation, inputs and sources.
#pragma once

#include "perf/predict.h"
#include "plan/words.h"
#include "report/screen.h"

namespace assay {

// Beside the figure stands `range`, or where that is empty the figure's own: `(43-49)`.
std::string explain_text(const Derivation&, const std::string& figure, const std::string& range,
                         const Style&, const Stamp&);
std::string explain_json(const Derivation&, const std::string& figure, const Stamp&);

}  // namespace assay
