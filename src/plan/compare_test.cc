#include "plan/compare.h"

#include <cmath>

#include <gtest/gtest.h>

#include "plan/leaves.h"
#include "plan/scale.h"
#include "world/describe.h"

namespace assay {
namespace {

Side side(std::vector<std::string> inputs, std::vector<std::string> sets) {
  Request r;
  r.inputs = std::move(inputs);
  r.sets = std::move(sets);
  tl::expected<Description, Diagnostics> d = describe(r, catalog());
  EXPECT_TRUE(d) << (d ? "" : render(d.error()));
  Side s;
  if (!d) return s;
  s.setting = d->setting;
  s.plan = d->plan;
  Predictor predictor(s.setting);
  EXPECT_FALSE(predictor.impossible(s.plan));
  s.prediction = predictor.predict(s.plan);
  s.run = run_figures(s.setting, s.prediction);
  return s;
}

const std::vector<std::string> kPlain{"plan.tp=8", "plan.pp=1", "plan.micro_batch=1"};

std::vector<std::string> with(std::vector<std::string> more) {
  std::vector<std::string> sets = kPlain;
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

TEST(Compare, NothingDiffersFromItself) {
  const Side a = side({"llama-2-7b", "h100-16"}, kPlain);
  const Comparison c = compare({a, a});
  EXPECT_TRUE(c.difference.changes.empty());
  EXPECT_DOUBLE_EQ(c.speedup.value, 1);
  EXPECT_FALSE(c.significant);
}

TEST(Compare, OneChangeExplainsEverything) {
  const Side a = side({"llama-2-7b", "h100-16"}, kPlain);
  const Side b = side({"llama-2-7b", "h100-16"}, with({"plan.recompute=full"}));
  const Comparison c = compare({a, b});
  ASSERT_EQ(c.difference.changes.size(), 1u);
  EXPECT_EQ(c.difference.changes[0].path, "plan.recompute");
  ASSERT_TRUE(c.difference.changes[0].step_s);
  EXPECT_NEAR(*c.difference.changes[0].step_s, (b.prediction.step - a.prediction.step).v, 1e-9);
  EXPECT_NEAR(c.difference.interaction_step_s, 0, 1e-9);
}

TEST(Compare, ChunksAndTheirScheduleAreOneChange) {
  const std::vector<std::string> stages = with({"plan.pp=2"});
  std::vector<std::string> chunks = stages;
  chunks.push_back("plan.vpp=2");
  const Side a = side({"llama-2-7b", "h100-16"}, stages);
  const Side b = side({"llama-2-7b", "h100-16"}, chunks);
  const Comparison c = compare({a, b});
  ASSERT_EQ(c.difference.changes.size(), 1u);
  EXPECT_EQ(c.difference.changes[0].path, "plan.vpp");
  EXPECT_NEAR(c.difference.interaction_step_s, 0, 1e-9);
}

TEST(Compare, PartsAndInteractionMakeTheWhole) {
  const Side a = side({"llama-2-7b", "h100-16"}, with({"plan.recompute=full"}));
  const Side b =
      side({"llama-2-7b", "h100-16"},
           with({"plan.tp=2", "plan.recompute=selective", "plan.zero=0", "workload.seq=2048"}));
  const Comparison c = compare({a, b});
  double mfu = c.difference.interaction_mfu;
  for (const Change& change : c.difference.changes) mfu += change.mfu.value_or(0);
  EXPECT_NEAR(mfu, b.prediction.mfu - a.prediction.mfu, 1e-9);
  EXPECT_GE(c.difference.changes.size(), 3u);
}

TEST(Compare, AnotherAcceleratorIsOneChange) {
  const Side a = side({"llama-2-7b", "h100-16"}, kPlain);
  const Side b = side({"llama-2-7b", "b200-16"}, kPlain);
  const Comparison c = compare({a, b});
  int accelerators = 0;
  for (const Change& change : c.difference.changes)
    accelerators += change.path == "cluster.accelerator" ? 1 : 0;
  EXPECT_EQ(accelerators, 1);
  EXPECT_LE(c.difference.changes.size(), 8u);
  EXPECT_GT(c.speedup.value, 1);
}

TEST(Compare, ANetworkComesWithTheSecondNode) {
  const Side a = side({"llama-2-7b", "b200-8"}, kPlain);
  const Side b = side({"llama-2-7b", "b200-16"}, kPlain);
  const Comparison c = compare({a, b});
  ASSERT_EQ(c.difference.changes.size(), 1u);
  EXPECT_EQ(c.difference.changes[0].path, "cluster.nodes");
  EXPECT_EQ(c.difference.changes[0].before, "8 GPUs, single-node");
  EXPECT_NEAR(c.difference.interaction_step_s, 0, 1e-9);
}

// The protocols of a network and the kernels of an architecture follow from one word each.
TEST(Compare, WhatFollowsFromASettingIsSwitchedWithIt) {
  const Side a = side({"llama-2-7b", "h100-16"}, kPlain);
  for (const char* other : {"cluster.fabric.kind=tcp", "cluster.accelerator.architecture=ampere"}) {
    const Side b = side({"llama-2-7b", "h100-16"}, with({other}));
    const Comparison c = compare({a, b});
    ASSERT_EQ(c.difference.changes.size(), 1u) << other;
    ASSERT_TRUE(c.difference.changes[0].step_s) << other;
    EXPECT_NEAR(*c.difference.changes[0].step_s, (b.prediction.step - a.prediction.step).v, 1e-9);
    EXPECT_NEAR(c.difference.interaction_step_s, 0, 1e-9);
  }
}

TEST(Compare, SeveralSidesComeBestLast) {
  const Comparison c =
      compare({side({"llama-2-7b", "b200-16"}, kPlain), side({"llama-2-7b", "h100-16"}, kPlain),
               side({"llama-2-7b", "h100-8"}, kPlain)});
  for (size_t i = 1; i < c.sides.size(); ++i) {
    EXPECT_GE(time_per_token(c.sides[i - 1]).value, time_per_token(c.sides[i]).value);
  }
}

// What cannot run is neither the best of several nor faster than another.
TEST(Compare, WhatDoesNotFitComesFirst) {
  const Side slow = side({"llama-2-7b", "h100-8"}, kPlain);
  Side fast = side({"llama-2-7b", "b200-16"}, kPlain);
  EXPECT_TRUE(compare({slow, fast}).significant);
  fast.prediction.memory.capacity = fast.prediction.memory.reserved * 0.9;
  EXPECT_FALSE(compare({slow, fast}).significant);
  const Comparison c = compare({slow, fast, side({"llama-2-7b", "h100-16"}, kPlain)});
  EXPECT_FALSE(fits(c.sides.front()));
  EXPECT_TRUE(fits(c.sides.back()));
  EXPECT_GT(time_per_token(c.sides[1]).value, time_per_token(c.sides[2]).value);
}

// The best plan of a larger accelerator does not fit on the smaller one: alone it gains nothing.
TEST(Compare, WhatDoesNotFitAloneIsSwitchedTogether) {
  const std::vector<std::string> frugal{"plan.tp=4", "plan.pp=4", "plan.micro_batch=1",
                                        "plan.recompute=full"};
  const std::vector<std::string> roomy{"plan.tp=2", "plan.pp=2", "plan.micro_batch=1",
                                       "plan.recompute=none"};
  Side small = side({"llama-3.1-70b", "h100-1024"}, frugal);
  Side large = side({"llama-3.1-70b", "h200-1024"}, roomy);
  small.searched = large.searched = true;
  ASSERT_TRUE(fits(small) && fits(large));
  ASSERT_FALSE(fits(side({"llama-3.1-70b", "h100-1024"}, roomy)));
  const Attribution whole = attribute(small, large);
  const Change& first = whole.changes.front();
  EXPECT_EQ(first.path, "cluster.accelerator");
  ASSERT_EQ(first.with.size(), 1u);
  EXPECT_EQ(first.with[0].path, "plan");
  double step_s = whole.interaction_step_s;
  for (const Change& c : whole.changes) {
    step_s += c.step_s.value_or(0);
    ASSERT_TRUE(c.first_s && c.last_s) << c.path;
    EXPECT_NEAR(*c.step_s, (*c.first_s + *c.last_s) / 2, 1e-9);
  }
  EXPECT_NEAR(step_s, (large.prediction.step - small.prediction.step).v, 1e-9);
}

TEST(Compare, AClosestMissHasNoParts) {
  const Side a = side({"llama-2-7b", "h100-16"}, kPlain);
  Side none = side({"llama-2-7b", "h100-8"}, kPlain);
  none.searched = true;
  none.prediction.memory.capacity = none.prediction.memory.reserved * 0.9;
  EXPECT_TRUE(compare({a, none}).difference.changes.empty());
}

TEST(Leaves, OfTwoSettingsMatch) {
  Side a = side({"llama-2-7b", "h100-16"}, kPlain);
  Side b = side({"mixtral-8x7b", "b200-16"}, kPlain);
  const std::vector<Leaf> one = leaves(a.setting, a.plan), two = leaves(b.setting, b.plan);
  ASSERT_EQ(one.size(), two.size());
  for (size_t i = 0; i < one.size(); ++i) EXPECT_EQ(one[i].path, two[i].path);
}

TEST(Scale, SizesAsPeopleWriteThem) {
  EXPECT_EQ(parse_sizes("16..128"), (std::vector<int64_t>{16, 32, 64, 128}));
  EXPECT_EQ(parse_sizes("16..100"), (std::vector<int64_t>{16, 32, 64, 100}));
  EXPECT_EQ(parse_sizes("64,16"), (std::vector<int64_t>{16, 64}));
  Cluster cluster;
  for (const auto& [per_node, sizes] : std::map<int64_t, std::string>{
           {1, "16..8192"}, {6, "18..9216"}, {8, "16..8192"}, {72, "72..9216"}}) {
    cluster.node.accelerators = per_node;
    EXPECT_EQ(usual_sizes(cluster), sizes);
  }
  EXPECT_EQ(parse_sizes("8"), (std::vector<int64_t>{8}));
  for (const char* bad : {"", "..", "0..8", "8..4", "x", "8,", "16..1e9", "-4", "16..99999999"}) {
    EXPECT_TRUE(parse_sizes(bad).empty()) << bad;
  }
}

TEST(Scale, FirstSizeIsOneAndEfficiencyIsSpeedupOverGrowth) {
  const Side s = side({"llama-2-7b", "h100-128"}, {});
  ScaleOptions options;
  options.sizes = {8, 16, 32, 64};
  const ScaleResult r = scale(s.setting, s.plan, {}, options);
  ASSERT_EQ(r.best.size(), 4u);
  EXPECT_DOUBLE_EQ(r.best[0].speedup, 1);
  for (const ScalePoint& p : r.best) {
    ASSERT_TRUE(p.fits);
    EXPECT_NEAR(p.efficiency, p.speedup * 8 / static_cast<double>(p.accelerators), 1e-12);
  }
}

TEST(Scale, SaysWhatBindsAtEachSize) {
  const Side s = side({"llama-2-7b", "h100-128"}, {});
  ScaleOptions options;
  options.sizes = {8, 64, 128};
  for (const ScalePoint& p : scale(s.setting, s.plan, {}, options).best) {
    ASSERT_TRUE(p.fits);
    EXPECT_EQ(p.binds, largest_loss(p.prediction.ledger));
    EXPECT_DOUBLE_EQ(p.binds_share, p.prediction.ledger[p.binds] / p.prediction.step);
  }
}

TEST(Scale, KeptPlanIsNeverMuchBetterThanTheBest) {
  const Side s = side({"llama-2-7b", "h100-128"}, kPlain);
  ScaleOptions options;
  options.sizes = {16, 32, 64};
  options.fix_plan = true;
  const ScaleResult r = scale(s.setting, s.plan, {"tp", "pp", "micro_batch"}, options);
  ASSERT_EQ(r.fixed.size(), r.best.size());
  for (size_t i = 0; i < r.fixed.size(); ++i) {
    ASSERT_TRUE(r.fixed[i].fits && r.best[i].fits);
    EXPECT_EQ(r.fixed[i].plan.tp, 8);
    EXPECT_LE(cautious(r.best[i].prediction), cautious(r.fixed[i].prediction));
  }
}

TEST(Scale, WrongChoicesAndInteractionMakeTheWhole) {
  const Side s = side({"llama-2-7b", "h100-128"}, kPlain);
  ScaleOptions options;
  options.sizes = {16, 64};
  options.fix_plan = true;
  const ScaleResult r = scale(s.setting, s.plan, {"tp", "pp", "micro_batch"}, options);
  ASSERT_GE(r.wrong_choice.changes.size(), 2u);
  double step_s = r.wrong_choice.interaction_step_s;
  for (const Change& c : r.wrong_choice.changes) step_s += c.step_s.value_or(0);
  EXPECT_NEAR(step_s, (r.best.back().prediction.step - r.fixed.back().prediction.step).v, 1e-9);
  EXPECT_FALSE(r.whole_plan);
  options.fix_plan = false;
  EXPECT_TRUE(scale(s.setting, s.plan, {"tp", "pp", "micro_batch"}, options).whole_plan);
}

TEST(Compare, ErrorsOfOneMachineCancelInPart) {
  const Side a = side({"llama-2-7b", "h100-16"}, kPlain);
  Side b = a;
  const double half = std::log(a.prediction.high / a.prediction.low) / 2;
  const double faster = std::exp(-1.1 * half);
  b.prediction.step *= faster, b.prediction.low *= faster, b.prediction.high *= faster;
  EXPECT_TRUE(compare({a, b}).significant);
  b.setting.cluster.accelerator.name = "another";
  EXPECT_FALSE(compare({a, b}).significant);
}

TEST(Compare, RoundingIsNoInteraction) {
  const Side a = side({"llama-2-7b", "h100-16"}, kPlain);
  const Side b = side({"llama-2-7b", "h100-16"}, with({"plan.recompute=full"}));
  EXPECT_EQ(compare({a, b}).difference.interaction_step_s, 0);
}

// A plan is measured against its own kind: against a kept one the best looks better than ideal.
TEST(Scale, BestPlansScaleAgainstTheBestPlan) {
  Request r;
  r.inputs = {"llama-2-7b", "h100-64"};
  r.sets = {"plan.tp=8", "plan.pp=1", "plan.micro_batch=1"};
  const auto d = describe(r, catalog());
  ASSERT_TRUE(d);
  ScaleOptions options;
  options.sizes = {8, 16, 64};
  options.fix_plan = true;
  const ScaleResult s = scale(d->setting, d->plan, d->plan_keys, options);
  for (const ScalePoint& p : s.best) EXPECT_LE(p.efficiency, 1.1) << p.accelerators;
}

TEST(Scale, SaysWhatDoesNotDivide) {
  Request r;
  r.inputs = {"llama-3.1-8b", "h100-1024"};
  r.sets = {"workload.global_batch=1024"};
  const auto d = describe(r, catalog());
  ASSERT_TRUE(d);
  ScaleOptions options;
  options.sizes = {900};
  const ScaleResult s = scale(d->setting, d->plan, d->plan_keys, options);
  EXPECT_FALSE(s.best[0].fits);
  EXPECT_FALSE(s.best[0].possible);
  EXPECT_NE(s.best[0].why_not.find("1024 is not a multiple"), std::string::npos);
}

}  // namespace
}  // namespace assay
