#include "diagnose/gain_marks.h"

#include <algorithm>

#include "base/text.h"

namespace assay {
namespace {

// Python between two operators of a slow host takes tens of microseconds, the start of a backward
// pass up to 0.8 ms (our own H200 traces).
constexpr int64_t kPauseLeast = 1'000'000;

int64_t overlap(const Intervals& intervals, int64_t from, int64_t to) {
  auto it = std::lower_bound(intervals.begin(), intervals.end(), from,
                             [](const Interval64& i, int64_t at) { return i.end_ns <= at; });
  int64_t sum = 0;
  for (; it != intervals.end() && it->start_ns < to; ++it) {
    sum += std::min(it->end_ns, to) - std::max(it->start_ns, from);
  }
  return sum;
}

std::vector<char> launching_threads(const Trace& t) {
  std::vector<char> launching(t.threads.size() + 1, 0);
  for (const DeviceEvent& e : t.device) {
    if (e.launch < 0) continue;
    const int32_t thread = t.runtime[static_cast<size_t>(e.launch)].thread;
    if (thread >= 0 && static_cast<size_t>(thread) < launching.size()) {
      launching[static_cast<size_t>(thread)] = 1;
    }
  }
  return launching;
}

// True when the first device work launched after a silence is a copy from the host, in the same
// step: what came before it made a batch. Work at the end of a step (a collection, a log) is not
// the next step's input.
bool leads_to_input(const Trace& t, const std::vector<int32_t>& by_launch, const Interval64& hole) {
  auto launched = [&](int32_t e) {
    return t.runtime[static_cast<size_t>(t.device[static_cast<size_t>(e)].launch)].start_ns;
  };
  auto it = std::lower_bound(by_launch.begin(), by_launch.end(), hole.end_ns,
                             [&](int32_t e, int64_t when) { return launched(e) < when; });
  if (it == by_launch.end()) return false;
  auto begins = [&](int32_t step) { return t.host[static_cast<size_t>(step)].start_ns; };
  const auto step =
      std::upper_bound(t.steps.begin(), t.steps.end(), hole.start_ns + 1,
                       [&](int64_t when, int32_t index) { return when < begins(index); });
  if (step != t.steps.end() && begins(*step) <= launched(*it)) return false;
  const DeviceEvent& next = t.device[static_cast<size_t>(*it)];
  const std::string_view name = t.text(next.name);
  return next.kind == DeviceKind::kCopy &&
         (contains(name, "HtoD") || contains(name, "Host -> Device"));
}

// Everything a launching thread recorded, but for frames and for what merely wraps a step.
Intervals recorded(const Trace& t, const std::vector<char>& launching) {
  Intervals busy;
  auto launches = [&](int32_t thread) {
    return thread >= 0 && static_cast<size_t>(thread) < launching.size() &&
           launching[static_cast<size_t>(thread)] != 0;
  };
  for (const HostEvent& e : t.host) {
    if (e.kind == HostKind::kPython || e.duration_ns <= 0 || !launches(e.thread)) continue;
    const std::string_view name = t.text(e.name);
    if (e.kind == HostKind::kAnnotation && !contains(name, "Optimizer.")) continue;
    if (contains(name, "ProfilerStep") || is_loader(name)) continue;
    busy.push_back({e.start_ns, e.start_ns + e.duration_ns});
  }
  for (const RuntimeEvent& e : t.runtime) {
    if (!launches(e.thread)) continue;
    busy.push_back({e.start_ns, e.start_ns + std::max<int64_t>(e.duration_ns, 1)});
  }
  // What comes before the first or after the last record of a step is silence as well.
  for (int32_t index : t.steps) {
    const HostEvent& step = t.host[static_cast<size_t>(index)];
    if (step.duration_ns <= 0) continue;
    busy.push_back({step.start_ns, step.start_ns + 1});
    busy.push_back({step.start_ns + step.duration_ns - 1, step.start_ns + step.duration_ns});
  }
  return union_of(std::move(busy));
}

// Operators were recorded, about one for every operation that was launched: silence means
// something.
bool host_recorded(const Trace& t) {
  size_t ops = 0;
  for (const HostEvent& e : t.host) ops += e.kind == HostKind::kOp ? 1 : 0;
  return ops * 2 >= t.device.size();
}

}  // namespace

bool is_loader(std::string_view n) {
  return contains(n, "enumerate(DataLoader)") ||
         (contains(n, "dataloader.py") && contains(n, "__next__"));
}

bool is_collection(std::string_view n) {
  return contains(n, "gc.collect") || contains(n, "method collect of module gc") ||
         contains(n, "built-in function collect") || n == "gc" || contains(n, "gc.py");
}

HostMarks host_marks(const Trace& t) {
  HostMarks marks;
  Intervals data, pauses;
  bool worker = false, single = false;
  for (const HostEvent& e : t.host) {
    if (e.duration_ns <= 0) continue;
    const std::string_view name = t.text(e.name);
    if (is_loader(name)) {
      data.push_back({e.start_ns, e.start_ns + e.duration_ns});
      worker = worker || contains(name, "_MultiProcessing");
      single = single || contains(name, "_SingleProcess");
      marks.data_named = true;
    } else if (e.kind != HostKind::kOp && is_collection(name)) {
      pauses.push_back({e.start_ns, e.start_ns + e.duration_ns});
      marks.collection_named = true;
    }
  }
  marks.loader_in_process = single || !worker;
  data = union_of(std::move(data));

  std::vector<int32_t> by_launch;
  for (size_t i = 0; i < t.device.size(); ++i) {
    if (t.device[i].launch >= 0) by_launch.push_back(static_cast<int32_t>(i));
  }
  std::stable_sort(by_launch.begin(), by_launch.end(), [&](int32_t a, int32_t b) {
    return t.device[static_cast<size_t>(a)].launch < t.device[static_cast<size_t>(b)].launch;
  });
  marks.host_recorded = host_recorded(t);
  const Intervals busy = recorded(t, launching_threads(t));
  for (size_t i = 1; i < busy.size(); ++i) {
    const Interval64 hole{busy[i - 1].end_ns, busy[i].start_ns};
    if (hole.end_ns - hole.start_ns < kPauseLeast) continue;
    if (overlap(data, hole.start_ns, hole.end_ns) * 2 > hole.end_ns - hole.start_ns) continue;
    const bool input = marks.host_recorded && leads_to_input(t, by_launch, hole);
    (input ? data : pauses).push_back(hole);
  }
  marks.data = union_of(std::move(data));
  marks.pauses = subtract(union_of(std::move(pauses)), marks.data);
  return marks;
}

HostSplit split_host(const HostMarks& marks, int64_t from, int64_t to) {
  HostSplit split;
  if (to <= from) return split;
  split.data_ns = overlap(marks.data, from, to);
  split.pause_ns = overlap(marks.pauses, from, to);
  split.work_ns = to - from - split.data_ns - split.pause_ns;
  return split;
}

}  // namespace assay
