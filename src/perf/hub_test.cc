// Whole steps on one H200 of Hugging Face's models with experts (tools/measure/hub_experts.py) and
// of vision transformers under autocast (tools/measure/vision.py).
#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "perf/measured_row.h"
#include "perf/predict.h"
#include "world/catalog.h"

namespace assay {
namespace {

void place(Setting& s, const char* stack) {
  const Catalog& known = catalog();
  s.cluster.node = *find_node(known, "h200-1");
  s.cluster.accelerator = *find_accelerator(known, s.cluster.node.accelerator);
  s.stack = *find_stack(known, stack);
  s.stack.hand_loss = 0;            // the loop was timed alone
  s.stack.optimizer_traffic = 1.2;  // one kernel, nothing clipped
  s.stack.weight_bytes = s.stack.gradient_bytes = 2, s.stack.optimizer_bytes = 4;
  s.accelerators = 1;
  resolve(s, known);
}

Setting experts_of(const MeasuredRow& c) {
  Setting s;
  Model& m = s.workload.model;
  m.layers = c.whole("layers"), m.hidden = c.whole("hidden");
  m.ffn = m.expert_ffn = c.whole("expert_ffn");
  m.experts = c.whole("experts"), m.experts_per_token = c.whole("topk");
  m.shared_expert_ffn = c.whole("shared") * m.expert_ffn;
  m.heads = c.whole("heads"), m.kv_heads = c.whole("kv_heads"), m.head_dim = c.whole("head_dim");
  m.vocab = c.whole("vocab");
  const std::string family = c.text("family");
  m.head_norm = family == "qwen3" || family == "olmoe";
  m.expert_bias = family == "gpt_oss";
  if (family == "deepseek") {
    m.kv_lora_rank = 512, m.qk_nope_head_dim = 128, m.qk_rope_head_dim = 64, m.v_head_dim = 128;
    m.head_dim = 0;
  }
  s.workload.seq = c.whole("seq"), s.workload.global_batch = c.whole("micro_batch");
  place(s, "transformers");
  return s;
}

double step_error(const Setting& s, const Plan& p, const MeasuredRow& c) {
  return Predictor(s).predict(p).step.v * 1e3 / c.number("step_ms") - 1;
}

// In PyTorch's grouped kernel. GPT-OSS runs attention with sinks written out, whose many passes
// over the scores nobody counts: 31 % too fast. One after another with weights in one tensor
// (`eager` of the table) is no default: each expert's gradient then fills a tensor for all of them.
TEST(Hub, Experts) {
  const auto table = read_csv(std::string(ASSAY_ROOT) + "/test/data/h200_hub_experts.csv");
  ASSERT_TRUE(table);
  int seen = 0;
  for (const CsvRow& row : table->rows) {
    const MeasuredRow c{*table, row};
    if (c.text("experts_by") == "eager") continue;
    const Setting s = experts_of(c);
    Plan p = s.stack.defaults;
    p.micro_batch = s.workload.global_batch;
    p.recompute = c.whole("recompute") == 1 ? Recompute::kFull : Recompute::kNone;
    const bool sinks = c.text("family") == "gpt_oss";
    p.flash_attention = !sinks;
    const std::string name = c.text("family") + " x" + c.text("micro_batch");
    EXPECT_LE(std::abs(step_error(s, p, c)), sinks ? 0.33 : 0.09) << name;
    const double gib = Predictor(s).memory(p).allocated / kGiB;
    EXPECT_NEAR(gib / c.number("peak_alloc_gib"), 1, sinks ? 0.75 : 0.03) << name;
    ++seen;
  }
  EXPECT_EQ(seen, 8);
}

// One expert after another, each a module of its own, as releases before 5 had them: what the host
// takes, where it is the host that takes time.
TEST(Hub, ExpertsInTurnWaitForTheHost) {
  const auto table = read_csv(std::string(ASSAY_ROOT) + "/test/data/h200_expert_loop.csv");
  ASSERT_TRUE(table);
  const Stack& stack = *find_stack(catalog(), "transformers-2024");
  const double each = (stack.launch * stack.launches_expert).v * 1e3;
  int seen = 0;
  for (const CsvRow& row : table->rows) {
    const MeasuredRow c{*table, row};
    if (c.number("device_ms") > 0.6 * (c.number("forward_ms") + c.number("backward_ms"))) continue;
    const double experts = c.number("experts");
    EXPECT_NEAR(c.number("forward_ms") / (each * experts), 1, 0.7);
    EXPECT_NEAR(c.number("backward_ms") / (2 * each * experts), 1, 0.45);
    ++seen;
  }
  EXPECT_EQ(seen, 6);
}

// Fused attention, and scores written out: these move too much, as those of language models have a
// mask and dropout, and casts too little.
TEST(Hub, Vision) {
  const auto table = read_csv(std::string(ASSAY_ROOT) + "/test/data/h200_vision.csv");
  ASSERT_TRUE(table);
  double sum = 0;
  int seen = 0;
  for (const CsvRow& row : table->rows) {
    const MeasuredRow c{*table, row};
    Setting s;
    Model& m = s.workload.model;
    m.layers = c.whole("layers"), m.hidden = c.whole("hidden"), m.ffn = 4 * m.hidden;
    m.heads = m.kv_heads = c.whole("heads"), m.vocab = c.whole("classes");
    m.gated_mlp = false, m.causal = false, m.learned_positions = true;
    m.max_positions = s.workload.seq = c.whole("tokens");
    m.masked_share = 1.0 / static_cast<double>(s.workload.seq);
    s.workload.global_batch = c.whole("batch");
    const bool autocast = c.whole("autocast") > 0;
    place(s, autocast ? "pytorch-autocast" : "pytorch-eager");
    if (autocast) s.stack.weight_bytes = s.stack.gradient_bytes = 4;
    Plan p = s.stack.defaults;
    p.precision = autocast ? Precision::kFp16 : Precision::kBf16;
    p.micro_batch = s.workload.global_batch;
    p.flash_attention = c.text("attention") == "fused";
    const double error = step_error(s, p, c);
    EXPECT_LE(std::abs(error), p.flash_attention ? 0.22 : 0.3) << c.text("hidden");
    sum += std::abs(error);
    ++seen;
  }
  EXPECT_EQ(seen, 32);
  EXPECT_LE(sum / seen, 0.11);
}

}  // namespace
}  // namespace assay
