// Cells that hold one number, as people write them: `~8k`, `TP2`, `1,024`, `4 nodes`. What stands
// beside the number is either known to say nothing more, or the cell is not read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace assay {

// A cell of a number that says that there is none: a dash, `N/A`, `none`, `varies`.
bool blank_number(std::string_view cell);
// `none`, `off`, `0`: not split this way.
bool denied_degree(std::string_view cell);

// The cell with plain blanks and digits, without `~` and, where one of `labels` (parted by blanks)
// stands before the number, without it: `TP=2` is `2`.
std::string bare_number(std::string_view cell, std::string_view labels);

// Whether more stands behind the number than a reader may pass over: `8k`, `8x8`, `4M tokens`,
// `850 ms`, `64%`. One of `units` may stand there: `80GB`; `each`: but not the sum of several.
bool says_more(std::string_view cell, std::string_view units, bool each = false);

// `8k` tokens are 8,192 and `1M` 1,048,576: sequences are powers of two in this notation. As many
// digits as a length has, and nothing else but its unit and an aside.
std::optional<double> in_thousands(std::string_view cell);

// Sequences of `seq` in a batch stated in tokens: `2M tokens`, `64k tokens per GPU`. Nothing: it is
// not.
std::optional<double> batch_in_tokens(std::string_view cell, std::optional<int64_t> seq,
                                      std::optional<int64_t> accelerators = {});
bool counts_tokens(std::string_view cell);

// Accelerators from nodes or a product: `4 nodes`, `4x8`, `2 nodes x 8 GPUs`. Nothing: neither.
std::optional<double> accelerators_in(std::string_view cell, std::optional<int64_t> per_node);

// `yes (SwiGLU)`, `squared relu`, `untied`; nothing: it says neither.
std::optional<bool> read_switch(std::string_view cell, std::string_view yes, std::string_view no);

}  // namespace assay
