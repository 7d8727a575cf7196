#include "world/model_size.h"

#include <algorithm>

namespace assay {
namespace {

bool latent_attention(const Model& m) { return m.kv_lora_rank > 0; }

// Matrices of one attention block.
double attention_weights(const Model& m) {
  const double h = real(m.hidden), in = real(attention_input(m));
  const double heads = real(m.heads);
  if (!latent_attention(m)) {
    const double size = real(head_size(m));
    const double gate = m.gated_attention ? in * heads * size : 0;
    return (h + in) * heads * size + gate + 2 * in * real(kv_head_count(m)) * size;
  }
  const double qk = real(m.qk_nope_head_dim + m.qk_rope_head_dim);
  const double q_rank = real(m.q_lora_rank);
  const double kv_rank = real(m.kv_lora_rank);
  const double query = q_rank > 0 ? h * q_rank + q_rank * heads * qk : h * heads * qk;
  const double down = h * (kv_rank + real(m.qk_rope_head_dim));
  const double up = kv_rank * heads * real(m.qk_nope_head_dim + m.v_head_dim);
  return query + down + up + heads * real(m.v_head_dim) * h;
}

double mlp_weights(const Model& m, int64_t width) {
  const double gate = m.mlp_output_gate ? real(m.hidden) * real(m.hidden) : 0;
  return (m.gated_mlp ? 3.0 : 2.0) * real(m.hidden) * real(width) + gate;
}

// Matrices of one layer with `experts` of its experts.
double moe_weights(const Model& m, int64_t experts) {
  const double one = (m.gated_mlp ? 3.0 : 2.0) * real(expert_width(m)) * real(m.expert_ffn);
  const double to_and_fro = m.expert_hidden > 0 ? 2 * real(m.hidden) * real(m.expert_hidden) : 0;
  return real(experts) * one + mlp_weights(m, m.shared_expert_ffn) + to_and_fro +
         real(m.hidden) * real(m.experts);
}

// Weights may be kept once and run by many layers.
enum class Count { kKept, kRun };

// Of what decoder layers do with the encoder's output. Merged with their own attention, it has no
// weights of its own, but keys and values are made of that output, too.
double cross_weights(const Model& m, Count count) {
  if (m.encoder_layers == 0) return 0;
  if (!m.merged_cross) return real(m.layers) * attention_weights(m);
  const double keys = 2 * real(m.hidden) * real(kv_head_count(m)) * real(head_size(m));
  return count == Count::kRun ? real(m.layers) * keys : 0;
}

// All matrices between the embeddings, with `experts` experts per MoE layer.
double body_weights(const Model& m, int64_t experts, Count count) {
  const BlockShares shares = count == Count::kKept ? block_shares(m) : BlockShares{};
  const double moe = real(moe_layers(m)) * shares.mlp_kept;
  const double dense = real(mlp_layers(m) + m.encoder_layers) * shares.mlp_kept - moe;
  const double attention = real(attention_layers(m)) * shares.attention_kept;
  const double encoder = real(m.encoder_layers) * attention_weights(m);
  const double mixers = m.mixer.layers > 0 ? real(m.mixer.layers) * mixer_weights(m) : 0;
  const double own = real(attention_layers(m)) * 2 * real(m.hidden) * real(m.own_width);
  return attention * attention_weights(m) + mixers + dense * mlp_weights(m, m.ffn) +
         (moe > 0 ? moe * moe_weights(m, experts) : 0) + cross_weights(m, count) + encoder + own +
         real(m.layers) * layer_embedding_weights(m);
}

double norm_weights(const Model& m) {
  const double latent = latent_attention(m) ? real(m.q_lora_rank + m.kv_lora_rank) : 0;
  const double attention = real(attention_layers(m) + m.encoder_layers);
  const bool alone = m.ffn == 0 && m.experts == 0;  // mixers without an MLP
  const double blocks =
      attention + real(m.mixer.layers + m.encoder_layers) + (alone ? 0 : real(mlp_layers(m)));
  return blocks * real(m.hidden) + attention * latent + real(m.hidden);
}

double transformer_parameters(const Model& m, int64_t experts) {
  const double table = real(m.vocab) * real(embedding_width(m));
  const double positions =
      m.learned_positions ? real(m.max_positions) * real(position_width(m)) : 0;
  return body_weights(m, experts, Count::kKept) + norm_weights(m) + positions +
         (m.tied_embeddings ? 1.0 : 2.0) * table + 2 * embedding_projection(m);
}

double layer_tables(const Model& m) { return real(m.vocab) * layer_embedding_columns(m); }

// Sum over attention blocks of twice the keys that a query sees.
double attention_context(const Model& m, int64_t seq) {
  const double s = real(seq);
  const double own = real(attention_layers(m)) * 2 * keys_seen(m, m.causal, s);
  // The encoder sees both sides, and a decoder layer all of the encoder's output.
  const double encoder = real(m.encoder_layers) * s * 2;
  const double cross = m.encoder_layers > 0 ? real(m.layers) * s * 2 : 0;
  return own + encoder + cross;
}

double attention_width(const Model& m) {
  if (!latent_attention(m)) return real(m.heads) * real(head_size(m));
  return real(m.heads) * real(m.qk_nope_head_dim + m.qk_rope_head_dim + m.v_head_dim) / 2;
}

double chain_weights(double input, const std::vector<int64_t>& widths) {
  double sum = 0;
  for (int64_t width : widths) {
    sum += input * real(width);
    input = real(width);
  }
  return sum;
}

// Pairs of the table vectors and the bottom MLP's output.
double interaction_pairs(const Model& m) { return real(m.tables + 1) * real(m.tables) / 2; }

double dlrm_mlp_weights(const Model& m) {
  double bottom = 0;
  if (!m.bottom_mlp.empty()) {
    bottom = chain_weights(real(m.bottom_mlp[0]), {m.bottom_mlp.begin() + 1, m.bottom_mlp.end()});
  }
  return bottom + chain_weights(interaction_pairs(m) + real(m.embedding_dim), m.top_mlp);
}

}  // namespace

int64_t head_size(const Model& m) {
  if (m.head_dim > 0) return m.head_dim;
  return m.heads > 0 ? m.hidden / m.heads : 0;
}

double keys_in_window(double window, bool causal, double reach) {
  if (window <= 0 || window >= reach) return causal ? reach / 2 : reach;
  return causal ? window * (1 - window / (2 * reach)) : window;
}

double keys_seen(const Model& m, bool causal, double reach) {
  const double share = m.window > 0 ? m.window_layers : 0;
  return share * keys_in_window(real(m.window), causal, reach) +
         (1 - share) * keys_in_window(0, causal, reach);
}

int64_t embedding_width(const Model& m) { return m.embedding_dim > 0 ? m.embedding_dim : m.hidden; }

double embedding_projection(const Model& m) {
  const int64_t width = embedding_width(m);
  return width == m.hidden ? 0 : real(width) * real(m.hidden);
}

int64_t attention_input(const Model& m) {
  return m.attention_input > 0 ? m.attention_input : m.hidden;
}

double layer_embedding_weights(const Model& m) {
  return 3 * real(m.hidden) * real(m.layer_embedding);
}

double layer_embedding_columns(const Model& m) { return real(m.layers) * real(m.layer_embedding); }

int64_t position_width(const Model& m) { return m.causal ? m.hidden : embedding_width(m); }

int64_t kv_head_count(const Model& m) { return m.kv_heads > 0 ? m.kv_heads : m.heads; }

int64_t attention_layers(const Model& m) {
  if (m.attention_layers > 0) return m.attention_layers;
  // Where blocks are layers of their own, what is neither mixer nor MLP.
  return std::max<int64_t>(0, m.layers - m.mixer.layers - m.mlp_layers);
}

int64_t mlp_layers(const Model& m) { return m.mlp_layers > 0 ? m.mlp_layers : m.layers; }

BlockShares block_shares(const Model& m) {
  BlockShares s;
  const auto kept = [&](int64_t blocks) {
    const bool shared = m.weight_sets > 0 && m.weight_sets < blocks;
    return shared ? real(m.weight_sets) / real(blocks) : 1.0;
  };
  s.attention_kept = kept(attention_layers(m));
  s.mlp_kept = kept(mlp_layers(m));
  if (m.mixer.layers == 0) return s;
  const double layers = real(m.layers);
  const bool alone = m.ffn == 0 && m.experts == 0;  // mixers without an MLP
  s.attention = real(attention_layers(m)) / layers;
  s.mixer = real(m.mixer.layers) / layers;
  s.mlp = alone ? 0 : real(mlp_layers(m)) / layers;
  return s;
}

int64_t moe_layers_among(const Model& m, int64_t first) {
  if (m.experts <= 0) return 0;
  return std::max<int64_t>(0, first - m.dense_layers) / std::max<int64_t>(1, m.moe_every);
}

int64_t moe_layers(const Model& m) { return moe_layers_among(m, mlp_layers(m) + m.encoder_layers); }

double value_width(const Mixer& x) { return real(x.heads) * real(x.head_dim); }

double key_width(const Mixer& x) { return real(std::max<int64_t>(1, x.groups)) * real(x.state); }

double mixer_inputs(const Mixer& x) {
  const double v = value_width(x), k = key_width(x), heads = real(x.heads);
  switch (x.kind) {
    case MixerKind::kMamba2:
      return 2 * v + 2 * k + heads;
    case MixerKind::kMamba:
      return 2 * v;
    case MixerKind::kGatedDelta:
      return 2 * v + 2 * k + 2 * heads;
    case MixerKind::kKda:
      return v + 2 * k + heads + 2 * real(x.rank);
    case MixerKind::kLightning:
      return 2 * v + 2 * k;
    case MixerKind::kConvolution:
    case MixerKind::kWkv:
      return 3 * v;
    case MixerKind::kGatedLinear:
      return 2 * v + 2 * k + real(x.rank);
    case MixerKind::kWkv7:
      return v + 2 * k + real(x.rank);
    case MixerKind::kRgLru:
      return 2 * v;
  }
  return 0;
}

bool has_keys(MixerKind kind) {
  return kind != MixerKind::kMamba && kind != MixerKind::kConvolution &&
         kind != MixerKind::kRgLru && kind != MixerKind::kWkv;
}

double mixer_weights(const Model& m) {
  const Mixer& x = m.mixer;
  const double h = real(m.hidden), v = value_width(x), rank = real(x.rank);
  double behind = 0;  // the input projection
  if (x.kind == MixerKind::kMamba) behind = v * (rank + 2 * real(x.state)) + rank * v;
  if (x.kind == MixerKind::kKda) behind = rank * (real(x.heads) * real(x.state) + v);
  if (x.kind == MixerKind::kGatedLinear || x.kind == MixerKind::kWkv7) behind = rank * v;
  if (x.kind == MixerKind::kRgLru) behind = 2 * v * real(x.head_dim);
  return h * mixer_inputs(x) + behind + v * h;
}

double mixer_flops(const Mixer& x) {
  constexpr double kPerElement = 7;
  const bool by_channel = x.kind == MixerKind::kRgLru || x.kind == MixerKind::kWkv;
  return kPerElement * value_width(x) * (by_channel ? 1 : real(x.state));
}

double predicted_ahead(const Model& m) { return real(m.mtp_layers) / (m.mlp_layers > 0 ? 2 : 1); }

int64_t mixer_shares(const Mixer& x) {
  return x.kind == MixerKind::kConvolution ? x.heads * x.head_dim : x.heads;
}

bool splits_heads(const Model& m, int64_t tp) {
  const bool attention = attention_layers(m) > 0, mixers = m.mixer.layers > 0;
  if (m.kind == ModelKind::kDlrm || (!mixers && m.heads <= 0)) return tp == 1;
  return (!attention || m.heads % tp == 0) && (!mixers || mixer_shares(m.mixer) % tp == 0);
}

int64_t expert_width(const Model& m) { return m.expert_hidden > 0 ? m.expert_hidden : m.hidden; }

double parameters(const Model& m) {
  if (m.kind == ModelKind::kDlrm) {
    return real(m.tables) * real(m.rows_per_table) * real(m.embedding_dim) + dlrm_mlp_weights(m);
  }
  return transformer_parameters(m, m.experts) + layer_tables(m);
}

double active_parameters(const Model& m) {
  if (m.kind == ModelKind::kDlrm) {
    const double rows = real(m.tables) * real(std::max<int64_t>(1, m.lookups_per_table));
    return rows * real(m.embedding_dim) + dlrm_mlp_weights(m);
  }
  return transformer_parameters(m, m.experts_per_token) + layer_embedding_columns(m);
}

Bytes input_bytes(const Workload& w) {
  if (w.sample_bytes.v > 0) return w.sample_bytes;
  constexpr double kIndexBytes = 4;
  const Model& m = w.model;
  if (m.kind != ModelKind::kDlrm) return Bytes(kIndexBytes * real(w.seq));
  return Bytes(kIndexBytes * real(m.tables) * real(std::max<int64_t>(1, m.lookups_per_table)));
}

int64_t attended(const Workload& w) { return w.document > 0 ? std::min(w.document, w.seq) : w.seq; }

double flops_per_token(const Workload& w) { return flops_per_token(w.model, attended(w), w.task); }

double flops_per_token(const Model& m, int64_t seq, Task task) {
  const double per_weight = task == Task::kLora ? 4 : 6;
  if (m.kind == ModelKind::kDlrm) {
    return per_weight * (dlrm_mlp_weights(m) + interaction_pairs(m) * real(m.embedding_dim));
  }
  const double head = real(m.vocab) * real(embedding_width(m)) + embedding_projection(m);
  // A fine-tuned encoder is asked once for each sequence.
  const bool once = m.masked_share > 0 && task != Task::kPretrain;
  const double weights =
      body_weights(m, m.experts_per_token, Count::kRun) + head / (once ? real(seq) : 1);
  return per_weight * weights + 6 * attention_context(m, seq) * attention_width(m) +
         3 * real(m.mixer.layers) * mixer_flops(m.mixer);
}

}  // namespace assay
