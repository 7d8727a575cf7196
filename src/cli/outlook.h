// What a run of a plan would deliver over weeks, for the screen of `plan`.
#pragma once

#include "report/plan_report.h"
#include "report/scale_report.h"

namespace assay {

// By the closed forms of sim/expect.h, for the plan and the runner-up. Operations are those of the
// description, else the catalog's usual ones; nothing is estimated where they contradict the plan,
// and `why_not` says so.
PlanOutlook plan_outlook(const PlanResult&, const std::string& seed);

// The same for the best plan of each size.
ScaleOutlook scale_outlook(const Description&, const ScaleResult&, const std::string& seed);

}  // namespace assay
