// How an architecture's kernels really behave, measured or calibrated: the difference between a
// data sheet and a training step. One entry of catalog/kernels.yaml per architecture.
#pragma once

#include "world/collective_params.h"
#include "world/matmul_params.h"

namespace assay {

struct Kernels {
  std::string name;
  MatmulParams matmul;
  // Fused attention: achieved fraction of the 16-bit dense peak for long sequences at head size
  // 128, by who made the kernel, and the tokens per row of keys at which half of it is reached.
  double attention_forward = 0.5;
  double attention_backward = 0.4;
  double attention_vendor_forward = 0.6;
  double attention_vendor_backward = 0.5;
  double attention_half_forward = 250;
  double attention_half_backward = 800;
  double attention_vendor_half = 420;
  // Vendor kernel, backward, heads above 128: of its rate at 128 (test/data/h200_wide_heads.csv,
  // 0.88 at 192 and 0.79 at 256; GB200 0.86 to 0.97 at 192).
  double attention_wide_backward = 0.86;
  // First year whose runs through PyTorch's operator are taken to meet the vendor's kernel; zero:
  // the operator has the portable one first.
  int64_t operator_since = 0;
  // Memory-bound kernels.
  double memory_efficiency = 0.85;  // streaming kernels, of the data sheet's bandwidth
  double plain_casts = 1;           // 8-bit casts by untuned kernels, over tuned ones
  Seconds kernel_floor{2e-6};       // device time per kernel that no work explains
  double cache_word = 0;            // bytes of the last-level cache a unit and clock; zero: unknown
  // Power at burst clocks, in units of `power_unit` x the accelerator's 16-bit peak: what a kernel
  // of each kind would draw above idle. Where the mean over a step exceeds (tdp - idle), clocks
  // settle so that it does not; the same silicon under a lower cap (an H100 at 500 W) therefore
  // clocks lower.
  double power_unit = 0.6;     // W per TFLOPS of 16-bit dense peak
  double power_matmul = 1.5;   // at the dense peak; scales with the achieved share of it
  double power_fp16 = 1;       // fp16 matmuls over bf16
  double power_narrow = 1.08;  // 8- and 4-bit matmuls at their own peak over 16-bit at its
  double power_attention = 1.2;
  double power_memory = 0.45;     // norms, activations, sums; 3/4 of long vectors', as on Hopper
  double power_idle_wait = 0.15;  // waiting in a collective
  double power_exponent = 2.4;
  double spread = 0.15;  // what not having measured this architecture adds to a range, logarithm
  // The most of the peak that any published run did as useful work, in 16 bits and in fewer; zero:
  // none is known. A promise beyond it is told.
  double best_share = 0;
  double best_share_narrow = 0;
};

template <class T, class V>
  requires std::is_same_v<std::remove_const_t<T>, Kernels>
void fields(T& k, V&& visit) {
  visit("matmul", k.matmul, kAny, "matmul behaviour");
  visit("attention_forward", k.attention_forward, kFraction, "portable kernel forward, of peak");
  visit("attention_backward", k.attention_backward, kFraction, "portable kernel backward, of peak");
  visit("attention_vendor_forward", k.attention_vendor_forward, kFraction,
        "vendor kernel, of peak");
  visit("attention_vendor_backward", k.attention_vendor_backward, kFraction, "the same, backward");
  visit("attention_half_forward", k.attention_half_forward, kNotNegative, "tokens for half of it");
  visit("attention_half_backward", k.attention_half_backward, kNotNegative,
        "tokens for half of it");
  visit("attention_vendor_half", k.attention_vendor_half, kNotNegative, "the same, vendor kernel");
  visit("attention_wide_backward", k.attention_wide_backward, kFraction,
        "vendor kernel, heads above 128, over 128");
  visit("operator_since", k.operator_since, Limits{0, 2100},
        "year from which PyTorch's operator picks the vendor kernel; zero: never");
  visit("memory_efficiency", k.memory_efficiency, kFraction, "streaming, of spec bandwidth");
  visit("plain_casts", k.plain_casts, Limits{1, 20},
        "time of casts to 8 bits where no stack brings tuned ones, over those");
  visit("kernel_floor", k.kernel_floor, kNotNegative, "device time per kernel without work");
  visit("cache_word", k.cache_word, Limits{0, 1024},
        "bytes a unit gets from the last-level cache in a clock; zero: not measured");
  visit("power_unit", k.power_unit, kPositive, "W per TFLOPS of 16-bit peak");
  visit("power_matmul", k.power_matmul, Limits{0, 10}, "draw at peak rate, in units");
  visit("power_fp16", k.power_fp16, Limits{0, 10}, "fp16 matmuls over bf16");
  visit("power_narrow", k.power_narrow, Limits{0, 10}, "8- and 4-bit matmuls over 16-bit");
  visit("power_attention", k.power_attention, Limits{0, 10}, "draw of attention");
  visit("power_memory", k.power_memory, Limits{0, 10}, "draw of memory-bound kernels");
  visit("power_idle_wait", k.power_idle_wait, Limits{0, 10}, "draw while waiting");
  visit("power_exponent", k.power_exponent, Limits{1, 5}, "power over clock, exponent");
  visit("spread", k.spread, Limits{0, 2}, "what this architecture adds to a range, logarithm");
  visit("best_share", k.best_share, kFraction, "best published share of peak; zero: none known");
  visit("best_share_narrow", k.best_share_narrow, kFraction, "the same in 8 bits and fewer");
}

}  // namespace assay
