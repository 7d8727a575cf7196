// How ranks share the work: experts beside tensor parallelism, context parallelism, pipelines.
#include <gtest/gtest.h>

#include "perf/layer.h"
#include "perf/layout.h"
#include "perf/predict.h"
#include "perf/step.h"
#include "world/catalog.h"
#include "world/describe.h"

namespace assay {
namespace {

Description of(std::vector<std::string> inputs, std::vector<std::string> sets) {
  Request r;
  r.inputs = std::move(inputs);
  r.sets = std::move(sets);
  auto d = describe(r, catalog());
  EXPECT_TRUE(d) << render(d.error());
  return std::move(*d);
}

// Megatron-LM cuts experts over its tensor ranks unless told otherwise, where they divide; recipes
// of Megatron-Core leave them whole.
TEST(Parallel, ExpertsBesideTensorRanks) {
  const auto etp = [](const char* stack, int64_t tp, int64_t ep, int64_t stated) {
    const Description d = of({"mixtral-8x22b", "h100-128"}, {std::string("stack=") + stack});
    Plan p = d.plan;
    p.tp = tp, p.ep = ep, p.pp = 4, p.etp = stated;
    return make_layout(d.setting, p).etp;
  };
  EXPECT_EQ(etp("megatron-lm", 2, 8, 0), 2);
  EXPECT_EQ(etp("megatron-lm", 8, 8, 0), 1) << "64 ranks are not there";
  EXPECT_EQ(etp("megatron-lm", 2, 8, 1), 1);
  EXPECT_EQ(etp("megatron-core", 2, 8, 0), 1);
  EXPECT_EQ(etp("megatron-core", 2, 1, 0), 2);
}

// An all-gather between nodes goes by all their ports, a ring by one; in a node a ring hides more.
TEST(Parallel, ContextByAllGatherOrRing) {
  const auto step = [](const char* cluster, const char* kind) {
    const Description d =
        of({"llama-3.1-8b", cluster},
           {"stack=pytorch-fsdp2", "workload.seq=131072", "workload.global_batch=16", "plan.cp=16",
            std::string("plan.context=") + kind, "plan.tp=1", "plan.pp=1", "plan.micro_batch=1",
            "plan.recompute=full"});
    Predictor predictor(d.setting);
    const Prediction p = predictor.predict(d.plan);
    EXPECT_NEAR(p.ledger.paid().v, p.step.v, 1e-9 * p.step.v);
    return p;
  };
  const Prediction ring = step("h100-64", "ring"), gather = step("h100-64", "all-gather");
  EXPECT_LT(gather.ledger[Account::kCommContext].v, ring.ledger[Account::kCommContext].v);
  EXPECT_GE(gather.memory.allocated.v, ring.memory.allocated.v);
}

// All keys and values stand beside a layer's attention.
TEST(Parallel, GatheredKeysTakeMemory) {
  const Description d = of({"llama-3.1-8b", "h100-64"}, {"workload.seq=131072"});
  Plan p = d.plan;
  p.cp = 16, p.tp = p.pp = 1, p.micro_batch = 1;
  const auto working = [&](ContextKind kind) {
    p.context = kind;
    const Layout l = make_layout(d.setting, p);
    return microbatch_cost(d.setting, p, l, links_of(d.setting)).dense.working.v;
  };
  EXPECT_EQ(working(ContextKind::kAllGather) - working(ContextKind::kRing), 131072 * 2048 * 2.0);
}

// Without sequence parallelism Megatron-Core's stages send whole activations from every rank.
TEST(Parallel, WhatStagesSend) {
  const auto boundary = [](const char* stack, bool sequence) {
    const Description d = of({"llama-3.1-70b", "h100-128"}, {std::string("stack=") + stack});
    Plan p = d.plan;
    p.tp = 8, p.pp = 4, p.micro_batch = 1, p.sequence_parallel = sequence;
    const Layout l = make_layout(d.setting, p);
    return microbatch_cost(d.setting, p, l, links_of(d.setting)).boundary.v;
  };
  EXPECT_EQ(boundary("megatron-core", false), 8 * boundary("megatron-core", true));
  EXPECT_EQ(boundary("megatron-deepspeed", false), boundary("megatron-core", true));
}

// Host work of an optimizer step grows with the layers of a stage.
TEST(Parallel, AStepsHostWorkGrowsWithLayers) {
  const auto host = [](const char* layers) {
    const Description d =
        of({"llama-3.1-8b", "h100-64"},
           {"stack=pytorch-fsdp2", std::string("workload.model.layers=") + layers});
    return step_host(d.setting, make_layout(d.setting, d.plan)).v;
  };
  const Stack& st = *find_stack(catalog(), "pytorch-fsdp2");
  EXPECT_NEAR(host("64") - host("32"), 32 * st.step_layer.v, 1e-9);
}

}  // namespace
}  // namespace assay
