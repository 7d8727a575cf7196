// Everything that a prediction depends on except the plan, with all names resolved.
#pragma once

#include <algorithm>

#include "world/cluster.h"
#include "world/kernels.h"
#include "world/plan.h"
#include "world/stack.h"
#include "world/workload.h"

namespace assay {

struct Setting {
  Workload workload;
  Cluster cluster;  // cluster.nodes is what exists; `accelerators` below is what the job uses
  Stack stack;
  Kernels kernels;                  // of cluster.accelerator.architecture
  CollectiveParams scaleup_params;  // the collectives library on the scale-up link
  CollectiveParams fabric_params;   // and across nodes
  int64_t accelerators = 0;         // zero: all of the cluster
};

// What memory-bound kernels get of the memory's bandwidth.
inline Bandwidth streaming(const Setting& s) {
  return s.cluster.accelerator.memory_bandwidth * s.kernels.memory_efficiency;
}

// What a stack holds and sends per parameter when it trains in 32 bits: no second copy of the
// weights, and every word four bytes. Weights that are packed below 16 bits stay so.
inline void hold_in_single(Stack& s) {
  constexpr double kWord = 4, kMoments = 8, kPacked = 1.5;
  s.gradient_comm_bytes = kWord;
  if (s.weight_bytes >= kPacked) s.weight_bytes = s.weight_comm_bytes = kWord;
  if (!s.saved_quantised) s.weight_copies = 0;
  if (s.gradient_bytes > 0) s.gradient_bytes = kWord;
  s.optimizer_bytes = kMoments;
}

// The same in fp16, whose gradients no stack adds up or sends in more than it holds.
inline void hold_in_half(Stack& s) {
  s.gradient_bytes = s.gradient_bytes_fp16;
  s.optimizer_bytes = s.optimizer_bytes_fp16;
  if (s.gradient_bytes > 0)
    s.gradient_comm_bytes = std::min(s.gradient_comm_bytes, s.gradient_bytes);
}

inline void hold_words(Stack& s, Precision p) {
  if (single_precision(p)) hold_in_single(s);
  if (p == Precision::kFp16) hold_in_half(s);
}

// Whether tensor parallel ranks can hold equal parts of a sequence between the blocks, or need not.
// Stacks of Megatron's kind check that they can; DTensor and XLA shard unevenly (Llama of 8,192
// tokens ran over 3, 6 and 12 ranks under torchtitan, PaLM of 2,048 over 12 under JAX).
bool shares_sequence(const Workload&, const Stack&, const Plan&);

}  // namespace assay
