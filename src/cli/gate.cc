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
  double (*value)(const Prediction&, const RunFigures&);
};

constexpr std::array<Figure, 8> kFigures{{
    {"mfu", [](const Prediction& p, const RunFigures&) { return p.mfu; }},
    {"step_time", [](const Prediction& p, const RunFigures&) { return p.step.v; }},
    {"tokens_per_s", [](const Prediction& p, const RunFigures&) { return p.tokens_per_s; }},
    {"days",
     [](const Prediction&, const RunFigures& r) { return r.time_s.value / kSecondsPerDay; }},
    {"gpu_hours", [](const Prediction&, const RunFigures& r) { return r.accelerator_hours.value; }},
    {"cost", [](const Prediction&, const RunFigures& r) { return r.cost_usd.value; }},
    {"energy", [](const Prediction&, const RunFigures& r) { return r.energy_kwh.value; }},
    {"memory", [](const Prediction& p, const RunFigures&) { return p.memory.reserved.v / 1e9; }},
}};

}  // namespace

tl::expected<Gate, std::string> parse_gate(const std::string& text) {
  Gate g;
  g.text = std::string(trimmed(text));
  const size_t sign = text.find_first_of("<>");
  if (sign == std::string::npos)
    return tl::unexpected(std::string("write FIGURE < NUMBER or FIGURE > NUMBER"));
  g.figure = trimmed(std::string_view(text).substr(0, sign));
  g.below = text[sign] == '<';
  g.or_equal = sign + 1 < text.size() && text[sign + 1] == '=';
  const std::string number(trimmed(std::string_view(text).substr(sign + (g.or_equal ? 2 : 1))));
  std::vector<std::string> names;
  for (const Figure& f : kFigures) names.push_back(std::string(f.name));
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
  return g;
}

bool tripped(const Gate& g, const Prediction& p, const RunFigures& r) {
  for (const Figure& f : kFigures) {
    if (f.name != g.figure) continue;
    const double value = f.value(p, r);
    if (g.or_equal && value == g.limit) return true;
    return g.below ? value < g.limit : value > g.limit;
  }
  return false;
}

}  // namespace assay
