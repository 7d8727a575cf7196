#include "base/text.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(Text, ShellQuoted) {
  EXPECT_EQ(shell_quoted("traces/rank0.json.gz"), "traces/rank0.json.gz");
  EXPECT_EQ(shell_quoted("my run/a.log"), "'my run/a.log'");
  EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_quoted("$(x)*"), "'$(x)*'");
  EXPECT_EQ(shell_quoted(""), "''");
  EXPECT_EQ(shell_quoted("a\x1b[2J'\\"), "$'a\\033[2J\\'\\\\'");
}

}  // namespace
}  // namespace assay
