#include "base/diagnostic.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

Diagnostic unknown_key() {
  Diagnostic d;
  d.message = "unknown key `gpus_per_nod` in cluster";
  d.at = {"cluster.yaml", 3, 3, 12};
  d.source_line = "  gpus_per_nod: 8";
  d.help = "did you mean `gpus_per_node`?";
  return d;
}

TEST(Diagnostic, RendersTheMockUp) {
  EXPECT_EQ(render(unknown_key()),
            "error: unknown key `gpus_per_nod` in cluster\n"
            "  --> cluster.yaml:3:3\n"
            "   |\n"
            " 3 |   gpus_per_nod: 8\n"
            "   |   ^^^^^^^^^^^^\n"
            "   = help: did you mean `gpus_per_node`?\n");
}

TEST(Diagnostic, BlocksAreSeparatedByABlankLine) {
  const std::string one = render(unknown_key());
  EXPECT_EQ(render(Diagnostics{unknown_key(), unknown_key()}), one + "\n" + one);
}

TEST(Diagnostic, WiderLineNumbersWidenTheGutter) {
  Diagnostic d = unknown_key();
  d.at.line = 123;
  d.severity = Severity::kWarning;
  EXPECT_EQ(render(d),
            "warning: unknown key `gpus_per_nod` in cluster\n"
            "    --> cluster.yaml:123:3\n"
            "     |\n"
            " 123 |   gpus_per_nod: 8\n"
            "     |   ^^^^^^^^^^^^\n"
            "     = help: did you mean `gpus_per_node`?\n");
}

TEST(Diagnostic, WithoutPosition) {
  Diagnostic d;
  d.message = "no cluster given";
  EXPECT_EQ(render(d), "error: no cluster given\n");
  d.at.file = "--set cluster.nodes=0";
  EXPECT_EQ(render(d), "error: no cluster given\n  --> --set cluster.nodes=0\n");
}

TEST(Diagnostic, LongLinesAreCutAroundTheCaret) {
  Diagnostic d = unknown_key();
  d.source_line = std::string(5000, 'x');
  d.source_line[3000] = 'Y';
  d.at.column = 3001;
  d.at.length = 1;
  const std::string text = render(d);
  EXPECT_LT(text.size(), 500u);
  const size_t line = text.find("\n 3 | ");
  const size_t caret_line = text.find('\n', line + 1);
  EXPECT_EQ(text.find('Y') - line, text.find('^') - caret_line);
}

TEST(Diagnostic, CaretBeyondTheLineDoesNotRunAway) {
  Diagnostic d = unknown_key();
  d.at.column = 1000000;
  d.at.length = 1000000;
  EXPECT_LT(render(d).size(), 300u);
}

TEST(Diagnostic, NearestFindsTheSlip) {
  const std::vector<std::string> keys = {"gpus_per_node", "nodes", "price", "pue"};
  EXPECT_EQ(nearest("gpus_per_nod", keys), "gpus_per_node");
  EXPECT_EQ(nearest("ndoes", keys), "nodes");
  EXPECT_EQ(nearest("Gpus-Per-Node", keys), "gpus_per_node");
  EXPECT_EQ(nearest("temperature", keys), "");
  EXPECT_EQ(nearest("", keys), "");
  EXPECT_EQ(nearest("x", keys), "");
  EXPECT_EQ(nearest(std::string(1000000, 'a'), keys), "");
}

// Among equals the word that begins alike, then the one as long, whatever their order.
TEST(Diagnostic, NearestOfEqualsIsTheLikest) {
  EXPECT_EQ(nearest("nodez", {"node", "nodes"}), "nodes");
  EXPECT_EQ(nearest("nodez", {"nodes", "node"}), "nodes");
  EXPECT_EQ(nearest("bale", {"kale", "base"}), "base");
  EXPECT_EQ(nearest("bale", {"base", "kale"}), "base");
}

TEST(Diagnostic, SanitizeStopsTerminalTricks) {
  EXPECT_EQ(sanitize("\x1b[31mred\x07"), "?[31mred?");
  EXPECT_EQ(sanitize("a\xC3\xA4z"), "a\xC3\xA4z");
  EXPECT_EQ(sanitize("\xC3"), "?");
  EXPECT_EQ(sanitize("\xC0\x80"), "??");                   // overlong
  EXPECT_EQ(sanitize("\xE2\x80\xAEgnp.exe"), "?gnp.exe");  // right-to-left override
  EXPECT_EQ(sanitize("abcdef", 3), "abc...");
}

TEST(Diagnostic, SortByPlaceKeepsFilesTogether) {
  const auto at = [](const char* file, int line) {
    Diagnostic d;
    d.at.file = file;
    d.at.line = line;
    return d;
  };
  Diagnostics all = {at("b", 9), at("a", 5), at("b", 2), at("a", 1)};
  sort_by_place(all);
  std::string order;
  for (const Diagnostic& d : all) order += d.at.file + std::to_string(d.at.line) + " ";
  EXPECT_EQ(order, "b2 b9 a1 a5 ");
}

TEST(Diagnostic, HasErrors) {
  Diagnostic d;
  d.severity = Severity::kWarning;
  EXPECT_FALSE(has_errors({d}));
  d.severity = Severity::kError;
  EXPECT_TRUE(has_errors({d}));
}

}  // namespace
}  // namespace assay
