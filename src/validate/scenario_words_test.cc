// What words of a row change in the stack or the plan beyond the cells that are about them.
#include <algorithm>

#include <gtest/gtest.h>

#include "perf/layer.h"
#include "validate/scenario_case.h"

namespace assay {
namespace {

bool assumes(const Scenario& s, const std::string& words) {
  return std::any_of(s.assumed.begin(), s.assumed.end(),
                     [&](const std::string& a) { return a.find(words) != std::string::npos; });
}

TEST(Words, WorkloadsHaveTheNameOfTheirModel) {
  const Workload w = mapped(base()).setting.workload;
  EXPECT_FALSE(w.name.empty());
  EXPECT_EQ(w.name, w.model.name);
}

// A kernel for the loss spares time and memory, chunks of plain operations memory alone.
TEST(Words, KernelsForTheLoss) {
  TrainingRun r = base();
  r.framework = "Hugging Face Trainer";
  r.tp = std::nullopt;
  const auto loss = [&](const char* notes) {
    r.notes = notes;
    const Stack stack = mapped(r).setting.stack;
    return std::pair(stack.loss_traffic, stack.logits_bytes);
  };
  const auto plain = loss("unfused head and cross-entropy");
  EXPECT_GT(plain.first, 30);
  for (const char* fused : {"Liger fused head and cross-entropy", "fused LM head",
                            "fused linear "
                            "cross entropy",
                            "cut cross-entropy"}) {
    EXPECT_EQ(loss(fused), std::pair(12.0, 0.5)) << fused;
  }
  EXPECT_EQ(loss("chunked loss"), std::pair(plain.first, 0.5));
  EXPECT_EQ(loss("Liger; logits are kept for metrics"), plain);
}

TEST(Words, GeluByTanhInOneKernel) {
  TrainingRun r = base();
  r.model_name = "GPT-2 124M";
  r.layers = 12, r.hidden = 768, r.ffn = 3072, r.heads = 12, r.kv_heads = 12, r.vocab = 50257;
  r.seq = 1024, r.framework = "Hugging Face Trainer", r.tp = std::nullopt;
  EXPECT_TRUE(mapped(r).setting.workload.model.tanh_gelu);
  r.notes = "gelu_pytorch_tanh, SDPA";
  EXPECT_FALSE(mapped(r).setting.workload.model.tanh_gelu);
}

// DeepEP and its kin send a token once to a place; the plain dispatcher a copy for each expert.
TEST(Words, TokensOncePerPlaceOrPerExpert) {
  TrainingRun r = base();
  r.experts = 64, r.experts_per_token = 8, r.expert_ffn = 1024, r.ep = 8;
  const auto once = [&](const char* framework, const char* notes) {
    r.framework = framework, r.notes = notes;
    return mapped(r).setting.stack.expert_dedup;
  };
  EXPECT_TRUE(once("NeMo 25.04", ""));
  r.pp = 2;  // between nodes of eight
  EXPECT_FALSE(once("NeMo 25.04", ""));
  EXPECT_TRUE(once("NeMo 25.04", "DeepEP"));
  EXPECT_TRUE(once("Megatron-LM", ""));
  EXPECT_FALSE(once("Megatron-Bridge (NeMo 26.04), NCCL alltoall", ""));
  EXPECT_FALSE(once("Megatron-LM", "all-to-all dispatcher"));
  EXPECT_TRUE(once("Megatron-LM", "DeepEP instead of the A2A dispatcher"));
  EXPECT_FALSE(once("Megatron-LM", "alltoall dispatcher, no DeepEP"));
  r.gpu = "GB200", r.per_node = 4;
  EXPECT_TRUE(once("NeMo 25.04", ""));
}

// A narrow format that most of the work is not in is not the run's.
TEST(Words, NarrowFormatsOfTheLesserPart) {
  TrainingRun r = base();
  r.gpu = "B200";
  const auto precision = [&](const char* cell) {
    r.precision = cell;
    return mapped(r).plan.precision;
  };
  EXPECT_EQ(precision("nvfp4 (attention projections only), bf16 otherwise"), Precision::kBf16);
  EXPECT_EQ(precision("fp8 (linears), bf16 experts"), Precision::kFp8);  // there are none
  r.experts = 64, r.experts_per_token = 8, r.expert_ffn = 1024, r.ep = 8;
  EXPECT_EQ(precision("fp8 (linears), bf16 experts"), Precision::kBf16);
  EXPECT_TRUE(assumes(mapped(r), "bf16 throughout"));
  EXPECT_EQ(precision("mxfp8 (linears only, experts bf16)"), Precision::kBf16);
  EXPECT_EQ(precision("mxfp8 (experts only, linears bf16)"), Precision::kMxfp8);
  EXPECT_EQ(precision("linears bf16 / experts fp8"), Precision::kFp8);
  EXPECT_EQ(precision("bf16 experts"), Precision::kBf16);
}

// The engine by itself recomputes nothing; torchtitan does.
TEST(Words, PlainFsdp2HasNoDefaultsOfTorchtitan) {
  TrainingRun r = base();
  r.tp = std::nullopt;
  r.framework = "torchtitan FSDP2";
  EXPECT_EQ(mapped(r).plan.recompute, Recompute::kSelective);
  for (const char* framework : {"PyTorch FSDP2", "my trainer over fully_shard (FSDP2)"}) {
    r.framework = framework;
    EXPECT_EQ(mapped(r).setting.stack.name, "pytorch-fsdp2-plain") << framework;
    EXPECT_EQ(mapped(r).plan.recompute, Recompute::kNone) << framework;
  }
  r.framework = "PyTorch", r.zero = "FSDP2";
  EXPECT_EQ(mapped(r).plan.recompute, Recompute::kNone);
}

TEST(Words, TransformerEngineBringsItsCasts) {
  TrainingRun r = base();
  r.tp = std::nullopt;
  r.precision = "MXFP8";
  r.framework = "PyTorch FSDP2";
  const double plain = mapped(r).setting.stack.quantize_blocks;
  r.framework = "PyTorch FSDP2, Transformer Engine";
  EXPECT_LT(mapped(r).setting.stack.quantize_blocks, plain);
  r.framework = "PyTorch FSDP2, no Transformer Engine";
  EXPECT_EQ(mapped(r).setting.stack.quantize_blocks, plain);
}

// NeMo's recipes fuse the way to the experts, Megatron-LM by itself does not.
TEST(Words, PermutationFusedOrNot) {
  TrainingRun r = base();
  r.experts = 64, r.experts_per_token = 8, r.expert_ffn = 1024, r.ep = 8;
  const auto copies = [&](const char* framework, const char* notes) {
    r.framework = framework, r.notes = notes;
    return mapped(r).setting.stack.permute_passes;
  };
  EXPECT_EQ(copies("NeMo 25.04", ""), 4);
  EXPECT_EQ(copies("NeMo 25.04", "permute fusion off"), 7);
  EXPECT_EQ(copies("NeMo 25.04", "no permute fusion"), 7);
  EXPECT_EQ(copies("Megatron-LM", ""), 7);
  EXPECT_EQ(copies("Megatron-LM", "grouped GEMM, permute fusion"), 4);
}

// Graphs of single modules are not those of the whole step.
TEST(Words, GraphsOfModulesAreNotOfTheStep) {
  TrainingRun r = base();
  r.gpu = "GB200", r.per_node = 4;
  r.framework = "Megatron Bridge (NeMo 26.06)";
  EXPECT_EQ(mapped(r).setting.stack.name, "megatron-core-r26");
  for (const char* notes : {"CUDA graph of the dense modules only", "TE CUDA graphs of the router",
                            "CUDA graph without effect", "recipe V1"}) {
    r.notes = notes;
    EXPECT_EQ(mapped(r).setting.stack.name, "megatron-core") << notes;
  }
}

// Recipes of hybrids capture no whole steps, whatever the release.
TEST(Words, HybridsKeepTheEarlierStack) {
  TrainingRun r = base();
  r.framework = "Megatron Bridge (NeMo 26.06)";
  EXPECT_EQ(choose_stack(r, *find_accelerator(catalog(), "b200"), catalog()).stack->name,
            "megatron-core-r26");
  EXPECT_EQ(choose_stack(r, *find_accelerator(catalog(), "b200"), catalog(), true).stack->name,
            "megatron-core");
}

TEST(Words, DeterministicAttentionOnBlackwell) {
  TrainingRun r = base();
  r.framework = "Megatron-LM", r.notes = "deterministic mode", r.date = "2025-11";
  EXPECT_EQ(mapped(r).setting.stack.attention, AttentionKernel::kVendor);
  r.gpu = "B200";
  EXPECT_EQ(mapped(r).setting.stack.attention, AttentionKernel::kPortable);
  r.date = "2026-06";
  EXPECT_EQ(mapped(r).setting.stack.attention, AttentionKernel::kVendor);
  r.date = "2025-11", r.notes = "non-deterministic";
  EXPECT_EQ(mapped(r).setting.stack.attention, AttentionKernel::kVendor);
}

// A machine of the catalog may be named as the network or, where none is, in the notes.
TEST(Words, MachinesByName) {
  TrainingRun r = base();
  r.inter_link = "GCP A3 network";
  Cluster c = mapped(r).setting.cluster;
  EXPECT_EQ(c.node.nics, 4);
  EXPECT_EQ(c.fabric.kind, FabricKind::kTcp);
  r.inter_link = "", r.notes = "Google A3 (H100 80GB). Step time from TFLOPS";
  EXPECT_EQ(mapped(r).setting.cluster.node.nics, 4);
  r.gpu = "A100", r.notes = "average over 3 iterations; Jean-Zay (network not stated)";
  c = mapped(r).setting.cluster;
  EXPECT_EQ(c.node.nics, 4);
  EXPECT_EQ(c.fabric.kind, FabricKind::kOmnipath);
  r.inter_link = "8x 200 Gb/s HDR";
  EXPECT_EQ(mapped(r).setting.cluster.fabric.kind, FabricKind::kInfiniband);
}

TEST(Words, BlockingLaunchesHideNothing) {
  TrainingRun r = base();
  EXPECT_GT(mapped(r).setting.stack.overlap_grad, 0);
  r.overlap_notes = "CUDA_LAUNCH_BLOCKING=0";
  EXPECT_GT(mapped(r).setting.stack.overlap_grad, 0);
  r.overlap_notes = "CUDA_LAUNCH_BLOCKING=1";
  const Stack stack = mapped(r).setting.stack;
  EXPECT_EQ(stack.overlap_grad, 0);
  EXPECT_EQ(stack.overlap_tp, 0);
  EXPECT_TRUE(stack.launch_blocking);
}

TEST(Words, ModulesAreNoCardsWhateverTheirMemory) {
  TrainingRun r = base();
  const auto part = [&](const char* gpu, double gb) {
    r.gpu = gpu, r.gpu_mem_gb = gb;
    return choose_accelerator(r, catalog())->name;
  };
  EXPECT_EQ(part("H100 SXM5 94GB", 94), "h100-sxm5-94gb");
  EXPECT_EQ(part("H100-NVLink (WAIH100)", 94), "h100-sxm5-94gb");
  EXPECT_EQ(part("H100 NVL", 94), "h100-nvl-94gb");
  EXPECT_EQ(part("H100", 94), "h100-nvl-94gb");
  EXPECT_EQ(part("H100 SXM5", 80), "h100-sxm5-80gb");
}

// On AMD's parts casts to 8 bits are slow but in the stacks that bring kernels for them.
TEST(Words, CastsAreTunedWhereTheVendorDid) {
  TrainingRun r = base();
  r.gpu = "MI300X", r.precision = "fp8";
  const auto slow = [&](const char* framework) {
    r.framework = framework;
    const Setting s = mapped(r).setting;
    return s.stack.casts_tuned ? 1 : s.kernels.plain_casts;
  };
  EXPECT_EQ(slow("Primus"), 1);
  EXPECT_EQ(slow("NeMo 25.04"), 1);
  EXPECT_EQ(slow("Megatron-LM"), 3);
  EXPECT_EQ(slow("torchtitan"), 3);
  r.date = "MLPerf v5.0";
  EXPECT_EQ(slow("PyTorch"), 1);
  r.gpu = "H100";
  EXPECT_EQ(slow("Megatron-LM"), 1);
}

TEST(Words, LatentAttentionTakesTheHostLonger) {
  TrainingRun r = base();
  r.framework = "Megatron-LM";
  Setting s = mapped(r).setting;
  const Seconds plain = way_through(s, true), dense = way_through(s, false);
  s.workload.model.kv_lora_rank = 512;
  EXPECT_GT(way_through(s, true), plain);
  EXPECT_EQ(way_through(s, false), dense);
}

// What is not taken as it stands is told.
TEST(Words, SubstitutionsAreTold) {
  TrainingRun r = base();
  r.gpu = "A100", r.precision = "FP8";
  EXPECT_TRUE(assumes(mapped(r), "has no unit for fp8"));
  r.gpu = "H100";
  EXPECT_FALSE(assumes(mapped(r), "has no unit"));
  EXPECT_FALSE(assumes(mapped(r), "task"));
  r.task = "serving";
  EXPECT_TRUE(assumes(mapped(r), "task \"serving\""));
  r.task = "pretrain (MLM)", r.zero = "zero-9";
  EXPECT_FALSE(assumes(mapped(r), "task"));
  EXPECT_TRUE(assumes(mapped(r), "zero_stage_or_fsdp \"zero-9\""));
  r.zero = "", r.tp = std::nullopt;
  for (const char* framework : {"my own FSDP thing", "custom ZeRO code", "JAX pjit"}) {
    r.framework = framework;
    EXPECT_TRUE(assumes(mapped(r), "by a word of its name")) << framework;
  }
  for (const char* framework : {"NeMo 24.07", "PyTorch FSDP", "MaxText (JAX)"}) {
    r.framework = framework;
    EXPECT_FALSE(assumes(mapped(r), "by a word of its name")) << framework;
  }
}

TEST(Words, GraphsOfLayersHoldLittle) {
  TrainingRun r = base();
  r.framework = "Megatron-Bridge (NeMo 26.06)";
  r.notes = "full-iteration CUDA graph";
  EXPECT_GT(mapped(r).setting.stack.graph_memory, 1);
  r.notes = "TE CUDA graph";
  EXPECT_EQ(mapped(r).setting.stack.graph_memory, 1);
}

TEST(Words, MemoryCounters) {
  TrainingRun r = base();
  EXPECT_FALSE(choose_counter(r).reserved);
  EXPECT_EQ(choose_counter(r).unit, kGB);
  r.notes = "peak memory as the driver shows it";
  EXPECT_TRUE(choose_counter(r).reserved && choose_counter(r).device);
  r.notes = "";
  r.framework = "torchtitan FSDP2";
  EXPECT_TRUE(choose_counter(r).reserved && !choose_counter(r).device);
  EXPECT_EQ(choose_counter(r).unit, kGiB);
  for (const char* note : {"memory converted to GB", "memory converted from GiB", "peak from GiB",
                           "reserved by the allocator, GiB there, GB here"}) {
    r.notes = note;
    EXPECT_EQ(choose_counter(r).unit, kGB) << note;
  }
  r.framework = "TRL SFTTrainer";
  r.notes = "memory from trackio (gpu allocated_memory)";
  EXPECT_TRUE(choose_counter(r).reserved && choose_counter(r).device);
  EXPECT_EQ(choose_counter(r).unit, kGiB);
}

// Accelerate writes `mixed_precision=no`; a mixed corpus is none.
TEST(Scenario, PurePrecisionIsNoAutocast) {
  TrainingRun r = base();
  r.framework = "Hugging Face Trainer", r.zero = "DDP";
  const auto stack = [&](const char* precision, const char* notes) {
    r.precision = precision, r.notes = notes;
    return mapped(r).setting.stack.name;
  };
  for (const char* notes : {"mixed_precision=no", "mixed precision: no", "mixed precision disabled",
                            "dataset: a mixed corpus"})
    EXPECT_EQ(stack("bf16", notes).find("autocast"), std::string::npos) << notes;
  EXPECT_NE(stack("bf16 mixed", "").find("autocast"), std::string::npos);
  EXPECT_NE(stack("bf16", "mixed precision").find("autocast"), std::string::npos);
}

// Whole copies of a model that 32-bit state is far too large for were held in 16 bits, unless the
// row says otherwise.
TEST(Scenario, StateThatCannotBeIn32Bits) {
  TrainingRun r = base();
  r.tp = 1;
  r.framework = "PyTorch FSDP2", r.zero = "DDP", r.gpu = "H100", r.step_time_s = 9;
  r.notes = "";
  EXPECT_EQ(mapped(r).setting.stack.weight_bytes, 2);
  r.notes = "fp32 weights";
  EXPECT_EQ(mapped(r).setting.stack.weight_bytes, 4);
}

// What one release of model code does with experts, all stacks of that time do.
TEST(Scenario, ExpertsOfOneReleaseRunAlike) {
  const Stack& now = *find_stack(catalog(), "transformers");
  const Stack& then = *find_stack(catalog(), "transformers-2024");
  EXPECT_EQ(now.launches_expert, 0);
  for (const char* name : {"transformers-autocast-2024", "transformers-loop-2024", "trl-2024"}) {
    const Stack& st = *find_stack(catalog(), name);
    EXPECT_EQ(st.launches_expert, then.launches_expert) << name;
    EXPECT_EQ(st.experts_apart, then.experts_apart) << name;
    EXPECT_EQ(st.expert_copies, then.expert_copies) << name;
    EXPECT_EQ(st.permute_local, then.permute_local) << name;
  }
}

}  // namespace
}  // namespace assay
