#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include <gtest/gtest.h>

#include "diagnose/diagnose.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

class ListFiles : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) / "list_files";
    fs::remove_all(root_);
    fs::create_directories(root_ / "b/c");
    for (const char* name : {"a", "b/one", "b/c/two", "b/.hidden"})
      std::ofstream(root_ / name) << 1;
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string at(const char* name) const { return (root_ / name).string(); }
  static bool says(const FileList& list, const std::string& what) {
    for (const Diagnostic& d : list.problems) {
      if (d.message.find(what) != std::string::npos) return true;
    }
    return false;
  }

  fs::path root_;
};

TEST_F(ListFiles, FoldersAreTheirFiles) {
  const FileList list = list_files({root_.string()});
  EXPECT_EQ(list.files, (std::vector<std::string>{at("a"), at("b/c/two"), at("b/one")}));
  EXPECT_TRUE(list.problems.empty());
}

TEST_F(ListFiles, CirclesEndAndNothingComesTwice) {
  fs::create_directory_symlink("..", root_ / "b/up");
  fs::create_symlink("self", root_ / "self");
  fs::create_symlink(at("a"), root_ / "also_a");
  const FileList list = list_files({root_.string(), at("a"), at("b")});
  EXPECT_EQ(list.files.size(), 3u);
  EXPECT_TRUE(says(list, "a link that leads back to itself"));
  EXPECT_TRUE(says(list, "the same file was given before"));
  EXPECT_TRUE(says(list, "the same folder was given before"));
  EXPECT_FALSE(has_errors(list.problems));
}

TEST_F(ListFiles, WhatIsNothingIsListedAndToldByOpening) {
  EXPECT_EQ(list_files({at("nothing"), at("a")}).files.size(), 2u);
  fs::create_directory(root_ / "empty");
  const FileList list = list_files({at("empty"), "-", "-"});
  EXPECT_EQ(list.files, std::vector<std::string>{"-"});
  EXPECT_TRUE(has_errors(list.problems));
  EXPECT_TRUE(says(list, "the folder holds no file"));
  EXPECT_TRUE(says(list, "named twice"));
}

TEST_F(ListFiles, PipesInFoldersAreLeftOut) {
  ASSERT_EQ(mkfifo(at("b/pipe").c_str(), 0600), 0);
  const FileList list = list_files({at("b")});
  EXPECT_EQ(list.files.size(), 2u);
  EXPECT_TRUE(says(list, "a pipe"));
}

// Whatever cannot be read says so at once, without being waited for or swallowed, with a fix.
TEST_F(ListFiles, WhatCannotBeReadSaysWhyAndWhatToDo) {
  ASSERT_EQ(mkfifo(at("pipe").c_str(), 0600), 0);
  fs::create_symlink("nowhere", root_ / "broken");
  fs::create_symlink("loop", root_ / "loop");
  std::ofstream(root_ / "none");
  fs::create_directory(root_ / "locked");
  fs::create_directory(root_ / "hollow");
  fs::permissions(root_ / "locked", fs::perms::none);
  const std::map<std::string, std::string> expected = {
      {at("pipe"), "a pipe, not a file"},
      {at("broken"), "no such file"},
      {at("loop"), "a link that leads back to itself"},
      {at("none"), "the file is empty"},
      {at("hollow"), "the folder holds no file"},
      {at("locked"), geteuid() == 0 ? "the folder holds no file" : "may not be read"},
      {"/dev/zero", "a device, not a file"},
      {"/dev/null", "a device, not a file"},
      {at("a"), "not a kind of file"}};
  for (const auto& [path, what] : expected) {
    SCOPED_TRACE(path);
    FileList list = list_files({path});
    Diagnostics all = diagnose(list.files, {}).problems;
    all.insert(all.end(), list.problems.begin(), list.problems.end());
    ASSERT_EQ(all.size(), 1u) << render(all);
    EXPECT_NE(all[0].message.find(what), std::string::npos) << render(all);
    EXPECT_EQ(all[0].at.file, path);
    EXPECT_FALSE(all[0].help.empty()) << render(all);
  }
  // In a folder what is no file is passed over, with the same words.
  const FileList folder = list_files({root_.string()});
  EXPECT_TRUE(says(folder, "a pipe, not a file: left out"));
  EXPECT_TRUE(says(folder, "no such file: left out"));
  fs::permissions(root_ / "locked", fs::perms::owner_all);
}

// One file that is missing, one that is a pipe, one that is no trace: the fourth is diagnosed.
TEST_F(ListFiles, OthersAreDiagnosedAllTheSame) {
  ASSERT_EQ(mkfifo(at("pipe").c_str(), 0600), 0);
  std::ofstream(root_ / "log")
      << "[1.5] NVRM: Xid (PCI:0000:38:00): 79, GPU has fallen off the bus.\n";
  const Diagnosis d =
      diagnose(list_files({at("nothing"), at("pipe"), at("a"), at("log")}).files, {});
  ASSERT_EQ(d.files.size(), 4u);
  EXPECT_TRUE(d.files[0].missing);
  EXPECT_TRUE(d.files[1].missing);
  EXPECT_FALSE(d.files[2].missing || d.files[2].used);
  EXPECT_TRUE(d.files[3].used);
  ASSERT_FALSE(d.findings.empty());
  EXPECT_EQ(d.findings[0].cause, Cause::kHardwareFault);
}

}  // namespace
}  // namespace assay
