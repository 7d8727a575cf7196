// What several stories share: an example file, simulated.
#pragma once

#include "plan/study.h"
#include "sim/many.h"
#include "sim/spec.h"
#include "site/facility.h"

namespace assay {

struct StoryRun {
  Description description;
  PlanResult plan;
  SpecResult spec;
  ManyResult many;
};

using Change = std::function<void(Description&)>;

// REQUIRES: a file of this folder; a broken example is our bug.
Description story_description(const std::string& file);
// `days` of it, or until `tokens` are done; `change` is what the story varies.
StoryRun story_run(const std::string& file, double days, double tokens, int runs,
                   const Change& change = nullptr);

}  // namespace assay
