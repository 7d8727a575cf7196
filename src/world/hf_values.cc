#include "world/hf_values.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

namespace assay {
namespace {

// Products of two such numbers still fit an int64_t.
constexpr double kMost = 1e9;

// Shapes that published configs leave to the class: `vocab_size` of every Gemma 3, the heads of its
// small ones. From the classes' defaults in the transformers library, from memory.
struct Omitted {
  std::string_view type, key;
  int64_t value;
};
constexpr Omitted kOmitted[] = {
    {"gemma3_text", "vocab_size", 262208},
    {"gemma3_text", "num_attention_heads", 8},
    {"gemma3_text", "num_key_value_heads", 4},
    {"gemma3_text", "head_dim", 256},
    {"switch_transformers", "num_experts_per_tok", 1},
    {"nllb-moe", "num_experts_per_tok", 2},
};

std::optional<int64_t> omitted(const std::string& type, Keys keys) {
  for (const Omitted& o : kOmitted) {
    const bool asked = std::find(keys.begin(), keys.end(), o.key) != keys.end();
    if (asked && type == o.type) return o.value;
  }
  return {};
}

}  // namespace

std::optional<double> config_number(const Value& value) {
  const char* end = value.text.data() + value.text.size();
  double read = 0;
  const auto [stop, error] = std::from_chars(value.text.data(), end, read);
  if (!value.is_scalar() || value.quoted || error != std::errc() || stop != end) return {};
  return read;
}

int64_t nearest_multiple(double number, int64_t step) {
  const double times = std::round(number / static_cast<double>(step));
  return step * std::max<int64_t>(1, static_cast<int64_t>(times));
}

ConfigValues::ConfigValues(const Value& root, Diagnostics& problems)
    : root_(root), text_(&root), problems_(problems) {
  // Models with eyes and ears keep the language model's shape one level down; T5Gemma has a shape
  // for either half.
  const std::string whole_type = word("model_type");
  const bool halves = whole_type.starts_with("t5gemma");
  for (const char* key : {"text_config", "llm_config", "language_config", "decoder"}) {
    const Entry* inner = root.find(key);
    const bool decoder = std::string_view(key) == "decoder";
    if (inner != nullptr && inner->value.is_map() && decoder == halves) text_ = &inner->value;
  }
  type_ = halves ? whole_type : word("model_type");
  // Configs of mamba_ssm itself have no type.
  if (type_.empty() && find("ssm_cfg"))
    type_ = word("ssm_cfg.layer") == "Mamba2" ? "mamba2" : "mamba";
}

void ConfigValues::problem(const Mark& at, std::string message, std::string help) {
  problems_.push_back(problem_at(at, std::move(message), std::move(help)));
}

void ConfigValues::warn(const Mark& at, std::string message, std::string help) {
  warnings_.push_back(problem_at(at, std::move(message), std::move(help)));
  warnings_.back().severity = Severity::kWarning;
}

Mark ConfigValues::place(const char* key) const {
  const Value* stated = find(key);
  return stated != nullptr ? stated->at : root_.at;
}

const Value* ConfigValues::find(const char* key) const {
  for (const Value* object : {text_, &root_}) {
    const Value* stated = find_path(*object, key);
    if (stated != nullptr && !stated->is_null()) return stated;
  }
  return nullptr;
}

// The key that says a field; its usual one where none does; null where it follows from others.
const char* ConfigValues::known_key(std::string_view field) const {
  const Keys keys = keys_of(field);
  const auto stated =
      std::find_if(keys.begin(), keys.end(), [&](const char* key) { return find(key); });
  if (stated != keys.end()) return *stated;
  return keys.size() > 0 ? *keys.begin() : nullptr;
}

ModelPlaces ConfigValues::places() const {
  const auto name = [this](std::string_view field) {
    const char* key = known_key(field);
    return key != nullptr ? std::string(key) : std::string(field);
  };
  return {root_.at,
          [this](std::string_view field) -> const Value* {
            const char* key = known_key(field);
            return key != nullptr ? find(key) : nullptr;
          },
          [name](std::string_view field) { return fmt::format("`{}`", name(field)); },
          [name](std::string_view field) { return fmt::format("\"{}\": N", name(field)); }};
}

int64_t ConfigValues::peek(Keys keys) const {
  for (const char* key : keys) {
    const Value* stated = find(key);
    if (stated == nullptr) continue;
    const double value = config_number(*stated).value_or(0);
    return value >= 0 && value <= kMost ? static_cast<int64_t>(value) : 0;
  }
  return 0;
}

int64_t ConfigValues::number(const char* key, const Value& stated) {
  const std::optional<double> value = config_number(stated);
  if (!value || *value != std::floor(*value)) {
    problem(stated.at, fmt::format("`{}` must be a whole number", key),
            "write digits alone, without quotes");
    return 0;
  }
  if (*value < 0) {
    problem(stated.at, fmt::format("`{}` must not be negative", key), "write what the model has");
    return 0;
  }
  if (*value > kMost) {
    const double most = std::min(kMost, limits_of(key).value_or(Limits{0, kMost}).max);
    problem(stated.at, fmt::format("`{}` is out of range: {:g}", key, *value),
            fmt::format("write at most {:.0f}", most));
    return 0;
  }
  return static_cast<int64_t>(*value);
}

// Rounded so that what divides every layer's number divides the mean, too.
int64_t ConfigValues::list_mean(const char* key, const Value& list) {
  // Of Ernie's two kinds of experts the first reads text.
  if (type_.starts_with("ernie4_5") && list.items.size() == 2) return number(key, list.items[0]);
  double sum = 0;
  int64_t common = 0;
  bool same = true;
  for (const Value& item : list.items) {
    const size_t before = problems_.size();
    const int64_t n = number(key, item);
    if (problems_.size() != before) return 0;
    same = same && n == number(key, list.items[0]);
    common = std::gcd(common, n);
    sum += static_cast<double>(n);
  }
  if (common == 0) return 0;  // an empty list, or nothing but zeros
  const int64_t mean = nearest_multiple(sum / static_cast<double>(list.items.size()), common);
  if (!same) {
    warn(list.at, fmt::format("`{}` differs between layers: planned with its mean, {}", key, mean),
         "expect stages of a pipeline to be less even than planned");
  }
  return mean;
}

int64_t ConfigValues::first(Keys keys, bool per_layer) {
  for (const char* key : keys) {
    const Value* stated = find(key);
    if (stated == nullptr) continue;
    return per_layer && stated->is_list() ? list_mean(key, *stated) : number(key, *stated);
  }
  return omitted(type_, keys).value_or(0);
}

int64_t ConfigValues::at_least_one(Keys keys, bool per_layer) {
  const size_t before = problems_.size();
  const int64_t value = first(keys, per_layer);
  if (value != 0 || problems_.size() != before) return value;
  std::string others;
  for (const char* key : keys) {
    if (const Value* stated = find(key)) {
      problem(stated->at, fmt::format("`{}` must be at least 1", key), "write what the model has");
      return value;
    }
    others += fmt::format("{}{}", others.empty() ? "" : ", ", key);
  }
  problem(text_->at, fmt::format("`{}` is missing", *keys.begin()),
          fmt::format("looked for {}; is this the config.json of a model?", others));
  return value;
}

int64_t ConfigValues::whole(Keys keys) { return first(keys, false); }
int64_t ConfigValues::mean(Keys keys) { return first(keys, true); }
int64_t ConfigValues::needed(Keys keys) { return at_least_one(keys, false); }
int64_t ConfigValues::needed_mean(Keys keys) { return at_least_one(keys, true); }

std::optional<bool> ConfigValues::flag(const char* key) const {
  const Value* value = find(key);
  const bool answer = value != nullptr && !value->quoted;
  if (!answer || (value->text != "true" && value->text != "false")) return {};
  return value->text == "true";
}

std::string ConfigValues::word(const char* key) const {
  const Value* value = find(key);
  return value != nullptr && value->quoted ? sanitize(value->text, 100) : "";
}

std::vector<Value> ConfigValues::items(const char* key) const {
  const Value* value = find(key);
  return value != nullptr ? value->items : std::vector<Value>();
}

void ConfigValues::check_length(const char* key, int64_t listed, int64_t layers) {
  if (listed == layers) return;
  problem(place(key), fmt::format("`{}` has {} layers of {}", key, listed, layers),
          "write one for each of num_hidden_layers");
}

}  // namespace assay
