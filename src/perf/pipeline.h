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
  bool folded = false;          // rank i holds stage i and stage pp - 1 - i

  int64_t ranks() const { return folded ? pp / 2 : pp; }

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

// One micro-batch in a pipeline: forward and backward in all stages together and in the slowest
// one; and of the mean stage, the forward pass and the gradients of weights, which wait for nobody.
struct PipelinePass {
  Seconds sum, slowest;
  Seconds forward, weights;
};

// Time that stages stand idle while the pipeline fills and drains:
//     1f1b, gpipe   sum - slowest
//     interleaved   (sum - slowest) / vpp
//     zero-bubble   the first less (pp - 1) weights of the first micro-batch and one for every
//                   other, up to pp - 1
//     folded        the first less (pp - 1) (forward + 3 weights) / 2
// `pp`: ranks. A pipeline from both ends (dualpipe) is two folded ones, each of half the ranks and
// half the micro-batches: make_layout() says so.
// REQUIRES: interleaved chunks run in whole rounds, pp micro-batches each.
Seconds bubble_time(Schedule, int64_t pp, int64_t vpp, int64_t microbatches, const PipelinePass&);

// Micro-batches whose activations stage `i` holds at its peak, in units of the whole stage.
// REQUIRES: not folded.
double live_microbatches(Schedule, int64_t pp, int64_t vpp, int64_t microbatches, int64_t i);

// The same of rank `i` of a folded pipeline of `stages`: of its own stage, and of the mirrored one.
struct Mirrored {
  double near = 0, far = 0;
};
Mirrored live_mirrored(int64_t stages, int64_t microbatches, int64_t i);

}  // namespace assay
