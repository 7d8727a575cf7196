// The screen and the document of `assay scale`.
#pragma once

#include "plan/scale.h"
#include "report/plan_report.h"
#include "report/screen.h"

namespace assay {

// What runs over weeks make of the best plans, one for each size.
struct ScaleOutlook {
  std::vector<PlanOutlook> best;
  // The first doubling that gives less than kDoublingPays with failures: the size before it.
  std::optional<int64_t> break_even;
};
// Fills in the break-even. REQUIRES: as many of `best` as the result has.
void relate_outlook(const ScaleResult&, ScaleOutlook&);

std::string scale_text(const ScaleResult&, const Description&, const Style&, const Stamp&,
                       const ScaleOutlook& = {});
std::string scale_json(const ScaleResult&, const Description&, const Stamp&,
                       const ScaleOutlook& = {});

}  // namespace assay
