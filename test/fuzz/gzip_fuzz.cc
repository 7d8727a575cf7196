// Any bytes as a file, plain or gzip: what is peeked is what is read, a second reading gives the
// same, nothing crashes or grows beyond its limit, and places lie within the text.
#include <cstdint>
#include <string>
#include <vector>

#include "base/assert.h"
#include "ingest/text_file.h"

namespace {

constexpr size_t kMost = size_t{1} << 20;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  assay::ByteSource source = assay::ByteSource::over(bytes, "fuzz", kMost);
  const size_t asked = size > 0 ? data[size - 1] * 37u : 0;
  const assay::Result<std::string_view> peeked = source.peek(asked);
  const std::string head = peeked ? std::string(*peeked) : std::string();
  ASSERT(head.size() <= asked);
  const assay::Result<std::string> text = assay::read_rest(source, kMost);
  if (text) {
    ASSERT(text->size() <= kMost && text->compare(0, head.size(), head) == 0);
    ASSERT(source.compressed() || *text == bytes);
    assay::Result<assay::ByteSource> again = source.again();
    ASSERT(again.has_value());
    const assay::Result<std::string> twice = assay::read_rest(*again, kMost);
    ASSERT(twice && *twice == *text && again->damage() == source.damage());
  }
  std::vector<assay::BytePlace> places = {{0}, {asked}, {kMost}};
  assay::find_lines(source, places, kMost);
  for (const assay::BytePlace& place : places) ASSERT(place.line >= 0 && place.column >= 0);
  return 0;
}
