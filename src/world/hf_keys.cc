#include "world/hf_keys.h"

#include <algorithm>

#include <fmt/format.h>

#include "world/workload.h"

namespace assay {
namespace {

struct FieldKeys {
  std::string_view field;
  Keys keys;
};
constexpr Keys kEncoderKeys = {"encoder_layers", "num_layers", "encoder.num_hidden_layers"};
constexpr Keys kNarrowKeys = {"word_embed_proj_dim", "embedding_size"};
constexpr Keys kExpertHiddenKeys = {"moe_latent_size", "routed_expert_hidden_size"};
constexpr Keys kQRankKeys = {"q_lora_rank"}, kKvRankKeys = {"kv_lora_rank"};
constexpr Keys kNopeKeys = {"qk_nope_head_dim"}, kRopeKeys = {"qk_rope_head_dim"};
constexpr Keys kValueKeys = {"v_head_dim"};
constexpr Keys kLayerEmbeddingKeys = {"hidden_size_per_layer_input"};
constexpr Keys kStreamsKeys = {"altup_num_inputs"};
constexpr Keys kSetsKeys = {"num_mem_blocks", "num_hidden_groups"};
constexpr Keys kMixerHeadsKeys = {"linear_num_value_heads", "mamba_num_heads",
                                  "mamba_n_heads",          "linear_attn_config.num_heads",
                                  "n_mamba_heads",          "num_heads"};
constexpr Keys kMixerDimKeys = {"linear_value_head_dim", "mamba_head_dim", "mamba_d_head",
                                "linear_attn_config.head_dim", "head_dim"};
constexpr Keys kMixerStateKeys = {"linear_key_head_dim", "ssm_state_size", "mamba_d_state",
                                  "state_size"};
constexpr Keys kMixerGroupsKeys = {"linear_num_key_heads", "n_groups", "mamba_n_groups"};
constexpr Keys kMixerTapsKeys = {"linear_conv_kernel_dim", "conv_kernel", "mamba_d_conv",
                                 "conv_L_cache", "linear_attn_config.short_conv_kernel_size"};
constexpr Keys kMixerRankKeys = {"time_step_rank", "mamba_dt_rank"};
constexpr FieldKeys kFieldKeys[] = {{"layers", kLayersKeys},
                                    {"encoder_layers", kEncoderKeys},
                                    {"hidden", kHiddenKeys},
                                    {"ffn", kFfnKeys},
                                    {"heads", kHeadsKeys},
                                    {"kv_heads", kKvHeadsKeys},
                                    {"head_dim", kHeadDimKeys},
                                    {"vocab", kVocabKeys},
                                    {"max_positions", kPositionsKeys},
                                    {"window", kWindowKeys},
                                    {"experts", kExpertsKeys},
                                    {"experts_per_token", kExpertsPerTokenKeys},
                                    {"expert_groups", kExpertGroupsKeys},
                                    {"groups_per_token", kGroupsPerTokenKeys},
                                    {"expert_ffn", kExpertFfnKeys},
                                    {"shared_expert_ffn", kSharedFfnKeys},
                                    {"dense_layers", kDenseLayersKeys},
                                    {"moe_every", kMoeEveryKeys},
                                    {"q_lora_rank", kQRankKeys},
                                    {"kv_lora_rank", kKvRankKeys},
                                    {"qk_nope_head_dim", kNopeKeys},
                                    {"qk_rope_head_dim", kRopeKeys},
                                    {"v_head_dim", kValueKeys},
                                    {"mtp_layers", kMtpKeys},
                                    {"expert_hidden", kExpertHiddenKeys},
                                    {"embedding_dim", kNarrowKeys},
                                    {"layer_embedding", kLayerEmbeddingKeys},
                                    {"residual_streams", kStreamsKeys},
                                    {"weight_sets", kSetsKeys},
                                    {"mixer.heads", kMixerHeadsKeys},
                                    {"mixer.head_dim", kMixerDimKeys},
                                    {"mixer.state", kMixerStateKeys},
                                    {"mixer.groups", kMixerGroupsKeys},
                                    {"mixer.taps", kMixerTapsKeys},
                                    {"mixer.rank", kMixerRankKeys}};

// The limits of a field of a Model, or of its mixer.
std::optional<Limits> field_limits(std::string_view field) {
  std::optional<Limits> found;
  const auto look = [&](const auto& of, const std::string& prefix) {
    fields(of, [&](const char* key, const auto&, const Limits& limits, const char*) {
      if (prefix + key == field) found = limits;
    });
  };
  look(Model{}, "");
  look(Mixer{}, "mixer.");
  return found;
}

}  // namespace

Keys keys_of(std::string_view field) {
  for (const FieldKeys& f : kFieldKeys) {
    if (f.field == field) return f.keys;
  }
  return {};
}

std::optional<Limits> limits_of(std::string_view key) {
  for (const FieldKeys& f : kFieldKeys) {
    if (std::find(f.keys.begin(), f.keys.end(), key) != f.keys.end()) return field_limits(f.field);
  }
  return {};
}

}  // namespace assay
