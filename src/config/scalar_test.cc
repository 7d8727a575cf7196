#include "config/scalar.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace assay {
namespace {

double value(const char* text, Dimension d) {
  const tl::expected<double, ScalarError> v = parse_quantity(text, d);
  EXPECT_TRUE(v) << text << ": " << (v ? "" : v.error().message);
  return v.value_or(std::numeric_limits<double>::quiet_NaN());
}

std::string error(const char* text, Dimension d) {
  const tl::expected<double, ScalarError> v = parse_quantity(text, d);
  return v ? "none" : v.error().message;
}

std::string help(const char* text, Dimension d) { return parse_quantity(text, d).error().help; }

TEST(Scalar, Units) {
  EXPECT_DOUBLE_EQ(value("80 GB", Dimension::kBytes), 80e9);
  EXPECT_DOUBLE_EQ(value("80GiB", Dimension::kBytes), 80 * 1073741824.0);
  EXPECT_DOUBLE_EQ(value("450 GB/s", Dimension::kBandwidth), 450e9);
  EXPECT_DOUBLE_EQ(value("400 Gbps", Dimension::kBandwidth), 50e9);
  EXPECT_DOUBLE_EQ(value("400 Gb/s", Dimension::kBandwidth), 50e9);
  EXPECT_DOUBLE_EQ(value("3.35 TB/s", Dimension::kBandwidth), 3.35e12);
  EXPECT_DOUBLE_EQ(value("989 TFLOPS", Dimension::kFlopRate), 989e12);
  EXPECT_DOUBLE_EQ(value("989.4 tflops", Dimension::kFlopRate), 989.4e12);
  EXPECT_DOUBLE_EQ(value("1EFLOPS", Dimension::kFlopRate), 1e18);
  EXPECT_DOUBLE_EQ(value("700 W", Dimension::kWatts), 700);
  EXPECT_DOUBLE_EQ(value("5 us", Dimension::kSeconds), 5e-6);
  EXPECT_DOUBLE_EQ(value("5 \xC2\xB5s", Dimension::kSeconds), 5e-6);
  EXPECT_DOUBLE_EQ(value("1.98 GHz", Dimension::kHertz), 1.98e9);
  EXPECT_DOUBLE_EQ(value("$2.49/h", Dimension::kDollarRate), 2.49 / 3600);
  EXPECT_DOUBLE_EQ(value("$ 2.49 /h", Dimension::kDollarRate), 2.49 / 3600);
  EXPECT_DOUBLE_EQ(value("2.49 $/h", Dimension::kDollarRate), 2.49 / 3600);
  EXPECT_DOUBLE_EQ(value("2.49 USD/h", Dimension::kDollarRate), 2.49 / 3600);
  EXPECT_DOUBLE_EQ(value("$5", Dimension::kDollars), 5);
  EXPECT_DOUBLE_EQ(value("0", Dimension::kBytes), 0);
}

// Spellings that can mean one thing only.
TEST(Scalar, UnitsAsPeopleWriteThem) {
  for (const char* price :
       {"$2.10/gpu/h", "$2.10/GPU-h", "$2.10/GPU/hour", "$2.10/gpu-hr", "$2.10 / h",
        "$2.10 / GPU / h", "$2.10/GPU hour", "2.10 $/GPU-h", "2.10 USD/GPU-hour", "$2.10/hr"}) {
    EXPECT_DOUBLE_EQ(value(price, Dimension::kDollarRate), 2.10 / 3600) << price;
  }
  for (const char* rate : {"50 GB/sec", "50 GB / s", "50GB/ sec", "50 GB/second"}) {
    EXPECT_DOUBLE_EQ(value(rate, Dimension::kBandwidth), 50e9) << rate;
  }
  EXPECT_DOUBLE_EQ(value("400 Gbit / sec", Dimension::kBandwidth), 50e9);
  EXPECT_DOUBLE_EQ(value("$0.08 / kWh", Dimension::kEnergyPrice), 0.08 / 3.6e6);
  EXPECT_DOUBLE_EQ(value("989 TFLOP/sec", Dimension::kFlopRate), 989e12);
  EXPECT_DOUBLE_EQ(value("30 minutes", Dimension::kSeconds), 1800);
  EXPECT_DOUBLE_EQ(value("2 hours", Dimension::kSeconds), 7200);
  // Of a node, nobody knows how many accelerators it has; and bits are no bytes.
  EXPECT_EQ(help("$20/node/h", Dimension::kDollarRate),
            "prices are of one accelerator: divide it by those of a node, as in `$2/h`");
  EXPECT_EQ(help("400G", Dimension::kBandwidth), "did you mean `400 GB/s` or `400 Gb/s`?");
  EXPECT_EQ(error("2.10/gpu/h", Dimension::kDollarRate), "has the wrong unit `/gpu/h`");
  EXPECT_EQ(parse_quantity("24", Dimension::kWatts, "MW").error().help,
            "a bare number is ambiguous; write `24 MW`");
}

TEST(Scalar, Numbers) {
  EXPECT_DOUBLE_EQ(value("15e12", Dimension::kNumber), 15e12);
  EXPECT_DOUBLE_EQ(value("2.0 T", Dimension::kNumber), 2e12);
  EXPECT_DOUBLE_EQ(value("300B", Dimension::kNumber), 300e9);
  EXPECT_DOUBLE_EQ(value("2 trillion", Dimension::kNumber), 2e12);
  EXPECT_DOUBLE_EQ(value("1.5 Billion", Dimension::kNumber), 1.5e9);
  EXPECT_DOUBLE_EQ(value("1_000.5", Dimension::kNumber), 1000.5);
  EXPECT_DOUBLE_EQ(value("40 %", Dimension::kNumber), 0.4);
  EXPECT_DOUBLE_EQ(value("2:1", Dimension::kNumber), 2);
  EXPECT_DOUBLE_EQ(value("-.5", Dimension::kNumber), -0.5);
  EXPECT_DOUBLE_EQ(value("010", Dimension::kNumber), 10);
}

TEST(Scalar, MissingAndWrongUnits) {
  EXPECT_EQ(error("700", Dimension::kWatts), "needs the unit W");
  EXPECT_EQ(help("700", Dimension::kWatts), "a bare number is ambiguous; write `700 W`");
  EXPECT_EQ(help("2.49", Dimension::kDollarRate), "a bare number is ambiguous; write `$2.49/h`");
  EXPECT_EQ(error("450 GB", Dimension::kBandwidth), "has the wrong unit `GB`");
  EXPECT_EQ(help("450 GB", Dimension::kBandwidth), "did you mean `450 GB/s`?");
  EXPECT_EQ(help("400 gb/s", Dimension::kBandwidth), "did you mean `400 GB/s` or `400 Gb/s`?");
  EXPECT_EQ(error("5 k", Dimension::kBytes), "has the wrong unit `k`");
  for (const char* text : {"x", "nan", "8 W", "1e999", "1:x", "0.5.5"}) {
    const auto number = parse_quantity(text, Dimension::kNumber);
    ASSERT_FALSE(number) << text;
    EXPECT_FALSE(number.error().help.empty()) << text;
    const auto whole = parse_whole(text);
    ASSERT_FALSE(whole) << text;
    EXPECT_FALSE(whole.error().help.empty()) << text;
  }
  EXPECT_EQ(parse_whole("2.5").error().help, "write 2 or 3");
  EXPECT_EQ(parse_bool("2").error().help, "write `true` or `false`");
  EXPECT_EQ(error("$$5/h", Dimension::kDollarRate), "must be a number, not `$5/h`");
  EXPECT_NE(help("soon", Dimension::kSeconds).find("is written like `10 "), std::string::npos);
  EXPECT_NE(help("cheap", Dimension::kDollarRate).find("is written like `$2/h`"),
            std::string::npos);
  EXPECT_EQ(help("many", Dimension::kNumber), "write one, as in `8` or `1.5e12`");
  EXPECT_EQ(error("5/h", Dimension::kDollarRate), "has the wrong unit `/h`");
}

// What is advised is the figure that was meant, not the same digits of another unit.
TEST(Scalar, AdviceIsNotWrongByAFactor) {
  EXPECT_EQ(help("400G", Dimension::kBandwidth), "did you mean `400 GB/s` or `400 Gb/s`?");
  EXPECT_EQ(help("400g", Dimension::kBandwidth), "did you mean `400 GB/s` or `400 Gb/s`?");
  EXPECT_EQ(help("2T", Dimension::kBytes), "did you mean `2 TB`?");
  EXPECT_EQ(help("2Ti", Dimension::kBytes), "did you mean `2 TiB`?");
  EXPECT_EQ(help("5 m", Dimension::kSeconds), "did you mean `5 ms` or `5 min`?");
  EXPECT_EQ(help("989 T", Dimension::kFlopRate), "did you mean `989 TFLOPS`?");
  EXPECT_EQ(help("300 hp", Dimension::kWatts), "a power is written like `10 W`");
  EXPECT_EQ(help("77 F", Dimension::kNumber), "temperatures are in degrees Celsius: `25`");
  EXPECT_EQ(help("77 \xC2\xB0"
                 "F",
                 Dimension::kNumber),
            "temperatures are in degrees Celsius: `25`");
  EXPECT_EQ(help("25 C", Dimension::kNumber), "leave the unit out: `25`");
  EXPECT_EQ(help("300 lb", Dimension::kNumber),
            "write a number alone, in the key's own unit (docs/reference/yaml.md)");
  EXPECT_EQ(parse_whole("4M").error().help, "write 4000000");
  EXPECT_EQ(parse_whole("1.5 million").error().help, "write 1500000");
}

TEST(Scalar, NotNumbers) {
  for (const char* text : {"nan", ".nan", "inf", "-inf", ".inf", "", " ", "x", "-", "e5", "--1",
                           "1,000", "0x10", "1e999", "-1e999", "1:0", "1 2", "\xFF"}) {
    EXPECT_NE(error(text, Dimension::kNumber), "none") << text;
  }
}

TEST(Scalar, WholeNumbers) {
  EXPECT_EQ(*parse_whole("8"), 8);
  EXPECT_EQ(*parse_whole("1_000"), 1000);
  EXPECT_EQ(*parse_whole("1e3"), 1000);
  EXPECT_EQ(*parse_whole("-3"), -3);
  EXPECT_GT(*parse_whole("1e30"), 1e15);
  EXPECT_FALSE(parse_whole("8.5"));
  EXPECT_FALSE(parse_whole("8 GB"));
  EXPECT_EQ(parse_whole("8k").error().help, "write 8000 or 8192");
}

// Advice that would be refused in its turn is none.
TEST(Scalar, AdviceOnWholeNumbersIsUsable) {
  const auto advice = [](const char* text) { return parse_whole(text).error().help; };
  EXPECT_EQ(advice("0x1000"), "write 4096");
  EXPECT_EQ(advice("0XfF"), "write 255");
  EXPECT_EQ(advice("0xyz"), "write digits alone, as in `4096`");
  EXPECT_EQ(advice("1.5 GB"), "write digits alone, as in `4096`");
  EXPECT_EQ(advice("8 GB"), "write digits alone, as in `8`");
  EXPECT_EQ(parse_quantity("0x10", Dimension::kNumber).error().help, "write 16");
}

TEST(Scalar, Booleans) {
  EXPECT_TRUE(*parse_bool("true"));
  EXPECT_TRUE(*parse_bool("On"));
  EXPECT_FALSE(*parse_bool("no"));
  EXPECT_FALSE(parse_bool("1"));
  EXPECT_FALSE(parse_bool("maybe"));
}

// What format_quantity writes, parse_quantity reads.
TEST(Scalar, RoundTrip) {
  const std::vector<Dimension> all = {
      Dimension::kNumber, Dimension::kBytes,   Dimension::kBandwidth, Dimension::kFlopRate,
      Dimension::kFlops,  Dimension::kWatts,   Dimension::kJoules,    Dimension::kSeconds,
      Dimension::kHertz,  Dimension::kDollars, Dimension::kDollarRate};
  for (Dimension d : all) {
    for (double v : {0.0, 1.0, 2.5e-6, 700.0, 80e9, 989e12}) {
      EXPECT_NEAR(value(format_quantity(v, d).c_str(), d), v, 1e-5 * std::abs(v));
    }
  }
}

}  // namespace
}  // namespace assay
