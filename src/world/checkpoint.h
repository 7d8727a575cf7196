// How large one complete checkpoint is: weights and optimizer, once.
#pragma once

#include "world/workload.h"

namespace assay {

// Bytes per parameter: 2 of weights, 4 each of master weights and Adam's two moments. MLPerf
// Storage's table 2 has 13 (8B, 70B and 405B).
constexpr double kWeightBytesSaved = 2, kOptimizerBytesSaved = 12;

Bytes checkpoint_bytes(const Workload&);

}  // namespace assay
