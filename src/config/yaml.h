// Strict YAML: text to a tree of values with positions, or every problem with its place.
//
// The subset a description needs: mappings, lists, scalars, comments, one document. Anchors,
// aliases and tags are refused (they make bombs and surprises), as are duplicate keys, tabs as
// indentation, control characters, invalid UTF-8 and anything nested or numerous beyond reason.
// Hostile text costs time linear in its size and bounded memory; nothing here throws.
#pragma once

#include <optional>

#include "config/value.h"

namespace assay {

struct YamlLimits {
  int depth = 64;
  size_t nodes = 200000;
  // Bytes that open, close or separate nodes; counted before the library sees the text, because its
  // scanner queues every token of a bracket run before the first event can stop it.
  size_t indicators = 1000000;
};

// The tree, or nothing when the text cannot be parsed. Duplicate keys are problems, too, but the
// tree (with the first of each) is still returned, so that the rest of the text can be checked. An
// empty text (or only comments) is a null value.
std::optional<Value> parse_yaml(const Source&, Diagnostics& problems, const YamlLimits& = {});

}  // namespace assay
