#include "report/measured.h"

#include <fmt/format.h>

namespace assay {

std::string measured_text(const PlanResult& r, const Style& style) {
  if (!r.measured) return "";
  const MeasuredRun& m = *r.measured;
  const Prediction& p = r.prediction;
  std::string text =
      fmt::format("Row    {} ({}:{})", sanitize(m.id, 60), sanitize(m.file, 60), m.line);
  if (m.step_s > 0 && r.fits) {
    const bool inside = p.low.v <= m.step_s && m.step_s <= p.high.v;
    text += fmt::format(": measured {}, predicted {} ({}), {} its range", seconds(m.step_s),
                        seconds(p.step.v), signed_percent(p.step.v / m.step_s - 1),
                        inside ? "within" : "outside");
  }
  if (m.memory_gb > 0) {
    text += fmt::format("; peak memory {} GB, predicted {} GB", significant(m.memory_gb),
                        significant(m.predicted_memory_gb));
  }
  std::string out = wrap(text, style.width, 7) + "\n";
  std::vector<std::string> open;
  for (const Assumption& a : r.description.assumed) open.push_back(a.value);
  if (!open.empty())
    out += wrap(fmt::format("Taken  {}", fmt::join(open, "; ")), style.width, 7) + "\n";
  if (r.fits && !p.memory.fits()) {
    out += "\n" +
           warning(fmt::format("It ran, and is predicted to need {} of {}.",
                               gibibytes(p.memory.reserved.v), gibibytes(p.memory.capacity.v)),
                   style) +
           "\n\n";
  }
  return out;
}

Json measured_json(const MeasuredRun& m) {
  const auto stated = [](double v) { return v > 0 ? Json(v) : Json(nullptr); };
  return {{"id", m.id},
          {"file", m.file},
          {"line", m.line},
          {"step_s", stated(m.step_s)},
          {"memory_gb", stated(m.memory_gb)},
          {"predicted_memory_gb", stated(m.predicted_memory_gb)}};
}

}  // namespace assay
