// A description inside a result: written by every command, read again by `compare` and `explain`.
#pragma once

#include "plan/compare.h"
#include "world/describe.h"

namespace assay {

// Whether text looks like a result of Assay: JSON with a `schema` of ours.
bool is_result(const std::string& text);

// The description inside a result of `plan` or `simulate`, its plan complete; of a document that
// holds several (`scale`, `compare`), the part that `which` names: a size, a side or its number.
// Kernels and collective parameters are those of the catalog given. Hostile input safe.
tl::expected<Description, Diagnostics> read_result(const std::string& text, const std::string& file,
                                                   const Catalog&, const std::string& which = "");

}  // namespace assay
