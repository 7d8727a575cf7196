// Any bytes as a pickle: plain data within its limits, or an error that names its place. And as a
// Flight Recorder dump on top of it.
#include <cstdint>
#include <cstdlib>

#include "ingest/flight_recorder.h"
#include "ingest/pickle.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const auto document = assay::read_pickle(bytes, "fuzz.pickle");
  if (!document) {
    if (assay::render(document.error()).empty()) std::abort();
  } else {
    for (const std::vector<assay::PlainId>& list : document->lists) {
      for (const assay::PlainId id : list) {
        if (id >= document->nodes.size()) std::abort();
      }
    }
    if (document->root >= document->nodes.size()) std::abort();
  }
  assay::read_flight_dump(bytes, "fuzz_3");
  return 0;
}
