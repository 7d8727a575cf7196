// Pickles by hand: what every protocol writes for plain data, and everything that must be refused.
#include "ingest/pickle.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

using std::string_literals::operator""s;

PlainDocument must(const std::string& bytes) {
  const tl::expected<PlainDocument, Diagnostic> out = read_pickle(bytes, "t.pickle");
  EXPECT_TRUE(out.has_value()) << (out ? "" : out.error().message);
  PlainDocument empty;
  empty.nodes.emplace_back();
  return out ? *out : empty;
}

std::string refusal(const std::string& bytes, const PlainLimits& limits = {}) {
  const tl::expected<PlainDocument, Diagnostic> out = read_pickle(bytes, "t.pickle", limits);
  EXPECT_FALSE(out.has_value());
  return out ? "" : out.error().message;
}

TEST(Pickle, ReadsProtocolTwo) {
  // {"a": [1, -2, 300, 70000, 1 << 40], "b": (True, None, 1.5)}
  const PlainDocument d =
      must("\x80\x02}q\x00(X\x01\x00\x00\x00"s +
           "aq\x01]q\x02(K\x01J\xfe\xff\xff\xffM\x2c\x01J\x70\x11\x01\x00"s
           "\x8a\x06\x00\x00\x00\x00\x00\x01"s +
           "eX\x01\x00\x00\x00"s + "b\x88NG\x3f\xf8\x00\x00\x00\x00\x00\x00\x87q\x03u."s);
  PlainId a = 0, b = 0;
  ASSERT_TRUE(d.find(d.root, "a", a));
  ASSERT_TRUE(d.find(d.root, "b", b));
  const std::vector<int64_t> expected = {1, -2, 300, 70000, int64_t{1} << 40};
  ASSERT_EQ(d.items(a).size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(d.at(d.items(a)[i]).integer, expected[i]);
  }
  ASSERT_EQ(d.items(b).size(), 3u);
  EXPECT_EQ(d.at(d.items(b)[0]).kind, PlainKind::kBool);
  EXPECT_EQ(d.at(d.items(b)[1]).kind, PlainKind::kNone);
  EXPECT_EQ(d.at(d.items(b)[2]).real, 1.5);
}

TEST(Pickle, ReadsProtocolZeroAndFour) {
  // {'x': [1, 2L], 'y': u'z'} by hand in protocol 0, with its memo.
  const PlainDocument zero = must("(dp0\nS'x'\np1\n(lp2\nI1\naL2L\nasVy\nVz\nsS't'\nI01\ns.");
  PlainId x = 0, y = 0, t = 0;
  ASSERT_TRUE(zero.find(zero.root, "x", x) && zero.find(zero.root, "y", y));
  ASSERT_TRUE(zero.find(zero.root, "t", t));
  EXPECT_EQ(zero.items(x).size(), 2u);
  EXPECT_EQ(zero.text_of(y), "z");
  EXPECT_EQ(zero.at(t).kind, PlainKind::kBool);

  // Framed, memoised by position: ["ab", "ab", {1}, b"q"].
  const PlainDocument four = must("\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00]\x94(\x8c\x02"s +
                                  "ab\x94h\x01\x8f\x94(K\x01\x90"s + "C\x01qe."s);
  ASSERT_EQ(four.items(four.root).size(), 4u);
  EXPECT_EQ(four.text_of(four.items(four.root)[1]), "ab");
  EXPECT_EQ(four.at(four.items(four.root)[2]).kind, PlainKind::kSet);
  EXPECT_EQ(four.at(four.items(four.root)[3]).kind, PlainKind::kBytes);
}

TEST(Pickle, RefusesWhateverImportsOrCalls) {
  EXPECT_NE(refusal("cos\nsystem\n(S'id'\ntR.").find("GLOBAL asks for `os.system`"),
            std::string::npos);
  EXPECT_NE(refusal("\x80\x02}(X\x01\x00\x00\x00"s + "acos\nsystem\n.").find("byte 10"),
            std::string::npos);
  EXPECT_NE(
      refusal("\x80\x04\x8c\x02os\x8c\x06system\x93.").find("STACK_GLOBAL asks for `os.system`"),
      std::string::npos);
  EXPECT_NE(refusal("(ios\nsystem\n.").find("INST"), std::string::npos);
  EXPECT_NE(refusal("Pid\n.").find("PERSID"), std::string::npos);
  EXPECT_NE(refusal("NR.").find("REDUCE"), std::string::npos);
  for (const char* code :
       {"Q", "R", "b", "o", "\x81", "\x82", "\x83", "\x84", "\x92", "\x97", "\x98"}) {
    EXPECT_NE(refusal("N"s + code + ".").find("refused"), std::string::npos) << int(*code);
  }
  // The name reaches a terminal only without its control characters.
  const std::string hostile = refusal("c\x1b[31mos\nsys\x07tem\n.");
  EXPECT_EQ(hostile.find('\x1b'), std::string::npos);
  EXPECT_EQ(hostile.find('\x07'), std::string::npos);
  EXPECT_NE(refusal("cos").find("GLOBAL"), std::string::npos);  // cut inside the name
}

TEST(Pickle, RefusesDamage) {
  for (const char* bytes : {"",
                            ".",
                            "(",
                            "a.",
                            "e.",
                            "u.",
                            "K",
                            "X\xff\xff\xff\xff",
                            "h\x09.",
                            "\x80\x09.",
                            "(K\x01"
                            "d.",
                            "]K\x01"
                            "(s.",
                            "0.",
                            "1.",
                            "t.",
                            "\x86.",
                            "\xff",
                            "I12x\n.",
                            "Sabc\n.",
                            "gx\n.",
                            "\x8b\xff\xff\xff\xff.",
                            "K\x01(a."}) {
    EXPECT_FALSE(refusal(bytes).empty()) << bytes;
  }
}

TEST(Pickle, IsBounded) {
  // A list that holds itself, and one-byte instructions beyond the limits.
  const PlainDocument loop = must("]q\x00h\x00"s + "a.");
  EXPECT_EQ(loop.items(loop.root)[0], loop.root);
  PlainLimits small;
  small.nodes = 1000;
  small.memo = 100;
  EXPECT_NE(refusal(std::string(5000, ']') + ".", small).find("more than 1000"), std::string::npos);
  EXPECT_FALSE(refusal("]" + std::string(5000, '2') + ".", small).empty());
  EXPECT_FALSE(refusal(std::string(5000, '(') + "N.", small).empty());
  EXPECT_FALSE(refusal("]" + std::string(5000, '\x94') + ".", small).empty());
  std::string huge = "]q\x00"s;
  for (int i = 0; i < 5000; ++i) huge += std::string("h\0", 2);
  EXPECT_FALSE(refusal(huge + ".", small).empty());
  // A number of 200 bytes is a real, not an overflow.
  const PlainDocument big = must("\x8a\xc8"s + std::string(200, '\x7f') + ".");
  EXPECT_EQ(big.at(big.root).kind, PlainKind::kReal);
}

TEST(Plain, JsonIsTheSameShape) {
  const auto d = read_plain_json(R"({"a": [1, 2.5, true, null], "b": {"c": "x"}})", "t.json");
  ASSERT_TRUE(d.has_value());
  PlainId a = 0;
  ASSERT_TRUE(d->find(d->root, "a", a));
  EXPECT_EQ(d->integer_or(d->items(a)[0], -1), 1);
  EXPECT_EQ(d->integer_or(d->items(a)[1], -1), -1);
  // Control characters and invalid UTF-8 inside a text survive as `?`.
  EXPECT_TRUE(read_plain_json("{\"a\": \"\x01\xff\"}", "t.json").has_value());
  EXPECT_FALSE(read_plain_json("{\"a\": ", "t.json").has_value());
  EXPECT_FALSE(read_plain_json(std::string(100000, '['), "t.json").has_value());
  PlainLimits small;
  small.nodes = 10;
  EXPECT_FALSE(read_plain_json("[1,2,3,4,5,6,7,8,9,10,11,12]", "t.json", small).has_value());
}

}  // namespace
}  // namespace assay
