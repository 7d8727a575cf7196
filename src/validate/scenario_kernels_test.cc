#include <algorithm>

#include <gtest/gtest.h>

#include "validate/scenario_case.h"

namespace assay {
namespace {

// What ran is what the cell names, else what the software of that day chose.
TEST(Scenario, AttentionKernelsByNameReleaseAndDate) {
  TrainingRun r = base();
  r.framework = "torchtitan FSDP2";
  r.tp = std::nullopt;
  const auto kernel = [&](const char* cell, const char* framework, const char* date) {
    r.flash_attention = cell, r.framework = framework, r.date = date;
    return mapped(r).setting.stack.attention;
  };
  EXPECT_EQ(kernel("SDPA", "torchtitan FSDP2", "2025-06"), AttentionKernel::kPortable);
  EXPECT_EQ(kernel("SDPA cuDNN", "torchtitan FSDP2", "2025-06"), AttentionKernel::kVendor);
  EXPECT_EQ(kernel("SDPA efficient", "torchtitan FSDP2", "2025-06"), AttentionKernel::kEarly);
  EXPECT_EQ(kernel("SDPA", "PyTorch 2.11 FSDP2", "2026-06"), AttentionKernel::kOperator);
  EXPECT_EQ(kernel("SDPA", "PyTorch 2.9 FSDP2", "2026-06"), AttentionKernel::kPortable);
  EXPECT_EQ(kernel("yes", "NeMo 24.03", "2024-05"), AttentionKernel::kPortable);
  EXPECT_EQ(kernel("yes", "NeMo 24.07", "2024-08"), AttentionKernel::kVendor);
  EXPECT_EQ(kernel("FlashAttention-2", "NeMo 24.07", "2024-08"), AttentionKernel::kPortable);
  EXPECT_EQ(kernel("FlexAttention", "PyTorch 2.11 FSDP2", "2026-06"), AttentionKernel::kPortable);
  r.gpu = "B200";
  EXPECT_EQ(kernel("", "torchtitan FSDP2", "2025-06"), AttentionKernel::kOperator);
  EXPECT_EQ(kernel("SDPA", "torchtitan (PyTorch 2.9)", "2025-11"), AttentionKernel::kOperator);
  EXPECT_EQ(kernel("SDPA", "torchtitan (PyTorch 2.6)", "2025-03"), AttentionKernel::kPortable);
  EXPECT_EQ(kernel("SDPA", "torchtitan (PyTorch 2.11)", ""), AttentionKernel::kOperator);
  EXPECT_EQ(kernel("SDPA", "PyTorch 2.9 FSDP2", "2025-11"), AttentionKernel::kPortable);
  EXPECT_EQ(kernel("FlexAttention", "PyTorch 2.11 FSDP2", "2026-06"), AttentionKernel::kOperator);
}

// FSDP beside a pipeline keeps its weights gathered; a pipeline of torchtitan's first year had as
// many micro-batches as stages.
TEST(Scenario, GradientsAreKeptInThePrecisionOfTheirReduction) {
  TrainingRun r = base();
  const auto states = [&] {
    const Stack stack = mapped(r).setting.stack;
    return std::vector{stack.gradient_bytes, stack.optimizer_bytes, stack.gradient_comm_bytes};
  };
  EXPECT_EQ(states(), (std::vector<double>{2, 16, 2}));  // NeMo's recipes
  r.notes = "fp32 gradient reduction";
  EXPECT_EQ(states(), (std::vector<double>{4, 12, 4}));
  r.framework = "Megatron-LM";
  r.notes = "";
  EXPECT_EQ(states(), (std::vector<double>{4, 12, 4}));
  r.notes = "bf16 grad reduce";
  EXPECT_EQ(states(), (std::vector<double>{2, 16, 2}));
}

TEST(Scenario, MegatronFsdpOverlaps) {
  TrainingRun r = base();
  r.framework = "Megatron-LM";
  EXPECT_FALSE(mapped(r).plan.overlap_param);
  r.zero = "FSDP";
  const Scenario s = mapped(r);
  EXPECT_EQ(s.plan.zero, 3);
  EXPECT_TRUE(s.plan.overlap_param && s.plan.overlap_grad);
  EXPECT_EQ(s.setting.stack.gradient_comm_bytes, 2);
}

// A framework's own name counts before the parts it took from others, and a family by its name.
TEST(Scenario, StacksAndShapesByName) {
  TrainingRun r = base();
  r.framework = "FSDP + Megatron TP (metaseq)";
  EXPECT_EQ(mapped(r).setting.stack.name, "metaseq");
  r.framework = "MegaScale";
  EXPECT_EQ(mapped(r).setting.stack.name, "megascale");
  EXPECT_TRUE(mapped(r).plan.overlap_tp);
  r.framework = "HAI-LLM (DualPipe)";
  EXPECT_EQ(mapped(r).setting.stack.name, "hai-llm");
  r.model_name = "Falcon 1.3B", r.gated_mlp = false;
  EXPECT_TRUE(mapped(r).setting.workload.model.parallel_block);
  EXPECT_FALSE(mapped(r).setting.workload.model.learned_positions);
  r.model_name = "GPT-J 1.3B";
  EXPECT_TRUE(mapped(r).setting.workload.model.parallel_block);
  EXPECT_FALSE(mapped(r).setting.workload.model.learned_positions);
  r.model_name = "BLOOM 1.3B";
  EXPECT_FALSE(mapped(r).setting.workload.model.rotary);
  r.model_name = "Falcon3 1.3B";
  EXPECT_FALSE(mapped(r).setting.workload.model.parallel_block);
  r.model_name = "GPT 1.3B";
  EXPECT_TRUE(mapped(r).setting.workload.model.learned_positions);
  r.gated_mlp = true;
  EXPECT_FALSE(mapped(r).setting.workload.model.learned_positions);
}

// A batch is rounded before a rank's share of it is taken for the micro-batch that nobody stated.
TEST(Scenario, UnstatedMicroBatchOfARoundedBatch) {
  TrainingRun r = base();
  r.framework = "PyTorch FSDP", r.zero = "FSDP";
  r.accelerators = 992, r.tp = 8, r.pp = 1, r.dp = 124;
  r.micro_batch = std::nullopt, r.grad_accum = std::nullopt;
  r.global_batch = 976;
  EXPECT_EQ(mapped(r).setting.workload.global_batch, 992);
  EXPECT_EQ(mapped(r).plan.micro_batch, 8);
}

TEST(Scenario, FsdpBesideAPipeline) {
  TrainingRun r = base();
  r.framework = "torchtitan";
  r.zero = "FSDP2";
  r.accelerators = 64, r.tp = 1, r.pp = 4, r.dp = 16;
  r.layers = 32;
  r.micro_batch = std::nullopt, r.grad_accum = std::nullopt;
  r.global_batch = 512;
  r.date = "2025-06";
  EXPECT_EQ(mapped(r).plan.zero, 2);
  EXPECT_EQ(mapped(r).plan.micro_batch, 1);
  r.date = "2024-12";
  EXPECT_EQ(mapped(r).plan.micro_batch, 8);
  r.framework = "in-house (4D: TP, CP, PP, FSDP)";
  EXPECT_EQ(mapped(r).setting.stack.name, "megatron-like");
  r.pp = 1, r.dp = 64;
  EXPECT_EQ(mapped(r).plan.zero, 3);
}

// An architecture is taken for its usual part, and that is told; a word that is none, or two of
// them, is not.
TEST(Scenario, AcceleratorsByArchitecture) {
  TrainingRun r = base();
  r.gpu = "NVIDIA Hopper (989 TFLOPS bf16, 80 GB)";
  r.gpu_mem_gb = 80;
  const Scenario s = mapped(r);
  EXPECT_EQ(s.setting.cluster.accelerator.name, "h100-sxm5-80gb");
  EXPECT_NE(std::find(s.assumed.begin(), s.assumed.end(), "accelerator h100-sxm5-80gb"),
            s.assumed.end());
  r.gpu = "Hopper";
  r.gpu_mem_gb = 141;
  EXPECT_EQ(usual_accelerator(r, catalog())->name, "h200-sxm5-141gb");
  for (const char* none : {"generic thing", "Hopper and Ampere", "mixed Hopper", "Frobnicator"}) {
    r.gpu = none;
    EXPECT_EQ(usual_accelerator(r, catalog()), nullptr) << none;
  }
}

// NeMo is written beside the Megatron that it runs on; only Megatron-LM by its name is run by hand.
TEST(Scenario, NemoBesideMegatronIsNemo) {
  TrainingRun r = base();
  const auto stack = [&](const char* framework) {
    r.framework = framework;
    return mapped(r).setting.stack.name;
  };
  const std::string nemo = stack("NeMo 24.07");
  for (const char* text : {"NeMo 2 / Megatron (NeMo 26.02)", "Megatron/NeMo", "NeMo 2.0, Megatron"})
    EXPECT_EQ(stack(text), nemo) << text;
  EXPECT_EQ(stack("Megatron-LM (NeMo 26.02 container)"), "megatron-lm");
  EXPECT_EQ(stack("Megatron-Bridge b50da4c (nemo:26.08.00)"), "megatron-core-r26");
  EXPECT_EQ(stack("NeMo framework release 26.06"), "megatron-core-r26");
  EXPECT_EQ(stack("Megatron-Bridge (NeMo 26.04)"), nemo);
  const std::string model = r.model_name;
  r.model_name = "Qwen2.5 72B";  // nobody's recipe
  EXPECT_EQ(stack("Megatron-Bridge (NeMo 26.04)"), "megatron-core-plain");
  r.model_name = model;
  r.experts = 128;
  EXPECT_EQ(stack("NeMo framework release 26.06"), nemo);
  r.gpu = "GB200", r.precision = "MXFP8";
  EXPECT_EQ(stack("NeMo framework release 26.06"), "megatron-core-r26");
  r.overlap_notes = "full-iteration CUDA graphs; HybridEP";
  EXPECT_EQ(stack("Megatron-Bridge (NeMo 26.04)"), "megatron-core-r26");
  EXPECT_EQ(stack("Megatron-LM"), "megatron-lm");
  r.overlap_notes = "", r.notes = "MLPerf Training v6.0 log";
  EXPECT_EQ(stack("NeMo/Megatron-Bridge (26.04)"), "megatron-core-r26");
  r.tp = r.pp = std::nullopt;
  EXPECT_EQ(stack(""), "megatron-submission");
  r.notes = "";
  EXPECT_EQ(stack(""), "pytorch-fsdp");
}

// Recompute that stops early came with PyTorch 2.1, and with Hugging Face's code in 2026.
TEST(Scenario, RecomputeStoppedEarlyOnlySinceItCould) {
  TrainingRun r = base();
  r.tp = r.pp = std::nullopt;
  r.recompute = "full";
  const auto stops = [&](const char* framework, const char* date) {
    r.framework = framework, r.date = date;
    return mapped(r).plan.early_stop;
  };
  EXPECT_FALSE(stops("PyTorch FSDP", "2022-12"));
  EXPECT_TRUE(stops("PyTorch FSDP", "2024"));
  EXPECT_TRUE(stops("PyTorch FSDP", ""));
  EXPECT_FALSE(stops("HF Trainer + FSDP", "2025"));
  EXPECT_TRUE(stops("HF Trainer + FSDP", "2026-06"));
  EXPECT_TRUE(stops("torchtitan (FSDP2)", "2025-06"));
  EXPECT_FALSE(stops("torchtitan (FSDP2)", "2025-09"));
  r.recompute = "full (early_stop)";
  EXPECT_TRUE(stops("HF Trainer + FSDP", "2025"));
  EXPECT_TRUE(stops("torchtitan (FSDP2)", "2026-01"));
}

// torchtitan's own configurations recompute whole layers from 14B on, unless a row says otherwise.
TEST(Scenario, TorchtitansRecipesOfLargeModels) {
  TrainingRun r = base();
  r.tp = r.pp = std::nullopt;
  r.recompute = "";
  const auto recompute = [&](const char* framework, int64_t layers) {
    r.framework = framework, r.layers = layers, r.params_b = std::nullopt;
    return mapped(r).plan.recompute;
  };
  EXPECT_EQ(recompute("torchtitan", 8), Recompute::kSelective);
  EXPECT_EQ(recompute("torchtitan", 200), Recompute::kFull);
  EXPECT_EQ(recompute("FSDP2", 200), Recompute::kNone);
  r.recompute = "selective";
  EXPECT_EQ(recompute("torchtitan", 200), Recompute::kSelective);
}

TEST(Scenario, DatesInAnyForm) {
  for (const char* date : {"2024-05", "2024/05", "May 2024", "05/2024", "20240517", "Q2 2024",
                           "2024-11 MLPerf Training v4.1", "2025"}) {
    EXPECT_TRUE(dated_from(date, "2024-04")) << date;
  }
  for (const char* date : {"2023-12", "10 June 2024", "2024", "2024, 8 GPUs", "", "MLPerf v4.0"}) {
    EXPECT_FALSE(dated_from(date, "2024-07")) << date;
  }
}

TEST(Scenario, PartsByMemoryAndForm) {
  const auto part = [](const char* gpu) {
    TrainingRun r = base();
    r.gpu = gpu;
    const Accelerator* a = choose_accelerator(r, catalog());
    return a ? a->name : "none";
  };
  EXPECT_EQ(part("PCIe H100"), "h100-pcie-80gb");
  EXPECT_EQ(part("H100-SXM5-80GB (PCIe Gen5, NVLink)"), "h100-sxm5-80gb");
  EXPECT_EQ(part("A100 with 40GB"), "a100-sxm4-40gb");
  EXPECT_EQ(part("NVIDIA GB300 Grace Blackwell Ultra"), "gb300-288gb");
  EXPECT_EQ(part("H100 (no MIG)"), "h100-sxm5-80gb");
  EXPECT_EQ(part("H100 MIG 3g.40gb"), "none");
  EXPECT_EQ(part("A100/H100"), "none");
  EXPECT_EQ(part("H100x8"), "h100-sxm5-80gb");
  EXPECT_EQ(part("8x4090"), part("RTX 4090"));
}

TEST(Scenario, Fsdp2ExplainedAsZeroIsFsdp) {
  TrainingRun r = base();
  r.framework = "somebody's trainer";
  r.tp = r.pp = std::nullopt;
  r.zero = "FSDP2 (ZeRO-3)";
  EXPECT_EQ(mapped(r).setting.stack.name, "pytorch-fsdp2-plain");
  r.zero = "ZeRO-3";
  EXPECT_EQ(mapped(r).setting.stack.name, "deepspeed-zero");
}

// Head and loss in parts since May 2026, unless a run says otherwise.
TEST(Scenario, TorchtitansLossInParts) {
  TrainingRun r = base();
  r.framework = "torchtitan (PyTorch 2.13)";
  r.tp = r.pp = std::nullopt;
  r.zero = "FSDP2";
  const auto chunks = [&](const char* date, const char* notes) {
    r.date = date, r.notes = notes;
    return mapped(r).setting.stack.loss_chunks;
  };
  EXPECT_EQ(chunks("2026-04", ""), 1);
  EXPECT_EQ(chunks("", ""), 1);
  EXPECT_EQ(chunks("2026-05", ""), 8);
  EXPECT_EQ(chunks("2026-08", "AdamW, chunked loss, c4"), 8);
  EXPECT_EQ(chunks("2026-06", "graph trainer; plain cross-entropy"), 1);
  r.framework = "prime-rl (FSDP2)";
  EXPECT_EQ(chunks("2026-08", ""), 1);
}

TEST(Scenario, RecomputeThatSaysNothingIsAssumed) {
  TrainingRun r = base();
  const auto assumes_recompute = [&](const char* text) {
    r.recompute = text;
    for (const std::string& a : mapped(r).assumed) {
      if (a.starts_with("recompute ")) return true;
    }
    return false;
  };
  EXPECT_TRUE(assumes_recompute("sometimes"));
  EXPECT_FALSE(assumes_recompute("full"));
  EXPECT_FALSE(assumes_recompute("block 4"));
}

// What a run names as recomputed is counted by the widths of its own model.
TEST(Scenario, PartsAreWeighedByTheModel) {
  TrainingRun r = base();
  const double qkv = 4096 + 2 * 1024, out = 4096, up = 2 * 14336, down = 14336;
  const double all = qkv + out + up + down;
  const auto share = [&] { return mapped(r).setting.stack.selective_matmul; };
  r.recompute = "save_qkv_proj";
  EXPECT_NEAR(share(), (out + up) / all, 1e-12);
  EXPECT_EQ(mapped(r).setting.stack.selective_attention, 1);
  EXPECT_EQ(mapped(r).setting.stack.selective_kept, 2 + 2 * 1024. / 4096);  // input, q, k and v
  r.recompute = "selective:mlp";
  EXPECT_EQ(mapped(r).setting.stack.selective_kept, 0);
  EXPECT_NEAR(share(), (up + down) / all, 1e-12);
  r.recompute = "selective";
  r.notes = "modules layernorm, mlp recomputed";
  EXPECT_NEAR(share(), (up + down) / all, 1e-12);
  // Beside experts `mlp` means the few dense layers, `moe` the experts.
  r = base();
  r.model_name = "Mixtral-8x7B";
  r.experts = 8, r.experts_per_token = 2;
  r.recompute = "selective:mlp";
  EXPECT_EQ(share(), 0);
  EXPECT_FALSE(mapped(r).setting.stack.selective_experts);
  r.recompute = "selective: moe";
  EXPECT_EQ(share(), 0);
  EXPECT_TRUE(mapped(r).setting.stack.selective_experts);
}

// Another memory or bin of a part stands in the nodes of its kin.
TEST(Scenario, PartsWithoutANodeOfTheirOwn) {
  TrainingRun r = base();
  r.inter_link = "";
  const auto nics = [&](const char* gpu) {
    r.gpu = gpu;
    const Node node = mapped(r).setting.cluster.node;
    return node.nic_bandwidth.v * static_cast<double>(node.nics);
  };
  EXPECT_EQ(nics("Ascend 910B3"), nics("Ascend 910B"));
  EXPECT_EQ(nics("GH200 144GB HBM3e"), nics("GH200"));
}

TEST(Scenario, AcceleratorsAsPeopleAbbreviateThem) {
  TrainingRun r = base();
  r.gpu_mem_gb = std::nullopt;
  const auto named = [&](const char* gpu) {
    r.gpu = gpu;
    const Accelerator* a = choose_accelerator(r, catalog());
    return a ? a->name : "";
  };
  EXPECT_EQ(named("A100-40G"), "a100-sxm4-40gb");
  EXPECT_EQ(named("V100-16G"), "v100-sxm2-16gb");
  EXPECT_EQ(named("v4-128"), "tpu-v4");
  EXPECT_EQ(named("v100-sxm3-32gb"), named("V100-SXM3-32GB"));
  EXPECT_EQ(named("Grace Hopper"), "gh200-96gb");
  EXPECT_EQ(named("H100 (95 GiB)"), "h100-96gb-hbm2e");
}

// What a part's name has beside a known one may make it another part: told, not guessed.
TEST(Scenario, PartsKnownByAPartOfTheirNameAreTold) {
  TrainingRun r = base();
  r.gpu_mem_gb = std::nullopt;
  const auto unknown = [&](const char* gpu) {
    r.gpu = gpu;
    for (const std::string& a : mapped(r).assumed) {
      if (a.find("by a part of its name") != std::string::npos) return a;
    }
    return std::string();
  };
  EXPECT_NE(unknown("Ascend910 (Z7 node)").find("z7 is not known"), std::string::npos);
  EXPECT_NE(unknown("H100 Q9").find("q9"), std::string::npos);
  EXPECT_NE(unknown("RTX 5090 Laptop").find("laptop"), std::string::npos);
  EXPECT_NE(unknown("RTX A5000 Ada 32GB").find("ada"), std::string::npos);
  for (const char* usual :
       {"NVIDIA H100 80GB HBM3", "8xA100-SXM4-80GB", "H100 (p5.48xlarge)",
        "B300 (p6-b300.48xlarge)", "A100 80G SXM", "NVIDIA_H800-80GB", "TPU v5e", "MI250X (GCD)",
        "GB200 NVL72", "Ascend 910B (64 GB HBM)", "A100 80GB SXM4 (400 W)", "H100 (a3-highgpu-8g)",
        "A100 (ND96amsr_A100_v4)", "H100-NVLink (WAIH100)", "NVIDIA GH200 480GB",
        "H100 80GB PCIe Gen5", "Max 1550 (tile)"}) {
    EXPECT_EQ(unknown(usual), "") << usual;
  }
}

// A chip and its cores are one accelerator; a limit without watts is the usual one.
TEST(Scenario, CoresOfAChipAndLimitsWithoutWatts) {
  TrainingRun r = base();
  r.gpu = "trn1.32xlarge/trn1n.32xlarge NeuronCore-v2";
  EXPECT_EQ(mapped(r).setting.cluster.accelerator.name, "trn1-neuroncore");
  r.gpu = "TPU V3 core (v3-512 slice)";
  EXPECT_EQ(mapped(r).setting.cluster.accelerator.name, "tpu-v3-core");
  r.accelerators = 128, r.per_node = 4;
  for (const auto& [slice, part] :
       {std::pair{"TPU v3-128", "tpu-v3-core"}, std::pair{"TPU v3-256", "tpu-v3"},
        std::pair{"TPU v5p-128", "tpu-v5p"}, std::pair{"TPU v5e-128", "tpu-v5e"},
        std::pair{"Cloud TPU pod v3-256", "tpu-v3"}}) {
    r.gpu = slice;
    EXPECT_EQ(mapped(r).setting.cluster.accelerator.name, part) << slice;
  }
  r.gpu = "TPU v3-128", r.gpu_mem_gb = 32;
  EXPECT_EQ(mapped(r).setting.cluster.accelerator.name, "tpu-v3");
  r = base();
  r.gpu = "A100, V100";
  EXPECT_FALSE(to_scenario(r, catalog()));
  r.gpu = "NVIDIA B200 (power limited)";
  EXPECT_EQ(mapped(r).setting.cluster.accelerator.tdp.v, 750);
  r.gpu = "NVIDIA B200";
  r.notes = "power limited to 600 W";
  EXPECT_EQ(mapped(r).setting.cluster.accelerator.tdp.v, 600);
  r.notes = "not power limited";
  EXPECT_EQ(mapped(r).setting.cluster.accelerator.tdp.v, 1000);
  r.framework = "LitGPT";
  r.notes = "";
  r.zero = "Fully-sharded ZeRO 3";
  r.tp = 1;
  EXPECT_EQ(mapped(r).setting.stack.sharding, Sharding::kFsdp);
}

// A bridge joins two cards that otherwise talk over PCIe.
TEST(Scenario, BridgesBetweenTwoCards) {
  TrainingRun r = base();
  r.gpu = "RTX 3090", r.accelerators = 2, r.per_node = 2, r.tp = 1, r.pp = 1;
  r.intra_link = "NVLink bridge (NV4)";
  EXPECT_EQ(mapped(r).setting.cluster.accelerator.scaleup_bandwidth.v, 56.25e9);
  r.intra_link = "PCIe 4.0 (no NVLink)";
  EXPECT_LT(mapped(r).setting.cluster.accelerator.scaleup_bandwidth.v, 20e9);
  r.intra_link = "NVLink", r.accelerators = 8, r.per_node = 8;
  EXPECT_LT(mapped(r).setting.cluster.accelerator.scaleup_bandwidth.v, 20e9);
}

// Megatron's layers in a loop under autocast: 32-bit weights and state, more traffic.
TEST(Scenario, MegatronUnderAutocast) {
  TrainingRun r = base();
  r.framework = "Megatron-Core (own harness)", r.precision = "bf16";
  const Stack plain = mapped(r).setting.stack;
  r.precision = "bf16 autocast, fp32 parameters";
  const Stack cast = mapped(r).setting.stack;
  EXPECT_GT(cast.traffic, plain.traffic);
  EXPECT_GT(cast.kernels_forward, plain.kernels_forward);
  EXPECT_EQ(cast.weight_bytes, 4);
  EXPECT_EQ(cast.optimizer_bytes, 8);
  EXPECT_EQ(cast.gradient_comm_bytes, 4);
  r.gpu = "H100", r.precision = "fp8";
  const Stack eight = mapped(r).setting.stack;
  r.precision = "fp8 (TE fp8_autocast)";
  EXPECT_EQ(mapped(r).setting.stack.traffic, eight.traffic);
}

// Sailor's OPT-350M has no projection: 353 M parameters, not 331.
TEST(Scenario, AnEmbeddingIsAsWideAsItsParametersSay) {
  TrainingRun r = base();
  r.model_name = "OPT-350M";
  r.layers = 24, r.hidden = 1024, r.ffn = 4096, r.heads = r.kv_heads = 16, r.vocab = 50272;
  r.params_b = 0.331;
  EXPECT_EQ(mapped(r).setting.workload.model.embedding_dim, 512);
  r.params_b = 0.353;
  EXPECT_EQ(mapped(r).setting.workload.model.embedding_dim, 0);
  EXPECT_EQ(mapped(r).setting.workload.model.head_dim, 0);
}

}  // namespace
}  // namespace assay
