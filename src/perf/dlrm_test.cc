// Recommendation models: the pairwise products as one H200 runs them (tools/measure/pairs.py), and
// a step that grows evenly with the tables.
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "base/csv.h"
#include "base/statistics.h"
#include "perf/layer.h"
#include "perf/measured_row.h"
#include "perf/predict.h"
#include "world/catalog.h"

namespace assay {
namespace {

Setting recommender(const char* cluster, int64_t tables, int64_t dim, int64_t batch) {
  const Catalog& known = catalog();
  Setting s;
  s.workload.model = *find_model(known, "dlrm-criteo-1tb");
  s.workload.model.tables = tables, s.workload.model.embedding_dim = dim;
  s.workload.seq = 1, s.workload.global_batch = batch;
  s.cluster = *find_cluster(known, cluster);
  s.stack = *find_stack(known, "torchrec");
  s.accelerators = s.cluster.accelerators();
  resolve(s, known);
  return s;
}

// Microseconds of the pairwise products of a micro-batch, both passes.
double products(const MeasuredRow& row) {
  const int64_t batch = row.whole("batch");
  Setting s = recommender("h100-8", row.whole("features") - 1, row.whole("dim"), batch);
  s.cluster.accelerator = *find_accelerator(catalog(), "h200");
  s.accelerators = 1;
  Plan p = s.stack.defaults;
  p.micro_batch = batch;
  p.precision = row.text("dtype") == "float16" ? Precision::kFp16 : Precision::kBf16;
  std::vector<OpRecord> ops;
  microbatch_cost(s, p, make_layout(s, p), links_of(s), &ops);
  double us = 0;
  for (const OpRecord& op : ops) {
    if (op.what.ends_with("pairs")) us += (op.forward + op.backward).v * 1e6;
  }
  return us;
}

TEST(Dlrm, PairsTakeWhatTheyTookOnTheH200) {
  const auto table = read_csv(std::string(ASSAY_ROOT) + "/test/data/h200_pairs.csv");
  ASSERT_TRUE(table);
  std::vector<double> ratios, off;
  for (const CsvRow& r : table->rows) {
    const MeasuredRow row{*table, r};
    const int64_t vectors = row.whole("features");
    const bool usual = vectors >= 27 && vectors <= 97 && vectors % 8 != 0;
    if (!usual || row.text("dtype") == "float32") continue;
    ratios.push_back(products(row) / (row.number("forward_us") + row.number("backward_us")));
    off.push_back(std::abs(ratios.back() - 1));
  }
  ASSERT_EQ(ratios.size(), 96u);
  EXPECT_NEAR(quantile(ratios, 0.5), 0.9, 0.05);
  EXPECT_NEAR(quantile(off, 0.5), 0.21, 0.03);
}

// One table more or less is no other kind of kernel; what is left is the top MLP's rows.
TEST(Dlrm, StepsGrowEvenlyWithTheTables) {
  for (const char* cluster : {"a100-8", "h100-8"}) {
    const auto step = [&](int64_t tables) {
      const Setting s = recommender(cluster, tables, 128, 65536);
      Plan p = s.stack.defaults;
      p.micro_batch = 8192;
      return Predictor(s).predict(p).step.v;
    };
    EXPECT_LT(step(32) / step(31), 1.05) << cluster;
    EXPECT_GT(step(32) / step(31), 1) << cluster;
    EXPECT_LT(step(33) / step(32), 1.15) << cluster;
    EXPECT_LT(step(64) / step(32), 2) << cluster;
    EXPECT_LT(step(64) / step(63), 1.05) << cluster;
  }
}

// What the account rests on names the products, and comes to it.
TEST(Dlrm, ProductsAreExplained) {
  const Setting s = recommender("a100-8", 32, 128, 65536);
  Plan p = s.stack.defaults;
  p.micro_batch = 8192;
  const Derivation d = Predictor(s).explain(p, "kernels.matmul");
  double sum = 0;
  bool told = false;
  for (const Derivation& i : d.inputs) {
    if (i.unit == "us") sum += i.value * 1e-6;
    told = told || i.equation.find("8192 of 33 x 33 x 128 pairs") != std::string::npos;
  }
  EXPECT_TRUE(told);
  ASSERT_EQ(d.inputs.front().name, "all matmuls");
  EXPECT_NEAR(sum / d.inputs.front().value, 1, 1e-9);
}

}  // namespace
}  // namespace assay
