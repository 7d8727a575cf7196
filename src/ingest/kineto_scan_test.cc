#include "ingest/kineto_scan.h"

#include <gtest/gtest.h>

#include <vector>

namespace assay::scan {
namespace {

// A window over `text`, padded as the scanner requires.
struct Padded {
  explicit Padded(std::string_view text) : bytes(text.begin(), text.end()), size(text.size()) {
    bytes.insert(bytes.end(), kScanPadding, '\0');
  }
  const char* begin() const { return bytes.data(); }
  const char* end() const { return bytes.data() + size; }
  std::vector<char> bytes;
  size_t size;
};

TEST(KinetoScan, TimesAreReadAsDecimalText) {
  EXPECT_EQ(microseconds_to_ns("0"), 0);
  EXPECT_EQ(microseconds_to_ns("1669783687384669"), 1669783687384669000);
  EXPECT_EQ(microseconds_to_ns("4458676524648.797"), 4458676524648797);
  EXPECT_EQ(microseconds_to_ns("1790857026000000.001"), 1790857026000000001);
  EXPECT_EQ(microseconds_to_ns("-3.5"), -3500);
  EXPECT_EQ(microseconds_to_ns("607312.0"), 607312000);
  EXPECT_EQ(microseconds_to_ns("0.18"), 180);
  EXPECT_EQ(microseconds_to_ns(".5"), 500);
  EXPECT_EQ(microseconds_to_ns("1.6e3"), 1600000);
  EXPECT_EQ(microseconds_to_ns("1E-3"), 1);
  EXPECT_EQ(microseconds_to_ns("604800000000"), 604800000000000);  // a week
}

TEST(KinetoScan, HalfANanosecondGoesToEven) {
  EXPECT_EQ(microseconds_to_ns("0.0005"), 0);
  EXPECT_EQ(microseconds_to_ns("0.0015"), 2);
  EXPECT_EQ(microseconds_to_ns("0.0025"), 2);
  EXPECT_EQ(microseconds_to_ns("0.00250000000000000000000000000000000000000000000000000000000000"
                               "00000000000000000000000000000000000000000000000001"),
            3);
  EXPECT_EQ(microseconds_to_ns("1712195495502094.5575"), 1712195495502094558);
  EXPECT_EQ(microseconds_to_ns("1712195495502094.5565"), 1712195495502094556);
  EXPECT_EQ(microseconds_to_ns("-0.0015"), -2);
  EXPECT_EQ(microseconds_to_ns("1e-300"), 0);
}

TEST(KinetoScan, TimesThatAreNone) {
  for (const char* text :
       {"", "-", ".", "NaN", "nan", "Infinity", "-Infinity", "null", "true", "1e", "1e+", "1.2.3",
        "0x10", "1 2", "9999999999999999999", "1e30", "1e99999999999", "-5e18"}) {
    EXPECT_EQ(microseconds_to_ns(text), std::nullopt) << text;
  }
  EXPECT_EQ(microseconds_to_ns("4000000000000000"), kTimeMost_ns);
  EXPECT_EQ(microseconds_to_ns("4000000000000000.001"), std::nullopt);
}

TEST(KinetoScan, WholeNumbers) {
  EXPECT_EQ(whole_number("-17"), -17);
  EXPECT_EQ(whole_number("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(whole_number("9223372036854775808"), std::nullopt);
  EXPECT_EQ(whole_number("2.9"), 2);
  EXPECT_EQ(whole_number("0.9"), 0);
  EXPECT_EQ(whole_number("1e3"), 1000);
  EXPECT_EQ(whole_number("stream 7"), std::nullopt);
  EXPECT_EQ(natural_number("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(natural_number("18446744073709551616"), std::nullopt);
  EXPECT_EQ(natural_number("-1"), std::nullopt);
  EXPECT_EQ(natural_number(""), std::nullopt);
}

std::string decoded(std::string_view text, bool& repaired) {
  return decode({text.data(), static_cast<uint32_t>(text.size()), Kind::kEscapedText}, repaired);
}

TEST(KinetoScan, TextsAreDecodedAndRepaired) {
  bool repaired = false;
  EXPECT_EQ(decoded(R"(a\"b\\c\/\n\u00e4\ud83d\ude00)", repaired), "a\"b\\c/\n\u00e4\U0001F600");
  EXPECT_EQ(decoded(R"(\ud83d \ude00 \ud83d\u0041)", repaired), "? ? ?A");
  EXPECT_FALSE(repaired);
  EXPECT_EQ(decoded("tab\there\x01", repaired), "tab?here?");
  EXPECT_TRUE(repaired);
  repaired = false;
  EXPECT_EQ(decoded("\xff\xc3\xa4\xc3 \xe2\x82 \xed\xa0\x80", repaired), "?\u00e4? ?? ???");
  EXPECT_TRUE(repaired);
  repaired = false;
  EXPECT_EQ(decoded(R"(C:\Users\q\u12)", repaired), R"(C:\Users\q\u12)");
  EXPECT_TRUE(repaired);
  EXPECT_TRUE(clean("void f<int>(\u00e4)"));
  EXPECT_FALSE(clean("a\nb"));
  EXPECT_FALSE(clean("\xf5\x80\x80\x80"));
}

TEST(KinetoScan, ValuesEndWhereTheyEnd) {
  const Padded text(R"({"a": [1, "]}\"", {"b": 2}], "c": "x\\", "d": -1.5e3, "e": NaN})");
  std::vector<std::string> seen;
  EXPECT_TRUE(for_each_member({text.begin(), text.size}, [&](Slice key, Slice value) {
    seen.push_back(std::string(key.view()) + "=" + std::string(value.view()));
  }));
  const std::vector<std::string> expected = {R"(a=[1, "]}\"", {"b": 2}])", R"(c=x\\)", "d=-1.5e3",
                                             "e=NaN"};
  EXPECT_EQ(seen, expected);
}

TEST(KinetoScan, EveryCutAsksForMoreBytes) {
  const std::string whole = R"({"a": [1, "]}\"", {"b": 2}], "c": "x\\", "d": -1.5e3})";
  for (size_t size = 1; size < whole.size(); ++size) {
    const Padded text(whole.substr(0, size));
    const char* p = text.begin();
    Slice value;
    EXPECT_EQ(read_value(p, text.end(), value), Scan::kMore) << size;
  }
  const Padded text(whole);
  const char* p = text.begin();
  Slice value;
  EXPECT_EQ(read_value(p, text.end(), value), Scan::kOk);
  EXPECT_EQ(value.view(), whole);
}

TEST(KinetoScan, NestingIsBounded) {
  const Padded text(std::string(1'000'000, '['));
  const char* p = text.begin();
  EXPECT_EQ(skip_container(p, text.end()), Scan::kBad);
  EXPECT_EQ(p - text.begin(), kDepthMost);
}

TEST(KinetoScan, FindsInEveryPlaceOfABlock) {
  for (size_t at = 0; at < 70; ++at) {
    for (const char c : {'"', '\\', '[', ']', '{', '}'}) {
      std::string line(70, 'x');
      line[at] = c;
      const Padded text(line);
      const bool quote = c == '"' || c == '\\';
      const char* quoted = find_quote(text.begin(), text.end());
      EXPECT_EQ(quoted - text.begin(), quote ? static_cast<long>(at) : 70);
      const char* bracket = find_bracket(text.begin(), text.end());
      EXPECT_EQ(bracket - text.begin(), c == '\\' ? 70 : static_cast<long>(at));
    }
  }
}

}  // namespace
}  // namespace assay::scan
