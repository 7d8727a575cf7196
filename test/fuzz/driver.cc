// Runs a fuzz target without libFuzzer: every file of a corpus, then mutations of them, the same
// ones on every machine. For ctest, where clang may be absent; real fuzzing is the `fuzz` preset.
//
//   yaml_fuzz_replay CORPUS-FOLDER MUTATIONS
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

// Numerical Recipes' generator: small, and the same everywhere.
class Random {
 public:
  uint32_t below(size_t n) {
    state_ = state_ * 1664525u + 1013904223u;
    return static_cast<uint32_t>((uint64_t{state_} * n) >> 32);
  }

 private:
  uint32_t state_ = 12345;
};

void run(const std::string& text) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(text.data()), text.size());
}

std::string mutated(std::string text, const std::vector<std::string>& corpus, Random& random) {
  static const char* const kWords[] = {
      "[",     "]",    "{",       "}",  ": ",  "- ", "\n", "\"", "'",  "nan",
      "1e999", "-1",   "&a",      "*a", "!!x", "0",  "\t", "|",  ",,", "99999999999999999999",
      "null",  "\xff", "\xc3\xa4"};
  const uint32_t changes = 1 + random.below(4);
  for (uint32_t i = 0; i < changes; ++i) {
    const size_t at = random.below(text.size() + 1);
    switch (random.below(6)) {
      case 0:
        text.insert(at, kWords[random.below(std::size(kWords))]);
        break;
      case 1:
        text.erase(at, 1 + random.below(8));
        break;
      case 2:
        if (at < text.size()) text[at] = static_cast<char>(random.below(256));
        break;
      case 3:
        text.insert(at, text.substr(random.below(text.size() + 1), random.below(40)));
        break;
      case 4: {
        const std::string& other = corpus[random.below(corpus.size())];
        text.insert(at, other.substr(random.below(other.size() + 1), random.below(80)));
        break;
      }
      default:
        text.resize(at);
        break;
    }
  }
  constexpr size_t kLongest = 8192;
  text.resize(std::min(text.size(), kLongest));
  return text;
}

std::vector<std::string> read_corpus(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> corpus;
  for (const std::filesystem::path& path : paths) {
    std::ifstream in(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return corpus;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s CORPUS-FOLDER MUTATIONS\n", argv[0]);
    return 2;
  }
  const std::vector<std::string> corpus = read_corpus(argv[1]);
  if (corpus.empty()) {
    std::fprintf(stderr, "%s: no corpus\n", argv[1]);
    return 3;
  }
  for (const std::string& text : corpus) run(text);
  Random random;
  const long mutations = std::atol(argv[2]);
  std::string text;
  for (long i = 0; i < mutations; ++i) {
    // Sometimes a mutation of a mutation, to get further from what is well formed.
    if (i % 4 == 0 || text.empty()) text = corpus[random.below(corpus.size())];
    text = mutated(text, corpus, random);
    run(text);
  }
  std::printf("%zu files, %ld mutations\n", corpus.size(), mutations);
  return 0;
}
