// Four moments compete for the peak of a stage. At the loss, everything the forward pass saved is
// alive, together with the logits. In the backward pass of the first layer to go, the logits are
// gone but the layer is recomputed and its gradients stand unsharded. At the end of the backward
// pass, little is saved but all gradients are there. The optimizer's step may take scratch beside
// its state. Frameworks that keep gradient buffers through the whole step (Megatron), and every
// framework that adds up micro-batches, hold gradients at all four; PyTorch's eager mode frees them
// between steps. On the H200 runs this is the difference
// between 12.4 and 15.0 GiB for the 1.3b model with full recompute.
//
// The terms reported are those of the moment and the stage that win, so they always add up.
#include "perf/memory.h"

#include <algorithm>

#include "perf/pipeline.h"
#include "perf/rank.h"
#include "world/model_size.h"

namespace assay {
namespace {

constexpr double kUsableShare = 0.995;
constexpr Bytes kContext{0.55e9};
// Reserved over allocated memory of a process that fills its device: the median of the H200 runs.
constexpr double kPressedFragmentation = 1.06;
// Layers whose gathered weights are alive at once: the one that runs and the one that is fetched.
constexpr double kGatheredLayers = 2;
// Frozen base weights are loaded in 16 bits, or in the 8 that they are multiplied in; adapters
// train in mixed precision: 16-bit weights and gradients, 32-bit master copy and moments.
constexpr double kFrozenBytes = 2;
constexpr double kFrozenBytesQuantised = 1;
constexpr double kAdapterBytes = 16;
constexpr double kAdapterStates = 12.0 / 16;  // of them, what an optimizer keeps
constexpr double kAdapterMoments = 8.0 / 16;  // of them, without the master copy

// What does not depend on the stage.
struct Costs : StateBytes {
  double shard, expert_shard;
  double gathered, reduced;  // bytes of unsharded weights and gradients of a layer (zero 3)
  double ends;               // bytes of gathered embedding and head
  double adapter;            // bytes of one layer's adapters
  double copies;             // bytes per weight of 16-bit copies
  double quantised;          // the same of 8-bit copies, of layers only
  double whole;              // bytes per parameter of gradients that add up before being sharded
  bool cast;                 // weights are sharded, and their 16-bit copies kept whole (zero 2)
  bool inputs_kept;          // layers' inputs and their gradients stay until backward ends
  double fragmentation;
  double graphs;  // what captured graphs hold, over allocated
  Bytes outside;  // what the allocator does not count
  bool all_step;  // gradients are there at the loss
  bool apart;     // and are reserved where they are not
};

double adapter_bytes(const Setting& s, const Layout& l) {
  const Model& m = s.workload.model;
  const double h = real(m.hidden);
  const double q = head_dim(m) * real(m.heads);
  const double kv = 2 * head_dim(m) * real(kv_head_count(m));
  const BlockShares shares = block_shares(m);
  const double tp = real(l.tp);
  double widths = (4 * h + (2 * q + kv) / tp) * (shares.attention * shares.attention_kept);
  if (shares.mixer > 0) {
    widths += (2 * h + (mixer_inputs(m.mixer) + value_width(m.mixer)) / tp) * shares.mixer;
  }
  if (s.workload.lora_mlp && m.ffn > 0) {
    widths += (m.gated_mlp ? 3 : 2) * (h + real(m.ffn) / tp) * (shares.mlp * shares.mlp_kept);
  }
  return real(s.workload.lora_rank) * widths * kAdapterBytes;
}

// Adapters are sharded as weights are that train.
double adapters_held(const Plan& p, const Layout& l) {
  const double part = 1 / real(l.shard);
  const double states = (p.zero >= 1 ? part : 1) * (1 - p.offload_optimizer);
  const double rest = (p.zero >= 3 ? part : 1) * (1 - p.offload_parameters);
  return kAdapterStates * states + (1 - kAdapterStates) * rest;
}

Costs costs_of(const Setting& s, const Plan& p, const Layout& l, const MicrobatchCost& c) {
  const Stack& st = s.stack;
  Costs k{};
  static_cast<StateBytes&>(k) = state_bytes(s, p);
  if (s.workload.task == Task::kLora) k.adapter = adapter_bytes(s, l) * adapters_held(p, l);
  k.shard = real(l.shard);
  k.expert_shard = real(l.shard_expert.ranks);
  const bool gathers = l.shard > 1 && gathers_each_microbatch(st, p, l) > 0;
  const Unsharded unsharded = unsharded_parameters(s, p, l, c);
  k.gathered = unsharded.gathered * gathered_bytes(s, p);
  k.reduced = unsharded.reduced * (st.weight_comm_bytes + st.gradient_comm_bytes);
  k.ends = gathers && p.zero == 3 && st.gathered_ends ? st.weight_comm_bytes : 0;
  // Engines that shard weights cast them as they gather them; weights that are gathered in 8 bits
  // are held so, and need no copy.
  const bool resident = p.zero < 3 || l.shard == 1;
  k.copies = resident && !st.saved_quantised ? st.weight_copies : 0;
  const bool kept = quantised(p.precision) && st.weight_comm_bytes >= 2 && k.gradient > 0;
  k.quantised = resident && st.saved_quantised && kept ? st.weight_copies : 0;
  k.cast = p.zero == 2 && l.shard > 1 && st.weight_bytes > st.weight_comm_bytes && k.gradient > 0;
  k.whole = adds_up_whole(st, p, l) && k.gradient > 0 ? st.gradient_comm_bytes : 0;
  k.inputs_kept = st.reentrant_checkpoints && s.workload.task == Task::kLora && p.zero == 3 &&
                  l.shard > 1 && p.recompute == Recompute::kFull;
  k.all_step = st.gradients_resident || l.microbatches > 1;
  k.apart = st.gradients_apart && p.zero >= 2 && l.shard > 1;
  k.fragmentation = gathers ? st.fragmentation_gathered : st.fragmentation;
  k.graphs = p.cuda_graphs ? st.graph_memory : 1;
  k.outside = l.ranks > 1 ? st.outside_memory : Bytes(0);
  return k;
}

// Sums the terms and keeps the larger of two moments.
void keep_larger(MemoryUse& worst, MemoryUse u, const Costs& k, Bytes gradients, Bytes block) {
  u.allocated = u.weights + u.gradients + u.optimizer + u.activations + u.buffers + u.framework;
  u.most_allocated = worst.most_allocated = std::max(worst.most_allocated, u.allocated);
  // What is freed is cached by blocks. The largest, of 16-bit logits, suits nothing but the
  // optimizer's state, which is made after the first backward pass.
  const Bytes cached = std::max(u.allocated * (k.fragmentation - 1), block - u.optimizer);
  u.reserved = u.allocated * k.graphs + cached + k.outside;
  if (k.apart) u.reserved += gradients - u.gradients;
  // Before it fails, the allocator gives back what it only caches; graphs keep their pools.
  const double kept = std::min(k.fragmentation, kPressedFragmentation) + k.graphs - 1;
  const Bytes pressed = u.allocated * kept + k.outside;
  u.reserved = std::min(u.reserved, std::max(pressed, u.capacity));
  if (u.reserved > worst.reserved ||
      (u.reserved == worst.reserved && u.allocated > worst.allocated)) {
    worst = u;
  }
}

Bytes placeholders(const Setting& s, const Layout& l, const MicrobatchCost& c,
                   const StageContent& content) {
  double parameters = content.dense_layers > 0 ? c.dense.parameters : 0;
  if (content.moe_layers > 0) {
    const double held = real(s.workload.model.experts) / real(l.ep);
    const double one = c.moe.expert_parameters / std::max(1.0, held);
    parameters = std::max(parameters, c.moe.parameters) + one;
  }
  if (content.last) parameters += c.head.parameters;
  return Bytes(parameters * kPlaceholderBytes);
}

double layer_parameters(const MicrobatchCost& c, const StageContent& content) {
  return content.dense_layers * c.dense.parameters +
         content.moe_layers * (c.moe.parameters + c.moe.expert_parameters);
}

// Autocast keeps its 16-bit copies of weights for the backward pass, and of layers that are
// recomputed until the forward pass ends. Frozen weights are held in 16 bits or unpacked, never
// cast, but for a head in 32.
struct Copies {
  Bytes forward, backward;
};

Copies weight_copies(const Setting& s, const Plan& p, const MicrobatchCost& c, const Costs& k,
                     const StageContent& content) {
  const bool frozen = s.workload.task == Task::kLora;
  const double head =
      content.last && (!frozen || k.end_weight > kFrozenBytes) ? c.head.parameters : 0;
  if (frozen) return {Bytes(head * k.copies), Bytes(head * k.copies)};
  const double layers = layer_parameters(c, content);
  const double again = p.recompute == Recompute::kFull ? p.recompute_layers : 0;
  return {Bytes((layers + head) * k.copies), Bytes((layers * (1 - again) + head) * k.copies)};
}

StageContent one_stage(const Model& m, const Stages& s, int64_t stage) {
  StageContent c;
  const int64_t count = stage_layers(s, stage);
  c.first = stage == 0;
  c.last = stage == s.pp - 1;
  const int64_t begin = stage_begin(s, stage);
  const int64_t moe = moe_layers_among(m, begin + count) - moe_layers_among(m, begin);
  c.moe_layers = real(moe);
  c.dense_layers = real(count - moe);
  return c;
}

// Activations that a rank holds for the micro-batches in flight, here and on the host.
struct Held {
  Bytes saved, parked;
};

// `record`: for whoever asks what is saved.
Held held_activations(const Setting& s, const Plan& p, const Layout& l, const MicrobatchCost& c,
                      const Stages& stages, const StageContent& content, int64_t stage,
                      std::vector<HeldPart>* record = nullptr) {
  const double skew = load_skew(s, p, l) - 1;
  Held h;
  const auto keep = [&](const char* by, Bytes each, double count, double live) {
    if (record != nullptr && (each * (count * live)).v > 0)
      record->push_back({by, each, count, live});
  };
  const auto hold = [&](const StageContent& one, double live) {
    const Bytes moe = c.moe.saved + c.moe.routed * skew;
    h.saved += (c.dense.saved * one.dense_layers + moe * one.moe_layers) * live;
    if (one.first) h.saved += c.embedding.saved * live;
    if (p.pp > 1) h.saved += c.embedding.saved * (s.stack.saved_outputs * live);
    keep("layers", c.dense.saved, one.dense_layers, live);
    keep("layers with experts", moe, one.moe_layers, live);
    keep("embedding", c.embedding.saved, one.first ? 1 : 0, live);
    keep("outputs that were sent on", c.embedding.saved * s.stack.saved_outputs, p.pp > 1 ? 1 : 0,
         live);
    h.parked += (c.dense.parked * one.dense_layers + c.moe.parked * one.moe_layers) * live;
  };
  if (stages.folded) {
    const Mirrored live = live_mirrored(stages.pp, l.microbatches, stage);
    hold(one_stage(s.workload.model, stages, stage), live.near);
    hold(one_stage(s.workload.model, stages, stages.pp - 1 - stage), live.far);
  } else {
    hold(content, live_microbatches(p.schedule, l.pp, l.vpp, l.microbatches, stage));
  }
  return h;
}

void stage_memory(const Setting& s, const Plan& p, const Layout& l, const MicrobatchCost& c,
                  const Costs& k, const Stages& stages, const StageContent& content, int64_t stage,
                  MemoryUse& worst) {
  const Stack& st = s.stack;
  const StageParameters q = stage_parameters(c, content, s.workload.model);
  const auto sharded = [&](int64_t from) {
    return p.zero >= from ? q.dense / k.shard + q.expert / k.expert_shard : q.dense + q.expert;
  };
  MemoryUse u;
  u.stage = stage;
  u.capacity = worst.capacity;
  const double ends = end_parameters(s.workload.model, c, content);
  const double ends_held = std::min(ends, q.dense) / (p.zero >= 3 ? k.shard : 1);
  u.weights = Bytes(sharded(k.cast ? 2 : 3) * k.weight + ends_held * (k.end_weight - k.weight));
  MemoryParts& parts = u.parts;
  // Experts that no other rank holds are whole as they are.
  const double doubled = q.dense + (k.expert_shard > 1 ? q.expert : 0);
  if (k.cast) parts.whole_weights = Bytes(doubled * st.weight_comm_bytes);
  u.weights += parts.whole_weights;
  parts.adapters = Bytes(k.adapter * (content.dense_layers + content.moe_layers));
  u.optimizer = Bytes(sharded(1) * k.optimizer) + parts.adapters;
  const Bytes states = Bytes(sharded(1) * k.optimizer) + parts.adapters * kAdapterMoments;
  u.framework = st.framework_memory;
  const Bytes whole(doubled * k.whole);
  const Bytes gradients = Bytes(sharded(2) * k.gradient) + whole;

  const double skew = load_skew(s, p, l) - 1;
  const Held held = held_activations(s, p, l, c, stages, content, stage);
  u.parked = worst.parked = std::max(worst.parked, held.parked);
  Bytes working;
  if (content.dense_layers > 0) working = std::max(working, c.dense.working);
  if (content.moe_layers > 0)
    working = std::max(working, c.moe.working + c.moe.routed_working * skew);

  parts.gathered = Bytes(k.gathered + k.ends * ends);
  if (st.placeholder_gradients && k.gradient > 0)
    parts.placeholders = placeholders(s, l, c, content);
  const Bytes block = content.last ? c.head.kept : Bytes(0);
  const Bytes quantised(layer_parameters(c, content) * k.quantised);
  const auto moment = [&](MemoryParts::Moment when, Bytes kept, Bytes active) {
    parts.moment = when;
    parts.working = active;
    u.activations = kept + active;
    u.buffers = parts.gathered + parts.placeholders + parts.copies + parts.reduced + parts.scratch;
    keep_larger(worst, u, k, gradients, block);
  };
  using Moment = MemoryParts::Moment;
  const Copies copies = weight_copies(s, p, c, k, content);
  u.gradients = k.all_step ? gradients : Bytes(0);
  parts.whole_gradients = k.all_step ? whole : Bytes(0);
  parts.copies = copies.forward + quantised;
  if (content.last) moment(Moment::kLoss, held.saved, c.head.working);
  parts.copies = copies.backward + quantised;  // first layer to go backward
  parts.reduced = Bytes(k.reduced);
  moment(Moment::kBackward, held.saved, working);
  parts.copies = quantised;
  u.gradients = gradients;
  parts.whole_gradients = whole;
  moment(Moment::kBackwardEnd, k.inputs_kept ? held.saved * 2.0 : Bytes(0), working);
  parts.reduced = Bytes(0);
  parts.scratch = states * st.optimizer_scratch;
  moment(Moment::kOptimizer, Bytes(0), Bytes(0));
}

}  // namespace

std::vector<HeldPart> held_parts(const Setting& s, const Plan& p, const Layout& l,
                                 const MicrobatchCost& c, int64_t stage) {
  std::vector<HeldPart> parts;
  const Stages stages = stages_of(s.workload.model, p);
  const StageContent content = stage_content(s.workload.model, stages, stage);
  held_activations(s, p, l, c, stages, content, stage, &parts);
  return parts;
}

Unsharded unsharded_parameters(const Setting& s, const Plan& p, const Layout& l,
                               const MicrobatchCost& c) {
  const Stack& st = s.stack;
  Unsharded u;
  if (l.shard <= 1 || gathers_each_microbatch(st, p, l) == 0) return u;
  const bool outside = experts_whole(st, l);  // of what is sharded
  const double experts = outside ? 0 : c.moe.expert_parameters;
  const double mean = std::max(c.dense.parameters, c.moe.parameters + experts);
  u.layer = outside ? mean : std::max({mean, c.dense.largest_parameters, c.moe.largest_parameters});
  const double most = st.gathered_limit > 0 ? st.gathered_limit : kGatheredLayers * u.layer;
  const bool trained = state_bytes(s, p).gradient > 0;
  if (trained) u.reduced = std::min(u.layer, most);
  const double all = mean * real(layer_count(s.workload.model)) / real(l.pp);
  if (p.zero == 3) u.gathered = std::min(all, most);
  return u;
}

Bytes host_memory(const Setting& s, const Plan& p, Bytes parked) {
  const double node = real(std::min(s.accelerators, s.cluster.node.accelerators));
  Setting held = s;
  hold_words(held.stack, p.precision);
  const double ranks = real(s.accelerators);
  const double replicas = ranks / real(p.tp * p.pp * p.cp);
  const double nodes = std::max(1.0, ranks / real(s.cluster.node.accelerators));
  // Ranks that hold the same weights, and how many copies of what they share there are.
  const double holders = replicas * real(p.cp * pipeline_ends(p));
  const double group = p.sharding_group > 0 ? std::min(real(p.sharding_group), holders) : holders;
  const double copies = holders / group, states = p.zero >= 1 ? copies : holders;
  Plan here = p;
  here.offload_parameters = 0;
  const double weight = state_bytes(held, here).weight * p.offload_parameters * copies;
  const bool frozen = s.workload.task == Task::kLora;
  const double state = frozen ? 0 : optimizer_state(s.workload, held.stack.optimizer_bytes);
  const double each = state * p.offload_optimizer * states + weight;
  return parked * node + Bytes(parameters(s.workload.model) * each / nodes);
}

bool host_holds(const Setting& s, const Plan& p, Bytes parked) {
  const Bytes there = s.cluster.node.host_memory;
  return there.v <= 0 || host_memory(s, p, parked) <= there;
}

double optimizer_state(const Workload& w, double adam) {
  constexpr double kMoments = 8;  // both, in 32 bits
  return w.optimizer == Optimizer::kMuon ? adam - std::min(adam, kMoments) / 2 : adam;
}

StateBytes state_bytes(const Setting& s, const Plan& p) {
  const Stack& st = s.stack;
  StateBytes k;
  k.weight = k.end_weight = st.weight_bytes;
  k.gradient = st.gradient_bytes;
  const double state = optimizer_state(s.workload, st.optimizer_bytes);
  k.optimizer = state * (1 - p.offload_optimizer);
  if (s.workload.task == Task::kLora) {
    const double frozen = quantised(p.precision)          ? kFrozenBytesQuantised
                          : single_precision(p.precision) ? 2 * kFrozenBytes
                                                          : kFrozenBytes;
    k.weight = std::min(k.weight, frozen);
    // Embedding and head are not packed; where layers read 32 bits, they are held in as many.
    k.end_weight = stored_packed(s, p) ? std::max(kFrozenBytes, st.residual_bytes) : k.weight;
    k.gradient = k.optimizer = 0;
  }
  k.weight *= 1 - p.offload_parameters;
  k.end_weight *= 1 - p.offload_parameters;
  return k;
}

Bytes usable_memory(const Accelerator& a) {
  return a.memory * (kGiB / kGB * kUsableShare) - kContext;
}

int64_t layer_count(const Model& m) { return m.layers + m.encoder_layers + m.mtp_layers; }

Stages stages_of(const Model& m, const Plan& p) {
  if (p.pp <= 1) return {layer_count(m), 1};
  const int64_t stages = p.schedule == Schedule::kDualPipeV ? 2 * p.pp : p.pp;
  return {layer_count(m), stages, p.first_layers, p.last_layers, folded(p.schedule)};
}

StageContent stage_content(const Model& m, const Stages& s, int64_t stage) {
  const StageContent c = one_stage(m, s, stage);
  if (!s.folded) return c;
  const StageContent far = one_stage(m, s, s.pp - 1 - stage);
  return {c.dense_layers + far.dense_layers, c.moe_layers + far.moe_layers, c.first || far.first,
          c.last || far.last};
}

StageRun stage_run(const Model& m, const Stages& s, int64_t first) {
  StageRun run{stage_content(m, s, first), first, 1};
  if (s.folded) return run;
  const int64_t each = stage_layers(s, first);
  // Whole periods of expert layers look the same wherever they start.
  const bool alike =
      m.experts == 0 || (stage_begin(s, first) >= m.dense_layers && each % m.moe_every == 0);
  if (alike) run.count = equal_stages(s, first);
  return run;
}

double end_parameters(const Model& m, const MicrobatchCost& c, const StageContent& content) {
  const bool shared = m.tied_embeddings && content.first && content.last;
  return (content.first && !shared ? c.embedding.parameters : 0) +
         (content.last ? c.head.parameters : 0);
}

StageParameters stage_parameters(const MicrobatchCost& c, const StageContent& s, const Model& m) {
  StageParameters p;
  p.dense = s.dense_layers * c.dense.parameters + s.moe_layers * c.moe.parameters;
  p.expert = s.moe_layers * c.moe.expert_parameters;
  if (s.first) {
    p.dense += c.embedding.parameters;
    p.expert += c.embedding.expert_parameters;  // tables of a recommendation model
  }
  if (s.last && !(m.tied_embeddings && s.first)) p.dense += c.head.parameters;
  return p;
}

MemoryUse memory_use(const Setting& s, const Plan& p, const Layout& l, const MicrobatchCost& c) {
  const Costs k = costs_of(s, p, l, c);
  MemoryUse worst;
  worst.capacity = usable_memory(s.cluster.accelerator);
  const Stages stages = stages_of(s.workload.model, p);
  StageContent before;
  StageRun run;
  for (int64_t i = 0; i < l.pp; i += run.count) {
    run = stage_run(s.workload.model, stages, i);
    // Of inner stages with the same or fewer layers, the first holds most micro-batches.
    if (!stages.folded && i > 1 && i < l.pp - 1 &&
        run.content.dense_layers <= before.dense_layers &&
        run.content.moe_layers <= before.moe_layers) {
      continue;
    }
    stage_memory(s, p, l, c, k, stages, run.content, i, worst);
    before = run.content;
  }
  return worst;
}

}  // namespace assay
