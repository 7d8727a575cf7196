// Where a figure comes from: the prediction once more, with a recorder.
#include <algorithm>

#include <fmt/format.h>

#include "perf/layer.h"
#include "perf/memory.h"
#include "perf/predict.h"
#include "perf/step.h"
#include "world/model_size.h"

namespace assay {
namespace {

Derivation leaf(std::string name, double value, std::string unit, std::string equation, char mark,
                std::string source) {
  return {std::move(name),   value, std::move(unit), std::move(equation), mark,
          std::move(source), {}};
}

struct Subject {
  const Setting& s;
  const Plan& p;
  Layout l;
  const Prediction& r;
  std::vector<OpRecord> ops;
};

Derivation peak_figure(const Subject& u) {
  const Accelerator& a = u.s.cluster.accelerator;
  const auto name = enum_names(u.p.precision)[static_cast<size_t>(u.p.precision)];
  return leaf("peak", peak(a, u.p.precision).v / 1e12, "TFLOPS",
              fmt::format("{} {} dense", a.name, name), 's',
              fmt::format("catalog/accelerators.yaml: {}", a.name));
}

Derivation flops_figure(const Subject& u) {
  const Model& m = u.s.workload.model;
  const double tokens = static_cast<double>(u.s.workload.seq * u.s.workload.global_batch);
  Derivation d = leaf("model flops per step", u.r.model_flops.v, "FLOP",
                      fmt::format("{:.0f} tokens x {:.4g} FLOP per token", tokens,
                                  flops_per_token(m, u.s.workload.seq, u.s.workload.task)),
                      's', "6 x matmul parameters + causal attention; docs/models/flops.md");
  d.inputs.push_back(leaf("active parameters", active_parameters(m), "", m.name, 's',
                          fmt::format("catalog/models.yaml: {}", m.name)));
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
  switch (a) {
    case Account::kMatmul:
      return "matmul";
    case Account::kAttention:
      return "attention";
    case Account::kMemoryBound:
      return "memory";
    case Account::kCommTensor:
      return "tensor";
    case Account::kCommExpert:
      return "expert";
    default:
      return "";
  }
}

Derivation account_figure(const Subject& u, Account a) {
  const AccountInfo& i = info(a);
  const double v = u.r.ledger[a].v;
  Derivation d = leaf(std::string(i.key), v, "s", std::string(i.help), 'c', account_page(a));
  for (const OpRecord& op : u.ops) {
    if (op.kind != op_kind(a)) continue;
    d.inputs.push_back(leaf(op.layer + " layer " + op.kind, (op.forward + op.backward).v * 1e6,
                            "us",
                            fmt::format("{}: forward {:.3g} us, backward {:.3g} us, per layer and "
                                        "micro-batch",
                                        op.what, op.forward.v * 1e6, op.backward.v * 1e6),
                            'c', d.source));
  }
  return d;
}

Derivation step_figure(const Subject& u) {
  Derivation d =
      leaf("step", u.r.step.v, "s", "sum of the ledger's accounts", 'c', "docs/models/step.md");
  for (int i = 0; i < kAccounts; ++i) {
    const Account a = static_cast<Account>(i);
    if (u.r.ledger[a].v <= 1e-4 * u.r.step.v) continue;
    Derivation part = account_figure(u, a);
    part.inputs.clear();
    d.inputs.push_back(std::move(part));
  }
  std::stable_sort(d.inputs.begin(), d.inputs.end(),
                   [](const Derivation& x, const Derivation& y) { return x.value > y.value; });
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

Derivation memory_figure(const Subject& u) {
  const MemoryUse& m = u.r.memory;
  Derivation d = leaf("memory", m.allocated.v / 1e9, "GB",
                      fmt::format("worst rank, stage {} of {}; reserved {:.3g} of {:.3g} GB usable",
                                  m.stage + 1, u.l.pp, m.reserved.v / 1e9, m.capacity.v / 1e9),
                      'c', "docs/models/memory.md");
  const auto part = [&](const char* name, Bytes b, const std::string& eq) {
    d.inputs.push_back(leaf(name, b.v / 1e9, "GB", eq, 'c', d.source));
  };
  const Stack& st = u.s.stack;
  part("weights", m.weights, fmt::format("{} bytes per parameter", st.weight_bytes));
  part("gradients", m.gradients, fmt::format("{} bytes per parameter", st.gradient_bytes));
  part("optimizer", m.optimizer,
       fmt::format("{} bytes per parameter over {} ranks", st.optimizer_bytes, u.l.shard));
  part("activations", m.activations,
       fmt::format("micro-batch {}, {} in flight at most", u.p.micro_batch, u.l.pp));
  part("buffers", m.buffers, "gathered layers");
  part("framework", m.framework, "workspaces and communication buffers");
  return d;
}

}  // namespace

std::vector<std::string> Predictor::figures() {
  std::vector<std::string> out{"mfu",         "step", "tokens_per_s", "memory",
                               "model_flops", "peak", "power"};
  for (int i = 0; i < kAccounts; ++i) out.emplace_back(info(static_cast<Account>(i)).key);
  return out;
}

Derivation Predictor::explain(const Plan& p, const std::string& figure) {
  const Prediction r = predict(p);
  Subject u{setting(), p, make_layout(setting(), p), r, {}};
  microbatch_cost(u.s, p, u.l, links(), &u.ops);
  if (figure == "mfu") return mfu_figure(u);
  if (figure == "step") return step_figure(u);
  if (figure == "memory") return memory_figure(u);
  if (figure == "model_flops") return flops_figure(u);
  if (figure == "peak") return peak_figure(u);
  if (figure == "tokens_per_s") {
    Derivation d = leaf("tokens_per_s", r.tokens_per_s, "tokens/s", "tokens per step / step time",
                        'c', "docs/models/step.md");
    d.inputs = {step_figure(u)};
    return d;
  }
  if (figure == "power") {
    return leaf("power", r.power.v, "W", "idle + (limit - idle) x mean draw of the step's kernels",
                'c', "docs/models/clocks.md");
  }
  for (int i = 0; i < kAccounts; ++i) {
    if (info(static_cast<Account>(i)).key == figure)
      return account_figure(u, static_cast<Account>(i));
  }
  return leaf(figure, 0, "", "no such figure", 'a', "");
}

}  // namespace assay
