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

void show(const std::string& name, const Prediction& p, const MeasuredRow& c) {
  const auto ms = [&](Account a) { return p.ledger[a].v * 1e3; };
  printf("%-24s %+5.1f %% step %6.1f of %6.1f: matmul+attn %6.1f of %6.1f, other %6.1f of %6.1f (mem %5.1f opt %5.1f) clocks %5.1f host %5.1f of %5.1f mem %.1f of %s\n", name.c_str(),
    100 * (p.step.v * 1e3 / c.number("step_ms") - 1), p.step.v * 1e3, c.number("step_ms"),
    ms(Account::kUseful) + ms(Account::kMatmul) + ms(Account::kAttention), c.number("matmul_ms") + c.number("attention_ms"),
    ms(Account::kMemoryBound) + ms(Account::kOptimizer), c.number("other_ms"), ms(Account::kMemoryBound), ms(Account::kOptimizer),
    ms(Account::kPowerCap), ms(Account::kLaunch) + ms(Account::kSync), c.number("step_ms") - c.number("matmul_ms") - c.number("attention_ms") - c.number("other_ms"),
    p.memory.allocated / kGiB, c.text("peak_alloc_gib").c_str());
}

TEST(Hub, Experts) {
  const auto table = read_csv(std::string(ASSAY_ROOT) + "/test/data/h200_hub_experts.csv");
  ASSERT_TRUE(table);
  for (const CsvRow& row : table->rows) {
    const MeasuredRow c{*table, row};
    Setting s = experts_of(c);
    Plan p = s.stack.defaults;
    p.micro_batch = s.workload.global_batch;
    p.recompute = c.whole("recompute") == 1 ? Recompute::kFull : Recompute::kNone;
    if (c.text("experts_by") == "eager") continue;
    p.flash_attention = c.text("family") != "gpt_oss";
    show(c.text("family") + " x" + c.text("micro_batch") + (c.whole("recompute") ? " again" : ""), Predictor(s).predict(p), c);
  }
}

TEST(Hub, Vision) {
  const auto table = read_csv(std::string(ASSAY_ROOT) + "/test/data/h200_vision.csv");
  ASSERT_TRUE(table);
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
    show(c.text("attention") + (autocast ? " amp " : " bf16 ") + c.text("hidden") + "x" + c.text("tokens"), Predictor(s).predict(p), c);
  }
}

}  // namespace
}  // namespace assay
