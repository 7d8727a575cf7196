#include "diagnose/trace_causes.h"

#include "diagnose/step_view.h"

namespace assay {

TraceDiagnosis diagnose_trace(const Trace& trace, const TraceContext&) {
  TraceDiagnosis d;
  const StepView view = step_view(trace);
  d.whole = breakdown(trace);
  d.window = breakdown(trace, view.from_ns, view.to_ns);
  d.steps = view.steps;
  d.from_ns = view.from_ns;
  d.to_ns = view.to_ns;
  d.step_median = Seconds(static_cast<double>(view.to_ns - view.from_ns) * 1e-9);
  d.spread = Seconds(static_cast<double>(view.slowest_ns - view.fastest_ns) * 1e-9);
  return d;
}

}  // namespace assay
