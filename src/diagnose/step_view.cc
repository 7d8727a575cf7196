#include "diagnose/step_view.h"

#include <algorithm>

namespace assay {
namespace {

StepView whole_file(const Trace& trace) {
  StepView view;
  bool any = false;
  for (const DeviceEvent& e : trace.device) {
    if (e.duration_ns < 0) continue;
    const int64_t end = e.start_ns + e.duration_ns;
    view.from_ns = any ? std::min(view.from_ns, e.start_ns) : e.start_ns;
    view.to_ns = any ? std::max(view.to_ns, end) : end;
    any = true;
  }
  view.fastest_ns = view.slowest_ns = view.to_ns - view.from_ns;
  return view;
}

}  // namespace

StepView step_view(const Trace& trace) {
  std::vector<int32_t> steps;
  for (int32_t index : trace.steps) {
    if (trace.host[static_cast<size_t>(index)].duration_ns > 0) steps.push_back(index);
  }
  if (steps.empty()) return whole_file(trace);

  auto duration = [&](int32_t index) { return trace.host[static_cast<size_t>(index)].duration_ns; };
  std::stable_sort(steps.begin(), steps.end(),
                   [&](int32_t a, int32_t b) { return duration(a) < duration(b); });
  const HostEvent& median = trace.host[static_cast<size_t>(steps[(steps.size() - 1) / 2])];
  StepView view;
  view.steps = static_cast<int>(steps.size());
  view.from_ns = median.start_ns;
  view.to_ns = median.start_ns + median.duration_ns;
  view.fastest_ns = duration(steps.front());
  view.slowest_ns = duration(steps.back());
  return view;
}

}  // namespace assay
