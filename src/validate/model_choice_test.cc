// Which model a row means.
#include <gtest/gtest.h>

#include "validate/scenario.h"
#include "validate/scenario_case.h"
#include "world/model_size.h"

namespace assay {
namespace {

// A row that names a model of the catalog and leaves its shape blank is that model.
TEST(Scenario, NamesAloneAreTheCatalogsShapes) {
  for (const Model& m : catalog().models) {
    if (m.kind != ModelKind::kTransformer) continue;
    TrainingRun r = base();
    r.model_name = m.name;
    r.layers = r.hidden = r.ffn = r.heads = r.kv_heads = r.vocab = std::nullopt;
    r.gated_mlp = r.tied_embeddings = std::nullopt;
    std::vector<std::string> assumed;
    const auto read = choose_model(r, catalog(), assumed);
    ASSERT_TRUE(read) << m.name;
    EXPECT_EQ(read->gated_mlp, m.gated_mlp) << m.name;
    EXPECT_EQ(read->heads, m.heads) << m.name;
    EXPECT_EQ(read->ffn, m.ffn) << m.name;
    EXPECT_EQ(read->experts, m.experts) << m.name;
    EXPECT_NEAR(parameters(*read) / parameters(m), 1, 1e-9) << m.name;
  }
}

}  // namespace
}  // namespace assay
