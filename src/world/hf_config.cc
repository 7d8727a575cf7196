// Hugging Face config.json files. Architectures name the same shape differently; what they share is
// read by lists of synonyms, what they leave unsaid comes from a table of their defaults.
#include <algorithm>
#include <initializer_list>
#include <optional>

#include <fmt/format.h>

#include "config/json.h"
#include "world/describe.h"
#include "world/hf_types.h"
#include "world/hf_values.h"
#include "world/rules.h"

namespace assay {
namespace {

constexpr size_t kMaxConfigBytes = size_t{4} << 20;
constexpr const char* kOtherModels =
    "give the config.json of a transformer, or name a model (`assay catalog list models`)";

bool is_one_of(const std::string& type, std::initializer_list<std::string_view> types) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

bool is_falcon(const std::string& type) {
  return is_one_of(type, {"falcon", "RefinedWeb", "RefinedWebModel"});
}

class ConfigReader : public ConfigValues {
 public:
  using ConfigValues::ConfigValues;

  Model read() {
    const std::string& type = this->type();
    defaults_ = type_defaults(type).value_or(TypeDefaults{});
    model_.name = name(type);
    if (read_vision(*this, model_)) return model_;
    if (!reads_tokens(type)) return model_;
    if (const Undescribed* u = undescribed(type)) {
      problem(place("model_type"), fmt::format("`{}` cannot be described: {}", type, u->why),
              std::string(u->help));
      return model_;
    }
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
    if (recurrent) {
      count_mixer_layers(*this, model_);
    } else {
      kinds_of_layers();
    }
    attention_heads(type);
    latent_attention();
    experts(type);
    if (type == "longcat_flash") read_pairs(*this, model_);
    read_beside(*this, model_);
    // Where blocks are layers of their own, a prediction is made by an attention and an MLP.
    model_.mtp_layers = whole(kMtpKeys) * (model_.mlp_layers > 0 ? 2 : 1);
    details(type);
    windows(type);
    halves(type);
    tell_left_out(type);
    return model_;
  }

 private:
  // Towers that see or hear have no vocabulary: there is no sequence of tokens to plan.
  bool reads_tokens(const std::string& type) {
    // Those that transcribe sound have one of letters.
    const bool sound = find("conv_dim") != nullptr;
    for (const char* key : kVocabKeys) {
      if (find(key) && !sound) return true;
    }
    for (const char* key : {"conv_dim", "patch_size", "image_size", "num_mel_bins"}) {
      if (find(key) == nullptr) continue;
      problem(find(key)->at,
              fmt::format("`{}` reads images or sound, not tokens (`{}`{})", type, key,
                          sound ? "" : ", and no vocabulary"),
              kOtherModels);
      return false;
    }
    return true;
  }

  // The key that tells of layers that no mixer here describes: blocks that several layers share,
  // recurrences of other kinds, and those of a family that was not recognised.
  std::string other_layers(const std::string& type, bool recurrent) const {
    // Generations of these families that nobody here knows.
    const bool rwkv = type.find("rwkv") != std::string::npos;
    if (!recurrent && (rwkv || type.starts_with("zamba"))) return "model_type";
    // mamba_ssm's own configs with attention or MLPs.
    if (!items("attn_layer_idx").empty()) return "attn_layer_idx";
    if (find("ssm_cfg") && peek({"d_intermediate"}) > 0) return "d_intermediate";
    if (recurrent) return "";
    if (find("lru_width")) return "lru_width";
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

  // A kind for every layer, where they are listed; those of predicted tokens may follow.
  void kinds_of_layers() {
    const auto listed = static_cast<int64_t>(items("layer_types").size());
    const int64_t ahead = peek(kMtpKeys);
    if (listed > 0 && listed != model_.layers + ahead)
      check_length("layer_types", listed, model_.layers);
  }

  // Qwen3, Gemma 3 and what follows them normalise by head; others have a switch.
  bool head_norm(const std::string& type) const {
    if (type.starts_with("qwen3") || is_one_of(type, {"gemma3", "gemma3_text", "gemma4_text",
                                                      "gemma3n", "gemma3n_text", "t5gemma2"})) {
      return true;
    }
    if (type == "openelm") return flag("normalize_qk_projections").value_or(false);
    return type.starts_with("hunyuan") && flag("use_qk_norm").value_or(false);
  }

  void details(const std::string& type) {
    model_.expert_bias = type == "gpt_oss";
    model_.head_norm = head_norm(type);
    const bool gpt2 = type == "gpt2" && word("activation_function").empty();  // its default
    model_.tanh_gelu =
        gpt2 || word("activation_function") == "gelu_new" || word("hidden_act") == "gelu_new";
    model_.parallel_block = parallel_block(type);
  }

  std::string name(const std::string& type) const {
    const std::string path = word("_name_or_path");
    const std::string last = path.substr(path.rfind('/') + 1);
    return last.empty() || last == "." ? type : last;
  }

  void shape(bool recurrent) {
    const int64_t listed = recurrent && peek(kLayersKeys) == 0 ? listed_layers(*this) : 0;
    model_.layers = listed > 0 ? listed : needed(kLayersKeys);
    model_.hidden = needed(kHiddenKeys);
    const bool none = is_rwkv(type()) || type() == "xlstm";
    const bool attention = !recurrent || (!none && find("num_attention_heads"));
    model_.heads = attention ? needed_mean(kHeadsKeys) : 0;
    model_.vocab = needed(kVocabKeys);
    model_.max_positions = whole(kPositionsKeys);
    const int64_t narrow = whole({"word_embed_proj_dim", "embedding_size"});  // OPT, ELECTRA
    if (narrow != model_.hidden) model_.embedding_dim = narrow;
    model_.gated_mlp = gated();
    model_.tied_embeddings = tied();
    model_.causal = defaults_.causal;
    model_.learned_positions = defaults_.positions && model_.max_positions > 0;
    if (read_blocks(*this, model_) || read_multipliers(*this, model_)) return;
    width(recurrent, attention);
  }

  // The dense MLP's width.
  void width(bool recurrent, bool attention) {
    model_.ffn = whole({"block_ff_dim"});  // LFM2's, before the usual one
    if (model_.ffn == 0) model_.ffn = mean(kFfnKeys);
    const int64_t ratio = whole({"expansion_ratio"});
    if (model_.ffn == 0 && (defaults_.wide_ffn || ratio > 0)) {
      constexpr int64_t kMost = 1'000'000'000;  // beyond any limit, and products of it still fit
      model_.ffn = std::min(kMost, (ratio > 0 ? ratio : 4) * model_.hidden);
    }
    if (recurrent && !attention) stateful_width();
    // Granite's expert models without experts: what the others share is all there is.
    if (const int64_t shared = peek({"shared_intermediate_size"});
        shared > 0 && find("num_local_experts") && peek({"num_local_experts"}) == 0) {
      model_.ffn = shared;
    }
    if (model_.ffn == 0 && attention) model_.ffn = needed_mean(kFfnKeys);
    // The first Qwen and RecurrentGemma state the width of both up-projections together.
    if (type() == "qwen" || type() == "recurrent_gemma") model_.ffn /= 2;
    // LFM2 states what a plain MLP would have: a gated one takes two thirds, in whole blocks.
    if (flag("block_auto_adjust_ff_dim").value_or(false)) {
      const int64_t step = std::max<int64_t>(1, whole({"block_multiple_of"}));
      model_.ffn = (model_.ffn * 2 / 3 + step - 1) / step * step;
    }
  }

  // State spaces alone have no MLP; RWKV and xLSTM have, as a multiple of the model's width.
  void stateful_width() {
    const bool xlstm = type() == "xlstm";
    if (!xlstm && !is_rwkv(type())) {
      model_.ffn = 0;
      return;
    }
    if (model_.ffn > 0) return;
    const bool narrow = type() == "rwkv5" || type() == "rwkv6";
    const Value* stated = find(xlstm ? "ffn_proj_factor" : "hidden_ratio");
    const double usual = xlstm ? 2.667 : narrow ? 3.5 : 4;
    const double ratio = stated != nullptr ? config_number(*stated).value_or(0) : usual;
    const double width = std::clamp(ratio * static_cast<double>(model_.hidden), 1.0, 1e9);
    const int64_t step = xlstm ? 64 : 32;
    model_.ffn = (static_cast<int64_t>(width) + (xlstm ? step - 1 : 0)) / step * step;
  }

  bool tied() const {
    for (const char* key :
         {"tie_word_embeddings", "tie_embeddings", "tie_embedding", "share_input_output_layers"}) {
      if (const std::optional<bool> stated = flag(key)) return *stated;
    }
    return defaults_.tied;
  }

  bool gated() const {
    const std::string projection = word("feed_forward_proj");  // T5: gated-gelu or relu
    if (!projection.empty()) return projection.starts_with("gated");
    return flag("ffn_with_glu").value_or(defaults_.gated);  // OpenELM's switch
  }

  // By the code of the class; GPT-NeoX, Falcon and StableLM have a switch.
  bool parallel_block(const std::string& type) const {
    if (is_one_of(type, {"gptj", "codegen", "phi", "phi-msft", "cohere", "cohere2"})) return true;
    if (type == "cohere2_text") return true;
    if (type == "gpt_neox") return flag("use_parallel_residual").value_or(true);
    if (is_one_of(type, {"stablelm", "stablelm_epoch"}))
      return flag("use_parallel_residual").value_or(false);
    if (!is_falcon(type)) return false;
    return flag("new_decoder_architecture").value_or(false) || flag("parallel_attn").value_or(true);
  }

  void attention_heads(const std::string& type) {
    if (find("block_configs") == nullptr) {
      model_.kv_heads = mean({"num_key_value_heads_per_layer"});  // DeciLM's, before the usual one
      if (model_.kv_heads == 0) model_.kv_heads = mean(kKvHeadsKeys);
      model_.head_dim = whole(kHeadDimKeys);
    }
    const bool new_falcon = flag("new_decoder_architecture").value_or(false);
    const bool single = flag("multi_query").value_or(false);
    if (is_falcon(type) && !new_falcon) model_.kv_heads = single ? 1 : 0;
    if (type == "gpt_bigcode" && flag("multi_query").value_or(true)) model_.kv_heads = 1;
    settle_heads(*this, model_);
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
    model_.experts = mean(kExpertsKeys);
    if (model_.experts <= 1) {
      model_.experts = 0;
      return;
    }
    model_.experts_per_token = needed_mean(kExpertsPerTokenKeys);
    // One group is none.
    if (const int64_t groups = whole(kExpertGroupsKeys); groups > 1) {
      model_.expert_groups = groups;
      model_.groups_per_token = whole(kGroupsPerTokenKeys);
    }
    const int64_t own_width = mean(kExpertFfnKeys);
    model_.expert_ffn = own_width > 0 ? own_width : model_.ffn;
    model_.shared_expert_ffn = whole(kSharedFfnKeys);
    if (model_.shared_expert_ffn == 0)
      model_.shared_expert_ffn = mean(kSharedExpertsKeys) * model_.expert_ffn;
    // Gemma 4 keeps its dense MLP beside the experts.
    if (type == "gemma4_text") model_.shared_expert_ffn = model_.ffn;
    expert_layers(*this, model_);
    model_.expert_hidden = whole({"moe_latent_size", "routed_expert_hidden_size"});
    if (is_one_of(type, {"llama4", "llama4_text"})) {
      model_.shared_expert_ffn = model_.expert_ffn;
      const int64_t dense = whole({"intermediate_size_mlp"});
      if (dense > 0) model_.ffn = dense;
    }
    // Where every layer has experts, a dense width means nothing.
    const bool all_moe = model_.dense_layers == 0 && model_.moe_every == 1;
    if (all_moe) model_.ffn = 0;
  }

  void windows(const std::string& type) {
    int64_t window = whole(kWindowKeys);
    if (flag("use_sliding_window") == false) window = 0;
    const bool beyond = model_.max_positions > 0 && window >= model_.max_positions;
    if (window == 0 || beyond) return;
    const double share = window_share(type);
    if (share <= 0) return;  // a window that no layer uses
    model_.window = window;
    model_.window_layers = share;
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
    if (is_one_of(type, {"gemma3", "gemma3_text", "gemma4_text"})) return 5.0 / 6;
    if (is_one_of(type, {"gemma2", "gpt_oss", "t5gemma"})) return 0.5;
    const int64_t full = whole({"max_window_layers"});
    if (full > 0 && type.starts_with("qwen")) {  // of every generation that has the key
      return std::max(0.0, 1 - static_cast<double>(full) / static_cast<double>(model_.layers));
    }
    return 1;
  }

  // An encoder before the decoder, and what either does without rotary positions.
  void halves(const std::string& type) {
    const bool t5 = is_one_of(type, {"t5", "mt5", "umt5", "longt5", "switch_transformers"});
    const bool two_parts = is_one_of(type, {"bart", "mbart", "plbart"}) ||
                           (peek({"encoder_layers"}) > 0 && peek({"decoder_layers"}) > 0);
    if (type == "bloom" || type == "mpt" || t5 || two_parts) model_.rotary = false;
    if (t5) encoder_decoder("num_layers", "num_decoder_layers");
    if (two_parts) encoder_decoder("encoder_layers", "decoder_layers");
    if (type.starts_with("t5gemma")) read_halves(*this, model_);
  }

  void encoder_decoder(const char* encoder, const char* decoder) {
    const int64_t encoders = whole({encoder});
    const int64_t decoders = whole({decoder});
    model_.encoder_layers = encoders > 0 ? encoders : model_.layers;
    if (decoders > 0) model_.layers = decoders;
  }

  // What is described otherwise than it runs.
  void tell_left_out(const std::string& type) {
    if (type.empty()) {
      warn(place("model_type"), "no model_type: read as a decoder of the Llama kind by its keys",
           kCompare);
    } else if (!type_defaults(type)) {
      warn(place("model_type"),
           fmt::format("model_type `{}` is not known; read as a decoder of the Llama kind by its "
                       "keys",
                       sanitize(type, 60)),
           kCompare);
    }
    if (find("quantization_config")) {
      warn(place("quantization_config"),
           "its quantization_config is left out: the plan says in which format weights are trained",
           "state it as `plan.precision` (--set plan.precision=fp8)");
    }
    if (type.starts_with("ernie4_5") && !items("moe_intermediate_size").empty()) {
      warn(place("moe_intermediate_size"),
           "its experts for images are left out: those for text "
           "alone are planned",
           "add their parameters to the model, or expect less");
    }
    if (flag("use_cla").value_or(false)) {
      warn(place("use_cla"), "keys and values that layers share are counted in every layer",
           "expect a little less memory and time");
    }
    if (type == "gemma4_text" && peek({"global_head_dim"}) != peek({"head_dim"})) {
      warn(place("global_head_dim"), "its heads are planned as wide as those of its windows",
           "expect up to 2 % more parameters in the layers of full attention");
    }
  }

  static constexpr const char* kCompare =
      "compare the parameters with the published count; correct what differs, as in `--set "
      "workload.model.gated_mlp=false`";

  TypeDefaults defaults_;
  Model model_;
};

// The limits of the fields hold for a config, too.
template <class T>
void check_limits(const T& of, const std::string& prefix, const ModelPlaces& places,
                  Diagnostics& problems) {
  fields(of, [&](const char* key, const auto& member, const Limits& limits, const char*) {
    using M = std::remove_cvref_t<decltype(member)>;
    if constexpr (std::is_same_v<M, Mixer>) {
      check_limits(member, std::string(key) + ".", places, problems);
    } else if constexpr (std::is_same_v<M, int64_t> || std::is_same_v<M, double>) {
      const double value = static_cast<double>(member);
      if (value >= limits.min && value <= limits.max) return;
      const std::string field = prefix + key;
      const Value* stated = places.find(field);
      problems.push_back(
          problem_at(stated != nullptr ? stated->at : places.whole,
                     fmt::format("{} is out of range: {}", places.name(field), value),
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
  ConfigReader reader(*root, ignored);
  reader.read();
  for (const LeftOut& l : kLeftOut) {
    const size_t at = source->text.find(fmt::format("\"{}\"", l.key));
    const bool speech = l.key != "max_source_positions" || reader.type() == "whisper";
    const bool told = !out.empty() && out.back().message == l.message;
    if (at == std::string::npos || !speech || told) continue;
    out.push_back(
        problem_at({source, at, l.key.size() + 2}, std::string(l.message), std::string(l.help)));
    out.back().severity = Severity::kWarning;
  }
  out.insert(out.end(), reader.warnings().begin(), reader.warnings().end());
  sort_by_place(out);
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
  if (problems.empty()) check_limits(model, "", reader.places(), problems);
  if (problems.empty()) check_model(model, "model", reader.places(), problems);
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return model;
}

}  // namespace assay
