// What families call the fields of a Model in their config.json. Internal to world.
#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>

#include "world/fields.h"

namespace assay {

using Keys = std::initializer_list<const char*>;

inline constexpr Keys kLayersKeys = {
    "num_hidden_layers",      "n_layer",   "num_layers", "n_layers", "decoder_layers",
    "num_transformer_layers", "num_blocks"};
inline constexpr Keys kHiddenKeys = {"hidden_size", "n_embd",    "d_model", "n_embed",
                                     "dim",         "model_dim", "emb_dim", "embedding_dim"};
inline constexpr Keys kHeadsKeys = {"num_attention_heads",
                                    "n_head",
                                    "num_heads",
                                    "n_heads",
                                    "decoder_attention_heads",
                                    "encoder_attention_heads",
                                    "num_query_heads",
                                    "attention_heads"};
inline constexpr Keys kKvHeadsKeys = {
    "num_key_value_heads",          "num_kv_heads", "n_head_kv",
    "multi_query_group_num",        "kv_n_heads",   "attn_config.kv_n_heads",
    "num_key_value_heads_per_layer"};
inline constexpr Keys kHeadDimKeys = {"head_dim", "d_kv", "kv_channels", "attention_head_dim"};
inline constexpr Keys kVocabKeys = {"vocab_size", "padded_vocab_size", "vocab_size_padded",
                                    "n_words"};
inline constexpr Keys kPositionsKeys = {"max_position_embeddings",
                                        "n_positions",
                                        "n_ctx",
                                        "seq_length",
                                        "max_seq_len",
                                        "max_sequence_length",
                                        "model_max_length",
                                        "max_target_positions",
                                        "max_context_length",
                                        "context_length"};
inline constexpr Keys kFfnKeys = {"intermediate_size",
                                  "n_inner",
                                  "ffn_dim",
                                  "d_ff",
                                  "ffn_hidden_size",
                                  "hidden_dim",
                                  "decoder_ffn_dim",
                                  "encoder_ffn_dim",
                                  "moe_intermediate_size",
                                  "ffn_config.ffn_hidden_size",
                                  "block_ff_dim",
                                  "dff"};
inline constexpr Keys kExpertsKeys = {"num_local_experts", "num_experts", "n_routed_experts",
                                      "moe_num_experts", "ffn_config.moe_num_experts"};
inline constexpr Keys kExpertsPerTokenKeys = {"num_experts_per_tok",
                                              "num_experts_per_token",
                                              "moe_topk",
                                              "moe_top_k",
                                              "moe_k",
                                              "num_selected_experts",
                                              "top_k_experts",
                                              "experts_per_token",
                                              "ffn_config.moe_top_k"};
inline constexpr Keys kExpertGroupsKeys = {"n_group"};
inline constexpr Keys kGroupsPerTokenKeys = {"topk_group"};
inline constexpr Keys kExpertFfnKeys = {"moe_intermediate_size", "expert_ffn_hidden_size"};
inline constexpr Keys kSharedFfnKeys = {"shared_expert_intermediate_size",
                                        "moe_shared_expert_intermediate_size",
                                        "shared_intermediate_size"};
inline constexpr Keys kSharedExpertsKeys = {"n_shared_experts", "num_shared_experts",
                                            "num_shared_expert", "moe_num_shared_experts"};
inline constexpr Keys kDenseLayersKeys = {"first_k_dense_replace", "num_dense_layers",
                                          "moe_layer_start_index", "moe_layer_num_skipped"};
inline constexpr Keys kMoeEveryKeys = {"decoder_sparse_step",       "moe_layer_freq",
                                       "moe_layer_frequency",       "moe_layer_interval",
                                       "interleave_moe_layer_step", "expert_layer_period"};
inline constexpr Keys kWindowKeys = {"sliding_window", "sliding_window_size", "local_attention",
                                     "attention_window_size"};
inline constexpr Keys kMtpKeys = {"num_nextn_predict_layers", "mtp_num_hidden_layers"};

// The keys of a field (`heads`, `mixer.state`), the usual one first; none where it follows from
// others.
Keys keys_of(std::string_view field);
// The limits of the field that a key says; nothing where it says none directly.
std::optional<Limits> limits_of(std::string_view key);

}  // namespace assay
