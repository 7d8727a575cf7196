// Any bytes as a saved diagnosis, as `assay compare` takes two of: read with finite figures and
// clean text, or refused with an error.
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "base/diagnostic.h"
#include "report/diagnose_compare.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  assay::DiagnosisSide side;
  assay::Diagnostics problems;
  side.name = "fuzz";
  if (!assay::read_diagnosis(bytes, "fuzz.json", side, problems)) {
    if (problems.empty() || assay::render(problems).empty()) std::abort();
    return 0;
  }
  if (!std::isfinite(side.step.v) || side.step.v < 0) std::abort();
  for (const double share : side.shares) {
    if (!std::isfinite(share)) std::abort();
  }
  const std::string text = assay::diagnose_compare_text({side, side}, {}, {});
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 && c != '\n') std::abort();
  }
  return 0;
}
