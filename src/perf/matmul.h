// Time of one matrix multiplication by its shape.
//
// y[m,n] = x[m,k] w[k,n], `batch` independent ones of equal shape (grouped: experts). The model:
// tiles and waves over the compute units, k-loop efficiency, memory roofline, skinny shapes,
// misaligned leading dimensions, precision paths. Burst clocks: callers apply the sustained clock.
// docs/models/matmul.md has the equation, the parameters, their sources and the measured error.
#pragma once

#include "world/accelerator.h"
#include "world/kernels.h"

namespace assay {

// Which of a linear layer's three matmuls: it decides how the operands lie in memory, hence which
// of m, n, k are row lengths that a fast load needs aligned to 16 bytes.
//   forward          x [m,k], w stored [n,k]          row lengths k, k, output n
//   input gradient   x [m,k], w stored [k,n]          row lengths k, n, output n
//   weight gradient  x stored [k,m], w stored [k,n]   row lengths m, n, output n
enum class MatmulPass { kForward, kInputGradient, kWeightGradient };

struct MatmulShape {
  int64_t m = 0, n = 0, k = 0;
  int64_t batch = 1;
  Precision precision = Precision::kBf16;
  MatmulPass pass = MatmulPass::kForward;
};

// REQUIRES: m, n, k, batch >= 1. Never zero, never NaN; monotone in m, n, k and batch up to
// alignment. The device time of the kernel back to back with others: no launch gap, no conversion
// of operands to a narrow format. About 100 ns a call.
Seconds matmul_time(const MatmulShape&, const Accelerator&, const MatmulParams&);

// The same of a group that may not run as one kernel: `apart` of what its matmuls would cost more
// one by one remains. Of no effect on a batch of 1.
Seconds grouped_time(const MatmulShape&, const Accelerator&, const MatmulParams&, double apart);

// Bytes per element of an operand as it is read, scales included, with the same fallbacks.
double operand_bytes(const Accelerator&, Precision);

// Dense peak of a precision, following fallbacks (fp8 on an A100 runs as bf16).
FlopRate peak(const Accelerator&, Precision);

}  // namespace assay
