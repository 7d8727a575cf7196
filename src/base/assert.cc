#include "base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace assay {

void assertion_failed(const char* what, const char* file, int line) {
  std::fprintf(stderr, "assay: internal error: %s does not hold at %s:%d\n", what, file, line);
  std::fprintf(stderr, "This is a bug in assay, not in your input. Please report it.\n");
  std::fflush(stderr);
  std::_Exit(70);
}

}  // namespace assay
