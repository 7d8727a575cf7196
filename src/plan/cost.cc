#include "plan/cost.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/assert.h"
#include "world/node_power.h"

namespace assay {
namespace {

constexpr double kTokensPerParameter = 20;  // Hoffmann et al. 2022, arXiv:2203.15556

double tokens_of(const Workload& w) {
  return w.tokens > 0 ? w.tokens : kTokensPerParameter * active_parameters(w.model);
}

// Nodes that the job pays for: the rest of one that it shares is somebody else's, as in the price.
double nodes_used(const Setting& s) {
  const auto per_node = static_cast<double>(std::max<int64_t>(s.cluster.node.accelerators, 1));
  return static_cast<double>(accelerators_used(s)) / per_node;
}

Interval scale(const Interval& r, double by) { return {r.value * by, r.low * by, r.high * by}; }

bool is_assumed(const Description& d, const std::string& path) {
  return std::any_of(d.assumed.begin(), d.assumed.end(),
                     [&path](const Assumption& a) { return a.path == path; });
}

// With a path, mark and source are those of the setting's origin, where it is known.
Derivation leaf(std::string name, double value, std::string unit, char mark, std::string source,
                std::string path = "") {
  Derivation d;
  d.path = std::move(path);
  d.name = std::move(name);
  d.value = value;
  d.unit = std::move(unit);
  d.mark = mark;
  d.source = std::move(source);
  return d;
}

}  // namespace

int64_t accelerators_used(const Setting& s) {
  return s.accelerators > 0 ? s.accelerators : s.cluster.accelerators();
}

double tokens_per_step(const Workload& w) {
  return static_cast<double>(std::max<int64_t>(w.global_batch, 1)) *
         static_cast<double>(std::max<int64_t>(w.seq, 1));
}

Interval mfu_range(const Prediction& p) {
  return {p.mfu, p.mfu * (p.step / p.high), p.mfu * (p.step / p.low)};
}

Interval tokens_range(const Prediction& p) {
  return {p.tokens_per_s, p.tokens_per_s * (p.step / p.high), p.tokens_per_s * (p.step / p.low)};
}

Interval memory_range(const MemoryUse& m) {
  return {m.reserved.v, m.reserved.v / (1 + MemoryUse::kError90),
          m.reserved.v / (1 - MemoryUse::kError90)};
}

RunFigures run_figures(const Setting& s, const Prediction& p) {
  RunFigures r;
  const double n = static_cast<double>(accelerators_used(s));
  r.tokens = tokens_of(s.workload);
  r.steps = std::max(1.0, r.tokens / tokens_per_step(s.workload));  // none trains less than one
  r.time_s = scale({p.step.v, p.low.v, p.high.v}, r.steps);
  r.accelerator_hours = scale(r.time_s, n / kSecondsPerHour);
  r.price_stated = s.cluster.price.v > 0;
  const DollarRate price = r.price_stated ? s.cluster.price : s.cluster.accelerator.price;
  r.price_known = price.v > 0;
  r.price_per_hour = price.v * kSecondsPerHour;
  r.cost_usd = scale(r.time_s, n * price.v);
  const Watts it = node_power(s.cluster, p.power).training * nodes_used(s);
  r.power_w = it.v * s.cluster.pue;
  r.energy_kwh = scale(r.time_s, r.power_w / 1000 / kSecondsPerHour);
  return r;
}

RunFigures run_figures(const Description& d, const Prediction& p) {
  RunFigures r = run_figures(d.setting, p);
  r.price_stated = r.price_stated && !is_assumed(d, "cluster.price");
  return r;
}

char cost_mark(const RunFigures& r) { return r.price_stated ? kPredicted : 'a'; }

char setting_mark(const Description& d, const std::string& path) {
  const auto found = d.origins.find(path);
  return found == d.origins.end() || is_assumed(d, path) ? 'a' : found->second.mark;
}

const std::vector<std::string>& run_figure_names() {
  static const std::vector<std::string> names{
      "days", "gpu_hours", "cost", "price", "energy",         "power",
      "pue",  "tokens",    "seq",  "batch", "tokens_per_step"};
  return names;
}

namespace {

Derivation tokens_figure(const Description& d, const RunFigures& r) {
  const Workload& w = d.setting.workload;
  const bool assumed = w.tokens <= 0 || is_assumed(d, "workload.tokens");
  return leaf("tokens", r.tokens, "tokens", assumed ? 'a' : 's',
              assumed ? "20 per active parameter, arXiv:2203.15556" : "workload.tokens");
}

Derivation batch_figure(const Workload& w) {
  return leaf("batch", static_cast<double>(w.global_batch), "", 'a', "workload.global_batch",
              "workload.global_batch");
}

Derivation sequence_figure(const Workload& w) {
  return leaf("sequence", static_cast<double>(w.seq), "", 'a', "workload.seq", "workload.seq");
}

Derivation tokens_per_step_figure(const Description& d) {
  const Workload& w = d.setting.workload;
  const bool assumed = is_assumed(d, "workload.global_batch") || is_assumed(d, "workload.seq");
  Derivation per_step =
      leaf("tokens per step", tokens_per_step(w), "tokens", assumed ? 'a' : 's', "");
  per_step.equation = "batch x sequence";
  per_step.inputs = {batch_figure(w), sequence_figure(w)};
  return per_step;
}

Derivation days_figure(const Description& d, const RunFigures& r, Derivation step) {
  Derivation days = leaf("days", r.time_s.value / kSecondsPerDay, "days", 'c', "");
  days.equation = r.steps > 1 ? "tokens / tokens per step x step time"
                              : "one step: the tokens are less than one step's";
  days.inputs = {tokens_figure(d, r), tokens_per_step_figure(d), std::move(step)};
  return days;
}

Derivation price_figure(const RunFigures& r) {
  return leaf("price", r.price_per_hour, "$/h", r.price_stated ? 's' : 'a',
              r.price_stated ? "cluster.price" : "catalog price of the accelerator",
              "cluster.price");
}

// At the meter: the whole job, facility included.
Derivation power_figure(const Description& d, const Prediction& p, const RunFigures& r) {
  const Setting& s = d.setting;
  Derivation power = leaf("power", r.power_w / 1000, "kW", 'c', "docs/models/power-and-cooling.md");
  power.equation = "nodes x (accelerators of a node x power + host power) x PUE";
  const NodePower node = node_power(s.cluster, p.power);
  const auto each = static_cast<double>(s.cluster.node.accelerators);
  power.inputs = {leaf("power of one accelerator", p.power.v, "W", 'c', "mean over a step"),
                  leaf("accelerators of a node", each, "", 's', ""),
                  leaf("host power of a node", s.cluster.node.host_power.v, "W", 'a', "",
                       "cluster.node.host_power")};
  if (node.training == node.nameplate) {
    power.equation = "nodes x nameplate x PUE: a node draws no more than its nameplate";
    power.inputs.push_back(
        leaf("nameplate of a node", node.nameplate.v, "W", 'a', "", "cluster.node.nameplate"));
  }
  power.inputs.push_back(leaf("nodes", nodes_used(s), "", 's', "the job's share of the cluster"));
  power.inputs.push_back(leaf("PUE", s.cluster.pue, "", 'a', "cluster.pue", "cluster.pue"));
  return power;
}

}  // namespace

Derivation explain_run(const Description& d, const Prediction& p, const std::string& figure,
                       Derivation step) {
  const Setting& s = d.setting;
  const RunFigures r = run_figures(d, p);
  if (figure == "price") return price_figure(r);
  if (figure == "power") return power_figure(d, p, r);
  if (figure == "tokens") return tokens_figure(d, r);
  if (figure == "seq") return sequence_figure(s.workload);
  if (figure == "batch") return batch_figure(s.workload);
  if (figure == "tokens_per_step") return tokens_per_step_figure(d);
  if (figure == "pue") return leaf("PUE", s.cluster.pue, "", 'a', "cluster.pue", "cluster.pue");
  Derivation days = days_figure(d, r, std::move(step));
  if (figure == "days") return days;

  if (figure == "energy") {
    Derivation use = leaf("energy", r.energy_kwh.value, "kWh", 'c', "docs/models/economics.md");
    use.equation = "power x time";
    use.inputs = {power_figure(d, p, r), std::move(days)};
    return use;
  }
  Derivation hours = leaf("GPU-hours", r.accelerator_hours.value, "h", 'c', "");
  hours.equation = "accelerators x time";
  hours.inputs = {leaf("accelerators", static_cast<double>(accelerators_used(s)), "", 's',
                       "the job's share of the cluster"),
                  std::move(days)};
  if (figure == "gpu_hours") return hours;

  ASSERT(figure == "cost");
  Derivation cost = leaf("cost", r.cost_usd.value, "$", cost_mark(r), "");
  cost.equation = "GPU-hours x price";
  cost.inputs = {price_figure(r), std::move(hours)};
  return cost;
}

}  // namespace assay
