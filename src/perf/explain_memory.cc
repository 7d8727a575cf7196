// Where memory comes from: its terms, and what each holds.
#include <algorithm>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "perf/explain_parts.h"
#include "perf/memory.h"
#include "perf/rank.h"

namespace assay {
namespace {

// A term of the memory and what it holds; parts that are not there are not shown.
struct MemoryPart {
  const char* name;
  std::string what;
  Bytes bytes;
};
struct MemoryTerm {
  const char* name;
  Bytes all;
  std::vector<MemoryPart> parts;
};

std::vector<MemoryTerm> memory_terms(const Subject& u) {
  const MemoryUse& m = u.r.memory;
  const MemoryParts& p = m.parts;
  const StateBytes each = state_bytes(u.s, u.p);
  // From which stage of sharding on that state is split, and among how many.
  const auto held = [&](double bytes, int64_t from) {
    std::string how = fmt::format("{:.3g} bytes per parameter", bytes);
    if (u.p.zero < from || u.l.shard <= 1) return how;
    how += fmt::format(" over {} ranks", u.l.shard);
    const int64_t experts = u.l.shard_expert.ranks;
    if (u.s.workload.model.experts > 0 && experts != u.l.shard)
      how += fmt::format(", of experts over {}", experts);
    return how;
  };
  const int64_t weights_from = p.whole_weights.v > 0 ? 2 : 3;
  const Stages split = stages_of(u.s.workload.model, u.p);
  double live = 0;
  for (const HeldPart& part : held_parts(u.s, u.p, u.l, u.cost, m.stage))
    live = std::max(live, part.live);
  const std::string saved =
      fmt::format("of micro-batch {}, {} in flight at most, for the backward pass", u.p.micro_batch,
                  split.folded ? fmt::format("of {} stages {}", split.pp, split.pp + 1)
                               : fmt::format("{:.3g}", live));
  const char* copies = u.s.stack.saved_quantised
                           ? "8 bits, and their transposes"
                           : "16 bits, kept by autocast for the backward pass";
  const char* gathered =
      u.s.stack.gathered_limit > 0 ? "as many as are kept alive" : "the one that runs and the next";
  return {{"weights",
           m.weights,
           {{"held", held(each.weight, weights_from), m.weights - p.whole_weights},
            {"gathered", "16 bits of every shard's, for the step", p.whole_weights}}},
          {"gradients",
           m.gradients,
           {{"held", held(each.gradient, 2), m.gradients - p.whole_gradients},
            {"unsharded", "added up over micro-batches", p.whole_gradients}}},
          {"optimizer",
           m.optimizer,
           {{"states", held(each.optimizer, 1), m.optimizer - p.adapters},
            {"adapters", "weights, gradients and states", p.adapters}}},
          {"activations",
           m.activations,
           {{"saved", saved, m.activations - p.working},
            {"working", "of what runs at that moment", p.working}}},
          {"buffers",
           m.buffers,
           {{"gathered layers", gathered, p.gathered},
            {"unsharded gradients", "of a layer, until they are reduced", p.reduced},
            {"weight copies", copies, p.copies},
            {"placeholder gradients", "16 bits, one of each shape", p.placeholders},
            {"optimizer's scratch", "while it steps", p.scratch}}},
          {"framework", m.framework, {{"workspaces", "workspaces", m.framework}}}};
}

Derivation term_figure(const MemoryTerm& t) {
  Derivation d = leaf(t.name, t.all.v, "B", "none", 'c', "");
  for (const MemoryPart& part : t.parts) {
    if (std::abs(part.bytes.v) <= 1e-9 * t.all.v) continue;
    d.inputs.push_back(leaf(part.name, part.bytes.v, "B", part.what, 'c', ""));
  }
  if (d.inputs.empty()) return d;
  d.equation = "sum of its parts";
  // What is alone is said beside its term.
  const Derivation& first = d.inputs.front();
  if (d.inputs.size() > 1) return d;
  const bool plain = first.name == t.parts.front().name && t.name != std::string("buffers");
  d.equation = plain ? first.equation : fmt::format("{}: {}", first.name, first.equation);
  d.inputs.clear();
  return d;
}

Derivation allocated_figure(const Subject& u) {
  Derivation d = leaf("allocated", u.r.memory.allocated.v, "B", "sum of the parts", 'c',
                      "docs/models/memory.md");
  for (const MemoryTerm& t : memory_terms(u)) d.inputs.push_back(term_figure(t));
  return d;
}

// What of a state's bytes per parameter is not here: one optimizer keeps less, frozen weights are
// narrow, some are on the host.
void add_state_bytes(const Subject& u, double stack, double held, const char* path,
                     std::vector<Derivation>& inputs) {
  inputs.push_back(given("bytes per parameter", stack, "", path));
  if (std::abs(held - stack) <= 1e-9 * stack) return;
  const bool frozen = u.s.workload.task == Task::kLora;
  inputs.push_back(leaf("of them, held here", held, "",
                        frozen ? "frozen weights, less what is on the host"
                               : "less what Muon does without and what is on the host",
                        's', "docs/models/memory.md"));
}

// What the states of the worst rank are counted from; nothing for what is no state.
std::vector<Derivation> state_inputs(const Subject& u, const std::string& name) {
  const Stack& st = u.s.stack;
  const bool weights = name == "weights", gradients = name == "gradients";
  if (!weights && !gradients && name != "optimizer") return {};
  const Model& m = u.s.workload.model;
  const StageContent stage = stage_content(m, stages_of(m, u.p), u.r.memory.stage);
  const StageParameters q = stage_parameters(u.cost, stage, m);
  const double ends = end_parameters(m, u.cost, stage);
  std::vector<Derivation> inputs{leaf("parameters of a rank's layers", q.dense - ends, "",
                                      fmt::format("{:g} layers over {} tensor ranks",
                                                  stage.dense_layers + stage.moe_layers, u.l.tp),
                                      's', "docs/models/flops.md")};
  if (q.expert > 0) {
    inputs.push_back(leaf("parameters of its experts", q.expert, "",
                          fmt::format("{:g} layers over {} expert ranks", stage.moe_layers, u.l.ep),
                          's', "docs/models/flops.md"));
  }
  if (ends > 0) {
    inputs.push_back(
        leaf("of embedding and head", ends, "", "where its stage has them", 's', "the plan"));
  }
  const StateBytes held = state_bytes(u.s, u.p);
  if (weights) add_state_bytes(u, st.weight_bytes, held.weight, "stack.weight_bytes", inputs);
  if (gradients)
    add_state_bytes(u, st.gradient_bytes, held.gradient, "stack.gradient_bytes", inputs);
  if (!weights && !gradients)
    add_state_bytes(u, st.optimizer_bytes, held.optimizer, "stack.optimizer_bytes", inputs);
  if (u.p.zero >= (weights ? 3 : gradients ? 2 : 1)) {
    inputs.push_back(count_of("ranks that share them", u.l.shard));
    if (q.expert > 0)
      inputs.push_back(count_of("ranks that share an expert", u.l.shard_expert.ranks));
  }
  return inputs;
}

Derivation bytes_of(std::string name, Bytes b, std::string how) {
  return leaf(std::move(name), b.v, "B", std::move(how), 'c', "docs/models/memory.md");
}

// What layers keep of the micro-batches in flight.
std::vector<Derivation> saved_inputs(const Subject& u) {
  std::vector<Derivation> inputs;
  for (const HeldPart& part : held_parts(u.s, u.p, u.l, u.cost, u.r.memory.stage)) {
    Derivation d = bytes_of(fmt::format("by {}", part.by), part.each * (part.count * part.live),
                            "of one x how many x micro-batches in flight");
    d.inputs = {bytes_of("of one", part.each, fmt::format("micro-batch {}", u.p.micro_batch)),
                leaf("how many", part.count, "", "of the stage", 's', "the plan"),
                leaf("micro-batches in flight", part.live, "",
                     fmt::format("{} stages, {} micro-batches", u.l.pp, u.l.microbatches), 's',
                     "docs/models/pipeline.md")};
    inputs.push_back(std::move(d));
  }
  if (u.r.memory.parts.moment == MemoryParts::Moment::kBackwardEnd)
    inputs.push_back(leaf("times", 2, "", "they and their gradients stay", 's', "the stack"));
  return inputs;
}

// At the loss it is the logits, else a layer.
std::vector<Derivation> working_inputs(const Subject& u) {
  const Model& m = u.s.workload.model;
  const Bytes working = u.r.memory.parts.working;
  if (u.r.memory.parts.moment != MemoryParts::Moment::kLoss) {
    const bool experts = working != u.cost.dense.working;
    return {bytes_of("the layer that runs", working,
                     experts ? "with experts, of the busiest rank: what its kernels read and write"
                             : "what its kernels read and write")};
  }
  if (m.kind == ModelKind::kDlrm) return {bytes_of("pairs and MLPs", working, "of a micro-batch")};
  const Logits logits = held_logits(make_rank(u.s, u.p, u.l, u.links));
  Derivation all = bytes_of("logits", Bytes(logits.count * logits.each), "logits x bytes of each");
  all.inputs = {leaf("logits held", logits.count, "",
                     "positions x a rank's share of the vocabulary, in chunks where the stack cuts "
                     "them",
                     's', "docs/models/memory.md"),
                leaf("bytes of each", logits.each, "", "logits and their gradients", 'c',
                     "docs/models/memory.md")};
  return {all, bytes_of("input of the head", working - Bytes(all.value), "")};
}

// `parameters` that stand whole, and what each takes.
std::vector<Derivation> whole_inputs(double parameters, std::string what, Derivation each) {
  return {leaf("parameters", parameters, "", std::move(what), 's', "docs/models/flops.md"),
          std::move(each)};
}

std::vector<Derivation> gathered_inputs(const Subject& u) {
  const Stack& st = u.s.stack;
  const Model& m = u.s.workload.model;
  const Unsharded x = unsharded_parameters(u.s, u.p, u.l, u.cost);
  const double each = gathered_bytes(u.s, u.p);
  const char* path =
      each == st.weight_comm_bytes ? "stack.weight_comm_bytes" : "stack.weight_comm_narrow";
  std::vector<Derivation> inputs = whole_inputs(
      x.gathered,
      fmt::format("of {:.4g} of the largest layer: {}", x.layer,
                  st.gathered_limit > 0 ? "at most stack.gathered_limit" : "two layers"),
      given("bytes of each", each, "", path));
  const StageContent stage = stage_content(m, stages_of(m, u.p), u.r.memory.stage);
  if (st.gathered_ends && end_parameters(m, u.cost, stage) > 0) {
    Derivation ends = bytes_of("embedding and head",
                               Bytes(end_parameters(m, u.cost, stage) * st.weight_comm_bytes), "");
    ends.inputs =
        whole_inputs(end_parameters(m, u.cost, stage), "of the stage",
                     given("bytes of each", st.weight_comm_bytes, "", "stack.weight_comm_bytes"));
    inputs.push_back(std::move(ends));
  }
  return inputs;
}

// What a part of the buffers, by its name, is counted from.
std::vector<Derivation> buffer_inputs(const Subject& u, const std::string& name) {
  const Stack& st = u.s.stack;
  const MemoryParts& p = u.r.memory.parts;
  if (name == "gathered layers") return gathered_inputs(u);
  if (name == "unsharded gradients") {
    const double both = st.weight_comm_bytes + st.gradient_comm_bytes;
    return whole_inputs(p.reduced.v / both, "of the largest layer",
                        leaf("bytes of each", both, "",
                             "weights and gradients as they are sent: stack.weight_comm_bytes + "
                             "stack.gradient_comm_bytes",
                             'c', "the stack"));
  }
  if (name == "weight copies") {
    return whole_inputs(p.copies.v / st.weight_copies,
                        st.saved_quantised ? "of the stage's layers"
                                           : "of the stage's layers that are not run again, and "
                                             "its head",
                        given("bytes of each", st.weight_copies, "", "stack.weight_copies"));
  }
  if (name == "placeholder gradients") {
    return whole_inputs(p.placeholders.v / kPlaceholderBytes, "of a layer, an expert and the head",
                        leaf("bytes of each", kPlaceholderBytes, "", "16 bits", 's', ""));
  }
  return {bytes_of("states", p.scratch / st.optimizer_scratch, "of the optimizer"),
          share_of("of them, once more", st.optimizer_scratch, "stack.optimizer_scratch")};
}

// A term that is no state: each of its parts, and what that is counted from.
Derivation counted_term(const Subject& u, const MemoryTerm& t) {
  Derivation d = bytes_of(t.name, t.all, t.all.v > 0 ? "sum of its parts" : "none");
  const std::string name = t.name;
  for (const MemoryPart& part : t.parts) {
    if (std::abs(part.bytes.v) <= 1e-9 * t.all.v) continue;
    Derivation one = bytes_of(part.name, part.bytes, part.what);
    const std::string of = part.name;
    one.inputs = name == "buffers" ? buffer_inputs(u, of)
                 : of == "saved"   ? saved_inputs(u)
                 : of == "working" ? working_inputs(u)
                                   : std::vector<Derivation>{};
    d.inputs.push_back(std::move(one));
  }
  if (name == "framework")
    d.inputs = {given("workspaces", u.s.stack.framework_memory.v, "B", "stack.framework_memory")};
  return d;
}

}  // namespace

// What the screen shows is reserved memory: fit is judged on that.
Derivation memory_figure(const Subject& u) {
  constexpr const char* kMoments[] = {"at the loss", "in the backward pass",
                                      "at the end of the backward pass", "in the optimizer's step"};
  const MemoryUse& m = u.r.memory;
  Derivation d = leaf(
      "memory", m.reserved.v, "B",
      fmt::format("allocated x fragmentation + outside the allocator, of {:.1f} GiB usable; worst "
                  "rank, {} {} of {}, {}",
                  m.capacity / kGiB, folded(u.p.schedule) ? "pair of stages" : "stage", m.stage + 1,
                  u.l.pp, kMoments[static_cast<size_t>(m.parts.moment)]),
      'c', "docs/models/memory.md");
  const Stack& st = u.s.stack;
  const bool gathered = u.l.shard > 1 && gathers_each_microbatch(st, u.p, u.l) > 0;
  const double fragmentation = gathered ? st.fragmentation_gathered : st.fragmentation;
  const Bytes outside = u.l.ranks > 1 ? st.outside_memory : Bytes(0);  // communicators
  d.inputs = {allocated_figure(u),
              given("fragmentation", fragmentation, "",
                    gathered ? "stack.fragmentation_gathered" : "stack.fragmentation"),
              u.l.ranks > 1 ? given("outside the allocator", outside.v, "B", "stack.outside_memory")
                            : leaf("outside the allocator", 0, "B", "one rank has no communicators",
                                   'c', "")};
  const double graphs = u.p.cuda_graphs ? st.graph_memory : 1;
  if (graphs > 1) d.inputs.push_back(given("held by graphs", graphs, "", "stack.graph_memory"));
  const Bytes rest = m.reserved - m.allocated * (fragmentation + graphs - 1) - outside;
  if (std::abs(rest.v) > 1e-6 * m.reserved.v)
    d.inputs.push_back(leaf(rest.v > 0 ? "cached or kept apart" : "given back when full", rest.v,
                            "B", "", 'c', d.source));
  d.inputs.push_back(given("nominal memory", u.s.cluster.accelerator.memory.v / 1e9, "GB nominal",
                           "cluster.accelerator.memory"));
  return d;
}

Derivation headroom_figure(const Subject& u) {
  Derivation d = leaf("headroom", (u.r.memory.capacity - u.r.memory.reserved).v, "B",
                      "usable - reserved", 'c', "docs/models/memory.md");
  d.inputs = {
      leaf("usable", u.r.memory.capacity.v, "B", "nominal memory less what driver and context hold",
           's', "docs/models/memory.md"),
      memory_figure(u)};
  return d;
}

const std::vector<std::string>& memory_figures() {
  static const std::vector<std::string> names{"weights", "gradients", "optimizer", "activations",
                                              "buffers", "framework", "allocated", "reserved"};
  return names;
}

Derivation memory_part(const Subject& u, const std::string& name) {
  if (name == "allocated") return allocated_figure(u);
  for (const MemoryTerm& t : memory_terms(u)) {
    if (t.name != name) continue;
    const bool state = name == "weights" || name == "gradients" || name == "optimizer";
    if (!state) return counted_term(u, t);
    Derivation d = term_figure(t);
    d.source = "docs/models/memory.md";
    for (Derivation& input : state_inputs(u, name)) d.inputs.push_back(std::move(input));
    return d;
  }
  return memory_figure(u);  // what is reserved
}

}  // namespace assay
