// The part of a plan's screen that compares it with a run of it: `validate --row`.
#pragma once

#include "plan/study.h"
#include "report/json.h"
#include "report/screen.h"

namespace assay {

// How a measured run compares with its prediction, and what its row left open. Empty: none was.
std::string measured_text(const PlanResult&, const Style&);
Json measured_json(const MeasuredRun&);

}  // namespace assay
