// Pipeline schedules in closed form: who holds which layers, how long the step takes, how many
// micro-batches are alive. The event-driven twin in pipeline_test.cc must agree.
#pragma once

#include "base/units.h"
#include "world/plan.h"

namespace assay {

// Layers of stage `i` of `pp`, out of `layers`. An even split where possible; otherwise the stages
// between the first and the last take the remainder first, since those two also carry the embedding
// and the head.
int64_t stage_layers(int64_t layers, int64_t pp, int64_t i);
// Index of the first layer of stage `i`.
int64_t stage_begin(int64_t layers, int64_t pp, int64_t i);
// Stages from `i` on with as many layers as stage `i` and, like it, neither first nor last; at
// least one.
int64_t equal_stages(int64_t layers, int64_t pp, int64_t i);

// Time that stages stand idle while the pipeline fills and drains, given the time of one
// micro-batch (forward + backward) in all stages together and in the slowest one:
//     1f1b, gpipe   sum - slowest
//     interleaved   (sum - slowest) / vpp
//     zero-bubble   a third of 1f1b: weight gradients fill the rest (backward twice the forward)
Seconds bubble_time(Schedule, int64_t vpp, Seconds sum, Seconds slowest);

// Micro-batches whose activations stage `i` holds at its peak, in units of the whole stage.
double live_microbatches(Schedule, int64_t pp, int64_t vpp, int64_t microbatches, int64_t i);

}  // namespace assay
