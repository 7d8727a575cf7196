// Where the columns of sacct's output are and what they are called, in the three ways people save
// it:
//  - `-P` or `-p`: a header with the names, cells between separators;
//  - no option: a header and a line of dashes, cells of fixed width under them, cut with a `+`;
//  - `-n` with `-P`: no names at all. They are then inferred from what the cells look like.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay {

struct SlurmColumns {
  std::vector<std::string>
      names;  // sacct's own: `JobID`; empty where a column says nothing we know
  std::string separator = "|";
  std::vector<std::pair<size_t, size_t>>
      spans;  // first byte and width, of fixed columns; else empty
  bool inferred = false;
  size_t rows_at = 0;      // byte at which the records begin
  size_t lines_above = 0;  // lines before that

  // The cells of one line; a fixed layout always gives as many as there are names.
  std::vector<std::string_view> split(std::string_view line) const;
  uint32_t count(std::string_view line) const;  // how many split() would give, for less
};

// `names` is empty when this is nothing of sacct's.
SlurmColumns find_sacct_columns(std::string_view text);

}  // namespace assay
