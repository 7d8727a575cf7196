// A recommendation model: rows gathered from tables that are spread over all ranks, exchanged all
// to all, joined with the dense features by pairwise products, then a chain of small matmuls.
// Gathers of single rows reach a fifth of the streaming rate (test/data/h200_elementwise.csv,
// embedding_gather_128).
//
// The pairwise products of a sample are one matmul of its few vectors by themselves, so a batch has
// thousands of small ones with little arithmetic each: memory bounds them, not tiles of tensor
// cores. One more than the tables is rarely a multiple of 8 vectors, and the kernels for such rows
// take three times as long as their operands and results take through memory; 96 batches on one
// H200, from 27 to 97 vectors, are told to within a fifth in the median (test/data/h200_pairs.csv,
// dlrm_test.cc). Where they are a multiple of 8, this is two or three times too slow.
#include <algorithm>

#include <fmt/format.h>

#include "perf/rank.h"

namespace assay {
namespace {

constexpr double kGatherShare = 0.2;
constexpr double kPairPasses = 3;

// Products of every sample's vectors by themselves: two operands and a result. Backward multiplies
// the gradient by either operand.
void pairwise_products(const Rank& r, LayerCost& c, double vectors, double dim) {
  const double operand = r.tokens * vectors * dim, result = r.tokens * vectors * vectors;
  const double bytes = r.word * kPairPasses;
  const Seconds forward = Bytes((2 * operand + result) * bytes) / streaming(r.s);
  const Seconds backward = 2 * forward;
  c.forward.matmul += forward;
  c.backward.matmul += backward;
  c.forward.launches += r.launches;
  c.backward.launches += 2 * r.launches;
  // What counts of them is each pair once (model_size.cc).
  const Flops flops(r.tokens * dim * vectors * (vectors - 1));
  const Seconds ideal = flops / peak(r.s.cluster.accelerator, r.p.precision);
  c.forward.matmul_peak += ideal;
  c.backward.matmul_peak += 2 * ideal;
  if (r.record) {
    note(r, "matmul",
         fmt::format("{} of {} x {} x {} pairs", whole(r.tokens), whole(vectors), whole(vectors),
                     whole(dim)),
         forward, backward);
  }
}

void mlp_chain(const Rank& r, LayerCost& c, const std::vector<int64_t>& widths, double input) {
  for (int64_t w : widths) {
    const double n = real(w);
    if (input > 0) {
      linear(r, c, r.tokens, n, input, 1, unquantised(r.p.precision));
      stream(r, c, r.tokens * n * 2 * r.word, r.tokens * n * 3 * r.word);
      c.parameters += input * n;
      c.forward.launches += 3 * r.launches;
      c.backward.launches += 6 * r.launches;
    }
    input = n;
  }
}

}  // namespace

MicrobatchCost dlrm_cost(const Rank& r) {
  const Model& m = r.s.workload.model;
  MicrobatchCost c;
  const double tables = real(m.tables), dim = real(m.embedding_dim);
  const double lookups = real(std::max<int64_t>(1, m.lookups_per_table));
  const double vectors = r.tokens * tables * dim * r.word;
  const Bandwidth gather = streaming(r.s) * kGatherShare;
  // Backward reads the gradient, and reads and writes every touched row with its optimizer state.
  c.embedding.forward.memory = Bytes(vectors * lookups) / gather;
  c.embedding.backward.memory = Bytes(vectors * lookups * 3) / gather;
  c.embedding.forward.launches = 2 * tables * r.launches;
  c.embedding.backward.launches = 4 * tables * r.launches;
  const Group all{r.l.ranks, std::min(r.l.ranks, r.links.scaleup_domain), 1};
  const Seconds exchange = collective_time(Collective::kAllToAll, Bytes(vectors), all, r.links);
  c.embedding.forward.expert = c.embedding.backward.expert = exchange;
  c.embedding.expert_parameters = tables * real(m.rows_per_table) * dim / real(r.l.ranks);
  mlp_chain(r, c.head, m.bottom_mlp, 0);
  const double features = tables + 1;
  pairwise_products(r, c.head, features, dim);
  mlp_chain(r, c.head, m.top_mlp, features * (features - 1) / 2 + dim);
  c.head.working = Bytes(r.tokens * (features * features + 4096) * r.word);
  return c;
}

}  // namespace assay
