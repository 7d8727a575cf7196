// What is known of a config.json's model_type. Internal to world.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace assay {

// What an architecture's code does when its config does not say.
struct TypeDefaults {
  bool gated = true;
  bool tied = false;
  bool causal = true;
  bool positions = false;  // learned position embeddings
  bool wide_ffn = false;   // 4 x hidden when no width is stated
};

// Nothing where nobody here knows the type. Types are whole names: `falcon_h1` is no `falcon`. The
// text half of a model that also sees is its family (`qwen3_vl_text`).
std::optional<TypeDefaults> type_defaults(const std::string& type);

// Plain encoders of an image's patches: how many tokens stand beside these.
struct ImageReader {
  std::string_view type;
  int64_t more;
};
// Null where the type is none.
const ImageReader* image_reader(const std::string& type);

// A family that Model's fields cannot describe within a few per cent: why, and what to do instead.
struct Undescribed {
  std::string_view type, why, help;
};
const Undescribed* undescribed(const std::string& type);

}  // namespace assay
