// What-ifs, each verified by predicting it: what would move a plan most, and what would make a plan
// fit that does not. Nothing here is a rule of thumb; a lever that does not help is not shown.
#pragma once

#include "plan/search.h"
#include "world/catalog.h"

namespace assay {

struct WhatIf {
  std::string label;    // `FP8 matrix math`
  std::string command;  // `--set plan.precision=fp8`; empty where no option says it
  Plan plan;
  Prediction prediction;
  bool other_plan = false;  // a search found `plan` under the change, another than it was
  double step_change = 0;   // of the step time, -0.19 is 19 % faster; zero for a fix
};

// Ordered by gain, the best five; each fits in memory. `stated` are the plan's keys that the
// person fixed: with any, single changes of them are tried too. `progress` as in SearchOptions.
std::vector<WhatIf> levers(const Setting&, const Candidate& now,
                           const std::set<std::string>& stated,
                           const std::function<void(double)>& progress = {});

// Ways to make it fit, each with the best plan it allows. `base` and `stated` as in search().
std::vector<WhatIf> fixes(const Setting&, const Plan& base, const std::set<std::string>& stated,
                          const Miss&, const Catalog&,
                          const std::function<void(double)>& progress = {});

}  // namespace assay
