// Parameters of the matmul model (src/perf/matmul.h), one set per architecture.
// docs/models/matmul.md says how each was fitted and to what error. The shares of a peak are limits
// of a tile's main loop: no shape quite reaches them.
#pragma once

#include "world/fields.h"

namespace assay {

struct MatmulParams {
  // Arithmetic: share of the dense peak that the largest tile holds in its main loop, by path.
  double efficiency = 0.75;  // 16-bit
  double efficiency_fp8 = 0.7;
  double efficiency_fp4 = 0.6;
  double efficiency_int8 = 0.6;
  double efficiency_tf32 = 0.7;
  double efficiency_fp32 = 0.75;  // without tensor cores
  // Tiles and waves.
  double tile_half = 20;      // m n / (m + n) of a tile at which its rate is half of the limit
  double fill = 150;          // bytes of k per operand row: prologue and epilogue of one tile
  double quantisation = 0.5;  // of a partial wave's idle units that stay idle; 0: smoothed
  double split = 2000;        // bytes of k: the price of splitting k over units
  // The 4-bit kernels are kernels of their own: no split k, start and end of tiles not overlapped.
  double quantisation_fp4 = 0.9;
  double fill_fp4 = 350;
  // Memory.
  double memory_efficiency = 0.85;  // of the data sheet's bandwidth
  Seconds memory_latency{1.5e-6};   // until the streams flow
  double overlap_loss = 0.1;        // of the shorter of arithmetic and memory: not hidden
  Seconds latency{2e-6};            // start to end of a kernel without work
  // Leading dimensions that the fast load path refuses: rate over that of the aligned path.
  double aligned_partly = 0.4;   // multiples of 4 or 8 bytes
  double aligned_element = 0.2;  // an operand row of odd length, 16-bit
  double aligned_output = 0.15;  // only the output's rows are of odd length, 16-bit
  // Batches of such products run without tensor cores, at this share of the rate that these have;
  // zero: as one does.
  double plain_batches = 0;
  double grouped_portable = 1;   // PyTorch's own grouped kernel over the library's, 16-bit
  // tf32 with one or both operands the other way round, over the forward layout. Hopper's tensor
  // cores load 32-bit operands only along k, so the library transposes on the way; Ampere's take
  // them from registers in any order.
  double transposed_one = 1;
  double transposed_both = 1;
};

template <class T, class V>
  requires std::is_same_v<std::remove_const_t<T>, MatmulParams>
void fields(T& m, V&& visit) {
  constexpr Limits kShare{0.01, 1};
  visit("efficiency", m.efficiency, kShare, "16-bit: of the dense peak, in the main loop");
  visit("efficiency_fp8", m.efficiency_fp8, kShare, "the same, fp8");
  visit("efficiency_fp4", m.efficiency_fp4, kShare, "the same, fp4");
  visit("efficiency_int8", m.efficiency_int8, kShare, "the same, int8");
  visit("efficiency_tf32", m.efficiency_tf32, kShare, "the same, tf32");
  visit("efficiency_fp32", m.efficiency_fp32, kShare, "the same, fp32 without tensor cores");
  visit("tile_half", m.tile_half, kNotNegative, "tile's m n / (m + n) for half of its rate");
  visit("fill", m.fill, kNotNegative, "bytes of k that a tile's start and end cost");
  visit("quantisation", m.quantisation, kFraction, "idle share of a partial wave that stays idle");
  visit("split", m.split, kNotNegative, "bytes of k that splitting k costs");
  visit("quantisation_fp4", m.quantisation_fp4, kFraction, "idle share, 4-bit kernels");
  visit("fill_fp4", m.fill_fp4, kNotNegative, "bytes of k for start and end, 4-bit kernels");
  visit("memory_efficiency", m.memory_efficiency, kShare, "of the data sheet's bandwidth");
  visit("memory_latency", m.memory_latency, kNotNegative, "until memory streams flow");
  visit("overlap_loss", m.overlap_loss, kFraction, "of the hidden one of arithmetic and memory");
  visit("latency", m.latency, kPositive, "kernel without work");
  visit("aligned_partly", m.aligned_partly, kShare, "rows of 4 or 8 bytes' alignment, of the rate");
  visit("aligned_element", m.aligned_element, kShare, "operand rows of odd length, of the rate");
  visit("aligned_output", m.aligned_output, kShare, "only output rows of odd length, of the rate");
  visit("plain_batches", m.plain_batches, Limits{0, 1},
        "a batch of misaligned products, over fp32 without tensor cores; zero: as one does");
  visit("grouped_portable", m.grouped_portable, kShare, "PyTorch's grouped over the library's");
  visit("transposed_one", m.transposed_one, kShare, "tf32, one operand transposed, of the rate");
  visit("transposed_both", m.transposed_both, kShare, "tf32, both operands transposed");
}

}  // namespace assay
