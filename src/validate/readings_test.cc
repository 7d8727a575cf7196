// Cells and notes as people write them, and what a run is then taken to be.
#include <algorithm>

#include <gtest/gtest.h>

#include "validate/scenario_case.h"

namespace assay {
namespace {

bool assumes(const Scenario& s, const std::string& words) {
  return std::any_of(s.assumed.begin(), s.assumed.end(),
                     [&](const std::string& a) { return a.find(words) != std::string::npos; });
}

TEST(Readings, ChunksOfAStage) {
  struct Row {
    const char *cell, *notes;
    int64_t chunks;  // of 20 layers under recipes that cut stages by two
  };
  const Row rows[] = {
      {"", "", 10},
      {"2", "", 2},
      {"VP2", "", 2},
      {"x2", "", 2},
      {"two", "", 2},
      {"off", "", 1},
      {"none", "", 1},
      {"0", "", 1},
      {"5 layers per virtual stage", "", 4},
      {"", "1F1B", 1},
      {"", "1F1B schedule", 1},
      {"", "GPipe", 1},
      {"", "no interleaving", 1},
      {"", "early recipe without pipeline interleaving", 1},
      {"", "VPP off", 1},
      {"", "non-interleaved 1F1B", 1},
      {"", "no virtual stages", 1},
      {"", "virtual_pipeline_model_parallel_size=2", 2},
      {"", "num-layers-per-virtual-pipeline-stage 5", 4},
      {"", "2 virtual stages", 2},
      {"", "EP all-to-all overlapped in the 1F1B schedule", 10},
      {"", "vpp and recompute not stated", 10},
  };
  for (const Row& row : rows) {
    TrainingRun r = base();
    r.framework = "NeMo 24.07", r.layers = 40, r.pp = 2;
    r.vpp_text = row.cell, r.notes = row.notes;
    EXPECT_EQ(mapped(r).plan.vpp, row.chunks) << row.cell << row.notes;
  }
}

// Chunks have to be asked for, but in recipes; a submission without a name is a vendor's.
TEST(Readings, InterleavingIsAskedFor) {
  TrainingRun r = base();
  r.layers = 40, r.pp = 2;
  for (const char* framework : {"Frobnicator 3", "PyTorch", "Megatron-LM"}) {
    r.framework = framework;
    EXPECT_EQ(mapped(r).plan.vpp, 1) << framework;
  }
  r.notes = "interleaved schedule";
  EXPECT_EQ(mapped(r).plan.vpp, 10);
  r.framework = "", r.notes = "MLPerf Training v4.0";
  EXPECT_EQ(mapped(r).plan.vpp, 10);
}

TEST(Readings, CopiesOfShardedWeights) {
  struct Row {
    const char *framework, *zero;
    std::optional<int64_t> dp, group;
    int64_t tp, zero_stage, sharding_group;
  };
  const std::optional<int64_t> none;
  const Row rows[] = {
      {"torchtitan", "FSDP2", 1, none, 1, 3, 0},
      {"torchtitan", "FSDP2", 4, none, 1, 3, 8},
      {"torchtitan", "HSDP", 4, 8, 1, 3, 8},
      {"torchtitan", "HSDP", none, none, 1, 3, 8},
      {"torchtitan", "", 4, none, 1, 3, 8},
      {"DeepSpeed", "ZeRO-3", 4, none, 1, 3, 8},
      {"torchtitan", "dp_shard=32", none, none, 1, 3, 0},
      {"torchtitan", "data_parallel_shard_degree=-1", none, none, 1, 3, 0},
      {"torchtitan", "dp_replicate=4 dp_shard=8", none, none, 1, 3, 8},
      {"torchtitan", "dp_replicate=4, dp_shard=-1", none, none, 1, 3, 8},
      {"torchtitan", "dp_replicate=32 dp_shard=1", none, none, 1, 0, 0},
      {"PyTorch", "DDP", 4, none, 8, 0, 0},  // what is not data parallel is model parallel
  };
  for (const Row& row : rows) {
    TrainingRun r = base();
    r.accelerators = 32, r.tp = r.pp = none;
    r.framework = row.framework, r.zero = row.zero, r.dp = row.dp, r.sharding_group = row.group;
    const Plan plan = mapped(r).plan;
    const std::string label = std::string(row.framework) + " " + row.zero;
    EXPECT_EQ(plan.tp, row.tp) << label;
    EXPECT_EQ(plan.pp, 1) << label;
    EXPECT_EQ(plan.zero, row.zero_stage) << label;
    EXPECT_EQ(plan.sharding_group, row.sharding_group) << label;
  }
}

TEST(Readings, StagesOfZeroAndKindsOfFsdp) {
  struct Row {
    const char* zero;
    const char* stack;
    int64_t stage;
  };
  const Row rows[] = {
      {"ZeRO-3", "deepspeed-zero", 3},
      {"ZeRO3", "deepspeed-zero", 3},
      {"zero3", "deepspeed-zero", 3},
      {"Z3", "deepspeed-zero", 3},
      {"ds_z3", "deepspeed-zero", 3},
      {"zero3_offload", "deepspeed-zero", 3},
      {"ZeRO-2", "deepspeed-zero", 2},
      {"FSDP", "pytorch-fsdp", 3},
      {"FSDP SHARD_GRAD_OP", "pytorch-fsdp", 2},
      {"FSDP2, reshard_after_forward=False", "pytorch-fsdp2-plain", 2},
      {"FSDP NO_SHARD", "pytorch-fsdp", 0},
  };
  for (const Row& row : rows) {
    TrainingRun r = base();
    r.tp = r.pp = {};
    r.framework = "Modalities", r.zero = row.zero;
    const Scenario s = mapped(r);
    EXPECT_EQ(s.setting.stack.name, row.stack) << row.zero;
    EXPECT_EQ(s.plan.zero, row.stage) << row.zero;
  }
  EXPECT_EQ(read_sharding("zero3_offload").offload_parameters, 0);
}

TEST(Readings, Fsdp2BesideAPipelineHoweverStated) {
  TrainingRun r = base();
  r.framework = "torchtitan", r.pp = 2;
  for (const char* zero : {"FSDP2", "", "ZeRO-3"}) {
    r.zero = zero;
    EXPECT_EQ(mapped(r).plan.zero, 2) << zero;
  }
}

// Nothing says that a bare PyTorch shards: it does where a copy would not fit.
TEST(Readings, WhatFitsIsReplicated) {
  TrainingRun r = base();
  r.tp = r.pp = {};
  r.framework = "PyTorch";
  EXPECT_EQ(mapped(r).plan.zero, 3);
  r.layers = 12, r.hidden = 1024, r.ffn = 4096, r.heads = r.kv_heads = 16, r.seq = 512;
  for (const char* framework : {"PyTorch", "TensorFlow", "MXNet", "fairseq"}) {
    r.framework = framework;
    EXPECT_EQ(mapped(r).plan.zero, 0) << framework;
    EXPECT_TRUE(assumes(mapped(r), "a copy fits")) << framework;
  }
  r.framework = "PyTorch FSDP";
  EXPECT_EQ(mapped(r).plan.zero, 3);
}

}  // namespace
}  // namespace assay
