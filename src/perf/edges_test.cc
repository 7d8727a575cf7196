// Inputs at the edge of what is described: cold water, slow storage, large adapters, little memory,
// groups that leave their scale-up domain.
#include <gtest/gtest.h>

#include "perf/layout.h"
#include "perf/memory.h"
#include "perf/predict.h"
#include "perf/range.h"
#include "world/catalog.h"
#include "world/rules.h"

namespace assay {
namespace {

Setting edge_setting(const char* model, const char* cluster, int64_t accelerators) {
  const Catalog& known = catalog();
  Setting s;
  s.workload.model = *find_model(known, model);
  s.workload.seq = 4096, s.workload.global_batch = 256;
  s.cluster = *find_cluster(known, cluster);
  s.stack = *find_stack(known, "megatron-core");
  s.accelerators = accelerators;
  resolve(s, known);
  return s;
}

Plan split(const Setting& s, int64_t tp, int64_t pp) {
  Plan p = s.stack.defaults;
  p.tp = tp, p.pp = pp, p.micro_batch = 1;
  return p;
}

// Six ranks on nodes of eight: every second group begins in one node and ends in the next.
TEST(Edges, GroupsThatDoNotDivideANodeAreTorn) {
  const auto together = [](const char* cluster, int64_t accelerators, int64_t tp) {
    const Setting s = edge_setting("gpt-2", cluster, accelerators);
    return make_layout(s, split(s, tp, 1)).tensor.per_domain;
  };
  EXPECT_EQ(together("h100-1024", 24, 4), 4);
  EXPECT_EQ(together("h100-1024", 24, 6), 2);
  EXPECT_EQ(together("h100-1024", 24, 3), 1);
  EXPECT_EQ(together("h100-1024", 6, 6), 6);
  EXPECT_EQ(together("h100-1024", 48, 12), 6);
  // A rack is not filled: 64 of its 72. Where all are needed, some groups are torn.
  EXPECT_EQ(together("gb200-nvl72-2304", 2048, 64), 64);
  EXPECT_EQ(together("gb200-nvl72-2304", 2304, 64), 8);
}

// The embedding is gathered and reduced as the head is, unless the two are one matrix.
TEST(Edges, ShardedEmbeddingsTravel) {
  Setting s = edge_setting("llama-3.1-8b", "h100-1024", 64);
  s.stack = *find_stack(catalog(), "pytorch-fsdp2");
  s.stack.overlap_grad = s.stack.overlap_param = 0;
  Plan p = s.stack.defaults;
  p.micro_batch = 1;
  s.workload.model.tied_embeddings = true;
  const Prediction one = Predictor(s).predict(p);
  s.workload.model.tied_embeddings = false;
  const Prediction two = Predictor(s).predict(p);
  // Gathered once in a micro-batch, as it stays; layers twice.
  EXPECT_GT(two.ledger[Account::kCommParam], one.ledger[Account::kCommParam] * 1.02);
  EXPECT_GT(two.ledger[Account::kCommGrad], one.ledger[Account::kCommGrad] * 1.04);
}

// Colder than what the constants were fitted at: less is lost to the cap, and nothing is negative.
TEST(Edges, ColdCoolantIsNoNegativeAccount) {
  Setting s = edge_setting("llama-3.1-70b", "h100-1024", 64);
  const Plan p = split(s, 4, 4);
  double before = 0;
  for (const double inlet : {45.0, 35.0, 25.0, 24.9, 18.0, 5.0}) {
    s.cluster.inlet_c = inlet;
    const Prediction r = Predictor(s).predict(p);
    for (size_t i = 0; i < kAccounts; ++i) EXPECT_GE(r.ledger[static_cast<Account>(i)].v, 0);
    EXPECT_NEAR(r.ledger.paid() / r.step, 1, 1e-12);
    const double thermal = r.ledger[Account::kThermal].v;
    EXPECT_TRUE(inlet > 25 || thermal == 0) << inlet;
    EXPECT_TRUE(before == 0 || r.step.v <= before * (1 + 1e-12)) << inlet;
    before = r.step.v;
  }
}

// Every model of the catalog, at sequences of any length: an account is never negative, so what is
// booked as useful is less than what the kernels take.
TEST(Edges, NoModelHasANegativeAccount) {
  for (const Model& m : catalog().models) {
    for (const int64_t seq : {512, 8192, 65536}) {
      Setting s = edge_setting(m.name.c_str(), "h100-1024", 64);
      s.workload.seq = seq;
      for (const auto& [task, optimizer] : {std::pair(Task::kPretrain, Optimizer::kAdam),
                                            {Task::kPretrain, Optimizer::kMuon},
                                            {Task::kLora, Optimizer::kAdam}}) {
        s.workload.task = task;
        s.workload.optimizer = optimizer;
        const Prediction r = Predictor(s).predict(split(s, 1, 1));
        for (size_t i = 0; i < kAccounts; ++i) {
          const Account a = static_cast<Account>(i);
          EXPECT_GE(r.ledger[a].v, -1e-9 * r.step.v) << m.name << ' ' << seq << ' ' << info(a).key;
        }
      }
    }
  }
}

// Slots of a capacity are the same on every rank: a router's skew drops tokens, it takes no time.
TEST(Edges, CapacityBoundsSkew) {
  const Setting s = edge_setting("mixtral-8x7b", "h100-1024", 64);
  Plan p = split(s, 1, 1);
  p.ep = 8, p.expert_capacity = 1.25;
  const Prediction even = Predictor(s).predict(p);
  p.expert_skew = 3;
  const Prediction skewed = Predictor(s).predict(p);
  EXPECT_EQ(skewed.step, even.step);
  EXPECT_EQ(skewed.memory.reserved, even.memory.reserved);
}

// 32 bits hold weights, gradients and two moments: 16 bytes a parameter, whatever the stack keeps
// in 16 bits.
TEST(Edges, SinglePrecisionHoldsSixteenBytes) {
  for (const char* stack : {"megatron-core", "megatron-lm", "pytorch-fsdp2", "deepspeed-zero"}) {
    Setting s = edge_setting("llama-3.1-8b", "h100-1024", 8);
    s.stack = *find_stack(catalog(), stack);
    resolve(s, catalog());
    Plan p = split(s, 1, 1);
    p.precision = Precision::kFp32, p.zero = 0;
    Predictor predictor(s);
    const StateBytes k = state_bytes(predictor.setting_for(p), p);
    EXPECT_EQ(k.weight + k.gradient + k.optimizer, 16) << stack;
  }
}

// What a sample holds is read from storage in every step, however it is stated.
TEST(Edges, SamplesAreReadFromStorage) {
  Setting s = edge_setting("llama-3.1-8b", "h100-1024", 64);
  const Plan p = split(s, 1, 1);
  const double fast = Predictor(s).predict(p).step.v;
  s.cluster.storage_bandwidth = Bandwidth(1e9);
  s.workload.sample_bytes = Bytes(1e9);
  const Prediction r = Predictor(s).predict(p);
  EXPECT_GT(r.ledger[Account::kStorage].v, 256 - fast * 1.1);
  EXPECT_LT(r.ledger[Account::kStorage].v, 256);
  s.workload.sample_bytes = Bytes(4.0 * 4096);  // its tokens, as where nothing is stated
  const double tokens = Predictor(s).predict(p).step.v;
  s.workload.sample_bytes = Bytes(0);
  EXPECT_EQ(Predictor(s).predict(p).step.v, tokens);
}

// Small adapters cost their passes over memory, large ones their arithmetic.
TEST(Edges, AdaptersOfLargeRankCostArithmetic) {
  Setting s = edge_setting("llama-3.1-8b", "h100-1024", 8);
  s.workload.task = Task::kLora;
  const Plan p = split(s, 1, 1);
  const auto step = [&](int64_t rank) {
    s.workload.lora_rank = rank;
    return Predictor(s).predict(p).step.v;
  };
  EXPECT_EQ(step(8), step(64));
  EXPECT_GT(step(1024), step(64));
  EXPECT_GT(step(4096), 1.1 * step(1024));
}

// Writing into each other's memory ends where the scale-up links end.
TEST(Edges, TensorOverlapStaysInTheScaleUpDomain) {
  const Setting s = edge_setting("llama-3.1-405b", "h100-1024", 128);
  const auto wire = [&](int64_t tp, bool overlap) {
    Plan p = split(s, tp, 8);
    p.overlap_tp = overlap;
    return Predictor(s).predict(p).ledger[Account::kCommTensor].v;
  };
  EXPECT_LT(wire(8, true), wire(8, false));
  EXPECT_EQ(wire(16, true), wire(16, false));
}

// Attention and MLP side by side exchange once where one after the other exchange twice, move less
// between matmuls and keep less; the matmuls are the same.
TEST(Edges, BlocksSideBySide) {
  Setting s = edge_setting("gpt-3-175b", "h100-1024", 128);
  Plan p = split(s, 8, 8);
  p.overlap_grad = p.overlap_param = false;
  const Prediction apart = Predictor(s).predict(p);
  const Bytes kept = Predictor(s).memory(p).activations;
  s.workload.model.parallel_block = true;
  const Prediction together = Predictor(s).predict(p);
  const auto share = [&](Account a) { return together.ledger[a] / apart.ledger[a]; };
  EXPECT_GT(share(Account::kCommTensor), 0.45);  // the head's exchanges stay
  EXPECT_LT(share(Account::kCommTensor), 0.6);
  EXPECT_LT(share(Account::kMemoryBound), 0.95);
  EXPECT_NEAR(share(Account::kUseful), 1, 1e-9);
  EXPECT_LT(Predictor(s).memory(p).activations, kept);
}

// An optimizer on the host must fit there.
TEST(Edges, HostsHoldWhatIsOffloaded) {
  Setting s = edge_setting("gpt-3-175b", "h100-1024", 8);
  Plan p = split(s, 8, 1);
  EXPECT_EQ(host_memory(s, p).v, 0);
  p.offload_optimizer = 1, p.zero = 1;
  const Bytes all = host_memory(s, p);
  EXPECT_NEAR(all.v, parameters(s.workload.model) * s.stack.optimizer_bytes, 1);
  s.cluster.node.host_memory = all;
  EXPECT_TRUE(host_holds(s, p));
  s.cluster.node.host_memory = all * 0.99;
  EXPECT_FALSE(host_holds(s, p));
  s.cluster.node.host_memory = Bytes(0);  // not stated
  EXPECT_TRUE(host_holds(s, p));
  s.accelerators = 16;  // two nodes share it
  EXPECT_NEAR(host_memory(s, p) / all, 0.5, 1e-12);
}

TEST(Edges, BestMeasuredByPrecision) {
  const Kernels& hopper = *find_kernels(catalog(), "hopper");
  EXPECT_GT(best_measured(hopper, Precision::kBf16), best_measured(hopper, Precision::kFp8));
  EXPECT_GT(best_measured(hopper, Precision::kFp8), 0.4);
  EXPECT_EQ(best_measured(Kernels{}, Precision::kBf16), 0);
}

TEST(Edges, JitterWidensTheRange) {
  Setting s = edge_setting("llama-3.1-8b", "h100-1024", 1024);
  const Plan p = split(s, 1, 1);
  s.workload.global_batch = 1024;
  const auto width = [&](double jitter) {
    s.stack.jitter = jitter;
    const Prediction r = Predictor(s).predict(p);
    return r.high / r.step;
  };
  EXPECT_GT(width(0.02), width(0.001) * 1.01);
}

}  // namespace
}  // namespace assay
