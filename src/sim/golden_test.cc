// The simulation against the exact formula: the seven exact_ettr_at_opt rows of
// data/ettr_golden.csv.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "base/csv.h"
#include "sim/run.h"

namespace assay {
namespace {

double cell(const CsvTable& table, const CsvRow& row, const char* name) {
  return std::strtod(std::string(table.cell(row, name)).c_str(), nullptr);
}

RunSpec exponential(double mtbf, double save, double down, double restore, double period) {
  RunSpec s;
  s.gpus = 8;
  FailureProcess f;
  f.name = "any";
  f.per_gpu_hour = kSecondsPerHour / mtbf / 8;
  f.extent = Extent::kProcess;
  f.detection = Seconds(down);
  f.replaced = 0;
  s.failures = {f};
  CheckpointTier t;
  t.name = "remote";
  t.interval = Seconds(period - save);
  t.stall = Seconds(save);
  t.restore = Seconds(restore);
  s.checkpoints = {t};
  s.recovery.init_base = s.recovery.init_per_gpu = Seconds(0);
  return s;
}

// Failures are chosen so that 0.5 % is at least three standard errors: the kept work of one
// failure's cycle scatters by about (1 - ettr) of the mtbf. Seeds are 1, 2, 3, 4, fixed before the
// first run.
TEST(Golden, ExactRowsAreSimulatedToHalfAPerCent) {
  const CsvTable table = *read_csv(ASSAY_ROOT "/data/ettr_golden.csv");
  int rows = 0;
  for (const CsvRow& row : table.rows) {
    if (table.cell(row, "model") != "exact_ettr_at_opt") continue;
    ++rows;
    const double mtbf = cell(table, row, "mtbf_s_or_scale"),
                 expected = cell(table, row, "expected");
    RunSpec s = exponential(mtbf, cell(table, row, "ckpt_C_s"), cell(table, row, "D_s_or_rate"),
                            cell(table, row, "R_s_or_u0"), cell(table, row, "interval_s"));
    const double errors = 3 * (1 - expected) / expected / 0.005;
    s.period = Seconds(mtbf * std::max(4000.0, errors * errors / 4));
    const Simulator simulator(s);
    double goodput = 0;
    for (const uint64_t seed : {1, 2, 3, 4}) goodput += simulator.run(seed).goodput / 4;
    EXPECT_NEAR(goodput / expected, 1, 0.005) << "line " << row.line;
  }
  EXPECT_EQ(rows, 7);
}

}  // namespace
}  // namespace assay
