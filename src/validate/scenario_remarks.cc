// What free remarks say, laid over the stack's defaults.
#include "validate/scenario_remarks.h"

#include <algorithm>

namespace assay {
namespace {

template <class T, class U>
void set_if(T& to, const std::optional<U>& stated) {
  if (stated) to = static_cast<T>(*stated);
}

// A buffer of gradients that is reduced as it is has the precision of the reduction; from 16 bits
// the optimizer casts its shard to 32.
void reduce_gradients_in(double bytes, Stack& stack) {
  if (stack.sharding == Sharding::k3d && stack.gradient_bytes == stack.gradient_comm_bytes) {
    stack.gradient_bytes = bytes;
    stack.optimizer_bytes = bytes < 4 ? 16 : 12;
  }
  stack.gradient_comm_bytes = bytes;
}

// Plain PyTorch adds gradients up as they are held: two read, one written.
void hold_gradients_in(double bytes, Stack& stack) {
  if (stack.accumulate_bytes == 3 * stack.gradient_bytes) stack.accumulate_bytes = 3 * bytes;
  stack.gradient_bytes = stack.gradient_bytes_fp16 = bytes;
}

// Tensors of model width that a layer saves where its two norms are one kernel each.
constexpr double kFusedNorms = 4;

// Bytes moved per logit where the loss is one kernel: the head writes 2, the kernel reads and
// overwrites them with their gradient (6, in two passes), and two matmuls read that (4). Compiled
// ones were measured at 11 (test/data/h200_hand.csv).
constexpr double kLossKernel = 12;

// Where nothing is said, NVIDIA's recipes send tokens by HybridEP or DeepEP, but for large models
// with plain attention, those that need a pipeline, between nodes of eight: by the plain dispatcher
// (NVIDIA-NeMo/Megatron-Bridge, scripts/performance/configs, *_workload_base_configs.py: Qwen3 235B
// and GPT-OSS against Qwen3 30B, DeepSeek-V3 and Nemotron 3).
bool plain_dispatch(const Scenario& s) {
  const Model& m = s.setting.workload.model;
  const bool plain_attention = m.kv_lora_rank == 0 && m.mixer.layers == 0;
  return s.setting.stack.name == "megatron-core" && plain_attention && s.plan.pp > 1 &&
         s.setting.cluster.fabric.scaleup_domain == 0;
}

// Fused, a copy each: permute, sort by expert, sort back, unpermute, and no more backward. Without,
// as plain PyTorch was measured (test/data/h200_permute.csv).
void permute_by(bool fused, Stack& stack) {
  const Stack plain;
  const auto set = [&](double& copies, double one_each, double unfused) {
    copies = fused ? std::min(copies, one_each) : std::max(copies, unfused);
  };
  set(stack.permute_passes, 4, plain.permute_passes);
  set(stack.permute_local, 2, plain.permute_local);
  set(stack.permute_backward, 1, plain.permute_backward);
}

// The host waits for every kernel it started, those of collectives too: nothing is hidden.
void hide_nothing(Stack& stack) {
  stack.launch_blocking = true;
  for (double* share :
       {&stack.overlap_grad, &stack.overlap_param, &stack.overlap_tp, &stack.overlap_tp_backward,
        &stack.overlap_context, &stack.overlap_pipeline, &stack.overlap_expert}) {
    *share = 0;
  }
}

void apply_kernels(const Remarks& r, Stack& stack) {
  if (r.permute_fused) permute_by(*r.permute_fused, stack);
  if (r.fused_norms) stack.saved_hidden = std::min(stack.saved_hidden, kFusedNorms);
  if (r.whole_loss) stack.loss_chunks = 1;
  if (r.fused_loss && stack.loss_chunks == 1)
    stack.logits_bytes = std::min(stack.logits_bytes, 0.5);
  if (r.loss_kernel && stack.loss_traffic > kLossKernel) {
    const double compiled = std::min(stack.loss_traffic * stack.loss_compiled, kLossKernel);
    stack.loss_traffic = kLossKernel;
    stack.loss_compiled = compiled / kLossKernel;
  }
}

}  // namespace

// Whoever benchmarks may force routers to balance, and often does not say so.
void apply_routing(const Remarks& r, Scenario& s) {
  const bool forced = s.setting.stack.recipe.balanced && s.setting.workload.task == Task::kPretrain;
  s.plan.expert_skew = r.expert_skew.value_or(forced ? 1 : 0);
  if (r.expert_skew || r.expert_capacity || s.plan.ep <= 1) return;
  s.assumed.emplace_back(forced ? "experts loaded evenly, as its recipes force it"
                                : "experts loaded as trained routers leave them");
}

namespace {

// Of experts that run one after another: of what a perfect kernel for all would spare, what is
// left, and what plain PyTorch launches for each in a pass (test/data/h200_grouped.csv, loop;
// test/data/h200_expert_loop.csv; stack transformers-2024).
constexpr double kApartInTurn = 0.95, kLaunchesInTurn = 40;

// Where experts are, how tokens reach them and what runs them.
void apply_experts(const Remarks& r, Scenario& s) {
  Stack& stack = s.setting.stack;
  set_if(stack.experts_whole, r.experts_whole);
  if (s.plan.ep > 1) set_if(s.plan.etp, r.expert_tensor);
  set_if(stack.experts_fold, r.experts_fold);
  if (!r.expert_dedup.value_or(!plain_dispatch(s))) stack.expert_dedup = false;
  if (r.experts_in_turn) {
    stack.experts_apart = kApartInTurn, stack.experts_portable = false, stack.expert_copies = 0;
    if (stack.sharding != Sharding::k3d)
      stack.launches_expert = std::max(stack.launches_expert, kLaunchesInTurn);
  }
}

}  // namespace

void apply_remarks(const Remarks& r, Scenario& s) {
  Plan& p = s.plan;
  Stack& stack = s.setting.stack;
  set_if(p.compiled, r.compiled);
  set_if(p.cuda_graphs, r.cuda_graphs);
  if (r.layer_graphs) stack.graph_memory = 1;
  if (r.fused_optimizer.value_or(false)) {
    constexpr double kFused = 1.2;  // without clipping: test/data/h200_optimizer.csv
    s.setting.stack.optimizer_traffic = std::min(s.setting.stack.optimizer_traffic, kFused);
  }
  set_if(p.overlap_tp, r.overlap_tp);
  set_if(p.overlap_grad, r.overlap_grad);
  set_if(p.overlap_param, r.overlap_param);
  set_if(p.overlap_expert, r.overlap_expert);
  set_if(p.context, r.context);
  set_if(p.sequence_parallel, r.sequence_parallel);
  set_if(p.offload_activations, r.offload_activations);
  set_if(p.offload_optimizer, r.offload_optimizer);
  set_if(p.offload_parameters, r.offload_parameters);
  apply_routing(r, s);
  set_if(p.expert_capacity, r.expert_capacity);
  if (r.offload_layers) {
    p.offload_activations = std::min(1.0, static_cast<double>(*r.offload_layers) /
                                              static_cast<double>(s.setting.workload.model.layers));
  }
  p.schedule = r.schedule.value_or(p.schedule);
  if (folded(p.schedule)) p.vpp = 1;  // two chunks a rank are what it is
  if (p.vpp > 1 && p.schedule != Schedule::kZeroBubble) p.schedule = Schedule::kInterleaved;
  if (p.vpp == 1 && p.schedule == Schedule::kInterleaved) p.schedule = Schedule::kOneFOneB;
  set_if(stack.weight_bytes, r.weight_bytes);
  if (s.setting.workload.task == Task::kLora) {
    set_if(stack.weight_bytes, r.base_weight_bytes);
    set_if(stack.unpack_bytes, r.unpack_bytes);
  }
  if (r.gradient_comm_bytes) reduce_gradients_in(*r.gradient_comm_bytes, stack);
  if (r.gradient_bytes) hold_gradients_in(*r.gradient_bytes, stack);
  set_if(s.setting.workload.optimizer, r.optimizer);
  if (r.moment_bytes) {
    constexpr double kAdam = 8;  // bytes of both moments in 32 bits
    for (double* bytes : {&stack.optimizer_bytes, &stack.optimizer_bytes_fp16}) {
      *bytes = std::max(0.0, *bytes - kAdam + *r.moment_bytes);
    }
  }
  if (r.optimizer_bytes && r.moment_bytes) {
    // All in 16 bits, and less than Adam's moments of it.
    stack.optimizer_bytes = stack.optimizer_bytes_fp16 = *r.optimizer_bytes * *r.moment_bytes / 8;
  } else {
    set_if(stack.optimizer_bytes, r.optimizer_bytes);
    set_if(stack.optimizer_bytes_fp16, r.optimizer_bytes);
  }
  set_if(stack.weight_comm_bytes, r.weight_comm_bytes);
  set_if(stack.gradients_resident, r.gradients_resident);
  if (r.gradients_resident == false) stack.gradient_bytes = stack.gradient_bytes_fp16 = 0;
  apply_experts(r, s);
  apply_kernels(r, stack);
  if (r.launch_blocking) hide_nothing(stack);
  if (r.fused_gelu) s.setting.workload.model.tanh_gelu = false;
  if (r.power_cap_w) s.setting.cluster.accelerator.tdp = Watts(*r.power_cap_w);
  if (!r.multi_token_prediction.value_or(stack.recipe.predicts_ahead)) {
    int64_t& heads = s.setting.workload.model.mtp_layers;
    if (heads > 0 && !r.multi_token_prediction) s.assumed.emplace_back("no multi-token prediction");
    heads = 0;
  }
  set_if(s.setting.workload.model.parallel_block, r.parallel_block);
  set_if(s.setting.workload.lora_rank, r.lora_rank);
  set_if(s.setting.workload.lora_mlp, r.lora_mlp);
}

}  // namespace assay
