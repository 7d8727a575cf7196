#include "report/explain_report.h"

#include <cmath>

#include <fmt/format.h>

#include "report/json.h"

namespace assay {
namespace {

constexpr int kBesideLeast = 44;  // columns for an equation and its source

// A derivation's value as people read it: times, bytes and shares in their usual units, anything
// else as a number with its unit.
std::string figure_text(const Derivation& d) {
  if (d.unit == "word") return d.equation;
  if (d.unit == "s" && d.value >= kSecondsPerHour) return duration(d.value);  // of a run
  if (d.unit == "s") return seconds(d.value);
  if (d.unit == "days") return duration(d.value * kSecondsPerDay);
  if (d.unit == "B" || d.unit == "bytes") return gibibytes(d.value);
  if (d.unit == "us") return seconds(d.value * 1e-6);
  if (d.unit == "B/s") return bandwidth(d.value);
  if (d.unit == "$") return dollars(d.value);
  if (d.unit == "$/h") return dollars(d.value) + "/h";
  if (d.unit == "kWh") return energy(d.value);
  if (d.unit == "%") return significant(d.value) + " %";
  const double size = std::abs(d.value);
  const bool exact = size < 1e7 && d.value == std::floor(d.value);  // a count is not rounded
  std::string number = exact ? count(static_cast<int64_t>(d.value)) : significant(d.value);
  if (size >= 1e7) number = fmt::format("{:.4g}", d.value);
  if (size > 0 && size < 1e-3) number = fmt::format("{:.3g}", d.value);
  return d.unit.empty() ? number : number + " " + d.unit;
}

// Its own range in the same unit; empty where it has none.
std::string own_range(const Derivation& d) {
  const Interval range{d.value, d.low, d.high};
  if (!(d.high > d.low)) return "";
  if (d.unit == "s") return seconds_range(range);
  if (d.unit == "B") return gibibytes_range(range);
  if (d.unit == "$") return dollars_range(range);
  if (d.unit == "kWh") return energy_range(range);
  if (d.unit != "days") return plain_range(range);
  const double day = kSecondsPerDay;
  return duration_range({day * d.value, day * d.low, day * d.high});
}

void print_tree(const Derivation& d, size_t depth, const Style& style, std::string& out) {
  const std::string indent(2 + 2 * depth, ' ');
  std::string line = indent + left(d.name, depth < 8 ? 28 - 2 * depth : 12) +
                     right(figure_text(d), 16) + "  " + d.mark;
  std::string rest;
  if (!d.equation.empty() && d.unit != "word") rest += "= " + d.equation;
  if (!d.source.empty()) rest += (rest.empty() ? "" : "   ") + d.source;
  // Beside the figure where there is room; below it on a narrow screen.
  const size_t beside = line.size() + 2;
  const bool room = static_cast<int>(beside) + kBesideLeast <= style.width;
  const size_t column = room ? beside : indent.size() + 4;
  if (!rest.empty()) {
    rest = wrap(rest, style.width - static_cast<int>(column), 0);
    line += room ? "  " + rest : "\n" + rest;
  }
  std::string padded;
  for (char c : line) {
    padded += c;
    if (c == '\n') padded += std::string(column, ' ');
  }
  out += padded + "\n";
  for (const Derivation& input : d.inputs) print_tree(input, depth + 1, style, out);
}

Json tree_json(const Derivation& d) {
  Json j;
  j["name"] = d.name;
  j["value"] = d.value;
  j["unit"] = d.unit;
  j["equation"] = d.equation;
  j["mark"] = std::string(1, d.mark);
  j["source"] = d.source;
  if (d.high > d.low) j["range"] = {d.low, d.high};
  Json inputs = Json::array();
  for (const Derivation& input : d.inputs) inputs.push_back(tree_json(input));
  j["inputs"] = std::move(inputs);
  return j;
}

}  // namespace

std::string explain_text(const Derivation& d, const std::string& figure, const std::string& range,
                         const Style& style, const Stamp& stamp) {
  std::string out = bold(fmt::format("{} = {}", figure, figure_text(d)), style);
  if (const std::string shown = range.empty() ? own_range(d) : range; !shown.empty())
    out += "  " + shown;
  out += fmt::format("   {}\n", d.mark);
  if (!d.equation.empty()) out += wrap("  = " + d.equation, style.width, 4) + "\n";
  if (!d.source.empty()) out += wrap("  from " + d.source, style.width, 4) + "\n";
  if (!d.inputs.empty()) out += "\n";
  for (const Derivation& input : d.inputs) print_tree(input, 0, style, out);
  if (!style.quiet) {
    out += fmt::format("\n{}\n{}\n", kMarks, footer(stamp));
  }
  return out;
}

std::string explain_json(const Derivation& d, const std::string& figure, const Stamp& stamp) {
  Json doc = start_document("assay.explain/1", stamp);
  doc["figure"] = figure;
  doc["derivation"] = tree_json(d);
  return print(doc);
}

}  // namespace assay
