#include "world/model_size.h"

#include <gtest/gtest.h>

#include "world/catalog.h"

namespace assay {
namespace {

Model model(const char* name) {
  const Model* found = find_model(catalog(), name);
  EXPECT_NE(found, nullptr) << name;
  return found != nullptr ? *found : Model{};
}

struct Published {
  const char* name;
  double total, active;  // billions, as their authors state them
  double tolerance;
};

TEST(ModelSize, PublishedParameterCounts) {
  const Published known[] = {
      {"llama-3.1-8b", 8.03, 8.03, 0.005},       {"llama-3.1-70b", 70.55, 70.55, 0.005},
      {"llama-3.1-405b", 405.85, 405.85, 0.005}, {"llama-2-7b", 6.74, 6.74, 0.005},
      {"mixtral-8x7b", 46.7, 12.88, 0.005},      {"deepseek-v3", 671.0, 37.55, 0.01},
      {"qwen3-30b-a3b", 30.5, 3.35, 0.01},       {"gpt-oss-120b", 116.8, 5.7, 0.02},
      {"gpt-3-175b", 174.6, 174.6, 0.005},       {"opt-350m", 0.3312, 0.3312, 0.005}};
  for (const Published& p : known) {
    const Model m = model(p.name);
    EXPECT_NEAR(parameters(m) / 1e9, p.total, p.total * p.tolerance) << p.name;
    EXPECT_NEAR(active_parameters(m) / 1e9, p.active, p.active * p.tolerance) << p.name;
  }
}

// flops_per_token_norm of the validation set. It leaves the routers out (0.3 % of a model with many
// experts) and rounds the latent attention's matrices; we count both.
TEST(ModelSize, FlopsPerTokenOfTheValidationSet) {
  struct Row {
    const char* name;
    int64_t seq;
    Task task;
    double flops;
    double tolerance;
  };
  const Row rows[] = {{"deepseek-v3", 4096, Task::kPretrain, 2.4714e11, 0.015},
                      {"gpt-oss-120b", 4096, Task::kPretrain, 3.2632e10, 0.003},
                      {"gpt-oss-120b", 8192, Task::kPretrain, 3.4444e10, 0.003},
                      {"kimi-k2", 4096, Task::kPretrain, 2.003e11, 0.03},
                      {"qwen3-30b-a3b", 4096, Task::kPretrain, 2.3006e10, 0.005},
                      {"qwen3-235b-a22b", 4096, Task::kPretrain, 1.4803e11, 0.003},
                      {"qwen3-235b-a22b", 131072, Task::kPretrain, 7.347e11, 0.003},
                      {"mixtral-8x7b", 4096, Task::kPretrain, 7.9706e10, 0.003}};
  for (const Row& row : rows) {
    EXPECT_NEAR(flops_per_token(model(row.name), row.seq, row.task) / row.flops, 1, row.tolerance)
        << row.name << " " << row.seq;
  }
}

Model small() {
  Model m;
  m.layers = 2;
  m.hidden = 64;
  m.ffn = 256;
  m.heads = 4;
  m.vocab = 1000;
  m.gated_mlp = false;
  return m;
}

TEST(ModelSize, ByHand) {
  const Model m = small();
  const double body = 2 * (4 * 64 * 64 + 2 * 64 * 256);
  EXPECT_EQ(parameters(m), body + 2 * 64 * 1000 + 5 * 64);
  EXPECT_EQ(flops_per_token(m, 32, Task::kPretrain), 6 * (body + 64000) + 6 * 2 * 32 * 64);
  EXPECT_EQ(flops_per_token(m, 32, Task::kLora), 4 * (body + 64000) + 6 * 2 * 32 * 64);
}

TEST(ModelSize, WindowsAndDirections) {
  Model m = small();
  const double full = flops_per_token(m, 4096, Task::kPretrain);
  m.window = 128;
  m.window_layers = 0.5;
  const double seen = 128 * (2 - 128 / 4096.0);
  EXPECT_EQ(full - flops_per_token(m, 4096, Task::kPretrain), 6.0 * 1 * (4096 - seen) * 64);
  EXPECT_EQ(flops_per_token(m, 64, Task::kPretrain), flops_per_token(small(), 64, Task::kPretrain));
  m = small();
  m.causal = false;
  EXPECT_EQ(flops_per_token(m, 4096, Task::kPretrain) - full, 6.0 * 2 * 4096 * 64);
}

TEST(ModelSize, AttentionReachesOverADocument) {
  Workload w;
  w.seq = 4096;
  EXPECT_EQ(attended(w), 4096);
  w.document = 200;
  EXPECT_EQ(attended(w), 200);
  w.document = 10000;  // longer than a sequence: cut by it
  EXPECT_EQ(attended(w), 4096);
}

TEST(ModelSize, EveryModelOfTheCatalogIsFinite) {
  for (const Model& m : catalog().models) {
    EXPECT_GT(parameters(m), 1e6) << m.name;
    EXPECT_LE(active_parameters(m), parameters(m)) << m.name;
    EXPECT_GT(flops_per_token(m, 2048, Task::kPretrain), 1e5) << m.name;
  }
}

TEST(ModelSize, EmptyModelsDoNotCrash) {
  EXPECT_EQ(parameters(Model{}), 0);
  Model dlrm;
  dlrm.kind = ModelKind::kDlrm;
  EXPECT_EQ(parameters(dlrm), 0);
}

}  // namespace
}  // namespace assay
