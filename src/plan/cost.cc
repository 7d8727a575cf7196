#include "plan/cost.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/assert.h"

namespace assay {
namespace {

constexpr double kTokensPerParameter = 20;  // Hoffmann et al. 2022, arXiv:2203.15556

double tokens_of(const Workload& w) {
  return w.tokens > 0 ? w.tokens : kTokensPerParameter * active_parameters(w.model);
}

double nodes_used(const Setting& s) {
  const int64_t per_node = std::max<int64_t>(s.cluster.node.accelerators, 1);
  return static_cast<double>((accelerators_used(s) + per_node - 1) / per_node);
}

Interval scale(const Interval& r, double by) { return {r.value * by, r.low * by, r.high * by}; }

bool is_assumed(const Description& d, const std::string& path) {
  return std::any_of(d.assumed.begin(), d.assumed.end(),
                     [&path](const Assumption& a) { return a.path == path; });
}

Derivation leaf(std::string name, double value, std::string unit, char mark, std::string source) {
  Derivation d;
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

RunFigures run_figures(const Setting& s, const Prediction& p) {
  RunFigures r;
  const double n = static_cast<double>(accelerators_used(s));
  r.tokens = tokens_of(s.workload);
  r.steps = r.tokens / tokens_per_step(s.workload);
  r.time_s = scale({p.step.v, p.low.v, p.high.v}, r.steps);
  r.accelerator_hours = scale(r.time_s, n / kSecondsPerHour);
  r.price_stated = s.cluster.price.v > 0;
  const DollarRate price = r.price_stated ? s.cluster.price : s.cluster.accelerator.price;
  r.price_known = price.v > 0;
  r.price_per_hour = price.v * kSecondsPerHour;
  r.cost_usd = scale(r.time_s, n * price.v);
  const Watts it = p.power * n + s.cluster.node.host_power * nodes_used(s);
  r.power_w = it.v * s.cluster.pue;
  r.energy_kwh = scale(r.time_s, r.power_w / 1000 / kSecondsPerHour);
  return r;
}

RunFigures run_figures(const Description& d, const Prediction& p) {
  RunFigures r = run_figures(d.setting, p);
  r.price_stated = r.price_stated && !is_assumed(d, "cluster.price");
  return r;
}

const std::vector<std::string>& run_figure_names() {
  static const std::vector<std::string> names{"days", "gpu_hours", "cost", "energy"};
  return names;
}

Derivation explain_run(const Description& d, const Prediction& p, const std::string& figure,
                       Derivation step) {
  const Setting& s = d.setting;
  const RunFigures r = run_figures(d, p);
  const double n = static_cast<double>(accelerators_used(s));
  const bool tokens_assumed = s.workload.tokens <= 0 || is_assumed(d, "workload.tokens");
  Derivation days = leaf("days", r.time_s.value / kSecondsPerDay, "days", 'c', "");
  days.equation = "tokens / tokens per step x step time";
  days.inputs.push_back(
      leaf("tokens", r.tokens, "tokens", tokens_assumed ? 'a' : 's',
           tokens_assumed ? "20 per active parameter, arXiv:2203.15556" : "workload.tokens"));
  days.inputs.push_back(leaf("tokens per step", tokens_per_step(s.workload), "tokens", 's',
                             "workload.global_batch x workload.seq"));
  days.inputs.push_back(std::move(step));
  if (figure == "days") return days;

  Derivation hours = leaf("GPU-hours", r.accelerator_hours.value, "h", 'c', "");
  hours.equation = "accelerators x time";
  hours.inputs.push_back(leaf("accelerators", n, "", 's', "the job's share of the cluster"));
  hours.inputs.push_back(days);
  if (figure == "gpu_hours") return hours;

  if (figure == "cost") {
    Derivation cost = leaf("cost", r.cost_usd.value, "$", r.price_stated ? 'c' : 'a', "");
    cost.equation = "GPU-hours x price";
    cost.inputs.push_back(
        leaf("price", r.price_per_hour, "$/h", r.price_stated ? 's' : 'a',
             r.price_stated ? "cluster.price" : "catalog price of the accelerator"));
    cost.inputs.push_back(std::move(hours));
    return cost;
  }
  ASSERT(figure == "energy");
  Derivation energy_use = leaf("energy", r.energy_kwh.value, "kWh", 'c', "");
  energy_use.equation = "(accelerators x power + nodes x host power) x PUE x time";
  energy_use.inputs.push_back(
      leaf("power of one accelerator", p.power.v, "W", 'c', "mean over a step"));
  energy_use.inputs.push_back(leaf("accelerators", n, "", 's', "the job's share of the cluster"));
  energy_use.inputs.push_back(leaf("host power of a node", s.cluster.node.host_power.v, "W", 's',
                                   "cluster.node.host_power"));
  energy_use.inputs.push_back(leaf("nodes", nodes_used(s), "", 's', ""));
  energy_use.inputs.push_back(
      leaf("PUE", s.cluster.pue, "", is_assumed(d, "cluster.pue") ? 'a' : 's', "cluster.pue"));
  energy_use.inputs.push_back(std::move(days));
  return energy_use;
}

}  // namespace assay
