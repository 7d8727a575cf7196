#include "diagnose/step_view.h"

#include <algorithm>

namespace assay {
namespace {

// The device sets the pace when its period is longer than the host's by more than they scatter.
constexpr double kLag = 1.05;
// A longer step than an hour is some profiler's mistake, and means over it say nothing.
constexpr int64_t kLongestStep = 3'600'000'000'000;

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
  view.host_from_ns = view.from_ns;
  view.host_to_ns = view.to_ns;
  return view;
}

struct Launch {
  int64_t at_ns, start_ns;  // of the call, and of its work
};

std::vector<Launch> launches_of(const Trace& trace) {
  std::vector<Launch> launches;
  for (const DeviceEvent& e : trace.device) {
    if (e.launch < 0) continue;
    launches.push_back({trace.runtime[static_cast<size_t>(e.launch)].start_ns, e.start_ns});
  }
  std::stable_sort(launches.begin(), launches.end(),
                   [](const Launch& a, const Launch& b) { return a.at_ns < b.at_ns; });
  return launches;
}

struct Step {
  int64_t host_from_ns, host_to_ns;
  int64_t from_ns, to_ns;
  int64_t length_ns() const { return to_ns - from_ns; }
};

const Step& median_step(std::vector<Step>& steps) {
  std::stable_sort(steps.begin(), steps.end(),
                   [](const Step& a, const Step& b) { return a.length_ns() < b.length_ns(); });
  return steps[(steps.size() - 1) / 2];
}

double mean_length(const std::vector<Step>& steps) {
  double sum = 0;
  for (const Step& s : steps) sum += static_cast<double>(s.length_ns());
  return steps.empty() ? 0 : sum / static_cast<double>(steps.size());
}

StepView view_of(std::vector<Step> steps, int all, bool device_paced) {
  const Step median = median_step(steps);
  StepView view;
  view.steps = all;
  view.from_ns = median.from_ns;
  view.to_ns = median.to_ns;
  view.host_from_ns = median.host_from_ns;
  view.host_to_ns = median.host_to_ns;
  view.fastest_ns = steps.front().length_ns();
  view.slowest_ns = steps.back().length_ns();
  view.device_paced = device_paced;
  const bool even =
      static_cast<double>(view.slowest_ns) < kUneven * static_cast<double>(view.fastest_ns);
  if (even || view.slowest_ns > kLongestStep) return view;
  const size_t stride = (steps.size() + kStepsBooked - 1) / kStepsBooked;
  for (size_t i = 0; i < steps.size(); i += stride) {
    const Step& s = steps[i];
    view.uneven.push_back({s.from_ns, s.to_ns, s.host_from_ns, s.host_to_ns});
  }
  return view;
}

}  // namespace

StepView step_view(const Trace& trace) {
  const std::vector<Launch> launches = launches_of(trace);
  std::vector<Step> steps, paced;
  std::vector<int64_t> begins;  // of each step's first work
  for (int32_t index : trace.steps) {
    const HostEvent& step = trace.host[static_cast<size_t>(index)];
    const int64_t to = step.start_ns + step.duration_ns;
    if (step.duration_ns <= 0) continue;
    const auto first = std::lower_bound(launches.begin(), launches.end(), step.start_ns,
                                        [](const Launch& l, int64_t at) { return l.at_ns < at; });
    if (first == launches.end() || first->at_ns >= to) continue;
    if (!steps.empty() && first->start_ns > begins.back()) {
      const Step& before = steps.back();
      paced.push_back({before.host_from_ns, before.host_to_ns, begins.back(), first->start_ns});
    }
    steps.push_back({step.start_ns, to, step.start_ns, to});
    begins.push_back(first->start_ns);
  }
  if (steps.empty()) return whole_file(trace);
  const int all = static_cast<int>(steps.size());
  std::vector<Step> recorded;
  for (const Step& s : steps) {
    if (s.from_ns >= trace.device.front().start_ns) recorded.push_back(s);
  }
  if (!recorded.empty()) steps = std::move(recorded);
  const double host_mean = mean_length(steps), device_mean = mean_length(paced);
  const StepView host = view_of(std::move(steps), all, false);
  return device_mean > kLag * host_mean ? view_of(std::move(paced), all, true) : host;
}

}  // namespace assay
