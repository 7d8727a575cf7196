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

// `Compute-bound; next limit: tensor-parallel traffic (8.9 %).`
std::string limit_sentence(const Prediction&);

}  // namespace assay
