// The text of a file that may be gzip, by content and not by name; bounded on the way out, so that
// a bomb costs no more than the limit.
#pragma once

#include <cstddef>
#include <string>

#include "base/diagnostic.h"

namespace assay {

// Logs and telemetry pages; traces have a reader of their own.
constexpr size_t kMaxLogBytes = size_t{512} << 20;

// The first `bytes` of the text (fewer where the file ends). A gzip stream that is cut short or
// damaged gives what could be read before the damage. Fails on what cannot be opened or read.
Result<std::string> read_text_head(const std::string& path, size_t bytes);

// All of it. Fails when there is more than `max_bytes` of text, or a gzip stream is damaged.
Result<std::string> read_text(const std::string& path, size_t max_bytes = kMaxLogBytes);

}  // namespace assay
