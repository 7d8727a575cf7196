// A Newton-Schulz step on X (m x n, m <= n) is S = X X', then X <- a X + (b S + c S S) X: 4 m m n +
// 2 m m m operations, five times. On 8192 x 28672 that is 61 ms on one H200, where Adam's step
// takes 1.2: a model of 8 B takes 1.4 s a step on one card, so whoever runs it splits the matrices
// between the data-parallel ranks. Beside the matmuls, every element is read and written for the
// momentum, the casts, the norm and the sums of each step, and the host starts some fifty kernels.
// Held against test/data/h200_muon.csv (tools/measure/muon.py).
#include "perf/muon.h"

#include <algorithm>

#include "perf/matmul.h"
#include "perf/rank.h"

namespace assay {
namespace {

constexpr double kSteps = 5;
constexpr double kWide = 131, kTall = 266;  // bytes moved per element beside the matmuls
constexpr double kLaunches = 75;            // the host's 0.6 to 0.85 ms per matrix, eager

struct Matrices {
  double count, rows, columns;  // as they are kept: outputs by inputs
};

// Of one layer's attention and MLP or experts, as this rank holds them.
std::vector<Matrices> attention_matrices(const Model& m, double tp) {
  const double h = static_cast<double>(m.hidden);
  const double q = static_cast<double>(m.heads) * head_dim(m) / tp;
  const double kv = static_cast<double>(m.kv_heads) * head_dim(m) / tp;
  return {{1, q, h}, {1, h, q}, {2, std::max(1.0, kv), h}};
}

std::vector<Matrices> mlp_matrices(const Model& m, double width) {
  const double h = static_cast<double>(m.hidden);
  return {{m.gated_mlp ? 2.0 : 1.0, width, h}, {1, h, width}};
}

}  // namespace

Seconds muon_matrix_time(const Setting& s, const Plan& p, double experts, double rows,
                         double columns) {
  const int64_t m = whole(std::min(rows, columns)), n = whole(std::max(rows, columns));
  const Accelerator& a = s.cluster.accelerator;
  const auto product = [&](int64_t width, int64_t depth) {
    return matmul_time({m, width, depth, whole(experts), Precision::kBf16}, a, s.kernels.matmul);
  };
  const Seconds device =
      (product(m, n) + product(m, m) + product(n, m)) * kSteps +
      Bytes(experts * rows * columns * (rows > columns ? kTall : kWide)) / streaming(s);
  const double launches = p.compiled ? 0 : kLaunches;  // one graph for all matrices of a shape
  return std::max(device, s.stack.launch * (launches / s.cluster.node.host_speed));
}

Seconds muon_time(const Setting& s, const Plan& p, const Layout& l, const StageContent& content) {
  const Model& m = s.workload.model;
  const double tp = static_cast<double>(l.tp);
  const auto sum = [&](const std::vector<Matrices>& all, double experts) {
    Seconds t;
    for (const Matrices& x : all) {
      t += muon_matrix_time(s, p, experts, x.rows, x.columns) * x.count;
    }
    return t;
  };
  Seconds shared = sum(attention_matrices(m, tp), 1) * (content.dense_layers + content.moe_layers);
  if (content.dense_layers > 0) {
    shared += sum(mlp_matrices(m, static_cast<double>(m.ffn) / tp), 1) * content.dense_layers;
  }
  Seconds experts;
  if (content.moe_layers > 0) {
    const double local = static_cast<double>(m.experts) / static_cast<double>(l.ep);
    const double width = static_cast<double>(m.expert_ffn) / static_cast<double>(l.etp);
    experts = sum(mlp_matrices(m, width), local) * content.moe_layers;
    if (m.shared_expert_ffn > 0) {
      const double f = static_cast<double>(m.shared_expert_ffn) / tp;
      shared += sum(mlp_matrices(m, f), 1) * content.moe_layers;
    }
  }
  if (p.zero < 1) return shared + experts;
  const double shard = static_cast<double>(l.shard);
  return shared / shard + experts / std::min(shard, static_cast<double>(l.data_expert.ranks));
}

}  // namespace assay
