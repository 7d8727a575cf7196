// What single cells mean: each function reads one kind of free text, by its words and without
// knowing who wrote it. `stated` false: the cell says nothing, and the caller falls back on the
// stack.
#pragma once

#include <optional>
#include <string>

#include "world/plan.h"
#include "world/stack.h"
#include "world/workload.h"

namespace assay {

struct PrecisionCell {
  std::optional<Precision> precision;
  bool ambiguous = false;  // several formats are named as alternatives
  // The narrow format is not that of most matmuls: experts run in 16 bits, or all but attention's.
  bool experts_wide = false, attention_only = false;
  bool no_tf32 = false;  // 32 bits are meant as such
};
// `bf16`, `FP8-CS`, `fp8 rowwise`, `Autocast:BF16+FP32Optimizer`, `bf16 (int8 matmul possible)`:
// the narrowest format named is the one that matmuls run in, unless it is only possible.
PrecisionCell read_precision(const std::string& cell);
// The same from free notes, where only explicit statements count (`trained in fp16`).
std::optional<Precision> read_precision_notes(const std::string& notes);

// Parts of a layer that run again. Matmuls count by their width, so their share is the model's.
struct RecomputeParts {
  bool qkv = false, out = false;  // projections before and after attention
  bool up = false, down = false;  // of the MLP; experts only where those are named
  bool latent = false;            // keys, values and queries from their compressed form
  bool experts = false;
  bool attention = false;
  double memory = 0;   // share of memory-bound work
  bool saves = false;  // told by what is kept: nothing else is
};
struct RecomputeCell {
  std::optional<Recompute> kind;
  std::optional<double> fraction;      // of the layers: `every other layer`, `1/3`
  std::optional<int64_t> layer_count;  // `full, 12 layers`: of those of one stage
  std::optional<int64_t> layers_kept;  // `all but the last 4 layers`: of the model
  std::optional<bool> early_stop;
  std::optional<RecomputeParts> parts;  // only where the text names them
  double offload_activations = 0;
  bool unreadable = false;  // it says nothing of recomputation
  bool guessed = false;  // the text says something else than how much, taken for whole layers
};
RecomputeCell read_recompute(const std::string& cell);
// `recompute modules: moe, layernorm`, `modules attn, moe recomputed` in free notes.
std::optional<RecomputeParts> read_recompute_modules(const std::string& notes);
// The same from free notes, where only explicit statements count (`use_checkpoint=true`).
RecomputeCell read_recompute_notes(const std::string& notes);

// Whether the notes count a cell among those that nobody stated: `inferred: seq 2048, precision`.
bool inferred(const std::string& notes, std::string_view cell);

struct ShardingCell {
  std::optional<int64_t> zero;
  bool fsdp = false;                     // named as FSDP or ZeRO-3: a stack of that family is meant
  bool by_module = false;                // named as FSDP
  bool hybrid = false;                   // HSDP: one copy per sharding group
  std::optional<int64_t> group, copies;  // `dp_shard=8`, `dp_replicate=4`
  bool distributed_optimizer = false;    // Megatron's word for ZeRO-1
  double offload_optimizer = 0, offload_parameters = 0;
};
// `framework`: the text is a framework's name, where only what is named outright counts.
ShardingCell read_sharding(const std::string& cell, bool framework = false);
// Whether a sharding is given as one of ZeRO's stages: `ZeRO-3`, `zero3`, `ds_z3`.
bool names_zero(const std::string& cell);
// Whether weights that FSDP gathered for a forward pass stay so until the backward one.
bool keeps_gathered(const std::string& text);

// `yes (cuDNN/TE)`, `SDPA`, `FA3`, `no`.
std::optional<bool> read_flash(const std::string& cell);
// `triton`, `flash attention 1`: a kernel of the first generation.
bool early_flash(const std::string& cell);
// `flash attention 2`, `FA3`: one of a later generation.
bool later_flash(const std::string& cell);
// The kernel that a cell names; none: it only says yes or no.
std::optional<AttentionKernel> read_attention_kernel(const std::string& cell);
// The n of a `PyTorch 2.n` in a text.
std::optional<int> pytorch_minor(const std::string& text);

// Whether a text names a release of PyTorch or of Hugging Face's models that has no fused attention
// of its own: `PyTorch 1.10`, `transformers 4.18`.
bool before_fused(const std::string& text);

// Whether a step is more than one sequence's forward and backward pass: pairs, a reference model,
// generated answers (`DPO`, `GRPO`).
bool learns_from_others(const std::string& task);
Task read_task(const std::string& task, const std::string& model_name);
// The task cell; where it is blank, what framework and precision say of it: `unsloth QLoRA`, `nf4`.
std::string told_task(const std::string& task, const std::string& framework,
                      const std::string& precision);

// How a stage of a pipeline is cut into chunks that take turns (interleaving, virtual stages).
struct ChunksCell {
  std::optional<int64_t> chunks;      // of a stage; 1 where it is denied
  std::optional<double> layers_each;  // `5 layers per virtual stage`
  bool interleaved = false;           // said without a number
  bool told = false;                  // the cell says something
};
// A cell of its own: `2`, `VP2`, `x2`, `two`, `off`, `interleaved (degree not stated)`.
ChunksCell read_chunks(const std::string& cell);
// From free notes: `VPP=2`, `1F1B`, `GPipe`, `no interleaving`.
ChunksCell read_chunks_notes(const std::string& notes);

// What remarks say about how the step was run. Unset: not mentioned.
struct Remarks {
  std::optional<bool> compiled, cuda_graphs, fused_optimizer;
  std::optional<bool> overlap_tp, overlap_grad, overlap_param, overlap_expert;
  std::optional<Schedule> schedule;
  std::optional<ContextKind> context;
  std::optional<bool> sequence_parallel;
  std::optional<int64_t> offload_layers;  // activations of that many layers go to the host
  std::optional<double> offload_activations, offload_optimizer, offload_parameters;
  std::optional<double> expert_skew, expert_capacity;
  std::optional<bool> multi_token_prediction, parallel_block;
  std::optional<int64_t> micro_batch;  // `per_device_batch=3`
  std::optional<int64_t> lora_rank;
  std::optional<bool> lora_mlp;  // adapters on all projections, or only on attention's
  std::optional<double> power_cap_w;
  // Bytes per parameter that differ from the stack's: 16-bit training, 8-bit optimizer, ...
  std::optional<double> weight_bytes, gradient_bytes, optimizer_bytes, gradient_comm_bytes,
      weight_comm_bytes;
  std::optional<Optimizer> optimizer;
  std::optional<double> moment_bytes;       // of the optimizer, where Adam has 8
  std::optional<double> base_weight_bytes;  // of the frozen weights under LoRA
  std::optional<double> unpack_bytes;       // moved to unpack one of them, by what packed it
  std::optional<bool> gradients_resident;   // false: the optimizer steps inside the backward pass
  std::optional<int64_t> expert_tensor;     // ranks that share an expert
  bool experts_in_turn = false;             // one expert after another
  std::optional<bool> experts_fold;         // the same by a rule: one, or the tensor ranks
  std::optional<int64_t> experts_whole;     // replicated on every rank that holds them
  bool fused_norms = false;                 // a norm saves its input and its result only
  bool fused_loss = false;                  // logits are never held whole (Liger, chunked loss)
  bool whole_loss = false;                  // they are, whatever the stack does by default
  bool loss_kernel = false;                 // nor read more than by one kernel and the matmuls
  bool fused_gelu = false;                  // GELU by tanh is one kernel
  std::optional<bool> permute_fused;        // routed tokens are put in order by fused kernels
  bool launch_blocking = false;             // the host waits for every kernel
  bool layer_graphs = false;                // graphs hold layers, not the whole step
  std::optional<bool> expert_dedup;         // a token is sent once to each place, or to each expert
};
// `words` as text.h has them: whether weights are kept on the host.
bool offloads_parameters(const std::string& words);
// `text` is everything free that the row holds: remarks, notes, the framework's and precision's
// words.
Remarks read_remarks(const std::string& text);
// Bytes of a frozen weight that a task or a name tells of: `QLoRA`, `bnb-4bit`.
std::optional<double> read_base_weight(const std::string& text);

}  // namespace assay
