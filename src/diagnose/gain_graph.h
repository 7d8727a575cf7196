// One training step as a graph of what had to happen before what: the host's calls in order, the
// device's operations in their streams, and the waits between the two.
//
// The step of a profile is a template. Every call of the device runtime becomes a HostCall with the
// host's work before it; everything it starts becomes DeviceOps. Times are split into what belongs
// to the thing itself (a kernel's duration, the framework's work between two launches) and what was
// waiting, and the waiting is thrown away: gain_replay.h finds it again from the dependencies. So a
// cause can be taken out, and what it had hidden shows.
//
//   host     --work--[launch]--work--[launch]--work--[sync .............]--data--[launch]--
//                        \ latency       \ latency        ^ return
//   stream                [ kernel ]-gap-[ kernel .......]/
//
// Host threads that launch work are one line of calls in order of time: in training they take
// turns (the main thread waits while the autograd thread launches the backward pass, and Python
// lets one run at a time). Where calls of two threads overlap, only the advance of the later end
// counts.
//
// Profiled hosts hiccup, most of all in the first step after the profiler started. Where all steps
// make the same calls, the host's work before a call is in proportion to its lower quartile over
// the steps, and the sum is that of a quick step (the lower quartile again); what has a cause of
// its own (data, pauses) is the mean.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "diagnose/gain_marks.h"
#include "diagnose/step_view.h"
#include "ingest/trace.h"

namespace assay {

enum class CallKind : uint8_t {
  kLaunch,    // starts device work and returns
  kSync,      // waits for the device
  kCopy,      // a copy between host and device that holds the host
  kAllocate,  // device or pinned memory asked for or given back
  kOther,     // queries, events
};

constexpr int32_t kNoLane = -1;
constexpr int32_t kAllLanes = -2;

struct HostCall {
  // Host time before the call, by what the host did with it.
  int64_t work_ns = 0;   // framework and Python: launching
  int64_t data_ns = 0;   // fetching or preparing the next batch
  int64_t pin_ns = 0;    // held by the loader's thread that pins batches
  int64_t read_ns = 0;   // working on values that it has read from the device
  int64_t pause_ns = 0;  // nothing recorded: garbage collection or other work of the interpreter

  CallKind kind = CallKind::kOther;
  int64_t call_ns = 0;          // the call itself, without waiting
  int32_t wait_lane = kNoLane;  // returns when all earlier work of this lane is done
  int64_t return_ns = 0;        // from the end of that work to the return; a copy may end later
  int64_t waited_ns = 0;        // how long it really waited; not used by the replay
  bool after_copy = false;      // a synchronisation that only completes the held copy before it
  bool small_copy = false;      // a synchronising copy of so few bytes that the wait is its cost
  bool for_read = false;        // only makes or fetches a value for the host (gain_reads.h) ...
  double kept = 1;              // ... and this share of the work before it is not for that
  int32_t first_op = 0, ops = 0;
  int32_t recorded = 0;  // operators that the profiler wrote down before the call, and the call
  int32_t runtime = -1;  // index into Trace::runtime; -1: the end of the step
};

// A call that starts work or asks for nothing, and does not hold the host.
inline bool is_launching(const HostCall& call) {
  return call.kind == CallKind::kLaunch || call.kind == CallKind::kOther;
}

struct DeviceOp {
  int32_t lane = 0;  // a stream of a device
  int64_t duration_ns = 0;
  int64_t busy_ns = 0;     // its part of the device's busy time (gain_share.h)
  bool computes = false;   // a kernel, and no communication
  int64_t gap_ns = 0;      // after the operation before it in its lane
  int64_t latency_ns = 0;  // after the start of its launch
  int64_t late_ns = 0;     // beyond both: something that the file does not show
  int32_t after = -1;      // an earlier operation of another lane that it waits for
  int64_t after_ns = 0;    // and how long after that one's end it starts
  int32_t event = -1;      // index into Trace::device
};

struct StepGraph {
  std::vector<HostCall> calls;  // the last is the end of the step
  std::vector<DeviceOp> ops;    // in the order of their launch
  int32_t lanes = 0;
  int64_t queue_limit = 0;  // operations that may wait on the device before a launch blocks
  bool recent = false;      // the host of a Hopper device or a later one
  int64_t launch_ns = 0;    // a launch there that finds room, under the profiler; 0: cannot tell
  bool repeats = false;     // a training step; else a whole file that ran once
  // The loader ran inside the training process, so that moving it out will make it compete.
  bool loader_in_process = false;
  bool data_annotated = false;   // the loader was seen by name
  bool pause_annotated = false;  // a garbage collection was seen by name
  bool anomaly_mode = false;     // PyTorch checks every gradient (gain_reads.h)
  // Silence of the host is the interpreter's: a training loop whose operators are recorded.
  bool pauses_told = false;
  int steps = 0;         // over which the host's work was taken
  int paused_steps = 0;  // of these, with a pause
};

// REQUIRES: view comes from step_view(trace), marks from host_marks(trace).
StepGraph step_graph(const Trace& trace, const StepView& view, const HostMarks& marks);

// Calls `visit` with the graph of each uneven step of the view as it was, one after another, and
// with a view whose window is that step's.
void for_each_uneven(const Trace&, const StepView&, const HostMarks&,
                     const std::function<void(const StepView&, const StepGraph&)>& visit);

// A call that asks for or returns device memory or pinned host memory.
bool is_allocation(std::string_view runtime_name);
// A call that waits for the device.
bool is_synchronisation(std::string_view runtime_name);

}  // namespace assay
