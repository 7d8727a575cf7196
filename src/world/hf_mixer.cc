// Recurrent mixers in config.json files: each family has names of its own for the same shapes.
#include <algorithm>

#include <fmt/format.h>

#include "world/hf_values.h"

namespace assay {
namespace {

// A number inside a mapping: of `linear_attn_config`.
int64_t inside(const ConfigValues& c, const char* map, const char* key) {
  const Value* outer = c.find(map);
  const Entry* entry = outer != nullptr ? outer->find(key) : nullptr;
  const double stated = entry != nullptr ? config_number(entry->value).value_or(0) : 0;
  return stated >= 1 && stated <= 1e6 ? static_cast<int64_t>(stated) : 0;
}

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

void check_length(ConfigValues& c, const char* key, int64_t listed, int64_t layers) {
  if (listed == layers) return;
  c.problem(c.find(key)->at, fmt::format("`{}` has {} layers of {}", key, listed, layers),
            "write one for each of num_hidden_layers");
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
Mixer kda(const ConfigValues& c) {
  constexpr const char* kMap = "linear_attn_config";
  Mixer x;
  x.kind = MixerKind::kKda;
  x.heads = x.groups = inside(c, kMap, "num_heads");
  x.head_dim = x.state = x.rank = inside(c, kMap, "head_dim");
  x.taps = inside(c, kMap, "short_conv_kernel_size");
  return x;
}

// MiniMax-01: as many heads as its softmax attention.
Mixer lightning(ConfigValues& c) {
  Mixer x;
  x.kind = MixerKind::kLightning;
  x.heads = x.groups = c.peek({"num_attention_heads"});
  x.head_dim = x.state = c.peek({"head_dim"});
  return x;
}

// Mamba of the first kind, alone or in Jamba.
Mixer mamba(ConfigValues& c) {
  Mixer x;
  x.kind = MixerKind::kMamba;
  const int64_t hidden = c.peek({"hidden_size", "d_model"});
  const int64_t width = c.type() == "jamba" ? 0 : c.whole({"intermediate_size"});
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
  x.heads = c.needed({"mamba_num_heads", "mamba_n_heads", "num_heads"});
  x.state = c.needed({"ssm_state_size", "mamba_d_state", "state_size"});
  x.groups = c.whole({"n_groups", "mamba_n_groups"});
  x.taps = c.whole({"conv_kernel", "mamba_d_conv"});
  const Keys size = {"mamba_head_dim", "mamba_d_head", "head_dim"};
  if (c.word("mamba_d_head") == "auto" && x.heads > 0) {
    x.head_dim = c.peek({"mamba_expand"}) * c.peek({"hidden_size"}) / x.heads;
  } else {
    x.head_dim = c.needed(size);
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

}  // namespace

bool read_mixer(ConfigValues& c, Model& m) {
  const std::string& type = c.type();
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
  } else if (c.find("attn_type_list") || (type.starts_with("minimax") && !kinds(c).empty())) {
    m.mixer = lightning(c);
  } else if (type == "mamba" || type == "falcon_mamba" || type == "jamba") {
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
    check_length(c, "hybrid_override_pattern", b.mixers + b.attention + b.mlps, all);
  } else if (const std::vector<std::string> words = kinds(c); !words.empty()) {
    b = by_words(words);
    check_length(c, listing_key(c), static_cast<int64_t>(words.size()), all);
  } else if (const int64_t period = c.whole({"full_attention_interval", "attn_layer_period"})) {
    attention_in(all / period);
  } else if (const Value* linear = c.find("linear_attn_config"); linear != nullptr) {
    const Entry* own = linear->find("kda_layers");
    attention_in(own != nullptr ? all - static_cast<int64_t>(own->value.items.size()) : 0);
  } else if (const std::vector<Value> some = c.items("attn_layer_indices"); !some.empty()) {
    attention_in(static_cast<int64_t>(some.size()));
  } else {
    b = {all, c.type().starts_with("falcon_h1") ? all : 0, 0};
  }
  m.mixer.layers = b.mixers;
  if (b.mixers + b.attention != all) m.attention_layers = b.attention;
  m.mlp_layers = b.mlps;
  // Blocks that are layers of their own, and none of them an MLP.
  if (!pattern.empty() && b.mlps == 0) m.ffn = 0;
}

}  // namespace assay
