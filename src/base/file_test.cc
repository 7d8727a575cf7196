#include "base/file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

namespace assay {
namespace {

struct TemporaryFile {
  std::string path = testing::TempDir() + "assay_file_test_XXXXXX";
  int fd = mkstemp(path.data());
  ~TemporaryFile() {
    close(fd);
    unlink(path.c_str());
  }
};

TEST(File, ReadsExactlyUpToTheLimit) {
  TemporaryFile f;
  ASSERT_EQ(write(f.fd, "hello", 5), 5);
  EXPECT_EQ(*read_file(f.path), "hello");
  EXPECT_EQ(*read_file(f.path, 5), "hello");
  EXPECT_FALSE(read_file(f.path, 4));
  EXPECT_TRUE(file_exists(f.path));
}

TEST(File, AGigabyteIsRefusedWithoutReadingIt) {
  TemporaryFile f;
  ASSERT_EQ(ftruncate(f.fd, off_t{1} << 30), 0);
  const Result<std::string> r = read_file(f.path);
  ASSERT_FALSE(r);
  EXPECT_NE(r.error().message.find("is larger than the limit of 16 MB"), std::string::npos);
  EXPECT_EQ(r.error().exit_code, 2);  // as where it is one of several problems of the input
}

TEST(File, EndlessDevicesAreCutOff) { EXPECT_FALSE(read_file("/dev/zero", 1 << 20)); }

TEST(File, DirectoriesAndMissingFiles) {
  EXPECT_EQ(read_file("/").error().message, "is a directory, not a file");
  EXPECT_EQ(read_file("/").error().file, "/");
  EXPECT_EQ(read_file("/no/such").error().message, "no such file");
  EXPECT_EQ(read_file("/no/such").error().file, "/no/such");
  EXPECT_FALSE(read_file(""));
  EXPECT_FALSE(file_exists("/"));
  EXPECT_TRUE(file_exists("-"));
}

// A folder with files of these names, gone at the end.
class Folder {
 public:
  explicit Folder(const std::vector<std::string>& names) {
    char name[] = "/tmp/assay_folder_XXXXXX";
    path = mkdtemp(name);
    for (const std::string& n : names) EXPECT_TRUE(write_file(path + "/" + n, "x"));
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string help(const std::string& name) const {
    return read_file(path + "/" + name).error().help;
  }
  std::string path;
};

TEST(File, AMissingFileIsLookedForUnderSimilarNames) {
  const Folder f({"cluster.yaml", "workload.yaml", "notes.txt", ".clustre.yaml"});
  EXPECT_EQ(f.help("clustre.yaml"), "did you mean `" + f.path + "/cluster.yaml`?");
  EXPECT_EQ(f.help("x.yaml"), "`" + f.path + "` holds cluster.yaml, workload.yaml");
  EXPECT_EQ(f.help("x.csv"), "`" + f.path + "` holds no .csv file");
  EXPECT_EQ(f.help("sub/x.yaml"), "there is no folder `" + f.path + "/sub`: `" + f.path +
                                      "` holds cluster.yaml, workload.yaml");
  EXPECT_EQ(read_file(f.path).error().help,
            "name a file in it: `" + f.path + "` holds cluster.yaml, notes.txt, workload.yaml");
  EXPECT_NE(Folder({}).help("x.yaml").find("holds no .yaml file"), std::string::npos);
}

TEST(File, AMisspeltFolderIsMendedOnTheWay) {
  const Folder f({});
  ASSERT_TRUE(std::filesystem::create_directory(f.path + "/examples"));
  ASSERT_TRUE(write_file(f.path + "/examples/a.yaml", "x"));
  EXPECT_EQ(f.help("exmaples/a.yaml"), "did you mean `" + f.path + "/examples/a.yaml`?");
}

TEST(File, ALinkThatLeadsNowhereIsNamed) {
  const Folder f({});
  std::filesystem::create_symlink("gone", f.path + "/dead");
  EXPECT_EQ(f.help("dead"), "`" + f.path + "/dead` is a link to something that does not exist");
}

TEST(File, ManyNamesAreCounted) {
  const Folder f({"a1", "a2", "a3", "a4", "a5", "a6", "a7"});
  EXPECT_EQ(f.help("zzzzzz"), "`" + f.path + "` holds a1, a2, a3, a4, a5 and 2 more");
}

TEST(File, EveryFailureToOpenOrWriteSaysWhatToDo) {
  for (const int error : {ENOENT, EISDIR, EACCES}) {
    EXPECT_FALSE(open_failure("/etc/hosts.x", error).help.empty()) << error;
  }
  for (const int error : {ENOENT, EISDIR, EACCES, ENOSPC, EROFS}) {
    EXPECT_FALSE(write_failure("/etc/hosts.x", error).help.empty()) << error;
  }
  const Folder f({});
  const Failure failure = write_file(f.path + "/no/x.json", "x").error();
  EXPECT_EQ(failure.message, "cannot be written: No such file or directory");
  EXPECT_EQ(failure.file, f.path + "/no/x.json");
  EXPECT_EQ(failure.help, "create the folder first: mkdir -p " + f.path + "/no");
  EXPECT_EQ(can_write(f.path + "/no/x.json").error().help, failure.help);
  EXPECT_FALSE(can_write(f.path));
  EXPECT_FALSE(can_write("/etc/hosts/x"));
  EXPECT_TRUE(can_write(f.path + "/x.json"));
  EXPECT_FALSE(std::filesystem::exists(f.path + "/x.json"));
  EXPECT_TRUE(can_write("/dev/null"));
  EXPECT_FALSE(write_file("/dev/full", std::string(100'000, 'x')));
}

TEST(File, NamesFromTheDiskAreSafeForATerminal) {
  const Folder f({"clu\x1b[31mster.yaml"});
  EXPECT_EQ(f.help("cluster.yaml").find('\x1b'), std::string::npos);
}

TEST(File, FilesOfUnknownSizeAreReadWhole) {
  const Result<std::string> r = read_file("/proc/self/status");  // st_size is zero there
  ASSERT_TRUE(r);
  EXPECT_GT(r->size(), 100u);
}

}  // namespace
}  // namespace assay
