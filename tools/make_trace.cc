// Writes a made-up profiler trace, the same for the same seed:
//
//   make_trace FILE[.gz] [MEGABYTES [SEED [RANK [RANKS]]]]
#include <zlib.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tools/trace_generator.h"

int main(int argc, char** argv) {
  if (argc < 2 || argc > 6) {
    std::fprintf(stderr, "usage: %s FILE[.gz] [MEGABYTES [SEED [RANK [RANKS]]]]\n", argv[0]);
    return 2;
  }
  const std::string path = argv[1];
  assay::TraceRecipe recipe;
  if (argc > 2) recipe.json_bytes = std::strtoull(argv[2], nullptr, 10) << 20;
  if (argc > 3) recipe.seed = std::strtoull(argv[3], nullptr, 10);
  if (argc > 4) recipe.rank = std::atoi(argv[4]);
  if (argc > 5) recipe.world_size = std::atoi(argv[5]);
  const bool packed = path.size() > 3 && path.compare(path.size() - 3, 3, ".gz") == 0;
  const gzFile file = gzopen(path.c_str(), packed ? "wb6" : "wbT");
  if (file == nullptr) {
    std::fprintf(stderr, "%s: cannot be written\n", path.c_str());
    return 3;
  }
  bool written = true;
  const uint64_t events = assay::generate_trace(recipe, [&](std::string_view text) {
    written = written && gzwrite(file, text.data(), static_cast<unsigned>(text.size())) > 0;
  });
  if (gzclose(file) != Z_OK || !written) {
    std::fprintf(stderr, "%s: could not be written in full\n", path.c_str());
    return 3;
  }
  std::printf("%s: %llu events\n", path.c_str(), static_cast<unsigned long long>(events));
  return 0;
}
