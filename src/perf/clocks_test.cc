// The held clock against one H200 that repeated a matmul beside vector additions for seconds
// (tools/measure/mixed.py): the only measurement of the clock alone. The model is 4 to 5 % low at
// every share of additions: it knows how a mix buys clock, and draws a tenth too much for matmuls.
#include "perf/clocks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "base/csv.h"
#include "base/random.h"
#include "world/catalog.h"

namespace assay {
namespace {

Setting one_h200() {
  const Catalog& known = catalog();
  Setting s;
  s.cluster.node = *find_node(known, "h200-1");
  s.cluster.accelerator = *find_accelerator(known, s.cluster.node.accelerator);
  resolve(s, known);
  return s;
}

TEST(Clocks, HeldBesideMemoryBoundWork) {
  const Result<CsvTable> table = read_csv(std::string(ASSAY_ROOT) + "/test/data/h200_mixed.csv");
  ASSERT_TRUE(table);
  const auto number = [&](const CsvRow& row, const char* column) {
    return std::stod(std::string(table->cell(row, column)));
  };
  constexpr double kBurst = 1.41e-3;  // s; the median of the table, in which three are noisy
  const Setting s = one_h200();
  int seen = 0;
  for (const CsvRow& row : table->rows) {
    if (table->cell(row, "data") == "zero") continue;  // no bit changes: 429 W
    PassCost p;
    p.matmul = Seconds(kBurst);
    p.matmul_draw = Flops(2 * std::pow(8192, 3)) / peak(s.cluster.accelerator, Precision::kBf16);
    p.scores = Seconds(number(row, "adds") * number(row, "add_ms") * 1e-3);  // they stream alike
    p.attention = p.scores;
    const double held = held_clock(s, Precision::kBf16, p, (p.matmul + p.scores).v).clock;
    EXPECT_NEAR(held / (kBurst / (number(row, "matmul_ms") * 1e-3)), 1, 0.05)
        << table->cell(row, "data") << ' ' << number(row, "adds");
    ++seen;
  }
  EXPECT_EQ(seen, 12);
}

// Between waits of a tenth to a half of the time, spinning or copying as a collective does, clocks
// recover as the mean draw says, down to waits of 0.1 ms.
TEST(Clocks, HeldBetweenWaits) {
  const Result<CsvTable> table = read_csv(std::string(ASSAY_ROOT) + "/test/data/h200_waits.csv");
  ASSERT_TRUE(table);
  const Setting s = one_h200();
  constexpr double kBurst = 0.591e-3;  // s, 4096 x 7168 x 8192
  int seen = 0;
  for (const CsvRow& row : table->rows) {
    const std::string_view name = table->cell(row, "case");
    const double grain = std::stod(std::string(table->cell(row, "grain")));
    if ((name != "none" && name != "sleep" && name != "copy") || grain == 0) continue;
    const double wait = 1e-3 * std::stod(std::string(table->cell(row, "wait_ms"))) / grain;
    PassCost p;
    p.matmul = Seconds(kBurst);
    p.matmul_draw = Flops(2.0 * 4096 * 7168 * 8192) / peak(s.cluster.accelerator, Precision::kBf16);
    const double held = held_clock(s, Precision::kBf16, p, kBurst + wait).clock;
    const double measured = kBurst / (1e-3 * std::stod(std::string(table->cell(row, "held_ms"))));
    EXPECT_NEAR(held / std::min(1.0, measured), 1, 0.05) << name << ' ' << wait;
    ++seen;
  }
  EXPECT_EQ(seen, 9);
}

// Attention alone, by cuDNN at half to two thirds of the peak and by flash attention 2 at a third.
TEST(Clocks, AttentionHeld) {
  const Result<CsvTable> table = read_csv(std::string(ASSAY_ROOT) + "/test/data/h200_waits.csv");
  ASSERT_TRUE(table);
  const Setting s = one_h200();
  int seen = 0;
  for (const CsvRow& row : table->rows) {
    const std::string name(table->cell(row, "case"));
    if (name.find("ward") == std::string::npos) continue;
    const double seq = name.find("4096") != std::string::npos ? 4096 : 32768;
    const double clock = std::stod(std::string(table->cell(row, "sm_mhz"))) / 1980;
    const bool forward = name.find("forward") != std::string::npos;
    PassCost p;
    p.attention = Seconds(1e-3 * std::stod(std::string(table->cell(row, "held_ms"))) * clock);
    // 32 heads of 128; the ledger counts 2 of the 2.5 that backward does.
    const Flops counted(4.0 * 32 * 128 * seq * seq / 2 * (forward ? 3 / 3.5 : 2.5 * 3 / 3.5));
    p.attention_peak = counted / peak(s.cluster.accelerator, Precision::kBf16);
    const double held = held_clock(s, Precision::kBf16, p, p.attention.v).clock;
    EXPECT_NEAR(held / clock, 1, 0.06) << name;
    ++seen;
  }
  EXPECT_EQ(seen, 8);
}

// The twin of the closed form.
TEST(Clocks, TheWorstOfManyPartsIsThatOfNormalDeviates) {
  for (const int64_t n : {4, 8, 72, 512, 4096, 65536}) {
    const double largest = expected_max_normal(static_cast<double>(n));
    EXPECT_NEAR((worst_draw(n) - 1) / kDrawSpread / largest, 1, 0.055) << n;
    EXPECT_GT(worst_draw(2 * n), worst_draw(n));
  }
  EXPECT_EQ(worst_draw(1), 1);
  EXPECT_EQ(worst_draw(0), 1);
}

}  // namespace
}  // namespace assay
