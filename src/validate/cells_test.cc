#include "validate/cells.h"
#include "validate/text.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

// Cells as people wrote them, which had been misread.
TEST(Cells, WhatIsSavedSharedOrDenied) {
  EXPECT_EQ(read_recompute("none (selective recompute not yet enabled)").kind, Recompute::kNone);
  EXPECT_EQ(read_recompute("full on 10 of 80 layers").fraction, 0.125);
  EXPECT_EQ(read_recompute("full (32 of 61 layers)").layer_count, std::nullopt);
  EXPECT_EQ(read_recompute("norms and SwiGLU").kind, Recompute::kSelective);
  EXPECT_EQ(read_recompute("norms and SwiGLU").parts->memory, 0.5);
  EXPECT_TRUE(read_recompute("mla_up_proj").parts->latent);
  EXPECT_TRUE(read_recompute("checkpoint policy SAVE_QKV_OUT_PROJ").parts->up);
  EXPECT_EQ(read_recompute("flash attention and dots saved").kind, Recompute::kSelective);
  EXPECT_EQ(read_recompute("gradient checkpointing").kind, Recompute::kFull);
  EXPECT_EQ(read_recompute("N/A").kind, std::nullopt);
  for (const char* text : {"not used", "w/o activation checkpointing", "without recomputation",
                           "everything_saveable", "memory_budget 0.9"}) {
    EXPECT_EQ(read_recompute(text).kind, Recompute::kNone) << text;
  }
  EXPECT_EQ(read_recompute("every 2nd layer").fraction, 0.5);
  EXPECT_EQ(read_recompute("1 of every 4 layers").fraction, 0.25);
  EXPECT_EQ(read_recompute("one_in_four").fraction, 0.25);
  EXPECT_EQ(read_recompute("25 % of the layers").fraction, 0.25);
  EXPECT_EQ(read_recompute("every 4 layers").layer_count, std::nullopt);
  EXPECT_EQ(read_recompute("1/4 of the layers").fraction, 0.25);
  EXPECT_EQ(read_recompute("12.5% of the layers").fraction, 0.125);
  EXPECT_EQ(read_recompute("full, no offload").offload_activations, 0);
  EXPECT_EQ(read_recompute("SelectiveAC(op)").kind, Recompute::kSelective);
  EXPECT_EQ(read_recompute("dots_with_no_batch_dims_saveable").kind, Recompute::kSelective);
  EXPECT_TRUE(read_recompute("activation checkpointing on MLP").parts->up);
  EXPECT_EQ(read_sharding("w/o ZeRO").zero, 0);
  EXPECT_EQ(read_sharding("use_distributed_optimizer=False").zero, 0);
  EXPECT_EQ(read_sharding("FSDP: shard optimizer, gradients and parameters").zero, 3);
  EXPECT_EQ(read_sharding("ZeRO++").zero, 3);
  EXPECT_EQ(read_sharding("ZeRO-Offload").zero, 2);
  EXPECT_EQ(read_sharding("unknown").zero, std::nullopt);
  EXPECT_EQ(read_flash("flash-attn 2.0.4"), true);
  EXPECT_EQ(read_flash("not used"), false);
  EXPECT_EQ(read_flash("fused softmax"), false);
  EXPECT_EQ(read_flash("n/a"), std::nullopt);
  EXPECT_EQ(read_attention_kernel("FA-3"), AttentionKernel::kVendor);
  EXPECT_EQ(read_precision("bf16 (fp8 not used)").precision, Precision::kBf16);
  EXPECT_EQ(read_precision("bf16, not fp8").precision, Precision::kBf16);
  EXPECT_EQ(read_precision("bf16 + fp8 attention").precision, Precision::kBf16);
  EXPECT_EQ(read_precision("bf16 all-gather, fp32 gradient reduction").precision, Precision::kBf16);
  EXPECT_EQ(read_sharding("DDP, non-distributed optimizer").zero, 0);
  EXPECT_EQ(read_sharding("Megatron FSDP data_parallel_sharding_strategy=optim").zero, 1);
  EXPECT_EQ(read_sharding("Megatron FSDP data_parallel_sharding_strategy=optim_grads").zero, 2);
  EXPECT_EQ(read_sharding("Megatron FSDP optim_grads_params (ZeRO-3)").zero, 3);
  EXPECT_EQ(read_sharding("FSDP2 (fully_shard), reshard_after_forward never").zero, 2);
  EXPECT_EQ(read_sharding("optimizer state sharded").zero, 1);
  EXPECT_EQ(read_precision("fp32 (no TF32)").precision, Precision::kFp32);
  EXPECT_EQ(read_precision("bf16, fp8 Adam moments, no master weights").precision,
            Precision::kBf16);
}

TEST(Cells, Precision) {
  struct Row {
    const char* text;
    std::optional<Precision> expected;
  };
  const Row rows[] = {
      {"bf16", Precision::kBf16},
      {"BF16", Precision::kBf16},
      {"bfloat16", Precision::kBf16},
      {"bf16-mixed", Precision::kBf16},
      {"fp16", Precision::kFp16},
      {"16-mixed", Precision::kFp16},
      {"float32", Precision::kFp32},
      {"TF32", Precision::kTf32},
      {"FP8", Precision::kFp8},
      {"FP8-CS", Precision::kFp8},
      {"fp8 (linear)", Precision::kFp8},
      {"fp8 tensorwise", Precision::kFp8},
      {"fp8_full", Precision::kFp8},
      {"FP8-MX", Precision::kMxfp8},
      {"MXFP8", Precision::kMxfp8},
      {"fp8 rowwise", Precision::kMxfp8},
      {"FP8 blockwise", Precision::kMxfp8},
      {"NVFP4", Precision::kNvfp4},
      {"int8", Precision::kInt8},
      {"Autocast:BF16+FP32Optimizer", Precision::kBf16},
      {"bf16 (int8 quantised matmul possible)", Precision::kBf16},
      {"FP8 or NVFP4 (both configs in submission)", Precision::kNvfp4},
      {"", std::nullopt},
      {"mixed", std::nullopt},
      {"bf16 (weights and compute; nvfp4 preset overridden to bf16)", Precision::kBf16},
      {"nvfp4 preset, overridden to fp8", Precision::kFp8},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(read_precision(row.text).precision, row.expected) << row.text;
  }
  EXPECT_TRUE(read_precision("FP8 or NVFP4").ambiguous);
  EXPECT_FALSE(read_precision("Autocast:BF16+FP32Optimizer").ambiguous);
}

TEST(Cells, Recompute) {
  struct Row {
    const char* text;
    std::optional<Recompute> kind;
    double fraction = 1;
  };
  const Row rows[] = {
      {"", std::nullopt},
      {"none", Recompute::kNone},
      {"no", Recompute::kNone},
      {"full", Recompute::kFull},
      {"yes", Recompute::kFull},
      {"full (no early stop)", Recompute::kFull},
      {"full (early_stop)", Recompute::kFull},
      {"selective", Recompute::kSelective},
      {"selective(op)", Recompute::kSelective},
      {"selective: norm+act", Recompute::kSelective},
      {"selective:mla_up_proj", Recompute::kSelective},
      {"selective (every other layer)", Recompute::kFull, 0.5},
      {"full 1/4", Recompute::kFull, 0.25},
      {"minimal", Recompute::kSelective},
      {"custom", Recompute::kFull},
  };
  for (const Row& row : rows) {
    const RecomputeCell cell = read_recompute(row.text);
    EXPECT_EQ(cell.kind, row.kind) << row.text;
    EXPECT_EQ(cell.fraction.value_or(1), row.fraction) << row.text;
  }
  EXPECT_TRUE(inferred("x; inferred: seq 2048 (script), precision, shape; y", "precision"));
  EXPECT_FALSE(inferred("inferred: precision per family", "precision"));
  EXPECT_FALSE(inferred("inferred: seq; precision", "precision"));
  EXPECT_FALSE(inferred("inferred:", "precision"));
  EXPECT_FALSE(inferred("", "precision"));
  EXPECT_EQ(read_recompute("full, 12 layers").layer_count, 12);
  EXPECT_EQ(read_recompute("block 4").layer_count, 4);
  EXPECT_EQ(read_recompute("full, uniform, 1 layer").layer_count, std::nullopt);
  EXPECT_EQ(read_recompute("full (early_stop)").early_stop, true);
  EXPECT_EQ(read_recompute("full (no early stop)").early_stop, false);
}

// Which parts a text names, as letters in the order of the struct.
std::string parts_of(const std::optional<RecomputeParts>& p) {
  if (!p) return "-";
  std::string out;
  const auto mark = [&](bool on, char letter) {
    if (on) out += letter;
  };
  mark(p->qkv, 'q'), mark(p->out, 'o'), mark(p->up, 'u'), mark(p->down, 'd');
  mark(p->latent, 'l'), mark(p->experts, 'e'), mark(p->attention, 'a'), mark(p->memory > 0, 'm');
  return out;
}

TEST(Cells, PartsThatRunAgain) {
  struct Row {
    const char *text, *parts;
  };
  const Row rows[] = {
      {"selective(op)", "-"},
      {"selective", "-"},
      {"minimal", "-"},
      {"selective: norm+act", "m"},
      {"selective (moe_act, layernorm)", "m"},
      {"selective:mlp", "ud"},
      {"selective (up_proj, mlp)", "udl"},
      {"selective: moe, layernorm", "em"},
      {"selective (core_attn)", "a"},
      {"save_qkv_proj", "oueam"},
      {"qkv_proj_offloaded", "oueam"},
      {"save_out_proj", "queam"},
      {"save_dot_except_mlp", "ueam"},
      {"save_dot_with_context_except_mlp", "uem"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(read_recompute(row.text).kind, Recompute::kSelective) << row.text;
    EXPECT_EQ(parts_of(read_recompute(row.text).parts), row.parts) << row.text;
  }
  EXPECT_EQ(parts_of(read_recompute_modules("x; modules attn, layernorm, moe_expert recomputed")),
            "eam");
  EXPECT_EQ(parts_of(read_recompute_modules("recompute_modules: mla_up_proj; x")), "l");
  EXPECT_EQ(parts_of(read_recompute_modules("modules of its own; moe recomputed")), "-");
}

TEST(Cells, RecomputeInNotesMustBeExplicit) {
  EXPECT_EQ(read_recompute_notes("config json: use_checkpoint=true, 1f1b").kind, Recompute::kFull);
  EXPECT_EQ(read_recompute_notes("no activation checkpointing").kind, Recompute::kNone);
  EXPECT_EQ(read_recompute_notes("selective activation checkpointing").kind, Recompute::kSelective);
  EXPECT_FALSE(read_recompute_notes("recompute/offload read from recipe X").kind);
}

TEST(Cells, Sharding) {
  struct Row {
    const char* text;
    std::optional<int64_t> zero;
    bool fsdp = false;
  };
  const Row rows[] = {
      {"", std::nullopt},
      {"ZeRO-0", 0},
      {"ZeRO-1", 1},
      {"zero2", 2},
      {"stage 3", 3, true},
      {"stage2", 2},
      {"ZeRO-DP O3", 3, true},
      {"ZeRO-DP O1", 1},
      {"DP", 0},
      {"ZeRO-3", 3, true},
      {"3", 3, true},
      {"distributed optimizer", 1},
      {"distributed optimizer (ZeRO-1)", 1},
      {"FSDP", 3, true},
      {"FSDP2 (ZeRO-3)", 3, true},
      {"HSDP", 3, true},
      {"Megatron-FSDP", 3, true},
      {"SHARD_GRAD_OP", 2},
      {"none (TP only)", 0},
      {"DDP", 0},
      {"DS-3D", 0},
      {"2D FSDP+TP (12-way TP x 256-way FSDP per pod, 2 pods)", 3, true},
      {"ZeRO-3 + CPU optimizer offload", 3, true},
  };
  for (const Row& row : rows) {
    const ShardingCell cell = read_sharding(row.text);
    EXPECT_EQ(cell.zero, row.zero) << row.text;
    EXPECT_EQ(cell.fsdp, row.fsdp) << row.text;
  }
  EXPECT_TRUE(read_sharding("HSDP").hybrid);
  EXPECT_EQ(read_sharding("ZeRO-3 + CPU optimizer offload").offload_optimizer, 1);
  EXPECT_EQ(read_sharding("ZeRO-3 + CPU optimizer offload").offload_parameters, 0);
  EXPECT_EQ(read_sharding("ZeRO-3 + CPU parameter offload").offload_parameters, 1);
  EXPECT_EQ(read_sharding("FSDP2 + CPU offload").offload_parameters, 1);
  EXPECT_EQ(read_sharding("ZeRO-Infinity").offload_parameters, 1);
  EXPECT_TRUE(read_sharding("distributed optimizer").distributed_optimizer);
}

TEST(Cells, Flash) {
  EXPECT_EQ(read_flash("yes (cuDNN/TE)"), true);
  EXPECT_EQ(read_flash("SDPA FA2"), true);
  EXPECT_EQ(read_flash("FA4 beta"), true);
  EXPECT_EQ(read_flash("no"), false);
  EXPECT_EQ(read_flash("eager"), false);
  EXPECT_EQ(read_flash(""), std::nullopt);
}

TEST(Cells, EarlyFlash) {
  EXPECT_TRUE(early_flash("triton"));
  EXPECT_TRUE(early_flash("Flash Attention 1"));
  EXPECT_FALSE(early_flash("FA2"));
  EXPECT_FALSE(early_flash("FlashAttention2 (Triton kernel)"));
  EXPECT_FALSE(early_flash("yes (cuDNN/TE)"));
  EXPECT_FALSE(early_flash(""));
  EXPECT_TRUE(later_flash("flash attention 2"));
  EXPECT_TRUE(later_flash("SDPA FA2"));
  EXPECT_FALSE(later_flash("yes"));
}

TEST(Cells, Tasks) {
  EXPECT_EQ(read_task("pretrain", "Llama-2-70B"), Task::kPretrain);
  EXPECT_EQ(read_task("", "Llama-2-70B-LoRA"), Task::kLora);
  EXPECT_EQ(read_task("QLoRA", ""), Task::kLora);
  EXPECT_EQ(read_task("sft", ""), Task::kSft);
  EXPECT_EQ(read_task("fine-tune", ""), Task::kSft);
}

TEST(Cells, RemarksOnCompilationAndGraphs) {
  EXPECT_EQ(read_remarks("torch.compile; vanilla TP").compiled, true);
  EXPECT_EQ(read_remarks("eager (no torch.compile)").compiled, false);
  EXPECT_EQ(read_remarks("torchtitan stock: compile off, vboost 0").compiled, false);
  EXPECT_EQ(read_remarks("PyTorch 2.11 eager").compiled, false);
  EXPECT_EQ(read_remarks("forced balance").compiled, std::nullopt);
  EXPECT_EQ(read_remarks("cuda_graph=transformer_engine/['attn']").cuda_graphs, true);
  EXPECT_EQ(read_remarks("cuda_graph=transformer_engine/['moe_router']").cuda_graphs, false);
  EXPECT_EQ(read_remarks("TP/DP comm overlap per NVIDIA MLPerf config").cuda_graphs, true);
  EXPECT_EQ(read_remarks("NeMo; MLPerf Training v6.0 log").cuda_graphs, true);
  EXPECT_EQ(read_remarks("ROCm; MLPerf Training v6.0 log").cuda_graphs, std::nullopt);
  EXPECT_EQ(read_remarks("").cuda_graphs, std::nullopt);
}

// A denial reaches what it is about, and nothing else.
TEST(Cells, DenialsByClause) {
  const auto compiled = [](const char* text) { return read_remarks(text).compiled; };
  for (const char* text :
       {"torch.compile (no cudagraphs)", "torch.compile/no CUDA graphs", "torch.compile not eager",
        "compile: no graph breaks", "torch.compile (0 graph breaks)", "compile=1 cuda_graph=0"}) {
    EXPECT_EQ(compiled(text), true) << text;
  }
  for (const char* text :
       {"torch.compile (disabled due to graph breaks)", "torch.compile (not supported)",
        "torch.compile (turned off)", "did not use torch.compile", "torch.compile was not used",
        "w/o torch.compile and no CUDA graphs", "COMPILE=0 FOO=1", "uncompiled"}) {
    EXPECT_EQ(compiled(text), false) << text;
  }
  EXPECT_EQ(compiled("NCCL compiled from source"), std::nullopt);
  for (const char* text :
       {"yes, no dropout", "FA2 not FA3", "yes (not FA3)", "SDPA (math backend off)",
        "FlashAttention-3 (no cuDNN)", "Sage attention no; FA2 yes"}) {
    EXPECT_EQ(read_flash(text), true) << text;
  }
  for (const char* text :
       {"use_flash_attention_2=False", "FlashAttention-2: disabled", "Flash Attention 2 off",
        "No. FlashAttention requires Ampere", "no; V100 lacks FlashAttention",
        "TE unfused attention", "flash attention (FA2) not used",
        "NVTE_FLASH_ATTN=0 NVTE_FUSED_ATTN=0", "vanilla"}) {
    EXPECT_EQ(read_flash(text), false) << text;
  }
  for (const char* text :
       {"no activation recompute", "recompute_activations=False",
        "activation checkpointing mode: off", "activation checkpointing (disabled by default)",
        "No, activation checkpointing would fit"}) {
    EXPECT_EQ(read_recompute(text).kind, Recompute::kNone) << text;
  }
  for (const char* text : {"gradient_checkpointing=True (use_reentrant=False)", "yes (no offload)",
                           "all layers, no early stop"}) {
    EXPECT_EQ(read_recompute(text).kind, Recompute::kFull) << text;
  }
  EXPECT_EQ(read_recompute("selective, no full recompute").kind, Recompute::kSelective);
}

TEST(Cells, DeniedFormatsAndShards) {
  for (const char* text : {"BF16 not FP8", "bf16 never fp16", "BF16; FP8 disabled", "bf16 w/o fp8",
                           "bf16 all layers, fp32 router", "bf16 with fp8 communication",
                           "BF16 rather than FP8", "fp8 (disabled due to instability), bf16"}) {
    EXPECT_EQ(read_precision(text).precision, Precision::kBf16) << text;
  }
  EXPECT_EQ(read_precision("bf16 optimizer, fp32 master").precision, Precision::kBf16);
  EXPECT_EQ(read_precision("full precision").precision, Precision::kFp32);
  EXPECT_EQ(read_precision("FP-16").precision, Precision::kFp16);
  EXPECT_EQ(read_precision_notes("training in half the time"), std::nullopt);
  EXPECT_EQ(read_precision_notes("trained in fp16 with loss scaling"), Precision::kFp16);
  for (const char* text : {"FSDP not DDP", "FSDP2 not FSDP1", "ZeRO-3, no offload"}) {
    EXPECT_EQ(read_sharding(text).zero, 3) << text;
    EXPECT_EQ(read_sharding(text).offload_optimizer, 0) << text;
  }
  for (const char* text : {"FSDP off, DDP", "FSDP (not used on one node)", "FSDP disabled"}) {
    EXPECT_EQ(read_sharding(text).zero, 0) << text;
  }
  EXPECT_EQ(read_sharding("ZeRO stage 1 (not stage 3)").zero, 1);
  const ShardingCell states =
      read_sharding("ZeRO-3, offload_optimizer_device: cpu, offload_param_device: none");
  EXPECT_EQ(states.offload_optimizer, 1);
  EXPECT_EQ(states.offload_parameters, 0);
}

TEST(Cells, AsidesThatNeverEnd) {
  std::string text;
  while (text.size() < 4096) text += "(a ";
  EXPECT_LT(clause_words(text).size(), 2 * text.size());
  EXPECT_EQ(read_remarks(text).compiled, std::nullopt);
}

TEST(Cells, RemarksOnTheOptimizer) {
  EXPECT_EQ(read_remarks("own measurement; AdamW fused, bf16 state").fused_optimizer, true);
  EXPECT_EQ(read_remarks("NVIDIA Apex LAMB").fused_optimizer, true);
  EXPECT_EQ(read_remarks("AdamW").fused_optimizer, std::nullopt);
  EXPECT_EQ(read_remarks("weights in bf16, plain SGD").moment_bytes, 0);
  EXPECT_EQ(read_remarks("Muon for matrices, AdamW for embeddings").optimizer, Optimizer::kMuon);
  EXPECT_EQ(read_remarks("lion optimizer not used").moment_bytes, std::nullopt);
  EXPECT_EQ(read_remarks("batch 1024 limited to 8 GPUs").power_cap_w, std::nullopt);
  EXPECT_EQ(read_remarks("GPUs limited to 300W").power_cap_w, 300);
  EXPECT_EQ(read_remarks("host CPU power limit 350 W").power_cap_w, std::nullopt);
}

TEST(Cells, RemarksOnOverlap) {
  EXPECT_EQ(read_remarks("no grad-bucket overlap").overlap_grad, false);
  EXPECT_EQ(read_remarks("TP/DP comm overlap per NVIDIA MLPerf config").overlap_tp, true);
  EXPECT_EQ(read_remarks("torch.compile; AsyncTP").overlap_tp, true);
  EXPECT_EQ(read_remarks("torch.compile; vanilla TP").overlap_tp, false);
  EXPECT_EQ(read_remarks("--overlap-grad-reduce --overlap-param-gather").overlap_param, true);
  EXPECT_EQ(read_remarks("a2a_overlap ").overlap_expert, true);
  EXPECT_EQ(read_remarks("DeepEP +1f1b A2A overlap").overlap_expert, true);
  // A denial holds in its clause, and an open point does.
  const Remarks own =
      read_remarks("sequence parallel; no TP overlap; grad and param sync overlapped");
  EXPECT_EQ(own.sequence_parallel, true);
  EXPECT_EQ(own.overlap_tp, false);
  EXPECT_EQ(own.overlap_grad, true);
  EXPECT_EQ(own.overlap_param, true);
  EXPECT_EQ(read_remarks("overlap_grad_sync=False").overlap_grad, false);
  EXPECT_EQ(read_remarks("no overlap of gradient reduce").overlap_tp, std::nullopt);
  EXPECT_EQ(read_remarks("no overlap of gradient reduce").overlap_grad, false);
  EXPECT_EQ(read_remarks("sequence parallel; no overlap").overlap_tp, false);
  EXPECT_EQ(read_remarks("fused AdamW, its precision not stated").fused_optimizer, true);
  EXPECT_EQ(read_remarks("torch.compile: off; sequence parallel: no").compiled, false);
  EXPECT_EQ(read_remarks("torch.compile: off; sequence parallel: no").sequence_parallel, false);
  EXPECT_EQ(read_remarks("micro batch size: 2").micro_batch, 2);
  EXPECT_EQ(read_remarks("torch.compile not specified").compiled, std::nullopt);
  EXPECT_EQ(read_remarks("DeepEP dispatch without overlap").overlap_expert, false);
  EXPECT_EQ(read_remarks("TP with reduce-scatter, not asynchronous").overlap_tp, false);
  EXPECT_EQ(read_remarks("checkpoints are not asynchronous here").overlap_tp, std::nullopt);
  EXPECT_EQ(read_remarks("EP communication overlap").overlap_expert, true);
  EXPECT_EQ(read_remarks("gradient all-reduce overlapped with backward").overlap_grad, true);
  EXPECT_EQ(read_remarks("comm/compute overlap disabled").overlap_tp, false);
  EXPECT_EQ(read_remarks("CPU offload of optimizer states").offload_optimizer, 1);
  for (const char* text : {"power capped at 500 W", "TDP 500W", "GPU power limit 500 W"})
    EXPECT_EQ(read_remarks(text).power_cap_w, 500) << text;
  EXPECT_EQ(read_remarks("power limit not stated").power_cap_w, std::nullopt);
  EXPECT_EQ(read_remarks("1F1B overlap of the EP all-to-all").overlap_expert, true);
  EXPECT_EQ(read_remarks("no all-to-all overlap").overlap_expert, false);
  EXPECT_EQ(read_remarks("A2A dispatcher").overlap_expert, std::nullopt);
  EXPECT_EQ(read_remarks("no overlap").overlap_param, false);
}

TEST(Cells, RemarksOnScheduleAndContext) {
  EXPECT_EQ(read_remarks("zero-bubble ZBV").schedule, Schedule::kZeroBubble);
  EXPECT_EQ(read_remarks("HAI-LLM (DualPipe)").schedule, Schedule::kDualPipe);
  EXPECT_EQ(read_remarks("PithTrain (DualPipeV, FSDP)").schedule, Schedule::kDualPipeV);
  EXPECT_EQ(read_remarks("GPipe").schedule, Schedule::kGpipe);
  EXPECT_EQ(read_remarks("DeepSpeed Ulysses").context, ContextKind::kAllToAll);
}

TEST(Cells, RemarksOnMemoryAndModel) {
  EXPECT_EQ(read_remarks("cpu_offload_layers=20 ").offload_layers, 20);
  EXPECT_EQ(read_remarks("CPU-offloaded AdamW dominates").offload_optimizer, 1);
  EXPECT_EQ(read_remarks("AdamW offloaded to the CPU").offload_optimizer, 1);
  EXPECT_EQ(read_remarks("CPU offload of parameters").offload_parameters, 1);
  EXPECT_EQ(read_remarks("LoRA r=64, all projections").lora_mlp, true);
  EXPECT_EQ(read_remarks("LoRA r=64, q v").lora_mlp, false);
  EXPECT_EQ(read_remarks("w/o MTP; routing").multi_token_prediction, false);
  EXPECT_EQ(read_remarks("ours: parallel transformer block, LAMB").parallel_block, true);
  EXPECT_EQ(read_remarks("no parallel residual").parallel_block, false);
  EXPECT_FALSE(read_remarks("MegaScale uses parallel transformer block").parallel_block);
  EXPECT_FALSE(read_remarks("tensor parallel block size 4").parallel_block);
  EXPECT_EQ(read_remarks("per_device_batch=3; chips inferred").micro_batch, 3);
  EXPECT_EQ(read_remarks("per_device_batch=?").micro_batch, std::nullopt);
  EXPECT_EQ(read_remarks("H100 96GB HBM2e 2.4TB/s, 500W power cap; x").power_cap_w, 500);
  EXPECT_EQ(read_remarks("400 W power limit").power_cap_w, 400);
  EXPECT_EQ(read_remarks("bf16 parameters and optimizer state").optimizer_bytes, 4);
  EXPECT_EQ(read_remarks("fused AdamW, about 12 bytes a parameter").optimizer_bytes, 8);
  EXPECT_EQ(read_remarks("AdamWBF16 (6 bytes a parameter)").optimizer_bytes, std::nullopt);
  EXPECT_EQ(read_remarks("paged_adamw_8bit").optimizer_bytes, 0);
  EXPECT_EQ(read_remarks("8-bit AdamW").optimizer_bytes, 2);
  EXPECT_EQ(read_remarks("pure fp16 weights").optimizer_bytes, 4);
  EXPECT_EQ(read_remarks("bf16 grad reduce").gradient_comm_bytes, 2);
  EXPECT_EQ(read_remarks("sequence parallel; fp32 gradient reduction").gradient_comm_bytes, 4);
  EXPECT_EQ(read_remarks("Float8 incl. fp8 all-gather").weight_comm_bytes, 1);
  EXPECT_EQ(read_remarks("fused AdamW stepped in backward").gradients_resident, false);
  EXPECT_TRUE(read_remarks("DeepSpeed ZeRO-3 + HF + Liger").fused_loss);
  EXPECT_FALSE(read_remarks("Liger; logits are kept for metrics").fused_loss);
  EXPECT_EQ(read_remarks("experts replicated on every rank").experts_whole, 1);
  EXPECT_TRUE(read_remarks("use_fused_rms_norm=True").fused_norms);
  EXPECT_FALSE(read_remarks("use_fused_rms_norm=False").fused_norms);
  EXPECT_EQ(read_remarks("MoE token routing force-balanced; dropless").expert_skew, 1);
  const auto capacity = [](const char* text) { return read_remarks(text).expert_capacity; };
  EXPECT_EQ(capacity("padded experts, capacity factor 1.25; remat full"), 1.25);
  EXPECT_EQ(capacity("capacity_factor=2.0"), 2);
  EXPECT_EQ(capacity("fixed capacity 1.0 (padded experts)"), 1);
  EXPECT_EQ(capacity("capacity_factor=-1"), std::nullopt);
}

// Words of long-sequence training, and of graphs that hold only part of a layer.
TEST(Cells, TilesOffloadsAndPartialGraphs) {
  const Remarks r = read_remarks(
      "optimizer states and weights offload to CPU; tiled logits&loss; Tiled MLP; activation "
      "checkpoint offload to CPU");
  EXPECT_EQ(r.offload_optimizer, 1);
  EXPECT_EQ(r.offload_parameters, 1);
  EXPECT_EQ(r.offload_activations, 1);
  EXPECT_TRUE(r.fused_loss);
  EXPECT_TRUE(read_remarks("one sequence a step; chunked NLL loss").fused_loss);
  EXPECT_EQ(read_remarks("optimizer states offload to CPU").offload_optimizer, 1);
  EXPECT_EQ(read_remarks("CUDA graph of the dense modules only").cuda_graphs, false);
  EXPECT_EQ(read_remarks("CUDA graph without effect (x=1)").cuda_graphs, false);
  EXPECT_EQ(read_remarks("CUDA graphs for attention and dense modules").cuda_graphs, true);
  EXPECT_EQ(read_remarks("CUDA graphs had no effect on memory").cuda_graphs, true);
}

TEST(Cells, LayersInRatiosAndChunksInLayers) {
  EXPECT_EQ(read_recompute("12/32 layers").fraction, 0.375);
  EXPECT_EQ(read_recompute("16 out of 32 layers").fraction, 0.5);
  EXPECT_EQ(read_recompute("gradient_checkpointing").kind, Recompute::kFull);
  EXPECT_FALSE(read_recompute("gradient_checkpointing").guessed);
  EXPECT_EQ(read_chunks("6 layers").layers_each, 6);
  EXPECT_EQ(read_chunks("6").chunks, 6);
  EXPECT_EQ(read_chunks("(interleaved, v=6)").chunks, 6);
  EXPECT_EQ(read_sharding("dist-opt").zero, 1);
  EXPECT_EQ(read_precision("float").precision, Precision::kFp32);
}

}  // namespace
}  // namespace assay
