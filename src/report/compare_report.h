// The screen and the document of `assay compare`.
#pragma once

#include "plan/compare.h"
#include "report/plan_report.h"

namespace assay {

// `outlook` is what weeks make of each side, in their order; empty: nobody asked.
std::string compare_text(const Comparison&, const Style&, const Stamp&,
                         const std::vector<PlanOutlook>& outlook = {});
std::string compare_json(const Comparison&, const Stamp&,
                         const std::vector<PlanOutlook>& outlook = {});

}  // namespace assay
