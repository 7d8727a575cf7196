// The text of a file that may be gzip, by content and not by name; bounded on the way out, so that
// a bomb costs no more than the limit.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "ingest/gzip.h"

namespace assay {

// Logs and telemetry pages; traces have a reader of their own.
constexpr size_t kMaxLogBytes = size_t{512} << 20;

// What is left of a source. Fails when that is more than `max_bytes`; what is damaged gives what
// came before the damage, and `source.damage()` says so.
Result<std::string> read_rest(ByteSource& source, size_t max_bytes = kMaxLogBytes);

// All of a file. Fails when it cannot be read, is too large, or its gzip stream is damaged.
Result<std::string> read_text(const std::string& path, size_t max_bytes = kMaxLogBytes);

// A byte of a text, and where that is for a person: lines and columns count from 1, columns in
// bytes. Zero: not known.
struct BytePlace {
  uint64_t byte = 0;
  int line = 0, column = 0;
};

// Finds lines and columns by reading the text once more, up to the last place that lies within
// `most_bytes`. Nothing is found where the source cannot be read again.
void find_lines(const ByteSource& source, std::vector<BytePlace>& places, uint64_t most_bytes);

}  // namespace assay
