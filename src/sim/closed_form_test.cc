#include "sim/closed_form.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "base/csv.h"

namespace assay {
namespace {

const CsvTable& golden() {
  static const CsvTable kTable = *read_csv(ASSAY_ROOT "/data/ettr_golden.csv");
  return kTable;
}

// `11135`, `N=2048`, `rf=0.0065/node-day`: the number after an equals sign, if there is one.
double number(std::string_view cell) {
  const size_t equals = cell.find('=');
  const std::string text(equals == std::string_view::npos ? cell : cell.substr(equals + 1));
  return text.empty() ? 0 : std::strtod(text.c_str(), nullptr);
}

// Half of the last printed digit.
double print_tolerance(std::string_view cell) {
  const size_t point = cell.find('.');
  const double decimals =
      point == std::string_view::npos ? 0 : static_cast<double>(cell.size() - point - 1);
  return 0.5 * std::pow(10.0, -decimals) * (1 + 1e-9);
}

double value_of(const std::string& model, const CheckpointCosts& c, const CsvRow& row) {
  const auto cell = [&](const char* name) { return number(golden().cell(row, name)); };
  if (model == "aupy2013_table2_young") return young_period(c).v;
  if (model == "aupy2013_table2_daly") return daly_period(c).v;
  if (model == "aupy2013_table2_rfo") return rfo_period(c).v;
  if (model == "aupy2013_table2_opt") return optimal_period(c).v;
  if (model == "exact_ettr_at_opt") return exact_ettr(c, optimal_period(c));
  if (model == "meta_hpca25_ettr") {
    return meta_ettr(c.mtbf.v, c.down.v, c.restore, Seconds(cell("interval_s")), c.save);
  }
  if (model == "job_mttf_h") return job_mttf(c.mtbf.v, 8, c.down.v).v / kSecondsPerHour;
  if (model == "ft_hsdp_sync") return synchronous_ettr(c.mtbf, c.restore);
  // The paper's row: after a stall of 3 min the replica is away for 7 min; 12 replicas.
  if (model == "ft_hsdp_elastic") return elastic_ettr(c.mtbf, c.restore, Seconds(420), 12);
  ADD_FAILURE() << "no formula for " << model;
  return 0;
}

TEST(ClosedForm, EveryGoldenRow) {
  ASSERT_TRUE(golden().problems.empty());
  ASSERT_EQ(golden().rows.size(), 56u);
  for (const CsvRow& row : golden().rows) {
    const std::string model(golden().cell(row, "model"));
    const CheckpointCosts c{Seconds(number(golden().cell(row, "mtbf_s_or_scale"))),
                            Seconds(number(golden().cell(row, "ckpt_C_s"))),
                            Seconds(number(golden().cell(row, "D_s_or_rate"))),
                            Seconds(number(golden().cell(row, "R_s_or_u0")))};
    const std::string_view text = golden().cell(row, "expected");
    const double expected = number(text);
    EXPECT_NEAR(value_of(model, c, row), expected,
                std::max(0.002 * expected, print_tolerance(text)))
        << model << " line " << row.line;
    const double interval = number(golden().cell(row, "interval_s"));
    if (model == "exact_ettr_at_opt") {
      EXPECT_NEAR(optimal_period(c).v, interval, 0.0005 * interval + 0.05);
    }
  }
}

TEST(ClosedForm, OptimumIsAMaximum) {
  for (const double mtbf : {500.0, 5000.0, 1e6}) {
    for (const double save : {0.1, 10.0, 400.0}) {
      const CheckpointCosts c{Seconds(mtbf), Seconds(save), Seconds(60), Seconds(120)};
      const Seconds best = optimal_period(c);
      for (const double f : {0.5, 0.9, 0.99, 1.01, 1.1, 2.0}) {
        EXPECT_GE(exact_ettr(c, best), exact_ettr(c, best * f)) << mtbf << " " << save << " " << f;
      }
    }
  }
}

TEST(ClosedForm, HigherOrdersApproachTheOptimum) {
  const CheckpointCosts c{Seconds(11135), Seconds(20), Seconds(120), Seconds(300)};
  const double best = optimal_period(c).v;
  const double higher = std::abs(daly_higher_order_period(c).v - best);
  EXPECT_LT(higher, 1);
  EXPECT_LT(higher, std::abs(young_period(c).v - best));
  // Ts + sqrt(2 (Tf + Tr) Ts + Ts^2) by hand; a long unnoticed error is a lower limit.
  EXPECT_NEAR(availability_period(c).v, 20 + std::sqrt(2 * 11435.0 * 20 + 400), 1e-9);
  EXPECT_EQ(availability_period(c, Seconds(5000)).v, 5000);
}

TEST(ClosedForm, FirstOrderBreaksWhereFailuresAreFrequent) {
  const CheckpointCosts calm{Seconds(1e6), Seconds(10), Seconds(60), Seconds(300)};
  for (const FormulaError& e : formula_errors(calm)) {
    EXPECT_LT(std::abs(e.claim_error), 1e-4) << e.name;
    EXPECT_LT(e.regret, 1e-5) << e.name;
  }
  // FT-HSDP's 100,000 GPUs: mtbf 18 min, R 10 min. The first-order waste is off by many points.
  const CheckpointCosts storm{Seconds(1082), Seconds(20), Seconds(60), Seconds(600)};
  const std::vector<FormulaError> errors = formula_errors(storm);
  EXPECT_GT(std::abs(errors.front().claim_error), 0.15);
  EXPECT_GT(errors[2].regret, 0.01);  // rfo
  EXPECT_EQ(errors.back().name, "optimal");
  EXPECT_NEAR(errors.back().regret, 0, 1e-12);
}

TEST(ClosedForm, FloorOfAnyInterval) {
  const auto floor_at = [](double save) {
    return overhead_floor({Seconds(11135), Seconds(save), Seconds(0), Seconds(0)});
  };
  EXPECT_NEAR(floor_at(60), 0.896, 0.001);
  EXPECT_NEAR(floor_at(1), 0.987, 0.001);
}

// 2,048 nodes at 3.79e-3 failures a day need 15 spares for a day and 3 for two hours.
TEST(ClosedForm, SparesByQuantile) {
  EXPECT_EQ(poisson_quantile(2048 * 3.79e-3, 0.99), 15);
  EXPECT_EQ(poisson_quantile(2048 * 3.79e-3 / 12, 0.99), 3);
  EXPECT_EQ(poisson_quantile(0, 0.99), 0);
  EXPECT_EQ(poisson_quantile(5000, 0.5), 5000);
}

}  // namespace
}  // namespace assay
