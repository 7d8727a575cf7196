#include "world/describe.h"

namespace assay {

tl::expected<Model, Diagnostics> read_hf_config(const std::string&, const std::string&) {
  return Model{};
}

}  // namespace assay
