// JSON that other programs write, such as a model's config.json: text to a tree of values with
// positions, or the first problem with its place. Descriptions are YAML, which has its own reader.
//
// Hostile text costs time linear in its size; nothing here throws.
#pragma once

#include <optional>

#include "config/value.h"

namespace assay {

// The tree, or nothing and one more problem. Text in double quotes is `quoted`, `null` is a null
// value. Of a key that stands twice both entries are kept; `find` gives the first. Text may hold
// bytes that are not UTF-8: sanitize what is shown.
std::optional<Value> parse_json(const Source&, Diagnostics& problems);

}  // namespace assay
