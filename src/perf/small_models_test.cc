// Whole steps of small models as people write them, on one H200, held for seconds: GPT-2, BERT and
// Llamas, under autocast or in bf16, compiled or not (tools/measure/small_models.py). Three
// constants were read off them: what autocast adds to the traffic between matmuls, what layer norms
// and GELU move (catalog/stacks.yaml), and what such kernels draw (power_memory of Hopper).
#include <cmath>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "perf/measured_row.h"
#include "perf/predict.h"
#include "world/catalog.h"

namespace assay {
namespace {

Prediction predicted(const MeasuredRow& c) {
  const Catalog& known = catalog();
  Setting s;
  Model& m = s.workload.model;
  m.layers = c.whole("layers"), m.hidden = c.whole("width"), m.ffn = c.whole("ffn");
  m.heads = c.whole("heads"), m.kv_heads = c.whole("kv_heads"), m.vocab = c.whole("vocab");
  m.gated_mlp = c.text("model").starts_with("llama");
  m.tied_embeddings = m.learned_positions = !m.gated_mlp;
  m.causal = !c.text("model").starts_with("bert");
  m.max_positions = s.workload.seq = c.whole("seq");
  s.workload.global_batch = c.whole("micro");
  s.cluster.node = *find_node(known, "h200-1");
  s.cluster.accelerator = *find_accelerator(known, s.cluster.node.accelerator);
  s.stack = *find_stack(known, c.whole("autocast") > 0 ? "pytorch-autocast" : "pytorch-eager");
  s.stack.attention = AttentionKernel::kPortable;
  s.accelerators = 1;
  resolve(s, known);
  Plan p = s.stack.defaults;
  p.micro_batch = s.workload.global_batch;
  p.compiled = c.whole("compiled") > 0;
  return Predictor(s).predict(p);
}

TEST(SmallModels, StepsOnTheH200) {
  const auto table = read_csv(std::string(ASSAY_ROOT) + "/test/data/h200_small_models.csv");
  ASSERT_TRUE(table);
  int seen = 0;
  double sum = 0;
  for (const CsvRow& row : table->rows) {
    const MeasuredRow c{*table, row};
    const double error = predicted(c).step.v * 1e3 / c.number("step_ms") - 1;
    const std::string name = c.text("model") + (c.whole("compiled") > 0 ? " compiled" : "") +
                             (c.whole("autocast") > 0 ? " autocast" : "");
    RecordProperty(name, std::to_string(error));
    EXPECT_LE(std::abs(error), 0.15) << name << ' ' << error;
    sum += std::abs(error);
    ++seen;
  }
  EXPECT_EQ(seen, 21);
  EXPECT_LE(sum / seen, 0.085);
}

}  // namespace
}  // namespace assay
