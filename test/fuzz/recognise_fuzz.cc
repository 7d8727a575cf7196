// Any bytes get a kind; no kind is out of range, nothing crashes.
#include <cstdint>
#include <cstdlib>

#include "ingest/recognise.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const assay::FileKind kind =
      assay::recognise(std::string_view(reinterpret_cast<const char*>(data), size));
  if (static_cast<int>(kind) < 0 || static_cast<int>(kind) >= assay::kFileKinds) std::abort();
  if (assay::kind_name(kind).empty()) std::abort();
  return 0;
}
