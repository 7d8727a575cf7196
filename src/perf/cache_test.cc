// What a last-level cache saves memory-bound kernels, against Nsight Compute's counters and streams
// on one H200 (tools/measure/cache.py, cache_hits.py).
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "base/csv.h"
#include "perf/layer.h"
#include "perf/measured_row.h"
#include "perf/rank.h"
#include "world/catalog.h"

namespace assay {
namespace {

CsvTable measured(const char* name) {
  auto table = read_csv(std::string(ASSAY_ROOT) + "/test/data/" + name);
  EXPECT_TRUE(table) << name;
  return table ? *table : CsvTable{};
}

// At the most tokens nothing is found: what reaches memory there, per token, is all there is.
TEST(Cache, HoldsWhatWasCounted) {
  const CsvTable table = measured("h200_cache_hits.csv");
  std::map<bool, std::map<double, double>> reached;  // bytes per token, by tokens
  for (const CsvRow& line : table.rows) {
    const double tokens = MeasuredRow{table, line}.number("tokens");
    const double mb =
        MeasuredRow{table, line}.number("read_mb") + MeasuredRow{table, line}.number("written_mb");
    reached[MeasuredRow{table, line}.number("compiled") > 0][tokens] = mb / tokens;
  }
  ASSERT_EQ(reached.size(), 2u);
  const Accelerator& h200 = *find_accelerator(catalog(), "h200-sxm5-141gb");
  const Stack& stack = *find_stack(catalog(), "pytorch-eager");
  for (const auto& [compiled, sizes] : reached) {
    ASSERT_GE(sizes.size(), 7u);
    const double all = sizes.rbegin()->second;
    const double moved = compiled ? stack.traffic_compiled : stack.traffic;
    for (const auto& [tokens, each] : sizes) {
      const double filled = tokens * 2048 * 2 / h200.l2.v;
      EXPECT_NEAR(found_in_cache(moved, filled), 1 - each / all, 0.05)
          << tokens << (compiled ? " tokens, compiled" : " tokens, eager");
    }
  }
}

// More bytes never take less time, wherever they are found.
TEST(Cache, MoreBytesAreNeverFaster) {
  for (const double filled : {0.0, 0.03, 0.1, 0.3, 1.0}) {
    double before = 0, reached = 0;
    for (double moved = 0.5; moved < 8; moved += 0.05) {
      const double found = moved * found_in_cache(moved, filled);
      EXPECT_GE(found, before);
      EXPECT_GE(moved - found, reached - 1e-12);
      before = found, reached = moved - found;
    }
  }
}

// Buffers that fit twice stream at the cache's rate, a fixed start left out.
TEST(Cache, StreamsAsMeasured) {
  const CsvTable table = measured("h200_cache_streams.csv");
  std::map<double, double> us;
  for (const CsvRow& line : table.rows) {
    us[MeasuredRow{table, line}.number("megabytes")] = MeasuredRow{table, line}.number("us");
  }
  const double rate = 2 * (16 - 0.5) / (us.at(16) - us.at(0.5));  // MB/us = TB/s
  const Accelerator& h200 = *find_accelerator(catalog(), "h200-sxm5-141gb");
  const Kernels& k = *find_kernels(catalog(), h200.architecture);
  const double told = k.cache_word * static_cast<double>(h200.compute_units) * h200.clock.v / 1e12;
  EXPECT_NEAR(told / rate, 1, 0.05);
}

Seconds memory_of_a_layer(const char* node, int64_t micro_batch, double cache_word) {
  Setting s;
  s.workload.model = *find_model(catalog(), "gpt-2");
  s.workload.seq = 1024, s.workload.global_batch = micro_batch;
  s.cluster.node = *find_node(catalog(), node);
  s.cluster.accelerator = *find_accelerator(catalog(), s.cluster.node.accelerator);
  s.stack = *find_stack(catalog(), "pytorch-eager");
  s.accelerators = 1;
  resolve(s, catalog());
  if (cache_word >= 0) s.kernels.cache_word = cache_word;
  s.kernels.kernel_floor = Seconds(0);
  Plan plan = s.stack.defaults;
  plan.micro_batch = micro_batch;
  const Layout l = make_layout(s, plan);
  return microbatch_cost(s, plan, l, links_of(s)).dense.forward.memory;
}

// Much on a card with slow memory, little on one whose memory is nearly as fast; nothing for
// tensors far larger than the cache, and never slower.
TEST(Cache, HelpsSlowMemoryAndSmallTensors) {
  const auto gain = [](const char* node, int64_t micro_batch) {
    return memory_of_a_layer(node, micro_batch, 0) / memory_of_a_layer(node, micro_batch, -1);
  };
  EXPECT_GT(gain("rtx4090-1", 1), 2);
  EXPECT_LT(gain("h200-1", 1), 1.5);
  EXPECT_GE(gain("h200-1", 1), 1);
  EXPECT_NEAR(gain("rtx4090-1", 256), 1, 1e-6);
  EXPECT_NEAR(gain("b200-1", 1), 1, 1e-12);
}

// The same layers timed by the profiler against what the model books between matmuls, from 512
// tokens to 65,536: their norms, rotation and gates are written out, which takes a quarter longer
// than the stack's runs say.
TEST(Cache, LayersOfOurH200) {
  const CsvTable table = measured("h200_cache_layers.csv");
  std::map<std::tuple<int64_t, bool, int64_t>, double> ms;  // width, compiled, tokens; both passes
  for (const CsvRow& line : table.rows) {
    const MeasuredRow row{table, line};
    ms[{row.whole("width"), row.whole("compiled") > 0, row.whole("tokens")}] +=
        row.number("norm_ms") + row.number("activation_ms") + row.number("other_ms");
  }
  std::map<bool, std::vector<double>> errors;
  for (const auto& [shape, measured_ms] : ms) {
    const auto [width, compiled, tokens] = shape;
    Setting s;
    Model& m = s.workload.model;
    m.hidden = width, m.heads = m.kv_heads = width / 128, m.layers = 1, m.vocab = 1024;
    m.ffn = width == 4096 ? 11008 : width * 11 / 4;
    s.workload.seq = 512, s.workload.global_batch = tokens / 512;
    s.cluster.node = *find_node(catalog(), "h200-1");
    s.cluster.accelerator = *find_accelerator(catalog(), s.cluster.node.accelerator);
    s.stack = *find_stack(catalog(), "pytorch-eager");
    s.accelerators = 1;
    resolve(s, catalog());
    Plan plan = s.stack.defaults;
    plan.micro_batch = tokens / 512, plan.compiled = compiled;
    const LayerCost c = microbatch_cost(s, plan, make_layout(s, plan), links_of(s)).dense;
    const double told = 1e3 * (c.forward.memory + c.backward.memory).v;
    errors[compiled].push_back(std::abs(told / measured_ms - 1));
  }
  for (auto& [compiled, all] : errors) {
    ASSERT_EQ(all.size(), 23u);
    std::sort(all.begin(), all.end());
    EXPECT_LT(all[11], compiled ? 0.15 : 0.25) << (compiled ? "compiled" : "eager");
    EXPECT_LT(all.back(), 0.3) << (compiled ? "compiled" : "eager");
  }
}

}  // namespace
}  // namespace assay
