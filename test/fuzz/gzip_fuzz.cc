// Any bytes as a file, plain or gzip: what is peeked is what is read, a second reading gives the
// same, nothing crashes or grows beyond its limit, and places lie within the text.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "ingest/text_file.h"

namespace {

constexpr size_t kMost = size_t{1} << 20;

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  assay::ByteSource source = assay::ByteSource::over(bytes, "fuzz", kMost);
  const size_t asked = size > 0 ? data[size - 1] * 37u : 0;
  const assay::Result<std::string_view> peeked = source.peek(asked);
  const std::string head = peeked ? std::string(*peeked) : std::string();
  require(head.size() <= asked);
  const assay::Result<std::string> text = assay::read_rest(source, kMost);
  if (text) {
    require(text->size() <= kMost && text->compare(0, head.size(), head) == 0);
    require(source.compressed() || *text == bytes);
    assay::Result<assay::ByteSource> again = source.again();
    require(again.has_value());
    const assay::Result<std::string> twice = assay::read_rest(*again, kMost);
    require(twice && *twice == *text && again->damage() == source.damage());
  }
  std::vector<assay::BytePlace> places = {{0}, {asked}, {kMost}};
  assay::find_lines(source, places, kMost);
  for (const assay::BytePlace& place : places) require(place.line >= 0 && place.column >= 0);
  return 0;
}
