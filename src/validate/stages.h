// Pipelines split by hand: how many layers the first and the last stage hold.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "world/workload.h"

namespace assay {

struct StageEnds {
  int64_t first = 0, last = 0;  // zero: not stated
};

// From `layers/stage [5, 7, 7, 7]` (embedding and head may count as a layer each) or `11 layers on
// the last stage`, for a pipeline of `pp` stages that hold `layers`. Nothing: not said, or not of
// such a pipeline.
std::optional<StageEnds> read_stage_ends(const std::string& text, int64_t layers, int64_t pp);

// As a framework cuts them that weighs its blocks: a stage takes blocks, the last of which is the
// head, until the work so far passes its share. REQUIRES: pp > 1.
StageEnds balanced_ends(const Model& m, int64_t pp);

}  // namespace assay
