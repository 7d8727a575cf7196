#include "sim/policy_levers.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/spec_case.h"

namespace assay {
namespace {

const Lever* find(const std::vector<Lever>& all, std::string_view name) {
  for (const Lever& l : all) {
    if (l.name == name) return &l;
  }
  return nullptr;
}

LeverResult measured(const Case& c, const Lever& lever) {
  ManyOptions o;
  o.runs = 20;
  return measure_levers(c.make().spec, {lever}, o).front();
}

TEST(PolicyLevers, OfferWhatTheDescriptionAllows) {
  const Case c({"run.replicas=1"});
  ASSERT_EQ(c.prediction.dp, 8);
  const std::vector<Lever> all = policy_levers(c.input());
  std::vector<int64_t> replicas;
  for (const Lever& l : all) {
    EXPECT_TRUE(check(l.spec).empty()) << l.name;
    if (l.name == "elastic replicas") replicas.push_back(l.spec.recovery.replicas);
  }
  // Divisors of the data-parallel groups; eight copies of the optimizer do not fit.
  EXPECT_EQ(replicas, (std::vector<int64_t>{4}));
  EXPECT_NE(find(all, "best recovery"), nullptr);
  // One data-parallel group is one replica: nothing can come and go.
  const Case one({"plan.tp=8", "plan.pp=16", "cluster.nodes=16"});
  ASSERT_EQ(one.prediction.dp, 1);
  EXPECT_EQ(find(policy_levers(one.input()), "elastic replicas"), nullptr);
  // From elastic replicas the way back is offered, and other numbers of them.
  const Case elastic({"run.recovery=elastic", "run.replicas=2"});
  const std::vector<Lever> back = policy_levers(elastic.input());
  ASSERT_NE(find(back, "warm standby"), nullptr);
  EXPECT_EQ(find(back, "warm standby")->spec.recovery.policy, RecoveryPolicy::kWarmStandby);
  ASSERT_NE(find(back, "elastic replicas"), nullptr);
  EXPECT_EQ(find(back, "elastic replicas")->spec.recovery.replicas, 4);
}

TEST(PolicyLevers, AreTheRunThatADescriptionWouldMake) {
  Case c;
  const std::vector<Lever> all = policy_levers(c.input());
  const Lever* best = find(all, "best recovery");
  ASSERT_NE(best, nullptr);
  c.run().recovery = Restart::kWarmStandby;
  c.run().detection = Detection::kInspected;
  c.run().checkpoint.peer_memory = true;
  c.run().checkpoint.peer_interval = Seconds(30);
  EXPECT_EQ(Simulator(best->spec).run(7).goodput, Simulator(c.make().spec).run(7).goodput);
}

// What a policy is worth comes from failures: without any it is worth nothing, and with many
// replicas that come and go lose less than a job that starts again.
TEST(PolicyLevers, GainComesFromFailuresAlone) {
  Case storm;
  make_stormy(storm.run());
  storm.run().requeue_wait = Seconds(1800);
  Case calm;
  calm.run().reliability.failures.clear();
  calm.run().reliability.corruption_per_gpu_hour = 0;
  for (const char* name : {"elastic replicas", "best recovery"}) {
    const std::vector<Lever> stormy = policy_levers(storm.input());
    ASSERT_NE(find(stormy, name), nullptr);
    EXPECT_GT(measured(storm, *find(stormy, name)).useful_share.mean, 0.02) << name;
  }
  const std::vector<Lever> quiet = policy_levers(calm.input());
  const Lever* best = find(quiet, "best recovery");
  ASSERT_NE(best, nullptr);
  EXPECT_LT(measured(calm, *best).useful_share.mean, 0.01);
}

TEST(PolicyLevers, TheBestOfEachNameIsKeptInOrderOfGain) {
  const auto lever = [](const char* name, const char* change, double gain) {
    LeverResult r;
    r.name = name;
    r.change = change;
    r.useful_share.mean = gain;
    return r;
  };
  std::vector<LeverResult> all{lever("a", "1", 0.1), lever("b", "1", 0.3), lever("a", "2", 0.2),
                               lever("c", "1", -0.1), lever("b", "2", 0.05)};
  keep_best(all);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].name + all[0].change, "b1");
  EXPECT_EQ(all[1].name + all[1].change, "a2");
  EXPECT_EQ(all[2].name, "c");
}

}  // namespace
}  // namespace assay
