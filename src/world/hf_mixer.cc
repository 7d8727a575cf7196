// Recurrent mixers in config.json files: each family has names of its own for the same shapes.
#include <algorithm>

#include <fmt/format.h>

#include "world/hf_values.h"

namespace assay {
namespace {

// The key that lists kinds of layers.
const char* listing_key(const ConfigValues& c) {
  for (const char* key : {"layers_block_type", "layer_types", "attn_type_list"}) {
    if (!c.items(key).empty()) return key;
  }
  return "layer_types";
}

// Kinds of the layers, one word each, where they are listed; MiniMax numbers them, 1 for softmax.
std::vector<std::string> kinds(const ConfigValues& c) {
  std::vector<std::string> out;
  for (const Value& kind : c.items(listing_key(c))) {
    out.push_back(kind.quoted ? kind.text : kind.text == "1" ? "attention" : "linear_attention");
  }
  return out;
}

// Qwen3-Next, Qwen3.5, OLMo Hybrid.
Mixer gated_delta(ConfigValues& c) {
  Mixer x;
  x.kind = MixerKind::kGatedDelta;
  x.heads = c.needed({"linear_num_value_heads"});
  x.head_dim = c.needed({"linear_value_head_dim"});
  x.groups = c.needed({"linear_num_key_heads"});
  x.state = c.needed({"linear_key_head_dim"});
  x.taps = c.whole({"linear_conv_kernel_dim"});
  return x;
}

// Kimi Linear; its gates go through as many elements as a head has.
Mixer kda(ConfigValues& c) {
  Mixer x;
  x.kind = MixerKind::kKda;
  x.heads = x.groups = c.needed({"linear_attn_config.num_heads"});
  x.head_dim = x.state = x.rank = c.needed({"linear_attn_config.head_dim"});
  x.taps = c.whole({"linear_attn_config.short_conv_kernel_size"});
  return x;
}

// MiniMax-01: as many heads as its softmax attention, as wide as these.
Mixer lightning(ConfigValues& c) {
  Mixer x;
  x.kind = MixerKind::kLightning;
  x.heads = x.groups = c.peek({"num_attention_heads"});
  const int64_t stated = c.peek(kHeadDimKeys);
  x.head_dim = x.state = stated > 0 ? stated : c.peek(kHiddenKeys) / std::max<int64_t>(1, x.heads);
  return x;
}

// Mamba of the first kind, alone or in Jamba.
Mixer mamba(ConfigValues& c) {
  Mixer x;
  x.kind = MixerKind::kMamba;
  const int64_t hidden = c.peek({"hidden_size", "d_model"});
  const bool alone = c.type() != "jamba" && c.type() != "zamba";  // the width is not an MLP's
  const int64_t width = alone ? c.whole({"intermediate_size"}) : 0;
  x.heads = width > 0 ? width : std::max<int64_t>(1, c.whole({"expand", "mamba_expand"})) * hidden;
  x.head_dim = x.groups = 1;
  x.state = c.needed({"state_size", "mamba_d_state"});
  x.taps = c.whole({"conv_kernel", "mamba_d_conv"});
  const int64_t rank = c.peek({"time_step_rank", "mamba_dt_rank"});  // or the word `auto`
  x.rank = rank > 0 ? rank : (hidden + 15) / 16;
  return x;
}

// Nemotron-H, Granite 4, Bamba, Falcon-H1, Mamba-2 alone. What its heads make up need not be the
// stated expansion of the model's width.
Mixer mamba2(ConfigValues& c) {
  Mixer x;
  x.kind = MixerKind::kMamba2;
  x.heads = c.needed({"mamba_num_heads", "mamba_n_heads", "n_mamba_heads", "num_heads"});
  x.state = c.needed({"ssm_state_size", "mamba_d_state", "state_size"});
  x.groups = c.whole({"n_groups", "mamba_n_groups", "mamba_ngroups"});
  x.taps = c.whole({"conv_kernel", "mamba_d_conv"});
  const Keys size = {"mamba_head_dim", "mamba_d_head", "mamba_headdim", "head_dim"};
  const bool follows = c.word("mamba_d_head") == "auto" || c.type() == "zamba2";
  if (follows && x.heads > 0) {
    x.head_dim = c.peek({"mamba_expand"}) * c.peek({"hidden_size"}) / x.heads;
  } else {
    x.head_dim = c.needed(size);
  }
  return x;
}

// mamba_ssm's own configs state what differs from the class's defaults.
Mixer ssm(ConfigValues& c) {
  Mixer x;
  const auto stated = [&](const char* key, int64_t usual) {
    const int64_t n = c.whole({key});
    return n > 0 ? n : usual;
  };
  const int64_t hidden = c.peek({"d_model"}), width = hidden * stated("ssm_cfg.expand", 2);
  x.taps = stated("ssm_cfg.d_conv", 4);
  if (c.type() == "mamba2") {
    x.head_dim = stated("ssm_cfg.headdim", 64);
    x.heads = width / x.head_dim;
    x.state = stated("ssm_cfg.d_state", 128);
    x.groups = stated("ssm_cfg.ngroups", 1);
  } else {
    x.kind = MixerKind::kMamba;
    x.heads = width;
    x.head_dim = x.groups = 1;
    x.state = stated("ssm_cfg.d_state", 16);
    const int64_t rank = c.peek({"ssm_cfg.dt_rank"});  // or the word `auto`
    x.rank = rank > 0 ? rank : (hidden + 15) / 16;
  }
  return x;
}

// RecurrentGemma: a recurrence of single channels, whose gates are blocks, one a head.
Mixer rg_lru(ConfigValues& c) {
  Mixer x;
  x.kind = MixerKind::kRgLru;
  const int64_t stated = c.whole({"lru_width"});
  x.heads = std::max<int64_t>(1, c.peek({"num_attention_heads"}));
  x.head_dim = (stated > 0 ? stated : c.peek({"hidden_size"})) / x.heads;
  x.state = 1;
  x.taps = c.whole({"conv1d_width"});
  return x;
}

// xLSTM: matrices of a head's values by its keys, gated by two numbers a head.
Mixer mlstm(ConfigValues& c) {
  Mixer x;
  x.kind = MixerKind::kGatedLinear;
  x.heads = x.groups = c.needed({"num_heads"});
  const double hidden = static_cast<double>(c.peek(kHiddenKeys));
  const auto size = [&](const char* key, double usual) {
    const Value* stated = c.find(key);
    const double share = stated != nullptr ? config_number(*stated).value_or(0) : usual;
    const int64_t width = nearest_multiple(std::clamp(hidden * share, 0.0, 1e9), 64);
    return width / std::max<int64_t>(1, x.heads);
  };
  x.head_dim = size("v_dim_factor", 1);
  x.state = size("qk_dim_factor", 0.5);
  return x;
}

// RWKV-4 carries two numbers a channel; 5 and 6 a matrix a head, whose decay 6 computes through low
// ranks, as it does the shifts of its inputs; 7 adds a delta rule, with four such gates.
Mixer rwkv(ConfigValues& c) {
  Mixer x;
  const std::string& type = c.type();
  const int64_t hidden = c.peek({"attention_hidden_size", "hidden_size"});
  const auto stated = [&](Keys keys, int64_t usual) {
    const int64_t n = c.whole(keys);
    return n > 0 ? n : usual;
  };
  if (type == "rwkv") {
    x.kind = MixerKind::kWkv;
    x.heads = hidden;
    x.head_dim = x.state = x.groups = 1;
    return x;
  }
  x.kind = type == "rwkv7" ? MixerKind::kWkv7 : MixerKind::kGatedLinear;
  x.head_dim = x.state = stated({"head_size", "head_dim"}, 64);
  x.heads = x.groups = std::max<int64_t>(1, hidden / x.head_dim);
  const bool wide = hidden >= 4096;  // the published code doubles both ranks from there on
  if (type == "rwkv6") {
    x.rank = 5 * stated({"proj_low_rank_dim"}, wide ? 64 : 32) +
             stated({"gate_low_rank_dim"}, wide ? 128 : 64);
  }
  if (type == "rwkv7") {
    x.rank = stated({"decay_low_rank_dim"}, 64) + stated({"a_low_rank_dim"}, 64) +
             stated({"v_low_rank_dim"}, 32) + stated({"gate_low_rank_dim"}, 128);
  }
  return x;
}

// How many layers have which block.
struct Blocks {
  int64_t mixers = 0, attention = 0, mlps = 0;
};

// Nemotron-H writes a letter for every layer: M, *, and - or E.
Blocks by_letters(const std::string& pattern) {
  Blocks b;
  for (const char block : pattern) {
    if (block == 'M') ++b.mixers;
    if (block == '*') ++b.attention;
    if (block == '-' || block == 'E') ++b.mlps;
  }
  return b;
}

Blocks by_words(const std::vector<std::string>& words) {
  Blocks b;
  for (const std::string& kind : words) {
    if (kind == "mlp" || kind == "moe") {
      ++b.mlps;
    } else if (kind == "hybrid") {
      ++b.mixers, ++b.attention;
    } else {
      ++(kind.starts_with("linear") || kind == "mamba" || kind == "conv" ? b.mixers : b.attention);
    }
  }
  return b;
}

// Layers listed by number: those with attention, or Zamba2's, where a shared block stands before
// the recurrent one.
int64_t numbered_layers(const ConfigValues& c) {
  for (const char* key : {"attn_layer_indices", "full_attn_idxs", "hybrid_layer_ids"}) {
    if (const size_t n = c.items(key).size(); n > 0) return static_cast<int64_t>(n);
  }
  return 0;
}

// Families that always have recurrent layers, and the key that tells of them.
struct Recurrent {
  std::string_view type;
  const char* key;
};
constexpr Recurrent kRecurrent[] = {{"kimi_linear", "linear_attn_config"},
                                    {"qwen3_next", "linear_num_value_heads"},
                                    {"qwen3_5", "linear_num_value_heads"},
                                    {"qwen3_5_text", "linear_num_value_heads"},
                                    {"qwen3_5_moe", "linear_num_value_heads"},
                                    {"qwen3_5_moe_text", "linear_num_value_heads"},
                                    {"olmo_hybrid", "linear_num_value_heads"},
                                    {"falcon_h1", "mamba_d_state"},
                                    {"zamba", "mamba_d_state"},
                                    {"zamba2", "mamba_d_state"},
                                    {"bamba", "mamba_d_state"},
                                    {"nemotron_h", "ssm_state_size"},
                                    {"lfm2", "conv_L_cache"},
                                    {"lfm2_moe", "conv_L_cache"},
                                    {"minimax", "layer_types"},
                                    {"minimax_text_01", "attn_type_list"},
                                    {"minimax_m1", "attn_type_list"}};

// Without the key its layers would be taken for plain attention.
bool lacks_its_mixer(ConfigValues& c) {
  for (const Recurrent& r : kRecurrent) {
    if (c.type() != r.type || c.find(r.key)) continue;
    c.problem(c.place("model_type"),
              fmt::format("`{}` has recurrent layers, and `{}` is missing", r.type, r.key),
              "copy the whole config.json");
    return true;
  }
  return false;
}

}  // namespace

bool is_rwkv(const std::string& type) {
  return type == "rwkv" || type == "rwkv5" || type == "rwkv6" || type == "rwkv7";
}

bool read_mixer(ConfigValues& c, Model& m) {
  const std::string& type = c.type();
  if (lacks_its_mixer(c)) return true;
  if (c.find("linear_num_value_heads")) {
    m.mixer = gated_delta(c);
    m.gated_attention = c.flag("attn_output_gate").value_or(type.starts_with("qwen3"));
  } else if (c.find("linear_attn_config")) {
    m.mixer = kda(c);
  } else if (c.find("conv_L_cache")) {  // LFM2
    m.mixer.kind = MixerKind::kConvolution;
    m.mixer.heads = 1;
    m.mixer.head_dim = c.peek({"hidden_size"});
    m.mixer.taps = c.whole({"conv_L_cache"});
  } else if (c.find("attn_type_list") || (type == "minimax" && !kinds(c).empty())) {
    m.mixer = lightning(c);
  } else if (c.find("ssm_cfg")) {
    m.mixer = ssm(c);
  } else if (type == "recurrent_gemma") {
    m.mixer = rg_lru(c);
  } else if (type == "xlstm") {
    m.mixer = mlstm(c);
  } else if (is_rwkv(type)) {
    m.mixer = rwkv(c);
  } else if (type == "mamba" || type == "falcon_mamba" || type == "jamba" || type == "zamba") {
    m.mixer = mamba(c);
  } else if (c.find("mamba_d_state") || c.find("ssm_state_size") || type == "mamba2") {
    m.mixer = mamba2(c);
  } else {
    return false;
  }
  return true;
}

int64_t listed_layers(const ConfigValues& c) { return static_cast<int64_t>(kinds(c).size()); }

void count_mixer_layers(ConfigValues& c, Model& m) {
  const int64_t all = m.layers;
  Blocks b;
  const auto attention_in = [&](int64_t n) { b = {all - std::min(all, n), std::min(all, n), 0}; };
  const std::string pattern =
      c.find("hybrid_override_pattern") != nullptr ? c.find("hybrid_override_pattern")->text : "";
  if (!pattern.empty()) {
    b = by_letters(pattern);
    c.check_length("hybrid_override_pattern", b.mixers + b.attention + b.mlps, all);
  } else if (const std::vector<Value> turns = c.items("block_types"); !turns.empty()) {
    for (int64_t i = 0; i < all; ++i) {  // in turns, layer by layer
      const Value& kind = turns[static_cast<size_t>(i) % turns.size()];
      ++(kind.text == "recurrent" ? b.mixers : b.attention);
    }
  } else if (const std::vector<std::string> words = kinds(c); !words.empty()) {
    b = by_words(words);
    c.check_length(listing_key(c), static_cast<int64_t>(words.size()), all);
  } else if (const int64_t period = c.whole({"full_attention_interval", "attn_layer_period"})) {
    attention_in(all / period);
  } else if (const Value* linear = c.find("linear_attn_config"); linear != nullptr) {
    const Entry* own = linear->find("kda_layers");
    attention_in(own != nullptr ? all - static_cast<int64_t>(own->value.items.size()) : 0);
  } else if (const int64_t some = numbered_layers(c)) {
    attention_in(some);
    if (c.find("hybrid_layer_ids")) b.mixers = all;  // beside attention, not in its place
  } else {
    b = {all, c.type() == "falcon_h1" ? all : 0, 0};
  }
  if (c.type().starts_with("zamba")) b.mlps = b.attention;
  m.mixer.layers = b.mixers;
  if (b.mixers + b.attention != all) m.attention_layers = b.attention;
  m.mlp_layers = b.mlps;
  // Blocks that are layers of their own, and none of them an MLP.
  if (!pattern.empty() && b.mlps == 0) m.ffn = 0;
}

}  // namespace assay
