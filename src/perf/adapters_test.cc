#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "base/csv.h"
#include "base/statistics.h"
#include "perf/measured_row.h"
#include "perf/predict.h"
#include "perf/rank.h"
#include "world/catalog.h"

namespace assay {
namespace {

Setting adapted(const char* stack, double tokens, double rank) {
  Setting s;
  s.workload.model = *find_model(catalog(), "llama-3.1-8b");
  s.workload.seq = static_cast<int64_t>(tokens), s.workload.global_batch = 1;
  s.workload.task = Task::kLora;
  s.workload.lora_rank = static_cast<int64_t>(rank);
  s.cluster.node = *find_node(catalog(), "h200-1");
  s.cluster.accelerator = *find_accelerator(catalog(), s.cluster.node.accelerator);
  s.stack = *find_stack(catalog(), stack);
  s.accelerators = 1;
  resolve(s, catalog());
  return s;
}

// Device milliseconds that an adapter adds to a product, forward and backward.
std::pair<double, double> told(const Setting& s, const MeasuredRow& row, int parts = 1) {
  Plan p = s.stack.defaults;
  p.zero = 0, p.compiled = row.text("way") == "compiled";
  const Layout l = make_layout(s, p);
  const Links links = links_of(s);
  const Rank r = make_rank(s, p, l, links);
  LayerCost with, without;
  const double n = row.number("outputs"), k = row.number("inputs");
  linear(r, with, r.tokens, n, k, 1, p.precision, Linear::kAdapted, parts);
  linear(r, without, r.tokens, n, k, 1, p.precision, Linear::kPlain, parts);
  const auto ms = [](const PassCost& a, const PassCost& b) {
    return 1e3 * ((a.memory - b.memory).v + (a.matmul - b.matmul).v);
  };
  return {ms(with.forward, without.forward), ms(with.backward, without.backward)};
}

// Kernels of an adapter beside a product that costs nothing, on one H200
// (tools/measure/adapters.py): written out in PyTorch, under autocast with adapters in 32 bits, and
// added in place. From 8,192 tokens on; smaller ones find part of their operands in the cache. No
// run states its dropout.
TEST(AdapterKernels, OnTheH200) {
  const auto table = read_csv(std::string(ASSAY_ROOT) + "/test/data/h200_adapters.csv");
  ASSERT_TRUE(table);
  const std::map<std::string, const char*> stacks = {{"bf16", "torchtune"},
                                                     {"compiled", "torchtune"},
                                                     {"autocast", "transformers"},
                                                     {"in_place", "unsloth"}};
  std::map<std::string, std::vector<double>> off;
  for (const CsvRow& line : table->rows) {
    const MeasuredRow row{*table, line};
    const auto stack = stacks.find(row.text("way"));
    if (stack == stacks.end() || row.number("dropout") > 0 || row.number("tokens") < 8192) continue;
    const Setting s = adapted(stack->second, row.number("tokens"), row.number("rank"));
    const auto [forward, backward] = told(s, row);
    const double measured = row.number("forward_ms") + row.number("backward_ms");
    const double error = (forward + backward) / measured - 1;
    RecordProperty(row.text("way") + ' ' + row.text("inputs") + ' ' + row.text("outputs"),
                   std::to_string(error));
    EXPECT_LT(std::abs(error), row.text("way") == "in_place" ? 0.4 : 0.3)
        << row.text("way") << ' ' << row.text("inputs") << ' ' << row.text("outputs") << ": "
        << forward << " + " << backward;
    off[row.text("way")].push_back(std::abs(error));
  }
  ASSERT_EQ(off.size(), 4u);
  for (auto& [way, errors] : off) {
    ASSERT_EQ(errors.size(), 6u) << way;
    EXPECT_LT(quantile(errors, 0.5), 0.15) << way;
  }
}

// Three projections that are one matmul here have three adapters where they are apart, which read
// the input three times; packed weights leave the casts to autocast.
TEST(AdapterKernels, ApartAndPacked) {
  const auto table = read_csv(std::string(ASSAY_ROOT) + "/test/data/h200_adapters.csv");
  ASSERT_TRUE(table);
  const MeasuredRow row{*table, table->rows[1]};
  Setting s = adapted("transformers", row.number("tokens"), row.number("rank"));
  const double three = told(s, row, 3).first;
  EXPECT_GT(three, told(s, row, 1).first);
  s.stack.adapters_apart = false;
  const double one = told(s, row, 3).first;
  EXPECT_LT(one, three);
  s.stack.weight_bytes = 0.55;
  EXPECT_LT(told(s, row, 3).first, one);
}

}  // namespace
}  // namespace assay
