// What is impossible says all of what stands in its way, and how to mend it.
#include <gtest/gtest.h>

#include "perf/predict.h"
#include "world/catalog.h"

namespace assay {
namespace {

Setting trial(const char* model, const char* cluster, const char* stack, int64_t gpus, int64_t seq,
              int64_t batch) {
  Setting s;
  s.workload.model = *find_model(catalog(), model);
  s.workload.seq = seq;
  s.workload.global_batch = batch;
  s.cluster = *find_cluster(catalog(), cluster);
  s.stack = *find_stack(catalog(), stack);
  s.accelerators = gpus;
  resolve(s, catalog());
  return s;
}

TEST(Impossible, SaysWhatAndHowToMendIt) {
  const Setting s = trial("llama-3.1-70b", "h100-1024", "megatron-core", 256, 8192, 512);
  const auto why = [&](auto change) {
    Plan p = s.stack.defaults;
    change(p);
    const auto verdict = Predictor(s).impossible(p);
    return verdict ? verdict->setting : std::string();
  };
  EXPECT_EQ(why([](Plan& p) { p.tp = 3; }), "plan.tp");
  EXPECT_EQ(why([](Plan& p) { p.tp = 128; }), "plan.tp");
  EXPECT_EQ(why([](Plan& p) { p.micro_batch = 3; }), "plan.micro_batch");
  EXPECT_EQ(why([](Plan& p) { p.pp = 128; }), "plan.pp");
  EXPECT_EQ(why([](Plan& p) { p.vpp = 2; }), "plan.vpp");
  EXPECT_EQ(why([](Plan& p) { p.ep = 2; }), "plan.ep");
  EXPECT_EQ(why([](Plan& p) { p.dp = 7; }), "plan.dp");
  EXPECT_EQ(why([](Plan& p) { p.schedule = Schedule::kInterleaved; }), "plan.schedule");
  EXPECT_EQ(why([](Plan& p) { p.schedule = Schedule::kInterleaved, p.pp = 4; }), "plan.schedule");
  const auto chunks = [](Plan& p) { p.schedule = Schedule::kInterleaved, p.pp = 4, p.vpp = 2; };
  EXPECT_EQ(why(chunks), "");
  Plan wrong = s.stack.defaults;
  wrong.vpp = wrong.ep = 2;
  wrong.micro_batch = 3;
  std::vector<std::string> settings;
  for (const Impossible& i : Predictor(s).all_impossible(wrong)) settings.push_back(i.setting);
  EXPECT_EQ(settings, (std::vector<std::string>{"plan.micro_batch", "plan.vpp", "plan.ep"}));
  EXPECT_EQ(Predictor(s).impossible(wrong)->setting, settings.front());
}

// Tables lie on all ranks and MLPs on each: no degree splits layers that are not there.
TEST(Impossible, RecommendationModelsHaveNoLayersToSpread) {
  const Setting s = trial("dlrm-criteo-1tb", "h100-64", "torchrec", 64, 1, 65536);
  const auto verdicts = [&](auto change) {
    Plan p = s.stack.defaults;
    change(p);
    std::string all;
    for (const Impossible& i : Predictor(s).all_impossible(p)) {
      EXPECT_NE(i.reason.find("no layers to spread"), std::string::npos) << i.reason;
      EXPECT_EQ(i.fix, "set " + i.setting + " to 1, or leave it out");
      all += (all.empty() ? "" : " ") + i.setting;
    }
    const std::optional<Impossible> first = Predictor(s).impossible(p);
    EXPECT_EQ(first ? first->setting : "", all.substr(0, all.find(' ')));
    return all;
  };
  EXPECT_EQ(verdicts([](Plan&) {}), "");
  EXPECT_EQ(verdicts([](Plan& p) { p.tp = 2; }), "plan.tp");
  EXPECT_EQ(verdicts([](Plan& p) { p.pp = 4; }), "plan.pp");
  EXPECT_EQ(verdicts([](Plan& p) { p.cp = 2; }), "plan.cp");
  EXPECT_EQ(verdicts([](Plan& p) { p.ep = 2; }), "plan.ep");
  EXPECT_EQ(verdicts([](Plan& p) { p.tp = 3, p.pp = 4, p.vpp = 2; }), "plan.tp plan.pp plan.vpp");
}

// Nothing waits for another mistake to be mended, and what is blamed is what does not fit.
TEST(Impossible, AllOfItAtOnce) {
  Setting s = trial("mixtral-8x7b", "h100-128", "megatron-core", 128, 4096, 1023);
  Plan p = s.stack.defaults;
  p.tp = 3, p.pp = 7, p.cp = 5, p.ep = 3, p.micro_batch = 5, p.dp = 77;
  p.sequence_parallel = false;
  std::vector<std::string> settings;
  for (const Impossible& i : Predictor(s).all_impossible(p)) settings.push_back(i.setting);
  EXPECT_EQ(settings, (std::vector<std::string>{"plan.tp", "plan.dp", "plan.micro_batch", "plan.cp",
                                                "plan.tp", "plan.ep"}));
  p = s.stack.defaults;
  p.pp = 5;
  EXPECT_EQ(Predictor(s).impossible(p)->setting, "plan.pp");
  p.pp = 4, p.cp = 64;  // each divides 128
  EXPECT_EQ(Predictor(s).impossible(p)->setting, "plan.cp");
}

TEST(Impossible, SequencesAreSharedEvenly) {
  Setting s = trial("llama-3.1-70b", "h100-1024", "megatron-core", 256, 4097, 512);
  Plan p = s.stack.defaults;
  p.tp = 4, p.sequence_parallel = true;
  const auto verdict = Predictor(s).impossible(p);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->setting, "plan.sequence_parallel");
  EXPECT_EQ(verdict->fix, "set it to false, or workload.seq to 4100");
  p.sequence_parallel = false;
  EXPECT_FALSE(Predictor(s).impossible(p));
  p.sequence_parallel = true, p.tp = 1;
  EXPECT_FALSE(Predictor(s).impossible(p));
}

TEST(Impossible, OnlyShardsAreKeptOnTheHost) {
  Setting s = trial("llama-3.1-70b", "h100-256", "megatron-core", 256, 8192, 512);
  Plan p = s.stack.defaults;
  p.tp = 4, p.pp = 8, p.offload_parameters = 1;
  ASSERT_TRUE(Predictor(s).impossible(p));
  EXPECT_EQ(Predictor(s).impossible(p)->setting, "plan.offload_parameters");
  p.zero = 3;
  EXPECT_FALSE(Predictor(s).impossible(p));
}

TEST(Impossible, ShardingGroupsDivideTheRanks) {
  const Setting s = trial("llama-3.1-8b", "h100-64", "megatron-core", 64, 8192, 512);
  const auto fix = [&](int64_t group, int64_t cp) {
    Plan p = s.stack.defaults;
    p.sharding_group = group;
    p.cp = cp;
    const auto verdict = Predictor(s).impossible(p);
    EXPECT_TRUE(!verdict || verdict->setting == "plan.sharding_group");
    return verdict ? verdict->fix : std::string();
  };
  for (const int64_t good : {0, 1, 8, 64}) EXPECT_EQ(fix(good, 1), "") << good;
  EXPECT_EQ(fix(3, 1), "set it to 2 or 4, or leave it out for all of them");
  EXPECT_EQ(fix(63, 1), "set it to 32 or 64, or leave it out for all of them");
  EXPECT_EQ(fix(100, 1), "set it to 64, or leave it out for all of them");
  EXPECT_EQ(fix(64, 2), "");  // ranks of a context share the weights, too
}

}  // namespace
}  // namespace assay
