#include "diagnose/gain_graph.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <string>
#include <unordered_map>

#include "base/text.h"
#include "diagnose/gain_marks.h"
#include "diagnose/gain_reads.h"
#include "diagnose/gain_share.h"

namespace assay {
namespace {

// CUDA's and HIP's queues take this many operations before a launch waits; what a trace shows of
// its own limit comes first.
constexpr int64_t kQueueLimit = 1024;
// A launch that takes this many times the usual while this many operations are queued is waiting
// for room: the queue is also limited in bytes, and kernels with many arguments fill it early.
constexpr int64_t kBlockedTimes = 3, kQueueDeep = 128;
constexpr int64_t kQueueSeen = 256;  // a limit below this has never been seen: it is just a lull
// From a launch to its kernel's start, and between kernels, where a trace has too few to tell
// (H200, our own traces: 7 to 11 us and 1.1 to 1.6 us).
constexpr int64_t kLatency = 8'000, kGap = 1'500;
constexpr size_t kFewSamples = 20;
constexpr int kRecentMajor = 9;  // compute capability of Hopper: hosts like those we measured
// Real traces have a dozen streams; a file with more than this many has them share the last lane,
// so that no pass over all lanes takes long.
constexpr size_t kLanesMost = 256;
// Delays beyond launch and stream order that are worth an explanation by another stream, and how
// soon after that stream's operation the start must be.
constexpr int64_t kUnexplained = 5'000, kFollows = 10'000, kJitter = 2'000;
// Launch latency scatters by this much; a delay beyond it has a reason of its own.
constexpr int64_t kScatter = 100'000;
constexpr int64_t kReturns = 20'000;  // a call that waited returns within this of the work's end
// Copies of pageable memory up to this size are staged by the driver at once: what they cost is
// the wait for the stream (CUDA programming guide, host-synchronous behaviour of copies).
constexpr int64_t kStagedBytes = 64 * 1024;

// Longer calls and operations than an hour are some profiler's mistake; they would only hide the
// rest.
constexpr int64_t kLongest = 3'600'000'000'000;

int64_t quantile(std::vector<int64_t>& values, size_t numerator, size_t denominator) {
  if (values.empty()) return 0;
  const size_t at = (values.size() - 1) * numerator / denominator;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

int64_t end_of(const RuntimeEvent& e) { return e.start_ns + std::max<int64_t>(e.duration_ns, 0); }
int64_t end_of(const DeviceEvent& e) { return e.start_ns + std::max<int64_t>(e.duration_ns, 0); }

// What is the same for all steps of a file.
struct Context {
  const Trace& trace;
  const HostMarks& marks;
  std::vector<int32_t> calls;         // of launching threads, by start
  std::vector<int32_t> launch_from;   // device events by launch: offsets per runtime event ...
  std::vector<int32_t> launch_list;   // ... into this list
  std::vector<int32_t> lane, before;  // per device event: its lane, and the one before it there
  std::vector<std::vector<int32_t>> in_lane;  // device events by lane, by start
  int64_t latency = kLatency, gap = kGap;
  int64_t deepest = 0;             // queue, in operations
  std::vector<int64_t> depth;      // per entry of `calls`
  int64_t usual = 0;               // duration of a launch that does not wait
  int64_t free = 0;                // of a kernel, where the queue is short; 0: too few to tell
  std::vector<int64_t> operators;  // starts of the operators of launching threads, in order

  Context(const Trace& t, const HostMarks& m) : trace(t), marks(m) {}
};

void collect_launches(Context& c) {
  const Trace& t = c.trace;
  std::vector<char> launches(t.threads.size() + 1, 0);
  c.launch_from.assign(t.runtime.size() + 1, 0);
  for (const DeviceEvent& e : t.device) {
    if (e.launch < 0) continue;
    ++c.launch_from[static_cast<size_t>(e.launch) + 1];
    const int32_t thread = t.runtime[static_cast<size_t>(e.launch)].thread;
    if (thread >= 0 && static_cast<size_t>(thread) < launches.size()) {
      launches[static_cast<size_t>(thread)] = 1;
    }
  }
  for (size_t i = 1; i < c.launch_from.size(); ++i) c.launch_from[i] += c.launch_from[i - 1];
  std::vector<int32_t> next(c.launch_from.begin(), c.launch_from.end());
  c.launch_list.resize(static_cast<size_t>(c.launch_from.back()));
  for (size_t i = 0; i < t.device.size(); ++i) {
    const int32_t launch = t.device[i].launch;
    if (launch < 0) continue;
    const int32_t at = next[static_cast<size_t>(launch)]++;
    c.launch_list[static_cast<size_t>(at)] = static_cast<int32_t>(i);
  }
  for (size_t i = 0; i < t.runtime.size(); ++i) {
    const int32_t thread = t.runtime[i].thread;
    if (thread < 0 || static_cast<size_t>(thread) >= launches.size()) continue;
    if (launches[static_cast<size_t>(thread)] != 0) c.calls.push_back(static_cast<int32_t>(i));
  }
  for (const HostEvent& h : t.host) {
    if (h.kind != HostKind::kOp || h.thread < 0) continue;
    if (static_cast<size_t>(h.thread) < launches.size() &&
        launches[static_cast<size_t>(h.thread)] != 0) {
      c.operators.push_back(h.start_ns);
    }
  }
  std::sort(c.operators.begin(), c.operators.end());
}

// Operators that began in [from, to).
int32_t recorded_in(const Context& c, int64_t from, int64_t to) {
  const auto first = std::lower_bound(c.operators.begin(), c.operators.end(), from);
  const auto last = std::lower_bound(first, c.operators.end(), std::max(from, to));
  return static_cast<int32_t>(last - first);
}

void collect_lanes(Context& c) {
  const Trace& t = c.trace;
  std::map<std::pair<int32_t, int32_t>, int32_t> lanes;
  c.lane.resize(t.device.size());
  c.before.resize(t.device.size(), -1);
  for (size_t i = 0; i < t.device.size(); ++i) {
    const auto key = std::make_pair(t.device[i].device, t.device[i].stream);
    const size_t next = std::min(lanes.size(), kLanesMost - 1);
    const auto [it, fresh] = lanes.try_emplace(key, static_cast<int32_t>(next));
    if (fresh && next == c.in_lane.size()) c.in_lane.emplace_back();
    std::vector<int32_t>& lane = c.in_lane[static_cast<size_t>(it->second)];
    c.lane[i] = it->second;
    if (!lane.empty()) c.before[i] = lane.back();
    lane.push_back(static_cast<int32_t>(i));
  }
}

// Latency from launch to start of kernels that found an empty queue; gap between kernels that did
// not have to wait for their launch.
void calibrate_device(Context& c) {
  const Trace& t = c.trace;
  std::vector<int64_t> latency, gap;
  for (size_t i = 0; i < t.device.size(); ++i) {
    const DeviceEvent& e = t.device[i];
    if (e.launch < 0 || c.before[i] < 0 || e.kind != DeviceKind::kKernel) continue;
    const RuntimeEvent& launch = t.runtime[static_cast<size_t>(e.launch)];
    const int64_t before = end_of(t.device[static_cast<size_t>(c.before[i])]);
    if (before < launch.start_ns) latency.push_back(e.start_ns - launch.start_ns);
    if (before > end_of(launch) + kUnexplained) gap.push_back(e.start_ns - before);
  }
  if (latency.size() >= kFewSamples) c.latency = std::max<int64_t>(quantile(latency, 1, 2), 0);
  if (gap.size() >= kFewSamples) c.gap = std::max<int64_t>(quantile(gap, 1, 2), 0);
}

// How deep the device's queue was at each call, and what each call takes while there is room.
void calibrate_calls(Context& c) {
  const Trace& t = c.trace;
  std::vector<int64_t> starts;
  starts.reserve(c.launch_list.size());
  for (int32_t i : c.launch_list) starts.push_back(t.device[static_cast<size_t>(i)].start_ns);
  std::sort(starts.begin(), starts.end());
  c.depth.resize(c.calls.size());
  size_t begun = 0;
  int64_t launched = 0;
  for (size_t i = 0; i < c.calls.size(); ++i) {
    const size_t call = static_cast<size_t>(c.calls[i]);
    while (begun < starts.size() && starts[begun] <= t.runtime[call].start_ns) ++begun;
    c.depth[i] = launched - static_cast<int64_t>(begun);
    c.deepest = std::max(c.deepest, c.depth[i]);
    launched += c.launch_from[call + 1] - c.launch_from[call];
  }
  // Launches cost much the same whatever their name; one in four, at least, finds room.
  std::vector<int64_t> launches, free;
  for (size_t at = 0; at < c.calls.size(); ++at) {
    const size_t i = static_cast<size_t>(c.calls[at]);
    if (c.launch_from[i + 1] == c.launch_from[i]) continue;
    launches.push_back(t.runtime[i].duration_ns);
    const int32_t first = c.launch_list[static_cast<size_t>(c.launch_from[i])];
    const bool kernel = t.device[static_cast<size_t>(first)].kind == DeviceKind::kKernel;
    if (kernel && c.depth[at] < kQueueDeep) free.push_back(t.runtime[i].duration_ns);
  }
  c.usual = std::max<int64_t>(quantile(launches, 1, 4), 0);
  if (free.size() >= kFewSamples) c.free = std::max<int64_t>(quantile(free, 1, 4), 0);
}

// The last operation of a lane that had ended at `at`; -1: none.
int32_t last_ended(const Context& c, size_t lane, int64_t at) {
  const std::vector<int32_t>& events = c.in_lane[lane];
  auto after = std::upper_bound(events.begin(), events.end(), at, [&](int64_t when, int32_t e) {
    return when < end_of(c.trace.device[static_cast<size_t>(e)]);
  });
  return after == events.begin() ? -1 : *std::prev(after);
}

// The lane that a synchronising call waited for: that of the thread's last launch, unless that work
// was not done when the call returned.
int32_t waited_lane(const Context& c, const RuntimeEvent& call, int32_t last_op) {
  const Trace& t = c.trace;
  const std::string_view name = t.text(call.name);
  if (name.find("Device") != std::string_view::npos || name.find("Ctx") != std::string_view::npos) {
    return kAllLanes;
  }
  if (last_op < 0) return kAllLanes;
  const DeviceEvent& last = t.device[static_cast<size_t>(last_op)];
  if (end_of(last) <= end_of(call) + kReturns) return c.lane[static_cast<size_t>(last_op)];
  int64_t latest = call.start_ns;
  int32_t lane = kNoLane;
  for (size_t i = 0; i < c.in_lane.size(); ++i) {
    const int32_t event = last_ended(c, i, end_of(call));
    if (event < 0 || end_of(t.device[static_cast<size_t>(event)]) <= latest) continue;
    latest = end_of(t.device[static_cast<size_t>(event)]);
    lane = static_cast<int32_t>(i);
  }
  return lane;
}

// Splits the duration of a call that waited for `lane` into waiting, return and itself.
void split_wait(const Context& c, const RuntimeEvent& call, int32_t lane, HostCall& out) {
  int64_t done = call.start_ns;
  for (size_t i = 0; i < c.in_lane.size(); ++i) {
    if (lane != kAllLanes && static_cast<size_t>(lane) != i) continue;
    const int32_t last = last_ended(c, i, end_of(call) + kReturns / 4);
    if (last >= 0) done = std::max(done, end_of(c.trace.device[static_cast<size_t>(last)]));
  }
  out.wait_lane = lane;
  out.waited_ns = std::max<int64_t>(done - call.start_ns, 0);
  if (out.waited_ns > 0) {
    out.return_ns = std::max<int64_t>(end_of(call) - done, 0);
    out.call_ns = 0;
  }
}

// A copy between the device and pageable host memory that was done when its call returned.
bool holds_the_host(const Context& c, const RuntimeEvent& call, int32_t event) {
  const DeviceEvent& e = c.trace.device[static_cast<size_t>(event)];
  if (e.kind != DeviceKind::kCopy) return false;
  const std::string_view name = c.trace.text(e.name);
  const bool host = name.find("HtoD") != std::string_view::npos ||
                    name.find("DtoH") != std::string_view::npos ||
                    name.find("Host") != std::string_view::npos;
  if (!host) return false;
  // The last piece may still be on its way when the call returns; of a copy that fits the driver's
  // buffer all of it: the call has then copied it there on the host.
  const bool staged = e.bytes > kStagedBytes && contains(name, "Pageable") &&
                      contains(name, "HtoD") && call.duration_ns > kBlockedTimes * c.usual;
  const int64_t piece = staged ? e.duration_ns : e.duration_ns / 8;
  return end_of(call) + std::max(kReturns / 4, piece + (staged ? kReturns : 0)) >= end_of(e);
}

HostCall make_call(const Context& c, size_t at, int32_t last_op) {
  const Trace& t = c.trace;
  const int32_t index = c.calls[at];
  const RuntimeEvent& call = t.runtime[static_cast<size_t>(index)];
  const std::string_view name = t.text(call.name);
  HostCall out;
  out.runtime = index;
  out.call_ns = std::clamp<int64_t>(call.duration_ns, 0, kLongest);
  const int32_t first = c.launch_from[static_cast<size_t>(index)];
  const int32_t count = c.launch_from[static_cast<size_t>(index) + 1] - first;
  if (is_allocation(name)) {
    out.kind = CallKind::kAllocate;
    // Giving memory back waits for the device.
    if (name.find("Free") != std::string_view::npos && last_op >= 0) {
      split_wait(c, call, kAllLanes, out);
    }
  } else if (is_synchronisation(name)) {
    out.kind = CallKind::kSync;
    const int32_t lane = waited_lane(c, call, last_op);
    if (lane != kNoLane) split_wait(c, call, lane, out);
  } else if (count > 0) {
    out.kind = CallKind::kLaunch;
    const int32_t event = c.launch_list[static_cast<size_t>(first)];
    if (holds_the_host(c, call, event)) {
      out.kind = CallKind::kCopy;
      const DeviceEvent& copy = t.device[static_cast<size_t>(event)];
      out.small_copy = copy.bytes <= kStagedBytes;
      out.wait_lane = c.lane[static_cast<size_t>(event)];
      out.waited_ns = std::max<int64_t>(end_of(copy) - call.start_ns, 0);
      out.return_ns = end_of(call) - end_of(copy);
      out.call_ns = 0;
    } else if (c.depth[at] >= kQueueDeep && out.call_ns > kBlockedTimes * c.usual) {
      out.call_ns = c.usual;
    }
  }
  return out;
}

DeviceOp make_op(const Context& c, int32_t event, bool repeats) {
  const Trace& t = c.trace;
  const DeviceEvent& e = t.device[static_cast<size_t>(event)];
  const RuntimeEvent& launch = t.runtime[static_cast<size_t>(e.launch)];
  DeviceOp op;
  op.event = event;
  op.lane = c.lane[static_cast<size_t>(event)];
  op.duration_ns = std::clamp<int64_t>(e.duration_ns, 0, kLongest);
  op.latency_ns = std::clamp<int64_t>(e.start_ns - launch.start_ns, 0, c.latency);
  op.gap_ns = c.gap;
  const int64_t earliest = launch.start_ns + op.latency_ns;
  int64_t stream = INT64_MIN;
  const int32_t before = c.before[static_cast<size_t>(event)];
  // What the first recorded work of a stream waited for may have begun before the file did.
  if (before < 0 && repeats) return op;
  if (before >= 0) {
    const int64_t ended = end_of(t.device[static_cast<size_t>(before)]);
    op.gap_ns = std::min(e.start_ns - ended, c.gap);
    stream = ended + op.gap_ns;
  }
  // Kept as it is, unless a dependency on another stream explains it (find_dependencies).
  const int64_t late = std::clamp<int64_t>(e.start_ns - std::max(earliest, stream), 0, kLongest);
  if (late > kScatter) {
    op.late_ns = late;
  } else {
    (earliest >= stream ? op.latency_ns : op.gap_ns) += late;
  }
  return op;
}

// Operations that started later than their launch and stream explain wait for one of another
// stream: the last that had ended by then. A short delay needs to follow it closely to be believed;
// a long one has no other explanation.
void find_dependencies(const Context& c, StepGraph& g) {
  if (c.in_lane.size() < 2) return;
  std::unordered_map<int32_t, int32_t> position;
  for (size_t i = 0; i < g.ops.size(); ++i) {
    position[g.ops[i].event] = static_cast<int32_t>(i);
  }
  for (size_t i = 0; i < g.ops.size(); ++i) {
    DeviceOp& op = g.ops[i];
    const bool late = op.late_ns > 0 || op.latency_ns > c.latency + kUnexplained ||
                      op.gap_ns > c.gap + kUnexplained;
    if (!late) continue;
    const int64_t start = c.trace.device[static_cast<size_t>(op.event)].start_ns;
    int64_t latest = op.late_ns > 0 ? INT64_MIN : start - kFollows;
    for (size_t lane = 0; lane < c.in_lane.size(); ++lane) {
      if (static_cast<int32_t>(lane) == op.lane) continue;
      // Clocks of a device's streams agree to about a microsecond.
      const int32_t ended_before = last_ended(c, lane, start + kJitter);
      if (ended_before < 0) continue;
      const auto found = position.find(ended_before);
      if (found == position.end() || found->second >= static_cast<int32_t>(i)) continue;
      const int64_t ended = end_of(c.trace.device[static_cast<size_t>(found->first)]);
      if (ended <= latest) continue;
      latest = ended;
      op.after = found->second;
      op.after_ns = start - ended;
    }
    if (op.after < 0) continue;
    op.late_ns = 0;
    op.latency_ns = std::min(op.latency_ns, c.latency);
    op.gap_ns = std::min(op.gap_ns, c.gap);
  }
}

// The calls of a window, with the host's work before each and the end of the step as the last.
std::vector<HostCall> window_calls(const Context& c, int64_t from, int64_t to) {
  const Trace& t = c.trace;
  std::vector<HostCall> out;
  auto first = std::lower_bound(
      c.calls.begin(), c.calls.end(), from,
      [&](int32_t call, int64_t at) { return t.runtime[static_cast<size_t>(call)].start_ns < at; });
  int64_t frontier = from;
  int32_t last_op = -1;
  bool held_copy = false;  // the last work that was started was a copy that held the host
  for (auto it = first; it != c.calls.end(); ++it) {
    const RuntimeEvent& call = t.runtime[static_cast<size_t>(*it)];
    if (call.start_ns >= to) break;
    HostCall h = make_call(c, static_cast<size_t>(it - c.calls.begin()), last_op);
    if (call.start_ns < frontier) {
      h.call_ns = std::min(h.call_ns, std::max<int64_t>(end_of(call) - frontier, 0));
    } else {
      const HostSplit split = split_host(c.marks, frontier, call.start_ns);
      h.work_ns = split.work_ns;
      h.data_ns = split.data_ns;
      h.pin_ns = split.pin_ns;
      h.read_ns = split.read_ns;
      h.pause_ns = split.pause_ns;
    }
    h.recorded = 1 + recorded_in(c, frontier, call.start_ns);
    frontier = std::max(frontier, end_of(call));
    const int32_t begin = c.launch_from[static_cast<size_t>(*it)];
    h.ops = c.launch_from[static_cast<size_t>(*it) + 1] - begin;
    h.after_copy = h.kind == CallKind::kSync && held_copy;
    if (h.ops > 0) held_copy = h.kind == CallKind::kCopy && !h.small_copy;
    if (h.ops > 0) last_op = c.launch_list[static_cast<size_t>(begin + h.ops - 1)];
    out.push_back(h);
  }
  HostCall end;
  const HostSplit split = split_host(c.marks, frontier, std::max(to, frontier));
  end.work_ns = split.work_ns;
  end.data_ns = split.data_ns;
  end.pin_ns = split.pin_ns;
  end.read_ns = split.read_ns;
  end.pause_ns = split.pause_ns;
  end.recorded = recorded_in(c, frontier, to);
  out.push_back(end);
  return out;
}

bool same_calls(const Trace& t, const std::vector<HostCall>& a, const std::vector<HostCall>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].ops != b[i].ops || (a[i].runtime < 0) != (b[i].runtime < 0)) return false;
    if (a[i].runtime < 0) continue;
    if (t.runtime[static_cast<size_t>(a[i].runtime)].name !=
        t.runtime[static_cast<size_t>(b[i].runtime)].name) {
      return false;
    }
  }
  return true;
}

// Sets what the calls of the step spend on a cause to the mean over the steps: collections and slow
// batches come now and then, and at other calls each time.
void spread_mean(std::span<const std::vector<HostCall>> steps, int64_t HostCall::*field,
                 std::vector<HostCall>& calls) {
  double mean = 0, own = 0;
  for (const std::vector<HostCall>& step : steps) {
    for (const HostCall& call : step) mean += static_cast<double>(call.*field);
  }
  mean /= static_cast<double>(steps.size());
  for (const HostCall& call : calls) own += static_cast<double>(call.*field);
  if (own > 0) {
    for (HostCall& call : calls) {
      call.*field = std::llround(static_cast<double>(call.*field) * mean / own);
    }
    return;
  }
  calls.back().*field = std::llround(mean);
}

// What the host spends on launching a step.
int64_t launching_ns(const std::vector<HostCall>& calls) {
  int64_t sum = 0;
  for (const HostCall& call : calls) sum += call.work_ns + (is_launching(call) ? call.call_ns : 0);
  return sum;
}

// The host's own work: the lower quartile over the steps; what has a cause: the mean.
void take_typical(const Context& c, const StepView& view, StepGraph& g) {
  std::vector<std::vector<HostCall>> steps;
  size_t early = 0;  // begun before the first recorded work: not among those that are booked
  for (int32_t index : c.trace.steps) {
    const HostEvent& step = c.trace.host[static_cast<size_t>(index)];
    if (step.duration_ns <= 0) continue;
    std::vector<HostCall> calls = window_calls(c, step.start_ns, step.start_ns + step.duration_ns);
    if (!same_calls(c.trace, calls, g.calls)) continue;
    early += step.start_ns < c.trace.device.front().start_ns ? 1 : 0;
    steps.push_back(std::move(calls));
  }
  const std::span<const std::vector<HostCall>> whole =
      std::span(steps).subspan(early < steps.size() ? early : 0);
  g.steps = static_cast<int>(whole.size());
  for (const std::vector<HostCall>& step : whole) {
    const bool paused = std::any_of(step.begin(), step.end(),
                                    [](const HostCall& call) { return call.pause_ns > 0; });
    g.paused_steps += paused ? 1 : 0;
  }
  if (2 * steps.size() <= static_cast<size_t>(view.steps) || steps.size() < 2) return;
  spread_mean(whole, &HostCall::data_ns, g.calls);
  spread_mean(whole, &HostCall::pin_ns, g.calls);
  spread_mean(whole, &HostCall::read_ns, g.calls);
  spread_mean(whole, &HostCall::pause_ns, g.calls);
  std::vector<int64_t> values(steps.size());
  auto typical = [&](size_t at, int64_t HostCall::*field) {
    for (size_t s = 0; s < steps.size(); ++s) values[s] = steps[s][at].*field;
    return quantile(values, 1, 4);
  };
  for (size_t i = 0; i < g.calls.size(); ++i) {
    HostCall& call = g.calls[i];
    call.work_ns = typical(i, &HostCall::work_ns);
    if (is_launching(call)) call.call_ns = typical(i, &HostCall::call_ns);
  }
  // Each call at its best is better than any step: the sum is that of a quick step.
  for (size_t s = 0; s < steps.size(); ++s) values[s] = launching_ns(steps[s]);
  const int64_t quick = quantile(values, 1, 4), sum = launching_ns(g.calls);
  if (sum <= 0 || quick <= sum) return;
  const double longer = static_cast<double>(quick) / static_cast<double>(sum);
  for (HostCall& call : g.calls) {
    call.work_ns = std::llround(static_cast<double>(call.work_ns) * longer);
    if (is_launching(call)) {
      call.call_ns = std::llround(static_cast<double>(call.call_ns) * longer);
    }
  }
}

// A whole file begins with the launch of its first work; what the host did before is not its own.
int64_t first_launch(const Trace& t, const StepView& view, bool repeats) {
  if (repeats) return view.host_from_ns;
  int64_t from = view.from_ns;
  for (const DeviceEvent& e : t.device) {
    if (e.launch < 0) continue;
    from = std::min(from, t.runtime[static_cast<size_t>(e.launch)].start_ns);
    break;
  }
  return from;
}

Context context_of(const Trace& trace, const HostMarks& marks) {
  Context c(trace, marks);
  collect_launches(c);
  collect_lanes(c);
  calibrate_device(c);
  calibrate_calls(c);
  return c;
}

// The step as it was, without what binds its streams to one another.
StepGraph graph_of(const Context& c, const StepView& view) {
  const Trace& trace = c.trace;
  StepGraph g;
  g.repeats = view.steps > 0;
  g.lanes = static_cast<int32_t>(c.in_lane.size());
  g.queue_limit = c.deepest >= kQueueSeen ? std::max(c.deepest, kQueueLimit / 2) : kQueueLimit;
  // Hosts of older devices are slower by themselves.
  g.recent = !trace.devices.empty() && trace.devices.front().major >= kRecentMajor;
  g.launch_ns = g.recent ? c.free : 0;
  g.loader_in_process = c.marks.loader_in_process;
  g.data_annotated = !c.marks.data.empty() && c.marks.data_named;
  g.pause_annotated = c.marks.collection_named;
  g.pauses_told = g.repeats && c.marks.host_recorded;
  g.calls = window_calls(c, first_launch(trace, view, g.repeats), view.host_to_ns);
  for (HostCall& call : g.calls) {
    call.first_op = static_cast<int32_t>(g.ops.size());
    if (call.runtime < 0) continue;
    const int32_t begin = c.launch_from[static_cast<size_t>(call.runtime)];
    for (int32_t i = 0; i < call.ops; ++i) {
      DeviceOp op = make_op(c, c.launch_list[static_cast<size_t>(begin + i)], g.repeats);
      if (const int64_t staging = op.latency_ns - c.latency;
          call.kind == CallKind::kCopy && staging > 0) {
        op.latency_ns -= staging;
        op.late_ns += staging;
      }
      g.ops.push_back(op);
    }
  }
  share_busy_time(trace, g);
  return g;
}

}  // namespace

bool is_allocation(std::string_view n) {
  for (std::string_view name :
       {"cudaMalloc", "cudaFree", "cudaMallocHost", "cudaFreeHost", "cudaHostAlloc", "hipMalloc",
        "hipFree", "hipHostMalloc", "hipHostFree", "cuMemCreate", "cuMemMap", "cuMemUnmap",
        "cuMemRelease", "cuMemSetAccess", "cudaHostRegister", "hipExtMallocWithFlags"}) {
    if (n == name) return true;
  }
  return false;
}

bool is_synchronisation(std::string_view n) {
  return n.find("Synchronize") != std::string_view::npos || n == "cudaMemcpy" ||
         n == "hipMemcpyWithStream" || n == "hipMemcpy" || n == "cudaMemcpy2D";
}

StepGraph step_graph(const Trace& trace, const StepView& view, const HostMarks& marks) {
  const Context c = context_of(trace, marks);
  StepGraph g = graph_of(c, view);
  find_dependencies(c, g);
  if (g.repeats) take_typical(c, view, g);
  mark_reads(trace, g);
  return g;
}

void for_each_uneven(const Trace& trace, const StepView& view, const HostMarks& marks,
                     const std::function<void(const StepView&, const StepGraph&)>& visit) {
  const Context c = context_of(trace, marks);
  for (const StepWindow& w : view.uneven) {
    StepView one = view;
    one.uneven.clear();
    one.from_ns = w.from_ns;
    one.to_ns = w.to_ns;
    one.host_from_ns = w.host_from_ns;
    one.host_to_ns = w.host_to_ns;
    visit(one, graph_of(c, one));
  }
}

}  // namespace assay
