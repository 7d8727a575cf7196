// How an architecture's kernels really behave, measured or calibrated: the difference between a data
// sheet and a training step. One entry of catalog/kernels.yaml per architecture.
#pragma once

#include "world/collective_params.h"
#include "world/matmul_params.h"

namespace assay {

struct Kernels {
  std::string name;
  MatmulParams matmul;
  // Fused attention: achieved fraction of the 16-bit dense peak for long sequences, by kernel
  // generation, and the sequence length at which half of it is reached.
  double attention_forward = 0.55;
  double attention_backward = 0.45;
  double attention_half_seq = 300;
  // Memory-bound kernels.
  double memory_efficiency = 0.9;        // streaming kernels, of the data sheet's bandwidth
  Seconds kernel_floor{3.5e-6};          // shortest kernel, start to start
  // Sustained clocks: the clock a long matmul-heavy run holds under the power cap, over the clock of
  // short bursts (which is what micro-benchmarks see).
  double sustained_clock = 0.9;
};

template <class T, class V>
  requires std::is_same_v<std::remove_const_t<T>, Kernels>
void fields(T& k, V&& visit) {
  visit("matmul", k.matmul, kAny, "matmul behaviour");
  visit("attention_forward", k.attention_forward, kFraction, "fused attention forward, of peak");
  visit("attention_backward", k.attention_backward, kFraction, "fused attention backward, of peak");
  visit("attention_half_seq", k.attention_half_seq, kNotNegative, "tokens for half efficiency");
  visit("memory_efficiency", k.memory_efficiency, kFraction, "streaming, of spec bandwidth");
  visit("kernel_floor", k.kernel_floor, kNotNegative, "shortest kernel");
  visit("sustained_clock", k.sustained_clock, Limits{0.1, 1}, "held clock over burst clock");
}

}  // namespace assay
