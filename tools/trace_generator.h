// Profiler traces made up from a seed, of any size, in the layout that PyTorch writes: host ops of
// two threads, then runtime calls, kernels and the flows between them, collectives on a stream of
// their own. For benchmarks and tests; the same bytes on every machine.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace assay {

struct TraceRecipe {
  uint64_t seed = 1;
  uint64_t json_bytes = uint64_t{10} << 20;  // about; whole steps are written
  int rank = 0, world_size = 8;
  bool shapes = true;  // Input Dims and types on ops
};

// Calls `sink` with the text, piece by piece. Returns how many events it holds.
uint64_t generate_trace(const TraceRecipe&, const std::function<void(std::string_view)>& sink);

}  // namespace assay
