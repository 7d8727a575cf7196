#include "perf/muon.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "base/csv.h"
#include "perf/measured_row.h"
#include "perf/predict.h"
#include "world/catalog.h"

namespace assay {
namespace {

Setting on_h200s(const char* node, int64_t count) {
  Setting s;
  s.workload.model = *find_model(catalog(), "llama-3.1-8b");
  s.workload.seq = 4096, s.workload.global_batch = 64;
  s.workload.optimizer = Optimizer::kMuon;
  s.cluster.node = *find_node(catalog(), node);
  s.cluster.accelerator = *find_accelerator(catalog(), s.cluster.node.accelerator);
  s.stack = *find_stack(catalog(), "pytorch-eager");
  s.accelerators = count;
  resolve(s, catalog());
  return s;
}

// Whole steps over matrices of 0.3 to 235 million elements on one H200 (tools/measure/muon.py), the
// small ones bound by the host.
TEST(Muon, MatricesOnTheH200) {
  const auto table = read_csv(std::string(ASSAY_ROOT) + "/test/data/h200_muon.csv");
  ASSERT_TRUE(table);
  const Setting s = on_h200s("h200-1", 1);
  std::vector<double> errors;
  for (const CsvRow& line : table->rows) {
    const MeasuredRow row{*table, line};
    const double told = 1e6 * muon_matrix_time(s, s.stack.defaults, row.number("experts"),
                                               row.number("m"), row.number("n"))
                                  .v;
    const double error = told / row.number("wall_us") - 1;
    errors.push_back(std::abs(error));
    RecordProperty(row.text("experts") + ' ' + row.text("m") + ' ' + row.text("n"),
                   std::to_string(error));
    EXPECT_LT(std::abs(error), 0.25) << row.text("m") << " x " << row.text("n");
  }
  ASSERT_EQ(errors.size(), 18u);
  std::sort(errors.begin(), errors.end());
  EXPECT_LT(errors[9], 0.14);
}

TEST(Muon, RanksShareTheMatrices) {
  const Setting s = on_h200s("hgx-h200", 8);
  Plan p = s.stack.defaults;
  p.micro_batch = 1;
  const StageContent all{32, 0, true, true};
  const Seconds alone = muon_time(s, p, make_layout(s, p), all);
  p.zero = 1;
  EXPECT_NEAR(muon_time(s, p, make_layout(s, p), all) / alone, 1.0 / 8, 1e-12);
  EXPECT_GT(alone.v, 1);  // seconds a step, replicated
}

// However many ranks share them, one has the longest matrix.
TEST(Muon, NoLessThanTheLongestMatrix) {
  Setting s = on_h200s("hgx-h200", 4096);
  s.workload.global_batch = 4096;
  resolve(s, catalog());
  Plan p = s.stack.defaults;
  p.micro_batch = 1, p.zero = 1;
  const StageContent all{32, 0, true, true};
  const Model& m = s.workload.model;
  const Seconds longest =
      muon_matrix_time(s, p, 1, static_cast<double>(m.ffn), static_cast<double>(m.hidden));
  EXPECT_EQ(muon_time(s, p, make_layout(s, p), all), longest);
}

// No key-value heads stated: as many as heads. Latent attention has matrices of its own.
TEST(Muon, AttentionOfTheModel) {
  Setting s = on_h200s("h200-1", 1);
  const Plan p = s.stack.defaults;
  const StageContent all{1, 0, true, true};
  const auto time = [&] { return muon_time(s, p, make_layout(s, p), all); };
  const Seconds grouped = time();
  s.workload.model.kv_heads = s.workload.model.heads;
  const Seconds whole = time();
  s.workload.model.kv_heads = 0;
  EXPECT_EQ(time(), whole);
  EXPECT_GT(whole, grouped);
  s.workload.model.kv_lora_rank = 512, s.workload.model.q_lora_rank = 1536;
  s.workload.model.qk_nope_head_dim = 128, s.workload.model.qk_rope_head_dim = 64;
  s.workload.model.v_head_dim = 128;
  EXPECT_LT(time(), whole);
}

TEST(Muon, OneMomentLessAndALongerStep) {
  Setting muon = on_h200s("hgx-h200", 8);
  Setting adam = muon;
  adam.workload.optimizer = Optimizer::kAdam;
  Plan p = muon.stack.defaults;
  p.micro_batch = 1, p.zero = 3;
  const Prediction a = Predictor(adam).predict(p), m = Predictor(muon).predict(p);
  EXPECT_GT(m.ledger[Account::kOptimizer], a.ledger[Account::kOptimizer]);
  EXPECT_LT(m.memory.optimizer.v, a.memory.optimizer.v);
  EXPECT_EQ(optimizer_state(adam.workload, 12), 12);
  EXPECT_EQ(optimizer_state(muon.workload, 12), 8);  // a 32-bit copy and one moment
  EXPECT_EQ(optimizer_state(muon.workload, 4), 2);   // moments in 16 bits
}

// Half of the experts on a rank are about half of their work, which is most of a Mixtral's.
TEST(Muon, ExpertsOfARank) {
  Setting s = on_h200s("hgx-h200", 8);
  s.workload.model = *find_model(catalog(), "mixtral-8x7b");
  resolve(s, catalog());
  Plan p = s.stack.defaults;
  p.micro_batch = 1;
  const StageContent all{0, 32, true, true};
  const auto time = [&](int64_t ep) {
    p.ep = ep;
    return muon_time(s, p, make_layout(s, p), all);
  };
  EXPECT_NEAR(time(2) / time(1), 0.5, 0.06);
  EXPECT_GT(time(2).v, time(8).v);
}

}  // namespace
}  // namespace assay
