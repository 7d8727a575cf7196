// Documents packed into one sequence: where attention keeps to each of them, it costs what short
// sequences cost. Rows have no column for it; notes say so, or the framework's own guide does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace assay {

struct PackedCell {
  std::optional<bool> packed;  // `packed to 4096`, `not packed`; unset: not mentioned
  bool apart = false;          // attention does not cross documents, in so many words
  double documents = 0;        // in one sequence, where that is told
  int64_t tokens = 0;          // of the document that a token is in, by the name of the data
};

PackedCell read_packed(const std::string& text);

// Tokens of the document that a token is in, for sequences of `seq`; zero: the whole sequence is
// one. `by_default` is what the framework's fine-tuning packs where nothing is said, zero: nothing.
int64_t packed_document(const PackedCell&, int64_t seq, bool tuning, int64_t by_default);

// A sequence as its ranks share it: padded where they do not divide it (65,537 tokens over 2).
int64_t shared_sequence(int64_t seq, int64_t ranks);

}  // namespace assay
