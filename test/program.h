// What tests of the program as people run it share: a folder to run it in, and the environment.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

// A folder with the repository's examples, tests and data, where commands may write; gone with the
// object. Its name holds the process: two runs of a suite at once must not share one.
class Scratch {
 public:
  explicit Scratch(const std::string& name)
      : path_(std::filesystem::path(testing::TempDir()) /
              ("assay_" + name + "_" + std::to_string(getpid()))) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
    for (const char* folder : {"examples", "test", "data"})
      std::filesystem::create_directory_symlink(std::filesystem::path(ASSAY_ROOT) / folder,
                                                path_ / folder);
  }
  ~Scratch() { std::filesystem::remove_all(path_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Runs all tests with `assay` on the path, and the same screens wherever that is.
inline int run_tests_of_program(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (const char* name : {"COLUMNS", "NO_COLOR", "LC_ALL", "LC_CTYPE", "LANG"}) unsetenv(name);
  const std::string folder = std::filesystem::path(ASSAY_BINARY).parent_path();
  setenv("PATH", (folder + ":" + std::getenv("PATH")).c_str(), 1);
  return RUN_ALL_TESTS();
}
