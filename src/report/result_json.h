// Parts that several JSON documents share. Only for the .cc files of report/.
#pragma once

#include "plan/compare.h"
#include "plan/study.h"
#include "report/json.h"
#include "report/plan_report.h"

namespace assay {

Json description_json(const Setting&);
Json plan_json_of(const Plan&);
Json memory_json(const MemoryUse&);
Json run_json(const RunFigures&);
Json ledger_json(const Ledger&, Seconds step);
// What a run over weeks makes of a plan; null where it is not known.
Json outlook_json(const std::optional<Outlook>&, const PlanOutlook& of);
// A plan with its prediction: `mfu`, `step_s`, ranges, memory.
Json candidate_json(const Plan&, const Prediction&, const Setting&);
Json change_json(const Change&);
Json diagnostics_json(const Diagnostics&);
Json assumed_json(const std::vector<Assumption>&);
// Settings that a person stated, with file and line; the catalog's speak for themselves.
Json origins_json(const Origins&);

}  // namespace assay
