#include "base/hostlist.h"

#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using Names = std::vector<std::string>;

TEST(Hostlist, Expands) {
  EXPECT_EQ(expand_hostlist("node[008-011,130],login1").value(),
            (Names{"node008", "node009", "node010", "node011", "node130", "login1"}));
  EXPECT_EQ(expand_hostlist("r[1-2]n[01-02]x").value(),
            (Names{"r1n01x", "r1n02x", "r2n01x", "r2n02x"}));
  EXPECT_EQ(expand_hostlist("a,b").value(), (Names{"a", "b"}));
  EXPECT_EQ(expand_hostlist("").value(), Names{});
  EXPECT_EQ(expand_hostlist("node[9-10]").value(), (Names{"node9", "node10"}));
  EXPECT_EQ(expand_hostlist("n[1820-1822,1838]").value().size(), 4u);
}

TEST(Hostlist, RefusesWhatIsWrongOrTooLarge) {
  for (const char* text :
       {"n[1-3", "n1]", "n[[1]]", "n[3-1]", "n[a-b]", "n[]", "n[1-]", "n[-1]", "n[0-999999999999]",
        "n[0-18446744073709551615]", "n[1-9999999999999999999999]", "a[1-300]b[1-300]",
        "a[1-50000],b[1-50000]"}) {
    EXPECT_FALSE(expand_hostlist(text).has_value()) << text;
  }
  std::string many;
  for (int i = 0; i < 100; ++i) many += "[0-9]";
  EXPECT_FALSE(expand_hostlist(many).has_value());
}

}  // namespace
}  // namespace assay
