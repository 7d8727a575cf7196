// What is to be trained: the model's shape, the batch, the precision, the target.
#pragma once

#include "world/fields.h"
#include "world/precision.h"

namespace assay {

enum class ModelKind { kTransformer, kDlrm };
constexpr std::array<std::string_view, 2> enum_names(ModelKind) { return {"transformer", "dlrm"}; }

// What stands in place of attention, or beside it, and carries a state from token to token: state
// spaces (Mamba, Mamba-2), linear attention (gated delta rule, Kimi's KDA, lightning; with decays
// of its own for every channel: RWKV-5 and 6, xLSTM; with a delta rule besides: RWKV-7), a
// channel's own recurrence (Griffin's RG-LRU, RWKV-4), or a short convolution alone (LFM2).
enum class MixerKind {
  kMamba2,
  kMamba,
  kGatedDelta,
  kKda,
  kLightning,
  kConvolution,
  kGatedLinear,
  kWkv7,
  kRgLru,
  kWkv
};
constexpr std::array<std::string_view, 10> enum_names(MixerKind) {
  return {"mamba2",      "mamba",        "gated_delta", "kda",    "lightning",
          "convolution", "gated_linear", "wkv7",        "rg_lru", "wkv"};
}

// A recurrent mixer by its shapes; `layers` = 0: the model has none. Values are `heads` x
// `head_dim` wide, keys and queries (B and C of a state space) `groups` x `state`; each head holds
// a state of head_dim x state. Mamba's are channels: heads of 1. Heads of an RG-LRU are the blocks
// of its gates.
struct Mixer {
  MixerKind kind = MixerKind::kMamba2;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t head_dim = 0;
  int64_t state = 0;
  int64_t groups = 0;  // zero: one
  int64_t taps = 0;    // of the convolution before it
  // Of what its gates or time steps are projected through; of gated_linear and wkv7 the sum over
  // all that are. Zero: directly.
  int64_t rank = 0;
};

template <class T, class V>
  requires std::is_same_v<std::remove_const_t<T>, Mixer>
void fields(T& m, V&& visit) {
  visit(
      "kind", m.kind, kAny,
      "mamba2, mamba, gated_delta, kda, lightning, convolution, gated_linear, wkv7, rg_lru or wkv");
  visit("layers", m.layers, Limits{0, 100000}, "layers with a recurrent mixer");
  visit("heads", m.heads, Limits{0, 1e6}, "value heads");
  visit("head_dim", m.head_dim, Limits{0, 65536}, "size of a value head");
  visit("state", m.state, Limits{0, 65536}, "state size: of a key head");
  visit("groups", m.groups, Limits{0, 65536}, "key heads that value heads share; zero: one");
  visit("taps", m.taps, Limits{0, 1024}, "taps of the convolution before it; zero: none");
  visit("rank", m.rank, Limits{0, 65536},
        "rank of its gates or time steps (gated_linear, wkv7: their sum); zero: full");
}

// A transformer by its matmul shapes, or a recommendation model by its tables and MLPs.
struct Model {
  std::string name;
  ModelKind kind = ModelKind::kTransformer;
  int64_t layers = 0;  // decoder (or only) layers
  int64_t encoder_layers =
      0;  // of an encoder-decoder; cross-attention is added to each decoder layer
  int64_t hidden = 0;
  int64_t ffn = 0;  // dense MLP width; of the dense layers in an MoE
  int64_t heads = 0;
  int64_t kv_heads = 0;  // zero: the same as heads
  int64_t head_dim = 0;  // zero: hidden / heads
  int64_t vocab = 0;
  bool gated_mlp = true;  // two up-projections (SwiGLU, GeGLU) instead of one
  bool tied_embeddings = false;
  bool causal = true;
  double masked_share = 0;  // positions an encoder's pretraining asks about; zero: all of them
  bool learned_positions = false;
  bool rotary = true;  // without learned positions: queries and keys are turned, or scores biased
  int64_t max_positions = 0;
  int64_t window = 0;        // sliding-window attention; zero: full
  double window_layers = 0;  // fraction of layers that use the window
  // Mixture of experts; experts = 0 is dense.
  int64_t experts = 0;
  int64_t experts_per_token = 0;
  int64_t expert_groups = 0;     // of experts; zero: one
  int64_t groups_per_token = 0;  // of these, to which a token's experts are confined
  int64_t expert_ffn = 0;
  int64_t shared_expert_ffn = 0;
  int64_t dense_layers = 0;      // leading layers without experts
  int64_t moe_every = 1;         // 2: every second layer has experts
  bool head_norm = false;        // queries and keys are normalised head by head (Qwen3, Gemma 3)
  bool gated_attention = false;  // its output is gated by as many elements (Qwen3-Next)
  bool expert_bias = false;      // experts add biases and clamp their gate (GPT-OSS)
  // Attention and MLP read one norm of one input and are added to it together (GPT-J, PaLM,
  // Falcon): tensor parallel ranks exchange once a layer and pass.
  bool parallel_block = false;
  bool tanh_gelu = false;  // the MLP's GELU by tanh (GPT-2, GPT-J), a formula in some model code
  // Multi-head latent attention (DeepSeek); kv_lora_rank = 0 is ordinary attention.
  int64_t q_lora_rank = 0;
  int64_t kv_lora_rank = 0;
  int64_t qk_nope_head_dim = 0;
  int64_t qk_rope_head_dim = 0;
  int64_t v_head_dim = 0;
  int64_t mtp_layers = 0;  // multi-token-prediction layers trained beside the main ones
  // Hybrids. Blocks may be layers of their own (Nemotron-H: one mixer, attention or MLP each).
  Mixer mixer;
  int64_t attention_layers = 0;  // layers with attention; zero: those without a mixer
  int64_t mlp_layers = 0;        // layers with an MLP or experts; zero: all
  int64_t expert_hidden = 0;     // width that experts work in; zero: hidden (LatentMoE: less)
  // Sets of attention and MLP weights that layers take in turns: kept once, run many times.
  int64_t weight_sets = 0;  // zero: every layer has its own
  // What a layer with attention computes by weights of its own beside such a set, as two
  // projections through this width (Zamba: a projection of the result, adapters); zero: nothing.
  int64_t own_width = 0;
  int64_t attention_input = 0;   // width that attention reads; zero: hidden (Zamba: twice)
  bool mlp_output_gate = false;  // the MLP's output is gated by a projection of its input (RWKV)
  // Every layer adds a vector of this width, projected, from a table of its own (Gemma 3n); zero:
  // none.
  int64_t layer_embedding = 0;
  // Residual streams side by side that every layer mixes (AltUp of Gemma 3n); zero: one.
  int64_t residual_streams = 0;
  bool merged_cross = false;  // a decoder layer sees itself and the encoder in one attention
  // Recommendation model.
  int64_t tables = 0;
  int64_t rows_per_table = 0;
  int64_t embedding_dim = 0;  // of a transformer: of its vocabulary, projected; zero: hidden
  int64_t lookups_per_table = 0;
  std::vector<int64_t> bottom_mlp, top_mlp;
};

template <class T, class V>
void expert_fields(T& m, V& visit) {
  constexpr Limits kDim{0, 1e7};
  visit("experts", m.experts, Limits{0, 1e6}, "experts per MoE layer; zero: dense");
  visit("experts_per_token", m.experts_per_token, Limits{0, 1e6}, "experts each token visits");
  visit("expert_groups", m.expert_groups, Limits{0, 1e6}, "groups of experts; 0: one");
  visit("groups_per_token", m.groups_per_token, Limits{0, 1e6},
        "of these, to which a token's experts are confined");
  visit("expert_ffn", m.expert_ffn, kDim, "width of one expert");
  visit("shared_expert_ffn", m.shared_expert_ffn, kDim, "width of the shared expert");
  visit("dense_layers", m.dense_layers, Limits{0, 100000}, "leading layers without experts");
  visit("moe_every", m.moe_every, Limits{1, 1000}, "every n-th layer has experts");
}

template <class T, class V>
  requires std::is_same_v<std::remove_const_t<T>, Model>
void fields(T& m, V&& visit) {
  constexpr Limits kDim{0, 1e7};
  visit("kind", m.kind, kAny, "transformer or dlrm");
  visit("layers", m.layers, Limits{0, 100000}, "layers (decoder layers of an encoder-decoder)");
  visit("encoder_layers", m.encoder_layers, Limits{0, 100000}, "encoder layers");
  visit("hidden", m.hidden, kDim, "model width");
  visit("ffn", m.ffn, kDim, "MLP width");
  visit("heads", m.heads, Limits{0, 65536}, "attention heads");
  visit("kv_heads", m.kv_heads, Limits{0, 65536}, "key-value heads; zero: as many as heads");
  visit("head_dim", m.head_dim, Limits{0, 65536}, "head size; zero: hidden / heads");
  visit("vocab", m.vocab, Limits{0, 1e8}, "vocabulary");
  visit("gated_mlp", m.gated_mlp, kAny, "two up-projections (SwiGLU) instead of one");
  visit("tied_embeddings", m.tied_embeddings, kAny, "input and output embedding are one matrix");
  visit("causal", m.causal, kAny, "causal attention");
  visit("masked_share", m.masked_share, Limits{0, 1}, "positions that pretraining masks; 0: all");
  visit("learned_positions", m.learned_positions, kAny, "learned position embeddings");
  visit("rotary", m.rotary, kAny, "where positions are not learned: off for biased scores (ALiBi)");
  visit("max_positions", m.max_positions, Limits{0, 1e9}, "longest sequence it was built for");
  visit("window", m.window, Limits{0, 1e9}, "sliding attention window in tokens");
  visit("window_layers", m.window_layers, kFraction, "fraction of layers that use the window");
  expert_fields(m, visit);
  visit("head_norm", m.head_norm, kAny, "queries and keys are normalised by head (Qwen3)");
  visit("gated_attention", m.gated_attention, kAny,
        "attention's output is gated by a projection as wide as queries (Qwen3-Next)");
  visit("expert_bias", m.expert_bias, kAny, "experts add biases and clamp their gate (GPT-OSS)");
  visit("parallel_block", m.parallel_block, kAny,
        "attention and MLP side by side, one sum (GPT-J, PaLM); not with experts");
  visit("tanh_gelu", m.tanh_gelu, kAny, "GELU by tanh, written out in some model code (GPT-2)");
  visit("q_lora_rank", m.q_lora_rank, kDim, "latent attention: query rank");
  visit("kv_lora_rank", m.kv_lora_rank, kDim, "latent attention: key-value rank");
  visit("qk_nope_head_dim", m.qk_nope_head_dim, kDim, "latent attention: head size without rope");
  visit("qk_rope_head_dim", m.qk_rope_head_dim, kDim, "latent attention: head size with rope");
  visit("v_head_dim", m.v_head_dim, kDim, "latent attention: value head size");
  visit("mtp_layers", m.mtp_layers, Limits{0, 1000}, "multi-token-prediction layers");
  visit("mixer", m.mixer, kAny, "state space or linear attention, in `layers` of its own");
  visit("attention_layers", m.attention_layers, Limits{0, 100000},
        "layers with attention; zero: those without a mixer");
  visit("mlp_layers", m.mlp_layers, Limits{0, 100000}, "layers with an MLP or experts; zero: all");
  visit("expert_hidden", m.expert_hidden, kDim,
        "width that experts work in, projected to and fro (LatentMoE); zero: hidden");
  visit("weight_sets", m.weight_sets, Limits{0, 100000},
        "sets of attention and MLP weights that layers take in turns (ALBERT: 1); zero: each its "
        "own");
  visit("own_width", m.own_width, kDim,
        "of a layer that shares weights: two projections of its own through this width (Zamba)");
  visit("attention_input", m.attention_input, kDim,
        "width that attention reads; zero: hidden (Zamba: twice)");
  visit("mlp_output_gate", m.mlp_output_gate, kAny,
        "the MLP's output is gated by a projection of its input (RWKV 4 to 6)");
  visit("layer_embedding", m.layer_embedding, kDim,
        "width of what every layer adds from a table of its own (Gemma 3n); zero: none");
  visit("residual_streams", m.residual_streams, Limits{0, 64},
        "residual streams that every layer mixes (Gemma 3n: 4); zero: one");
  visit("merged_cross", m.merged_cross, kAny,
        "decoder layers see themselves and the encoder in one attention (T5Gemma 2)");
  visit("tables", m.tables, Limits{0, 1e6}, "embedding tables");
  visit("rows_per_table", m.rows_per_table, Limits{0, 1e12}, "rows of one table");
  visit("embedding_dim", m.embedding_dim, kDim, "embedding width; zero: hidden (OPT-350M: less)");
  visit("lookups_per_table", m.lookups_per_table, Limits{0, 1e6}, "lookups per sample and table");
  visit("bottom_mlp", m.bottom_mlp, kDim, "widths of the dense-feature MLP, input first");
  visit("top_mlp", m.top_mlp, kDim, "widths of the top MLP after its input");
}

enum class Task { kPretrain, kSft, kLora };
constexpr std::array<std::string_view, 3> enum_names(Task) { return {"pretrain", "sft", "lora"}; }

// muon: every matrix of a layer by Newton-Schulz steps and one moment, the rest by Adam.
enum class Optimizer { kAdam, kMuon };
constexpr std::array<std::string_view, 2> enum_names(Optimizer) { return {"adam", "muon"}; }

struct Workload {
  std::string name;
  Model model;
  Task task = Task::kPretrain;
  Optimizer optimizer = Optimizer::kAdam;
  int64_t seq = 0;           // tokens per sequence; zero: 4096 or the model's limit
  int64_t document = 0;      // tokens that see each other, several such in a sequence; zero: all
  int64_t global_batch = 0;  // sequences (samples) per optimizer step; zero: about 4 M tokens
  double tokens = 0;         // training target; zero: 20 per active parameter
  Bytes sample_bytes;        // input of one sequence or sample; zero: 4 bytes a token
  int64_t lora_rank = 16;
  bool lora_mlp = false;  // adapters on the MLP's projections too, not only on attention's
};

template <class T, class V>
  requires std::is_same_v<std::remove_const_t<T>, Workload>
void fields(T& w, V&& visit) {
  visit("model", w.model, kAny, "the model, a catalog name, a config.json or a mapping");
  visit("task", w.task, kAny, "pretrain, sft or lora");
  visit("optimizer", w.optimizer, kAny, "adam or muon");
  visit("seq", w.seq, Limits{0, 1e9}, "tokens per sequence");
  visit("document", w.document, Limits{0, 1e9},
        "tokens of the packed document that a token is in, mean over tokens; zero: the sequence");
  visit("global_batch", w.global_batch, Limits{0, 1e9}, "sequences per optimizer step");
  visit("tokens", w.tokens, Limits{0, 1e18}, "tokens to train on");
  visit("sample_bytes", w.sample_bytes, kNotNegative,
        "input of one sequence or sample; zero: 4 bytes a token");
  visit("lora_rank", w.lora_rank, Limits{1, 65536}, "rank of LoRA adapters");
  visit("lora_mlp", w.lora_mlp, kAny, "adapters on the MLP's projections too");
}

}  // namespace assay
