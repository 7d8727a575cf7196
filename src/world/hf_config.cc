// Hugging Face config.json files. Architectures name the same shape differently; what they share is
// read by lists of synonyms, what they leave unsaid comes from a table of their defaults.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "config/json.h"
#include "world/describe.h"
#include "world/hf_values.h"
#include "world/rules.h"

namespace assay {
namespace {

constexpr size_t kMaxConfigBytes = size_t{4} << 20;
constexpr const char* kOtherModels =
    "give the config.json of a transformer, or name a model (`assay catalog list models`)";

// What an architecture's code does when its config does not say. From the classes' defaults in the
// transformers library, from memory.
struct Defaults {
  std::string_view type;  // prefix of model_type
  bool gated;
  bool tied;
  bool causal;
  bool positions;  // learned position embeddings
  bool wide_ffn;   // 4 x hidden when no width is stated
};
constexpr Defaults kDefaults[] = {
    {"gpt2", false, true, true, true, true},
    {"gpt_neox", false, false, true, false, true},
    {"gpt_neo", false, true, true, true, true},
    {"gptj", false, false, true, false, true},
    {"gpt_bigcode", false, true, true, true, true},
    {"gpt_oss", true, false, true, false, false},
    {"codegen", false, false, true, false, true},
    {"starcoder2", false, true, true, false, false},
    {"bloom", false, true, true, false, true},
    {"opt", false, true, true, true, false},
    {"mpt", false, true, true, false, true},
    {"falcon", false, true, true, false, true},
    {"RefinedWeb", false, true, true, false, true},
    {"bert", false, true, false, true, false},
    {"roberta", false, true, false, true, false},
    {"xlm-roberta", false, true, false, true, false},
    {"distilbert", false, true, false, true, false},
    {"electra", false, true, false, true, false},
    {"deberta", false, true, false, false, false},
    {"modernbert", true, true, false, false, false},
    {"t5", false, true, true, false, false},
    {"mt5", true, false, true, false, false},
    {"umt5", true, false, true, false, false},
    {"bart", false, true, true, true, false},
    {"mbart", false, true, true, true, false},
    {"blenderbot", false, true, true, true, false},
    {"whisper", false, true, true, true, false},
    {"marian", false, true, true, false, false},
    {"pegasus", false, true, true, false, false},
    {"m2m_100", false, true, true, false, false},
    {"phi-msft", false, false, true, false, true},
    {"phi3", true, false, true, false, false},
    {"phi4", true, false, true, false, false},
    {"phimoe", true, false, true, false, false},
    {"phi", false, false, true, false, false},
    {"persimmon", false, false, true, false, false},
    {"nemotron", false, false, true, false, false},
    {"gemma", true, true, true, false, false},
    {"cohere", true, true, true, false, false},
    {"command", true, true, true, false, false},
    {"minicpm", true, true, true, false, false},
};
constexpr Defaults kUsual = {"", true, false, true, false, false};

class ConfigReader : public ConfigValues {
 public:
  using ConfigValues::ConfigValues;

  Model read() {
    const std::string& type = this->type();
    defaults_ = defaults_for(type);
    model_.name = name(type);
    if (!reads_tokens(type)) return model_;
    const bool recurrent = read_mixer(*this, model_);
    if (const std::string other = other_layers(type, recurrent); !other.empty()) {
      problem(find(other.c_str())->at,
              fmt::format("`{}` has layers that Assay cannot describe yet (`{}`)", type, other),
              kOtherModels);
      return model_;
    }
    shape(recurrent);
    if (model_.layers == 0 || model_.hidden == 0 || (model_.heads == 0 && !recurrent)) {
      return model_;
    }
    if (recurrent) count_mixer_layers(*this, model_);
    attention_heads(type);
    latent_attention();
    experts(type);
    // Where blocks are layers of their own, a prediction is made by an attention and an MLP.
    model_.mtp_layers = whole({"num_nextn_predict_layers", "mtp_num_hidden_layers"}) *
                        (model_.mlp_layers > 0 ? 2 : 1);
    model_.expert_bias = type.starts_with("gpt_oss");
    model_.head_norm = type.starts_with("qwen3") || type.starts_with("gemma3");
    const bool gpt2 = type == "gpt2" && word("activation_function").empty();  // its default
    model_.tanh_gelu =
        gpt2 || word("activation_function") == "gelu_new" || word("hidden_act") == "gelu_new";
    model_.parallel_block = parallel_block(type);
    const bool t5 = type.find("t5") != std::string::npos;
    const bool two_parts = type.find("bart") != std::string::npos ||
                           (peek({"encoder_layers"}) > 0 && peek({"decoder_layers"}) > 0);
    model_.rotary = type != "bloom" && type != "mpt" && !t5 && !two_parts;
    windows(type);
    if (t5) encoder_decoder("num_layers", "num_decoder_layers");
    if (two_parts) encoder_decoder("encoder_layers", "decoder_layers");
    return model_;
  }

 private:
  // Towers that see or hear have no vocabulary: there is no sequence of tokens to plan.
  bool reads_tokens(const std::string& type) {
    if (find("vocab_size") || find("padded_vocab_size") || find("vocab_size_padded")) return true;
    for (const char* key : {"patch_size", "image_size", "num_mel_bins", "conv_dim"}) {
      if (find(key) == nullptr) continue;
      problem(find(key)->at,
              fmt::format("`{}` reads images or sound, not tokens (`{}`, and no vocabulary)", type,
                          key),
              kOtherModels);
      return false;
    }
    return true;
  }

  // The key that tells of layers that no mixer here describes: blocks that several layers share,
  // recurrences of other kinds, and those of a family that was not recognised.
  std::string other_layers(const std::string& type, bool recurrent) const {
    if (type.find("rwkv") != std::string::npos || type.starts_with("zamba")) return "model_type";
    for (const char* key : {"ssm_cfg", "lru_width"}) {
      if (find(key)) return key;
    }
    if (recurrent) return "";
    for (const char* key :
         {"mamba_d_conv", "hybrid_override_pattern", "layers_block_type", "attn_layer_period"}) {
      if (find(key)) return key;
    }
    for (const Value& kind : items("layer_types")) {
      const bool other = kind.text.find("attention") == std::string::npos;
      if (kind.quoted && (other || kind.text.starts_with("linear"))) return "layer_types";
    }
    return "";
  }

  static Defaults defaults_for(const std::string& type) {
    for (const Defaults& d : kDefaults) {
      if (type.starts_with(d.type)) return d;
    }
    return kUsual;
  }

  std::string name(const std::string& type) const {
    const std::string path = word("_name_or_path");
    const std::string last = path.substr(path.rfind('/') + 1);
    return last.empty() || last == "." ? type : last;
  }

  void shape(bool recurrent) {
    const Keys layers = {"num_hidden_layers", "n_layer", "num_layers", "n_layers",
                         "decoder_layers"};
    const int64_t listed = recurrent && peek(layers) == 0 ? listed_layers(*this) : 0;
    model_.layers = listed > 0 ? listed : needed(layers);
    model_.hidden = needed({"hidden_size", "n_embd", "d_model", "n_embed", "dim", "model_dim"});
    const Keys heads = {
        "num_attention_heads",    "n_head", "num_heads", "n_heads", "decoder_attention_heads",
        "encoder_attention_heads"};
    const bool attention = !recurrent || find("num_attention_heads");
    model_.heads = attention ? needed(heads) : 0;
    model_.vocab = needed({"vocab_size", "padded_vocab_size", "vocab_size_padded"});
    model_.max_positions =
        whole({"max_position_embeddings", "n_positions", "n_ctx", "seq_length", "max_seq_len",
               "max_sequence_length", "model_max_length", "max_target_positions"});
    const int64_t narrow = whole({"word_embed_proj_dim", "embedding_size"});  // OPT, ELECTRA
    if (narrow != model_.hidden) model_.embedding_dim = narrow;
    model_.gated_mlp = gated();
    model_.tied_embeddings = flag("tie_word_embeddings").value_or(defaults_.tied);
    model_.causal = defaults_.causal;
    model_.learned_positions = defaults_.positions && model_.max_positions > 0;
    const int64_t ratio = whole({"expansion_ratio"});
    const Keys widths = {"intermediate_size",
                         "n_inner",
                         "ffn_dim",
                         "d_ff",
                         "ffn_hidden_size",
                         "hidden_dim",
                         "decoder_ffn_dim",
                         "encoder_ffn_dim",
                         "moe_intermediate_size",
                         "ffn_config.ffn_hidden_size"};
    model_.ffn = whole(widths);
    if (model_.ffn == 0 && (defaults_.wide_ffn || ratio > 0)) {
      model_.ffn = (ratio > 0 ? ratio : 4) * model_.hidden;
    }
    if (recurrent && !attention) model_.ffn = 0;  // state spaces alone have no MLP
    // Granite's expert models without experts: what the others share is all there is.
    if (const int64_t shared = peek({"shared_intermediate_size"});
        shared > 0 && find("num_local_experts") && peek({"num_local_experts"}) == 0) {
      model_.ffn = shared;
    }
    if (model_.ffn == 0 && attention) model_.ffn = needed(widths);
  }

  bool gated() const {
    const std::string projection = word("feed_forward_proj");  // T5: gated-gelu or relu
    if (!projection.empty()) return projection.starts_with("gated");
    return defaults_.gated;
  }

  // By the code of the class; GPT-NeoX, Falcon and StableLM have a switch.
  bool parallel_block(const std::string& type) const {
    if (type == "gptj" || type == "codegen" || type == "phi" || type == "phi-msft") return true;
    if (type.starts_with("cohere")) return true;
    if (type == "gpt_neox") return flag("use_parallel_residual").value_or(true);
    if (type.starts_with("stablelm")) return flag("use_parallel_residual").value_or(false);
    if (!type.starts_with("falcon") && !type.starts_with("RefinedWeb")) return false;
    return flag("new_decoder_architecture").value_or(false) || flag("parallel_attn").value_or(true);
  }

  void attention_heads(const std::string& type) {
    model_.kv_heads = whole({"num_key_value_heads", "num_kv_heads", "n_head_kv",
                             "multi_query_group_num", "kv_n_heads", "attn_config.kv_n_heads"});
    model_.head_dim = whole({"head_dim", "d_kv", "kv_channels", "attention_head_dim"});
    const bool new_falcon = flag("new_decoder_architecture").value_or(false);
    const bool falcon = type.starts_with("falcon") || type.starts_with("RefinedWeb");
    const bool single = flag("multi_query").value_or(false);
    if (falcon && !new_falcon) model_.kv_heads = single ? 1 : 0;
    if (type == "gpt_bigcode" && flag("multi_query").value_or(true)) model_.kv_heads = 1;
    if (model_.head_dim > 0 && model_.head_dim * model_.heads == model_.hidden) {
      model_.head_dim = 0;
    }
  }

  void latent_attention() {
    model_.kv_lora_rank = whole({"kv_lora_rank"});
    if (model_.kv_lora_rank == 0) return;
    model_.q_lora_rank = whole({"q_lora_rank"});
    model_.qk_nope_head_dim = needed({"qk_nope_head_dim"});
    model_.qk_rope_head_dim = needed({"qk_rope_head_dim"});
    const bool follows = model_.heads > 0 && model_.hidden % model_.heads == 0;
    const bool stated = find("v_head_dim") || !follows;
    model_.v_head_dim = stated ? needed({"v_head_dim"}) : model_.hidden / model_.heads;
    model_.kv_heads = 0;
    model_.head_dim = 0;
  }

  void experts(const std::string& type) {
    model_.experts = whole({"num_local_experts", "num_experts", "n_routed_experts",
                            "moe_num_experts", "ffn_config.moe_num_experts"});
    if (model_.experts <= 1) {
      model_.experts = 0;
      return;
    }
    model_.experts_per_token =
        needed({"num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_top_k",
                "num_selected_experts", "experts_per_token", "ffn_config.moe_top_k"});
    const int64_t own_width = whole({"moe_intermediate_size", "expert_ffn_hidden_size"});
    model_.expert_ffn = own_width > 0 ? own_width : model_.ffn;
    model_.shared_expert_ffn =
        whole({"shared_expert_intermediate_size", "moe_shared_expert_intermediate_size",
               "shared_intermediate_size"});
    if (model_.shared_expert_ffn == 0) {
      const int64_t shared = whole({"n_shared_experts", "num_shared_experts"});
      model_.shared_expert_ffn = shared * model_.expert_ffn;
    }
    model_.dense_layers = whole({"first_k_dense_replace", "num_dense_layers"});
    model_.dense_layers =
        std::max(model_.dense_layers, static_cast<int64_t>(items("mlp_only_layers").size()));
    const int64_t every = whole({"decoder_sparse_step", "moe_layer_freq", "moe_layer_frequency",
                                 "interleave_moe_layer_step", "expert_layer_period"});
    model_.moe_every = std::max<int64_t>(1, every);
    model_.expert_hidden = whole({"moe_latent_size", "routed_expert_hidden_size"});
    if (type.starts_with("llama4")) {
      model_.shared_expert_ffn = model_.expert_ffn;
      const int64_t dense = whole({"intermediate_size_mlp"});
      if (dense > 0) model_.ffn = dense;
    }
    // Where every layer has experts, a dense width means nothing.
    const bool all_moe = model_.dense_layers == 0 && model_.moe_every == 1;
    if (all_moe) model_.ffn = 0;
  }

  void windows(const std::string& type) {
    int64_t window = whole({"sliding_window", "sliding_window_size", "local_attention"});
    if (flag("use_sliding_window") == false) window = 0;
    const bool beyond = model_.max_positions > 0 && window >= model_.max_positions;
    if (window == 0 || beyond) return;
    model_.window = window;
    model_.window_layers = window_share(type);
  }

  // The share of layers that use the window.
  double window_share(const std::string& type) {
    if (const std::vector<Value> types = items("layer_types"); !types.empty()) {
      const auto sliding = std::count_if(types.begin(), types.end(), [](const Value& kind) {
        return kind.text == "sliding_attention";
      });
      return static_cast<double>(sliding) / static_cast<double>(types.size());
    }
    const int64_t pattern = whole({"sliding_window_pattern", "global_attn_every_n_layers"});
    if (pattern > 1) return 1 - 1 / static_cast<double>(pattern);
    if (type.starts_with("gemma3")) return 5.0 / 6;
    if (type.starts_with("gemma2") || type.starts_with("gpt_oss")) return 0.5;
    const int64_t full = whole({"max_window_layers"});
    if (full > 0 && type.starts_with("qwen")) {
      return std::max(0.0, 1 - static_cast<double>(full) / static_cast<double>(model_.layers));
    }
    return 1;
  }

  void encoder_decoder(const char* encoder, const char* decoder) {
    const int64_t encoders = whole({encoder});
    const int64_t decoders = whole({decoder});
    model_.encoder_layers = encoders > 0 ? encoders : model_.layers;
    if (decoders > 0) model_.layers = decoders;
  }

  Defaults defaults_ = kUsual;
  Model model_;
};

// The limits of the fields hold for a config, too.
void check_limits(const Model& model, const ConfigReader& reader, Diagnostics& problems) {
  fields(model, [&](const char* key, const auto& member, const Limits& limits, const char* what) {
    using T = std::remove_cvref_t<decltype(member)>;
    if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, double>) {
      const double value = static_cast<double>(member);
      if (value >= limits.min && value <= limits.max) return;
      problems.push_back(problem_at(reader.place_of(value),
                                    fmt::format("{} ({}) is out of range: {}", key, what, value),
                                    fmt::format("write {:.0f} to {:.0f}", limits.min, limits.max)));
    }
  });
}

}  // namespace

Diagnostics left_out_of_config(const std::string& text, const std::string& file) {
  struct LeftOut {
    std::string_view key, message, help;
  };
  constexpr std::string_view kTower = "add its parameters and tokens to the model, or expect less";
  constexpr LeftOut kLeftOut[] = {
      {"vision_config", "its vision tower is left out: the text model alone is planned", kTower},
      {"mm_vision_tower", "its vision tower is left out: the text model alone is planned", kTower},
      {"audio_config", "its audio tower is left out: the text model alone is planned", kTower},
      {"max_source_positions", "its encoder is planned with as many tokens as its decoder",
       "state workload.seq as the mean of both, or expect another share of the encoder"},
      {"index_topk", "its sparse attention is counted as dense: every token attends to all before",
       "expect less time at long sequences; state workload.model.window to bound it from below"}};
  Diagnostics out;
  Sources sources;
  const Source* source = sources.add(file, text);
  Diagnostics ignored;
  const std::optional<Value> root = parse_json(*source, ignored);
  if (!root) return out;
  const ConfigValues values(*root, ignored);
  for (const LeftOut& l : kLeftOut) {
    const size_t at = source->text.find(fmt::format("\"{}\"", l.key));
    const bool speech = l.key != "max_source_positions" || values.type() == "whisper";
    const bool told = !out.empty() && out.back().message == l.message;
    if (at == std::string::npos || !speech || told) continue;
    out.push_back(
        problem_at({source, at, l.key.size() + 2}, std::string(l.message), std::string(l.help)));
    out.back().severity = Severity::kWarning;
  }
  return out;
}

tl::expected<Model, Diagnostics> read_hf_config(const std::string& text, const std::string& file) {
  Sources sources;
  Diagnostics problems;
  if (text.size() > kMaxConfigBytes) {
    return tl::unexpected(Diagnostics{problem_at(
        {sources.add(file, "")},
        fmt::format("larger than {} MB: not a model's config.json", kMaxConfigBytes >> 20),
        "is it the right file?")});
  }
  const Source* source = sources.add(file, text);
  const std::optional<Value> root = parse_json(*source, problems);
  if (!root) return tl::unexpected(std::move(problems));
  if (!root->is_map()) {
    return tl::unexpected(Diagnostics{
        problem_at(root->at, "a JSON object is expected", "give the config.json of a model")});
  }
  ConfigReader reader(*root, problems);
  const Model model = reader.read();
  if (problems.empty()) check_limits(model, reader, problems);
  if (problems.empty()) check_model(model, "model", *root, problems);
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return model;
}

}  // namespace assay
