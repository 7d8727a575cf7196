#include "diagnose/gain_replay.h"

#include <algorithm>
#include <vector>

namespace assay {
namespace {

// Twelve repeats fill a queue of 1,024 operations for any step of more than a hundred; the period
// is taken over the last four.
constexpr int kRepeats = 12;
constexpr int kMeasured = 4;
constexpr double kNever = -1e30;

// Times are in nanoseconds, as doubles: a hostile file's years do not overflow.
struct GainReplay {
  const StepGraph& graph;
  double scale;
  double now = 0;                // of the host
  std::vector<double> lane_end;  // of all work launched so far
  std::vector<double> end;       // of this repeat's operations
  std::vector<double> starts;    // of all operations, a ring of queue_limit
  size_t launched = 0;
  double first_start = 0;

  explicit GainReplay(const StepGraph& g, double host_scale)
      : graph(g),
        scale(host_scale),
        lane_end(static_cast<size_t>(std::max(g.lanes, 1)), kNever),
        end(g.ops.size(), kNever),
        starts(static_cast<size_t>(std::max<int64_t>(g.queue_limit, 1)), kNever) {}

  double device_end() const { return *std::max_element(lane_end.begin(), lane_end.end()); }

  void start_op(size_t i, double call_start) {
    const DeviceOp& op = graph.ops[i];
    const size_t lane = static_cast<size_t>(op.lane);
    double start = std::max(call_start + static_cast<double>(op.latency_ns),
                            lane_end[lane] + static_cast<double>(op.gap_ns));
    if (op.after >= 0) {
      start =
          std::max(start, end[static_cast<size_t>(op.after)] + static_cast<double>(op.after_ns));
    }
    start += static_cast<double>(op.late_ns);
    if (launched == 0) first_start = start;
    end[i] = start + static_cast<double>(op.duration_ns);
    lane_end[lane] = std::max(lane_end[lane], end[i]);
    starts[launched % starts.size()] = start;
    ++launched;
  }

  void step() {
    for (const HostCall& call : graph.calls) {
      now += static_cast<double>(call.work_ns) * scale +
             static_cast<double>(call.data_ns + call.pin_ns + call.read_ns + call.pause_ns);
      const double call_start = now;
      for (int32_t i = 0; i < call.ops; ++i) {
        start_op(static_cast<size_t>(call.first_op + i), call_start);
      }
      now += static_cast<double>(call.call_ns) * scale;
      if (call.ops > 0 && launched >= starts.size()) {
        now = std::max(now, starts[launched % starts.size()]);  // the oldest of the ring
      }
      if (call.wait_lane == kNoLane) continue;
      const double done = call.wait_lane == kAllLanes
                              ? device_end()
                              : lane_end[static_cast<size_t>(call.wait_lane)];
      now = std::max(now, done + static_cast<double>(call.return_ns));
    }
  }
};

}  // namespace

Seconds replay(const StepGraph& graph, const ReplayOptions& options) {
  GainReplay r(graph, options.host_scale);
  if (!graph.repeats) {
    r.step();
    // From the device's first work to its last: the window of a file without steps.
    return Seconds(graph.ops.empty() ? 0 : (r.device_end() - r.first_start) * 1e-9);
  }
  double host_before = 0, device_before = 0;
  for (int i = 0; i < kRepeats; ++i) {
    if (i == kRepeats - kMeasured) {
      host_before = r.now;
      device_before = r.device_end();
    }
    r.step();
  }
  // A host that still runs ahead has a shorter period than the device it feeds.
  const double host = r.now - host_before;
  const double device = graph.ops.empty() ? 0 : r.device_end() - device_before;
  return Seconds(std::max(host, device) * 1e-9 / kMeasured);
}

}  // namespace assay
