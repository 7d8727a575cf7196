#include "diagnose/gain_share.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace assay {
namespace {

// One end of an operation's run.
struct BusyEdge {
  int64_t at_ns;
  size_t op;
  bool begins;
};

bool is_computing(const DeviceEvent& e) {
  return e.kind == DeviceKind::kKernel && e.role != Role::kCommunication;
}

}  // namespace

// What one of n operations has gained by a time is the integral of 1/n up to it, the same for all:
// an operation's part is the difference between its end and its start, whatever ran in between.
void share_busy_time(const Trace& t, StepGraph& g) {
  std::vector<BusyEdge> edges;
  edges.reserve(2 * g.ops.size());
  for (size_t i = 0; i < g.ops.size(); ++i) {
    DeviceOp& op = g.ops[i];
    const DeviceEvent& e = t.device[static_cast<size_t>(op.event)];
    op.computes = is_computing(e);
    op.busy_ns = 0;
    if (op.duration_ns <= 0) continue;
    edges.push_back({e.start_ns, i, true});
    edges.push_back({e.start_ns + op.duration_ns, i, false});
  }
  std::stable_sort(edges.begin(), edges.end(),
                   [](const BusyEdge& a, const BusyEdge& b) { return a.at_ns < b.at_ns; });
  std::array<int64_t, 2> running{};  // others, kernels
  std::array<double, 2> gained{};    // by one of them since the first edge
  std::vector<double> at_start(g.ops.size(), 0);
  int64_t now = edges.empty() ? 0 : edges.front().at_ns;
  for (const BusyEdge& edge : edges) {
    const double passed = static_cast<double>(edge.at_ns - now);
    now = edge.at_ns;
    const size_t who = running[1] > 0 ? 1 : 0;
    if (running[who] > 0) gained[who] += passed / static_cast<double>(running[who]);
    DeviceOp& op = g.ops[edge.op];
    const size_t kind = op.computes ? 1 : 0;
    running[kind] += edge.begins ? 1 : -1;
    if (edge.begins) {
      at_start[edge.op] = gained[kind];
    } else {
      op.busy_ns = std::llround(gained[kind] - at_start[edge.op]);
    }
  }
}

void set_duration(DeviceOp& op, int64_t duration_ns) {
  if (op.duration_ns > 0) {
    const double longer = static_cast<double>(duration_ns) / static_cast<double>(op.duration_ns);
    op.busy_ns = std::llround(static_cast<double>(op.busy_ns) * longer);
  }
  op.duration_ns = duration_ns;
}

int64_t busy_ns(const StepGraph& g) {
  int64_t sum = 0;
  for (const DeviceOp& op : g.ops) sum += op.busy_ns;
  return sum;
}

int64_t computing_ns(const StepGraph& g) {
  int64_t sum = 0;
  for (const DeviceOp& op : g.ops) sum += op.computes ? op.busy_ns : 0;
  return sum;
}

bool overlaps(const StepGraph& g) {
  double all = 0;
  for (const DeviceOp& op : g.ops) all += op.computes ? static_cast<double>(op.duration_ns) : 0;
  return all - static_cast<double>(computing_ns(g)) > kOverlapLeast * all;
}

}  // namespace assay
