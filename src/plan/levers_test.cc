// Advice must survive being followed: every lever and every fix is applied by the very options that
// it prints, and the promise must hold.
#include "plan/levers.h"

#include <gtest/gtest.h>

#include "plan/study.h"

namespace assay {
namespace {

struct Asked {
  std::vector<std::string> inputs, sets;
  int64_t gpus = 0;
};

tl::expected<Description, Diagnostics> described(const Asked& a) {
  Request r;
  r.inputs = a.inputs;
  r.sets = a.sets;
  r.gpus = a.gpus;
  return describe(r, catalog());
}

// Words of a command line; quotes keep a word together.
std::vector<std::string> words(const std::string& command) {
  std::vector<std::string> found(1);
  bool quoted = false;
  for (const char c : command) {
    if (c == '\'') {
      quoted = !quoted;
    } else if (c == ' ' && !quoted) {
      found.emplace_back();
    } else {
      found.back() += c;
    }
  }
  return found;
}

Asked followed(Asked a, const std::string& command) {
  if (command.empty()) {
    std::erase_if(a.sets, [](const std::string& s) { return s.starts_with("plan."); });
    return a;
  }
  const std::vector<std::string> all = words(command);
  for (size_t i = 0; i + 1 < all.size(); i += 2) {
    if (all[i] == "--gpus") {
      a.gpus = std::stoll(all[i + 1]);
    } else {
      EXPECT_EQ(all[i], "--set") << command;
      a.sets.push_back(all[i + 1]);
    }
  }
  return a;
}

double tokens_per_s(const PlanResult& r) { return r.prediction.tokens_per_s; }

void expect_kept(const Asked& asked) {
  SCOPED_TRACE(asked.inputs[0] + " on " + asked.inputs[1]);
  const auto start = described(asked);
  ASSERT_TRUE(start) << render(start.error());
  const PlanResult now = study(*start, catalog());
  std::vector<WhatIf> advice = now.fixes;
  advice.insert(advice.end(), now.levers.begin(), now.levers.end());
  EXPECT_FALSE(advice.empty());
  for (const WhatIf& w : advice) {
    SCOPED_TRACE(w.label + ": " + w.command);
    const auto then = described(followed(asked, w.command));
    ASSERT_TRUE(then) << render(then.error());
    StudyOptions options;
    options.what_ifs = false;
    const PlanResult result = study(*then, catalog(), options);
    ASSERT_TRUE(result.fits);
    EXPECT_NEAR(tokens_per_s(result), w.prediction.tokens_per_s, 1e-6 * tokens_per_s(result));
  }
}

TEST(Advice, HoldsWhereNothingFits) {
  expect_kept({{"llama-3.1-70b", "b200-8"}, {}});  // another stack among them
  expect_kept({{"llama-3.1-70b", "h100-8"}, {}});
  expect_kept({{"llama-2-7b", "h100-1"}, {}});           // no NICs: more nodes are no way out
  expect_kept({{"llama-3.1-70b", "h100-1024"}, {}, 8});  // a part of a cluster
}

TEST(Advice, HoldsForAPlanThatIsStated) {
  const std::vector<std::string> plan{"plan.tp=1", "plan.pp=1", "plan.micro_batch=16"};
  std::vector<std::string> sets = plan;
  sets.push_back("workload.seq=32768");
  expect_kept({{"llama-3.1-8b", "h100-8"}, sets});
  std::vector<std::string> stages{"plan.tp=8", "plan.pp=2", "plan.micro_batch=1"};
  expect_kept({{"llama-3.1-70b", "h100-64"}, stages});
  // Chunks beside a schedule that has none are refused; the advice states both.
  stages.push_back("plan.schedule=1f1b");
  expect_kept({{"llama-3.1-70b", "h100-64"}, stages});
}

TEST(Advice, HoldsForASearchedPlan) { expect_kept({{"llama-3.1-8b", "h100-16"}, {}}); }

// One node has no fabric; several are joined as such nodes usually are, and that is said.
TEST(Advice, MoreOfASingleNodeAreJoined) {
  const auto one = described({{"llama-3.1-8b", "h100-8"}, {"cluster.nodes=8"}});
  const auto many = described({{"llama-3.1-8b", "h100-64"}, {}});
  ASSERT_TRUE(one && many);
  EXPECT_EQ(one->setting.cluster.fabric.kind, many->setting.cluster.fabric.kind);
  EXPECT_EQ(one->origins.at("cluster.fabric").mark, 'a');
  StudyOptions options;
  options.what_ifs = false;
  EXPECT_DOUBLE_EQ(study(*one, catalog(), options).prediction.step.v,
                   study(*many, catalog(), options).prediction.step.v);
}

const WhatIf* with_command(const std::vector<WhatIf>& all, const std::string& part) {
  for (const WhatIf& w : all) {
    if (w.command.find(part) != std::string::npos) return &w;
  }
  return nullptr;
}

PlanResult planned(const Asked& asked) {
  const auto d = described(asked);
  EXPECT_TRUE(d) << render(d.error());
  return study(*d, catalog());
}

TEST(Advice, NamesFormatsThatTheAcceleratorHas) {
  const PlanResult amd = planned({{"llama-3.1-8b", "mi355x-1024"}, {}, 64});
  EXPECT_NE(with_command(amd.levers, "precision=mxfp4"), nullptr);
  EXPECT_EQ(with_command(amd.levers, "precision=nvfp4"), nullptr);
}

// 13,333 is odd: kernels load it element by element.
TEST(Advice, PadsWidthsThatAreSlow) {
  const Asked odd{{"llama-3.1-8b", "h100-8"}, {"workload.model.ffn=13333"}};
  const WhatIf* padded = with_command(planned(odd).levers, "workload.model.ffn=13376");
  ASSERT_NE(padded, nullptr);
  expect_kept(odd);
  EXPECT_EQ(with_command(planned({{"llama-3.1-8b", "h100-8"}, {}}).levers, "model."), nullptr);
}

// A head of 256,000 words: of 46 layers the last of four stages holds 10 rather than 11.
TEST(Advice, TakesLayersOffTheStageWithTheHead) {
  Asked even{{"gemma-2-27b", "h100-64"}, {"plan.tp=2", "plan.pp=4", "plan.micro_batch=1"}};
  const PlanResult r = planned(even);
  const WhatIf* fewer = with_command(r.levers, "plan.last_layers=10");
  ASSERT_NE(fewer, nullptr);
  EXPECT_LT(fewer->step_change, -0.02);
  expect_kept(even);
  even.sets.push_back("plan.last_layers=10");
  EXPECT_EQ(with_command(planned(even).levers, "plan.last_layers"), nullptr);
}

TEST(Advice, SaysWhenTheBatchBinds) {
  const PlanResult r = planned({{"llama-3.1-8b", "h100-1024"}, {"workload.global_batch=1024"}, 96});
  const WhatIf* equal = with_command(r.levers, "workload.global_batch=1536");
  ASSERT_NE(equal, nullptr);
  EXPECT_LT(equal->step_change, -0.02);
}

TEST(Levers, ModelsWithoutAttention) { expect_kept({{"mamba2-2.7b", "h100-64"}, {}, 8}); }

TEST(Advice, OffersNoAcceleratorWithoutTheFormat) {
  const PlanResult r = planned({{"llama-3.1-8b", "rtx4090-8"}, {"workload.task=sft"}, 4});
  EXPECT_EQ(with_command(r.fixes, "v100"), nullptr);
}

// Mixed precision that somebody forgot is what moves most.
TEST(Levers, WideMatmulsHaveANarrowLever) {
  for (const char* precision : {"fp32", "tf32"}) {
    const auto d =
        described({{"llama-3.1-8b", "h100-64"}, {std::string("plan.precision=") + precision}});
    ASSERT_TRUE(d);
    const PlanResult r = study(*d, catalog(), {});
    ASSERT_FALSE(r.levers.empty());
    EXPECT_EQ(r.levers.front().label, "BF16 matrix math");
  }
}

TEST(Levers, KernelsThatAnArchitectureInheritsAreAssumed) {
  for (const auto& [name, assumed] : std::map<std::string, bool>{
           {"vr200-288gb", true}, {"ascend-910b", true}, {"h100-sxm5-80gb", false}}) {
    const auto d = described({{"llama-3.1-8b", "h100-8"}, {"cluster.node.accelerator=" + name}});
    ASSERT_TRUE(d) << render(d.error());
    EXPECT_EQ(study(*d, catalog(), {}).kernels_assumed, assumed) << name;
  }
}

}  // namespace
}  // namespace assay
