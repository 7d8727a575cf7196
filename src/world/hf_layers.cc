// Models whose layers differ in width. A Model has one shape for all of them: the mean, which has
// as many parameters, FLOPs and bytes; which layer is wide is lost, and that is said.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "world/hf_values.h"

namespace assay {
namespace {

constexpr const char* kUneven = "expect stages of a pipeline to be less even than planned";

// A number inside one block: of `attention` or `ffn`.
double inside(const Value& block, std::string_view path) {
  const Value* stated = find_path(block, path);
  return stated != nullptr ? std::clamp(config_number(*stated).value_or(0), 0.0, 1e6) : 0;
}

bool is_true(const Value& block, std::string_view path) {
  const Value* stated = find_path(block, path);
  return stated != nullptr && stated->text == "true";
}

// As the published modeling code rounds a width: two thirds of it, up to a multiple of 256.
int64_t block_width(double multiplier, int64_t hidden) {
  const auto two_thirds = static_cast<int64_t>(2 * multiplier * static_cast<double>(hidden) / 3);
  return (two_thirds + 255) / 256 * 256;
}

// The shape of one half of an encoder-decoder.
struct Half {
  double layers = 0, hidden = 0, ffn = 0, heads = 0, kv_heads = 0, head_dim = 0;
  bool operator==(const Half&) const = default;
};

Half encoder_half(const ConfigValues& c) {
  const auto of = [&](const char* key) {
    const std::string own = fmt::format("encoder.{}", key);
    const std::string deeper = fmt::format("encoder.text_config.{}", key);
    return static_cast<double>(c.peek({own.c_str(), deeper.c_str()}));
  };
  return {of("num_hidden_layers"),   of("hidden_size"),         of("intermediate_size"),
          of("num_attention_heads"), of("num_key_value_heads"), of("head_dim")};
}

// One shape for both, with as many weights in MLPs and nearly as many in attention and embeddings:
// the mean width, and of MLPs and heads what makes up for it.
void mean_of_halves(ConfigValues& c, Model& m, const Half& e, const Half& d) {
  const double cross = m.merged_cross ? 0 : d.layers;  // a further attention in each layer
  const double all = e.layers + d.layers;
  const double hidden = (e.layers * e.hidden + d.layers * d.hidden) / all;
  m.hidden = nearest_multiple(hidden, 64);
  const auto width = static_cast<double>(m.hidden);
  m.ffn = nearest_multiple(
      (e.layers * e.hidden * e.ffn + d.layers * d.hidden * d.ffn) / (all * width), 64);
  const auto heads = [&](double of_e, double of_d) {
    const double both = e.layers * e.hidden * of_e + (d.layers + cross) * d.hidden * of_d;
    return both / ((all + cross) * width);
  };
  const auto group = static_cast<int64_t>(d.heads / d.kv_heads);
  m.kv_heads = nearest_multiple(heads(e.kv_heads, d.kv_heads), 1);
  m.heads = m.kv_heads * group;
  m.head_dim = static_cast<int64_t>(d.head_dim);
  c.warn(c.place("encoder"),
         fmt::format("its encoder and its decoder differ: planned with their mean, {} wide, {} "
                     "heads and an MLP of {}",
                     m.hidden, m.heads, m.ffn),
         "expect stages of a pipeline to be less even than planned");
}

}  // namespace

// T5Gemma: two Gemmas.
void read_halves(ConfigValues& c, Model& m) {
  const bool second = c.type() == "t5gemma2";
  m.encoder_layers =
      c.needed({"encoder.num_hidden_layers", "encoder.text_config.num_hidden_layers"});
  // The decoder's two tables are one, and the encoder has its own: two, as if they were untied.
  // The second T5Gemma has one for all three, and one attention for both halves.
  m.tied_embeddings = second;
  m.merged_cross = second;
  const Half e = encoder_half(c);
  const Half d = {real(m.layers), real(m.hidden),   real(m.ffn),
                  real(m.heads),  real(m.kv_heads), real(c.peek({"head_dim"}))};
  Half same = e;
  same.layers = d.layers;
  if (same == d) return;
  const bool stated = e.hidden > 0 && e.ffn > 0 && e.kv_heads > 0 && d.kv_heads > 0;
  if (!stated || e.head_dim != d.head_dim || e.heads / e.kv_heads != d.heads / d.kv_heads) {
    c.problem(c.place("encoder"),
              "the encoder's heads are of another kind than the decoder's: a model has one shape "
              "for both",
              "plan an encoder-decoder of two equal halves, or each half alone");
    return;
  }
  mean_of_halves(c, m, e, d);
}

// Nemotron-NAS: a search took attention from some layers and width from others.
bool read_blocks(ConfigValues& c, Model& m) {
  const std::vector<Value> blocks = c.items("block_configs");
  if (blocks.empty()) return false;
  c.check_length("block_configs", static_cast<int64_t>(blocks.size()), m.layers);
  double kv = 0, width = 0;
  int64_t group = 0, common = 0;
  for (const Value& block : blocks) {
    if (is_true(block, "attention.replace_with_linear") ||
        is_true(block, "ffn.replace_with_linear")) {
      c.problem(block.at, "a block that is one matrix (`replace_with_linear`) is not described yet",
                "write the shape that comes closest as `workload: {model: {...}}` in YAML");
      return true;
    }
    const double in_group =
        is_true(block, "attention.no_op") ? 0 : inside(block, "attention.n_heads_in_group");
    if (in_group >= 1) kv += static_cast<double>(m.heads) / in_group;
    group = std::max(group, static_cast<int64_t>(in_group));
    const int64_t own =
        is_true(block, "ffn.no_op") ? 0 : block_width(inside(block, "ffn.ffn_mult"), m.hidden);
    width += static_cast<double>(own);
    common = std::gcd(common, own);
  }
  if (m.heads == 0 || group == 0 || common == 0) {
    c.problem(c.place("block_configs"), "`block_configs` has no attention, or no MLP",
              "copy the whole config.json");
    return true;
  }
  const auto layers = static_cast<double>(blocks.size());
  m.head_dim = std::max<int64_t>(1, m.hidden / m.heads);
  m.kv_heads = nearest_multiple(kv / layers, 1);
  m.heads = m.kv_heads * group;
  m.ffn = nearest_multiple(width / layers, common);
  c.warn(c.place("block_configs"),
         fmt::format("its layers differ (`block_configs`): planned with their mean, {} heads and "
                     "an MLP of {}",
                     m.heads, m.ffn),
         kUneven);
  return true;
}

// OpenELM: the MLP's width as a multiple of the model's, from the first layer to the last.
bool read_multipliers(ConfigValues& c, Model& m) {
  const Value* stated = c.find("ffn_multipliers");
  if (stated == nullptr) return false;
  double sum = 0;
  for (const Value& item : stated->items) sum += config_number(item).value_or(0);
  const double mean = stated->is_list() && !stated->items.empty()
                          ? sum / static_cast<double>(stated->items.size())
                          : config_number(*stated).value_or(0);
  if (!(mean > 0 && mean <= 1000)) {
    c.problem(stated->at, "`ffn_multipliers` must be numbers above 0", "write what the model has");
    return true;
  }
  const int64_t step = std::max<int64_t>(1, c.whole({"ffn_dim_divisor"}));
  m.ffn = nearest_multiple(mean * static_cast<double>(m.hidden), step);
  if (stated->items.size() > 1) {
    c.warn(
        stated->at,
        fmt::format("`ffn_multipliers` differ between layers: planned with their mean, {}", m.ffn),
        kUneven);
  }
  return true;
}

void settle_heads(ConfigValues& c, Model& m) {
  bool listed = false;
  for (const Keys keys : {kHeadsKeys, kKvHeadsKeys}) {
    for (const char* key : keys) listed = listed || !c.items(key).empty();
  }
  if (!listed || m.kv_heads == 0 || m.heads == 0 || m.heads % m.kv_heads == 0) return;
  int64_t best = 1;
  for (int64_t d = 1; d <= std::min<int64_t>(m.heads, 65536); ++d) {
    if (m.heads % d == 0 && std::abs(d - m.kv_heads) < std::abs(best - m.kv_heads)) best = d;
  }
  m.kv_heads = best;
}

void expert_layers(ConfigValues& c, Model& m) {
  for (const char* key : kMoeEveryKeys) {
    const std::vector<Value> flags = c.items(key);
    if (flags.empty()) continue;
    c.check_length(key, static_cast<int64_t>(flags.size()), m.layers);
    const auto with = [](const Value& flag) { return flag.text == "1" || flag.text == "true"; };
    const auto first = std::find_if(flags.begin(), flags.end(), with);
    const int64_t rest = flags.end() - first;
    const int64_t experts = std::count_if(first, flags.end(), with);
    m.dense_layers = first - flags.begin();
    m.moe_every =
        experts > 0 ? nearest_multiple(static_cast<double>(rest) / static_cast<double>(experts), 1)
                    : 1;
    return;
  }
  m.dense_layers =
      std::max(c.mean(kDenseLayersKeys), static_cast<int64_t>(c.items("mlp_only_layers").size()));
  m.moe_every = std::max<int64_t>(1, c.whole(kMoeEveryKeys));
}

}  // namespace assay
