#include "cli/gate.h"

#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "base/diagnostic.h"
#include "base/text.h"

namespace assay {
namespace {

struct Figure {
  std::string_view name;
  std::optional<double> (*value)(const GateFigures&);
};

constexpr std::array<Figure, 11> kFigures{{
    {"mfu", [](const GateFigures& f) { return std::optional(f.mfu); }},
    {"step_time", [](const GateFigures& f) { return std::optional(f.step_time); }},
    {"tokens_per_s", [](const GateFigures& f) { return std::optional(f.tokens_per_s); }},
    {"days", [](const GateFigures& f) { return f.days; }},
    {"gpu_hours", [](const GateFigures& f) { return f.gpu_hours; }},
    {"cost", [](const GateFigures& f) { return f.cost; }},
    {"energy", [](const GateFigures& f) { return f.energy; }},
    {"memory", [](const GateFigures& f) { return std::optional(f.memory); }},
    {"goodput", [](const GateFigures& f) { return f.goodput; }},
    {"days_with_failures", [](const GateFigures& f) { return f.days_with_failures; }},
    {"cost_with_failures", [](const GateFigures& f) { return f.cost_with_failures; }},
}};

}  // namespace

const std::vector<std::string>& gate_figure_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Figure& f : kFigures) all.push_back(std::string(f.name));
    return all;
  }();
  return names;
}

GateFigures gate_figures(const Prediction& p, const RunFigures& r, const PlanOutlook& outlook) {
  GateFigures f{p.mfu, p.step.v, p.tokens_per_s, p.memory.reserved / kGiB, {}, {}, {}, {}, {},
                {},    {}};
  f.days = r.time_s.value / kSecondsPerDay;
  f.gpu_hours = r.accelerator_hours.value;
  f.energy = r.energy_kwh.value;
  if (r.price_known) f.cost = r.cost_usd.value;
  if (!outlook.best) return f;
  const Outlook& o = *outlook.best;
  f.goodput = o.expected.goodput;
  f.days_with_failures = o.expected.time.v / kSecondsPerDay;  // infinite where it never ends
  if (o.usd > 0) f.cost_with_failures = o.usd;
  return f;
}

GateFigures gate_figures(const SimulateResult& r) {
  GateFigures f = gate_figures(r.plan.prediction, r.plan.run, {});
  f.goodput = r.many.goodput.mean;
  f.days = f.days_with_failures = r.many.period.mean / kSecondsPerDay;
  f.gpu_hours = r.many.paid.mean / kSecondsPerHour;
  f.energy = run_energy(r).kwh;
  f.cost.reset();
  if (r.money.usd_per_gpu_hour > 0) f.cost = *f.gpu_hours * r.money.usd_per_gpu_hour;
  f.cost_with_failures = f.cost;
  return f;
}

tl::expected<Gate, std::string> parse_gate(const std::string& text) {
  Gate g;
  g.text = std::string(trimmed(text));
  const size_t sign = text.find_first_of("<>");
  if (sign == std::string::npos)
    return tl::unexpected(std::string("write FIGURE < NUMBER or FIGURE > NUMBER"));
  g.figure = trimmed(std::string_view(text).substr(0, sign));
  g.below = text[sign] == '<';
  g.or_equal = sign + 1 < text.size() && text[sign + 1] == '=';
  std::string number(trimmed(std::string_view(text).substr(sign + (g.or_equal ? 2 : 1))));
  const bool percent = number.ends_with('%');
  if (percent) number = trimmed(std::string_view(number).substr(0, number.size() - 1));
  const std::vector<std::string>& names = gate_figure_names();
  bool known = false;
  for (const std::string& name : names) known |= name == g.figure;
  if (!known) {
    const std::string near = nearest(g.figure, names);
    return tl::unexpected(near.empty() ? fmt::format("figures are {}", fmt::join(names, ", "))
                                       : fmt::format("did you mean `{}`?", near));
  }
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), g.limit);
  if (error != std::errc() || end != number.data() + number.size() || !std::isfinite(g.limit)) {
    return tl::unexpected(fmt::format("`{}` is not a number", sanitize(number, 40)));
  }
  const bool share = g.figure == "mfu" || g.figure == "goodput";
  if (percent && !share) return tl::unexpected(fmt::format("{} is no share of one", g.figure));
  if (percent) g.limit /= 100;
  if (share && std::abs(g.limit) > 1) {
    return tl::unexpected(fmt::format("{} is a share of one: write {:g} or {:g} %", g.figure,
                                      g.limit / 100, g.limit));
  }
  return g;
}

std::optional<std::string> tripped(const Gate& g, const GateFigures& figures) {
  for (const Figure& f : kFigures) {
    if (f.name != g.figure) continue;
    const std::optional<double> value = f.value(figures);
    if (!value) return fmt::format("{}: {} is not known here", g.text, g.figure);
    const bool beyond = g.below ? *value < g.limit : *value > g.limit;
    if (!beyond && !(g.or_equal && *value == g.limit)) return {};
    return fmt::format("{}: it is {:.4g}", g.text, *value);
  }
  return {};
}

}  // namespace assay
