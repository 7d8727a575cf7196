# Headers that most files open, compiled once: a third of the build's time otherwise goes to parsing
# fmt, the containers and GoogleTest again and again. Sources still include what they use; the build
# without it (-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON) must keep working.
function(assay_precompile target owner)
  if(target STREQUAL owner)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  else()
    target_precompile_headers(${target} REUSE_FROM ${owner})
  endif()
endfunction()

set(ASSAY_PCH <algorithm> <array> <cmath> <cstdint> <functional> <map> <optional> <string>
    <string_view> <vector> <fmt/format.h> <tl/expected.hpp>)
