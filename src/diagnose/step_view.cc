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

std::vector<int64_t> launch_times(const Trace& trace) {
  std::vector<int64_t> times;
  for (const DeviceEvent& e : trace.device) {
    if (e.launch < 0) continue;
    times.push_back(trace.runtime[static_cast<size_t>(e.launch)].start_ns);
  }
  std::sort(times.begin(), times.end());
  return times;
}

}  // namespace

StepView step_view(const Trace& trace) {
  std::vector<int32_t> steps, recorded;
  const std::vector<int64_t> launches = launch_times(trace);
  const int64_t first = trace.device.empty() ? INT64_MIN : trace.device.front().start_ns;
  for (int32_t index : trace.steps) {
    const HostEvent& step = trace.host[static_cast<size_t>(index)];
    if (step.duration_ns <= 0) continue;
    const auto launch = std::lower_bound(launches.begin(), launches.end(), step.start_ns);
    if (launch == launches.end() || *launch >= step.start_ns + step.duration_ns) continue;
    steps.push_back(index);
    if (step.start_ns >= first) recorded.push_back(index);
  }
  if (steps.empty()) return whole_file(trace);
  const int all = static_cast<int>(steps.size());
  if (!recorded.empty()) steps = std::move(recorded);

  auto duration = [&](int32_t index) { return trace.host[static_cast<size_t>(index)].duration_ns; };
  std::stable_sort(steps.begin(), steps.end(),
                   [&](int32_t a, int32_t b) { return duration(a) < duration(b); });
  const HostEvent& median = trace.host[static_cast<size_t>(steps[(steps.size() - 1) / 2])];
  StepView view;
  view.steps = all;
  view.from_ns = median.start_ns;
  view.to_ns = median.start_ns + median.duration_ns;
  view.fastest_ns = duration(steps.front());
  view.slowest_ns = duration(steps.back());
  return view;
}

}  // namespace assay
