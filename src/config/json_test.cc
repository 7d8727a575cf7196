#include "config/json.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

std::optional<Value> parsed(const std::string& text, Diagnostics& problems) {
  static Sources sources;
  return parse_json(*sources.add("x.json", text), problems);
}

TEST(Json, ValuesKnowWhereTheyStand) {
  Diagnostics problems;
  const std::optional<Value> root =
      parsed("{\"a\": 1.5e3, \"b\": [true, null, \"x\\n\\u00e9\\/\"],\n  \"c\": {}}\n", problems);
  ASSERT_TRUE(root) << render(problems);
  EXPECT_EQ(root->find("a")->value.text, "1.5e3");
  EXPECT_FALSE(root->find("a")->value.quoted);
  const std::vector<Value>& items = root->find("b")->value.items;
  ASSERT_EQ(items.size(), 3u);
  EXPECT_EQ(items[0].text, "true");
  EXPECT_TRUE(items[1].is_null());
  EXPECT_EQ(items[2].text, "x\n\xC3\xA9/");
  EXPECT_TRUE(items[2].quoted);
  EXPECT_TRUE(root->find("c")->value.is_map());
  EXPECT_EQ(line_of(root->find("c")->value.at), 2);
  EXPECT_EQ(root->find("c")->key_at.length, 3u);
}

// One of two values would be taken in silence.
TEST(Json, KeysAreUniqueInTheirObject) {
  Diagnostics problems;
  EXPECT_TRUE(parsed("{\"a\": {\"b\": 1}, \"b\": 2}", problems));
  EXPECT_FALSE(parsed("{\"a\": 1,\n  \"b\": 2, \"a\": 3}", problems));
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].message, "duplicate key `a`");
  EXPECT_EQ(problems[0].at.line, 2);
  EXPECT_EQ(problems[0].at.column, 11);
}

TEST(Json, AnEmptyFileHasAFirstLine) {
  Diagnostics problems;
  EXPECT_FALSE(parsed(" \n", problems));
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].at.line, 1);
  EXPECT_EQ(problems[0].at.column, 1);
}

TEST(Json, MistakesHaveAPlaceAndAFix) {
  struct Mistake {
    std::string text, message;
    int line, column;
  };
  const Mistake mistakes[] = {
      {"{\"a\": 1,\n \"b\": [1, 2\n", "the file ends inside the `[` of line 2", 2, 11},
      {"{\"a\": \"tex", "the file ends inside the `\"` of line 1", 1, 10},
      {"{\"a\": \"tex\n\"b\": 1}", "this quote is never closed", 1, 7},
      {"{\"a\": 1 \"b\": 2}", "`,` or `}` is expected", 1, 9},
      {"{\"a\": 1,}", "a comma with nothing after it", 1, 8},
      {"{\"a\" 1}", "`:` is expected after a key", 1, 6},
      {"{a: 1}", "a key in double quotes is expected", 1, 2},
      {"{\"a\": None}", "`None` is no value", 1, 7},
      {"{\"a\": }", "a value is missing", 1, 7},
      {"{\"a\": \"\\q\"}", "an unknown escape", 1, 9},
      {"{} {}", "text after the end of the document", 1, 4},
  };
  for (const Mistake& m : mistakes) {
    Diagnostics problems;
    EXPECT_FALSE(parsed(m.text, problems)) << m.text;
    ASSERT_EQ(problems.size(), 1u) << m.text;
    EXPECT_EQ(problems[0].message, "not valid JSON: " + m.message);
    EXPECT_EQ(problems[0].at.line, m.line) << m.text;
    EXPECT_EQ(problems[0].at.column, m.column) << m.text;
    EXPECT_FALSE(problems[0].help.empty()) << m.text;
  }
}

TEST(Json, HostileTextsAreRefused) {
  std::string many = "[0";
  for (int i = 0; i < 300000; ++i) many += ",0";
  for (const std::string& text :
       {std::string(), std::string("  \n"), std::string(100000, '['), std::string("\0\0", 2),
        std::string("\xff\xfe{"), std::string("{\"a\\"), std::string("\"\\u12"), std::string("-"),
        std::string("1e"), std::string("nul"), many + "]"}) {
    Diagnostics problems;
    EXPECT_FALSE(parsed(text, problems)) << text.substr(0, 20);
    EXPECT_EQ(problems.size(), 1u);
  }
}

}  // namespace
}  // namespace assay
