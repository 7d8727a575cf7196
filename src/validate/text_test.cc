#include "validate/text.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(Text, WordsLoseCaseAndPunctuation) {
  EXPECT_EQ(plain_words("ZeRO-3 + CPU_offload"), " zero 3 cpu offload ");
  EXPECT_EQ(plain_words(""), " ");
  EXPECT_EQ(plain_words("\x01\xff"), " ");
}

TEST(Text, PhrasesAreWholeWords) {
  EXPECT_TRUE(says(plain_words("AsyncTP + FSDP2"), "fsdp2"));
  EXPECT_FALSE(says(plain_words("FSDP2"), "fsdp"));
}

TEST(Text, ClaimsKnowDenial) {
  EXPECT_EQ(claims(plain_words("torch.compile"), "compile"), true);
  EXPECT_EQ(claims(plain_words("compile off"), "compile"), false);
  EXPECT_EQ(claims(plain_words("w/o MTP"), "mtp"), false);
  EXPECT_EQ(claims(plain_words("w/ MTP"), "mtp"), true);
  EXPECT_EQ(claims(plain_words("cuda_graph=none"), "cuda graph"), false);
  EXPECT_EQ(claims(plain_words("eager"), "compile"), std::nullopt);
  EXPECT_EQ(claims(plain_words("compile of this row not shown"), "compile"), std::nullopt);
  EXPECT_EQ(claims(plain_words("torch.compile not stated"), "compile"), std::nullopt);
  EXPECT_EQ(claims(plain_words("compile: unknown"), "compile"), std::nullopt);
  EXPECT_EQ(claims(plain_words("compile not used"), "compile"), false);
}

TEST(Text, NumbersOfCells) {
  EXPECT_EQ(cell_number("1,024"), 1024);
  EXPECT_EQ(cell_number(" 80 GB"), 80);
  EXPECT_EQ(cell_number("8 (per node)"), 8);
  EXPECT_EQ(cell_number("-3"), -3);
  EXPECT_EQ(cell_number("2.5e3"), 2500);
  for (const char* bad : {"", "abc", "NaN", "inf", "8-10", "8/2", "1e999", "--3", "."}) {
    EXPECT_FALSE(cell_number(bad)) << bad;
  }
}

TEST(Text, NumbersBesidePhrases) {
  EXPECT_EQ(number_after(plain_words("cpu_offload_layers=20"), "cpu offload layers"), 20);
  EXPECT_EQ(number_before(plain_words("full, 12 layers"), "layers"), 12);
  EXPECT_FALSE(number_after(plain_words("per_device_batch=?"), "per device batch"));
}

TEST(Text, Splits) {
  EXPECT_EQ(split_any("a, b;;c ", ",;"), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_TRUE(split_any("", ",").empty());
}

}  // namespace
}  // namespace assay
