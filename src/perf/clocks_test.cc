// The held clock against one H200 that repeated a matmul beside vector additions for seconds
// (tools/measure/mixed.py): the only measurement of the clock alone. The model is 4 to 5 % low at
// every share of additions: it knows how a mix buys clock, and draws a tenth too much for matmuls.
#include "perf/clocks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "base/csv.h"
#include "world/catalog.h"

namespace assay {
namespace {

TEST(Clocks, HeldBesideMemoryBoundWork) {
  const Result<CsvTable> table = read_csv(std::string(ASSAY_ROOT) + "/test/data/h200_mixed.csv");
  ASSERT_TRUE(table);
  const auto number = [&](const CsvRow& row, const char* column) {
    return std::stod(std::string(table->cell(row, column)));
  };
  constexpr double kBurst = 1.41e-3;  // s; the median of the table, in which three are noisy
  const Catalog& known = catalog();
  Setting s;
  s.cluster.node = *find_node(known, "h200-1");
  s.cluster.accelerator = *find_accelerator(known, s.cluster.node.accelerator);
  resolve(s, known);
  int seen = 0;
  for (const CsvRow& row : table->rows) {
    if (table->cell(row, "data") == "zero") continue;  // no bit changes: 429 W
    PassCost p;
    p.matmul = Seconds(kBurst);
    p.matmul_peak = Flops(2 * std::pow(8192, 3)) / peak(s.cluster.accelerator, Precision::kBf16);
    p.memory = Seconds(number(row, "adds") * number(row, "add_ms") * 1e-3);
    const double held = held_clock(s, Precision::kBf16, p, (p.matmul + p.memory).v).clock;
    EXPECT_NEAR(held / (kBurst / (number(row, "matmul_ms") * 1e-3)), 1, 0.05)
        << table->cell(row, "data") << ' ' << number(row, "adds");
    ++seen;
  }
  EXPECT_EQ(seen, 12);
}

}  // namespace
}  // namespace assay
