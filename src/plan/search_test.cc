#include "plan/search.h"

#include <algorithm>
#include <optional>

#include <gtest/gtest.h>

#include "plan/cost.h"
#include "plan/levers.h"
#include "world/describe.h"

namespace assay {
namespace {

Description described(std::vector<std::string> inputs, std::vector<std::string> sets) {
  Request r;
  r.inputs = std::move(inputs);
  r.sets = std::move(sets);
  tl::expected<Description, Diagnostics> d = describe(r, catalog());
  EXPECT_TRUE(d) << (d ? "" : render(d.error()));
  return d ? *d : Description{};
}

// Every plan of the space, one after the other, nothing left out and nothing assumed about memory.
struct Naive {
  int64_t possible = 0, fitting = 0;
  std::optional<Candidate> best;
};

Naive try_everything(Predictor& predictor, const Plan& base, const std::set<std::string>& stated) {
  Naive n;
  const Space space(predictor.setting(), base, stated);
  for (const Shape& shape : space.shapes()) {
    for (int64_t micro_batch : space.micro_batches(shape.dp)) {
      std::vector<RecomputeChoice> choices = space.by_memory();
      choices.insert(choices.end(), space.others().begin(), space.others().end());
      for (const RecomputeChoice& choice : choices) {
        Plan plan = shape.plan;
        plan.micro_batch = micro_batch;
        plan.recompute = choice.kind;
        plan.recompute_layers = choice.layers;
        const int64_t microbatches = space.batch() / shape.dp / micro_batch;
        if (plan.vpp > 1 && microbatches % plan.pp != 0) continue;
        if (predictor.impossible(plan)) continue;
        ++n.possible;
        if (part_of_a_layer(predictor.setting().workload.model, plan)) continue;
        const Candidate c{plan, predictor.predict(plan)};
        if (!c.prediction.memory.fits()) continue;
        ++n.fitting;
        if (!n.best || cautious(c.prediction) < cautious(n.best->prediction)) n.best = c;
      }
    }
  }
  return n;
}

void expect_same_as_naive(const Description& d) {
  Predictor predictor(d.setting);
  const SearchResult fast = search(predictor, d.plan, d.plan_keys);
  const Naive slow = try_everything(predictor, d.plan, d.plan_keys);
  EXPECT_EQ(fast.possible, slow.possible);
  EXPECT_EQ(fast.fitting, slow.fitting);
  ASSERT_EQ(fast.found(), slow.best.has_value());
  if (!slow.best) return;
  EXPECT_EQ(cautious(fast.top[0].prediction).v, cautious(slow.best->prediction).v);
}

TEST(Search, AgreesWithTryingEverythingOnADenseModel) {
  expect_same_as_naive(described({"llama-2-7b", "h100-16"}, {"workload.global_batch=64"}));
}

TEST(Search, AgreesWithTryingEverythingWhereMemoryIsTight) {
  expect_same_as_naive(described({"llama-3.1-70b", "h100-64"}, {"workload.global_batch=64"}));
}

TEST(Search, AgreesWithTryingEverythingOnShardedWeights) {
  expect_same_as_naive(
      described({"llama-2-13b", "h100-16", "pytorch-fsdp2"}, {"workload.global_batch=64"}));
}

TEST(Search, KeepsWhatWasStated) {
  const Description d =
      described({"llama-3.1-70b", "h100-128"}, {"plan.tp=4", "plan.recompute=full"});
  Predictor predictor(d.setting);
  const SearchResult found = search(predictor, d.plan, d.plan_keys);
  ASSERT_TRUE(found.found());
  for (const Candidate& c : found.top) {
    EXPECT_EQ(c.plan.tp, 4);
    EXPECT_EQ(c.plan.recompute, Recompute::kFull);
  }
}

// A model without layers has nothing to run again, and is planned all the same.
TEST(Search, RecomputeOfNoLayersIsPlanned) {
  const Description d = described({"dlrm", "h100-8"}, {"plan.recompute=full"});
  Predictor predictor(d.setting);
  const SearchResult r = search(predictor, d.plan, d.plan_keys);
  EXPECT_FALSE(r.top.empty());
  EXPECT_FALSE(r.impossible);
}

TEST(Search, TopIsSortedAndFits) {
  const Description d = described({"llama-3.1-70b", "h100-128"}, {});
  Predictor predictor(d.setting);
  const SearchResult found = search(predictor, d.plan, d.plan_keys);
  ASSERT_GE(found.top.size(), 2u);
  for (size_t i = 0; i < found.top.size(); ++i) {
    EXPECT_TRUE(found.top[i].prediction.memory.fits());
    if (i > 0) {
      EXPECT_LE(cautious(found.top[i - 1].prediction), cautious(found.top[i].prediction));
    }
  }
  EXPECT_LE(found.fitting, found.tried);
  EXPECT_LE(found.tried, found.possible);
  ASSERT_NE(found.runner_up(), nullptr);
  EXPECT_NE(std::tuple(found.runner_up()->plan.tp, found.runner_up()->plan.pp,
                       found.runner_up()->plan.cp),
            std::tuple(found.top[0].plan.tp, found.top[0].plan.pp, found.top[0].plan.cp));
}

TEST(Search, IsTheSameTwice) {
  const Description d = described({"mixtral-8x7b", "h100-64"}, {});
  Predictor one(d.setting), two(d.setting);
  const SearchResult a = search(one, d.plan, d.plan_keys);
  const SearchResult b = search(two, d.plan, d.plan_keys);
  ASSERT_EQ(a.top.size(), b.top.size());
  EXPECT_EQ(a.possible, b.possible);
  for (size_t i = 0; i < a.top.size(); ++i) {
    EXPECT_EQ(a.top[i].prediction.step.v, b.top[i].prediction.step.v);
    EXPECT_EQ(a.top[i].plan.ep, b.top[i].plan.ep);
  }
}

TEST(Search, ClosestMissIsTheOneThatNeedsLeast) {
  const Description d = described({"llama-3.1-405b", "h100-8"}, {"workload.global_batch=8"});
  Predictor predictor(d.setting);
  const SearchResult found = search(predictor, d.plan, d.plan_keys);
  ASSERT_FALSE(found.found());
  ASSERT_TRUE(found.nearest_miss);
  EXPECT_GT(found.nearest_miss->over().v, 0);
  const std::vector<WhatIf> ways =
      fixes(d.setting, d.plan, d.plan_keys, *found.nearest_miss, catalog());
  ASSERT_FALSE(ways.empty());
  for (const WhatIf& w : ways) EXPECT_TRUE(w.prediction.memory.fits()) << w.label;
  // Looking for them takes as long as the search did: how far it has come is told.
  std::vector<double> told;
  fixes(d.setting, d.plan, d.plan_keys, *found.nearest_miss, catalog(),
        [&](double f) { told.push_back(f); });
  ASSERT_GE(told.size(), 4u);
  EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
  EXPECT_GT(told.front(), 0);
  EXPECT_GE(told.back(), 0.75);
  EXPECT_LE(told.back(), 1);
}

TEST(Search, LeversAreFasterFitAndSorted) {
  const Description d = described({"llama-3.1-70b", "h100-128"}, {});
  Predictor predictor(d.setting);
  const SearchResult found = search(predictor, d.plan, d.plan_keys);
  ASSERT_TRUE(found.found());
  double last = -1;
  for (const WhatIf& w : levers(d.setting, found.top[0], d.plan_keys)) {
    EXPECT_TRUE(w.prediction.memory.fits()) << w.label;
    EXPECT_LT(w.step_change, 0) << w.label;
    EXPECT_GE(w.step_change, last) << w.label;
    last = w.step_change;
  }
}

TEST(Search, TurnsOffWhatASequenceDoesNotAllow) {
  const Description d = described({"llama-3.1-70b", "h100-1024"}, {"workload.seq=4097"});
  Predictor predictor(d.setting);
  const SearchResult r = search(predictor, d.plan, d.plan_keys);
  ASSERT_TRUE(r.found());
  for (const Candidate& c : r.top) EXPECT_FALSE(c.plan.tp > 1 && c.plan.sequence_parallel);
}

// Replicas are searched for, so none of their numbers is the reason.
TEST(Search, AMicroBatchThatNeverFitsIsBlamedAlone) {
  const Description d = described({"llama-3.1-70b", "h100-1024"}, {"plan.micro_batch=3"});
  Predictor predictor(d.setting);
  const SearchResult r = search(predictor, d.plan, d.plan_keys);
  ASSERT_TRUE(r.impossible);
  EXPECT_EQ(r.impossible->setting, "plan.micro_batch");
  EXPECT_EQ(r.impossible->reason, "global batch 1024 is not a multiple of micro-batch 3");
  EXPECT_EQ(r.impossible->fix,
            "set plan.micro_batch to a divisor of 1024, or workload.global_batch to 1026");
}

TEST(Search, StatedPlansArePredictedNotSearched) {
  const Description d = described({"llama-3.1-70b", "h100-128"}, {});
  const Plan plan;
  EXPECT_FALSE(fully_stated(d.setting, plan, {}));
  EXPECT_FALSE(fully_stated(d.setting, plan, {"tp", "pp"}));
  EXPECT_TRUE(fully_stated(d.setting, plan, {"tp", "pp", "micro_batch"}));
  Plan product;
  product.tp = 8;
  product.dp = 16;
  EXPECT_TRUE(fully_stated(d.setting, product, {"tp", "dp", "micro_batch"}));
  product.dp = 8;
  EXPECT_FALSE(fully_stated(d.setting, product, {"tp", "dp", "micro_batch"}));
}

TEST(Space, DivisorsAscend) {
  EXPECT_EQ(divisors(12), (std::vector<int64_t>{1, 2, 3, 4, 6, 12}));
  EXPECT_EQ(divisors(1), (std::vector<int64_t>{1}));
  EXPECT_TRUE(divisors(0).empty());
  EXPECT_EQ(divisors(49), (std::vector<int64_t>{1, 7, 49}));
}

TEST(Space, EveryShapeUsesAllAccelerators) {
  const Description d = described({"mixtral-8x7b", "h100-64"}, {});
  const Space space(d.setting, d.plan, d.plan_keys);
  const std::vector<Shape> shapes = space.shapes();
  ASSERT_FALSE(shapes.empty());
  for (const Shape& s : shapes) {
    EXPECT_EQ(s.plan.tp * s.plan.pp * s.plan.cp * s.dp, accelerators_used(d.setting));
    EXPECT_EQ(space.batch() % s.dp, 0);
  }
}

}  // namespace
// Half of the layers run again, whole or in part: what was asked for is not dropped for none.
TEST(Search, AStatedShareOfLayersIsKept) {
  const Description d = described({"llama-3.1-8b", "h100-64"},
                                  {"workload.global_batch=64", "plan.recompute_layers=0.5"});
  Predictor predictor(d.setting);
  const SearchResult found = search(predictor, d.plan, d.plan_keys);
  ASSERT_FALSE(found.top.empty());
  for (const Candidate& c : found.top) {
    EXPECT_NE(c.plan.recompute, Recompute::kNone);
    EXPECT_EQ(c.plan.recompute_layers, 0.5);
  }
}

}  // namespace assay
