#include "diagnose/infer_steps.h"

#include <algorithm>

#include "diagnose/kernel_table.h"

namespace assay {
namespace {

// Two networks that train against one another update twice a step, and so on up to this many.
constexpr size_t kUpdatesMost = 4;
// Kernels of one update follow one another; with this many others between them they are of two.
constexpr size_t kBetweenUpdates = 20;

struct UpdateEnd {
  int64_t at_ns;
  int32_t thread;
};

// By the annotation that PyTorch's optimizers make themselves.
std::vector<UpdateEnd> annotated_updates(const Trace& t) {
  constexpr std::string_view kUpdate = "Optimizer.step#";
  std::vector<UpdateEnd> out;
  for (const HostEvent& e : t.host) {
    if (e.kind != HostKind::kAnnotation || e.duration_ns <= 0) continue;
    if (t.text(e.name).substr(0, kUpdate.size()) != kUpdate) continue;
    out.push_back({e.start_ns + e.duration_ns, e.thread});
  }
  return out;
}

const RuntimeEvent& launch_of(const Trace& t, int32_t event) {
  return t.runtime[static_cast<size_t>(t.device[static_cast<size_t>(event)].launch)];
}

// By the last of an optimizer's kernels.
std::vector<UpdateEnd> launched_updates(const Trace& t, const std::vector<int32_t>& events) {
  const KernelTable table = kernel_table(t);
  std::vector<UpdateEnd> out;
  size_t last = 0;
  for (size_t i = 0; i < events.size(); ++i) {
    if (table.of(static_cast<size_t>(events[i])).kind != KernelKind::kOptimizer) continue;
    const RuntimeEvent& launch = launch_of(t, events[i]);
    const UpdateEnd end{launch.start_ns + std::max<int64_t>(launch.duration_ns, 0), launch.thread};
    if (out.empty() || i - last > kBetweenUpdates) {
      out.push_back(end);
    } else {
      out.back() = end;
    }
    last = i;
  }
  return out;
}

// Every n-th of them ends a step, if what is launched up to each is much the same.
std::vector<UpdateEnd> step_ends(const Trace& t, const std::vector<int32_t>& events,
                                 const std::vector<UpdateEnd>& updates, size_t n) {
  std::vector<UpdateEnd> ends;
  for (size_t i = n - 1; i < updates.size(); i += n) ends.push_back(updates[i]);
  if (ends.size() < 2) return {};
  std::vector<double> launched;
  auto from = events.begin();
  for (const UpdateEnd& end : ends) {
    const auto to = std::partition_point(
        from, events.end(), [&](int32_t e) { return launch_of(t, e).start_ns < end.at_ns; });
    launched.push_back(static_cast<double>(to - from));
    from = to;
  }
  const auto [least, most] = std::minmax_element(launched.begin(), launched.end());
  const double rest = static_cast<double>(events.end() - from);
  const bool same = *least > 0 && *most - *least <= kSameLaunches * *most;
  return same && rest <= kSameLaunches * *most ? ends : std::vector<UpdateEnd>{};
}

// Adds events to the host's, which stay in order, and keeps what points to them.
void insert_steps(Trace& t, const std::vector<HostEvent>& steps) {
  std::vector<int32_t> moved(t.host.size());
  std::vector<HostEvent> host;
  host.reserve(t.host.size() + steps.size());
  size_t next = 0;
  const auto add = [&] {
    t.steps.push_back(static_cast<int32_t>(host.size()));
    host.push_back(steps[next++]);
  };
  for (size_t i = 0; i < t.host.size(); ++i) {
    while (next < steps.size() && steps[next].start_ns <= t.host[i].start_ns) add();
    moved[i] = static_cast<int32_t>(host.size());
    host.push_back(t.host[i]);
  }
  while (next < steps.size()) add();
  const auto follow = [&](int32_t& index) {
    if (index >= 0) index = moved[static_cast<size_t>(index)];
  };
  for (size_t i = 0; i < moved.size(); ++i) follow(host[static_cast<size_t>(moved[i])].parent);
  for (DeviceEvent& e : t.device) follow(e.op);
  for (RuntimeEvent& e : t.runtime) follow(e.host);
  t.host = std::move(host);
}

}  // namespace

void infer_steps(Trace& t) {
  if (!t.steps.empty()) return;
  const std::vector<int32_t> events = events_by_launch(t);
  if (events.empty()) return;
  std::vector<UpdateEnd> updates = annotated_updates(t);
  if (updates.empty()) updates = launched_updates(t, events);
  std::sort(updates.begin(), updates.end(),
            [](const UpdateEnd& a, const UpdateEnd& b) { return a.at_ns < b.at_ns; });
  std::vector<UpdateEnd> ends;
  for (size_t n = 1; n <= kUpdatesMost && ends.empty(); ++n) {
    ends = step_ends(t, events, updates, n);
  }
  if (ends.empty()) return;
  std::vector<HostEvent> steps;
  int64_t from = launch_of(t, events.front()).start_ns;
  const auto name = static_cast<uint32_t>(t.strings.size());
  t.strings.emplace_back("step told by its optimizer");
  for (const UpdateEnd& end : ends) {
    HostEvent step;
    step.start_ns = from;
    step.duration_ns = end.at_ns - from;
    step.name = name;
    step.thread = end.thread;
    step.kind = HostKind::kAnnotation;
    steps.push_back(step);
    from = end.at_ns;
  }
  insert_steps(t, steps);
  t.steps_inferred = true;
}

}  // namespace assay
