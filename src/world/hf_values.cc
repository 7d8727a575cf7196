#include "world/hf_values.h"

#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "world/rules.h"

namespace assay {
namespace {

constexpr double kMost = 1e15;

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
};

}  // namespace

std::optional<double> config_number(const Value& value) {
  const char* end = value.text.data() + value.text.size();
  double read = 0;
  const auto [stop, error] = std::from_chars(value.text.data(), end, read);
  if (!value.is_scalar() || value.quoted || error != std::errc() || stop != end) return {};
  return read;
}

ConfigValues::ConfigValues(const Value& root, Diagnostics& problems)
    : root_(root), text_(&root), problems_(problems) {
  // Models with eyes and ears keep the language model's shape one level down.
  for (const char* key : {"text_config", "llm_config", "language_config"}) {
    const Entry* inner = root.find(key);
    if (inner != nullptr && inner->value.is_map()) text_ = &inner->value;
  }
  type_ = word("model_type");
}

void ConfigValues::problem(const Mark& at, std::string message, std::string help) {
  problems_.push_back(problem_at(at, std::move(message), std::move(help)));
}

Mark ConfigValues::place_of(double number) const {
  for (const auto& [value, at] : numbers_) {
    if (value == number) return at;
  }
  return {root_.at.source};
}

const Value* ConfigValues::find(const char* key) const {
  const std::string_view path = key;
  const size_t dot = path.find('.');
  for (const Value* object : {text_, &root_}) {
    const Entry* entry = object->find(path.substr(0, dot));
    if (entry != nullptr && dot != path.npos) entry = entry->value.find(path.substr(dot + 1));
    if (entry != nullptr && !entry->value.is_null()) return &entry->value;
  }
  return nullptr;
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

int64_t ConfigValues::whole(Keys keys) {
  for (const char* key : keys) {
    const Value* stated = find(key);
    if (stated == nullptr) continue;
    const std::optional<double> value = config_number(*stated);
    if (!value || *value != std::floor(*value) || std::abs(*value) > kMost) {
      problem(stated->at, fmt::format("`{}` must be a whole number", key),
              "write digits alone, without quotes");
      return 0;
    }
    if (*value < 0) {
      problem(stated->at, fmt::format("`{}` must not be negative", key),
              "write what the model has");
      return 0;
    }
    numbers_.emplace_back(*value, stated->at);
    return static_cast<int64_t>(*value);
  }
  for (const Omitted& o : kOmitted) {
    if (o.key == *keys.begin() && type_ == o.type) return o.value;
  }
  return 0;
}

int64_t ConfigValues::needed(Keys keys) {
  const size_t before = problems_.size();
  const int64_t value = whole(keys);
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

}  // namespace assay
