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

struct MatmulShape {
  int64_t m = 0, n = 0, k = 0;
  int64_t batch = 1;
  Precision precision = Precision::kBf16;
};

// REQUIRES: m, n, k, batch >= 1. Never zero, never NaN; monotone in each of m, n, k up to alignment.
Seconds matmul_time(const MatmulShape&, const Accelerator&, const MatmulParams&);

// Dense peak of a precision, following fallbacks (fp8 on an A100 runs as bf16).
FlopRate peak(const Accelerator&, Precision);

}  // namespace assay
