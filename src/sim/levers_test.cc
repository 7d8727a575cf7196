#include "sim/levers.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/spec_case.h"
#include "sim/spec_print.h"

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

TEST(Levers, OfferWhatTheDescriptionAllows) {
  const Case c({"run.replicas=1"});
  ASSERT_EQ(c.prediction.dp, 8);
  const std::vector<Lever> all = run_levers(c.input());
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
  EXPECT_EQ(find(run_levers(one.input()), "elastic replicas"), nullptr);
  // From elastic replicas the way back is offered, and other numbers of them.
  const Case elastic({"run.recovery=elastic", "run.replicas=2"});
  const std::vector<Lever> back = run_levers(elastic.input());
  ASSERT_NE(find(back, "warm standby"), nullptr);
  EXPECT_EQ(find(back, "warm standby")->spec.recovery.policy, RecoveryPolicy::kWarmStandby);
  ASSERT_NE(find(back, "elastic replicas"), nullptr);
  EXPECT_EQ(find(back, "elastic replicas")->spec.recovery.replicas, 4);
}

// What a person pastes gives the very run that was measured.
TEST(Levers, AreTheRunThatTheirSettingsMake) {
  for (std::vector<std::string> sets :
       {std::vector<std::string>{}, {"run=naive"}, {"run=meta-llama3", "run.reliability=usual"}}) {
    const Case c(sets);
    const std::vector<Lever> all = run_levers(c.input());
    EXPECT_GE(all.size(), 5u);
    for (const Lever& l : all) {
      std::vector<std::string> more = sets;
      more.insert(more.end(), l.settings.begin(), l.settings.end());
      EXPECT_EQ(print(l.spec), print(Case(more).make().spec)) << l.name;
    }
  }
}

// What a copy to a peer costs follows from its bytes; with a single node there is no peer.
TEST(Levers, ThePeerTierFollowsFromSizes) {
  const Case c;
  const std::vector<Lever> all = run_levers(c.input());
  const Lever* peer = find(all, "peer-memory tier");
  ASSERT_NE(peer, nullptr);
  EXPECT_EQ(peer->spec.checkpoints.front().survives, Extent::kNode);
  EXPECT_EQ(peer->spec.checkpoints.front().stall, c.make().spec.peer.part / Bandwidth(25e9));
  const Case one({"plan.tp=8", "plan.pp=1", "cluster.nodes=1"});
  EXPECT_EQ(find(run_levers(one.input()), "peer-memory tier"), nullptr);
}

// Only what changes the run is offered.
TEST(Levers, NothingThatIsDoneAlready) {
  const Case c({"run=best-known", "run.noticed_within=10 s", "run.reliability.slow_nodes=0",
                "run.reliability.jitter=0", "run.init_base=0", "run.init_per_gpu=0"});
  for (const Lever& l : run_levers(c.input())) {
    EXPECT_TRUE(l.name.ends_with("spares") || l.name == "elastic replicas" ||
                l.name == "storage bandwidth" || l.name == "prefetch")
        << l.name;
  }
}

// What a policy is worth comes from failures: without any it is worth nothing, and with many
// replicas that come and go lose less than a job that starts again.
TEST(Levers, GainComesFromFailuresAlone) {
  Case storm;
  make_stormy(storm.run());
  storm.run().requeue_wait = Seconds(1800);
  Case calm;
  calm.run().reliability.failures.clear();
  calm.run().reliability.corruption_per_gpu_hour = 0;
  for (const char* name : {"elastic replicas", "best recovery"}) {
    const std::vector<Lever> stormy = run_levers(storm.input());
    ASSERT_NE(find(stormy, name), nullptr);
    EXPECT_GT(measured(storm, *find(stormy, name)).useful_share.mean, 0.02) << name;
  }
  const std::vector<Lever> quiet = run_levers(calm.input());
  const Lever* best = find(quiet, "best recovery");
  ASSERT_NE(best, nullptr);
  EXPECT_LT(measured(calm, *best).useful_share.mean, 0.01);
}

TEST(Levers, TheBestOfEachNameIsKeptInOrderOfGain) {
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
