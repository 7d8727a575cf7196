// Muon's step: the momentum of every matrix of a layer is made orthogonal by Newton-Schulz steps,
// which are matmuls. Embedding, head, norms and biases stay with Adam.
#pragma once

#include "perf/layer.h"
#include "perf/memory.h"

namespace assay {

// One matrix, or `experts` of the same shape at once, whole and alone: the device's time or, where
// it is longer, the host's.
Seconds muon_matrix_time(const Setting&, const Plan&, double experts, double m, double n);

// What it adds to the optimizer's step on a rank that holds a stage of this content. Ranks that
// share optimizer state share the matrices, each whole; tensor-parallel ranks work on their parts.
Seconds muon_time(const Setting&, const Plan&, const Layout&, const StageContent&);

}  // namespace assay
