// The screens and the document of `assay plan`.
#pragma once

#include "plan/study.h"
#include "report/screen.h"

namespace assay {

std::string plan_text(const PlanResult&, const Style&, const Stamp&);
std::string plan_json(const PlanResult&, const Stamp&);

// The first two lines of several screens: what is trained, and on what.
std::string workload_line(const Setting&);
std::string cluster_line(const Setting&);

// `Compute-bound; tensor-parallel traffic is the next limit.`
std::string limit_sentence(const Prediction&);

}  // namespace assay
