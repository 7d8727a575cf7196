// Pickles read as data. Python's pickle is a program for a small stack machine that may import and
// call anything; this reader knows only the instructions that build plain data (protocols 0 to 5)
// and resolves no name, ever: an instruction that would import, call or construct is an error that
// says which one, where, and the name it asked for.
//
// Memory is bounded by PlainLimits and the size of the input; the machine itself never recurses.
// Integers beyond 64 bits become reals.
#pragma once

#include <string>
#include <string_view>

#include "ingest/plain.h"

namespace assay {

tl::expected<PlainDocument, Diagnostic> read_pickle(std::string_view bytes, const std::string& file,
                                                    const PlainLimits& = {});

// Whether bytes can be the beginning of a pickle of a container (any protocol).
bool looks_like_pickle(std::string_view bytes);

}  // namespace assay
