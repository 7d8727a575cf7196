// Two moments compete for the peak. At the loss, everything saved by the forward pass is alive,
// together with the logits; at the end of the backward pass, all gradients are. Frameworks that keep
// gradient buffers through the whole step (Megatron) hold both at once; PyTorch's eager mode frees
// gradients between steps, so the peak is the larger of the two. On the H200 runs this is the
// difference between 12.4 and 15.0 GiB for the 1.3b model with full recompute.
#include "perf/memory.h"

#include <algorithm>

#include "perf/pipeline.h"

namespace assay {
namespace {

constexpr double kUsableShare = 0.995;
constexpr Bytes kContext{0.55e9};

}  // namespace

Bytes usable_memory(const Accelerator& a) {
  return a.memory * (kGiB / kGB * kUsableShare) - kContext;
}

int64_t layer_count(const Model& m) { return m.layers + m.encoder_layers + m.mtp_layers; }

StageContent stage_content(const Model& m, int64_t pp, int64_t stage) {
  StageContent c;
  const int64_t layers = layer_count(m);
  const int64_t count = stage_layers(layers, pp, stage);
  c.first = stage == 0;
  c.last = stage == pp - 1;
  if (m.experts == 0) {
    c.dense_layers = static_cast<double>(count);
    return c;
  }
  const int64_t begin = stage_begin(layers, pp, stage);
  for (int64_t i = begin; i < begin + count; ++i) {
    (is_moe_layer(m, i) ? c.moe_layers : c.dense_layers) += 1;
  }
  return c;
}

StageParameters stage_parameters(const MicrobatchCost& c, const StageContent& s, const Model& m) {
  StageParameters p;
  p.dense = s.dense_layers * c.dense.parameters + s.moe_layers * c.moe.parameters;
  p.expert = s.moe_layers * c.moe.expert_parameters;
  if (s.first) p.dense += c.embedding.parameters;
  if (s.last && !(m.tied_embeddings && s.first)) p.dense += c.head.parameters;
  return p;
}

MemoryUse memory_use(const Setting& s, const Plan& p, const Layout& l, const MicrobatchCost& c) {
  const Stack& st = s.stack;
  const Model& m = s.workload.model;
  const double word = p.precision == Precision::kFp32 || p.precision == Precision::kTf32 ? 2.0 : 1.0;
  const bool lora = s.workload.task == Task::kLora;
  const double shard = static_cast<double>(l.shard);
  const double expert_shard = std::min(shard, static_cast<double>(l.data_expert.ranks));
  MemoryUse worst;
  worst.capacity = usable_memory(s.cluster.accelerator);
  for (int64_t i = 0; i < l.pp; ++i) {
    if (i > 1 && i < l.pp - 1 && m.experts == 0) continue;  // inner stages only hold less
    const StageContent content = stage_content(m, l.pp, i);
    const StageParameters q = stage_parameters(c, content, m);
    MemoryUse u;
    u.stage = i;
    u.capacity = worst.capacity;
    const auto sharded = [&](int64_t from) {
      return p.zero >= from ? q.dense / shard + q.expert / expert_shard : q.dense + q.expert;
    };
    u.weights = Bytes(sharded(3) * st.weight_bytes * word);
    u.gradients = lora ? Bytes(0) : Bytes(sharded(2) * st.gradient_bytes * word);
    u.optimizer = lora ? Bytes(0) : Bytes(sharded(1) * st.optimizer_bytes * word * (1 - p.offload_optimizer));
    const double live = live_microbatches(p.schedule, l.pp, l.vpp, l.microbatches, i);
    Bytes saved = c.dense.saved * content.dense_layers + c.moe.saved * content.moe_layers;
    if (content.first) saved += c.embedding.saved;
    Bytes working;
    if (content.dense_layers > 0) working = std::max(working, c.dense.working);
    if (content.moe_layers > 0) working = std::max(working, c.moe.working);
    const Bytes logits = content.last ? c.head.working : Bytes(0);
    u.activations = saved * live + std::max(working, logits);
    if (p.zero == 3) {
      const double layer = std::max(c.dense.parameters, c.moe.parameters + c.moe.expert_parameters);
      u.buffers = Bytes(2 * layer * st.weight_comm_bytes + layer * st.gradient_comm_bytes);
    }
    u.framework = st.framework_memory;
    const Bytes fixed = u.weights + u.optimizer + u.buffers + u.framework;
    u.allocated = fixed + u.gradients + u.activations;
    if (!st.gradients_resident && l.microbatches == 1) {
      const Bytes at_end = fixed + u.gradients + working;
      u.allocated = std::max(fixed + u.activations, at_end);
    }
    u.reserved = u.allocated * st.fragmentation;
    if (u.reserved > worst.reserved) worst = u;
  }
  return worst;
}

}  // namespace assay
