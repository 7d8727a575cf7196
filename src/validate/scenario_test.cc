#include "validate/scenario.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "perf/predict.h"
#include "validate/scenario_case.h"

namespace assay {
namespace {

bool assumes(const Scenario& s, const std::string& part) {
  return std::any_of(s.assumed.begin(), s.assumed.end(),
                     [&](const std::string& a) { return a.find(part) != std::string::npos; });
}

TEST(Scenario, StatedCellsArriveInThePlan) {
  TrainingRun r = base();
  r.pp = 4;
  r.vpp = 2;
  r.cp = 2;
  r.recompute = "full, 4 layers";
  r.precision = "FP8-CS";
  r.zero = "distributed optimizer";
  r.flash_attention = "no";
  r.overlap_notes = "no grad-bucket overlap";
  const Scenario s = mapped(r);
  EXPECT_EQ(s.plan.tp, 2);
  EXPECT_EQ(s.plan.pp, 4);
  EXPECT_EQ(s.plan.vpp, 2);
  EXPECT_EQ(s.plan.cp, 2);
  EXPECT_EQ(s.plan.dp, 4);
  EXPECT_EQ(s.plan.schedule, Schedule::kInterleaved);
  EXPECT_EQ(s.plan.recompute, Recompute::kFull);
  EXPECT_EQ(s.plan.recompute_layers, 0.5);
  EXPECT_EQ(s.plan.precision, Precision::kFp8);
  EXPECT_EQ(s.plan.zero, 1);
  EXPECT_FALSE(s.plan.flash_attention);
  EXPECT_FALSE(s.plan.overlap_grad);
  EXPECT_EQ(s.setting.stack.name, "megatron-core");
  EXPECT_EQ(s.kind, RunClass::kLongContext);
  EXPECT_FALSE(assumes(s, "precision"));
}

TEST(Scenario, BlankCellsAreTheStacksDefaultsAndSaidSo) {
  const Scenario s = mapped(base());
  const Stack* stack = find_stack(catalog(), "megatron-core");
  ASSERT_TRUE(stack);
  EXPECT_EQ(s.plan.precision, stack->defaults.precision);
  EXPECT_EQ(s.plan.recompute, stack->defaults.recompute);
  EXPECT_TRUE(assumes(s, "precision"));
  EXPECT_TRUE(assumes(s, "recompute"));
  EXPECT_TRUE(assumes(s, "network"));
}

struct FrameworkRow {
  const char* framework;
  const char* zero;
  int64_t tp, pp;
  const char* gpu;
  const char* stack;
};
const FrameworkRow kFrameworks[] = {
    {"NeMo 24.07", "", 2, 1, "H100", "megatron-core"},
    {"Megatron-Bridge (NeMo 25.11)", "", 1, 1, "H100", "megatron-core"},
    {"Megatron-LM", "", 8, 1, "H100", "megatron-lm"},
    {"FlagScale", "", 8, 4, "H800", "megatron-lm"},
    {"megatron-core v0.6.0", "", 8, 4, "H100", "megatron-core-plain"},
    {"Megatron-DeepSpeed", "ZeRO-1", 4, 2, "A100", "megatron-deepspeed"},
    {"Megatron-LM/Megatron-DeepSpeed", "", 4, 1, "V100", "megatron-deepspeed"},
    {"Megatron-DeepSpeed ZeRO-3", "ZeRO-3", 1, 1, "A100", "deepspeed-zero"},
    {"DeepSpeed ZeRO-3 + HF + Liger", "ZeRO-3 + CPU optimizer offload", 1, 1, "H200",
     "deepspeed-zero"},
    {"torchtitan FSDP2+TP", "FSDP2", 8, 1, "H100", "pytorch-fsdp2"},
    {"PyTorch FSDP (fms-fsdp)", "FSDP", 1, 1, "A100", "fms-fsdp"},
    {"MaxText/JAX", "", 1, 1, "TPUv6e", "maxtext"},
    {"levanter", "", 1, 1, "TPUv4", "maxtext"},
    {"PAX", "", 1, 1, "TPUv5e", "maxtext"},
    {"NeuronX (SDK 2.20.0)", "", 8, 1, "Trn1-NeuronCore", "nxd"},
    {"PyTorch NVIDIA Release 25.09", "distributed optimizer", 4, 1, "B200", "megatron-core"},
    {"Frobnicator 3", "", 4, 4, "H100", "megatron-like"},
    {"Frobnicator 3", "FSDP", 1, 1, "H100", "pytorch-fsdp"},
    {"Frobnicator 3", "ZeRO-3", 1, 1, "H100", "deepspeed-zero"},
    {"Frobnicator 3", "", 1, 1, "TPUv5p", "maxtext"},
    {"Axolotl", "ZeRO-3", 1, 1, "A100", "deepspeed-zero"},
    {"Axolotl", "FSDP", 1, 1, "A100", "axolotl"},
    {"Megatron-LM (Habana)", "", 4, 1, "Gaudi3", "gaudi"},
    {"Megatron-LM", "", 8, 1, "V100", "megatron-deepspeed"},
    {"LLaMA-Factory", "", 1, 1, "RTX 4090", "llama-factory"},
    {"LLaMA-Factory + Unsloth", "", 1, 1, "A100", "unsloth"},
    {"PyTorch FSDP (HF transformers)", "FSDP", 1, 1, "A100", "transformers-loop"},
    {"torchtitan (PyTorch XPU)", "FSDP2", 1, 1, "Max 1550 (tile)", "pytorch-fsdp2"},
    {"Primus (Megatron, Primus-Turbo)", "", 1, 1, "MI355X", "primus"},
    {"InternLM", "ZeRO-1", 1, 1, "A100", "internevo"},
    {"InternEvo", "", 8, 1, "A800", "internevo"},
    {"MaxText", "FSDP", 1, 1, "H100", "maxtext-gpu"},
    {"nanotron v0.5", "ZeRO-1", 4, 1, "H100", "nanotron"},
    {"picotron", "", 2, 2, "H100", "picotron"},
    {"GPT-NeoX", "ZeRO-1", 2, 4, "A100", "gpt-neox"},
    {"PaddleNLP (PaddlePaddle)", "stage1", 2, 1, "A100", "paddlenlp"},
    {"Megatron-SWIFT", "", 2, 2, "H100", "megatron-swift"},
    {"ms-swift 3.8", "", 1, 1, "H100", "ms-swift"},
    {"XTuner", "", 1, 1, "A100", "xtuner"},
    {"TRL 0.24 SFTTrainer", "FSDP", 1, 1, "H100", "trl"},
    {"SFTTrainer (transformers, peft)", "FSDP", 1, 1, "H100", "trl"},
    {"TRL (FSDP)", "FSDP", 1, 1, "H100", "trl"},
    {"DeepSpeed-Chat", "ZeRO-3", 1, 1, "A100", "deepspeed-chat"},
    {"MegaBlocks", "", 1, 1, "A100", "megablocks"},
    {"Axolotl", "", 1, 1, "A100", "axolotl"},
    {"NeMo AutoModel", "FSDP", 1, 4, "H100", "nemo-automodel"},
    {"OLMo-core", "HSDP", 1, 1, "H100", "olmo-core"},
    {"OLMo", "FSDP", 1, 1, "A100", "olmo"},
    {"Meta Lingua", "", 1, 1, "H100", "lingua"},
    {"litgpt FSDP", "", 1, 1, "A100", "litgpt"},
    {"PyTorch Lightning", "FSDP", 1, 1, "A100", "pytorch-fsdp"},
    {"metaseq", "FSDP", 8, 1, "A100", "metaseq"},
    {"ColossalAI Gemini", "", 1, 1, "A100", "colossal-ai"},
    {"Colossal-AI HybridParallelPlugin", "", 4, 2, "H100", "colossal-hybrid"},
    {"modded-nanogpt", "", 1, 1, "H100", "nanogpt"},
    {"torchtune (FSDP2)", "FSDP2", 1, 1, "A100", "torchtune"},
    {"Lumen (Megatron-LM, AITER kernels)", "", 1, 1, "MI350X", "lumen"},
    {"Halo (PyTorch 2.11, HF transformers, Liger)", "FSDP2", 1, 1, "B300", "halo"},
    {"HF Trainer, PyTorch FSDP", "FSDP", 1, 1, "A100", "transformers"},
    {"OneFlow 0.2.0", "", 1, 1, "V100", "oneflow"},
    {"LiBai (OneFlow 55b822e)", "", 1, 1, "V100", "libai"},
    {"NVIDIA NeMo Megatron Release 23.04", "", 4, 1, "H100", "nemo-megatron"},
    {"NeMo (PyTorch 2.7.0a0 nv25.03)", "", 1, 2, "H100", "megatron-core"},
    {"KempnerForge (PyTorch FSDP2)", "FSDP2", 1, 1, "H200", "kempnerforge"},
    {"OLMo (PyTorch FSDP)", "FSDP", 1, 1, "A100", "olmo"},
    {"PyTorch FSDP (minGPT)", "FSDP", 1, 1, "A100", "pytorch-fsdp"},
    {"nanochat (PyTorch 2.8.0)", "", 1, 1, "H100", "nanogpt"},
    {"torchtitan (PyTorch 2.9.0, DeepEP)", "FSDP2", 1, 1, "B200", "pytorch-fsdp2-deepep"},
};

TEST(Scenario, Frameworks) {
  for (const FrameworkRow& row : kFrameworks) {
    TrainingRun r = base();
    r.framework = row.framework;
    r.zero = row.zero;
    r.tp = row.tp;
    r.pp = row.pp;
    r.gpu = row.gpu;
    const Accelerator* a = choose_accelerator(r, catalog());
    ASSERT_TRUE(a) << row.gpu;
    const StackChoice choice = choose_stack(r, *a, catalog());
    ASSERT_TRUE(choice.stack) << row.framework;
    EXPECT_EQ(choice.stack->name, row.stack) << row.framework << " " << row.zero;
    if (std::string(row.framework).starts_with("Frob")) {
      EXPECT_FALSE(choice.assumed.empty());
    }
  }
}

TEST(Scenario, OneAcceleratorOfAnyFrameworkIsEager) {
  TrainingRun r = base();
  r.accelerators = 1;
  r.per_node = 1;
  r.tp = 1;
  r.global_batch = 1;
  r.framework = "PyTorch 2.11 eager";
  EXPECT_EQ(mapped(r).setting.stack.name, "pytorch-eager");
  r.framework = "homemade";
  EXPECT_EQ(mapped(r).setting.stack.name, "pytorch-eager");
}

TEST(Scenario, AcceleratorsByAnyName) {
  struct Row {
    const char* gpu;
    std::optional<double> memory;
    const char* name;
  };
  const Row rows[] = {
      {"8xA100", {}, "a100-sxm4-80gb"},
      {"64 x H100", {}, "h100-sxm5-80gb"},
      {"p5.48xlarge", {}, "h100-sxm5-80gb"},
      {"p4d.24xlarge", {}, "a100-sxm4-40gb"},
      {"Ascend 910B3", {}, "ascend-910b3"},
      {"NVIDIA L20", {}, "l20"},
      {"5090", {}, "rtx-5090"},
      {"A100", {}, "a100-sxm4-80gb"},
      {"A100", 40.0, "a100-sxm4-40gb"},
      {"A100-40GB", {}, "a100-sxm4-40gb"},
      {"NVIDIA H100 80GB HBM3", {}, "h100-sxm5-80gb"},
      {"H800", {}, "h800-sxm5-80gb"},
      {"H100-96GB-HBM2e", {}, "h100-96gb-hbm2e"},
      {"TPU v5e", {}, "tpu-v5e"},
      {"Trillium", {}, "tpu-v6e"},
      {"TPU7x", {}, "tpu-v7-core"},  // of hosts with eight
      {"MI300X", 192.0, "mi300x-192gb"},
      {"8x H200 SXM (cloud)", {}, "h200-sxm5-141gb"},
      {"Gaudi2", {}, "gaudi2-96gb"},
      {"RTX 4090", {}, "rtx-4090"},
      {"BI-V100", {}, "iluvatar-bi-v100"},
      {"NVIDIA GeForce RTX 5070 Ti", {}, "rtx-5070-ti"},
      {"RTX 5070 Ti Laptop", {}, "rtx-5070-ti-laptop"},
      {"V100-16GB", 16.0, "v100-sxm2-16gb"},
      {"VR200 (Vera Rubin, sm_107)", {}, "vr200-288gb"},
  };
  for (const Row& row : rows) {
    TrainingRun r = base();
    r.gpu = row.gpu;
    r.gpu_mem_gb = row.memory;
    const Accelerator* a = choose_accelerator(r, catalog());
    ASSERT_TRUE(a) << row.gpu;
    EXPECT_EQ(a->name, row.name) << row.gpu;
  }
  TrainingRun r = base();
  for (const char* none : {"", "hetero:RTX-3090x8,RTX-2080x8", "Cerebras WSE-3"}) {
    r.gpu = none;
    EXPECT_FALSE(choose_accelerator(r, catalog())) << none;
  }
}

TEST(Scenario, ListsThatNameOneAccelerator) {
  TrainingRun r = base();
  for (const char* gpu : {"A100-SXM4-40GB (DGX-A100)", "NVIDIA A100-SXM4, 80 GB, NVLink",
                          "GB200 (NVL72, per GPU)", "8x H100, IB"}) {
    r.gpu = gpu;
    EXPECT_TRUE(choose_accelerator(r, catalog())) << gpu;
  }
  for (const char* gpu :
       {"A100, V100", "RTX-3090x8,Titan-RTXx2", "hetero:H100", "H100, Gaudi2", "H100 and GB200",
        "H100 (A100 for eval)", "H100 and DGX A100", "H100, HGX H200"}) {
    r.gpu = gpu;
    EXPECT_FALSE(choose_accelerator(r, catalog())) << gpu;
  }
}

TEST(Scenario, PackagesCountedByDie) {
  TrainingRun r = base();
  r.gpu = "MI250X";
  r.per_node = 8;
  ASSERT_TRUE(choose_accelerator(r, catalog()));
  EXPECT_EQ(choose_accelerator(r, catalog())->name, "mi250x-gcd");
  r.per_node = 4;
  EXPECT_EQ(choose_accelerator(r, catalog())->name, "mi250x-128gb");
  r.gpu = "A100";
  r.per_node = 16;
  EXPECT_EQ(choose_accelerator(r, catalog())->name, "a100-sxm4-80gb");
}

TEST(Scenario, NoBf16WhereTheHardwareHasNone) {
  TrainingRun r = base();
  r.gpu = "V100";
  EXPECT_EQ(mapped(r).plan.precision, Precision::kFp16);
}

TEST(Scenario, InferredPrecisionYieldsToCodeThatTrainsInSinglePrecision) {
  TrainingRun r = base();
  r.framework = "Megatron-DeepSpeed (Sailor)";
  r.precision = "fp16";
  EXPECT_EQ(mapped(r).plan.precision, Precision::kFp16);
  r.notes = "inferred: seq 2048 (run script), precision, model shape";
  EXPECT_EQ(mapped(r).plan.precision, Precision::kTf32);
  EXPECT_TRUE(assumes(mapped(r), "precision tf32"));
  r.framework = "Megatron-DeepSpeed";  // documents mixed precision: the row's guess is as good
  EXPECT_EQ(mapped(r).plan.precision, Precision::kFp16);
}

TEST(Scenario, NetworksOfNodes) {
  TrainingRun r = base();
  Scenario s = mapped(r);
  EXPECT_EQ(s.setting.cluster.nodes, 8);
  EXPECT_EQ(s.setting.cluster.node.nics, 8);
  EXPECT_NEAR(s.setting.cluster.node.nic_bandwidth.v, 50e9, 1);
  r.inter_link = "800 Gbps/node";
  s = mapped(r);
  EXPECT_EQ(s.setting.cluster.node.nics, 2);
  EXPECT_NEAR(s.setting.cluster.node.nic_bandwidth.v, 50e9, 1);
  r.inter_link = "10G Ethernet";  // the one link that is stated
  EXPECT_EQ(mapped(r).setting.cluster.node.nics, 1);
}

TEST(Scenario, RacksAndTori) {
  TrainingRun r = base();
  r.gpu = "GB200";
  r.per_node = 4;
  EXPECT_EQ(mapped(r).setting.cluster.scaleup_domain(), 72);
  r.accelerators = 256;
  r.global_batch = 1024;
  EXPECT_EQ(mapped(r).setting.cluster.scaleup_domain(), 64);
  r.gpu = "TPUv5p";
  r.framework = "MaxText";
  EXPECT_EQ(mapped(r).setting.cluster.fabric.kind, FabricKind::kTorus);
}

TEST(Scenario, ShapeFromTheNameWhereBlank) {
  TrainingRun r = base();
  r.layers = r.hidden = r.ffn = r.heads = r.kv_heads = r.vocab = {};
  const Model m = mapped(r).setting.workload.model;
  EXPECT_EQ(m.layers, 32);
  EXPECT_EQ(m.kv_heads, 8);
  r.model_name = "Nobody's model";
  const tl::expected<Scenario, Refusal> s = to_scenario(r, catalog());
  ASSERT_FALSE(s);
  EXPECT_EQ(s.error().status, RunStatus::kIncomplete);
  EXPECT_EQ(s.error().reason, "not stated: layers, hidden");
}

TEST(Scenario, ShapeByConvention) {
  TrainingRun r = base();
  r.model_name = "GPT h2048";
  r.layers = 24;
  r.hidden = 2048;
  r.ffn = r.heads = r.kv_heads = r.vocab = {};
  const Scenario s = mapped(r);
  EXPECT_EQ(s.setting.workload.model.heads, 16);
  EXPECT_EQ(s.setting.workload.model.ffn, 8192);
  EXPECT_FALSE(s.setting.workload.model.gated_mlp);
  EXPECT_EQ(s.setting.workload.model.vocab, 51200);
  EXPECT_TRUE(assumes(s, "heads"));
}

TEST(Scenario, LatentAttentionComesWithTheName) {
  TrainingRun r = base();
  r.model_name = "DeepSeek-V3";
  r.layers = 61;
  r.hidden = 7168;
  r.heads = r.kv_heads = 128;
  r.experts = 256;
  r.experts_per_token = 8;
  r.expert_ffn = 2048;
  r.ep = 8;
  const Scenario s = mapped(r);
  EXPECT_GT(s.setting.workload.model.kv_lora_rank, 0);
  EXPECT_EQ(s.setting.workload.model.mtp_layers, 1);
  EXPECT_EQ(s.kind, RunClass::kMoe);
  r.notes = "w/o MTP";
  EXPECT_EQ(mapped(r).setting.workload.model.mtp_layers, 0);
}

TEST(Scenario, BatchFromWhatIsStated) {
  TrainingRun r = base();
  r.micro_batch = {};
  r.grad_accum = 2;
  EXPECT_EQ(mapped(r).plan.micro_batch, 2);  // 128 / dp 32 / 2
  r.global_batch = {};
  r.micro_batch = 3;
  EXPECT_EQ(mapped(r).setting.workload.global_batch, 3 * 32 * 2);
  r.global_batch = 128;
  r.micro_batch = 3;  // does not come out even: the next smaller that does
  EXPECT_EQ(mapped(r).plan.micro_batch, 2);
  r.global_batch = r.micro_batch = {};
  EXPECT_EQ(to_scenario(r, catalog()).error().reason, "not stated: micro_batch, global_batch");
}

TEST(Scenario, DegreesMustMultiplyOut) {
  TrainingRun r = base();
  r.tp = 3;
  EXPECT_EQ(to_scenario(r, catalog()).error().status, RunStatus::kUnsupported);
  r = base();
  r.dp = 7;
  EXPECT_TRUE(assumes(mapped(r), "dp 32 (stated 7)"));
  r = base();
  r.tp = r.pp = {};
  r.dp = 4;
  const Scenario s = mapped(r);
  EXPECT_EQ(s.plan.tp * s.plan.pp, 16);
}

TEST(Scenario, HybridSharding) {
  TrainingRun r = base();
  r.tp = 1;
  r.framework = "PyTorch FSDP";
  r.zero = "HSDP";
  EXPECT_EQ(mapped(r).plan.sharding_group, 8);
  r.sharding_group = 16;
  EXPECT_EQ(mapped(r).plan.sharding_group, 16);
  r.sharding_group = 64;
  EXPECT_EQ(mapped(r).plan.sharding_group, 0);
}

TEST(Scenario, HeadSizeFromTheNumberOfParameters) {
  // Sixteen billion parameters whose 64 heads of 128 are twice as wide as the model.
  TrainingRun r = base();
  r.model_name = "something 16B";
  r.ffn = 28672;
  r.heads = r.kv_heads = 64;
  r.vocab = 32000;
  r.gated_mlp = true;
  r.params_b = 15.83;
  EXPECT_EQ(mapped(r).setting.workload.model.head_dim, 128);
  EXPECT_TRUE(assumes(mapped(r), "head size 128"));
  r.params_b = 13.7;  // what heads of hidden / heads give
  EXPECT_EQ(mapped(r).setting.workload.model.head_dim, 0);
  r.params_b = 40;  // no size explains it
  EXPECT_EQ(mapped(r).setting.workload.model.head_dim, 0);
}

TEST(Scenario, ARunThatRanFitted) {
  // Nothing is said of recompute, and without it an 8B model needs more than twice what there is.
  TrainingRun r = base();
  r.framework = "PyTorch FSDP";
  r.gpu = "A100-80GB";
  r.accelerators = 4;
  r.tp = r.pp = std::nullopt;
  r.seq = 4096;
  r.micro_batch = 4;
  r.global_batch = 16;
  EXPECT_EQ(mapped(r).plan.recompute, Recompute::kNone) << "no time: it may well not have run";
  r.step_time_s = 5.3;
  EXPECT_EQ(mapped(r).plan.recompute, Recompute::kFull);
  EXPECT_TRUE(assumes(mapped(r), "without it the run does not fit"));
  r.recompute = "none";
  EXPECT_EQ(mapped(r).plan.recompute, Recompute::kNone) << "stated";
  r.recompute = "";
  r.micro_batch = 1;
  r.global_batch = 4;
  r.seq = 2048;
  EXPECT_EQ(mapped(r).plan.recompute, Recompute::kNone) << "fits without";
}

TEST(Scenario, SharedWhereACopyDoesNotFit) {
  // Hugging Face's Trainer replicates; an 8B model with its optimizer does not fit one device.
  TrainingRun r = base();
  r.framework = "HF Trainer (transformers)";
  r.gpu = "A100-80GB";
  r.accelerators = r.global_batch = 8;
  r.tp = r.pp = std::nullopt;
  r.seq = 2048;
  EXPECT_EQ(mapped(r).plan.zero, 0) << "no time: it may well not have run";
  r.step_time_s = 1.7;
  EXPECT_EQ(mapped(r).plan.zero, 3);
  EXPECT_TRUE(assumes(mapped(r), "ZeRO-3: without it the run does not fit"));
  EXPECT_EQ(mapped(r).kind, RunClass::kFsdp);
  r.zero = "DDP";
  EXPECT_EQ(mapped(r).plan.zero, 0) << "stated";
  r.zero = "";
  r.task = "lora";
  EXPECT_EQ(mapped(r).plan.zero, 0) << "fits without";
}

TEST(Scenario, APipelineUnderDeepSpeedLeavesWeightsWhole) {
  TrainingRun r = base();
  r.framework = "DeepSpeed";
  r.tp = 1;
  EXPECT_EQ(mapped(r).plan.zero, 3);
  r.pp = 4;
  EXPECT_EQ(mapped(r).plan.zero, 1);
}

TEST(Scenario, TheFrontEndSaysWhatIsRecomputed) {
  TrainingRun r = base();
  r.framework = "LLaMA-Factory, DeepSpeed";
  r.zero = "ZeRO-3";
  r.tp = r.pp = std::nullopt;
  EXPECT_EQ(mapped(r).setting.stack.name, "deepspeed-zero");
  EXPECT_EQ(mapped(r).plan.recompute, Recompute::kFull);
  r.framework = "HF Trainer, DeepSpeed";
  EXPECT_EQ(mapped(r).plan.recompute, Recompute::kNone);
  r.framework = "TRL + DeepSpeed";
  EXPECT_EQ(mapped(r).plan.recompute, Recompute::kFull);
  r.date = "2024-03";  // before it was on by default
  EXPECT_EQ(mapped(r).plan.recompute, Recompute::kNone);
}

TEST(Scenario, SinglePrecisionInNvidiasContainers) {
  TrainingRun r = base();
  r.precision = "fp32";
  EXPECT_EQ(mapped(r).plan.precision, Precision::kTf32);
  r.gpu = "V100";  // has no tf32
  EXPECT_EQ(mapped(r).plan.precision, Precision::kFp32);
  r = base();
  r.precision = "fp32";
  r.framework = "PyTorch FSDP";  // PyTorch's own default
  r.tp = std::nullopt;
  EXPECT_EQ(mapped(r).plan.precision, Precision::kFp32);
}

TEST(Scenario, ExpertsSpreadWhereTheirLibraryIsNamed) {
  TrainingRun r = base();
  r.model_name = "some MoE";
  r.experts = 128;
  r.experts_per_token = 4;
  r.expert_ffn = 2880;
  EXPECT_EQ(mapped(r).plan.ep, 1);
  r.overlap_notes = "TE + DeepEP";
  EXPECT_EQ(mapped(r).plan.ep, 64);
  r.ep = 8;
  EXPECT_EQ(mapped(r).plan.ep, 8);
}

TEST(Scenario, GenerationsOfFlashAttention) {
  TrainingRun r = base();
  r.framework = "LLM Foundry";
  r.tp = std::nullopt;
  r.date = "2024-05";
  EXPECT_EQ(mapped(r).setting.stack.attention, AttentionKernel::kPortable);
  r.flash_attention = "triton";
  EXPECT_EQ(mapped(r).setting.stack.attention, AttentionKernel::kEarly);
  r.flash_attention = "yes";
  r.date = "2023";
  EXPECT_EQ(mapped(r).setting.stack.attention, AttentionKernel::kEarly);
  r.framework = "NeMo 23.08";  // a vendor's kernel has its own age
  EXPECT_EQ(mapped(r).setting.stack.attention, AttentionKernel::kVendor);
}

TEST(Scenario, JaxOnGpusAndOnTpus) {
  TrainingRun r = base();
  r.framework = "Paxml (JAX)";
  r.tp = std::nullopt;
  EXPECT_EQ(mapped(r).setting.stack.name, "jax-gpu");
  r.notes = "own model; scanned layers";
  EXPECT_EQ(mapped(r).setting.stack.name, "maxtext-gpu");
  r.notes = "";
  r.date = "2023";
  EXPECT_EQ(mapped(r).setting.stack.name, "jax-gpu-2023");
  EXPECT_FALSE(mapped(r).plan.flash_attention);
  r.precision = "TE BF16";
  EXPECT_TRUE(mapped(r).plan.flash_attention);
  r.gpu = "TPU v5e";
  EXPECT_EQ(mapped(r).setting.stack.name, "maxtext");
  // A batch per device, where 16 devices share a sequence group.
  r.accelerators = 256;
  r.tp = 16;
  r.micro_batch = 1;
  r.global_batch = 256;
  EXPECT_EQ(mapped(r).plan.micro_batch, 16);
  r.grad_accum = 16;
  EXPECT_EQ(mapped(r).plan.micro_batch, 1);
}

TEST(Scenario, FlashAttentionHadToBeAskedForBefore2024) {
  TrainingRun r = base();
  r.framework = "NeMo Framework";
  r.flash_attention = "";
  r.date = "2023-06";
  EXPECT_FALSE(mapped(r).plan.flash_attention);
  EXPECT_EQ(mapped(r).setting.stack.name, "megatron-core-2023");
  r.flash_attention = "yes";
  EXPECT_TRUE(mapped(r).plan.flash_attention);
  r.flash_attention = "";
  r.precision = "FP8";  // by Transformer Engine, which fuses it
  EXPECT_TRUE(mapped(r).plan.flash_attention);
  r.precision = "bf16";
  r.date = "2024-06";
  EXPECT_TRUE(mapped(r).plan.flash_attention);
}

TEST(Scenario, ALoopUnderAutocastKeepsItsWeightsIn32Bits) {
  TrainingRun r = base();
  r.framework = "PyTorch 2.8 torch.compile";
  r.accelerators = r.tp = r.pp = 1;
  r.precision = "bf16";
  EXPECT_EQ(mapped(r).setting.stack.name, "pytorch-eager");
  r.precision = "bf16 autocast";
  const Scenario s = mapped(r);
  EXPECT_EQ(s.setting.stack.name, "pytorch-autocast");
  EXPECT_EQ(s.setting.stack.weight_bytes, 4);
  EXPECT_TRUE(s.plan.compiled);
}

TEST(Scenario, WhatOnlyResemblesItsStackIsNotTakenToShard) {
  TrainingRun r = base();
  r.framework = "Frobnicator 3";
  r.zero = "";
  r.tp = r.pp = 2;
  EXPECT_EQ(mapped(r).plan.zero, 0);
  r.framework = "Megatron-LM";
  EXPECT_EQ(mapped(r).plan.zero, 1);
}

TEST(Scenario, ModelCodeAndTheEngineThatShardsIt) {
  TrainingRun r = base();
  r.tp = r.pp = std::nullopt;
  r.framework = "DeepSpeed";
  r.zero = "ZeRO-3";
  const Scenario plain = mapped(r);
  r.framework = "HF Transformers + DeepSpeed 0.14";
  const Scenario hub = mapped(r);
  EXPECT_EQ(hub.setting.stack.name, plain.setting.stack.name);
  EXPECT_GT(hub.setting.stack.traffic, plain.setting.stack.traffic);
  EXPECT_GT(hub.setting.stack.saved_hidden, plain.setting.stack.saved_hidden);
  EXPECT_TRUE(assumes(hub, "model code of transformers"));

  // PEFT holds in 32 bits what bitsandbytes leaves, unless FSDP shards it.
  r.framework = "HF SFTTrainer";
  r.zero = "";
  r.notes = "bitsandbytes nf4 base weights";
  EXPECT_EQ(mapped(r).setting.stack.residual_bytes, 4);
  r.notes = "AutoGPTQ 4-bit base weights";
  EXPECT_EQ(mapped(r).setting.stack.residual_bytes, 2);
  r.notes = "bitsandbytes nf4 base weights";
  r.zero = "FULL_SHARD";
  EXPECT_EQ(mapped(r).setting.stack.residual_bytes, 2);
}

}  // namespace
}  // namespace assay
