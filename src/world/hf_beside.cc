// What some families have beside attention and MLP, or share between layers.
#include <algorithm>

#include <fmt/format.h>

#include "world/hf_values.h"

namespace assay {
namespace {

// Zamba: few layers have a transformer's block before their mixer, in turns one of a few sets of
// weights. It reads the embedding beside the layer's input; each layer has a projection of its
// result and, in the second generation, adapters for what is shared.
void zamba_blocks(ConfigValues& c, Model& m) {
  m.weight_sets = std::max<int64_t>(1, c.whole({"num_mem_blocks"}));
  m.attention_input = 2 * m.hidden;
  if (m.heads > 0) m.head_dim = m.attention_input / m.heads;
  m.rotary = c.type() == "zamba2" && c.flag("use_mem_rope").value_or(false);
  double own = static_cast<double>(m.hidden) * static_cast<double>(m.hidden);
  if (c.type() == "zamba2" && m.hidden > 0) {
    const int64_t stated = c.whole({"adapter_rank", "lora_rank"});
    const auto rank = static_cast<double>(stated > 0 ? stated : 128);  // the class's default
    const auto h = static_cast<double>(m.hidden), ffn = static_cast<double>(m.ffn);
    own += rank * (h + 2 * ffn);
    if (c.flag("use_shared_attention_adapter").value_or(false)) own += rank * 3 * 4 * h;
  }
  m.own_width = nearest_multiple(own / (2 * static_cast<double>(m.hidden)), 1);
}

// Gemma 4 doubles the MLP of layers that take keys and values from others.
void double_wide(ConfigValues& c, Model& m) {
  const int64_t wide = c.peek({"num_kv_shared_layers"});
  if (!c.flag("use_double_wide_mlp").value_or(false) || wide == 0 || m.layers == 0) return;
  const double share = static_cast<double>(wide) / static_cast<double>(m.layers);
  m.ffn = nearest_multiple(static_cast<double>(m.ffn) * (1 + share), 64);
  c.warn(c.place("use_double_wide_mlp"),
         fmt::format("{} of its layers have an MLP twice as wide: planned with the mean, {}", wide,
                     m.ffn),
         "expect stages of a pipeline to be less even than planned");
}

}  // namespace

void read_beside(ConfigValues& c, Model& m) {
  const std::string& type = c.type();
  if (type == "albert") {
    const int64_t inner = std::max<int64_t>(1, c.whole({"inner_group_num"}));
    m.weight_sets = inner * std::max<int64_t>(1, c.whole({"num_hidden_groups"}));
    m.layers *= inner;
  }
  if (type.starts_with("zamba")) zamba_blocks(c, m);
  m.mlp_output_gate = type == "rwkv" || type == "rwkv5" || type == "rwkv6";
  m.layer_embedding = c.whole({"hidden_size_per_layer_input"});
  m.residual_streams = c.whole({"altup_num_inputs"});
  double_wide(c, m);
  if (const int64_t taken = c.peek({"num_kv_shared_layers"}); taken > 0) {
    c.warn(c.place("num_kv_shared_layers"),
           fmt::format("{} of its layers take keys and values from others: planned with their own",
                       taken),
           "expect up to 2 % less time and memory");
  }
}

// LongCat: in a layer two attentions with an MLP each, and experts beside the second MLP; some
// experts hand on their input.
void read_pairs(ConfigValues& c, Model& m) {
  m.layers = 2 * (c.find("num_layers") ? c.needed({"num_layers"}) : m.layers / 2);
  const int64_t dense = c.needed(kFfnKeys);
  m.ffn = m.shared_expert_ffn = dense;
  m.dense_layers = 0;
  m.moe_every = 2;
  const int64_t idle = c.whole({"zero_expert_num"});
  if (idle == 0 || m.experts == 0) return;
  const double share = static_cast<double>(m.experts) / static_cast<double>(m.experts + idle);
  const int64_t chosen = m.experts_per_token;
  m.experts_per_token = nearest_multiple(static_cast<double>(chosen) * share, 1);
  c.warn(c.place("zero_expert_num"),
         fmt::format("{} of its experts compute nothing: planned with {} of the {} that a token is "
                     "sent to",
                     idle, m.experts_per_token, chosen),
         "state workload.model.experts_per_token where its router chooses otherwise");
}

}  // namespace assay
