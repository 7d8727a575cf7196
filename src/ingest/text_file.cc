#include "ingest/text_file.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include <fmt/format.h>

namespace assay {
namespace {

constexpr size_t kReadPiece = size_t{1} << 20;

int as_int(uint64_t n) {
  return static_cast<int>(std::min<uint64_t>(n, std::numeric_limits<int>::max()));
}

}  // namespace

Result<std::string> read_rest(ByteSource& source, size_t max_bytes) {
  std::string text;
  (void)source.peek(1);  // tells whether it is compressed
  if (const uint64_t hint = source.size_hint(); hint > 0 && hint <= max_bytes)
    text.reserve(hint + kReadPiece + 1);
  for (;;) {
    const size_t had = text.size();
    text.resize(had + kReadPiece);
    const Result<size_t> got = source.read(text.data() + had, kReadPiece);
    text.resize(had + got.value_or(0));
    if (!got) return tl::unexpected(got.error());
    if (*got == 0) break;
    if (text.size() > max_bytes) {
      return tl::unexpected(Failure{fmt::format("more than {} MB of text", max_bytes >> 20),
                                    source.name(),
                                    "keep the part that matters, as with `tail -n 1000000`"});
    }
  }
  return text;
}

Result<std::string> read_text(const std::string& path, size_t max_bytes) {
  Result<ByteSource> source = ByteSource::open(path, std::numeric_limits<uint64_t>::max());
  if (!source) return tl::unexpected(source.error());
  Result<std::string> text = read_rest(*source, max_bytes);
  if (text && !source->damage().empty()) {
    return tl::unexpected(Failure{source->damage(), source->name()});
  }
  return text;
}

void find_lines(const ByteSource& source, std::vector<BytePlace>& places, uint64_t most_bytes) {
  std::vector<BytePlace*> wanted;
  for (BytePlace& place : places) {
    if (place.byte <= most_bytes) wanted.push_back(&place);
  }
  if (wanted.empty()) return;
  std::sort(wanted.begin(), wanted.end(),
            [](const BytePlace* a, const BytePlace* b) { return a->byte < b->byte; });
  Result<ByteSource> text = source.again();
  if (!text) return;
  std::string piece(kReadPiece, '\0');
  uint64_t at = 0, line = 1, line_start = 0;  // of the piece, and of what was passed in it
  size_t next = 0;
  while (next < wanted.size()) {
    const size_t size = text->read(piece.data(), piece.size()).value_or(0);
    const char* passed = piece.data();
    const auto pass = [&](const char* to) {
      while (const void* newline = std::memchr(passed, '\n', static_cast<size_t>(to - passed))) {
        passed = static_cast<const char*>(newline) + 1;
        line_start = at + static_cast<uint64_t>(passed - piece.data());
        ++line;
      }
      passed = to;
    };
    // The end of the text is a place too: there a file that was cut ends.
    for (; next < wanted.size() && (wanted[next]->byte < at + size || size == 0); ++next) {
      if (size > 0) pass(piece.data() + (wanted[next]->byte - at));
      wanted[next]->line = as_int(line);
      wanted[next]->column = as_int(wanted[next]->byte - line_start + 1);
    }
    if (size == 0) return;
    pass(piece.data() + size);
    at += size;
  }
}

}  // namespace assay
