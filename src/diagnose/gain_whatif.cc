#include "diagnose/gain_whatif.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/text.h"
#include "diagnose/gain_replay.h"
#include "diagnose/gain_share.h"
#include "ingest/breakdown.h"

namespace assay {
namespace {

const DeviceEvent& event_of(const Trace& t, const DeviceOp& op) {
  return t.device[static_cast<size_t>(op.event)];
}

bool is_upload(const Trace& t, const DeviceEvent& e) {
  const std::string_view name = t.text(e.name);
  return e.kind == DeviceKind::kCopy &&
         (contains(name, "HtoD") || contains(name, "Host -> Device"));
}

bool is_host_copy(const Trace& t, const DeviceEvent& e) {
  const std::string_view name = t.text(e.name);
  return e.kind == DeviceKind::kCopy &&
         (contains(name, "HtoD") || contains(name, "DtoH") || contains(name, "Host"));
}

bool is_pageable(const Trace& t, const DeviceEvent& e) {
  return contains(t.text(e.name), "Pageable");
}

}  // namespace

StepGraph without_profiler(StepGraph g) {
  const double faster =
      g.launch_ns > kLaunchUsual
          ? std::max(static_cast<double>(kLaunchUsual) / static_cast<double>(g.launch_ns),
                     1 / kProfiledMost)
          : 1;
  const int64_t each = g.recent ? kProfilerCost : kProfilerCostOlder;
  for (HostCall& call : g.calls) {
    const int64_t cost = std::min(call.recorded * each, call.work_ns / 2);
    call.work_ns = std::llround(static_cast<double>(call.work_ns - cost) * faster);
    if (!is_launching(call)) continue;
    call.call_ns = std::llround(static_cast<double>(call.call_ns) * faster);
  }
  return g;
}

StepGraph paced_by_loader(StepGraph g, Seconds measured) {
  const double waited = static_cast<double>(data_ns(g)) * 1e-9;
  if (g.loader_in_process || !g.repeats || waited < kWaitLeast * measured.v) return g;
  const Seconds faster = measured - replay(g);
  if (faster.v <= 0 || measured.v > kPeriodMost) return g;
  HostCall& longest =
      *std::max_element(g.calls.begin(), g.calls.end(),
                        [](const HostCall& a, const HostCall& b) { return a.data_ns < b.data_ns; });
  longest.data_ns += std::llround(faster.v * 1e9);
  return g;
}

StepGraph without_data(StepGraph g, const Trace& t) {
  if (pin_ns(g) > data_ns(g)) {
    for (HostCall& call : g.calls) call.pin_ns = 0;
    return g;
  }
  const bool moves = g.loader_in_process && data_ns(g) > 0;
  for (HostCall& call : g.calls) {
    call.data_ns = 0;
    if (!moves) continue;
    call.work_ns = std::llround(static_cast<double>(call.work_ns) * kBesideWorkers);
    call.call_ns = std::llround(static_cast<double>(call.call_ns) * kBesideWorkers);
  }
  if (!moves) return g;
  for (DeviceOp& op : g.ops) {
    const DeviceEvent& e = event_of(t, op);
    if (!is_upload(t, e) || !is_pageable(t, e)) continue;
    op.duration_ns += e.bytes / kPageBytes * kPageFault;
  }
  return g;
}

bool waits(const HostCall& call) {
  const bool sync = call.kind == CallKind::kSync && !call.after_copy;
  return call.wait_lane != kNoLane && (sync || (call.kind == CallKind::kCopy && call.small_copy));
}

StepGraph without_syncs(StepGraph g) {
  size_t since = 0;  // the last call that started work, or the last that was looked at
  for (size_t i = 0; i < g.calls.size(); ++i) {
    HostCall& call = g.calls[i];
    if (waits(call)) call.wait_lane = kNoLane;
    if (call.read_ns > 0) {
      call.read_ns = 0;
      // Nor does anything wait for the values that were worked on.
      for (; since < i; ++since) {
        HostCall& copy = g.calls[since];
        if (copy.after_copy || copy.kind == CallKind::kCopy) copy.wait_lane = kNoLane;
      }
    }
    if (call.ops > 0) since = i;
  }
  return g;
}

StepGraph without_allocation(StepGraph g) {
  bool again = false;  // the call before was one as well: between the two is the allocator's work
  for (HostCall& call : g.calls) {
    const bool before = again;
    again = call.kind == CallKind::kAllocate;
    if (!again) continue;
    call.wait_lane = kNoLane;
    call.call_ns = 0;
    if (before) call.work_ns = 0;
  }
  return g;
}

StepGraph without_pauses(StepGraph g) {
  for (HostCall& call : g.calls) call.pause_ns = 0;
  return g;
}

StepGraph with_pinned_copies(StepGraph g, const Trace& t, const Accelerator* accelerator) {
  const double rate = accelerator != nullptr && accelerator->pcie_bandwidth.v > 0
                          ? accelerator->pcie_bandwidth.v * kPinnedShare
                          : kPinnedDefault;
  const int32_t side = g.lanes;
  bool input = true;  // until the step's first kernel
  for (HostCall& call : g.calls) {
    for (int32_t i = 0; i < call.ops; ++i) {
      DeviceOp& op = g.ops[static_cast<size_t>(call.first_op + i)];
      const DeviceEvent& e = event_of(t, op);
      if (e.kind == DeviceKind::kKernel) input = false;
      // ROCm does not say what kind of memory it was; a copy that holds the host is pageable.
      if (!is_host_copy(t, e) || (!is_pageable(t, e) && call.kind != CallKind::kCopy)) continue;
      const int64_t pinned = std::llround(static_cast<double>(e.bytes) / rate * 1e9);
      op.duration_ns = std::min(op.duration_ns, pinned);
      op.late_ns = 0;  // the driver's staging
      if (call.kind != CallKind::kCopy || call.small_copy) continue;
      call.wait_lane = kNoLane;
      call.call_ns = std::min<int64_t>(call.call_ns, kGraphLaunch);
      if (input && is_upload(t, e)) {
        op.lane = side;
        g.lanes = side + 1;
      }
    }
    if (call.after_copy) call.wait_lane = kNoLane;
  }
  return g;
}

StepGraph with_graphs(StepGraph g) {
  bool in_graph = false;
  for (HostCall& call : g.calls) {
    const bool captured = call.kind == CallKind::kLaunch || call.kind == CallKind::kOther;
    // Queries and the end of the step launch nothing: they neither start a graph nor break one.
    call.work_ns = 0;
    const bool held = call.data_ns > 0 || call.pin_ns > 0 || call.read_ns > 0 || call.pause_ns > 0;
    if (!captured || held) in_graph = false;
    if (!captured) continue;
    call.call_ns = !in_graph && call.ops > 0 ? kGraphLaunch : 0;
    for (int32_t i = 0; i < call.ops; ++i) {
      DeviceOp& op = g.ops[static_cast<size_t>(call.first_op + i)];
      if (op.gap_ns >= 0) op.gap_ns = kGraphGap;  // less than none: it overlaps the one before
      if (!in_graph) continue;
      op.latency_ns = 0;
      if (op.after < 0) op.late_ns = 0;  // the launch's, which is no more
    }
    if (call.ops > 0) in_graph = true;
  }
  g.queue_limit = std::max<int64_t>(g.queue_limit, static_cast<int64_t>(g.ops.size()));
  return g;
}

StepGraph with_one_optimizer_call(StepGraph g, const KernelTable& table) {
  std::vector<HostCall*> updates;
  for (HostCall& call : g.calls) {
    if (call.kind != CallKind::kLaunch || call.ops == 0) continue;
    const DeviceOp& op = g.ops[static_cast<size_t>(call.first_op)];
    if (table.of(static_cast<size_t>(op.event)).kind == KernelKind::kOptimizer) {
      updates.push_back(&call);
    }
  }
  if (updates.size() < kOptimizerCalls) return g;
  for (HostCall* call : std::span(updates).subspan(1)) {
    call->work_ns = call->call_ns = 0;
    for (int32_t i = 0; i < call->ops; ++i) {
      DeviceOp& op = g.ops[static_cast<size_t>(call->first_op + i)];
      op.gap_ns = std::min<int64_t>(op.gap_ns, 0);
    }
  }
  return g;
}

StepGraph with_durations(StepGraph g, const std::vector<int64_t>& duration_ns) {
  for (size_t i = 0; i < g.ops.size() && i < duration_ns.size(); ++i) {
    if (duration_ns[i] < 0) continue;
    // A kernel that is fused away leaves no gap behind either.
    if (duration_ns[i] == 0) g.ops[i].gap_ns = std::min<int64_t>(g.ops[i].gap_ns, 0);
    set_duration(g.ops[i], duration_ns[i]);
  }
  return g;
}

StepGraph without_launches(StepGraph g, const std::vector<int64_t>& duration_ns) {
  for (HostCall& call : g.calls) {
    if (call.kind != CallKind::kLaunch || call.ops == 0) continue;
    const auto first = duration_ns.begin() + call.first_op;
    if (!std::all_of(first, first + call.ops, [](int64_t ns) { return ns == 0; })) continue;
    call.work_ns = call.call_ns = 0;
  }
  return g;
}

StepGraph with_more_launches(StepGraph g, const std::vector<double>& launches) {
  if (launches.empty()) return g;
  double host = 0, calls = 0;
  for (const HostCall& call : g.calls) {
    if (call.kind != CallKind::kLaunch) continue;
    host += static_cast<double>(call.work_ns + call.call_ns);
    ++calls;
  }
  if (calls == 0) return g;
  for (HostCall& call : g.calls) {
    double more = 0;
    for (int32_t i = 0; i < call.ops; ++i) more += launches[static_cast<size_t>(call.first_op + i)];
    call.work_ns += std::llround(more * host / calls);
  }
  return g;
}

bool is_point_to_point(const Trace& t, const DeviceEvent& e) {
  // NCCL moves an all-to-all with its send and receive kernel: the kernel's name says nothing.
  auto sends = [](std::string_view name) {
    return (contains(name, "send") || contains(name, "recv")) && !contains(name, "all");
  };
  if (e.collective >= 0)
    return sends(t.text(t.collectives[static_cast<size_t>(e.collective)].name));
  int32_t op = e.op;
  for (int depth = 0; op >= 0 && depth < 8; ++depth) {
    const HostEvent& h = t.host[static_cast<size_t>(op)];
    if (sends(t.text(h.name))) return true;
    op = h.parent;
  }
  return false;
}

StepGraph with_hidden_communication(StepGraph g, const Trace& t, const KernelTable& table,
                                    bool point_to_point, double share) {
  Intervals compute;
  for (const DeviceOp& op : g.ops) {
    const DeviceEvent& e = event_of(t, op);
    const KernelKind kind = table.of(static_cast<size_t>(op.event)).kind;
    if (kind == KernelKind::kCommunication || e.kind != DeviceKind::kKernel) continue;
    compute.push_back({e.start_ns, e.start_ns + e.duration_ns});
  }
  compute = union_of(std::move(compute));
  for (DeviceOp& op : g.ops) {
    const DeviceEvent& e = event_of(t, op);
    if (table.of(static_cast<size_t>(op.event)).kind != KernelKind::kCommunication) continue;
    if (is_point_to_point(t, e) != point_to_point || e.duration_ns <= 0) continue;
    const Intervals own = {{e.start_ns, e.start_ns + e.duration_ns}};
    const int64_t covered = std::min(op.duration_ns, length_ns(intersect(own, compute)));
    const auto exposed = static_cast<double>(op.duration_ns - covered);
    op.duration_ns -= std::llround(share * exposed);
  }
  return g;
}

int64_t data_ns(const StepGraph& g) {
  int64_t sum = 0;
  for (const HostCall& call : g.calls) sum += call.data_ns;
  return sum;
}

int64_t pin_ns(const StepGraph& g) {
  int64_t sum = 0;
  for (const HostCall& call : g.calls) sum += call.pin_ns;
  return sum;
}

int64_t read_ns(const StepGraph& g) {
  int64_t sum = 0;
  for (const HostCall& call : g.calls) sum += call.read_ns;
  return sum;
}

int64_t pause_ns(const StepGraph& g) {
  int64_t sum = 0;
  for (const HostCall& call : g.calls) sum += call.pause_ns;
  return sum;
}

}  // namespace assay
