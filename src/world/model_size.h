// How large a model is and what one token of it costs, by counting its matrices.
//
// Biases and the extra weights of LayerNorm are not counted (below 0.1 % of any model in the
// catalog). docs/models has the convention for FLOPs; it is that of the validation set.
#pragma once

#include "world/workload.h"

namespace assay {

// All parameters, and those that one token meets: all but the experts it does not visit, and of
// embedding tables of recommendation models and of layers only the rows it looks up.
// Multi-token-prediction layers are counted in neither.
double parameters(const Model&);
double active_parameters(const Model&);

// Model FLOPs per token (per sample of a recommendation model), forward and backward:
//   6 x active matmul parameters + 6 x attention layers x seq x heads x head size   (causal)
// with the output head in (once a sequence where an encoder is fine-tuned), the input embedding
// out, recomputation out. Attention that is not causal counts twice, a windowed layer has twice the
// keys that a query sees for seq (keys_in_window), latent attention has half of
// (query-key size + value size) for the head size. A recurrent mixer counts 7 per element of its
// state forward and 14 backward, as Megatron-LM counts Mamba-2. LoRA: 4 instead of 6 per parameter,
// because no gradient of a frozen weight is computed.
double flops_per_token(const Model&, int64_t seq, Task);

// Tokens that attention reaches over: of the sequence, or of the documents packed into it.
int64_t attended(const Workload&);
double flops_per_token(const Workload&);

// Input of one sequence or sample: what is stated, else its tokens or indices in 4 bytes each.
Bytes input_bytes(const Workload&);

// Layers with attention, with an MLP of either kind, and, of an encoder too, with experts.
int64_t attention_layers(const Model&);
int64_t mlp_layers(const Model&);
int64_t moe_layers(const Model&);
// Of the first so many layers: every moe_every-th behind the dense ones, the last of its period.
int64_t moe_layers_among(const Model&, int64_t first);

// What a layer of the model has of each block in the mean: one attention and one MLP, but in
// hybrids. Of these blocks, so many have weights of their own: all, but where layers share them.
struct BlockShares {
  double attention = 1, mixer = 0, mlp = 1;
  double attention_kept = 1, mlp_kept = 1;
};
BlockShares block_shares(const Model&);

// Widths of a recurrent mixer: of its values, and of its keys before heads share them.
double value_width(const Mixer&);
double key_width(const Mixer&);
// What it projects its input to: values, keys, queries, gates and time steps.
double mixer_inputs(const Mixer&);
// Whether keys and queries are projected beside the values.
bool has_keys(MixerKind);
// Its matrices, the low-rank ones and blocks of gates with them.
double mixer_weights(const Model&);
// Model FLOPs of one token's recurrence, forward.
double mixer_flops(const Mixer&);

// Tokens that multi-token prediction looks ahead beyond the next: one for each of its layers, or
// for two where attention and MLP are layers of their own.
double predicted_ahead(const Model&);

// Into how many parts ranks can split a mixer: its heads; a convolution is split anywhere.
int64_t mixer_shares(const Mixer&);

// Whether `tp` ranks can share the heads of attention and of a mixer; a model without any is not
// split.
bool splits_heads(const Model&, int64_t tp);

// Width of the vocabulary's vectors, and the weights that project it to the model's; zero where
// both are one.
int64_t embedding_width(const Model&);
double embedding_projection(const Model&);
// Width that attention reads.
int64_t attention_input(const Model&);
// Weights of a layer's own embeddings: projected from the model's width, gated, and back. Zero
// where there are none. Their table holds this many elements a word.
double layer_embedding_weights(const Model&);
double layer_embedding_columns(const Model&);
// Width of learned positions: encoders add them before they project (ELECTRA, ALBERT).
int64_t position_width(const Model&);

// The width that experts read and write.
int64_t expert_width(const Model&);

// Head sizes with their defaults applied.
int64_t head_size(const Model&);
// Keys that a query sees on average in a sequence of `reach`: under a causal mask half of it, and
// of a window that is shorter the whole of it but for the first queries. The second is the mean
// over layers with and without a window.
double keys_in_window(double window, bool causal, double reach);
double keys_seen(const Model&, bool causal, double reach);
int64_t kv_head_count(const Model&);

}  // namespace assay
