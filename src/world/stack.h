// The software: which kernels are fused, which overlaps really happen, what the host costs, and what
// the framework does where a plan says nothing. Entries of catalog/stacks.yaml; the model never asks
// for a framework's name.
#pragma once

#include "world/fields.h"
#include "world/plan.h"

namespace assay {

struct Stack {
  std::string name;
  std::vector<std::string> aliases;  // words in a framework's name that select this stack
  std::string sharding;              // 3d, fsdp, zero, jax: for frameworks nobody has heard of
  Plan defaults;                     // what it does where nothing is stated

  // Kernels.
  double memory_traffic = 1;       // bytes moved by memory-bound ops over the fully fused minimum
  double memory_traffic_compiled = 1;
  double kernels_forward = 20;     // launches per layer, forward, without a compiler
  double kernels_backward = 35;
  Seconds launch{6e-6};            // host time per launch
  Seconds step_overhead{0};        // per optimizer step: data, logging, synchronisation
  double matmul_quality = 1;       // over the best library for the device

  // Overlap: the share of an overlappable transfer that the stack really hides.
  double overlap_grad = 0.9;
  double overlap_param = 0.9;
  double overlap_tp = 0;
  double overlap_pipeline = 0;
  double overlap_expert = 0;
  double contention = 0.1;         // slow-down of computation while a transfer runs beside it

  // Memory.
  double gradient_bytes = 4;       // per parameter
  double optimizer_bytes = 12;     // per parameter: master copy and two moments
  Bytes framework_memory{2e9};
  double fragmentation = 1.06;     // reserved over allocated
};

template <class T, class V>
  requires std::is_same_v<std::remove_const_t<T>, Stack>
void fields(T& s, V&& visit) {
  visit("aliases", s.aliases, kAny, "words that select this stack");
  visit("sharding", s.sharding, kAny, "3d, fsdp, zero or jax");
  visit("defaults", s.defaults, kAny, "plan settings where nothing is stated");
  visit("memory_traffic", s.memory_traffic, kPositive, "memory-bound traffic over the fused minimum");
  visit("memory_traffic_compiled", s.memory_traffic_compiled, kPositive, "the same when compiled");
  visit("kernels_forward", s.kernels_forward, kNotNegative, "launches per layer, forward");
  visit("kernels_backward", s.kernels_backward, kNotNegative, "launches per layer, backward");
  visit("launch", s.launch, kNotNegative, "host time per launch");
  visit("step_overhead", s.step_overhead, kNotNegative, "host time per optimizer step");
  visit("matmul_quality", s.matmul_quality, Limits{0.01, 2}, "over the best library");
  visit("overlap_grad", s.overlap_grad, kFraction, "gradient traffic hidden when overlapped");
  visit("overlap_param", s.overlap_param, kFraction, "parameter traffic hidden when overlapped");
  visit("overlap_tp", s.overlap_tp, kFraction, "tensor traffic hidden when overlapped");
  visit("overlap_pipeline", s.overlap_pipeline, kFraction, "point-to-point traffic hidden");
  visit("overlap_expert", s.overlap_expert, kFraction, "all-to-all hidden when overlapped");
  visit("contention", s.contention, kFraction, "slow-down of compute beside a transfer");
  visit("gradient_bytes", s.gradient_bytes, kNotNegative, "bytes per parameter");
  visit("optimizer_bytes", s.optimizer_bytes, kNotNegative, "bytes per parameter");
  visit("framework_memory", s.framework_memory, kNotNegative, "context, libraries, workspaces");
  visit("fragmentation", s.fragmentation, Limits{1, 4}, "reserved over allocated memory");
}

}  // namespace assay
