// What some models have beside attention and MLP. None of it was measured: matmuls are those of any
// layer, and of the rest the bytes of the fully fused minimum are counted.
#include <algorithm>

#include "perf/rank.h"
#include "world/model_size.h"

namespace assay {
namespace {

// Kernels of either block, one pass: projections, activations, norms and additions.
constexpr double kOwnKernels = 4, kEmbeddingKernels = 8, kStreamKernels = 10;

void launch(const Rank& r, LayerCost& c, double kernels) {
  c.forward.launches += kernels * r.launches;
  c.backward.launches += 2 * kernels * r.launches;
}

}  // namespace

// Attention that reads more than the layer's input: written beside it, and normalised with it.
void wider_input(const Rank& r, LayerCost& c, double more) {
  if (more <= 0) return;
  const double one = r.own * more * r.word;
  stream(r, c, one * 4, one * 5);
  c.saved += Bytes(one * 2);
  c.kept += Bytes(one * (2 - r.s.stack.selective_memory));
}

// A projection of the MLP's input gates its output: two tensors read, one written.
void output_gate(const Rank& r, LayerCost& c) {
  const double h = real(r.s.workload.model.hidden);
  const double mine = h / real(r.l.tp), each = r.tokens * mine * r.word;
  linear(r, c, r.tokens, mine, h, 1, r.p.precision);
  c.parameters += h * mine;
  stream(r, c, each * 3, each * 5);
  c.saved += Bytes(each * 2);
  c.kept += Bytes(each * (2 - r.s.stack.selective_matmul));
}

// Adapters and a projection of the result (Zamba), as two projections through one width.
void own_projections(const Rank& r, LayerCost& c) {
  const Model& m = r.s.workload.model;
  const double h = real(m.hidden), own = real(m.own_width);
  linear(r, c, r.own, own, h, 1, r.p.precision);
  linear(r, c, r.own, h, own, 1, r.p.precision);
  c.parameters += 2 * h * own;
  stream(r, c, r.own * (own * 2 + h * 2) * r.word, r.own * (own * 3 + h * 2) * r.word);
  c.saved += Bytes(r.own * own * r.word);
  c.kept += Bytes(r.own * own * r.word * (1 - r.s.stack.selective_matmul));
  launch(r, c, kOwnKernels);
}

// The layer's columns of a table and a projection of the model's embedding make a short vector;
// after the MLP it is gated by a projection of the layer's result and projected back onto it.
void layer_embedding(const Rank& r, LayerCost& c) {
  const Model& m = r.s.workload.model;
  const double h = real(m.hidden), e = real(m.layer_embedding);
  linear(r, c, r.own, e, h, 1, r.p.precision);
  linear(r, c, r.own, e, h, 1, r.p.precision);
  linear(r, c, r.own, h, e, 1, r.p.precision);
  c.parameters += layer_embedding_weights(m);
  // The sum of both parts, the gate, and around the result a norm and an addition.
  const double one = r.own * r.word;
  stream(r, c, one * (6 * e + 5 * h), one * (9 * e + 6 * h));
  c.saved += Bytes(one * (3 * e + h));
  c.kept += Bytes(one * (3 * e + h * (1 - r.s.stack.selective_memory)));
  launch(r, c, kEmbeddingKernels);
}

// Every stream is predicted from all of them before the layer, which runs on one, and corrected by
// its result behind it; backward reads the gradients beside what forward read.
void residual_streams(const Rank& r, LayerCost& c) {
  const Model& m = r.s.workload.model;
  const double one = r.own * real(m.hidden) * r.word, n = real(m.residual_streams);
  stream(r, c, one * (4 * n + 1), one * (8 * n + 2));
  c.saved += Bytes(one * n);  // of the layer's input the other streams, and by what it corrects
  c.kept += Bytes(one * n);
  launch(r, c, kStreamKernels);
}

}  // namespace assay
