#include "ingest/text_file.h"

#include <sys/stat.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "ingest/recognise.h"

namespace assay {
namespace {

constexpr uint64_t kMost = uint64_t{1} << 30;

std::string scratch(const std::string& name) { return testing::TempDir() + "text_file_" + name; }

std::string written(const std::string& name, const std::string& bytes) {
  std::ofstream(scratch(name), std::ios::binary) << bytes;
  return scratch(name);
}

std::string packed(const std::string& text) {
  std::string out(compressBound(static_cast<uLong>(text.size())) + 64, '\0');
  z_stream z{};
  EXPECT_EQ(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY), Z_OK);
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

TEST(ByteSource, PeekedBytesAreReadAllTheSame) {
  const std::string text = "one\ntwo\nthree\n";
  for (const std::string& bytes : {text, packed(text)}) {
    ByteSource source = ByteSource::over(bytes, "t", kMost);
    EXPECT_EQ(*source.peek(3), "one");
    EXPECT_EQ(*source.peek(7), "one\ntwo");
    char two[2];
    EXPECT_EQ(*source.read(two, 2), 2u);
    EXPECT_EQ(*source.peek(5), "e\ntwo");
    EXPECT_EQ(*source.peek(1000), text.substr(2));
    EXPECT_EQ(*read_rest(source), text.substr(2));
    EXPECT_EQ(*source.peek(4), "");
    Result<ByteSource> again = source.again();
    ASSERT_TRUE(again);
    EXPECT_EQ(*read_rest(*again), text);
  }
}

TEST(ByteSource, GzipOfEachKind) {
  const std::string a = "first\n", b = "second\n";
  const std::string good = written("two_members", packed(a) + packed(b));
  EXPECT_EQ(*read_text(good), a + b);
  const std::string padded = written("padded", packed(a) + std::string(512, '\0'));
  EXPECT_EQ(*read_text(padded), a);
  const struct {
    std::string bytes, damage;
  } bad[] = {{packed(a) + "trailing", "bytes that are not gzip follow"},
             {packed(a).substr(0, packed(a).size() - 5), "end in the middle"},
             {packed(a) + packed(b).substr(0, 12), "end in the middle"},
             {packed(a) + "\x1f\x8b garbage garbage", "damaged"}};
  for (const auto& c : bad) {
    Result<ByteSource> source = ByteSource::open(written("damaged", c.bytes), kMost);
    ASSERT_TRUE(source);
    EXPECT_EQ(read_rest(*source)->substr(0, a.size()), a) << c.damage;
    EXPECT_NE(source->damage().find(c.damage), std::string::npos) << source->damage();
    EXPECT_FALSE(read_text(scratch("damaged")));
  }
}

TEST(ByteSource, BombsAndLimits) {
  const std::string bomb = packed(std::string(100'000'000, ' '));
  ByteSource source = ByteSource::over(bomb, "bomb.gz", kMost);
  const Result<std::string> text = read_rest(source);
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().file, "bomb.gz");
  EXPECT_NE(text.error().message.find("decompression bomb"), std::string::npos);
  const std::string plain(3'000'000, 'x');
  ByteSource large = ByteSource::over(plain, "large", kMost);
  EXPECT_NE(read_rest(large, 1 << 20).error().message.find("more than 1 MB"), std::string::npos);
}

TEST(ByteSource, OnlyRegularFilesAreOpened) {
  const std::string pipe = scratch("pipe");
  std::filesystem::remove(pipe);
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {pipe, std::string("/dev/zero"), testing::TempDir()}) {
    const Result<ByteSource> source = ByteSource::open(path, kMost);
    ASSERT_FALSE(source) << path;
    EXPECT_NE(source.error().message.find("not a file"), std::string::npos);
  }
  EXPECT_FALSE(ByteSource::open("", kMost));
  EXPECT_FALSE(ByteSource::open(std::string("a\0b", 3), kMost));
  EXPECT_FALSE(ByteSource::open(scratch("nothing"), kMost));
}

TEST(ByteSource, WhyAFileIsUnknown) {
  EXPECT_EQ(why_unknown("", "f").message, "the file is empty");
  EXPECT_EQ(why_unknown("\x28\xb5\x2f\xfd..", "f").message, "packed with zstd");
  EXPECT_EQ(why_unknown("hello", "f").message, "not a kind of file that is known here");
}

TEST(FindLines, CountsFromOne) {
  const std::string text = "ab\n\ncd";
  const ByteSource source = ByteSource::over(text, "t", kMost);
  std::vector<BytePlace> places;
  for (const uint64_t byte : {6u, 0u, 2u, 3u, 4u, 5u}) places.push_back({byte});
  find_lines(source, places, kMost);
  const int expected[][2] = {{3, 3}, {1, 1}, {1, 3}, {2, 1}, {3, 1}, {3, 2}};
  for (size_t i = 0; i < places.size(); ++i) {
    EXPECT_EQ(places[i].line, expected[i][0]) << i;
    EXPECT_EQ(places[i].column, expected[i][1]) << i;
  }
  std::vector<BytePlace> far = {{1000}};
  find_lines(source, far, 100);
  EXPECT_EQ(far[0].line, 0);
}

// The reader against counting from the beginning, over pieces of a megabyte.
TEST(FindLines, AgreesWithCounting) {
  std::string text;
  for (int i = 0; i < 400'000; ++i) text += std::string(static_cast<size_t>(i % 11), 'x') + "\n";
  const ByteSource source = ByteSource::over(text, "t", kMost);
  std::vector<BytePlace> places;
  for (uint64_t byte = 0; byte <= text.size(); byte += 99'991) places.push_back({byte});
  places.push_back({uint64_t{1} << 20});
  find_lines(source, places, kMost);
  for (const BytePlace& place : places) {
    const std::string before = text.substr(0, place.byte);
    EXPECT_EQ(place.line, 1 + std::count(before.begin(), before.end(), '\n'));
    EXPECT_EQ(static_cast<size_t>(place.column), before.size() - (before.rfind('\n') + 1) + 1);
  }
}

}  // namespace
}  // namespace assay
