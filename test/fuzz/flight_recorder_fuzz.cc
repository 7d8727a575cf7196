// Any bytes as a Flight Recorder dump in JSON: a dump whose indices hold, or an error.
#include <cstdint>
#include <cstdlib>

#include "ingest/flight_recorder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const auto dump = assay::read_flight_dump(bytes, bytes.substr(0, 20));
  if (!dump) {
    if (assay::render(dump.error()).empty()) std::abort();
    return 0;
  }
  for (const assay::FlightEntry& entry : dump->entries) {
    if (entry.group < 0 || static_cast<size_t>(entry.group) >= dump->groups.size()) std::abort();
    if (entry.name >= dump->strings.size() || entry.sizes >= dump->strings.size()) std::abort();
  }
  return 0;
}
