// Where a figure comes from: the prediction once more, with a recorder.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "perf/clocks.h"
#include "perf/explain_parts.h"
#include "perf/layer.h"
#include "perf/memory.h"
#include "perf/predict.h"
#include "perf/rank.h"
#include "perf/step.h"
#include "world/model_size.h"

namespace assay {
namespace {

Derivation peak_figure(const Subject& u) {
  const Accelerator& a = u.s.cluster.accelerator;
  const std::string name(enum_names(u.p.precision)[static_cast<size_t>(u.p.precision)]);
  const size_t digits = name.find("fp");  // mxfp8 runs at the peak of fp8
  Derivation d = given("peak", peak(a, u.p.precision).v / 1e12, "TFLOPS",
                       "cluster.accelerator." + name.substr(digits == 2 ? digits : 0));
  d.equation = fmt::format("{} {} dense", a.name, name);
  d.mark = 's';
  return d;
}

Derivation flops_figure(const Subject& u) {
  const Workload& w = u.s.workload;
  const double tokens = real(w.seq * w.global_batch);
  Derivation d =
      leaf("model flops per step", u.r.model_flops.v, "FLOP",
           fmt::format("{:.0f} tokens x {:.4g} FLOP per token", tokens, flops_per_token(w)), 's',
           "6 x matmul parameters + causal attention; docs/models/flops.md");
  Derivation active =
      given("active parameters", active_parameters(w.model), "", "workload.model.layers");
  active.equation = w.model.name;
  d.inputs = {std::move(active), count_of("sequence", w.seq, "workload.seq"),
              count_of("batch", w.global_batch, "workload.global_batch")};
  if (attended(w) < w.seq) {
    d.inputs.push_back(count_of("document", attended(w), "workload.document"));
  }
  return d;
}

std::string account_page(Account a) {
  switch (a) {
    case Account::kMatmul:
      return "docs/models/matmul.md";
    case Account::kAttention:
      return "docs/models/attention.md";
    case Account::kBubble:
    case Account::kStageImbalance:
    case Account::kCommPipeline:
      return "docs/models/pipeline.md";
    case Account::kPowerCap:
      return "docs/models/clocks.md";
    case Account::kCommTensor:
    case Account::kCommContext:
    case Account::kCommExpert:
    case Account::kCommParam:
    case Account::kCommGrad:
      return "docs/models/collectives.md";
    default:
      return "docs/models/step.md";
  }
}

const char* op_kind(Account a) {
  static constexpr std::pair<Account, const char*> kKinds[] = {
      {Account::kMatmul, "matmul"},      {Account::kAttention, "attention"},
      {Account::kMemoryBound, "memory"}, {Account::kCommTensor, "tensor"},
      {Account::kCommExpert, "expert"},  {Account::kCommContext, "context"}};
  for (const auto& [account, kind] : kKinds) {
    if (account == a) return kind;
  }
  return "";
}

Inputs memory_inputs(const Subject& u) {
  return {given("memory bandwidth", u.s.cluster.accelerator.memory_bandwidth.v, "B/s",
                "cluster.accelerator.memory_bandwidth"),
          share_of("of it, streaming", u.s.kernels.memory_efficiency, "kernels.memory_efficiency")};
}

// The same for a layer's kernels, which find part of what they read in the last-level cache.
Inputs layer_memory_inputs(const Subject& u) {
  Inputs inputs = memory_inputs(u);
  const Accelerator& a = u.s.cluster.accelerator;
  const double found = make_rank(u.s, u.p, u.l, u.links).cached;
  if (found <= 0) return inputs;
  inputs.push_back(given("last-level cache", a.l2.v / 1e6, "MB", "cluster.accelerator.l2"));
  inputs.push_back(
      given("its width per unit", u.s.kernels.cache_word, "B per clock", "kernels.cache_word"));
  inputs.push_back(count_of("units", a.compute_units, "cluster.accelerator.compute_units"));
  inputs.push_back(given("clock", a.clock.v / 1e6, "MHz", "cluster.accelerator.clock"));
  inputs.push_back(leaf("found in the cache", 100 * found, "%",
                        "less, the more of it a micro-batch fills", 'm', "docs/models/step.md"));
  return inputs;
}

Inputs clock_inputs(const Subject& u) {
  const Accelerator& a = u.s.cluster.accelerator;
  return {leaf("held clock", 100 * u.step.clock, "%",
               "of the burst clock: where the mean draw meets the limit", 'c', ""),
          given("power limit", a.tdp.v, "W", "cluster.accelerator.tdp"),
          given("idle power", a.idle.v, "W", "cluster.accelerator.idle"),
          given("draw of matmuls", u.s.kernels.power_matmul, "units", "kernels.power_matmul"),
          leaf("draw of the worst part", worst_draw(u.s.accelerators), "of the mean",
               fmt::format("1 + {:g} x the largest of N normal deviates, N the accelerators",
                           kDrawSpread),
               'c', "docs/models/clocks.md"),
          given("unit of draw", u.s.kernels.power_unit, "W per TFLOPS", "kernels.power_unit"),
          given("cooling supply", u.s.cluster.inlet_c, "C", "cluster.inlet_c")};
}

Inputs pipeline_inputs(const Subject& u, Account a) {
  const bool pairs = folded(u.p.schedule);
  Inputs inputs{count_of(pairs ? "pairs of stages" : "stages", u.l.pp)};
  if (!pairs) inputs.push_back(count_of("chunks of a stage", u.l.vpp));
  inputs.push_back(
      count_of(u.l.ends > 1 ? "micro-batches from each end" : "micro-batches", u.l.microbatches));
  if (a != Account::kCommPipeline) {
    inputs.push_back(timed("slowest stage", u.step.slowest, "one micro-batch"));
    inputs.push_back(timed("mean stage", u.step.mean, "one micro-batch"));
  }
  if (a == Account::kBubble) {
    inputs.push_back(timed("to the next stage", u.step.hop,
                           "one micro-batch, what is not hidden; copies to the host, too"));
    if (folded(u.p.schedule)) inputs.push_back(timed("forward", u.step.forward, "of the mean"));
    if (folded(u.p.schedule) || u.p.schedule == Schedule::kZeroBubble)
      inputs.push_back(timed("gradients of weights", u.step.weights, "of the mean, matmuls"));
  }
  if (a == Account::kStageImbalance) {
    const Stages split = stages_of(u.s.workload.model, u.p);
    inputs.push_back(count_of("layers", split.layers, "workload.model.layers"));
    inputs.push_back(count_of("layers of the last stage", stage_layers(split, split.pp - 1),
                              split.last > 0 ? "plan.last_layers" : ""));
    inputs.push_back(count_of("vocabulary", u.s.workload.model.vocab, "workload.model.vocab"));
  }
  if (a == Account::kCommPipeline) {
    inputs.push_back(leaf("sent between stages", u.cost.boundary.v, "B", "per micro-batch and hop",
                          'c', "docs/models/pipeline.md"));
    inputs.push_back(share_of("hidden", u.s.stack.overlap_pipeline, "stack.overlap_pipeline"));
    add_links(u, {&u.l.pipeline, 1}, inputs);
  }
  return inputs;
}

Inputs imbalance_inputs(const Subject& u) {
  const double skew = load_skew(u.s, u.p, u.l);
  const bool stated = u.p.expert_skew > 0 && u.p.expert_capacity == 0;
  const double routed = skew > 1 ? (u.r.ledger[Account::kExpertImbalance] / (skew - 1)).v : 0;
  return {timed("routed work", Seconds(routed), "experts, their exchange and its copies, a step"),
          stated ? given("busiest over mean", skew, "", "plan.expert_skew")
                 : leaf("busiest over mean", skew, "",
                        "as trained routers leave it, by experts, expert parallel degree and "
                        "tokens",
                        'c', "docs/models/step.md"),
          count_of("experts", u.s.workload.model.experts, "workload.model.experts"),
          count_of("expert parallel", u.l.ep, "plan.ep")};
}

Inputs host_inputs(const Subject& u, Account a) {
  const Stack& st = u.s.stack;
  if (a == Account::kSync) {
    return {given("work per step", st.step_overhead.v, "s", "stack.step_overhead"),
            given("and per layer", st.step_layer.v, "s", "stack.step_layer"),
            leaf("layers of a stage", real(layer_count(u.s.workload.model)) / real(u.l.pp), "", "",
                 's', "the plan"),
            given("speed of the host", u.s.cluster.node.host_speed, "", "cluster.node.host_speed"),
            share_of("lost around the step by hand", st.hand_loss, "stack.hand_loss")};
  }
  if (a == Account::kStraggler) {
    const double nodes = std::max(1.0, real(u.l.ranks) / real(u.s.cluster.node.accelerators));
    return {share_of("loss per doubling of nodes", st.jitter, "stack.jitter"),
            leaf("doublings", std::log2(nodes), "", "log2 of the nodes used", 's', "")};
  }
  const bool dense = u.cost.dense.parameters > 0;
  const LayerCost& layer = dense ? u.cost.dense : u.cost.moe;
  return {given("host time per launch", st.launch.v, "s", "stack.launch"),
          given("way through a layer", way_through(u.s, !dense).v, "s",
                dense ? "stack.layer_overhead" : "stack.expert_overhead"),
          leaf("launches of a layer", layer.forward.launches + layer.backward.launches, "",
               "and the host's way through it in their time, per micro-batch, both passes", 'c',
               "docs/models/step.md")};
}

// A kind of kernel over the whole step, recomputation aside: layers x micro-batches / stages.
Seconds whole_step(const Subject& u, Seconds PassCost::*kind) {
  const Model& m = u.s.workload.model;
  const StageContent all = stage_content(m, {layer_count(m), 1, 0, 0}, 0);
  const auto of = [kind](const LayerCost& l) { return l.forward.*kind + l.backward.*kind; };
  const Seconds one = of(u.cost.dense) * all.dense_layers + of(u.cost.moe) * all.moe_layers +
                      of(u.cost.embedding) + of(u.cost.head);
  return one * (real(u.l.microbatches) / real(u.l.pp));
}

// What the operations below an account are multiplied by, and what they come to.
Inputs kernel_inputs(const Subject& u, Account a) {
  const Model& m = u.s.workload.model;
  const Seconds attention_peak = whole_step(u, &PassCost::attention_peak);
  Inputs inputs;
  if (a == Account::kMatmul) {
    inputs = {timed("all matmuls", whole_step(u, &PassCost::matmul), "at the burst clock"),
              timed("at the peak", u.r.ledger[Account::kUseful] - attention_peak,
                    "useful, less attention at the peak")};
  } else if (a == Account::kAttention) {
    inputs = {timed("all attention", whole_step(u, &PassCost::attention), "at the burst clock"),
              timed("at the peak", attention_peak, "useful")};
  } else {
    const Seconds kernels =
        whole_step(u, a == Account::kMemoryBound ? &PassCost::memory : &PassCost::tensor);
    inputs = {timed("of the layers", kernels, "one micro-batch after the other")};
    const auto moved = [&](const char* name, Seconds time, const char* what, const char* path,
                           double bytes) {
      if (a != Account::kMemoryBound || time.v <= 0) return;
      inputs.push_back(timed(name, time, what));
      if (bytes > 0) inputs.push_back(given("bytes a parameter", bytes, "", path));
    };
    const Stack& st = u.s.stack;
    const Moves& moves = u.step.moves;
    moved("gradients added up", moves.added, "by every micro-batch", "stack.accumulate_bytes",
          st.accumulate_bytes);
    moved("weights and gradients cast", moves.cast, "in every micro-batch", "stack.cast_bytes",
          st.cast_bytes);
    moved("experts' weights laid out", moves.laid_out, "in every micro-batch",
          "stack.expert_copies", st.expert_copies);
    moved("copies of what is sent", moves.copied, "between buffers and tensors", "", 0);
  }
  if (layer_count(m) > 0)
    inputs.push_back(count_of("layers", layer_count(m), "workload.model.layers"));
  if (m.experts > 0) inputs.push_back(count_of("of them with experts", moe_layers(m)));
  if (m.mixer.layers > 0) {
    inputs.push_back(count_of("with attention", attention_layers(m)));
    inputs.push_back(count_of("with a mixer", m.mixer.layers, "workload.model.mixer.layers"));
  }
  inputs.push_back(count_of("micro-batches", u.l.microbatches));
  inputs.push_back(count_of("stages", u.l.pp));
  return inputs;
}

// How the inputs make up the figure, where it is more than a name.
const char* account_equation(const Subject& u, Account a) {
  switch (a) {
    case Account::kMatmul:
      return "all matmuls - at the peak";
    case Account::kAttention:
      return "all attention - at the peak";
    case Account::kBubble:
      if (folded(u.p.schedule))
        return "pairs of stages x (mean + to the next) - slowest - to the next - (pairs - 1) x "
               "(forward + 3 x gradients of weights) / 2";
      if (u.l.vpp > 1)
        return "(stages x (mean + to the next) - slowest - to the next) / chunks of a stage";
      return u.p.schedule == Schedule::kZeroBubble
                 ? "stages x (mean + to the next) - slowest - to the next - gradients of weights x "
                   "(stages - 2 + the smaller of stages and micro-batches)"
                 : "stages x (mean + to the next) - slowest - to the next";
    case Account::kStageImbalance:
      return "(slowest - mean) x micro-batches";
    case Account::kExpertImbalance:
      return "time of routed work x (load of the busiest rank - 1)";
    case Account::kCommGrad:
    case Account::kCommParam:
      return "times a step x (what shows + (on the wire - what shows) x cost of what is hidden)";
    default:
      return "";
  }
}

void append(Inputs& to, Inputs more) { to.insert(to.end(), more.begin(), more.end()); }

Inputs memory_bound_inputs(const Subject& u) {
  Inputs inputs = kernel_inputs(u, Account::kMemoryBound);
  append(inputs, layer_memory_inputs(u));
  const Moved moved = moved_between(u.s, u.p.compiled);
  inputs.push_back(given("over the fused minimum", moved.times, "", moved.path));
  const bool kept = u.p.recompute == Recompute::kNone || u.p.recompute_layers < 1;
  if (const double times = u.s.stack.kept_traffic; times > 1 && kept) {
    inputs.push_back(
        given("times, of layers of which nothing is run again", times, "", "stack.kept_traffic"));
  }
  return inputs;
}

// What runs again in a layer, at the burst clock, and how often.
Inputs recompute_inputs(const Subject& u) {
  const Model& m = u.s.workload.model;
  Inputs inputs;
  const auto add = [&](const char* name, const LayerCost& layer, double layers) {
    const PassCost& again = layer.again;
    if (layers <= 0 || (again.device() + again.wire()).v <= 0) return;
    inputs.push_back(
        leaf(name, (again.device() + again.wire()).v * 1e6, "us",
             fmt::format("matmuls {:.0f} us, attention {:.0f} us, memory-bound {:.0f} us, "
                         "traffic {:.0f} us; per micro-batch, {:g} layers",
                         again.matmul.v * 1e6, again.attention.v * 1e6, again.memory.v * 1e6,
                         again.wire().v * 1e6, layers),
             'c', "docs/models/step.md"));
  };
  const StageContent all = stage_content(m, {layer_count(m), 1, 0, 0}, 0);
  add("a layer, run again", u.cost.dense, all.dense_layers);
  add("a layer with experts, run again", u.cost.moe, all.moe_layers);
  inputs.push_back(share_of("of the layers", u.p.recompute_layers, "plan.recompute_layers"));
  inputs.push_back(count_of("micro-batches", u.l.microbatches));
  inputs.push_back(count_of("stages", u.l.pp));
  return inputs;
}

Inputs optimizer_inputs(const Subject& u) {
  const Stack& st = u.s.stack;
  Inputs inputs = memory_inputs(u);
  inputs.push_back(
      given("state per parameter", st.optimizer_bytes, "B per parameter", "stack.optimizer_bytes"));
  if (u.s.workload.optimizer == Optimizer::kMuon) {
    inputs.push_back(leaf("of it, kept by Muon", optimizer_state(u.s.workload, st.optimizer_bytes),
                          "B per parameter", "one moment less", 'c', "docs/models/step.md"));
    inputs.push_back(newton_schulz(u));
  }
  inputs.push_back(given("bytes moved over state read and written", st.optimizer_traffic, "",
                         "stack.optimizer_traffic"));
  inputs.push_back(leaf("parameters that a rank updates", u.step.updated, "",
                        "of its stage, over the ranks that share them", 's', "the plan"));
  inputs.push_back(leaf("read and written for each", u.step.update.v, "B",
                        "state twice, gradient, weight twice", 'c', "docs/models/step.md"));
  inputs.push_back(count_of("ranks that share it", u.l.shard));
  if (u.s.workload.model.experts > 0)
    inputs.push_back(count_of("ranks that share an expert", u.l.shard_expert.ranks));
  return inputs;
}

// What an account rests on besides its operations.
Inputs account_inputs(const Subject& u, Account a) {
  Inputs inputs;
  const Stack& st = u.s.stack;
  switch (a) {
    case Account::kUseful:
      return {flops_figure(u), peak_figure(u), count_of("accelerators", u.l.ranks)};
    case Account::kMatmul:
    case Account::kAttention:
      return kernel_inputs(u, a);
    case Account::kMemoryBound:
      return memory_bound_inputs(u);
    case Account::kRecompute:
      return recompute_inputs(u);
    case Account::kOptimizer:
      return optimizer_inputs(u);
    case Account::kPowerCap:
    case Account::kThermal:
      return clock_inputs(u);
    case Account::kCommTensor:
      inputs = kernel_inputs(u, a);
      inputs.push_back(
          share_of("hidden forward",
                   u.p.overlap_tp && u.l.tensor.ranks == u.l.tensor.per_domain ? st.overlap_tp : 0,
                   "stack.overlap_tp"));
      add_links(u, {&u.l.tensor, 1}, inputs);
      return inputs;
    case Account::kCommContext:
      if (u.p.context == ContextKind::kRing)
        inputs = {share_of("hidden", st.overlap_context, "stack.overlap_context")};
      if (u.p.context == ContextKind::kAllGather)
        inputs = {share_of("of the ranks' own blocks, hides the first gather", st.overlap_context,
                           "stack.overlap_context")};
      add_links(u, {&u.l.context, 1}, inputs);
      return inputs;
    case Account::kCommExpert:
      inputs = {
          share_of("hidden", u.p.overlap_expert ? st.overlap_expert : 0, "stack.overlap_expert")};
      add_links(u, {&u.l.expert, 1}, inputs);
      return inputs;
    case Account::kCommGrad:
    case Account::kCommParam:
      return exchange_inputs(u, a == Account::kCommGrad);
    case Account::kExpertImbalance:
      return imbalance_inputs(u);
    case Account::kBubble:
    case Account::kStageImbalance:
    case Account::kCommPipeline:
      return pipeline_inputs(u, a);
    case Account::kLaunch:
    case Account::kSync:
    case Account::kStraggler:
      return host_inputs(u, a);
    case Account::kStorage:
      return {given("shared storage", u.s.cluster.storage_bandwidth.v, "B/s",
                    "cluster.storage_bandwidth")};
    default:
      return inputs;
  }
}

Derivation account_figure(const Subject& u, Account a) {
  const AccountInfo& i = info(a);
  const double v = u.r.ledger[a].v;
  Derivation d = leaf(std::string(i.key), v, "s", std::string(i.help),
                      a == Account::kUseful ? 's' : 'c', account_page(a));
  if (v == 0) {
    d.equation += "; none in this step";
    return d;
  }
  if (const std::string how = account_equation(u, a); !how.empty()) d.equation += ": " + how;
  d.inputs = account_inputs(u, a);
  for (const OpRecord& op : u.ops) {
    if (op.kind != op_kind(a)) continue;
    d.inputs.push_back(leaf(op.layer + " layer " + op.kind, (op.forward + op.backward).v * 1e6,
                            "us",
                            fmt::format("{}: forward {:.0f} us, backward {:.0f} us, per layer and "
                                        "micro-batch",
                                        op.what, op.forward.v * 1e6, op.backward.v * 1e6),
                            'c', d.source));
  }
  return d;
}

// What makes the slow end of the step's range, where it is not the scatter of measured runs.
Derivation slow_end_figure(const Subject& u) {
  const Model& m = u.s.workload.model;
  const bool latent = m.kv_lora_rank > 0;
  Derivation d = leaf("slow end", u.r.high.v, "s",
                      "expert layers that wait for the host: layers of a stage x micro-batches x 2 "
                      "passes x each / speed of the host; plan.cuda_graphs=true takes it away",
                      'c', "docs/models/range.md");
  d.inputs = {
      given("host time of a layer and pass",
            (latent ? u.s.stack.expert_host_latent : u.s.stack.expert_host).v, "s",
            latent ? "stack.expert_host_latent" : "stack.expert_host"),
      leaf("expert layers of a stage", real(moe_layers(m)) / real(u.l.pp), "",
           "expert layers / stages", 's', "the plan"),
      count_of("micro-batches", u.l.microbatches),
      given("speed of the host", u.s.cluster.node.host_speed, "", "cluster.node.host_speed")};
  return d;
}

Derivation step_figure(const Subject& u) {
  Derivation d = leaf("step time", u.r.step.v, "s", "sum of the ledger's accounts", 'c',
                      "docs/models/step.md");
  Seconds small{0};
  for (int i = 0; i < kAccounts; ++i) {
    const Account a = static_cast<Account>(i);
    if (u.r.ledger[a].v <= 1e-4 * u.r.step.v) {
      small += u.r.ledger[a];
      continue;
    }
    Derivation part = account_figure(u, a);
    part.inputs.clear();
    d.inputs.push_back(std::move(part));
  }
  std::stable_sort(d.inputs.begin(), d.inputs.end(),
                   [](const Derivation& x, const Derivation& y) { return x.value > y.value; });
  if (small.v > 0)
    d.inputs.push_back(timed("other accounts", small, "each below a ten-thousandth"));
  if (u.r.experts_wait) d.inputs.push_back(slow_end_figure(u));
  return d;
}

Derivation mfu_figure(const Subject& u) {
  Derivation d =
      leaf("mfu", u.r.mfu * 100, "%",
           fmt::format("model flops per step / (step time x accelerators x peak) = {:.4g} / "
                       "({:.4g} s x {} x {:.4g} TFLOPS)",
                       u.r.model_flops.v, u.r.step.v, u.l.ranks,
                       peak(u.s.cluster.accelerator, u.p.precision).v / 1e12),
           'c', "docs/models/step.md");
  d.inputs = {flops_figure(u), peak_figure(u), step_figure(u)};
  return d;
}

Derivation tflops_figure(const Subject& u) {
  const double ranks = real(u.l.ranks);
  Derivation d =
      leaf("tflops", u.r.model_flops.v / u.r.step.v / ranks / 1e12, "TFLOPS",
           "model flops per step / (step time x accelerators)", 'c', "docs/models/step.md");
  d.inputs = {flops_figure(u), step_figure(u), count_of("accelerators", u.l.ranks)};
  return d;
}

Derivation power_figure(const Subject& u) {
  Derivation d =
      leaf("gpu_power", u.r.power.v, "W", "idle + (limit - idle) x mean draw of the step's kernels",
           'c', "docs/models/clocks.md");
  d.inputs = clock_inputs(u);
  return d;
}

}  // namespace

std::vector<std::string> Predictor::figures() {
  std::vector<std::string> out{"mfu",      "tflops", "step_time",   "tokens_per_s", "memory",
                               "headroom", "peak",   "model_flops", "gpu_power"};
  out.insert(out.end(), memory_figures().begin(), memory_figures().end());
  // Later accounts belong to whole runs.
  for (int i = 0; i < static_cast<int>(Account::kCheckpoint); ++i)
    out.emplace_back(info(static_cast<Account>(i)).key);
  return out;
}

Derivation Predictor::explain(const Plan& p, const std::string& figure) {
  const Prediction r = predict(p);
  const Setting& s = setting_for(p);
  Subject u{s, p, make_layout(s, p), r, links(), {}, {}, {}, {}};
  u.cost = microbatch_cost(u.s, p, u.l, links(), &u.ops);
  u.step = assemble_step(u.s, p, u.l, links(), u.cost, &u.wires);
  if (figure == "mfu") return mfu_figure(u);
  if (figure == "tflops") return tflops_figure(u);
  if (figure == "step_time") return step_figure(u);
  if (figure == "memory") return memory_figure(u);
  if (figure == "headroom") return headroom_figure(u);
  if (figure == "model_flops") return flops_figure(u);
  if (figure == "peak") return peak_figure(u);
  if (figure == "gpu_power") return power_figure(u);
  if (figure == "tokens_per_s") {
    Derivation d = leaf("tokens_per_s", r.tokens_per_s, "tokens/s", "tokens per step / step time",
                        'c', "docs/models/step.md");
    d.inputs = {count_of("sequence", u.s.workload.seq, "workload.seq"),
                count_of("batch", u.s.workload.global_batch, "workload.global_batch"),
                step_figure(u)};
    return d;
  }
  const std::vector<std::string>& memory = memory_figures();
  if (std::find(memory.begin(), memory.end(), figure) != memory.end())
    return memory_part(u, figure);
  for (int i = 0; i < kAccounts; ++i) {
    if (info(static_cast<Account>(i)).key == figure)
      return account_figure(u, static_cast<Account>(i));
  }
  return leaf(figure, 0, "", "no such figure", 'a', "");
}

}  // namespace assay
