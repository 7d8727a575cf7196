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
      {"N/A", "", 10},
      {"-3", "", 1},
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

TEST(Readings, Formats) {
  const std::pair<const char*, Precision> rows[] = {
      {"16", Precision::kFp16},
      {"f16", Precision::kFp16},
      {"32", Precision::kTf32},
      {"f32", Precision::kTf32},
      {"fp32 (no TF32)", Precision::kFp32},
      {"fp32, TF32 disabled", Precision::kFp32},
      {"fp32", Precision::kTf32},
      {"tf32", Precision::kTf32},
  };
  TrainingRun r = base();
  for (const auto& [cell, precision] : rows) {
    r.precision = cell;
    EXPECT_EQ(mapped(r).plan.precision, precision) << cell;
  }
  r.framework = "PyTorch Lightning", r.tp = std::nullopt, r.precision = "32";
  EXPECT_EQ(mapped(r).plan.precision, Precision::kFp32) << "TF32 is NVIDIA's containers'";
  const std::pair<const char*, std::optional<Precision>> notes[] = {
      {"batch from the paper; fp16", Precision::kFp16},
      {"FP8 hybrid delayed scaling", Precision::kFp8},
      {"bf16 mixed precision, A100", Precision::kBf16},
      {"fp32 gradient reduction", std::nullopt},
      {"fp8 was slower", std::nullopt},
  };
  for (const auto& [text, precision] : notes) {
    EXPECT_EQ(read_precision_notes(text), precision) << text;
  }
}

TEST(Readings, AttentionKernels) {
  struct Row {
    const char* cell;
    std::optional<bool> fused;
    std::optional<AttentionKernel> kernel;
  };
  const std::optional<AttentionKernel> own;  // the stack's
  const Row rows[] = {
      {"no (SDPA)", true, own},
      {"False (PyTorch sdpa)", true, own},
      {"no (xformers)", true, AttentionKernel::kEarly},
      {"no (SDPA MATH)", false, own},
      {"no (FA2 unsupported)", false, own},
      {"no, SDPA off", false, own},
      {"dot_product", false, own},
      {"F.scaled_dot_product_attention", true, own},
      {"cudnn_flash_te", true, own},
      {"FlashAttn3", true, AttentionKernel::kVendor},
      {"kernels-community/flash-attn3", true, AttentionKernel::kVendor},
      {"kernels-community/flash-attn2", true, AttentionKernel::kPortable},
      {"TE (cuDNN)", true, AttentionKernel::kVendor},
      {"yes (cuDNN/TE)", true, own},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(read_flash(row.cell), row.fused) << row.cell;
    if (row.fused != true) continue;
    EXPECT_EQ(read_attention_kernel(row.cell), row.kernel) << row.cell;
  }
}

TEST(Readings, QuantisedBases) {
  TrainingRun r = base();
  r.framework = "HF Transformers + PEFT", r.tp = std::nullopt;
  const auto bytes = [&](const char* task, const char* model) {
    r.task = task, r.model_name = model;
    return mapped(r).setting.stack.weight_bytes;
  };
  EXPECT_EQ(bytes("qlora", "Llama-3.1-8B"), 0.55);
  EXPECT_EQ(bytes("sft", "Llama-3.1-8B QLoRA"), 0.55);
  EXPECT_EQ(bytes("lora", "Llama-3.1-8B-bnb-4bit"), 0.55);
  EXPECT_GE(bytes("lora", "Llama-3.1-8B"), 2);
}

TEST(Readings, RecomputeCells) {
  struct Row {
    const char* cell;
    std::optional<Recompute> kind;
    std::optional<double> share = {};  // of 32 layers, in one stage
  };
  const Row rows[] = {
      {"--recompute-activations", Recompute::kSelective},
      {"recompute_activations", Recompute::kSelective},
      {"never", Recompute::kNone},
      {"N", Recompute::kNone},
      {"nothing recomputed", Recompute::kNone},
      {"nothing_saveable", Recompute::kFull, 1},
      {"full, 1 layer", Recompute::kFull, 1},
      {"full, 8 layers", Recompute::kFull, 0.25},
      {"checkpoint-num-layers 4", Recompute::kFull, 1},
      {"all but last 4 layers", Recompute::kFull, 0.875},
      {"all layers except the first 8", Recompute::kFull, 0.75},
      {"partial (8 layers)", Recompute::kFull, 0.25},
      {"partial", Recompute::kSelective},
      {"activation offloading", Recompute::kNone},
      {"activation_func", Recompute::kSelective},
      {"0.5", Recompute::kFull, 0.5},
      {"one of four layers", Recompute::kFull, 0.25},
      {"every third layer", Recompute::kFull, 1.0 / 3},
  };
  for (const Row& row : rows) {
    TrainingRun r = base();
    r.recompute = row.cell;
    const Scenario s = mapped(r);
    EXPECT_EQ(s.plan.recompute, row.kind) << row.cell;
    EXPECT_NEAR(s.plan.recompute_layers, row.share.value_or(1), 1e-9) << row.cell;
  }
  EXPECT_EQ(read_recompute("activation offloading").offload_activations, 1);
  // A function's matmuls are not run again with it.
  EXPECT_FALSE(read_recompute("MLP activation function and norms only").parts->up);
}

TEST(Readings, RecomputeInNotes) {
  struct Row {
    const char* notes;
    std::optional<Recompute> kind;
    std::optional<double> fraction = {};
    std::optional<int64_t> layers = {};
  };
  const Row rows[] = {
      {"recompute: full", Recompute::kFull},
      {"recompute granularity full", Recompute::kFull},
      {"--recompute-granularity full", Recompute::kFull},
      {"--recompute-granularity selective", Recompute::kSelective},
      {"AC full", Recompute::kFull},
      {"recompute 10 layers per stage", Recompute::kFull, {}, 10},
      {"activation checkpointing every 2nd layer", Recompute::kFull, 0.5},
      {"AC=full says the heading; checkpointing left blank", std::nullopt},
      {"the heading says AC=full: left blank", std::nullopt},
      {"recompute not stated", std::nullopt},
  };
  for (const Row& row : rows) {
    const RecomputeCell cell = read_recompute_notes(row.notes);
    EXPECT_EQ(cell.kind, row.kind) << row.notes;
    EXPECT_EQ(cell.fraction, row.fraction) << row.notes;
    EXPECT_EQ(cell.layer_count, row.layers) << row.notes;
  }
}

// Whoever speaks of routing and not of force left it to the router.
TEST(Readings, DroplessIsAsRoutersLeaveIt) {
  EXPECT_GT(read_remarks("dropless").expert_skew.value_or(0), 1);
  EXPECT_GT(read_remarks("dropless, natural routing").expert_skew.value_or(0), 1);
  EXPECT_EQ(read_remarks("dropless, force balanced").expert_skew, 1);
  EXPECT_EQ(read_remarks("bf16").expert_skew, std::nullopt);
}

TEST(Readings, TasksBeyondOneSequence) {
  TrainingRun r = base();
  for (const char* task : {"DPO", "ORPO", "KTO", "GRPO", "PPO"}) {
    r.task = task;
    EXPECT_EQ(mapped(r).setting.workload.task, Task::kSft) << task;
    EXPECT_TRUE(assumes(mapped(r), "a sample is one sequence")) << task;
  }
}

TEST(Readings, MicroBatchesInNotes) {
  for (const char* notes : {"MBS 2", "micro-batch 2", "micro batch size 2", "microbatch=2"}) {
    EXPECT_EQ(read_remarks(notes).micro_batch, 2) << notes;
  }
  EXPECT_EQ(read_remarks("mbs inferred 1").micro_batch, std::nullopt);
}

TEST(Readings, ModelsByTheirFamily) {
  struct Row {
    const char* name;
    int64_t layers, hidden, heads, experts;
    int64_t latent;  // rank of keys and values
  };
  const Row rows[] = {
      {"DeepSeek-V3.2", 61, 7168, 128, 256, 512},
      {"DeepSeek-V3-0324", 61, 7168, 128, 256, 512},
      {"DSV3", 61, 7168, 128, 256, 512},
      {"DeepSeek-V3 16 layers", 16, 7168, 128, 256, 512},
      {"DeepSeek-V3 proxy", 4, 7168, 128, 256, 512},
      {"DSv2-lite", 27, 2048, 16, 64, 512},
      {"Moonlight-16B", 27, 2048, 16, 64, 512},
      {"Somebody's 16B MoE", 27, 2048, 16, 64, 512},  // by its shape
      {"Somebody's 16B MoE", 27, 2048, 16, 32, 0},
  };
  for (const Row& row : rows) {
    TrainingRun r = base();
    r.model_name = row.name, r.kv_heads = {}, r.tp = 1;
    r.layers = row.layers, r.hidden = row.hidden, r.heads = row.heads, r.experts = row.experts;
    r.experts_per_token = 6, r.expert_ffn = 1408;
    EXPECT_EQ(mapped(r).setting.workload.model.kv_lora_rank, row.latent) << row.name;
  }
}

TEST(Readings, ModelsByWhatIsLeftOfTheirNames) {
  const std::pair<const char*, std::pair<int64_t, int64_t>> rows[] = {
      {"Command R+", {64, 12288}},
      {"Command-R", {40, 8192}},
      {"Mistral 7B v0.3", {32, 4096}},
      {"Qwen3-235B", {94, 4096}},
      {"Qwen2.5-Coder-32B", {64, 5120}},
      {"Qwen3-30B-A3B-Instruct-2507", {48, 2048}},
      {"DeepSeek-R1-Distill-Llama-8B", {32, 4096}},
      {"Vicuna-7B", {32, 4096}},
      {"LLaMA-V2-70B", {80, 8192}},
      {"Qwen-72B", {80, 8192}},
      {"InternLM-20B", {60, 5120}},
      {"Baichuan2-13B", {40, 5120}},
      {"SmolLM2-1.7B", {24, 2048}},
  };
  TrainingRun r = base();
  r.layers = r.hidden = r.ffn = r.heads = r.kv_heads = r.vocab = {};
  for (const auto& [name, shape] : rows) {
    r.model_name = name;
    const Model m = mapped(r).setting.workload.model;
    EXPECT_EQ(m.layers, shape.first) << name;
    EXPECT_EQ(m.hidden, shape.second) << name;
  }
  // No shape is made up for what is of another size, or of several.
  for (const char* name : {"GPT-2 13B", "Qwen3", "Llama-3-13B"}) {
    r.model_name = name;
    EXPECT_FALSE(to_scenario(r, catalog())) << name;
  }
}

TEST(Readings, WhatLoraAdapts) {
  const std::pair<const char*, std::optional<bool>> notes[] = {
      {"LoRA r=64, all projections", true},
      {"LoRA rank 8 on all modules", true},
      {"LoRA rank 64 on q, k, v, up, down, gate", true},
      {"LoRA rank 32 on qkv proj fc1 fc2", true},
      {"LoRA r=16, q k v o", false},
      {"LoRA rank 8 on linear_qkv and linear_proj", false},
      {"LoRA r=8", std::nullopt},
      {"LoRA, mean of the steps after warm-up", std::nullopt},
  };
  for (const auto& [text, mlp] : notes) EXPECT_EQ(read_remarks(text).lora_mlp, mlp) << text;
  const std::pair<const char*, bool> stacks[] = {
      {"LLaMA-Factory", true}, {"ms-swift", true},      {"XTuner", true},
      {"Unsloth", true},       {"TRL", false},          {"HF Trainer, peft", false},
      {"NeMo 24.07", false},   {"Megatron-Core", true},  // recipes adapt one projection
  };
  TrainingRun r = base();
  r.task = "lora", r.tp = 1;
  for (const auto& [framework, mlp] : stacks) {
    r.framework = framework;
    r.notes = "";
    EXPECT_EQ(mapped(r).setting.workload.lora_mlp, mlp) << framework;
    r.notes = "LoRA r=16, q v";
    EXPECT_FALSE(mapped(r).setting.workload.lora_mlp) << framework;
  }
}

// A short clause states what its cell leaves blank; a comparison does not, nor one beside a cell.
TEST(Readings, CellsInNotes) {
  TrainingRun r = base();
  r.framework = "HF Transformers", r.tp = std::nullopt;
  const auto plan = [&](const char* notes) {
    r.notes = notes;
    return mapped(r).plan;
  };
  EXPECT_TRUE(plan("").flash_attention);
  for (const char* notes : {"eager attention", "no flash attention", "attn_implementation=eager"}) {
    EXPECT_FALSE(plan(notes).flash_attention) << notes;
  }
  EXPECT_TRUE(plan("eager, no compile").flash_attention);
  EXPECT_EQ(plan("").zero, 0);
  EXPECT_EQ(plan("A100; DeepSpeed ZeRO-3").zero, 3);
  EXPECT_EQ(mapped(r).setting.stack.name, "deepspeed-zero");
  EXPECT_EQ(plan("FSDP full shard").zero, 3);
  EXPECT_EQ(plan("faster than FSDP full shard").zero, 0);
  EXPECT_EQ(plan("fp16").precision, Precision::kFp16);
  EXPECT_EQ(plan("FP8 hybrid delayed scaling").precision, Precision::kFp8);
  r.zero = "DDP", r.flash_attention = "FA2";
  EXPECT_EQ(plan("FSDP full shard").zero, 0);
  EXPECT_TRUE(plan("no flash attention").flash_attention);
}

TEST(Readings, ReleasesWithoutFusedAttention) {
  TrainingRun r = base();
  r.tp = std::nullopt;
  for (const char* framework :
       {"HF 4.18, PyTorch 1.10", "Transformers 4.35", "PyTorch 1.13 FSDP"}) {
    r.framework = framework, r.flash_attention = "";
    EXPECT_FALSE(mapped(r).plan.flash_attention) << framework;
    r.flash_attention = "FlashAttention";
    EXPECT_TRUE(mapped(r).plan.flash_attention) << framework;
  }
  r.framework = "Transformers 4.36, PyTorch 2.1", r.flash_attention = "";
  EXPECT_TRUE(mapped(r).plan.flash_attention);
}

TEST(Readings, MindSporesTransformers) {
  TrainingRun r = base();
  r.gpu = "Ascend 910B", r.tp = 8;
  r.framework = "MindFormers";
  const std::string stack = mapped(r).setting.stack.name;
  r.framework = "MindSpore Transformers";
  EXPECT_EQ(mapped(r).setting.stack.name, stack);
}

// Ranks that share an expert, as people write them.
TEST(Readings, ExpertTensorParallelism) {
  for (const auto& [text, ranks] :
       std::map<std::string, int64_t>{{"ETP1", 1},
                                      {"TP4 EP8 ETP1", 1},
                                      {"ETP=2", 2},
                                      {"expert TP 4 (default)", 4},
                                      {"expert tensor parallel size of 1", 1},
                                      {"expert tensor parallelism 2", 2},
                                      {"(ETP 4)", 4},
                                      {"no ETP", 1},
                                      {"EP8/ETP1", 1}}) {
    EXPECT_EQ(read_remarks(text).expert_tensor, ranks) << text;
  }
  EXPECT_EQ(read_remarks("expert parallel 8, tensor parallel 2").expert_tensor, std::nullopt);
  EXPECT_EQ(read_remarks("Megatron-Core with MoE parallel folding").experts_fold, true);
  for (const char* text : {"ETP=TP", "expert tensor parallel size equal to TP where not folded",
                           "expert tensor parallel size equals TP"})
    EXPECT_EQ(read_remarks(text).experts_fold, false) << text;
  EXPECT_TRUE(read_remarks("sequential experts").experts_in_turn);
}

// How context parallelism exchanges keys and values.
TEST(Readings, KindsOfContextParallelism) {
  const auto all = [](ContextKind kind, std::initializer_list<const char*> texts) {
    for (const char* text : texts) EXPECT_EQ(read_remarks(text).context, kind) << text;
  };
  all(ContextKind::kRing, {"ring attention", "cp_comm_type=p2p", "context_parallel_strategy=ring",
                           "ring flash attention", "CP=8 (ring)", "CP by ring",
                           "context parallel: ring", "context parallelism by ring"});
  all(ContextKind::kAllGather,
      {"cp_comm_type=allgather", "cp_comm_type: all_gather", "all-gather CP", "CP (allgather)",
       "context parallelism by all-gather", "context parallelism by all-gather of K and V",
       "KV all-gather"});
  all(ContextKind::kAllToAll, {"Ulysses", "a2a CP", "cp_comm_type=a2a"});
  for (const char* text : {"TP all gather of k and v projections overlapped",
                           "ring all-reduce of gradients", "fp8 all-gather"})
    EXPECT_EQ(read_remarks(text).context, std::nullopt) << text;
}

// What says nothing of recomputation is no recomputation, and is told.
TEST(Readings, RecomputeCellsThatSayNothing) {
  for (const char* text : {"banana", "foo 3", "42 %x"})
    EXPECT_TRUE(read_recompute(text).unreadable) << text;
  for (const char* text : {"GC", "y", "blocks", "reentrant", "enable", "FullAC", "custom"}) {
    EXPECT_EQ(read_recompute(text).kind, Recompute::kFull) << text;
    EXPECT_FALSE(read_recompute(text).unreadable) << text;
  }
  EXPECT_EQ(read_recompute("sel").kind, Recompute::kSelective);
  EXPECT_EQ(read_recompute("half").fraction, 0.5);
  EXPECT_NEAR(*read_recompute("10 of 32").fraction, 10.0 / 32, 1e-9);
}

}  // namespace
}  // namespace assay
