// What is refused of a model although every single value is within its limits.
#include <algorithm>
#include <initializer_list>

#include <fmt/format.h>

#include "world/model_size.h"
#include "world/rules.h"

namespace assay {
namespace {

using Fields = std::initializer_list<std::string_view>;

// Says what one of several needed numbers lacks, and which of them contradict each other.
class ModelCheck {
 public:
  ModelCheck(const std::string& path, const ModelPlaces& places, Diagnostics& problems)
      : path_(path), places_(places), problems_(problems) {}

  void need(int64_t value, std::string_view field) {
    if (value > 0) return;
    if (const Value* stated = places_.find(field)) {
      problem(stated->at,
              fmt::format(
                  "{} {}", places_.name(field),
                  stated->is_list() && stated->items.empty() ? "is empty" : "must be at least 1"),
              "write what the model has, or remove the key and name a model");
      return;
    }
    problem(
        places_.whole, fmt::format("{} is not stated", places_.name(field)),
        fmt::format("add `{}`, or name a model (`assay catalog list models`)", places_.add(field)));
  }
  // Placed at that of `fields` which was stated last: what was there before it was right.
  void refuse(bool wrong, Fields fields, const std::string& message, const std::string& help) {
    if (!wrong) return;
    const Value* last = nullptr;
    for (const std::string_view field : fields) {
      const Value* stated = places_.find(field);
      if (stated != nullptr && (last == nullptr || said_later(stated->at, last->at))) last = stated;
    }
    problem(last == nullptr ? places_.whole : last->at, fmt::format("{}: {}", path_, message),
            help);
  }

 private:
  void problem(const Mark& at, std::string message, std::string help) {
    problems_.push_back(problem_at(at, std::move(message), std::move(help)));
  }

  const std::string& path_;
  const ModelPlaces& places_;
  Diagnostics& problems_;
};

void check_dlrm(const Model& m, ModelCheck& check) {
  check.need(m.tables, "tables");
  check.need(m.rows_per_table, "rows_per_table");
  check.need(m.embedding_dim, "embedding_dim");
  check.need(static_cast<int64_t>(m.top_mlp.size()), "top_mlp");
  const auto empty_layer = [](const std::vector<int64_t>& widths) {
    return std::any_of(widths.begin(), widths.end(), [](int64_t w) { return w < 1; });
  };
  for (const auto& [key, widths] :
       {std::pair("top_mlp", &m.top_mlp), std::pair("bottom_mlp", &m.bottom_mlp)}) {
    check.refuse(empty_layer(*widths), {key}, "an MLP layer has no width",
                 "write at least 1 for each layer, or leave the layer out");
  }
}

void check_experts(const Model& m, ModelCheck& check) {
  if (m.experts == 0) {
    if (m.mixer.layers == 0 || m.mlp_layers > 0) check.need(m.ffn, "ffn");
    check.refuse(m.experts_per_token > 0 || m.expert_ffn > 0, {"experts_per_token", "expert_ffn"},
                 "experts is not stated", "add how many a layer has, or leave this out");
    return;
  }
  check.need(m.expert_ffn, "expert_ffn");
  check.need(m.experts_per_token, "experts_per_token");
  check.refuse(m.experts_per_token > m.experts, {"experts", "experts_per_token"},
               fmt::format("a token cannot visit {} of {} experts", m.experts_per_token, m.experts),
               fmt::format("write at most {} experts per token", m.experts));
  check.refuse(m.groups_per_token > m.expert_groups ||
                   (m.expert_groups > 0 && m.experts % m.expert_groups != 0),
               {"expert_groups", "groups_per_token"},
               fmt::format("{} experts are not in {} groups of which a token visits {}", m.experts,
                           m.expert_groups, m.groups_per_token),
               "write a divisor of the experts, and no more groups per token");
  check.refuse(m.dense_layers > m.layers, {"dense_layers", "layers"},
               fmt::format("{} dense layers of {}", m.dense_layers, m.layers),
               fmt::format("write at most {}", m.layers));
  const bool has_dense = moe_layers(m) < mlp_layers(m) + m.encoder_layers;
  check.refuse(has_dense && m.ffn == 0, {"ffn", "dense_layers", "moe_every"},
               "ffn of the dense layers is not stated", "add the width of their MLP");
}

void check_mixer(const Model& m, ModelCheck& check) {
  const auto within = [&](int64_t some, std::string_view field, const char* what) {
    check.refuse(some > m.layers, {field, "layers"},
                 fmt::format("{} {} of {} layers", some, what, m.layers),
                 fmt::format("write at most {}", m.layers));
  };
  within(m.mixer.layers, "mixer.layers", "layers with a recurrent mixer");
  within(m.attention_layers, "attention_layers", "layers with attention");
  within(m.mlp_layers, "mlp_layers", "layers with an MLP");
  if (m.mixer.layers == 0) {
    check.refuse(m.attention_layers > 0 || m.mlp_layers > 0,
                 {"attention_layers", "mlp_layers", "mixer.layers"},
                 "attention_layers and mlp_layers are for models with a recurrent mixer",
                 "state mixer, or leave them out");
    return;
  }
  // Where attention or MLPs are layers of their own, the kinds add up to all layers.
  const int64_t kinds = m.mixer.layers + m.attention_layers + m.mlp_layers;
  const bool apart = m.mlp_layers > 0 && m.attention_layers > 0 && m.weight_sets == 0;
  check.refuse(apart && kinds != m.layers,
               {"layers", "mlp_layers", "attention_layers", "mixer.layers"},
               fmt::format("mixers {}, attention {} and MLPs {} are not {} layers", m.mixer.layers,
                           m.attention_layers, m.mlp_layers, m.layers),
               fmt::format("write layers: {}", kinds));
  const Mixer& x = m.mixer;
  check.need(x.heads, "mixer.heads");
  check.need(x.head_dim, "mixer.head_dim");
  const bool by_channel = x.kind == MixerKind::kRgLru || x.kind == MixerKind::kWkv;
  if (x.kind != MixerKind::kConvolution && !by_channel) check.need(x.state, "mixer.state");
  if (x.kind == MixerKind::kMamba || x.kind == MixerKind::kKda) check.need(x.rank, "mixer.rank");
  check.refuse(x.groups > 0 && x.heads % x.groups != 0, {"mixer.groups", "mixer.heads"},
               fmt::format("{} key heads do not divide {} value heads", x.groups, x.heads),
               fmt::format("write a divisor of {} as the mixer's groups", x.heads));
  check.refuse(m.mlp_layers > 0 && (m.dense_layers > 0 || m.moe_every > 1),
               {"mlp_layers", "dense_layers", "moe_every"},
               "mlp_layers beside dense_layers or moe_every is not modelled",
               "leave dense_layers and moe_every out");
  check.refuse(m.encoder_layers > 0, {"encoder_layers", "mixer.layers"},
               "an encoder-decoder with a recurrent mixer is not modelled",
               "leave encoder_layers out, or the mixer");
}

void check_shared(const Model& m, ModelCheck& check) {
  if (m.weight_sets == 0) return;
  check.refuse(m.weight_sets > m.layers, {"weight_sets", "layers"},
               fmt::format("{} sets of weights for {} layers", m.weight_sets, m.layers),
               fmt::format("write at most {}", m.layers));
  check.refuse(m.encoder_layers > 0 || m.mtp_layers > 0,
               {"weight_sets", "encoder_layers", "mtp_layers"},
               "weights that layers share beside an encoder or predicted tokens are not modelled",
               "leave encoder_layers and mtp_layers out, or weight_sets");
}

void check_beside(const Model& m, ModelCheck& check) {
  check.refuse(m.merged_cross && m.encoder_layers == 0, {"merged_cross", "encoder_layers"},
               "merged_cross without an encoder", "add `encoder_layers`, or leave it out");
  check.refuse((m.attention_input > 0 || m.merged_cross) && m.kv_lora_rank > 0,
               {"attention_input", "merged_cross", "kv_lora_rank"},
               "latent attention with another input is not modelled",
               "leave attention_input and merged_cross out, or kv_lora_rank");
  check.refuse(m.layer_embedding > 0 && (m.encoder_layers > 0 || m.mtp_layers > 0),
               {"layer_embedding", "encoder_layers", "mtp_layers"},
               "embeddings of every layer beside an encoder or predicted tokens are not modelled",
               "leave encoder_layers and mtp_layers out, or layer_embedding");
}

void check_attention(const Model& m, ModelCheck& check) {
  if (attention_layers(m) == 0) return;
  check.need(m.heads, "heads");
  if (m.kv_lora_rank > 0) {
    check.need(m.qk_nope_head_dim + m.qk_rope_head_dim, "qk_nope_head_dim");
    check.need(m.v_head_dim, "v_head_dim");
    return;
  }
  if (m.heads > 0 && m.hidden > 0 && m.head_dim == 0) {
    check.refuse(m.hidden % m.heads != 0, {"heads", "hidden"},
                 fmt::format("{} heads do not divide the width of {}", m.heads, m.hidden),
                 "state head_dim if the heads are wider than hidden / heads");
  }
  if (m.kv_heads > 0 && m.heads > 0) {
    check.refuse(
        m.kv_heads > m.heads || m.heads % m.kv_heads != 0, {"kv_heads", "heads"},
        fmt::format("{} key-value heads do not divide {} heads", m.kv_heads, m.heads),
        fmt::format("make them a divisor of {}, or leave them out where every head has its own",
                    m.heads));
  }
  check.refuse(m.window > 0 && m.window_layers == 0, {"window", "window_layers"},
               "a window without window_layers",
               "add `window_layers`, the share of layers that have it, or leave it out");
  check.refuse(m.window_layers > 0 && m.window == 0, {"window_layers", "window"},
               "window_layers without a window", "add `window`, in tokens, or leave it out");
}

// `mixer.heads` stands as `mixer: {heads: N}`.
std::string as_yaml(std::string_view field) {
  const size_t dot = field.find('.');
  if (dot == field.npos) return fmt::format("{}: N", field);
  return fmt::format("{}: {{{}: N}}", field.substr(0, dot), field.substr(dot + 1));
}

}  // namespace

void check_model(const Model& m, const std::string& path, const ModelPlaces& places,
                 Diagnostics& problems) {
  ModelCheck check(path, places, problems);
  if (m.kind == ModelKind::kDlrm) {
    check_dlrm(m, check);
    return;
  }
  check.need(m.layers, "layers");
  check.need(m.hidden, "hidden");
  check.need(m.vocab, "vocab");
  check_experts(m, check);
  check_mixer(m, check);
  check_shared(m, check);
  check_beside(m, check);
  check_attention(m, check);
}

void check_model(const Model& m, const std::string& path, const Value& stated,
                 Diagnostics& problems) {
  const ModelPlaces places = {
      stated.at, [&](std::string_view field) { return find_path(stated, field); },
      [&](std::string_view field) { return fmt::format("{}.{}", path, field); }, as_yaml};
  check_model(m, path, places, problems);
}

}  // namespace assay
