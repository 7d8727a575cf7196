// Convolutions on tensors that lie in planes (NCHW, PyTorch's default). Tensor cores want the
// channels of a pixel side by side, so cuDNN turns input, weight and gradients to its own order and
// the result back, around every convolution that is no plain matmul; where it is one, its rows are
// the pixels of a plane, which no alignment fits. `channels_last` takes both away. Batch norm is
// faster then as well (18.4 of 38.7 ms in a ResNet-101 with 128 pictures in bf16 on an H200), but
// that has been seen in one model only and is not counted.
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "diagnose/kernel_waste.h"

namespace assay {
namespace {

std::string_view name_of(const Trace& t, const DeviceOp& op) {
  return t.text(t.device[static_cast<size_t>(op.event)].name);
}

bool turns(std::string_view kernel) {
  return contains(kernel, "nchwToNhwc") || contains(kernel, "nhwcToNchw");
}

// Most of the arithmetic is in convolutions. The few of a transformer's front end, or along a
// sequence, leave the order of the other tensors to the rest of the model.
bool convolutional(const StepGraph& g, const Trace& t, const KernelTable& table) {
  int64_t convolutions = 0, all = 0;
  for (const DeviceOp& op : g.ops) {
    if (!is_math_kind(table.of(static_cast<size_t>(op.event)).kind)) continue;
    all += op.busy_ns;
    if (in_convolution(t, t.device[static_cast<size_t>(op.event)])) convolutions += op.busy_ns;
  }
  return 2 * convolutions > all;
}

}  // namespace

bool in_convolution(const Trace& t, const DeviceEvent& e) {
  return contains(op_name(t, e), "convolution");
}

bool in_planes(const StepGraph& g, const Trace& t) {
  bool any = false;
  for (const DeviceOp& op : g.ops) {
    const std::string_view name = name_of(t, op);
    if (contains(name, "channels_last")) return false;
    any = any || turns(name);
  }
  return any;
}

Waste plane_layout(const StepGraph& g, const Trace& t, const KernelTable& table,
                   const DeviceModel& d) {
  Waste w = waste_of(g, Cause::kMemoryBound);
  if (d.kernels == nullptr || !in_planes(g, t) || !convolutional(g, t, table)) return w;
  for (size_t i = 0; i < g.ops.size(); ++i) {
    const DeviceEvent& e = t.device[static_cast<size_t>(g.ops[i].event)];
    const std::string_view name = t.text(e.name);
    if (!in_convolution(t, e)) continue;
    const double ns = static_cast<double>(g.ops[i].duration_ns);
    const double rate = aligned_rate(table.of(static_cast<size_t>(g.ops[i].event)), d);
    if (turns(name)) replace_op(g, w, i, 0, true);
    if (rate >= 1) continue;
    replace_op(g, w, i, std::max<int64_t>(std::llround(ns * rate), kKernelFloor), true);
  }
  w.layout = true;
  w.confidence = Confidence::kHigh;
  return w;
}

}  // namespace assay
