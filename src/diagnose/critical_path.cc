// The longest path, in one sweep over time.
//
// Every dependency points forward in time, so one pass over the moments at which something is
// decided (a launch, a start on the device, the end of a wait, a thread that resumes) computes the
// longest path to each of them. A host thread is not a chain of nodes but a function: the length at
// time t is a base, set by the last join, plus the time the thread has worked since. That makes the
// number of moments that of launches and waits, not of operators.
//
// Example: the host works from 0 to 50, launches a kernel at 10 that starts at 15 and ends at 95,
// and waits for it from 50 to 100. Length at the launch 10, at the kernel's start 15, at its end
// 95; at 100 the host joins: max(50, 95). The path is host 10, launch 5, device 80.
#include "diagnose/critical_path.h"

#include "diagnose/critical_path_sweep.h"

namespace assay {
namespace path {
namespace {

// Work of a thread until t.
int64_t worked(const HostThread& thread, int64_t t) {
  const auto after =
      std::upper_bound(thread.pieces.begin(), thread.pieces.end(), t,
                       [](int64_t at, const Piece& piece) { return at < piece.start; });
  if (after == thread.pieces.begin()) return 0;
  const Piece& piece = *(after - 1);
  return piece.before + std::min(t, piece.end) - piece.start;
}

int64_t length_at(const Sweep& s, int32_t thread, int64_t t) {
  const HostThread& host = s.threads[static_cast<size_t>(thread)];
  return s.joins[static_cast<size_t>(host.join)].base + worked(host, t);
}

Source source_at(const Sweep& s, int32_t thread, int64_t t) {
  return {thread, s.threads[static_cast<size_t>(thread)].join, t, -1};
}

// --- The sweep ---------------------------------------------------------------------------------

void fill_moments(Sweep& s) {
  for (size_t i = 0; i < s.nodes.size(); ++i) {
    const DeviceEvent& e = s.trace.device[static_cast<size_t>(s.nodes[i].event)];
    s.moments.push_back({e.start_ns, MomentKind::kDevice, static_cast<int32_t>(i), 0});
    if (e.launch >= 0)
      s.moments.push_back({s.trace.runtime[static_cast<size_t>(e.launch)].start_ns,
                           MomentKind::kLaunch, e.launch, 0});
  }
  for (size_t i = 0; i < s.waits.size(); ++i)
    s.moments.push_back({end_of(s.trace.runtime[static_cast<size_t>(s.waits[i].runtime)]),
                         MomentKind::kWaited, static_cast<int32_t>(i), 0});
  for (size_t t = 0; t < s.threads.size(); ++t) {
    const std::vector<Piece>& pieces = s.threads[t].pieces;
    for (size_t i = 0; i < pieces.size(); ++i) {
      const int64_t since = i == 0 ? kFirst : pieces[i - 1].end;
      if (pieces[i].start - since >= kHandOver)
        s.moments.push_back({pieces[i].start, MomentKind::kResume, static_cast<int32_t>(t), since});
      const bool pauses =
          i + 1 == pieces.size() || pieces[i + 1].start - pieces[i].end >= kHandOver;
      if (pauses)
        s.moments.push_back({pieces[i].end, MomentKind::kPause, static_cast<int32_t>(t), 0});
    }
  }
  std::stable_sort(s.moments.begin(), s.moments.end(), [](const Moment& a, const Moment& b) {
    return a.at != b.at ? a.at < b.at : a.kind < b.kind;
  });
}

void join(Sweep& s, int32_t thread, int64_t at, int64_t length, const Source& from) {
  HostThread& host = s.threads[static_cast<size_t>(thread)];
  if (length <= length_at(s, thread, at)) return;
  host.join = static_cast<int32_t>(s.joins.size());
  s.joins.push_back({at, length - worked(host, at), from});
}

// A thread resumes: it may continue what the thread that paused last was doing.
void resume(Sweep& s, const Moment& moment) {
  const Pause& other = s.paused[s.paused[0].thread == moment.index ? 1 : 0];
  if (other.thread < 0 || other.at <= moment.since) return;
  if (s.trace.threads[static_cast<size_t>(other.thread)].process !=
      s.trace.threads[static_cast<size_t>(moment.index)].process)
    return;
  join(s, moment.index, moment.at, other.length, other.from);
}

void pause(Sweep& s, const Moment& moment) {
  if (s.paused[0].thread != moment.index) s.paused[1] = s.paused[0];
  s.paused[0] = {moment.index, moment.at, length_at(s, moment.index, moment.at),
                 source_at(s, moment.index, moment.at)};
}

void waited(Sweep& s, const Moment& moment) {
  const Wait& wait = s.waits[static_cast<size_t>(moment.index)];
  const int32_t thread = s.trace.runtime[static_cast<size_t>(wait.runtime)].thread;
  if (thread < 0 || static_cast<size_t>(thread) >= s.threads.size()) return;
  for (const int32_t node : wait.nodes) {
    const int64_t length = s.nodes[static_cast<size_t>(node)].length_ns;
    if (length >= 0) join(s, thread, moment.at, length, {-1, -1, 0, node});
  }
}

void start_device(Sweep& s, int32_t index) {
  DeviceNode& node = s.nodes[static_cast<size_t>(index)];
  const DeviceEvent& e = s.trace.device[static_cast<size_t>(node.event)];
  int64_t length = 0;
  node.kind = PathKind::kBetween;
  const auto offer = [&](int64_t from_length, int64_t delay, PathKind kind, const Source& from) {
    if (from_length + delay < length) return;
    length = from_length + delay;
    node.delay_ns = delay;
    node.kind = kind;
    node.from = from;
  };
  // Only the last of its causes explains the delay before the start; the others come with none.
  const int64_t asked =
      e.launch < 0 ? kFirst : s.trace.runtime[static_cast<size_t>(e.launch)].start_ns;
  int64_t last_cause = node.queued ? e.start_ns - node.paused_ns : asked;
  for (const int32_t other : node.waits) last_cause = std::max(last_cause, node_end(s, other));
  const auto delay_after = [&](int64_t cause) {
    return cause < last_cause ? 0 : std::max<int64_t>(0, e.start_ns - cause);
  };
  for (const int32_t other : node.waits) {
    const int64_t before = s.nodes[static_cast<size_t>(other)].length_ns;
    if (before >= 0)
      offer(before, delay_after(node_end(s, other)), PathKind::kBetween, {-1, -1, 0, other});
  }
  if (node.queued && node.previous >= 0) {
    const int64_t before = s.nodes[static_cast<size_t>(node.previous)].length_ns;
    if (before >= 0)
      offer(before, delay_after(e.start_ns - node.paused_ns), PathKind::kBetween,
            {-1, -1, 0, node.previous});
  }
  if (!node.queued && s.launches[static_cast<size_t>(e.launch)].first >= 0) {
    const auto& [before, from] = s.launches[static_cast<size_t>(e.launch)];
    offer(before, delay_after(asked), PathKind::kLaunch, from);
  }
  node.length_ns = length + e.duration_ns;
}

void run(Sweep& s) {
  for (const Moment& moment : s.moments) {
    switch (moment.kind) {
      case MomentKind::kResume:
        resume(s, moment);
        break;
      case MomentKind::kPause:
        pause(s, moment);
        break;
      case MomentKind::kWaited:
        waited(s, moment);
        break;
      case MomentKind::kLaunch: {
        const int32_t thread = s.trace.runtime[static_cast<size_t>(moment.index)].thread;
        if (thread >= 0 && static_cast<size_t>(thread) < s.threads.size())
          s.launches[static_cast<size_t>(moment.index)] = {length_at(s, thread, moment.at),
                                                           source_at(s, thread, moment.at)};
        break;
      }
      case MomentKind::kDevice:
        start_device(s, moment.index);
        break;
    }
  }
}

// --- The way back ------------------------------------------------------------------------------

constexpr int kDeepest = 1000;  // levels of call stack that are searched for a name

// What the thread's host was in at t: the innermost annotation or Python frame.
uint32_t name_of_gap(const Sweep& s, const std::vector<int32_t>& events, int64_t t) {
  const auto after = std::upper_bound(events.begin(), events.end(), t, [&](int64_t at, int32_t i) {
    return at < s.trace.host[static_cast<size_t>(i)].start_ns;
  });
  if (after == events.begin()) return 0;
  int depth = 0;
  for (int32_t i = *(after - 1); i >= 0 && depth < kDeepest;
       i = s.trace.host[static_cast<size_t>(i)].parent, ++depth) {
    const HostEvent& e = s.trace.host[static_cast<size_t>(i)];
    const bool names = e.kind == HostKind::kAnnotation || e.kind == HostKind::kPython;
    if (names && e.start_ns + e.duration_ns >= t) return e.name;
  }
  return 0;
}

struct Tracer {
  const Sweep& s;
  int rank;
  std::vector<PathSegment> reversed;
  std::vector<std::vector<int32_t>> host_events;  // by thread, filled when needed

  const std::vector<int32_t>& events_of(int32_t thread) {
    if (host_events.empty()) {
      host_events.resize(s.trace.threads.size());
      for (size_t i = 0; i < s.trace.host.size(); ++i) {
        const int32_t of = s.trace.host[i].thread;
        if (of >= 0 && static_cast<size_t>(of) < host_events.size())
          host_events[static_cast<size_t>(of)].push_back(static_cast<int32_t>(i));
      }
    }
    return host_events[static_cast<size_t>(thread)];
  }

  void add(PathKind kind, int32_t thread, const DeviceEvent* e, uint32_t name, int64_t start,
           int64_t duration) {
    if (duration <= 0) return;
    reversed.push_back(
        {kind, rank, thread, e ? e->device : -1, e ? e->stream : -1, name, start, duration});
  }

  // The work of a thread in [since, until], last piece first.
  void add_thread(int32_t thread, int64_t since, int64_t until) {
    const std::vector<Piece>& pieces = s.threads[static_cast<size_t>(thread)].pieces;
    auto after = std::upper_bound(pieces.begin(), pieces.end(), until,
                                  [](int64_t at, const Piece& p) { return at < p.start; });
    int64_t later = until;  // start of what follows
    while (after != pieces.begin()) {
      const Piece& piece = *--after;
      const int64_t end = std::min(piece.end, until), start = std::max(piece.start, since);
      if (end <= since) break;
      if (later > end)
        add(PathKind::kGap, thread, nullptr,
            name_of_gap(s, events_of(thread), end + (later - end) / 2), end, later - end);
      add(PathKind::kHost, thread, nullptr, piece.name, start, end - start);
      later = start;
    }
  }

  void trace_back(Source at) {
    while (true) {
      if (at.device >= 0) {
        const DeviceNode& node = s.nodes[static_cast<size_t>(at.device)];
        const DeviceEvent& e = s.trace.device[static_cast<size_t>(node.event)];
        add(PathKind::kDevice, -1, &e, e.name, e.start_ns, e.duration_ns);
        add(node.kind, -1, &e, e.name, e.start_ns - node.delay_ns, node.delay_ns);
        at = node.from;
      } else if (at.thread >= 0) {
        const Join& from = s.joins[static_cast<size_t>(at.join)];
        add_thread(at.thread, from.at, at.until);
        at = from.from;
      } else {
        return;
      }
    }
  }
};

Source longest(const Sweep& s) {
  Source best;
  int64_t most = -1;
  for (size_t t = 0; t < s.threads.size(); ++t) {
    if (s.threads[t].pieces.empty()) continue;
    const int64_t end = std::max(s.threads[t].pieces.back().end,
                                 s.joins[static_cast<size_t>(s.threads[t].join)].at);
    const int64_t length = length_at(s, static_cast<int32_t>(t), end);
    if (length <= most) continue;
    most = length;
    best = source_at(s, static_cast<int32_t>(t), end);
  }
  for (size_t i = 0; i < s.nodes.size(); ++i) {
    if (s.nodes[i].length_ns <= most) continue;
    most = s.nodes[i].length_ns;
    best = {-1, -1, 0, static_cast<int32_t>(i)};
  }
  return best;
}

}  // namespace

CriticalPath path_in(const Trace& trace, int64_t from_ns, int64_t to_ns, Take take) {
  Sweep s{trace, from_ns, to_ns};
  build(s, take);
  fill_moments(s);
  run(s);

  Tracer tracer{s, trace.rank, {}, {}};
  tracer.trace_back(longest(s));
  CriticalPath path;
  path.segments.assign(tracer.reversed.rbegin(), tracer.reversed.rend());
  for (const PathSegment& segment : path.segments) {
    path.by_kind[static_cast<size_t>(segment.kind)] += segment.duration_ns;
    if (segment.kind != PathKind::kGap) path.total_ns += segment.duration_ns;
  }
  if (!path.segments.empty()) {
    path.from_ns = path.segments.front().start_ns;
    path.to_ns = path.segments.back().start_ns + path.segments.back().duration_ns;
  }
  return path;
}

}  // namespace path

CriticalPath critical_path(const Trace& trace, int64_t from_ns, int64_t to_ns) {
  return path::path_in(trace, from_ns, to_ns, path::Take::kLaunched);
}

CriticalPath critical_path(const Trace& trace) {
  return path::path_in(trace, path::kFirst, -path::kFirst, path::Take::kAll);
}

CriticalPath critical_path_between(const Trace& trace, int64_t from_ns, int64_t to_ns) {
  return path::path_in(trace, from_ns, to_ns, path::Take::kStarted);
}

CriticalPath critical_path_of_step(const Trace& trace, size_t step) {
  if (step >= trace.steps.size()) return critical_path(trace);
  const HostEvent& e = trace.host[static_cast<size_t>(trace.steps[step])];
  return critical_path(trace, e.start_ns, e.start_ns + e.duration_ns);
}

}  // namespace assay
