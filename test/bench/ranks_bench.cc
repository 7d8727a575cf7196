// A folder of many ranks in bounded memory: traces are made one by one, then diagnosed together.
//
//   ranks_bench [--most MIB] [RANKS [KILOBYTES]]      default 1000 ranks of one step
//
// Prints the peak that diagnosing adds to the process for a tenth of the ranks and for all of them;
// with --most it fails where all need more than that.
#include <malloc.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cpu_time.h"
#include "diagnose/diagnose.h"
#include "tools/trace_generator.h"

namespace {

namespace fs = std::filesystem;

size_t status_kib(const char* key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(key, 0) == 0) return std::strtoull(line.c_str() + std::strlen(key), nullptr, 10);
  }
  return 0;
}

std::string make(const fs::path& folder, int rank, int ranks, uint64_t kilobytes) {
  const std::string path = (folder / fmt::format("rank{:05}.json.gz", rank)).string();
  const gzFile file = gzopen(path.c_str(), "wb1");
  assay::TraceRecipe recipe;
  recipe.seed = static_cast<uint64_t>(rank) + 1;
  recipe.json_bytes = kilobytes << 10;
  recipe.rank = rank;
  recipe.world_size = ranks;
  assay::generate_trace(recipe, [&](std::string_view text) {
    if (gzwrite(file, text.data(), static_cast<unsigned>(text.size())) <= 0) std::abort();
  });
  gzclose(file);
  return path;
}

// The peak in MiB; -1 where the kernel does not tell.
double measure(const std::vector<std::string>& files) {
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";  // the peak counts from here on
  const size_t before = status_kib("VmRSS:");
  const double begin = cpu_s();
  const assay::Diagnosis d = assay::diagnose(files, {});
  const double seconds = cpu_s() - begin;
  const size_t peak = status_kib("VmHWM:");
  if (!d.step || d.step->ranks != static_cast<int>(files.size())) std::abort();
  const double mib = static_cast<double>(peak > before ? peak - before : 0) / 1024;
  fmt::print("{:>6} ranks {:>9.2f} s {:>9.1f} MiB\n", files.size(), seconds, mib);
  return peak == 0 ? -1 : mib;
}

}  // namespace

int main(int argc, char** argv) {
  double most = 0;
  std::vector<int> numbers;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--most") == 0 && i + 1 < argc) {
      most = std::atof(argv[++i]);
    } else {
      numbers.push_back(std::atoi(argv[i]));
    }
  }
  const int ranks = numbers.empty() ? 1000 : numbers[0];
  const uint64_t kilobytes = numbers.size() > 1 ? static_cast<uint64_t>(numbers[1]) : 1;
  const fs::path folder = fs::temp_directory_path() / fmt::format("assay-ranks-{}", ::getpid());
  fs::create_directory(folder);
  std::vector<std::string> files;
  for (int rank = 0; rank < ranks; ++rank) files.push_back(make(folder, rank, ranks, kilobytes));
  const std::vector<std::string> few(files.begin(), files.begin() + (ranks + 9) / 10);
  measure(few);
  const double peak = measure(files);
  fs::remove_all(folder);
  if (most > 0 && peak > most) {
    fmt::print("more than {:.0f} MiB\n", most);
    return 1;
  }
  return 0;
}
