// Any bytes as a Hugging Face config: a model within its limits, or problems.
#include <cstdint>
#include <cstdlib>

#include "world/describe.h"
#include "world/model_size.h"
#include "world/rules.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const tl::expected<assay::Model, assay::Diagnostics> model =
      assay::read_hf_config(text, "fuzz.json");
  if (!model) {
    if (assay::render(model.error()).empty()) std::abort();
    return 0;
  }
  for (const assay::Diagnostic& d : assay::left_out_of_config(text, "fuzz.json")) {
    if (assay::render(d).empty()) std::abort();
  }
  const double all = assay::parameters(*model);
  const double flops = assay::flops_per_token(*model, 4096, assay::Task::kPretrain);
  if (!(all > 0) || !(flops > 0)) std::abort();
  return 0;
}
