#include <algorithm>

#include <gtest/gtest.h>

#include "perf/predict.h"
#include "world/catalog.h"

namespace assay {
namespace {

Setting job(const char* model, const char* cluster) {
  const Catalog& known = catalog();
  Setting s;
  s.workload.model = *find_model(known, model);
  s.workload.seq = 4096, s.workload.global_batch = 1024;
  s.cluster = *find_cluster(known, cluster);
  s.stack = *find_stack(known, "megatron-core");
  s.accelerators = s.cluster.accelerators();
  resolve(s, known);
  return s;
}

const Derivation* input(const Derivation& d, const std::string& name) {
  const auto found = std::find_if(d.inputs.begin(), d.inputs.end(),
                                  [&name](const Derivation& i) { return i.name == name; });
  return found == d.inputs.end() ? nullptr : &*found;
}

// A figure that a slow link made cannot be recomputed without it.
TEST(Explain, ASlowLinkIsAnInputOfWhatPassesIt) {
  Setting s = job("llama-3.1-8b", "h100-128");
  Plan p = s.stack.defaults;
  p.tp = 8, p.micro_batch = 1;
  EXPECT_EQ(input(Predictor(s).explain(p, "comm.gradients"), "their speed, of nominal"), nullptr);
  s.cluster.fabric.degraded_links = 0.01, s.cluster.fabric.degraded_speed = 0.1;
  const Derivation d = Predictor(s).explain(p, "comm.gradients");
  const Derivation* speed = input(d, "their speed, of nominal");
  ASSERT_NE(speed, nullptr);
  EXPECT_DOUBLE_EQ(speed->value, 10);
  EXPECT_EQ(speed->path, "cluster.fabric.degraded_speed");
  ASSERT_NE(input(d, "slow links, of all"), nullptr);
  EXPECT_NE(input(d, "on the wire, layers")->equation.find("10 % of its slowest link"),
            std::string::npos);
}

// A slow end that no scatter of runs explains has a reason of its own.
TEST(Explain, TheSlowEndOfExpertsIsDerived) {
  Setting s = job("deepseek-v3", "gb200-nvl72-2304");
  s.accelerators = 2048, s.workload.global_batch = 1024;
  s.stack.expert_host_latent = Seconds(0.025);
  Plan p = s.stack.defaults;
  p.tp = 2, p.pp = 4, p.ep = 64, p.etp = 1, p.micro_batch = 1, p.expert_skew = 1;
  Predictor predictor(s);
  const Prediction r = predictor.predict(p);
  ASSERT_TRUE(r.experts_wait);
  const Derivation step = predictor.explain(p, "step_time");
  const Derivation* slow = input(step, "slow end");
  ASSERT_NE(slow, nullptr);
  EXPECT_DOUBLE_EQ(slow->value, r.high.v);
  const double host = input(*slow, "host time of a layer and pass")->value *
                      input(*slow, "expert layers of a stage")->value *
                      input(*slow, "micro-batches")->value * 2 /
                      input(*slow, "speed of the host")->value;
  EXPECT_NEAR(host / r.high.v, 1, 1e-9);
  p.cuda_graphs = true;
  EXPECT_FALSE(predictor.predict(p).experts_wait);
  EXPECT_EQ(input(predictor.explain(p, "step_time"), "slow end"), nullptr);
}

// States are their bytes times the parameters that are told beside them.
TEST(Explain, StatesComeToTheirParameters) {
  const Setting s = job("llama-3.1-70b", "h100-128");
  Plan p = s.stack.defaults;
  p.tp = 4, p.pp = 4;
  for (const char* figure : {"weights", "gradients", "optimizer"}) {
    const Derivation d = Predictor(s).explain(p, figure);
    const Derivation* ends = input(d, "of embedding and head");
    const double parameters = input(d, "parameters of a rank's layers")->value +
                              (ends != nullptr ? ends->value : 0);
    const Derivation* ranks = input(d, "ranks that share them");
    const double shared = ranks != nullptr ? ranks->value : 1;
    EXPECT_NEAR(parameters * input(d, "bytes per parameter")->value / shared / d.value, 1, 1e-9)
        << figure;
  }
}

// Experts are shared by fewer ranks than the rest.
TEST(Explain, StatesOfExpertsHaveRanksOfTheirOwn) {
  const Setting s = job("mixtral-8x7b", "h100-128");
  Plan p = s.stack.defaults;
  p.tp = 1, p.pp = 2, p.ep = 4, p.etp = 1, p.micro_batch = 1, p.zero = 1;
  const Derivation d = Predictor(s).explain(p, "optimizer");
  EXPECT_NE(d.equation.find("over 64 ranks, of experts over 16"), std::string::npos) << d.equation;
  const double dense =
      input(d, "parameters of a rank's layers")->value + input(d, "of embedding and head")->value;
  const double each = input(d, "bytes per parameter")->value;
  const double sum = each * (dense / input(d, "ranks that share them")->value +
                             input(d, "parameters of its experts")->value /
                                 input(d, "ranks that share an expert")->value);
  EXPECT_NEAR(sum / d.value, 1, 1e-9);
}

// Bytes of a figure, counted from the innermost inputs that are told: factors, and beside them
// what is added.
double counted(const Derivation& d) {
  if (d.inputs.empty()) return d.unit == "%" ? d.value / 100 : d.value;
  const bool shared = d.name == "optimizer's scratch" || d.name.starts_with("by ");
  double sum = 0, product = 1, times = 1;
  bool factors = false;
  for (const Derivation& i : d.inputs) {
    if (i.name == "times") {
      times = i.value;
    } else if (i.unit == "B" && !shared) {
      sum += counted(i);
    } else {
      product *= counted(i);
      factors = true;
    }
  }
  return (sum + (factors ? product : 0)) * times;
}

TEST(Explain, WhatIsNoStateIsCountedToo) {
  for (const char* stack :
       {"megatron-core", "pytorch-fsdp2", "pytorch-autocast", "deepspeed-zero", "pytorch-eager"}) {
    for (const char* model : {"llama-3.1-8b", "mixtral-8x7b", "llama-3.2-1b"}) {
      Setting s = job(model, "h100-128");
      s.stack = *find_stack(catalog(), stack);
      for (const int64_t zero : {1, 2, 3}) {
        Plan p = s.stack.defaults;
        p.zero = zero, p.micro_batch = 1, p.pp = zero == 1 ? 4 : 1;
        for (const char* figure : {"activations", "buffers", "framework"}) {
          const Derivation d = Predictor(s).explain(p, figure);
          EXPECT_EQ(d.inputs.empty(), d.value == 0) << figure << " " << stack;
          EXPECT_NEAR(counted(d), d.value, 1e-6 * d.value) << figure << " " << stack << model;
        }
      }
    }
  }
}

TEST(Explain, WhatRunsAgainComesToItsAccount) {
  const Setting s = job("mixtral-8x7b", "h100-128");
  Plan p = s.stack.defaults;
  p.ep = 8, p.recompute = Recompute::kFull;
  const Derivation d = Predictor(s).explain(p, "kernels.recompute");
  const double layers = 32 * input(d, "micro-batches")->value / input(d, "stages")->value;
  const double each = input(d, "a layer with experts, run again")->value * 1e-6;
  EXPECT_NEAR(each * layers / d.value, 1, 1e-9);
}

// What an exchange is said to consist of makes up its account, collective by collective.
void expect_exchange(const Setting& s, const Plan& p, const char* figure) {
  const Derivation d = Predictor(s).explain(p, figure);
  double wire = 0;
  for (const Derivation& part : d.inputs) {
    if (part.name.starts_with("on the wire")) wire += part.value;
  }
  ASSERT_GT(wire, 0) << figure;
  const auto value = [&](const char* name) {
    const Derivation* i = input(d, name);
    return i != nullptr ? i->value : 0;
  };
  const double shown = value("what shows"), hidden = value("cost of what is hidden") / 100;
  const double sum =
      value("times a step") * (shown + (wire - shown) * hidden + value("first layer")) +
      value("tied embedding");
  EXPECT_NEAR(sum / d.value, 1, 1e-9) << figure;
}

TEST(Explain, ExchangesOfDataParallelRanksAddUp) {
  for (const char* stack : {"megatron-core", "deepspeed-zero", "pytorch-fsdp2"}) {
    for (const char* model : {"llama-3.1-8b", "mixtral-8x7b"}) {
      Setting s = job(model, "h100-128");
      s.stack = *find_stack(catalog(), stack);
      s.accelerators = 32;
      for (int64_t zero = 0; zero <= 3; ++zero) {
        Plan p = s.stack.defaults;
        p.zero = zero, p.micro_batch = 1, p.sharding_group = 8;
        expect_exchange(s, p, "comm.gradients");
        if (zero > 0) expect_exchange(s, p, "comm.parameters");
      }
    }
  }
  const Setting tied = job("llama-3.2-1b", "h100-128");
  Plan p = tied.stack.defaults;
  p.pp = 4, p.vpp = 2, p.micro_batch = 1;
  expect_exchange(tied, p, "comm.gradients");
}

// Groups that share one copy scatter among themselves, and add up between copies.
TEST(Explain, CopiesOfTheWeightsAreTold) {
  Setting s = job("llama-3.1-8b", "h100-128");
  s.accelerators = 32;
  Plan p = s.stack.defaults;
  p.zero = 1, p.micro_batch = 1, p.sharding_group = 8;
  const Derivation d = Predictor(s).explain(p, "comm.gradients");
  ASSERT_GE(d.inputs.size(), 2u);
  EXPECT_TRUE(d.inputs[0].equation.starts_with("reduce-scatter of")) << d.inputs[0].equation;
  EXPECT_NE(d.inputs[0].equation.find("over 8 ranks"), std::string::npos) << d.inputs[0].equation;
  EXPECT_TRUE(d.inputs[1].equation.starts_with("all-reduce of")) << d.inputs[1].equation;
  EXPECT_NE(d.inputs[1].equation.find("over 4 ranks"), std::string::npos) << d.inputs[1].equation;
}

// The passes that hide an exchange follow from the chunks of a stage, and are not their number.
TEST(Explain, ChunksAreWhatThePlanStates) {
  const Setting s = job("llama-3.1-70b", "h100-128");
  Plan p = s.stack.defaults;
  p.tp = 4, p.pp = 4, p.vpp = 5, p.micro_batch = 1;
  const Derivation d = Predictor(s).explain(p, "comm.gradients");
  const Derivation* passes = input(d, "passes that hide it");
  ASSERT_NE(passes, nullptr);
  EXPECT_DOUBLE_EQ(passes->value, 1 + 4 * (1 - 1.0 / 5));
  EXPECT_TRUE(passes->path.empty());
  const Derivation* chunks = input(d, "chunks of a stage");
  ASSERT_NE(chunks, nullptr);
  EXPECT_DOUBLE_EQ(chunks->value, 5);
  EXPECT_EQ(chunks->path, "plan.vpp");
}

// Accounts too small for a line of their own have one together.
TEST(Explain, AccountsAddUpToTheStep) {
  Setting s = job("mixtral-8x7b", "h100-128");
  Plan p = s.stack.defaults;
  p.tp = 2, p.ep = 4, p.etp = 1, p.micro_batch = 1;
  const Derivation step = Predictor(s).explain(p, "step_time");
  double sum = 0;
  for (const Derivation& part : step.inputs) {
    if (part.name != "slow end") sum += part.value;
  }
  EXPECT_NEAR(sum, step.value, 1e-9 * step.value);
}

}  // namespace
}  // namespace assay
