// Buffers beside weights and activations: 8-bit copies, what stays gathered, what is cached.
#include <gtest/gtest.h>

#include "perf/memory.h"
#include "perf/predict.h"
#include "world/catalog.h"

namespace assay {
namespace {

Setting on_h200(const std::string& model, const std::string& stack, int64_t accelerators,
                int64_t batch) {
  Setting s;
  s.workload.model = *find_model(catalog(), model);
  s.workload.seq = 4096;
  s.workload.global_batch = batch;
  s.cluster = *find_cluster(catalog(), "h200-1024");
  s.accelerators = accelerators;
  s.stack = *find_stack(catalog(), stack);
  resolve(s, catalog());
  return s;
}

MemoryUse held(const Setting& s, const Plan& p) {
  Predictor predictor(s);
  EXPECT_FALSE(predictor.impossible(p).has_value()) << predictor.impossible(p)->reason;
  return predictor.memory(p);
}

// A byte and its transpose for each weight of a layer; none in 16 bits, none where weights are held
// in 8.
TEST(Memory, EightBitCopiesOfWeights) {
  Setting s = on_h200("llama-3.1-8b", "megatron-lm", 8, 8);
  Plan p = s.stack.defaults;
  p.precision = Precision::kFp8;
  const Bytes with = held(s, p).buffers;
  s.stack.weight_copies = 0;
  const Bytes without = held(s, p).buffers;
  EXPECT_NEAR((with - without).v, 2 * 6.98e9, 0.05e9);
  s.stack.weight_copies = 2;
  s.stack.weight_comm_bytes = 1;
  EXPECT_EQ(held(s, p).buffers, without);
  s.stack.weight_comm_bytes = 2;
  p.precision = Precision::kBf16;
  EXPECT_EQ(held(s, p).buffers, without);
}

TEST(Memory, AFusedProjectionStaysBesideWhatIsRotated) {
  Setting s = on_h200("llama-3.1-8b", "megatron-lm", 8, 8);
  const Plan p = s.stack.defaults;
  const Bytes before = held(s, p).activations;
  s.stack.fused_qkv = true;
  const double q_and_k = 4096 + 1024;
  EXPECT_NEAR((held(s, p).activations - before).v, 32 * 4096 * q_and_k * 2, 1e6);
}

// Qwen3 14B on 8 GPUs under torchtitan of May 2026, eager, whole layers again (titan-q14b-b200 of
// data/blind_runs.csv; reserved, GiB): head and loss run in eight parts.
TEST(Memory, LossInPartsHoldsAPartOfTheLogits) {
  struct Row {
    int64_t tp, micro_batch, zero;  // zero 2: weights stay gathered
    double gib;
  };
  for (const Row& r : {Row{1, 4, 3, 50.1}, Row{1, 8, 2, 84.5}, Row{2, 4, 3, 39.5}}) {
    Setting s = on_h200("qwen3-14b", "torchtitan", 8, 8 / r.tp * r.micro_batch);
    Plan p = s.stack.defaults;
    p.tp = r.tp, p.zero = r.zero;
    p.micro_batch = r.micro_batch;
    p.recompute = Recompute::kFull;
    p.early_stop = false;
    EXPECT_NEAR(held(s, p).reserved / kGiB / r.gib, 1, 0.06) << r.tp << " " << r.micro_batch;
    s.stack.loss_chunks = 1;
    EXPECT_GT(held(s, p).reserved / kGiB / r.gib, 1.3);
  }
}

// Experts that are spread over ranks and left out of FSDP are held whole, with all their states.
TEST(Memory, ExpertsOutsideOfWhatIsSharded) {
  Setting s = on_h200("qwen3-30b-a3b", "pytorch-fsdp2", 64, 64);
  Plan p = s.stack.defaults;
  p.ep = 8;
  const MemoryUse sharded = held(s, p);
  s.stack.experts_whole = 2;
  const MemoryUse whole = held(s, p);
  const double experts = 48.0 * 128 * 3 * 2048 * 768 / 8;  // of a rank
  EXPECT_NEAR((whole.optimizer - sharded.optimizer).v, experts * 8 * 7 / 8, 0.01 * experts);
  EXPECT_LT(whole.buffers, sharded.buffers);  // nor gathered
  p.ep = 1;
  EXPECT_EQ(held(s, p).optimizer.v, [&] {
    s.stack.experts_whole = 0;
    return held(s, p).optimizer.v;
  }());
}

TEST(Memory, WeightsThatStayGathered) {
  Setting s = on_h200("llama-3.1-8b", "pytorch-fsdp2", 8, 8);
  const Plan p = s.stack.defaults;
  const Bytes two_layers = held(s, p).buffers;
  s.stack.gathered_limit = 1e9;
  const double layer = 218e6;
  EXPECT_NEAR((held(s, p).buffers - two_layers).v, (1e9 - 2 * layer) * 2, 0.01e9);
  s.stack.gathered_limit = 1e12;
  EXPECT_NEAR((held(s, p).buffers - two_layers).v, 30 * layer * 2, 0.05e9);
}

// GPT-2 under torch.compile and autocast on one H200, two micro-batches, in MiB: allocated and
// reserved (PyTorch 2.11; the driver shows 767 more).
TEST(Memory, ABlockOfLogitsStaysCached) {
  struct Row {
    int64_t micro;
    double allocated, reserved;
  };
  for (const Row& row :
       {Row{8, 7295, 7520}, Row{16, 12275, 12564}, Row{32, 22268, 24110}, Row{64, 42220, 47290}}) {
    Setting s = on_h200("gpt-2", "nanogpt", 1, 2 * row.micro);
    s.workload.seq = 1024;
    Plan p = s.stack.defaults;
    p.micro_batch = row.micro;
    const MemoryUse u = held(s, p);
    constexpr double kMiB = 1 << 20;
    EXPECT_NEAR(u.most_allocated.v / kMiB / row.allocated, 1, 0.04) << row.micro;
    EXPECT_NEAR(u.reserved.v / kMiB / row.reserved, 1, 0.07) << row.micro;
  }
}

TEST(Memory, CapacityIsWhatADriverShows) {
  const auto usable = [](const char* name) {
    return usable_memory(*find_accelerator(catalog(), name));
  };
  EXPECT_NEAR(usable("h100-sxm5-80gb") / kGiB, 81559.0 / 1024 - 0.5, 0.6);
  EXPECT_NEAR(usable("h200-sxm5-141gb") / kGiB, 143771.0 / 1024 - 0.5, 0.8);
}

}  // namespace
}  // namespace assay
