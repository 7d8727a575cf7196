// What is trained, on what, and what limits it: lines that several screens share.
#include <algorithm>

#include <fmt/format.h>

#include "report/plan_report.h"

namespace assay {
namespace {

constexpr double kLimitShareLeast = 0.01;  // what takes less limits nothing

std::string task_name(const Workload& w) {
  const std::string with = w.optimizer == Optimizer::kMuon ? " with Muon" : "";
  switch (w.task) {
    case Task::kPretrain:
      return "pretraining" + with;
    case Task::kSft:
      return "fine-tuning" + with;
    case Task::kLora:
      return "LoRA fine-tuning";
  }
  return "";
}

}  // namespace

std::string workload_line(const Setting& s) {
  const Workload& w = s.workload;
  const std::string& name = w.model.name.empty() ? w.name : w.model.name;
  const RunFigures run = run_figures(s, Prediction{});
  if (w.model.kind == ModelKind::kDlrm) {
    return fmt::format("{}, batch {}, {} samples", name, count(w.global_batch), scaled(run.tokens));
  }
  const double per_step = static_cast<double>(w.global_batch) * static_cast<double>(w.seq);
  const std::string packed =
      attended(w) < w.seq ? fmt::format(" of documents of {}", attended(w)) : "";
  return fmt::format("{} {}, {} tokens, seq {}{}, batch {} ({} tokens per step)", name,
                     task_name(w), scaled(run.tokens), w.seq, packed, count(w.global_batch),
                     scaled(per_step));
}

std::string cluster_line(const Setting& s) {
  const Cluster& c = s.cluster;
  const int64_t used = accelerators_used(s);
  std::string text = fmt::format("{}: ", c.name.empty() ? c.node.name : c.name);
  const int64_t nodes = (used + c.node.accelerators - 1) / c.node.accelerators;
  if (used % c.node.accelerators == 0) {
    text += fmt::format("{} {} x {} {}", count(nodes), nodes == 1 ? "node" : "nodes",
                        c.node.accelerators, c.accelerator.name);
  } else {
    text += fmt::format("{} {}", count(used), c.accelerator.name);
  }
  if (used < c.accelerators()) text += fmt::format(" (of {})", count(c.accelerators()));
  if (c.accelerator.scaleup_bandwidth.v > 0 && c.node.accelerators > 1) {
    text += fmt::format(
        ", {} {}", c.accelerator.scaleup_link.empty() ? "scale-up" : c.accelerator.scaleup_link,
        bandwidth(c.accelerator.scaleup_bandwidth.v));
  }
  if (nodes > 1 && c.node.nics > 0) {
    text += fmt::format(", {} x {:.0f}G {}", c.node.nics, c.node.nic_bandwidth.v * 8e-9,
                        enum_names(c.fabric.kind)[static_cast<size_t>(c.fabric.kind)]);
    text += fmt::format(", {:g}:1", c.fabric.oversubscription);
    if (c.slow_links() > 0) {
      text += fmt::format(", {:.3g} % of links at {:.3g} % of their speed",
                          100 * c.fabric.degraded_links, 100 * c.fabric.degraded_speed);
    }
  }
  return text;
}

std::string together_note(const Attribution& a) {
  const bool any = std::any_of(a.changes.begin(), a.changes.end(),
                               [](const Change& c) { return !c.with.empty(); });
  if (!any) return "";
  return "  + goes with the line above: one alone is no machine, or does not fit in memory\n";
}

std::string limit_sentence(const Prediction& p) {
  double compute = p.ledger[Account::kUseful] / p.step;
  for (int i = 1; i < kAccounts; ++i) {
    const Account a = static_cast<Account>(i);
    if (info(a).group == "kernels" || info(a).group == "clocks") compute += p.ledger[a] / p.step;
  }
  const Account largest = largest_loss(p.ledger);
  const double share = p.ledger[largest] / p.step;
  if (share < kLimitShareLeast) return "Compute-bound.";
  const std::string limit = fmt::format("{} ({})", account_phrase(largest), percent(share));
  const bool worked = p.ledger[Account::kUseful] / p.step >= share;  // more than the largest loss
  if (compute >= 0.7 && worked) return fmt::format("Compute-bound; next limit: {}.", limit);
  return fmt::format("Held back by {}.", limit);
}

}  // namespace assay
