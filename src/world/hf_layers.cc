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

}  // namespace

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
