// Pipeline schedules in closed form: who holds which layers, how long the step takes, how many
// micro-batches are alive. The event-driven twin in pipeline_test.cc must agree.
#pragma once

#include "base/units.h"
#include "world/plan.h"

namespace assay {

// How `layers` are split among `pp` stages. The first and the last stage hold as many as is stated
// of them, if anything is. The rest is split evenly; of a remainder the stages between take one
// more first, since the ends also carry the embedding and the head.
// REQUIRES, of whoever asks for a stage: possible().
struct Stages {
  int64_t layers = 0;
  int64_t pp = 1;
  int64_t first = 0, last = 0;  // layers of the ends; zero: not stated

  // Stages of which nothing is stated, and what is left for them.
  int64_t open_stages() const { return pp - (first > 0 ? 1 : 0) - (last > 0 ? 1 : 0); }
  int64_t open_layers() const { return layers - first - last; }
  // Each of those gets a layer for each of its `chunks`, and all layers are held.
  bool possible(int64_t chunks = 1) const;
  // All stages hold the same number of layers.
  bool even() const;
};
// Layers of stage `i`.
int64_t stage_layers(const Stages&, int64_t i);
// Index of the first layer of stage `i`.
int64_t stage_begin(const Stages&, int64_t i);
// Stages from `i` on with as many layers as stage `i` and, like it, neither first nor last; at
// least one.
int64_t equal_stages(const Stages&, int64_t i);

// Time that stages stand idle while the pipeline fills and drains, given the time of one
// micro-batch (forward + backward) in all stages together and in the slowest one:
//     1f1b, gpipe   sum - slowest
//     interleaved   (sum - slowest) / vpp
//     zero-bubble   2/3 of 1f1b less what delayed weight gradients fill, a third of a micro-batch
//                   for each but the first, at most pp - 1 of them (backward twice the forward)
// REQUIRES: interleaved chunks run in whole rounds, pp micro-batches each.
Seconds bubble_time(Schedule, int64_t pp, int64_t vpp, int64_t microbatches, Seconds sum,
                    Seconds slowest);

// Micro-batches whose activations stage `i` holds at its peak, in units of the whole stage.
double live_microbatches(Schedule, int64_t pp, int64_t vpp, int64_t microbatches, int64_t i);

}  // namespace assay
