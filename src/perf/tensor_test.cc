// Tensor parallelism by DTensor, as torchtitan's plan has it, against one rank of eight on one H200
// whose peers answer at once (tools/measure/tensor_host.py).
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/csv.h"
#include "perf/layer.h"
#include "perf/measured_row.h"
#include "world/catalog.h"

namespace assay {
namespace {

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v.at(v.size() / 2);
}

CsvTable table_of(const char* name) {
  const auto table = read_csv(std::string(ASSAY_ROOT) + "/test/data/" + name);
  EXPECT_TRUE(table);
  return *table;
}

Setting eight_h200s() {
  Setting s;
  s.workload.model = *find_model(catalog(), "llama-3.1-70b");
  s.workload.model.layers = 1;
  s.cluster.node = *find_node(catalog(), "hgx-h200");
  s.cluster.accelerator = *find_accelerator(catalog(), s.cluster.node.accelerator);
  s.stack = *find_stack(catalog(), "pytorch-fsdp2");
  s.accelerators = 8;
  return s;
}

LayerCost layer_of(Setting s, const Plan& p) {
  s.workload.global_batch = p.micro_batch;
  resolve(s, catalog());
  return microbatch_cost(s, p, make_layout(s, p), links_of(s)).dense;
}

// Everything that is neither matmul nor attention nor on the wire.
TEST(Tensor, CopiesAroundExchanges) {
  const CsvTable table = table_of("h200_tensor_device.csv");
  std::vector<double> errors;
  for (const CsvRow& line : table.rows) {
    const MeasuredRow row{table, line};
    Setting s = eight_h200s();
    Model& m = s.workload.model;
    m.hidden = row.whole("hidden"), m.heads = row.whole("heads"), m.kv_heads = row.whole("kv");
    m.ffn = row.whole("ffn"), s.workload.seq = row.whole("seq");
    Plan p = s.stack.defaults;
    p.tp = 8, p.micro_batch = row.whole("micro"), p.recompute = Recompute::kNone, p.zero = 0;
    p.compiled = row.text("way") == "tensor+compiled";
    const LayerCost c = layer_of(s, p);
    const PassCost& pass = row.text("pass") == "forward" ? c.forward : c.backward;
    const double ms = row.number("norm_ms") + row.number("activation_ms") + row.number("other_ms");
    const std::string name = row.text("way") + ' ' + row.text("hidden") + ' ' + row.text("micro") +
                             ' ' + row.text("pass");
    const double error = 1e3 * pass.memory.v / ms - 1;
    RecordProperty(name, std::to_string(error));
    EXPECT_LT(std::abs(error), 0.25) << name << ": " << 1e3 * pass.memory.v << " for " << ms;
    errors.push_back(std::abs(error));
  }
  ASSERT_EQ(errors.size(), 16u);
  EXPECT_LT(median(errors), 0.12);
}

// Host time of a layer under every way of running it that was measured. The host is a shared
// virtual machine: medians of three rounds, and a wide bound.
TEST(Tensor, HostTimeOfALayer) {
  const CsvTable table = table_of("h200_tensor_host.csv");
  std::map<std::string, std::vector<double>> ways;  // both passes, milliseconds
  for (const CsvRow& line : table.rows) {
    const MeasuredRow row{table, line};
    ways[row.text("way")].push_back(1e-3 * (row.number("forward_us") + row.number("backward_us")));
  }
  ASSERT_EQ(ways.size(), 15u);
  std::vector<double> errors;
  for (const auto& [way, all] : ways) {
    const auto has = [&](const char* word) { return way.find(word) != std::string::npos; };
    Setting s = eight_h200s();
    s.workload.seq = 128;
    Plan p = s.stack.defaults;
    p.tp = has("tensor") ? 8 : 1, p.zero = has("fsdp") ? 3 : 0, p.compiled = has("compiled");
    p.recompute = has("kept")    ? Recompute::kSelective
                  : has("again") ? Recompute::kFull
                                 : Recompute::kNone;
    const LayerCost c = layer_of(s, p);
    const double told =
        1e3 * s.stack.launch.v * (c.forward.launches + c.backward.launches + c.again.launches);
    const double error = told / median(all) - 1;
    RecordProperty(way, std::to_string(error));
    EXPECT_LT(std::abs(error), 0.25) << way << ": " << told << " for " << median(all);
    errors.push_back(std::abs(error));
  }
  EXPECT_LT(median(errors), 0.1);
}

// What a column-parallel matmul gathered is kept whole or in parts: its two inputs a layer.
TEST(Tensor, GatheredInputsMayStayWhole) {
  Setting s;
  s.workload.model = *find_model(catalog(), "llama-3.1-8b");
  s.workload.seq = 512, s.workload.global_batch = 64;
  s.cluster.node = *find_node(catalog(), "dgx-h100");
  s.cluster.accelerator = *find_accelerator(catalog(), s.cluster.node.accelerator);
  s.stack = *find_stack(catalog(), "megatron-lm");
  s.accelerators = 8;
  resolve(s, catalog());
  Plan p = s.stack.defaults;
  p.tp = 4, p.dp = 2, p.micro_batch = 2, p.recompute = Recompute::kNone;
  const auto saved = [&] {
    return microbatch_cost(s, p, make_layout(s, p), links_of(s)).dense.saved.v;
  };
  s.stack.saved_gathered = false;
  const double parts = saved();
  s.stack.saved_gathered = true;
  const double whole = 2.0 * static_cast<double>(s.workload.seq * p.micro_batch) *
                       static_cast<double>(s.workload.model.hidden) * 2;
  EXPECT_NEAR(saved() - parts, whole * 3 / 4, whole * 1e-9);
}

}  // namespace
}  // namespace assay
