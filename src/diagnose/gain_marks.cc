#include "diagnose/gain_marks.h"

#include <algorithm>

#include "base/text.h"

namespace assay {
namespace {

// Python between two operators of a slow host takes tens of microseconds, the start of a backward
// pass up to 0.8 ms (our own H200 traces).
constexpr int64_t kPauseLeast = 1'000'000;
// The framework's own bookkeeping around a backward pass (counting dependencies before it, giving
// the graph back after it) goes with the number of its nodes: 0.6 to 1.3 us each on our own H200.
constexpr int64_t kNodeCost = 1'500;
// Nanoseconds that Python takes for one value that it has in hand, at most: a look-up, a line of
// text. Assumed.
constexpr int64_t kValueCost = 10'000;
constexpr int64_t kValueBytes = 8;
// Memory of this size and more goes back to the system when it is freed, page by page.
constexpr int64_t kMappedBytes = 32 << 20;

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

// A thread that pins memory looks at the tensor and asks for a buffer just before it copies: 0.1 to
// 0.3 ms before the others fall silent (five silences of 11 to 22 ms in two H200 runs, batches of
// 58 and 116 MB).
constexpr int64_t kPinnedBefore = 500'000;

// When threads that launch nothing asked for pinned memory, in order.
std::vector<int64_t> pinned_at(const Trace& t, const std::vector<char>& launching) {
  std::vector<int64_t> out;
  for (const RuntimeEvent& e : t.runtime) {
    const bool launches = e.thread >= 0 && static_cast<size_t>(e.thread) < launching.size() &&
                          launching[static_cast<size_t>(e.thread)] != 0;
    if (launches) continue;
    const std::string_view name = t.text(e.name);
    if (contains(name, "HostAlloc") || contains(name, "MallocHost") ||
        contains(name, "HostMalloc") || contains(name, "PointerGetAttribute")) {
      out.push_back(e.start_ns);
    }
  }
  return out;
}

bool holds_pinning(const std::vector<int64_t>& pinned, const Interval64& hole) {
  const auto first = std::lower_bound(pinned.begin(), pinned.end(), hole.start_ns - kPinnedBefore);
  return first != pinned.end() && *first <= hole.start_ns;
}

// A copy one way, as CUDA and as HIP name it.
bool is_host_copy(const Trace& t, const DeviceEvent& e, std::string_view way,
                  std::string_view in_words) {
  const std::string_view name = t.text(e.name);
  return e.kind == DeviceKind::kCopy && (contains(name, way) || contains(name, in_words));
}

// Device events by the time of their launch.
struct Launches {
  std::vector<int32_t> events;

  const DeviceEvent& event(const Trace& t, size_t i) const {
    return t.device[static_cast<size_t>(events[i])];
  }
  static int64_t when_launched(const Trace& t, const DeviceEvent& e) {
    return t.runtime[static_cast<size_t>(e.launch)].start_ns;
  }
  int64_t launched(const Trace& t, size_t i) const { return when_launched(t, event(t, i)); }
  // The first that was launched at `when` or later.
  size_t after(const Trace& t, int64_t when) const {
    const auto it = std::partition_point(events.begin(), events.end(), [&](int32_t e) {
      return when_launched(t, t.device[static_cast<size_t>(e)]) < when;
    });
    return static_cast<size_t>(it - events.begin());
  }
  // The step that begins at or before `when`: its index, or -1.
  static int64_t step_at(const Trace& t, int64_t when) {
    const auto step =
        std::upper_bound(t.steps.begin(), t.steps.end(), when, [&](int64_t at, int32_t index) {
          return at < t.host[static_cast<size_t>(index)].start_ns;
        });
    return step - t.steps.begin() - 1;
  }

  // True when the first device work launched after a silence is a copy from the host, in the same
  // step: what came before it made a batch. Work at the end of a step (a collection, a log) is not
  // the next step's input.
  bool leads_to_input(const Trace& t, const Interval64& hole) const {
    const size_t next = after(t, hole.end_ns);
    if (next == events.size()) return false;
    if (step_at(t, hole.start_ns + 1) != step_at(t, launched(t, next))) return false;
    return is_host_copy(t, event(t, next), "HtoD", "Host -> Device");
  }
  // Nothing was launched in the step before it.
  bool begins_step(const Trace& t, const Interval64& hole) const {
    const size_t next = after(t, hole.end_ns);
    return next == 0 || step_at(t, launched(t, next - 1)) < step_at(t, hole.start_ns + 1);
  }
  // The last work before it brought values to the host, so many that working on them takes as long.
  bool works_on_values(const Trace& t, const Interval64& hole) const {
    const size_t next = after(t, hole.end_ns);
    if (next == 0) return false;
    const DeviceEvent& last = event(t, next - 1);
    if (!is_host_copy(t, last, "DtoH", "Device -> Host")) return false;
    return last.bytes / kValueBytes >= (hole.end_ns - hole.start_ns) / kValueCost;
  }
  // The last work before it was a large copy to or from pageable memory: what it replaced goes
  // back to the system.
  bool frees_a_copy(const Trace& t, const Interval64& hole) const {
    const size_t next = after(t, hole.end_ns);
    if (next == 0) return false;
    const DeviceEvent& last = event(t, next - 1);
    return last.kind == DeviceKind::kCopy && last.bytes >= kMappedBytes &&
           contains(t.text(last.name), "Pageable");
  }
};

Launches marked_launches(const Trace& t) {
  Launches out;
  for (size_t i = 0; i < t.device.size(); ++i) {
    if (t.device[i].launch >= 0) out.events.push_back(static_cast<int32_t>(i));
  }
  std::stable_sort(out.events.begin(), out.events.end(), [&](int32_t a, int32_t b) {
    return t.device[static_cast<size_t>(a)].launch < t.device[static_cast<size_t>(b)].launch;
  });
  return out;
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

// Calls of the device's runtime, and the ends of steps.
Intervals called(const Trace& t, const std::vector<char>& launching) {
  Intervals calls;
  for (const RuntimeEvent& e : t.runtime) {
    const bool launches = e.thread >= 0 && static_cast<size_t>(e.thread) < launching.size() &&
                          launching[static_cast<size_t>(e.thread)] != 0;
    if (!launches) continue;
    calls.push_back({e.start_ns, e.start_ns + std::max<int64_t>(e.duration_ns, 1)});
  }
  for (int32_t index : t.steps) {
    const HostEvent& step = t.host[static_cast<size_t>(index)];
    if (step.duration_ns > 0) calls.push_back({step.start_ns, step.start_ns + 1});
  }
  return union_of(std::move(calls));
}

// Nodes of a step's backward passes: operators that the autograd engine ran.
int64_t backward_nodes(const Trace& t) {
  std::vector<char> is_node(t.strings.size(), 0);
  for (size_t i = 0; i < t.strings.size(); ++i) {
    is_node[i] = contains(t.strings[i], "autograd::engine::evaluate") ? 1 : 0;
  }
  int64_t nodes = 0;
  for (const HostEvent& e : t.host) nodes += e.kind == HostKind::kOp ? is_node[e.name] : 0;
  return nodes / std::max<int64_t>(static_cast<int64_t>(t.steps.size()), 1);
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
  Intervals data, pins, reads, pauses;
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

  const Launches launches = marked_launches(t);
  const std::vector<char> launching = launching_threads(t);
  const std::vector<int64_t> pinned = pinned_at(t, launching);
  const Intervals busy = recorded(t, launching);
  marks.host_recorded = host_recorded(t);
  const int64_t bookkeeping = std::max(kPauseLeast, kNodeCost * backward_nodes(t));
  for (size_t i = 1; i < busy.size(); ++i) {
    const Interval64 hole{busy[i - 1].end_ns, busy[i].start_ns};
    const int64_t length = hole.end_ns - hole.start_ns;
    if (length < kPauseLeast) continue;
    if (overlap(data, hole.start_ns, hole.end_ns) * 2 > length) continue;
    if (marks.host_recorded && launches.leads_to_input(t, hole)) {
      data.push_back(hole);
    } else if (marks.host_recorded && holds_pinning(pinned, hole)) {
      pins.push_back(hole);
    } else if (launches.frees_a_copy(t, hole)) {
      continue;
    } else if (marks.host_recorded && !t.steps.empty() && launches.works_on_values(t, hole)) {
      reads.push_back(hole);
    } else if (length >= bookkeeping) {
      pauses.push_back(hole);
    }
  }
  // Operators on the host alone, before the step's first work, which is a copy of what they made.
  const Intervals calls = called(t, launching);
  for (size_t i = 1; i < calls.size(); ++i) {
    const Interval64 hole{calls[i - 1].end_ns, calls[i].start_ns};
    if (hole.end_ns - hole.start_ns < kPauseLeast) continue;
    if (overlap(busy, hole.start_ns, hole.end_ns) * 2 < hole.end_ns - hole.start_ns) continue;
    if (launches.begins_step(t, hole) && launches.leads_to_input(t, hole)) data.push_back(hole);
  }
  marks.data = union_of(std::move(data));
  marks.pins = subtract(union_of(std::move(pins)), marks.data);
  marks.reads = subtract(union_of(std::move(reads)), marks.data);
  marks.pauses = subtract(subtract(union_of(std::move(pauses)), marks.data), marks.reads);
  return marks;
}

HostSplit split_host(const HostMarks& marks, int64_t from, int64_t to) {
  HostSplit split;
  if (to <= from) return split;
  split.data_ns = overlap(marks.data, from, to);
  split.pin_ns = overlap(marks.pins, from, to);
  split.read_ns = overlap(marks.reads, from, to);
  split.pause_ns = overlap(marks.pauses, from, to);
  split.work_ns = to - from - split.data_ns - split.pin_ns - split.read_ns - split.pause_ns;
  return split;
}

}  // namespace assay
