// Adam as a chain of passes over all parameters.
//
// PyTorch's default (`foreach`) runs one kernel per arithmetic operation over lists of tensors: the
// weights are decayed, both moments updated, the root taken, divided, shifted, and the result
// applied, each time with every operand read from memory and the result written back. A fused
// optimizer reads parameter, gradient and both moments once and writes three of them once. Both do
// next to no arithmetic, so bytes tell the time: counted in tensors of the size of the parameters,
// AdamW moves 20 of them in its passes and 7 fused (on an H200: 20.3 ms of passes became 7.1 fused,
// by this rule 7.1).
#include <array>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "diagnose/gain_share.h"
#include "diagnose/kernel_waste.h"

namespace assay {
namespace {

constexpr int kFusedTensors = 7;  // parameter, gradient, moments read; all but the gradient written
constexpr int kAdamDepth = 16;    // of operators inside one another

// Tensors that an operation over lists reads and writes; the same tensor twice counts once. What
// is not listed moves two, in and out.
constexpr std::array<std::pair<std::string_view, int>, 4> kTensors = {{
    {"aten::_foreach_lerp_", 3},
    {"aten::_foreach_addcmul_", 3},  // of the squared gradient
    {"aten::_foreach_addcdiv_", 4},
    {"aten::_foreach_maximum_", 3},
}};

int tensors_of(std::string_view op) {
  for (const auto& [name, tensors] : kTensors) {
    if (op == name) return tensors;
  }
  return 2;
}

bool inside_adam(const Trace& t, int32_t op) {
  for (int depth = 0; op >= 0 && depth < kAdamDepth; ++depth) {
    const HostEvent& h = t.host[static_cast<size_t>(op)];
    const std::string_view name = t.text(h.name);
    if (name == "Optimizer.step#Adam.step" || name == "Optimizer.step#AdamW.step") return true;
    op = h.parent;
  }
  return false;
}

constexpr std::string_view kUpdate = "aten::_foreach_addcdiv_";  // once per group of parameters
constexpr double kCounters = 0.1;  // of an update's time: below it an operation is on step counters

struct AdamPasses {
  std::vector<size_t> ops;
  double before_ns = 0, update_ns = 0;  // durations of all, and of the updates
  int moved = 0, updates = 0;           // tensors, and groups of parameters
};

AdamPasses passes_of(const StepGraph& g, const Trace& t) {
  AdamPasses p;
  std::map<int32_t, double> calls;  // operator to its time
  for (size_t i = 0; i < g.ops.size(); ++i) {
    const DeviceEvent& e = t.device[static_cast<size_t>(g.ops[i].event)];
    const std::string_view op = op_name(t, e);
    if (!op.starts_with("aten::_foreach_") || !inside_adam(t, e.op)) continue;
    if (!contains(t.text(e.name), "multi_tensor_apply")) continue;
    const double ns = static_cast<double>(g.ops[i].duration_ns);
    p.ops.push_back(i);
    p.before_ns += ns;
    if (op == kUpdate) p.update_ns += ns;
    if (calls.try_emplace(e.op, 0).second && op == kUpdate) ++p.updates;
    calls[e.op] += ns;
  }
  for (const auto& [op, ns] : calls) {
    if (ns * p.updates < kCounters * p.update_ns) continue;
    p.moved += tensors_of(t.text(t.host[static_cast<size_t>(op)].name));
  }
  return p;
}

}  // namespace

Waste optimizer_passes(const StepGraph& g, const Trace& t) {
  Waste w = waste_of(g, Cause::kMemoryBound);
  const AdamPasses p = passes_of(g, t);
  if (p.updates == 0 || p.update_ns <= 0 || p.moved <= kFusedTensors * p.updates) return w;
  const double fused_ns = p.before_ns * kFusedTensors * p.updates / p.moved;
  // The fused kernels stand where the updates stood, as many as these: the others go.
  for (size_t i : p.ops) {
    const DeviceOp& op = g.ops[i];
    DeviceOp after = op;
    const bool update = op_name(t, t.device[static_cast<size_t>(op.event)]) == kUpdate;
    const double own = static_cast<double>(op.duration_ns);
    set_duration(after, update ? std::llround(fused_ns * own / p.update_ns) : 0);
    w.duration_ns[i] = after.duration_ns;
    w.ops.push_back(static_cast<int32_t>(i));
    w.before_ns += op.busy_ns;
    w.saved_ns += op.busy_ns - after.busy_ns;
  }
  w.optimizer_ns = w.before_ns;
  w.what = fmt::format(
      "{:.1f} ms a step go to {} kernels of Adam that pass over all parameters once per operation: "
      "{:.0f} tensors of their size are moved where a fused kernel moves {}.",
      static_cast<double>(w.before_ns) * 1e-6, p.ops.size(),
      static_cast<double>(p.moved) / p.updates, kFusedTensors);
  return w;
}

}  // namespace assay
