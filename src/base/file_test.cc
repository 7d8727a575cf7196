#include "base/file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

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
  EXPECT_EQ(r.error().exit_code, 3);
}

TEST(File, EndlessDevicesAreCutOff) { EXPECT_FALSE(read_file("/dev/zero", 1 << 20)); }

TEST(File, DirectoriesAndMissingFiles) {
  EXPECT_EQ(read_file("/").error().message, "/: is a directory, not a file");
  EXPECT_EQ(read_file("/no/such").error().message, "/no/such: No such file or directory");
  EXPECT_FALSE(read_file(""));
  EXPECT_FALSE(file_exists("/"));
  EXPECT_TRUE(file_exists("-"));
}

TEST(File, FilesOfUnknownSizeAreReadWhole) {
  const Result<std::string> r = read_file("/proc/self/status");  // st_size is zero there
  ASSERT_TRUE(r);
  EXPECT_GT(r->size(), 100u);
}

}  // namespace
}  // namespace assay
