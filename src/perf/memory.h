// Memory of the worst rank at its worst moment: weights, gradients, optimizer state, the
// activations that the schedule keeps alive, and buffers. docs/models/memory.md.
//
// Invariant: the terms of a MemoryUse are those of one stage and one moment and add up to
// `allocated`.
#pragma once

#include "perf/layer.h"
#include "perf/pipeline.h"
#include "perf/predict.h"

namespace assay {

// What one pipeline stage holds.
struct StageContent {
  double dense_layers = 0, moe_layers = 0;
  bool first = false, last = false;
};
// `stage`: a rank where stages are folded, with what both of its stages hold.
StageContent stage_content(const Model&, const Stages&, int64_t stage);

// `count` stages in a row with the same content, from `first` on. A deep pipeline has hundreds of
// stages but few runs, and what depends on the content alone is worked out once for each.
struct StageRun {
  StageContent content;
  int64_t first = 0, count = 1;
};
// The run that starts at `first`; the next one may have the same content again.
StageRun stage_run(const Model&, const Stages&, int64_t first);

// All trained layers: decoder, encoder and multi-token-prediction layers.
int64_t layer_count(const Model&);
// How the plan's stages hold them.
Stages stages_of(const Model&, const Plan&);

// Parameters of a stage on one rank: {dense, expert}.
struct StageParameters {
  double dense = 0, expert = 0;
};
StageParameters stage_parameters(const MicrobatchCost&, const StageContent&, const Model&);

// Embedding and head of a stage; one table serves as both where they are tied and sit together.
double end_parameters(const Model&, const MicrobatchCost&, const StageContent&);

// Bytes per parameter of what is kept through a step, before it is sharded; embedding and head may
// be held wider than layers.
struct StateBytes {
  double weight = 0, end_weight = 0, gradient = 0, optimizer = 0;
};
StateBytes state_bytes(const Setting&, const Plan&);

// What of `adam` bytes per parameter, two moments and perhaps a copy of the weights, the workload's
// optimizer keeps: Muon one moment less.
double optimizer_state(const Workload&, double adam);

MemoryUse memory_use(const Setting&, const Plan&, const Layout&, const MicrobatchCost&);

// For `explain`: what of `count` alike a rank of a stage holds of `live` micro-batches in flight.
struct HeldPart {
  const char* by;
  Bytes each;
  double count, live;
};
std::vector<HeldPart> held_parts(const Setting&, const Plan&, const Layout&, const MicrobatchCost&,
                                 int64_t stage);

// Parameters that stand unsharded while layers run: gathered ones, and those whose gradients are
// reduced; of `layer`, the largest one.
struct Unsharded {
  double layer = 0, gathered = 0, reduced = 0;
};
Unsharded unsharded_parameters(const Setting&, const Plan&, const Layout&, const MicrobatchCost&);

// Where matmuls add into the gradient buffer themselves, autograd still gets a tensor for each
// weight, one for all of a shape: of a layer, of an expert, of the head.
constexpr double kPlaceholderBytes = 2;

// What is taken of one node's memory: an optimizer's states and weights, one copy for every group
// that shards them, or for every rank where nothing does; and the activations that each rank has
// `parked`. REQUIRES: degrees that divide.
Bytes host_memory(const Setting&, const Plan&, Bytes parked = Bytes(0));
// Whether the node has so much; where its memory is not stated, it does.
bool host_holds(const Setting&, const Plan&, Bytes parked = Bytes(0));

// What the driver shows beside the allocator's memory: the CUDA context and the kernels' code (619
// and 148 MiB with PyTorch 2.11 on an H200).
constexpr Bytes kDriverMemory{0.80e9};

// Bytes a training process can use of an accelerator's nominal memory. Vendors' "80 GB" of HBM is
// 80 GiB less a reserve: nvidia-smi shows 81,559 MiB on an H100 and 143,771 MiB on an H200 of
// "141 GB" (test/data/telemetry/h200_nvidia_smi_q.txt.gz), of which a CUDA context takes about half
// a GiB.
Bytes usable_memory(const Accelerator&);

}  // namespace assay
