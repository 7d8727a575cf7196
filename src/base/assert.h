// ASSERT: for our own mistakes only, never for bad input. Always on; prints and aborts (exit 70 is
// produced by the CLI's abort handler).
#pragma once

namespace assay {
[[noreturn]] void assertion_failed(const char* what, const char* file, int line);
}

#define ASSERT(cond) \
  (static_cast<bool>(cond) ? (void)0 : ::assay::assertion_failed(#cond, __FILE__, __LINE__))
