#include "base/csv.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(Csv, PlainTable) {
  const CsvTable t = parse_csv("a,b\n1,2\n3,4", "t.csv");
  EXPECT_TRUE(t.problems.empty());
  ASSERT_EQ(t.rows.size(), 2u);
  EXPECT_EQ(t.column("b"), 1);
  EXPECT_EQ(t.column("c"), -1);
  EXPECT_EQ(t.cell(t.rows[1], "a"), "3");
  EXPECT_EQ(t.cell(t.rows[1], "c"), "");
  EXPECT_EQ(t.rows[1].line, 3);
}

TEST(Csv, QuotesCommasAndLineBreaks) {
  const CsvTable t = parse_csv(
      "\xEF\xBB\xBF"
      "a,b\r\n\"x, \"\"y\"\"\r\nz\",2\r\n\r\n5,\"\"\r\n",
      "t");
  EXPECT_TRUE(t.problems.empty());
  ASSERT_EQ(t.rows.size(), 2u);
  EXPECT_EQ(t.header[0], "a");
  EXPECT_EQ(t.rows[0].fields[0], "x, \"y\"\r\nz");
  EXPECT_EQ(t.rows[0].line, 2);
  EXPECT_EQ(t.rows[1].line, 5);
  EXPECT_EQ(t.rows[1].fields[1], "");
}

TEST(Csv, RaggedRowsAreKeptAndReported) {
  const CsvTable t = parse_csv("a,b\n1\n1,2,3\n1,2\n", "t.csv");
  ASSERT_EQ(t.rows.size(), 3u);
  ASSERT_EQ(t.problems.size(), 2u);
  EXPECT_EQ(t.problems[0].at.line, 2);
  EXPECT_EQ(t.problems[0].at.column, 2);  // behind what there is
  EXPECT_EQ(t.problems[1].at.column, 5);  // the first that is too much
  const CsvTable lines = parse_csv("a,b\n\"1\n2\"\n\"3\n4\",5,6\n", "t.csv");
  ASSERT_EQ(lines.problems.size(), 2u);
  EXPECT_EQ(lines.problems[0].at.line, 3);
  EXPECT_EQ(lines.problems[0].at.column, 3);
  EXPECT_EQ(lines.problems[1].at.line, 5);
  EXPECT_EQ(lines.problems[1].at.column, 6);
  EXPECT_EQ(t.problems[0].message, "this row has 1 fields, the header has 2");
  EXPECT_EQ(t.cell(t.rows[0], "b"), "");
}

TEST(Csv, BadQuotingIsReported) {
  EXPECT_EQ(parse_csv("a\n\"open", "t").problems.size(), 1u);
  EXPECT_EQ(parse_csv("a\nx\"y", "t").problems.size(), 1u);
  const CsvTable t = parse_csv("a\n\"x\"y", "t");
  EXPECT_EQ(t.problems.size(), 1u);
  EXPECT_EQ(t.rows[0].fields[0], "xy");
}

TEST(Csv, EmptyBinaryAndDuplicateColumns) {
  EXPECT_EQ(parse_csv("", "t").problems.size(), 1u);
  EXPECT_EQ(parse_csv("\n\n", "t").problems.size(), 1u);
  const CsvTable nul = parse_csv(std::string_view("a,b\n1\0,1", 8), "t");
  ASSERT_EQ(nul.problems.size(), 1u);
  EXPECT_EQ(nul.problems[0].at.line, 2);
  EXPECT_EQ(nul.problems[0].at.column, 1);
  EXPECT_EQ(nul.rows[0].fields[0], "1") << "nothing else is lost";
  EXPECT_TRUE(parse_csv(std::string_view("a\0b\n1,2\n", 8), "t").rows.empty());
  EXPECT_EQ(parse_csv("a,a\n1,2\n", "t").problems.size(), 1u);
}

TEST(Csv, LinesInNoRowAreCounted) {
  const CsvTable open = parse_csv("a,b\n1,\"2\n3,4\n\n5,6\n", "t");
  EXPECT_EQ(open.rows.size(), 1u);
  EXPECT_EQ(open.lost_lines, 2);
  EXPECT_NE(open.problems[0].message.find("2 lines behind it"), std::string::npos);
  EXPECT_EQ(parse_csv("a,b\n1,2\n3,\"4", "t").lost_lines, 0);
  CsvLimits small;
  small.cells = 4;
  EXPECT_EQ(parse_csv("a,b\n1,2\n3,4\n5,6\n\n7,8", "t", small).lost_lines, 2);
}

TEST(Csv, NamesInAnyCaseAndWithBlanks) {
  const CsvTable t = parse_csv(" GPU ,N_GPUS,,\nh100,8,,\n", "t");
  EXPECT_TRUE(t.problems.empty());  // columns without a name are nobody's
  EXPECT_EQ(t.cell(t.rows[0], "gpu"), "h100");
  EXPECT_EQ(t.column("n_gpus"), 1);
  EXPECT_EQ(parse_csv("gpu,Gpu\n1,2\n", "t").problems.size(), 1u);
}

TEST(Csv, OtherSeparatorsAreOneError) {
  for (const char* text : {"a;b\n1;2,5\n3;4\n", "a\tb\n1\t2,5\n3\t4\n", "a|b\n1|2,5\n3|4"}) {
    const CsvTable t = parse_csv(text, "t");
    ASSERT_EQ(t.problems.size(), 1u) << text;
    EXPECT_EQ(t.separator, text[1]);
    EXPECT_EQ(t.problems[0].at.column, 2);
    EXPECT_TRUE(t.rows.empty());
    EXPECT_EQ(t.lost_lines, 2);
  }
  EXPECT_TRUE(parse_csv("\"a;b\"\n1\n", "t").problems.empty());
  EXPECT_TRUE(parse_csv("a;b,c\n1,2\n", "t").problems.empty());
}

TEST(Csv, OldMacLineEnds) {
  const CsvTable t = parse_csv("a,b\r1,2\r", "t");
  ASSERT_EQ(t.rows.size(), 1u);
  EXPECT_EQ(t.rows[0].line, 2);
}

TEST(Csv, LimitsHold) {
  std::string wide = "a\n" + std::string(100000, ',') + "\n";
  EXPECT_EQ(parse_csv(wide, "t").rows[0].fields.size(), CsvLimits{}.columns);
  CsvLimits small;
  small.cells = 10;
  std::string tall = "a,b\n";
  for (int i = 0; i < 100; ++i) tall += "1,2\n";
  const CsvTable t = parse_csv(tall, "t", small);
  EXPECT_EQ(t.rows.size(), 5u);
  EXPECT_FALSE(t.problems.empty());
  std::string ragged = "a,b\n";
  for (int i = 0; i < 1000; ++i) ragged += "1\n";
  EXPECT_EQ(parse_csv(ragged, "t").problems.size(), CsvLimits{}.problems + 1);
}

TEST(Csv, CellsHaveTheirPlace) {
  const CsvTable t = parse_csv("a,b,c\n1,\"x, y\",\xC3\xBC,9\n\"two\nlines\",5,6\n7\n", "t");
  ASSERT_EQ(t.rows.size(), 3u);
  const auto at = [&](size_t row, const char* name) { return t.place(t.rows[row], name); };
  EXPECT_EQ(at(0, "a").column, 1);
  EXPECT_EQ(at(0, "b").column, 3);
  EXPECT_EQ(at(0, "c").column, 10);
  EXPECT_EQ(at(0, "d").column, 0);
  EXPECT_EQ(at(0, "c").line, 2);
  EXPECT_EQ(at(1, "a").column, 1);
  EXPECT_EQ(at(1, "b").column, 0);  // on the record's second line
  EXPECT_EQ(at(2, "b").column, 2);  // where it would stand
  EXPECT_EQ(at(2, "a").line, 5);
  ASSERT_EQ(t.problems.size(), 2u);
  EXPECT_EQ(t.problems[0].at.column, 12);  // a character of two bytes is one column
  for (const Diagnostic& d : t.problems) EXPECT_FALSE(d.help.empty());
}

// Whatever is written with full quoting must be read back unchanged.
TEST(Csv, RoundTrip) {
  uint32_t state = 1;
  const auto next = [&] { return state = state * 1664525u + 1013904223u, state >> 24; };
  const std::string alphabet = "ab,\"\r\n ;\t'";
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<std::vector<std::string>> rows(1 + next() % 4, std::vector<std::string>(3));
    std::string text = "x,y,z\n";
    for (std::vector<std::string>& row : rows) {
      for (size_t i = 0; i < row.size(); ++i) {
        for (uint32_t n = next() % 6; n > 0; --n) row[i] += alphabet[next() % alphabet.size()];
        text += i > 0 ? ",\"" : "\"";
        for (char c : row[i]) text += c == '"' ? std::string("\"\"") : std::string(1, c);
        text += '"';
      }
      text += next() % 2 == 0 ? "\n" : "\r\n";
    }
    const CsvTable t = parse_csv(text, "t");
    EXPECT_TRUE(t.problems.empty());
    ASSERT_EQ(t.rows.size(), rows.size());
    for (size_t r = 0; r < rows.size(); ++r) EXPECT_EQ(t.rows[r].fields, rows[r]);
  }
}

}  // namespace
}  // namespace assay
