// How tests describe something: words of a command line in, a description or its problems out.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "world/describe.h"

namespace assay {

// A file that lives as long as the test.
class TemporaryYaml {
 public:
  explicit TemporaryYaml(const std::string& text, const std::string& extension = ".yaml") {
    static int count = 0;
    path_ = (std::filesystem::temp_directory_path() / "assay_describe_").string() +
            std::to_string(getpid()) + "_" + std::to_string(count++) + extension;
    std::FILE* file = std::fopen(path_.c_str(), "wb");
    std::fwrite(text.data(), 1, text.size(), file);
    std::fclose(file);
  }
  ~TemporaryYaml() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

using Described = tl::expected<Description, Diagnostics>;

inline Described of(std::vector<std::string> inputs, std::vector<std::string> sets = {},
                    int64_t gpus = 0, double tokens = 0) {
  Request request;
  request.inputs = std::move(inputs);
  request.sets = std::move(sets);
  request.gpus = gpus;
  request.tokens = tokens;
  return describe(request, catalog());
}

inline std::string error(const Described& d) { return d ? "" : d.error().front().message; }
inline std::string help(const Described& d) { return d ? "" : d.error().front().help; }

inline bool assumes(const Description& d, const std::string& path) {
  for (const Assumption& a : d.assumed) {
    if (a.path == path) return true;
  }
  return false;
}

}  // namespace assay
