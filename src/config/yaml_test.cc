#include "config/yaml.h"

#include <ctime>

#include <gtest/gtest.h>

namespace assay {
namespace {

// Sources must outlive the values; one per test is enough.
struct Parsed {
  Sources sources;
  Diagnostics problems;
  std::optional<Value> value;
  explicit Parsed(std::string text)
      : value(parse_yaml(*sources.add("t.yaml", std::move(text)), problems)) {}
  std::string error() const { return problems.empty() ? "" : problems.front().message; }
};

TEST(Yaml, ReadsMappingsListsAndScalarsWithPositions) {
  const Parsed p("a: 1\nb:\n  c: [x, \"y z\"]\n  d: 'it''s'\n");
  ASSERT_TRUE(p.value);
  const Value& root = *p.value;
  ASSERT_TRUE(root.is_map());
  EXPECT_EQ(root.find("a")->value.text, "1");
  EXPECT_EQ(line_of(root.find("b")->key_at), 2);
  const Value& b = root.find("b")->value;
  ASSERT_EQ(b.find("c")->value.items.size(), 2u);
  EXPECT_TRUE(b.find("c")->value.items[1].quoted);
  const Diagnostic d = problem_at(b.find("c")->value.items[1].at, "here");
  EXPECT_EQ(d.at.line, 3);
  EXPECT_EQ(d.at.column, 10);
  EXPECT_EQ(d.at.length, 5);
  EXPECT_EQ(d.source_line, "  c: [x, \"y z\"]");
  EXPECT_EQ(b.find("d")->value.text, "it's");
  EXPECT_EQ(root.find("nope"), nullptr);
}

TEST(Yaml, ColumnsCountCharacters) {
  const Parsed p("k\xC3\xB6ln: x\nk\xC3\xB6ln: y\n");
  ASSERT_EQ(p.problems.size(), 1u);
  EXPECT_EQ(p.problems[0].at.length, 4);
  const Parsed q("\"\xC3\xA4\": x y: z\n");
  EXPECT_FALSE(q.value);
}

TEST(Yaml, EmptyIsNull) {
  for (const char* text : {"", "\n\n", "# only\n# comments\n", "---\n", "\xEF\xBB\xBF"}) {
    const Parsed p(text);
    ASSERT_TRUE(p.value) << text;
    EXPECT_TRUE(p.value->is_null()) << text;
  }
}

TEST(Yaml, DuplicateKeysAreAllReported) {
  const Parsed p("cluster:\n  nodes: 1\n  nodes: 2\n  nodes: 3\n");
  ASSERT_EQ(p.problems.size(), 2u);
  EXPECT_EQ(p.error(), "duplicate key `nodes` in cluster");
  EXPECT_EQ(p.problems[0].help, "keep one of the two");
  EXPECT_EQ(p.problems[0].at.line, 3);
  EXPECT_EQ(p.problems[0].at.column, 3);
  ASSERT_TRUE(p.value);  // the rest can still be checked
  EXPECT_EQ(p.value->find("cluster")->value.entries.size(), 1u);
  EXPECT_EQ(p.value->find("cluster")->value.find("nodes")->value.text, "1");
}

TEST(Yaml, RefusesWhatADescriptionNeverNeeds) {
  EXPECT_EQ(Parsed("a: &x 1\nb: *x\n").error(), "YAML anchors are not supported");
  EXPECT_NE(Parsed("b: *x\n").error(), "");
  EXPECT_EQ(Parsed("a: !!str 1\n").error(), "YAML tags are not supported");
  EXPECT_EQ(Parsed("a: !include x\n").error(), "YAML tags are not supported");
  EXPECT_EQ(Parsed("%YAML 1.2\n---\na: 1\n").error(), "YAML directives are not supported");
  EXPECT_EQ(Parsed("a: 1\n---\nb: 1\n").error(), "more than one YAML document");
  EXPECT_EQ(Parsed("a:\n\tb: 1\n").error(), "a tab indents this line");
  EXPECT_EQ(Parsed("[a]: 1\n").error(), "a key must be plain text");
  const Parsed keyless(": 1\n");
  EXPECT_EQ(keyless.error(),
            "not valid YAML: did not find expected key while parsing a block mapping");
  EXPECT_EQ(keyless.problems[0].help, "write `key: value`, indented like its neighbours");
  EXPECT_EQ(Parsed("~: 1\n").error(), "a key is missing before `:`");
  EXPECT_EQ(Parsed("a: \"open\n").error(), "this quote is never closed");
  EXPECT_EQ(Parsed("a: 'it''s\n").error(), "this quote is never closed");
  EXPECT_EQ(Parsed("x: 1\na: [1, 2\nb: 3\n").error(),
            "not valid YAML: did not find expected ',' or ']' while parsing a flow sequence that "
            "opens in line 2");
  for (const char* text : {"a: b: c\n", "a: ,\n", "a: }\n", "- a\nb: 1\n", "a: [1}\n", "a: @x\n"}) {
    const Parsed wrong(text);
    ASSERT_FALSE(wrong.problems.empty()) << text;
    EXPECT_FALSE(wrong.problems[0].help.empty()) << text;
  }
}

TEST(Yaml, BinaryAndBadEncoding) {
  const Parsed nul(std::string("a: 1\nb: \0", 9));
  EXPECT_EQ(nul.error(), "a NUL byte: this is not a text file");
  EXPECT_EQ(nul.problems[0].at.line, 2);
  EXPECT_EQ(nul.problems[0].at.column, 4);
  EXPECT_EQ(Parsed("a: \xFF\n").error(), "byte 0xff is not valid UTF-8");
  EXPECT_EQ(Parsed("a: \xC0\x80\n").error(), "byte 0xc0 is not valid UTF-8");
  EXPECT_EQ(Parsed("a: \xED\xA0\x80\n").error(), "byte 0xed is not valid UTF-8");
  EXPECT_EQ(Parsed("a: \x1b[31m\n").error(), "control character 0x1b");
  EXPECT_EQ(Parsed("\x25\x9f").error(), "byte 0x9f is not valid UTF-8");
}

TEST(Yaml, AliasBomb) {
  std::string bomb = "a: &a [x, x]\n";
  for (char c = 'b'; c <= 'z'; ++c) {
    bomb += std::string(1, c) + ": &" + c + " [*" + static_cast<char>(c - 1) + ", *" +
            static_cast<char>(c - 1) + "]\n";
  }
  EXPECT_EQ(Parsed(bomb).error(), "YAML anchors are not supported");
}

std::string repeated(const std::string& part, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i) out += part;
  return out;
}

TEST(Yaml, SaneDepthIsAccepted) {
  EXPECT_TRUE(Parsed(repeated("[", 60) + repeated("]", 60)).value);
  const std::string deep = repeated("[", 100) + repeated("]", 100);
  EXPECT_EQ(Parsed(deep).error(), "nested deeper than 64 levels");
}

// Each of these has stopped, slowed or crashed some YAML reader. All must fail or pass quickly.
TEST(Yaml, HostileTextsEndQuickly) {
  std::string stairs;
  for (size_t i = 0; i < 2000; ++i) stairs += std::string(i, ' ') + "a:\n";
  std::string flat = "[";
  for (int i = 0; i < 190000; ++i) flat += "1,";
  const std::vector<std::string> texts = {repeated("[", 100000),
                                          repeated("{", 100000),
                                          repeated("- ", 100000),
                                          repeated("? ", 100000),
                                          repeated("[\"]\",", 100000),
                                          repeated("{a: ", 100000),
                                          repeated("[ - ", 100000),
                                          repeated("a: [", 50000),
                                          repeated("\"", 1000000),
                                          repeated("'", 1000001),
                                          repeated("!", 1000000),
                                          repeated("&a ", 300000),
                                          repeated("a ", 1500000),
                                          repeated("#", 3000000),
                                          repeated("\n", 3000000),
                                          repeated("a: |\n ", 50000),
                                          repeated("x: 1\n", 300000),
                                          repeated(" ", 3000000) + "a",
                                          repeated(">", 900000),
                                          repeated("- a\n", 300000),
                                          stairs,
                                          flat + "1]",
                                          flat,
                                          repeated("a:\n", 200000),
                                          repeated("-\n", 300000),
                                          repeated("[a,", 200000),
                                          repeated("{a,", 100000),
                                          repeated("\"a\":", 100000),
                                          repeated("? a\n", 150000),
                                          repeated("a:", 400000),
                                          repeated("%", 100000),
                                          repeated("--- ", 100000),
                                          repeated("...\n", 100000),
                                          repeated("\"\\x41", 400000),
                                          repeated("- - a\n", 90000)};
  for (const std::string& text : texts) {
    const std::clock_t start = std::clock();  // processor time: the machine may be busy
    const Parsed p(text);
    const double took_s = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    EXPECT_LT(took_s, 4.0) << text.substr(0, 20) << " of " << text.size();
    EXPECT_LT(render(p.problems).size(), 60000u) << text.substr(0, 20);
  }
}

// Random bytes from an alphabet of indicators: never a crash, and always a message that renders.
TEST(Yaml, RandomTextsAreReadOrRefused) {
  const std::string alphabet = "ab:-?[]{},\"'#&*!|>%@ \n\n  \t1.\\";
  uint32_t state = 7;
  const auto next = [&] { return state = state * 1664525u + 1013904223u, state >> 16; };
  for (int trial = 0; trial < 3000; ++trial) {
    std::string text;
    for (uint32_t n = next() % 60; n > 0; --n) text += alphabet[next() % alphabet.size()];
    const Parsed p(text);
    EXPECT_TRUE(p.value || !render(p.problems).empty());
  }
}

}  // namespace
}  // namespace assay
