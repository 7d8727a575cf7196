// What one micro-batch costs on one rank in one layer: device time by kind, traffic, launches, and
// the activations it leaves behind. The setting's clocks are not yet applied (burst clocks).
#pragma once

#include "ledger/ledger.h"
#include "perf/attention.h"
#include "perf/layout.h"
#include "world/setting.h"

namespace assay {

// One pass (forward or backward) of one layer for one micro-batch.
struct PassCost {
  Seconds matmul, attention, memory;    // device time at burst clocks
  Seconds scores;                       // of `attention`, what memory bounds: no clock stretches it
  Seconds matmul_peak, attention_peak;  // the pass's own FLOPs at the plan's peak, for the ledger
  Seconds matmul_draw;  // FLOPs of matmuls at their own precision's peak, by what it draws there
  Seconds tensor, context, expert;  // communication, not yet hidden
  double launches = 0;

  Seconds clocked() const { return matmul + attention - scores; }
  Seconds device() const { return matmul + attention + memory; }
  Seconds wire() const { return tensor + context + expert; }
};

// In the header, the argument by value: a stage adds up a dozen of these, and inlined without
// aliases they are vector instructions.
inline PassCost& operator+=(PassCost& c, PassCost o) {
  c.matmul += o.matmul;
  c.attention += o.attention;
  c.memory += o.memory;
  c.scores += o.scores;
  c.matmul_peak += o.matmul_peak;
  c.matmul_draw += o.matmul_draw;
  c.attention_peak += o.attention_peak;
  c.tensor += o.tensor;
  c.context += o.context;
  c.expert += o.expert;
  c.launches += o.launches;
  return c;
}

inline PassCost operator*(PassCost c, double f) {
  c.matmul *= f;
  c.attention *= f;
  c.memory *= f;
  c.scores *= f;
  c.matmul_peak *= f;
  c.matmul_draw *= f;
  c.attention_peak *= f;
  c.tensor *= f;
  c.context *= f;
  c.expert *= f;
  c.launches *= f;
  return c;
}

struct LayerCost {
  PassCost forward, backward;
  PassCost again;        // what recomputation adds to the backward pass
  Seconds weights;       // of `backward`, matmuls that make the gradients of weights
  PassCost closing;      // of `forward`, what recomputation that stops early skips
  Bytes saved;           // activations held until this layer's backward
  Bytes kept;            // those that selective recomputation keeps; of the head, logits in 16 bits
  Bytes routed;          // of `saved`, what grows with the load of the busiest expert
  Bytes routed_working;  // the same of `working`
  PassCost chosen;       // of `forward`, what selective recomputation names: run again in any case
  Seconds gathered;      // of `forward`, what gathering whole tensors for matmuls shows
  Seconds streamed_forward, streamed_backward;  // of a pass, element by element
  Seconds merged;  // of `forward`, adding up what a ring of context ranks brings
  Seconds busy_forward, busy_backward;  // of a pass, what the load of the busiest rank stretches
  Seconds busy_chosen;                  // of `chosen`, the same
  Bytes parked;                         // activations that go to the host and back
  Bytes working;                        // extra while the layer is being recomputed or is running
  // Of a hybrid, whose layers differ, what its largest one holds, and of layers that share weights
  // what one of them reads; zero: all are alike.
  double largest_parameters = 0;
  Bytes largest_saved;
  double parameters = 0;         // dense parameters on this rank
  double expert_parameters = 0;  // of this rank's experts
};

// The costs that do not depend on pipeline and data parallel degrees.
struct MicrobatchCost {
  LayerCost dense, moe;  // per layer
  LayerCost embedding;   // first stage
  LayerCost head;        // last stage: final norm, logits, loss
  Bytes boundary;        // activation sent between stages
};

// One operation as it was costed, kept only when somebody asks where a figure comes from.
struct OpRecord {
  std::string layer;  // dense, moe, head
  std::string kind;   // matmul, attention, memory, tensor, context, expert
  std::string what;   // `8192 x 28672 x 1024`
  Seconds forward, backward;
};

// Before recomputation and the offload of activations: plans that differ in nothing else share it.
// `record`, where given, receives every operation in order; the costs do not depend on it.
MicrobatchCost plain_cost(const Setting&, const Plan&, const Layout&, const Links&,
                          std::vector<OpRecord>* record = nullptr);
// The plan's recomputation and offload on top of the `plain` cost.
MicrobatchCost with_recompute(const Stack&, const Plan&, const MicrobatchCost& plain);
// Both.
MicrobatchCost microbatch_cost(const Setting&, const Plan&, const Layout&, const Links&,
                               std::vector<OpRecord>* record = nullptr);

// Host time of the way through the modules of a dense layer or one of experts, beside launches.
Seconds way_through(const Setting&, bool experts);
// Head sizes with the defaults resolved.
double head_dim(const Model&);

}  // namespace assay
