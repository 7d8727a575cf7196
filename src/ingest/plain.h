// A document of plain data (numbers, texts, lists, tables) in one flat arena: what a pickle and a
// JSON file have in common.
//
// Nodes refer to one another by index. A pickle may share nodes and even hold itself (its memo
// allows it), so a document is a graph, not a tree: whoever walks it does so to a fixed depth and
// a fixed count, never by recursion. Text is untrusted: sanitize() before a terminal sees it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "base/diagnostic.h"

namespace assay {

enum class PlainKind : uint8_t {
  kNone,
  kBool,
  kInt,
  kReal,
  kText,
  kBytes,
  kList,
  kTuple,
  kDict,
  kSet
};

using PlainId = uint32_t;

struct PlainNode {
  PlainKind kind = PlainKind::kNone;
  uint32_t a = 0;       // text: where it starts; list, tuple, dict, set: index into `lists`
  int64_t integer = 0;  // bool, int; text: its length
  double real = 0;
};

struct PlainDocument {
  std::vector<PlainNode> nodes;
  // Children of a container; a dict holds key, value, key, value, ...
  std::vector<std::vector<PlainId>> lists;
  std::string text;
  PlainId root = 0;

  const PlainNode& at(PlainId id) const { return nodes[id]; }
  std::string_view text_of(PlainId) const;                        // empty unless text or bytes
  const std::vector<PlainId>& items(PlainId) const;               // empty unless a container
  bool find(PlainId dict, std::string_view key, PlainId&) const;  // the last of that key wins
  int64_t integer_or(PlainId, int64_t otherwise) const;           // ints, bools, whole reals
};

// Nodes are what costs memory: at most about 300 MB of them. An honest dump has 100,000.
struct PlainLimits {
  size_t nodes = size_t{4} << 20;
  size_t memo = size_t{2} << 20;
};

// JSON by the standard; control characters and invalid UTF-8 inside texts are tolerated (they
// become `?`). One error with the offset otherwise.
tl::expected<PlainDocument, Diagnostic> read_plain_json(std::string_view bytes,
                                                        const std::string& file,
                                                        const PlainLimits& = {});

}  // namespace assay
