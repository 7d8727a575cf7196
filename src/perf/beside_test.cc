// Models that share weights, carry a state by channel, or have more than attention and MLP: what
// they compute is the model's FLOPs, what they keep is the model's parameters.
#include <cmath>

#include <gtest/gtest.h>

#include "perf/memory.h"
#include "perf/predict.h"
#include "perf/step.h"
#include "world/catalog.h"
#include "world/describe_case.h"
#include "world/model_size.h"

namespace assay {
namespace {

Setting with_model(const Model& m) {
  const Described d =
      of({"llama-3.1-8b", "h100-1024"}, {"workload.seq=2048", "workload.global_batch=128"}, 16);
  EXPECT_TRUE(d) << (d ? "" : render(d.error()));
  Setting s = d ? d->setting : Setting{};
  s.workload.model = m;
  return s;
}

Plan simple() {
  Plan p;
  p.zero = 1;
  p.micro_batch = 1;
  return p;
}

Model plain_model() {
  Model m;
  m.layers = 12;
  m.hidden = 2048;
  m.ffn = 8192;
  m.heads = 16;
  m.vocab = 32000;
  return m;
}

Model shared_model() {
  Model m = plain_model();
  m.weight_sets = 1;
  return m;
}

Model zamba_like() {
  Model m = plain_model();
  m.mixer = {MixerKind::kMamba2, 12, 64, 64, 64, 1, 4, 0};
  m.attention_layers = m.mlp_layers = 4;
  m.weight_sets = 2;
  m.attention_input = 4096;
  m.head_dim = 256;
  m.own_width = 1024;
  return m;
}

Model layer_embedded() {
  Model m = plain_model();
  m.layer_embedding = 256;
  m.residual_streams = 4;
  return m;
}

Model merged() {
  Model m = plain_model();
  m.encoder_layers = 12;
  m.kv_heads = 4;
  m.merged_cross = true;
  return m;
}

Model switch_like() {
  Model m = plain_model();
  m.encoder_layers = 12;
  m.experts = 8;
  m.experts_per_token = 1;
  m.expert_ffn = 8192;
  m.moe_every = 2;
  return m;
}

Model recurrent(MixerKind kind) {
  Model m = plain_model();
  m.heads = 0;
  m.gated_mlp = false;
  m.mixer = {kind, 12, 32, 64, 64, 32, 0, 0};
  if (kind == MixerKind::kGatedLinear || kind == MixerKind::kWkv7) m.mixer.rank = 256;
  m.mlp_output_gate = kind != MixerKind::kWkv7;
  return m;
}

std::vector<Model> models() {
  std::vector<Model> all = {shared_model(), zamba_like(), layer_embedded(), merged(),
                            switch_like()};
  for (const MixerKind kind :
       {MixerKind::kGatedLinear, MixerKind::kWkv7, MixerKind::kRgLru, MixerKind::kWkv}) {
    all.push_back(recurrent(kind));
  }
  return all;
}

TEST(Beside, UsefulIsTheModelsFlops) {
  for (const Model& m : models()) {
    const Setting s = with_model(m);
    const Plan p = simple();
    const Layout l = make_layout(s, p);
    const Links links = links_of(s);
    const Step step = assemble_step(s, p, l, links, microbatch_cost(s, p, l, links));
    const double done =
        step.ledger[Account::kUseful].v * 16 * peak(s.cluster.accelerator, Precision::kBf16).v;
    EXPECT_NEAR(done / (flops_per_token(s.workload) * 2048 * 128), 1, 1e-3)
        << enum_names(m.mixer.kind)[static_cast<size_t>(m.mixer.kind)] << " " << m.weight_sets
        << " " << m.layer_embedding << " " << m.encoder_layers;
  }
}

TEST(Beside, WhatIsKeptIsTheModelsParameters) {
  for (const Model& m : models()) {
    const Setting s = with_model(m);
    const Plan p = simple();
    const Layout l = make_layout(s, p);
    const MicrobatchCost c = microbatch_cost(s, p, l, links_of(s));
    const StageParameters q = stage_parameters(c, stage_content(m, stages_of(m, p), 0), m);
    // Norms beside blocks are counted in other places.
    EXPECT_NEAR((q.dense + q.expert) / parameters(m), 1, 2e-3)
        << enum_names(m.mixer.kind)[static_cast<size_t>(m.mixer.kind)] << " " << m.weight_sets
        << " " << m.layer_embedding << " " << m.encoder_layers;
  }
}

// Weights that all layers share are kept once and run as often; one stage holds them.
TEST(Beside, SharedWeightsAreKeptOnce) {
  const Setting own = with_model(plain_model()), shared = with_model(shared_model());
  Predictor a(own), b(shared);
  const Prediction one = a.predict(simple()), other = b.predict(simple());
  EXPECT_LT(other.memory.weights.v, 0.4 * one.memory.weights.v);
  EXPECT_EQ(other.memory.activations, one.memory.activations);
  EXPECT_NEAR(other.ledger[Account::kUseful] / one.ledger[Account::kUseful], 1, 1e-9);
  EXPECT_LT(other.step, one.step);  // fewer gradients, a smaller update
  EXPECT_LT(parameters(shared.workload.model), 0.4 * parameters(own.workload.model));
  EXPECT_DOUBLE_EQ(flops_per_token(shared.workload), flops_per_token(own.workload));
  Plan spread = simple();
  spread.pp = 2;
  EXPECT_FALSE(a.impossible(spread));
  ASSERT_TRUE(b.impossible(spread));
  EXPECT_EQ(b.impossible(spread)->setting, "plan.pp");
  // Sharded, the one set is gathered whole: half of the two layers that others hold at a time.
  Plan sharded = simple();
  sharded.zero = 3;
  EXPECT_GT(b.predict(sharded).memory.buffers.v, 0.45 * a.predict(sharded).memory.buffers.v);
}

// Parts that no run ever had are not called measured.
TEST(Beside, UnmeasuredPartsWidenTheRange) {
  const auto far = [](const Model& m) {
    return Predictor(with_model(m)).predict(simple()).extrapolated;
  };
  EXPECT_FALSE(far(plain_model()));
  EXPECT_FALSE(far(shared_model()));
  EXPECT_FALSE(far(switch_like()));
  EXPECT_TRUE(far(recurrent(MixerKind::kRgLru)));
  EXPECT_TRUE(far(recurrent(MixerKind::kWkv7)));
  EXPECT_TRUE(far(layer_embedded()));
  EXPECT_TRUE(far(merged()));
}

// More of anything never takes less.
TEST(Beside, Orders) {
  const auto step = [](const Model& m) { return Predictor(with_model(m)).predict(simple()); };
  Model m = plain_model();
  const Prediction none = step(m);
  m.layer_embedding = 256;
  const Prediction embedded = step(m);
  m.residual_streams = 4;
  const Prediction streams = step(m);
  EXPECT_GT(embedded.step, none.step);
  EXPECT_GT(embedded.memory.weights, none.memory.weights);
  EXPECT_GT(streams.step, embedded.step);
  EXPECT_GT(streams.memory.activations, embedded.memory.activations);
  EXPECT_EQ(streams.memory.weights, embedded.memory.weights);
  Model both = merged();
  const Prediction one = step(both);
  both.merged_cross = false;
  const Prediction two = step(both);
  EXPECT_LT(one.step, two.step);
  EXPECT_LT(one.memory.weights, two.memory.weights);
}

}  // namespace
}  // namespace assay
