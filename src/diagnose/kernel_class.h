// What a device kernel is, read from its name and from the operator that launched it.
//
// Libraries name their kernels after what they do (nvjet, cutlass, xmma, Cijk_, sdpa, fmha,
// triton_poi_), so a name tells the kind, the arithmetic path and often the alignment that the
// operands allowed. Where a name says nothing, the operator does. No regular expressions: a trace
// has tens of thousands of kernels but only hundreds of distinct (name, operator) pairs.
#pragma once

#include <string_view>

#include "world/precision.h"

namespace assay {

enum class KernelKind {
  kMatmul,         // dense matrix multiplication, also of a graph of experts
  kConvolution,    // any of the three passes
  kAttention,      // a fused attention kernel
  kSoftmax,        // by itself: part of unfused attention, or of the loss
  kNorm,           // layer, RMS, batch, group norm
  kElementwise,    // one pass over tensors: add, multiply, activation, cast, mask
  kReduction,      // sums, means, maxima
  kMove,           // copies, concatenations, gathers that only move bytes on the device
  kEmbedding,      // table look-ups and their gradients
  kOptimizer,      // parameter updates
  kHostCopy,       // between host and device
  kSet,            // memset
  kCommunication,  // collectives and point to point
  kOther,
};

struct KernelClass {
  KernelKind kind = KernelKind::kOther;
  bool tensor_cores = false;  // of a matmul, convolution or attention
  // Arithmetic of a matmul, convolution or attention; fp32 where tensor_cores is false, and for
  // attention that makes fp32 of three products in TF32.
  Precision precision = Precision::kBf16;
  bool precision_known = false;
  // In fp64, on whatever units: `precision` is fp32 and tensor_cores false, for so it is priced.
  bool fp64 = false;
  int align = 0;          // elements that the operands' rows are aligned to; 0: not stated
  bool compiled = false;  // made by a compiler (Triton): already fused
  bool scatters = false;  // adds rows to places that an index names
  bool by_hand = false;   // an optimizer's, written out in single operations (kernel_update.cc)
};

// `op` is the innermost operator that launched it, `outer` the annotation or outermost operator
// around that (`Optimizer.step#AdamW.step`); both may be empty.
KernelClass classify_kernel(std::string_view name, std::string_view op, std::string_view outer);

// True for operators that add rows to places that an index names.
bool is_scatter(std::string_view op);
// True for kinds that move memory and compute next to nothing: what a compiler would fuse.
bool is_memory_kind(KernelKind);
// True for kinds that do the model's arithmetic.
bool is_math_kind(KernelKind);

}  // namespace assay
