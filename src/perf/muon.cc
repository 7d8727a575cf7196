// A Newton-Schulz step on X (m x n, m <= n) is S = X X', then X <- a X + (b S + c S S) X: 4 m m n +
// 2 m m m operations, five times. On 8192 x 28672 that is 61 ms on one H200, and by this model
// 1.3 s a step for 8 B parameters on one card, so whoever runs it splits the matrices between the
// data-parallel ranks. Beside the matmuls, every element is read and written for the
// momentum, the casts, the norm and the sums of each step, and the host starts some fifty kernels.
// Held against test/data/h200_muon.csv (tools/measure/muon.py).
#include "perf/muon.h"

#include <algorithm>
#include <vector>

#include "perf/matmul.h"
#include "perf/rank.h"
#include "world/model_size.h"

namespace assay {
namespace {

constexpr double kSteps = 5;                // as its authors run it
constexpr double kWide = 131, kTall = 266;  // bytes moved per element beside the matmuls
constexpr Seconds kHostPerMatrix{0.7e-3};   // per matrix, eager: 0.6 to 0.85 on one host

struct Matrices {
  double count, rows, columns;  // as they are kept: outputs by inputs
};

// Of one layer's attention, as a tensor-parallel rank holds them.
std::vector<Matrices> attention_matrices(const Model& m, double tp) {
  const double h = real(m.hidden), heads = real(m.heads);
  if (m.kv_lora_rank > 0) {
    const double rank = real(m.kv_lora_rank);
    const double q_rank = real(m.q_lora_rank);
    const double nope = real(m.qk_nope_head_dim);
    const double rope = real(m.qk_rope_head_dim);
    const double v = real(m.v_head_dim), q = heads * (nope + rope) / tp;
    std::vector<Matrices> all = {
        {1, rank + rope, h}, {1, heads * (nope + v) / tp, rank}, {1, h, heads * v / tp}};
    if (q_rank > 0) all.push_back({1, q_rank, h});
    all.push_back({1, q, q_rank > 0 ? q_rank : h});
    return all;
  }
  const double groups = real(kv_head_count(m));
  const double q = heads * head_dim(m) / tp, kv = groups * head_dim(m) / std::min(tp, groups);
  const double in = real(attention_input(m));
  return {{m.gated_attention ? 2.0 : 1.0, q, in}, {1, h, q}, {2, kv, in}};
}

// Of a recurrent mixer: in and out; what goes through a low rank is small beside them.
std::vector<Matrices> mixer_matrices(const Model& m, double tp) {
  const double h = real(m.hidden);
  return {{1, mixer_inputs(m.mixer) / tp, h}, {1, h, value_width(m.mixer) / tp}};
}

// From `h` to `width` and back.
std::vector<Matrices> mlp_matrices(const Model& m, double h, double width) {
  return {{m.gated_mlp ? 2.0 : 1.0, width, h}, {1, h, width}};
}

// What a rank does of matrices that others share, each whole: no less than the longest of them.
struct Work {
  Seconds all, longest;
  Seconds shared_by(double ranks) const { return std::max(all / ranks, longest); }
};

// `layers` times these matrices, `batch` of each at once.
void add_work(const Setting& s, const Plan& p, const std::vector<Matrices>& matrices, double batch,
              double layers, Work& w) {
  if (layers <= 0) return;
  for (const Matrices& x : matrices) {
    w.all += muon_matrix_time(s, p, batch, x.rows, x.columns) * (x.count * layers);
    w.longest = std::max(w.longest, muon_matrix_time(s, p, 1, x.rows, x.columns));
  }
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
  // Compiled: one graph for all matrices of a shape.
  return p.compiled ? device : std::max(device, kHostPerMatrix / s.cluster.node.host_speed);
}

Seconds muon_time(const Setting& s, const Plan& p, const Layout& l, const StageContent& content) {
  const Model& m = s.workload.model;
  const double tp = real(l.tp), experts_of = real(l.ep);
  const double layers = content.dense_layers + content.moe_layers;
  BlockShares shares = block_shares(m);
  shares.attention *= shares.attention_kept;
  shares.mlp *= shares.mlp_kept;
  Work shared, experts;
  if (shares.attention > 0) {
    add_work(s, p, attention_matrices(m, tp), 1, layers * shares.attention, shared);
  }
  if (shares.mixer > 0) {
    add_work(s, p, mixer_matrices(m, tp), 1, layers * shares.mixer, shared);
  }
  const auto cut = [&](int64_t from, int64_t width, int64_t by) {
    return mlp_matrices(m, real(from), real(width) / real(by));
  };
  const double dense = content.dense_layers * shares.mlp, routed = content.moe_layers * shares.mlp;
  add_work(s, p, cut(m.hidden, m.ffn, l.tp), 1, m.ffn > 0 ? dense : 0, shared);
  if (m.experts > 0) {
    add_work(s, p, cut(m.hidden, m.shared_expert_ffn, l.tp), 1,
             m.shared_expert_ffn > 0 ? routed : 0, shared);
    add_work(s, p, cut(expert_width(m), m.expert_ffn, l.etp), real(m.experts) / experts_of, routed,
             experts);
  }
  if (p.zero < 1) return shared.all + experts.all;
  const double shard = real(l.shard);
  const double copies = real(l.data_expert.ranks);
  return shared.shared_by(shard) + experts.shared_by(std::min(shard, copies));
}

}  // namespace assay
