// Steps of a Llama in JAX on one H200 (tools/measure/jax_layers.py), held for seconds, by what is
// run again and by whether its layers stand in a loop that XLA sees: time, and what XLA reserves.
// The constants of `jax-gpu` and `maxtext-gpu` that are marked measured were read off them.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "perf/measured_row.h"
#include "perf/predict.h"
#include "world/catalog.h"

namespace assay {
namespace {

// What the measuring script's policies keep: `qkv` the first projections, `dots` and
// `minimal_flash` every matmul's result. None names what the gradient of attention's kernel reads.
void set_policy(Setting& s, Plan& p, const std::string& policy) {
  const Model& m = s.workload.model;
  const double q = static_cast<double>(m.hidden);
  const double kv = q * static_cast<double>(m.kv_heads) / static_cast<double>(m.heads);
  const double up = 2 * static_cast<double>(m.ffn);
  p.recompute = policy == "none"   ? Recompute::kNone
                : policy == "full" ? Recompute::kFull
                                   : Recompute::kSelective;
  s.stack.selective_attention = s.stack.selective_memory = 1;
  s.stack.selective_matmul = policy == "qkv" ? (q + up) / (2 * q + 2 * kv + 1.5 * up) : 0;
  if (policy == "qkv") s.stack.selective_kept = 2 + 2 * kv / q;
}

Setting setting_of(const MeasuredRow& c) {
  const Catalog& known = catalog();
  Setting s;
  Model& m = s.workload.model;
  m.layers = c.whole("layers"), m.hidden = c.whole("hidden"), m.ffn = c.whole("ffn");
  m.heads = c.whole("heads"), m.kv_heads = c.whole("kv_heads"), m.vocab = c.whole("vocab");
  m.gated_mlp = true;
  m.max_positions = s.workload.seq = c.whole("seq");
  s.workload.global_batch = c.whole("batch");
  s.cluster.node = *find_node(known, "h200-1");
  s.cluster.accelerator = *find_accelerator(known, s.cluster.node.accelerator);
  s.stack = *find_stack(known, c.whole("scanned") > 0 ? "maxtext-gpu" : "jax-gpu");
  s.stack.hand_loss = 0;          // nothing but the step was timed
  s.stack.framework_memory = {};  // XLA's account leaves out contexts and libraries
  s.accelerators = 1;
  return s;
}

Prediction predicted(const MeasuredRow& c) {
  Setting s = setting_of(c);
  resolve(s, catalog());
  Plan p = s.stack.defaults;
  p.zero = 0;
  p.micro_batch = s.workload.global_batch;
  set_policy(s, p, c.text("recompute"));
  return Predictor(s).predict(p);
}

double middle(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

TEST(Jax, StepsOnTheH200) {
  const auto table = read_csv(std::string(ASSAY_ROOT) + "/test/data/h200_jax.csv");
  ASSERT_TRUE(table);
  std::vector<double> steps, peaks;
  for (const CsvRow& row : table->rows) {
    const MeasuredRow c{*table, row};
    const Prediction p = predicted(c);
    const double step = p.step.v * 1e3 / c.number("step_ms") - 1;
    const double reserved = c.number("arguments_gb") + c.number("temporary_gb");
    const double peak = p.memory.allocated.v / 1e9 / reserved - 1;
    const std::string name = c.text("hidden") + " x " + c.text("layers") + ", " + c.text("seq") +
                             " x " + c.text("batch") + ' ' + c.text("recompute") +
                             (c.whole("scanned") > 0 ? " scanned" : "");
    RecordProperty(name, std::to_string(step) + ' ' + std::to_string(peak));
    EXPECT_LE(std::abs(step), 0.06) << name << ' ' << step;
    EXPECT_LE(std::abs(peak), 0.22) << name << ' ' << peak;
    steps.push_back(std::abs(step)), peaks.push_back(std::abs(peak));
  }
  EXPECT_EQ(steps.size(), 48u);
  EXPECT_LE(middle(steps), 0.02);
  EXPECT_LE(middle(peaks), 0.05);
}

// Where nothing is run again a loop moves and holds more; where everything is, it does not.
TEST(Jax, LoopsCostWhereEverythingIsKept) {
  const auto table = read_csv(std::string(ASSAY_ROOT) + "/test/data/h200_jax.csv");
  ASSERT_TRUE(table);
  const MeasuredRow c{*table, table->rows.front()};
  Setting loop = setting_of(c);
  resolve(loop, catalog());
  Plan p = loop.stack.defaults;
  p.zero = 0, p.micro_batch = loop.workload.global_batch;
  Setting apart = loop;
  apart.stack.kept_traffic = apart.stack.saved_kept = 1;
  for (const Recompute r : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
    p.recompute = r;
    const Prediction a = Predictor(loop).predict(p), b = Predictor(apart).predict(p);
    EXPECT_EQ(a.step > b.step * 1.02, r == Recompute::kNone);
    EXPECT_EQ(a.memory.allocated > b.memory.allocated * 1.02, r == Recompute::kNone);
    if (r != Recompute::kNone) {
      EXPECT_EQ(a.step.v, b.step.v);
    }
  }
}

}  // namespace
}  // namespace assay
