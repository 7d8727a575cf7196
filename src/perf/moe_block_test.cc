// Whole layers of experts as torchtitan writes them, on one H200 that holds all of them: device
// time by kind of kernel, eager and compiled, and the host's time for a layer
// (tools/measure/moe_block.py).
#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "perf/layer.h"
#include "perf/measured_row.h"
#include "world/catalog.h"

namespace assay {
namespace {

LayerCost layer_of(const MeasuredRow& c) {
  const Catalog& known = catalog();
  Setting s;
  Model& m = s.workload.model;
  const bool latent = c.text("model") == "moonlight-shape";
  m = *find_model(known, latent ? "mixtral-8x7b" : c.text("model"));
  if (latent) {
    m.hidden = 2048, m.heads = m.kv_heads = 16, m.experts = 64;
    m.experts_per_token = 6, m.expert_ffn = 1408;
  }
  m.window = 0;
  s.workload.seq = c.whole("seq");
  s.workload.global_batch = c.whole("tokens") / s.workload.seq;
  s.cluster.node = *find_node(known, "h200-1");
  s.cluster.accelerator = *find_accelerator(known, s.cluster.node.accelerator);
  s.stack = *find_stack(known, c.whole("compiled") == 2 ? "prime-rl" : "pytorch-fsdp2");
  // All of the layer but the way to the experts and back; torchtitan's own constants are for what
  // published runs of it ask for (catalog/stacks.yaml).
  if (c.whole("compiled") == 1) {
    s.stack.permute_compiled = 1;
    s.stack.expert_bias_compiled = 0.5;
  }
  s.accelerators = 1;
  resolve(s, known);
  Plan p = s.stack.defaults;
  p.recompute = Recompute::kNone, p.zero = 0;
  p.micro_batch = s.workload.global_batch;
  p.compiled = c.whole("compiled") > 0;
  return microbatch_cost(s, p, make_layout(s, p), links_of(s)).moe;
}

TEST(MoeBlock, DeviceTimeOnTheH200) {
  const auto table = read_csv(std::string(ASSAY_ROOT) + "/test/data/h200_moe_block.csv");
  ASSERT_TRUE(table);
  int seen = 0;
  double sum = 0;
  for (const CsvRow& row : table->rows) {
    const MeasuredRow c{*table, row};
    const LayerCost cost = layer_of(c);
    const PassCost& p = c.text("pass") == "forward" ? cost.forward : cost.backward;
    const double error = p.device().v * 1e3 / c.number("device_ms") - 1;
    const std::string name =
        c.text("model") + ' ' + c.text("tokens") + ' ' + c.text("compiled") + ' ' + c.text("pass");
    RecordProperty(name, std::to_string(error));
    EXPECT_LE(std::abs(error), 0.17) << name << ' ' << error;
    sum += std::abs(error);
    ++seen;
  }
  EXPECT_EQ(seen, 48);
  EXPECT_LE(sum / seen, 0.06);
}

// The host of the device is a shared virtual machine: medians, and a wide bound.
TEST(MoeBlock, HostTimeOfALayer) {
  const std::string data = std::string(ASSAY_ROOT) + "/test/data/";
  const auto table = read_csv(data + "h200_moe_host.csv");
  const auto layers = read_csv(data + "h200_moe_block.csv");
  ASSERT_TRUE(table && layers);
  std::vector<double> both;
  for (const CsvRow& row : table->rows) {
    const MeasuredRow c{*table, row};
    if (c.whole("compiled") > 0) continue;
    both.push_back(c.number("forward_ms") + c.number("backward_ms"));
  }
  ASSERT_EQ(both.size(), 4u);
  std::sort(both.begin(), both.end());
  const LayerCost cost = layer_of({*layers, layers->rows.front()});
  const Stack& st = *find_stack(catalog(), "pytorch-fsdp2");
  const double told = 1e3 * st.launch.v * (cost.forward.launches + cost.backward.launches);
  EXPECT_NEAR(told / ((both[1] + both[2]) / 2), 1, 0.25);
}

// Mean number of nodes that hold a chosen expert, by drawing: `groups` of eight, each on a node of
// its own, then eight experts among those of the groups.
double nodes_drawn(int64_t chosen) {
  std::mt19937 random(1);
  const int tokens = 20000;
  int64_t nodes = 0;
  for (int t = 0; t < tokens; ++t) {
    std::vector<int> groups{0, 1, 2, 3, 4, 5, 6, 7}, experts;
    std::shuffle(groups.begin(), groups.end(), random);
    for (int64_t g = 0; g < chosen; ++g) {
      for (int e = 0; e < 32; ++e) experts.push_back(groups[static_cast<size_t>(g)]);
    }
    std::shuffle(experts.begin(), experts.end(), random);
    nodes += static_cast<int64_t>(std::set<int>(experts.begin(), experts.begin() + 8).size());
  }
  return static_cast<double>(nodes) / tokens;
}

TEST(Experts, RoutersConfinedToGroupsReachFewerNodes) {
  Setting s;
  s.workload.model = *find_model(catalog(), "deepseek-v3");
  s.workload.seq = 4096, s.workload.global_batch = 512;
  s.cluster = *find_cluster(catalog(), "h100-1024");
  s.stack = *find_stack(catalog(), "megatron-core");
  s.stack.expert_dedup = true;
  s.accelerators = 64;
  resolve(s, catalog());
  Plan p = s.stack.defaults;
  p.tp = p.pp = p.vpp = 1, p.ep = 64, p.dp = 64, p.micro_batch = 1, p.overlap_expert = false;
  const auto wire = [&](int64_t chosen) {
    s.workload.model.groups_per_token = chosen;
    return microbatch_cost(s, p, make_layout(s, p), links_of(s)).moe.forward.expert.v;
  };
  const double all = wire(8);
  EXPECT_EQ(wire(0), all);
  for (const int64_t chosen : {1, 2, 4}) {
    EXPECT_NEAR(wire(chosen) / all, nodes_drawn(chosen) / nodes_drawn(8), 0.05) << chosen;
  }
}

}  // namespace
}  // namespace assay
