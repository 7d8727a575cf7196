// What a trace says of its graph: device events by stream, host calls that wait, work of threads.
#include "diagnose/critical_path_sweep.h"

namespace assay::path {

int64_t node_end(const Sweep& s, int32_t node) {
  return end_of(s.trace.device[static_cast<size_t>(s.nodes[static_cast<size_t>(node)].event)]);
}

namespace {

// --- What waits on the host --------------------------------------------------------------------

constexpr size_t kStreamsLookedAt = 4096;  // by one wait for all of them; real files have dozens

bool waits_by_name(std::string_view name) { return name.find("Synchronize") != name.npos; }

// Runtime events by correlation, sorted.
std::vector<std::pair<uint64_t, int32_t>> by_correlation(const Trace& trace) {
  std::vector<std::pair<uint64_t, int32_t>> index;
  for (size_t i = 0; i < trace.runtime.size(); ++i)
    if (trace.runtime[i].correlation != 0)
      index.emplace_back(trace.runtime[i].correlation, static_cast<int32_t>(i));
  std::sort(index.begin(), index.end());
  return index;
}

int32_t find_runtime(const std::vector<std::pair<uint64_t, int32_t>>& index, int64_t correlation) {
  if (correlation <= 0) return -1;
  const auto at = std::lower_bound(index.begin(), index.end(),
                                   std::pair{static_cast<uint64_t>(correlation), int32_t{-1}});
  return at != index.end() && at->first == static_cast<uint64_t>(correlation) ? at->second : -1;
}

int64_t asked_at(const Sweep& s, int32_t node) {
  const DeviceEvent& e =
      s.trace.device[static_cast<size_t>(s.nodes[static_cast<size_t>(node)].event)];
  return e.launch < 0 ? kFirst : s.trace.runtime[static_cast<size_t>(e.launch)].start_ns;
}

using Nodes = std::vector<int32_t>;

// The first node of a stream that was launched at t or later.
Nodes::const_iterator launched_from(const Sweep& s, const Nodes& stream, int64_t t) {
  return std::lower_bound(stream.begin(), stream.end(), t,
                          [&](int32_t node, int64_t at) { return asked_at(s, node) < at; });
}

// The last one before it; -1: none.
int32_t launched_before(const Sweep& s, const Nodes& stream, int64_t t) {
  const Nodes::const_iterator after = launched_from(s, stream, t);
  return after == stream.begin() ? -1 : *(after - 1);
}

// The node that a recorded event stands for: the last one of the stream before the record.
int32_t recorded(const Sweep& s, const SyncEvent& sync,
                 const std::vector<std::pair<uint64_t, int32_t>>& index) {
  const int32_t record = find_runtime(index, sync.wait_on_correlation);
  if (record < 0) return -1;
  const int64_t at = s.trace.runtime[static_cast<size_t>(record)].start_ns;
  const auto stream = s.streams.find({sync.device, static_cast<int32_t>(sync.wait_on_stream)});
  return stream == s.streams.end() ? -1 : launched_before(s, stream->second, at);
}

void add_stream_wait(Sweep& s, const SyncEvent& sync, int32_t source, int64_t called) {
  const auto stream = s.streams.find({sync.device, sync.stream});
  if (stream == s.streams.end()) return;
  const Nodes::const_iterator next = launched_from(s, stream->second, called);
  if (next != stream->second.end() && *next != source)
    s.nodes[static_cast<size_t>(*next)].waits.push_back(source);
}

bool in_window(const Sweep& s, int64_t t) { return t >= s.from_ns && t <= s.to_ns; }

// Waits that the profiler recorded. Returns which runtime events they are.
std::vector<bool> recorded_waits(Sweep& s) {
  std::vector<bool> waiting(s.trace.runtime.size(), false);
  const std::vector<std::pair<uint64_t, int32_t>> index = by_correlation(s.trace);
  for (const SyncEvent& sync : s.trace.syncs) {
    const int32_t call = find_runtime(index, static_cast<int64_t>(sync.correlation));
    if (call < 0) continue;
    const RuntimeEvent& runtime = s.trace.runtime[static_cast<size_t>(call)];
    if (!in_window(s, runtime.start_ns)) continue;
    const std::string_view kind = s.trace.text(sync.kind);
    const int32_t source = recorded(s, sync, index);
    if (kind == "Stream Wait Event") {
      if (source >= 0) add_stream_wait(s, sync, source, runtime.start_ns);
      continue;
    }
    waiting[static_cast<size_t>(call)] = true;
    Wait wait{call, {}};
    if (kind == "Event Sync") {
      if (source >= 0) wait.nodes.push_back(source);
    } else {
      size_t looked_at = 0;
      for (const auto& [stream, nodes] : s.streams) {
        if (++looked_at > kStreamsLookedAt) break;
        if (kind == "Stream Sync" && stream.second != sync.stream) continue;
        const int32_t last = launched_before(s, nodes, runtime.start_ns);
        if (last >= 0) wait.nodes.push_back(last);
      }
    }
    s.waits.push_back(std::move(wait));
  }
  return waiting;
}

// Waits known by the name of the call only: they waited for what ended last while they lasted.
void named_waits(Sweep& s, std::vector<bool>& waiting) {
  std::vector<int32_t> by_end(s.nodes.size());
  for (size_t i = 0; i < by_end.size(); ++i) by_end[i] = static_cast<int32_t>(i);
  const auto end = [&](int32_t node) { return node_end(s, node); };
  std::sort(by_end.begin(), by_end.end(), [&](int32_t a, int32_t b) { return end(a) < end(b); });
  for (size_t i = 0; i < s.trace.runtime.size(); ++i) {
    const RuntimeEvent& call = s.trace.runtime[i];
    if (waiting[i] || !in_window(s, call.start_ns) || !waits_by_name(s.trace.text(call.name)))
      continue;
    waiting[i] = true;
    const auto after = std::upper_bound(by_end.begin(), by_end.end(), end_of(call),
                                        [&](int64_t at, int32_t node) { return at < end(node); });
    if (after == by_end.begin() || end(*(after - 1)) < call.start_ns) continue;
    Wait wait{static_cast<int32_t>(i), {}};
    for (auto at = after; at != by_end.begin() && end(*(at - 1)) == end(*(after - 1)) &&
                          wait.nodes.size() < kStreamsLookedAt;
         --at)
      wait.nodes.push_back(*(at - 1));
    s.waits.push_back(std::move(wait));
  }
}

// --- What runs on the host ---------------------------------------------------------------------

// Top-level stretches of every thread: operators and runtime calls that nothing else encloses.
std::vector<std::vector<Stretch>> stretches(const Sweep& s) {
  std::vector<std::vector<Stretch>> all(s.trace.threads.size());
  const auto add = [&](int32_t thread, int64_t start, int64_t duration, uint32_t name) {
    if (thread < 0 || static_cast<size_t>(thread) >= all.size() || !in_window(s, start)) return;
    if (duration >= 0) all[static_cast<size_t>(thread)].push_back({start, start + duration, name});
  };
  for (const HostEvent& e : s.trace.host)
    if (e.kind == HostKind::kOp) add(e.thread, e.start_ns, e.duration_ns, e.name);
  for (const RuntimeEvent& e : s.trace.runtime) add(e.thread, e.start_ns, e.duration_ns, e.name);
  for (std::vector<Stretch>& thread : all) {
    std::stable_sort(thread.begin(), thread.end(), [](const Stretch& a, const Stretch& b) {
      return a.start != b.start ? a.start < b.start : a.end > b.end;
    });
    std::vector<Stretch> top;
    for (const Stretch& e : thread) {
      if (!top.empty() && e.start < top.back().end) {
        top.back().end = std::max(top.back().end, e.end);
      } else {
        top.push_back(e);
      }
    }
    thread = std::move(top);
  }
  return all;
}

// Cuts the waiting calls out of the stretches.
void fill_threads(Sweep& s, const std::vector<bool>& waiting) {
  std::vector<std::vector<Stretch>> top = stretches(s);
  std::vector<std::vector<Stretch>> cuts(top.size());
  for (size_t i = 0; i < s.trace.runtime.size(); ++i) {
    const RuntimeEvent& e = s.trace.runtime[i];
    if (waiting[i] && e.thread >= 0 && static_cast<size_t>(e.thread) < cuts.size())
      cuts[static_cast<size_t>(e.thread)].push_back({e.start_ns, end_of(e), e.name});
  }
  s.threads.resize(top.size());
  for (size_t t = 0; t < top.size(); ++t) {
    std::vector<Piece>& pieces = s.threads[t].pieces;
    int64_t work = 0;
    const auto add = [&](int64_t start, int64_t end, uint32_t name) {
      if (end <= start) return;
      pieces.push_back({start, end, work, name});
      work += end - start;
    };
    size_t next = 0;  // cuts are in order of start, as runtime events are
    for (const Stretch& e : top[t]) {
      int64_t start = e.start;
      while (next < cuts[t].size() && cuts[t][next].end <= start) ++next;
      for (size_t c = next; c < cuts[t].size() && cuts[t][c].start < e.end; ++c) {
        add(start, std::min(cuts[t][c].start, e.end), e.name);
        start = std::max(start, cuts[t][c].end);
      }
      add(start, e.end, e.name);
    }
    s.threads[t].join = static_cast<int32_t>(s.joins.size());
    s.joins.emplace_back();
  }
}

// --- What runs on the device -------------------------------------------------------------------

void fill_nodes(Sweep& s, Take take) {
  const std::vector<DeviceEvent>& device = s.trace.device;
  const bool no_launches = std::none_of(device.begin(), device.end(),
                                        [](const DeviceEvent& e) { return e.launch >= 0; });
  struct Last {
    int64_t end = kFirst;
    int32_t node = -1;
  };
  std::map<std::pair<int32_t, int32_t>, Last> last;
  for (size_t i = 0; i < device.size(); ++i) {
    const DeviceEvent& e = device[i];
    if (e.duration_ns < 0) continue;
    const int64_t called =
        e.launch >= 0 ? s.trace.runtime[static_cast<size_t>(e.launch)].start_ns : kFirst;
    const bool launched = called != kFirst && (take == Take::kLaunched || in_window(s, called));
    const int64_t asked = launched ? called : e.start_ns;
    Last& before = last[{e.device, e.stream}];
    const bool taken = (launched || take != Take::kLaunched || no_launches) && in_window(s, asked);
    const int32_t previous = before.node;
    const int64_t ended = before.end;
    before = {std::max(before.end, end_of(e)), taken ? static_cast<int32_t>(s.nodes.size()) : -1};
    if (!taken) continue;
    DeviceNode node;
    node.event = static_cast<int32_t>(i);
    node.previous = previous;
    node.queued = !launched || ended > asked;
    node.paused_ns = ended == kFirst ? 0 : std::max<int64_t>(0, e.start_ns - ended);
    s.streams[{e.device, e.stream}].push_back(static_cast<int32_t>(s.nodes.size()));
    s.nodes.push_back(std::move(node));
  }
  for (auto& [stream, nodes] : s.streams)
    std::stable_sort(nodes.begin(), nodes.end(),
                     [&](int32_t a, int32_t b) { return asked_at(s, a) < asked_at(s, b); });
}

}  // namespace

void build(Sweep& s, Take take) {
  fill_nodes(s, take);
  std::vector<bool> waiting = recorded_waits(s);
  named_waits(s, waiting);
  fill_threads(s, waiting);
  s.launches.assign(s.trace.runtime.size(), {-1, Source{}});
}

}  // namespace assay::path
