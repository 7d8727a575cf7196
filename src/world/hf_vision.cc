// Encoders of images: a sequence is an image's patches and some tokens of the model's own, and the
// head tells classes. The embedding of patches, a matmul as wide as a patch, is left out: of a
// ViT-L 0.3 % of the parameters.
#include <fmt/format.h>

#include <algorithm>

#include "world/hf_types.h"
#include "world/hf_values.h"

namespace assay {
namespace {

constexpr int64_t kClasses = 1000;  // ImageNet's, where the config tells of none

// The classes that a config names one by one, or counts.
int64_t classes_of(ConfigValues& c) {
  const Value* named = c.find("id2label");
  if (named != nullptr && named->is_map() && named->entries.size() > 2)
    return static_cast<int64_t>(named->entries.size());
  const int64_t counted = c.whole({"num_labels", "num_classes"});
  return counted > 0 ? counted : kClasses;
}

}  // namespace

bool read_vision(ConfigValues& c, Model& m) {
  const ImageReader* kind = image_reader(c.type());
  if (kind == nullptr) return false;
  m.layers = c.needed(kLayersKeys);
  m.hidden = c.needed(kHiddenKeys);
  m.heads = c.needed(kHeadsKeys);
  const int64_t image = c.needed({"image_size"}), patch = c.needed({"patch_size"});
  if (m.layers == 0 || m.hidden == 0 || m.heads == 0 || image == 0 || patch == 0) return true;
  const int64_t side = image / patch;
  constexpr int64_t kMostPatches = 100'000;  // along a side; products of it still fit
  if (side < 1 || side > kMostPatches) {
    c.problem(c.place("patch_size"),
              fmt::format("patches of {} do not cut an image of {}", patch, image),
              "write both in pixels, as in `\"image_size\": 224, \"patch_size\": 16`");
    return true;
  }
  m.max_positions = side * side + kind->more + c.whole({"num_register_tokens"});
  m.ffn = c.whole(kFfnKeys);
  m.gated_mlp = c.flag("use_swiglu_ffn").value_or(false);
  if (m.ffn == 0) {
    const int64_t ratio = c.whole({"mlp_ratio"});
    m.ffn = (ratio > 0 ? std::min<int64_t>(ratio, 64) : 4) * m.hidden;
    if (m.gated_mlp) m.ffn = (m.ffn * 2 / 3 + 7) / 8 * 8;  // DINOv2's: two thirds, in eights
  }
  m.vocab = classes_of(c);
  m.tied_embeddings = true;  // patches need no table
  m.causal = false;
  m.learned_positions = true;
  return true;
}

}  // namespace assay
