// How a workload is laid on a cluster. Zero or "auto" means: chosen by the search, or by the stack.
#pragma once

#include "world/fields.h"
#include "world/precision.h"

namespace assay {

enum class Recompute { kNone, kSelective, kFull };
constexpr std::array<std::string_view, 3> enum_names(Recompute) {
  return {"none", "selective", "full"};
}

enum class Schedule { kOneFOneB, kInterleaved, kZeroBubble, kGpipe, kDualPipe, kDualPipeV };
constexpr std::array<std::string_view, 6> enum_names(Schedule) {
  return {"1f1b", "interleaved", "zero-bubble", "gpipe", "dualpipe", "dualpipe-v"};
}
// Every rank holds a stage and its mirror image, the first beside the last.
constexpr bool folded(Schedule s) { return s == Schedule::kDualPipe || s == Schedule::kDualPipeV; }

enum class ContextKind { kRing, kAllToAll, kAllGather };
constexpr std::array<std::string_view, 3> enum_names(ContextKind) {
  return {"ring", "all-to-all", "all-gather"};
}

struct Plan {
  int64_t tp = 1;   // tensor parallel
  int64_t pp = 1;   // pipeline stages
  int64_t vpp = 1;  // model chunks per stage; above 1 the schedule is interleaved
  int64_t cp = 1;   // context parallel
  int64_t ep = 1;   // expert parallel, inside tp x cp x dp
  int64_t etp = 0;  // tensor parallel inside an expert; zero: the stack's rule (experts_fold)
  int64_t dp = 0;   // data parallel; zero: what is left of the accelerators
  int64_t micro_batch = 1;
  bool sequence_parallel = true;  // only with tp > 1
  ContextKind context = ContextKind::kRing;
  Schedule schedule = Schedule::kOneFOneB;
  int64_t first_layers = 0, last_layers = 0;  // of the end stages; zero: an even split
  int64_t zero = 1;  // 0: replicated, 1: optimizer, 2: + gradients, 3: + weights (FSDP)
  int64_t sharding_group = 0;  // ranks one copy is sharded over; zero: dp x cp (HSDP if less)
  Recompute recompute = Recompute::kNone;
  double recompute_layers = 1;  // fraction of layers to which the recompute applies
  bool early_stop = true;       // a checkpointed block stops recomputing at the last needed tensor
  Precision precision = Precision::kBf16;
  double offload_optimizer = 0;    // fraction of optimizer state kept and stepped on the host
  double offload_parameters = 0;   // fraction of weights kept on the host, fetched before use
  double offload_activations = 0;  // fraction of saved activations parked in host memory
  bool compiled = false;           // graph compiler fuses memory-bound ops
  bool cuda_graphs = false;
  bool flash_attention = true;
  bool overlap_grad = true;     // gradient reduction under the backward pass
  bool overlap_param = true;    // parameter gather under the forward pass
  bool overlap_tp = false;      // tensor-parallel traffic pipelined with its matmuls
  bool overlap_expert = false;  // all-to-all of one micro-batch under another's compute
  // Load of the busiest expert rank over the mean. 1: the router is made to balance, as benchmarks
  // do; 0: it balances as far as trained routers do (load_skew in perf/layout.h).
  double expert_skew = 0;
  double expert_capacity = 0;  // slots of an expert over its mean load, padded; 0: none is dropped
};

// From how many ends a pipeline is fed; of two, the ranks at either hold the same weights.
constexpr int64_t pipeline_ends(const Plan& p) {
  return p.pp > 1 && p.schedule == Schedule::kDualPipe ? 2 : 1;
}

template <class T, class V>
  requires std::is_same_v<std::remove_const_t<T>, Plan>
void fields(T& p, V&& visit) {
  constexpr Limits kDegree{1, 1e6};
  visit("tp", p.tp, kDegree, "tensor parallel");
  visit("pp", p.pp, kDegree, "pipeline stages");
  visit("vpp", p.vpp, kDegree, "model chunks per stage");
  visit("first_layers", p.first_layers, Limits{0, 100000},
        "layers of the first stage; zero: an even split");
  visit("last_layers", p.last_layers, Limits{0, 100000},
        "layers of the last stage; zero: likewise");
  visit("cp", p.cp, kDegree, "context parallel");
  visit("ep", p.ep, kDegree, "expert parallel");
  visit("etp", p.etp, Limits{0, 1e6}, "tensor parallel inside an expert; zero: the stack's rule");
  visit("dp", p.dp, Limits{0, 1e6}, "data parallel; zero: the rest");
  visit("micro_batch", p.micro_batch, kDegree, "sequences per micro-batch and rank");
  visit("sequence_parallel", p.sequence_parallel, kAny, "sequence parallel beside tp");
  visit("context", p.context, kAny, "how context parallel exchanges keys and values");
  visit("schedule", p.schedule, kAny, "pipeline schedule");
  visit("zero", p.zero, Limits{0, 3},
        "0 replicated, 1 optimizer, 2 + gradients, 3 + weights (FSDP)");
  visit("sharding_group", p.sharding_group, Limits{0, 1e6}, "ranks one copy is sharded over");
  visit("recompute", p.recompute, kAny, "activation recomputation");
  visit("recompute_layers", p.recompute_layers, kFraction, "fraction of layers recomputed");
  visit("early_stop", p.early_stop, kAny,
        "recompute only up to the last needed tensor, as compiled code always does");
  visit("precision", p.precision, kAny, "matrix arithmetic");
  visit("offload_optimizer", p.offload_optimizer, kFraction, "optimizer state kept on the host");
  visit("offload_parameters", p.offload_parameters, kFraction, "weights kept on the host (zero 3)");
  visit("offload_activations", p.offload_activations, kFraction, "activations parked on the host");
  visit("compiled", p.compiled, kAny, "graph compiler (torch.compile, XLA)");
  visit("cuda_graphs", p.cuda_graphs, kAny, "launch through captured graphs");
  visit("flash_attention", p.flash_attention, kAny, "fused attention");
  visit("overlap_grad", p.overlap_grad, kAny, "gradient reduction under the backward pass");
  visit("overlap_param", p.overlap_param, kAny, "parameter gather under the forward pass");
  visit("overlap_tp", p.overlap_tp, kAny, "tensor-parallel traffic under its matmuls");
  visit("overlap_expert", p.overlap_expert, kAny, "expert all-to-all under other compute");
  visit("expert_skew", p.expert_skew, Limits{0, 1000},
        "busiest expert rank over the mean; 1: forced balance; zero: as trained routers balance");
  visit("expert_capacity", p.expert_capacity, Limits{0, 64},
        "slots of an expert over its mean load, all computed; zero: as many as tokens come");
}

}  // namespace assay
