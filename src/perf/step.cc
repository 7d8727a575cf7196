// How the parts of a step add up.
//
// 1. A stage's pass over one micro-batch takes the longer of what the device needs (kernels and
//    exposed traffic) and what the host needs to launch it; near equality both interfere, which a
//    p-norm describes.
// 2. Clocks: kernels draw power by kind; if the step's mean draw at burst clocks exceeds the cap,
//    clocks settle where it equals the cap, and matmul and attention stretch accordingly.
// 3. The pipeline runs at the pace of its slowest stage, plus fill and drain (pipeline.h).
// 4. Gradient and parameter traffic hides under the passes that the stack overlaps it with, as far
//    as it really does; what is hidden still costs computation (`contention`).
// 5. The slowest of many nodes sets the pace: a loss per doubling of nodes.
//
// The ledger is the mean over ranks; what the slowest stage adds is `waiting: imbalance`.
#include "perf/step.h"
#include "world/model_size.h"

#include <algorithm>
#include <cmath>

#include "base/assert.h"
#include "perf/clocks.h"
#include "perf/memory.h"
#include "perf/muon.h"
#include "perf/pipeline.h"
#include "perf/rank.h"

namespace assay {
namespace {

// Sharpness of the race between host and device; 6 means 12 % extra at equality.
constexpr double kRace = 6;
// Optimizing on the host: master weight, two moments and the gradient are read, the first three
// written, through the host's memory; 200 GB/s per node is what a two-socket server sustains for
// such a stream. One thread is bound by itself: kHostThread bytes a second, measured
// (test/data/h200_hand.csv) with the casts, the norm and the scaling that a mixed-precision engine
// adds to Adam.
constexpr Bandwidth kHostMemory{200e9};
constexpr Bandwidth kHostThread{7.8e9};

// Pinned copies reach this share of the host link's nominal rate (test/data/h200_hostlink.csv: 55.4
// of 64 GB/s).
constexpr double kHostLinkShare = 0.87;
// Where one side needs less than this share of the other, the race is decided: the rest of the
// p-norm is below 0.02 %.
constexpr double kDecided = 0.3;

double race(double device, double host) {
  if (host <= kDecided * device) return device;
  if (device <= kDecided * host) return host;
  return std::pow(std::pow(device, kRace) + std::pow(host, kRace), 1 / kRace);
}

struct StagePasses {
  PassCost forward, backward;  // backward includes what is recomputed
  PassCost again;
  Seconds weights;
};

StagePasses stage_passes(const MicrobatchCost& c, const StageContent& s) {
  StagePasses t;
  const auto add = [&](const LayerCost& layer, double count) {
    if (count <= 0) return;
    t.forward += layer.forward * count;
    t.backward += layer.backward * count;
    t.again += layer.again * count;
    t.weights += layer.weights * count;
  };
  add(c.dense, s.dense_layers);
  add(c.moe, s.moe_layers);
  if (s.first) add(c.embedding, 1);
  if (s.last) add(c.head, 1);
  t.backward += t.again;
  return t;
}

double pass_time(const PassCost& p, double clock, double host, double& wait) {
  const double device = p.clocked().v / clock + p.scores.v + p.memory.v + p.wire().v;
  const double t = race(device, host);
  wait += t - device;
  return t;
}

struct Traffic {
  Exchange gradient, parameter;
  double copies = 0;  // between buffers of collectives and tensors, on the device
};

// `wire` seconds beside a window of computation: what shows, given the share that overlaps at all.
double exposed(double wire, double window, double share) {
  const double hidden = std::min(wire * share, window);
  return wire - hidden;
}

// Of a stage, what backward ends with and forward begins with: the embedding.
double edge_parameters(const Model& m, const MicrobatchCost& c, const StageContent& content) {
  if (!content.first) return 0;
  return m.tied_embeddings && content.last ? c.head.parameters : c.embedding.parameters;
}

// How often a step reduces gradients that a rank shards.
double reductions(const Stack& st, const Plan& p, const Layout& l) {
  return adds_up_whole(st, p, l) ? 1 : real(l.microbatches);
}

// The links that an exchange passes, and who wants to know what is sent over them.
struct Wires {
  const Links& links;
  std::vector<WireRecord>* record = nullptr;
};

// What is sent: gradients or weights of what, and how often in one exchange.
struct Sent {
  bool gradients;
  const char* of;
  double count = 1;
};

void keep(const Wires& w, const Sent& sent, const char* what, Bytes each, double count,
          const Group& g, double one) {
  if (w.record == nullptr || one <= 0) return;
  w.record->push_back({sent.gradients, sent.of, what, each, count, g, Seconds(one * count)});
}

double all_reduce(const Wires& w, const Sent& sent, Bytes b, const Group& g) {
  const double t = collective_time(Collective::kAllReduce, b, g, w.links).v;
  keep(w, sent, "all-reduce", b, sent.count, g, t);
  return t;
}

// Gradients scattered among the ranks that share one copy, and summed over the copies.
double scatter(const Wires& w, const Sent& sent, Bytes b, const Group& shard, const Group& copies) {
  const double t = collective_time(Collective::kReduceScatter, b, shard, w.links).v;
  keep(w, sent, "reduce-scatter", b, sent.count, shard, t);
  if (copies.ranks <= 1) return t;
  return t + all_reduce(w, sent, b / real(shard.ranks), copies);
}

// Weights gathered in `times` collectives.
double gather(const Wires& w, const Sent& sent, Bytes b, const Group& shard, double times = 1) {
  const double t = collective_time(Collective::kAllGather, b / times, shard, w.links).v;
  keep(w, sent, "all-gather", b / times, times * sent.count, shard, t);
  return times * t;
}

// Gradients reduced and weights gathered once a step (zero 0 to 2). Under zero 2 a rank keeps only
// its part of the gradients, so every micro-batch reduces them, unless they are added up whole.
// `ends`: parameters of embedding and head among them. `edge`: those whose gradients exist when
// backward is over, and that forward begins with: the embedding.
Traffic replicated_traffic(const Setting& s, const Plan& p, const Layout& l, const Wires& w,
                           const StageParameters& q, double ends, double edge, double forward,
                           double backward) {
  Traffic t;
  const Stack& st = s.stack;
  if (s.workload.task == Task::kLora) return t;
  const Bytes dense(q.dense * st.gradient_comm_bytes), expert(q.expert * st.gradient_comm_bytes);
  const Sent dense_grad{true, "layers"}, expert_grad{true, "experts"};
  double& grad = t.gradient.wire;
  double& param = t.parameter.wire;
  const bool split = p.zero >= 1;
  if (split && st.scatter_gradients) {
    grad = scatter(w, dense_grad, dense, l.shard_group, l.replica_group) +
           scatter(w, expert_grad, expert, l.shard_expert, l.replica_expert);
  } else {
    grad = all_reduce(w, dense_grad, dense, l.data) +
           all_reduce(w, expert_grad, expert, l.data_expert);
  }
  if (split) {
    const double layer_bytes = gathered_bytes(s, p);
    const Bytes layers((q.dense - ends) * layer_bytes + ends * st.weight_comm_bytes);
    param = gather(w, {false, "layers"}, layers, l.shard_group) +
            gather(w, {false, "experts"}, Bytes(q.expert * layer_bytes), l.shard_expert);
  }
  const double last = edge / std::max(1.0, q.dense + q.expert);
  const auto shown = [last](double wire, double window, double share) {
    return std::max(wire * last, exposed(wire, window, share));
  };
  t.gradient.times = p.zero == 2 ? reductions(st, p, l) : 1;
  t.gradient.shown = shown(grad, backward, p.overlap_grad ? st.overlap_grad : 0);
  t.parameter.shown = shown(param, forward, p.overlap_param ? st.overlap_param : 0);
  if (!split && l.data.ranks > 1) {
    const Bandwidth memory = streaming(s);
    const double sent = q.dense + (l.data_expert.ranks > 1 ? q.expert : 0);
    t.copies = (Bytes(sent * st.gradient_comm_bytes * st.bucket_copy) / memory).v;
  }
  return t;
}

// Collectives that the weights of a layer of `matrices` are gathered in.
double gathers_of(const Stack& st, double parameters, double matrices) {
  if (st.gather_bucket <= 0) return 1;
  return std::clamp(std::ceil(parameters / st.gather_bucket), 1.0, matrices);
}

// What one micro-batch gathers before a pass and scatters after the backward one.
struct Shards {
  double gather = 0, scatter = 0;  // seconds
  double first = 0;                // of `gather`, what forward begins with: nothing runs yet
  double all = 0;                             // parameters
  double ends = 0, all_ends = 0;  // of these, embedding and head where they stay gathered
  double last = 0;                // of `scatter`, the embedding's
};

// What a rank fetches of `b` from the host before it is gathered.
double fetched(const Setting& s, const Plan& p, const Wires& w, const Sent& sent, Bytes b,
               const Group& shard) {
  if (p.offload_parameters <= 0) return 0;
  const Bytes own = b * (p.offload_parameters / real(shard.ranks));
  const double t = (own / (s.cluster.accelerator.pcie_bandwidth * kHostLinkShare)).v;
  keep(w, sent, "fetched from the host", own, sent.count, Group{}, t);
  return t;
}

Shards shards_of(const Setting& s, const Plan& p, const Layout& l, const Wires& w,
                 const MicrobatchCost& c, const StageContent& content) {
  const Stack& st = s.stack;
  const bool lora = s.workload.task == Task::kLora;
  const double passes = gathers_each_microbatch(st, p, l);
  const double layer_bytes = gathered_bytes(s, p);
  const double block = s.workload.model.gated_mlp ? 7 : 6;  // matrices of a layer; a head is one
  Shards t;
  const auto add = [&](const char* of, const char* experts, const LayerCost& layer, double count,
                       double bytes, double matrices, bool starts) {
    t.last = 0;
    if (count <= 0 || layer.parameters + layer.expert_parameters <= 0) return;
    const bool stays = matrices == 1 && st.gathered_ends;
    const double gathered = count * (stays ? 1 : passes);
    double g = 0;
    const auto exchange = [&](const char* name, double parameters, const Group& shard,
                              const Group& copies) {
      if (parameters <= 0) return 0.0;
      const Bytes b(parameters * bytes);
      const Sent weights{false, name, gathered};
      g += gather(w, weights, b, shard, gathers_of(st, parameters, matrices)) +
           fetched(s, p, w, weights, b, shard);
      if (lora) return 0.0;
      return scatter(w, {true, name, count}, Bytes(parameters * st.gradient_comm_bytes), shard,
                     copies);
    };
    t.last = exchange(of, layer.parameters, l.shard_group, l.replica_group);
    t.scatter += t.last * count;
    t.scatter +=
        exchange(experts, layer.expert_parameters, l.shard_expert, l.replica_expert) * count;
    t.gather += g * count;
    if (starts) t.first = g;
    const double moved =
        (layer.parameters + (l.shard_expert.ranks > 1 ? layer.expert_parameters : 0)) * count;
    t.all += moved;
    if (stays) t.ends += g, t.all_ends += moved;
  };
  // The embedding's weights are the head's where the two are tied and sit together.
  const bool shared = s.workload.model.tied_embeddings && content.first && content.last;
  add("layers", "experts", c.dense, content.dense_layers, layer_bytes, block, true);
  add("layers with experts", "experts", c.moe, content.moe_layers, layer_bytes, block, true);
  if (content.last) add("head", "", c.head, 1, st.weight_comm_bytes, 1, shared);
  if (content.first && !shared)
    add("embedding", "tables", c.embedding, 1, st.weight_comm_bytes, 1, true);
  if (!content.first) t.last = 0;
  return t;
}

// FSDP: weights gathered before every pass of every layer (or the forward one alone), gradients
// scattered after; all of it in every micro-batch, unless gradients are added up whole.
Traffic sharded_traffic(const Setting& s, const Plan& p, const Layout& l, const Wires& w,
                        const MicrobatchCost& c, const StageContent& content, double forward,
                        double backward) {
  const Stack& st = s.stack;
  const double passes = gathers_each_microbatch(st, p, l);
  const Shards x = shards_of(s, p, l, w, c, content);
  const double m = real(l.microbatches);
  const double g_share = p.overlap_param ? st.overlap_param : 0;
  const double r_share = p.overlap_grad ? st.overlap_grad : 0;
  const double g_fwd = std::max(x.first, exposed(x.gather, forward, g_share));
  const double again = (x.gather - x.ends) * (passes - 1);
  const double g_bwd = exposed(again, backward, g_share);
  const double left = std::max(0.0, backward - (again - g_bwd));
  // The embedding's gradients exist when backward is over.
  const double r_bwd = std::max(x.last, exposed(x.scatter, left, r_share));
  Traffic t;
  t.parameter = {m, x.gather + again, g_fwd + g_bwd};
  t.gradient = {reductions(st, p, l), x.scatter, r_bwd};
  const Bandwidth memory = streaming(s);
  const double gathered = x.all * passes - x.all_ends * (passes - 1);
  const double scattered = s.workload.task == Task::kLora ? 0 : x.all;
  t.copies = m * (Bytes(gathered * st.gather_copy + scattered * st.scatter_copy) / memory).v;
  return t;
}

// A tied embedding stands in the first stage and in the last: at the end of a step they add up what
// both found, unless one rank holds both. Nothing is left that could hide it.
Seconds tied_gradients(const Setting& s, const Plan& p, const Layout& l, const Links& links,
                       const MicrobatchCost& c) {
  if (l.pp == 1 || folded(p.schedule) || !s.workload.model.tied_embeddings ||
      s.workload.task == Task::kLora)
    return Seconds(0);
  Group pair = l.pipeline;
  pair.ranks = 2;
  pair.per_domain = pair.per_domain > 1 ? 2 : 1;
  pair.stride *= l.pp - 1;
  return collective_time(Collective::kAllReduce,
                         Bytes(c.head.parameters * s.stack.gradient_comm_bytes), pair, links);
}

// An optimizer on the host: gradients go down and weights come up the host link, in each
// micro-batch where a rank keeps only its part of the gradients; then the processes of a node share
// its memory, each with the threads that its launcher leaves it. Nothing of it overlaps: the next
// forward pass needs the weights.
double host_optimizer_time(const Setting& s, const Plan& p, const Layout& l, double parameters) {
  const Stack& st = s.stack;
  const Bandwidth pcie = s.cluster.accelerator.pcie_bandwidth * kHostLinkShare;
  const double ranks = real(std::min(s.cluster.node.accelerators, l.ranks));
  const double times = p.zero >= 2 ? reductions(st, p, l) : 1;
  const double up = (1 - p.offload_parameters) * st.weight_comm_bytes;
  const double moved = times * st.gradient_comm_bytes + up;
  const double touched =
      2 * optimizer_state(s.workload, st.optimizer_bytes) + 2 * st.gradient_bytes;
  const Bandwidth threads = kHostThread * (st.offload_threads * s.cluster.node.host_speed);
  const Bandwidth host = std::min(threads, kHostMemory / ranks);
  return (Bytes(parameters * moved) / pcie).v + (Bytes(parameters * touched) / host).v;
}

double optimizer_time(const Setting& s, const Plan& p, const Layout& l, const StageParameters& q,
                      const StageContent& content, Step& step) {
  if (s.workload.task == Task::kLora) return 0;
  const Stack& st = s.stack;
  const double shard = real(l.shard);
  const double expert = real(l.shard_expert.ranks);
  // Only the touched rows of a table are updated, and that is part of its backward pass.
  const double sparse = s.workload.model.kind == ModelKind::kDlrm ? 0 : q.expert;
  const double mine = p.zero >= 1 ? q.dense / shard + sparse / expert : q.dense + sparse;
  const double state = optimizer_state(s.workload, st.optimizer_bytes);
  const double bytes = 2 * state + st.gradient_bytes + 2 * st.weight_bytes;
  step.updated = mine, step.update = Bytes(bytes);
  const Bandwidth memory = streaming(s);
  const double off = p.offload_optimizer;
  double t = (Bytes(mine * (1 - off) * bytes * st.optimizer_traffic) / memory).v;
  if (off > 0) t += host_optimizer_time(s, p, l, mine * off);
  const bool muon = s.workload.optimizer == Optimizer::kMuon;
  return muon ? t + muon_time(s, p, l, content).v : t;
}

// Reading the step's samples from shared storage, prefetched behind the step before: only what
// takes longer than a step shows. REQUIRES: a storage bandwidth.
double storage_wait(const Setting& s, double step) {
  const Bytes bytes = input_bytes(s.workload) * real(s.workload.global_batch);
  return std::max(0.0, (bytes / s.cluster.storage_bandwidth).v - step);
}

double log2_nodes(const Setting& s, const Layout& l) {
  const double nodes = real(l.ranks) / real(s.cluster.node.accelerators);
  return nodes > 1 ? std::log2(nodes) : 0;
}

// Books the kernels of `p`, `share` times.
void book_pass(Ledger& g, const PassCost& p, const PassCost& again, double share) {
  const double linear = p.matmul.v - again.matmul.v, attention = p.attention.v - again.attention.v;
  const double memory = p.memory.v - again.memory.v;
  g[Account::kMatmul] += Seconds((linear - (p.matmul_peak - again.matmul_peak).v) * share);
  g[Account::kAttention] +=
      Seconds((attention - (p.attention_peak - again.attention_peak).v) * share);
  g[Account::kMemoryBound] += Seconds(memory * share);
  g[Account::kRecompute] += Seconds((again.device().v + again.wire().v) * share);
  g[Account::kCommTensor] += (p.tensor - again.tensor) * share;
  g[Account::kCommContext] += (p.context - again.context) * share;
  g[Account::kCommExpert] += (p.expert - again.expert) * share;
  g[Account::kUseful] +=
      (p.matmul_peak - again.matmul_peak + p.attention_peak - again.attention_peak) * share;
}

// One stage's passes over one micro-batch, timed at the clock that it holds.
struct StageTime {
  PassCost both, again;                  // forward and backward together; what is recomputed
  double forward_s = 0, backward_s = 0;  // wall time of a pass
  double wait = 0;                       // device idle for the host
  double weights = 0;                    // of `backward_s`
  HeldClock held;
  double total() const { return forward_s + backward_s; }
};

StageTime time_stage(const Setting& s, const Plan& p, const StagePasses& passes, double extra) {
  const double launch = s.stack.launch.v / s.cluster.node.host_speed;
  const double host_f = passes.forward.launches * launch;
  const double host_b = passes.backward.launches * launch;
  StageTime t;
  t.both = passes.forward;
  t.both += passes.backward;
  t.again = passes.again;
  const auto run = [&](double clock) {
    t.wait = 0;
    t.forward_s = pass_time(passes.forward, clock, host_f, t.wait);
    t.backward_s = pass_time(passes.backward, clock, host_b, t.wait);
  };
  run(1);
  t.held = held_clock(s, p.precision, t.both, t.total() + extra);
  if (t.held.clock != 1) run(t.held.clock);
  t.weights = passes.weights.v / t.held.clock;
  return t;
}

// All stages of the pipeline, timed; the sums that the step needs. `uneven`: what a layer of
// experts waits for the busiest rank, which `sum` and `slowest` hold too.
struct PipelineTimes {
  double uneven = 0;
  double sum = 0, slowest = 0, wait = 0;
  double forward_sum = 0, weights_sum = 0;
  PassCost all, again;               // summed over stages
  double forward = 0, backward = 0;  // passes of the slowest stage
  double moe_layers = 0;             // of all stages
  StageContent large_content;  // the stage with most parameters: its traffic and optimizer count
  double large = -1;
  double clock = 1, draw = 0, waiting = 0;  // of the slowest stage; what it draws where it waits
  double capped = 0, heated = 0;  // what clocks below burst add, summed over stages, by cause
};

void add_stages(PipelineTimes& t, const StageTime& st, double count) {
  t.sum += st.total() * count;
  t.wait += st.wait * count;
  t.forward_sum += st.forward_s * count;
  t.weights_sum += st.weights * count;
  const double work = st.both.clocked().v * count;
  t.capped += work * (1 / st.held.cool - 1);
  t.heated += work * (1 / st.held.clock - 1 / st.held.cool);
  t.all += st.both * count;
  t.again += st.again * count;
}

PipelineTimes time_stages(const Setting& s, const Plan& p, const Layout& l, const MicrobatchCost& c,
                          double extra) {
  PipelineTimes t;
  const Model& m = s.workload.model;
  Seconds again;  // of the busiest rank's work
  if (p.recompute == Recompute::kFull) again = c.moe.busy_forward * p.recompute_layers;
  if (p.recompute == Recompute::kSelective) again = c.moe.busy_chosen * p.recompute_layers;
  t.uneven = (c.moe.busy_forward + again + c.moe.busy_backward).v * (load_skew(s, p, l) - 1);
  // An even split adds up by multiplication, any other one stage by stage.
  const Stages stages = stages_of(m, p);
  const bool even = m.experts == 0 && stages.even();
  StageRun run;
  for (int64_t i = 0; i < l.pp; i += run.count) {
    run = stage_run(m, stages, i);
    const StageTime st = time_stage(s, p, stage_passes(c, run.content), extra);
    if (even) {
      add_stages(t, st, real(run.count));
    } else {
      for (int64_t k = 0; k < run.count; ++k) add_stages(t, st, 1);
    }
    const double waited = t.uneven * run.content.moe_layers;
    t.moe_layers += run.content.moe_layers * real(run.count);
    t.sum += waited * real(run.count);
    const StageParameters q = stage_parameters(c, run.content, m);
    if (q.dense + q.expert > t.large) {
      t.large = q.dense + q.expert;
      t.large_content = run.content;
    }
    if (st.total() + waited > t.slowest) {
      t.slowest = st.total() + waited;
      t.forward = st.forward_s;
      t.backward = st.backward_s;
      t.clock = st.held.clock;
      t.draw = st.held.draw, t.waiting = st.held.waiting;
    }
  }
  return t;
}

// Activations parked on the host leave under the forward pass and come back under the backward one;
// what does not fit under them is waited for, in every micro-batch.
struct ParkedWait {
  double forward = 0, backward = 0;
};

ParkedWait parked_wait(const Setting& s, const MicrobatchCost& c, const PipelineTimes& t) {
  const StageContent& stage = t.large_content;
  const Bytes parked = c.dense.parked * stage.dense_layers + c.moe.parked * stage.moe_layers;
  if (parked.v <= 0) return {};
  const double copy = (parked / (s.cluster.accelerator.pcie_bandwidth * kHostLinkShare)).v;
  return {std::max(0.0, copy - t.forward), std::max(0.0, copy - t.backward)};
}

// Gradients are added up in memory by every micro-batch; where each one reduces them, only what a
// rank keeps. Autocast casts weights that it finds in 32 bits, and their gradients back; kernels
// for all experts at once may want their weights laid out otherwise.
Moves accumulate_time(const Setting& s, const Plan& p, const Layout& l, const StageParameters& q) {
  if (s.workload.task == Task::kLora) return {};
  const double m = real(l.microbatches);
  const double adds = s.stack.gradients_resident ? m : m - 1;
  // Tables are updated in place, by the rows that were looked up.
  const double experts = s.workload.model.kind == ModelKind::kDlrm ? 0 : q.expert;
  const bool parts = p.zero >= 2 && !adds_up_whole(s.stack, p, l);
  const double added =
      parts ? q.dense / real(l.shard) + experts / real(l.shard_expert.ranks) : q.dense + experts;
  const bool casts = !single_precision(p.precision) && gathers_each_microbatch(s.stack, p, l) == 0;
  const double cast = casts ? (q.dense + experts) * s.stack.cast_bytes * m : 0;
  const double laid_out = experts * s.stack.expert_copies * m;
  const Bandwidth memory = streaming(s);
  return {Bytes(added * s.stack.accumulate_bytes * adds) / memory, Bytes(cast) / memory,
          Bytes(laid_out) / memory, Seconds(0)};
}

}  // namespace

Seconds step_host(const Setting& s, const Layout& l) {
  const bool trains = s.workload.task != Task::kLora;
  const double layers = trains ? real(layer_count(s.workload.model)) / real(l.pp) : 0;
  return (s.stack.step_overhead + s.stack.step_layer * layers) / s.cluster.node.host_speed;
}

Step assemble_step(const Setting& s, const Plan& p, const Layout& l, const Links& links,
                   const MicrobatchCost& c, std::vector<WireRecord>* record) {
  Step out;
  Ledger& g = out.ledger;
  const Stack& st = s.stack;
  const double m = real(l.microbatches);
  const double pp = real(l.pp);
  double sends = 0;  // of a stage, for one micro-batch, both ways
  if (p.pp > 1) {
    sends =
        2 * real(l.vpp) * collective_time(Collective::kSendRecv, c.boundary, l.pipeline, links).v;
  }
  double hop = sends * (1 - st.overlap_pipeline);
  PipelineTimes t = time_stages(s, p, l, c, hop);
  // What is hidden is hidden under the stage's own work.
  hop = std::max(hop, sends - t.slowest);
  const ParkedWait parked = parked_wait(s, c, t);
  out.clock = t.clock;
  const StageParameters q = stage_parameters(c, t.large_content, s.workload.model);

  book_pass(g, t.all, t.again, m / pp);
  g[Account::kPowerCap] += Seconds(t.capped * m / pp);
  g[Account::kThermal] += Seconds(t.heated * m / pp);
  g[Account::kLaunch] += Seconds(t.wait * m / pp);
  const double uneven = t.uneven * t.moe_layers / pp;
  const double mean = t.sum / pp;
  g[Account::kExpertImbalance] += Seconds(uneven * m);
  g[Account::kStageImbalance] += Seconds((t.slowest - mean) * m);
  g[Account::kCommPipeline] += Seconds(hop * m);
  const double waited = parked.forward + parked.backward;
  g[Account::kHostCopy] += Seconds(waited * m);
  out.slowest = Seconds(t.slowest), out.mean = Seconds(mean), out.hop = Seconds(hop + waited);
  out.forward = Seconds(t.forward_sum / pp), out.weights = Seconds(t.weights_sum / pp);
  g[Account::kBubble] +=
      bubble_time(p.schedule, l.pp, l.vpp, l.microbatches,
                  {(out.mean + out.hop) * pp, out.slowest + out.hop, out.forward, out.weights});
  out.moves = accumulate_time(s, p, l, q);

  const double forward = t.forward + parked.forward, backward = t.backward + parked.backward;
  const double ahead = passes_ahead(p, l);
  const Model& model = s.workload.model;
  const double edge = edge_parameters(model, c, t.large_content);
  const Wires wires{links, record};
  const Traffic traffic =
      gathers_each_microbatch(st, p, l) > 0
          ? sharded_traffic(s, p, l, wires, c, t.large_content, forward, backward)
          : replicated_traffic(s, p, l, wires, q, end_parameters(model, c, t.large_content), edge,
                               forward * ahead, backward * ahead);
  out.moves.copied = Seconds(traffic.copies);
  g[Account::kMemoryBound] +=
      out.moves.added + out.moves.cast + out.moves.laid_out + out.moves.copied;
  out.gradients = traffic.gradient, out.parameters = traffic.parameter;
  out.tied = tied_gradients(s, p, l, links, c);
  g[Account::kCommGrad] += Seconds(traffic.gradient.cost(st.contention)) + out.tied;
  g[Account::kCommParam] += Seconds(traffic.parameter.cost(st.contention));
  g[Account::kOptimizer] += Seconds(optimizer_time(s, p, l, q, t.large_content, out));
  g[Account::kSync] += step_host(s, l);
  if (st.hand_loss > 0) g[Account::kSync] += g.paid() * (st.hand_loss / (1 - st.hand_loss));
  if (s.cluster.storage_bandwidth.v > 0) {
    g[Account::kStorage] += Seconds(storage_wait(s, g.paid().v));
  }
  g[Account::kStraggler] += g.paid() * (st.jitter * log2_nodes(s, l));
  // What is not the mean stage's work, or the optimizer's, is waiting.
  const double busy = (mean - uneven + hop) * m + g[Account::kOptimizer].v;
  const double share = std::min(1.0, busy / g.paid().v);
  out.draw = t.draw * share + t.waiting * (1 - share);
  return out;
}

}  // namespace assay
