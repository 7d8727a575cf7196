// The longest path's working state: what the builder finds in a trace and the sweep computes.
// Internal to critical_path*.cc.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "diagnose/critical_path.h"

namespace assay::path {

constexpr int64_t kFirst = std::numeric_limits<int64_t>::min() / 4;
// A thread that was idle for this long resumes because somebody let it; shorter pauses are Python.
constexpr int64_t kHandOver = 100'000;  // ns

// Work of a thread without a pause in it.
struct Piece {
  int64_t start, end, before;  // before: work of the thread until start
  uint32_t name;
};

struct Stretch {
  int64_t start, end;
  uint32_t name;
};

// Where a length came from: the work of a thread up to a moment, or a device event.
struct Source {
  int32_t thread = -1;
  int32_t join = -1;    // of that thread: index into Sweep::joins
  int64_t until = 0;    // of that thread
  int32_t device = -1;  // index into Sweep::nodes
};

struct Join {
  int64_t at = kFirst;
  int64_t base = 0;  // length minus work of the thread, at `at`
  Source from;
};

struct DeviceNode {
  int32_t event = -1;      // index into Trace::device
  int32_t previous = -1;   // on its stream, in the window
  bool queued = false;     // the stream was busy when it was launched, or nobody launched it
  int64_t paused_ns = 0;   // since the one before on its stream
  int64_t length_ns = -1;  // at its end; -1: not yet known
  PathKind kind = PathKind::kLaunch;
  int64_t delay_ns = 0;
  Source from;
  std::vector<int32_t> waits;  // events of other streams
};

struct HostThread {
  std::vector<Piece> pieces;
  int32_t join = -1;
};

enum class MomentKind : uint8_t { kResume, kWaited, kLaunch, kDevice, kPause };
struct Moment {
  int64_t at;
  MomentKind kind;
  int32_t index;  // thread, wait, launch (runtime), node, thread
  int64_t since;  // of a resume: when the thread paused
};

// A host call that waits for device events.
struct Wait {
  int32_t runtime;
  std::vector<int32_t> nodes;
};

// A thread that stopped working for a while, and how far its path had come.
struct Pause {
  int32_t thread = -1;
  int64_t at = kFirst, length = 0;
  Source from;
};

struct Sweep {
  const Trace& trace;
  int64_t from_ns, to_ns;
  std::vector<HostThread> threads{};
  std::vector<DeviceNode> nodes{};
  std::map<std::pair<int32_t, int32_t>, std::vector<int32_t>> streams{};  // nodes by launch
  std::vector<Join> joins{};
  std::vector<Wait> waits{};
  std::vector<Moment> moments{};
  std::vector<std::pair<int64_t, Source>> launches{};  // by runtime; length -1: not yet known
  Pause paused[2] = {};                                // of two threads, the latest first
};

inline int64_t end_of(const DeviceEvent& e) {
  return e.start_ns + std::max<int64_t>(0, e.duration_ns);
}
inline int64_t end_of(const RuntimeEvent& e) {
  return e.start_ns + std::max<int64_t>(0, e.duration_ns);
}
int64_t node_end(const Sweep&, int32_t node);

// Which device events take part: those launched in the window; those that start in it, whoever
// launched them; or all of a file.
enum class Take { kLaunched, kStarted, kAll };

// Fills nodes, streams, waits and threads.
void build(Sweep&, Take);

}  // namespace assay::path
