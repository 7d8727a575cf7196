#include "report/simulate_compare.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

namespace assay {
namespace {

std::string document(const char* run, double goodput, int seed) {
  return fmt::format(
      R"({{"schema": "assay.simulate/1", "assay": {{"seed": "{}"}}, "run": "{}",
          "description": {{"workload": {{"name": "w"}}, "cluster": {{"name": "c"}}}},
          "plan": {{"mfu": 0.5, "step_s": 2}}, "runs": {{"done": 10}},
          "goodput": {{"mean": {}, "p5": 0.8, "p95": 1}}, "tokens": {{"mean": {}}},
          "paid_gpu_s": {{"mean": 36000}}, "usd_per_gpu_hour": 2, "energy": {{"kwh": 5}},
          "ledger_gpu_s": {{"useful": {{"mean": 30000}}, "failure.restart": {{"mean": 6000}}}}}})",
      seed, run, goodput, goodput * 1e9);
}

std::vector<SimulationSide> two(int seed) {
  std::vector<SimulationSide> sides(2);
  Diagnostics problems;
  EXPECT_TRUE(read_simulation(document("usual", 0.95, 1), "a.json", sides[0], problems));
  EXPECT_TRUE(read_simulation(document("naive", 0.90, seed), "b.json", sides[1], problems));
  EXPECT_TRUE(problems.empty());
  sides[0].name = "a.json", sides[1].name = "b.json";
  return sides;
}

// Of two runs the runs are compared, not only the plans that they have in common.
TEST(SimulateCompare, ShowsWhatRunsDifferIn) {
  EXPECT_TRUE(is_simulation(document("usual", 1, 1)));
  const std::string same = simulate_compare_text(two(1), Style{}, Stamp{});
  for (const char* word : {"usual", "naive", "95.0 %", "90.0 %", "$20.0", "failure: restart",
                           "16.7 %", "5.0 points less", "5.6 % more"})
    EXPECT_NE(same.find(word), std::string::npos) << word << "\n" << same;
  EXPECT_EQ(same.find("luck"), std::string::npos) << same;
  const std::string other = simulate_compare_text(two(2), Style{}, Stamp{});
  EXPECT_NE(other.find("within the luck of runs"), std::string::npos) << other;
  EXPECT_NE(simulate_compare_json(two(1), Stamp{}).find("assay.simulate-compare/1"),
            std::string::npos);
}

TEST(SimulateCompare, TellsWhereADocumentBreaksOff) {
  SimulationSide side;
  Diagnostics problems;
  EXPECT_FALSE(
      read_simulation("{\"schema\": \"assay.simulate/1\",\n  \"x\": [1, 2}", "f", side, problems));
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].at.line, 2);
  EXPECT_EQ(problems[0].at.column, 13);
}

TEST(SimulateCompare, HostileDocumentsAreRefusedOrEmpty) {
  SimulationSide side;
  for (const char* text : {"", "[]", "{}", R"({"schema": 3})", R"({"schema": "assay.plan/1"})",
                           R"({"schema": "assay.simulate/1", "x": 1e400})"}) {
    Diagnostics problems;
    EXPECT_FALSE(read_simulation(text, "f", side, problems)) << text;
    EXPECT_EQ(problems.size(), 1u);
  }
  Diagnostics problems;
  EXPECT_TRUE(read_simulation(
      R"({"schema": "assay.simulate/1", "goodput": 3, "ledger_gpu_s": [1], "plan": "x"})", "f",
      side, problems));
  EXPECT_FALSE(simulate_compare_text({side, side}, Style{}, Stamp{}).empty());
}

}  // namespace
}  // namespace assay
