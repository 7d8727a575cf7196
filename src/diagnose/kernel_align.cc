// Sizes that keep libraries from their fast kernels.
//
// Matmuls say so in their names (`align1`, `align2`). Attention does not: the framework pads heads
// whose size is no multiple of 8 with kernels of its own inside the attention operator, takes the
// portable kernel instead of the vendor's, and cuts the result; backward the same again. Padding
// and cutting go, and the vendor's kernel comes, when the size is even. Convolutions do not either:
// cuDNN clears a buffer and pads the channels of input, weight and output into and out of it.
#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "diagnose/kernel_waste.h"

namespace assay {
namespace {

constexpr int kRowBytes = 16;    // what a fast load needs
constexpr int kDepthMost = 16;   // of operators inside one another
constexpr size_t kCutsMost = 4;  // kernels that widen the gradient before attention's backward pass

// The operator around an event with this name; null: none.
const HostEvent* inside(const Trace& t, const DeviceEvent& e, std::string_view name) {
  int32_t op = e.op;
  for (int depth = 0; op >= 0 && depth < kDepthMost; ++depth) {
    const HostEvent& h = t.host[static_cast<size_t>(op)];
    if (t.text(h.name) == name) return &h;
    op = h.parent;
  }
  return nullptr;
}

struct Rule {
  const StepGraph& g;
  const Trace& t;
  const KernelTable& table;
  const DeviceModel& d;
  Waste w;

  const DeviceEvent& event(size_t i) const { return t.device[static_cast<size_t>(g.ops[i].event)]; }
  const KernelClass& kind(size_t i) const { return table.of(static_cast<size_t>(g.ops[i].event)); }
  void scale(size_t i, double rate) {
    const auto ns = std::llround(static_cast<double>(g.ops[i].duration_ns) * rate);
    replace_op(g, w, i, std::max<int64_t>(ns, kKernelFloor), true);
  }

  std::string matmuls() {
    std::vector<std::string> shapes;
    bool any = false;
    for (size_t i = 0; i < g.ops.size(); ++i) {
      const KernelClass& k = kind(i);
      if (k.kind != KernelKind::kMatmul || !k.tensor_cores || k.align == 0) continue;
      if (k.align * (k.precision == Precision::kTf32 ? 4 : 2) >= kRowBytes) continue;
      any = true;
      const MatmulParams& params = d.kernels->matmul;
      scale(i, k.align == 1 ? params.aligned_element : params.aligned_partly);
      if (const auto shape = recorded_matmul(t, event(i)); shape && shapes.size() < 3) {
        const std::string text = fmt::format("{} x {} x {}", shape->m, shape->n, shape->k);
        if (std::find(shapes.begin(), shapes.end(), text) == shapes.end()) shapes.push_back(text);
      }
    }
    if (!any) return {};
    return fmt::format(
        "matmuls whose rows are not aligned to 16 bytes{}",
        shapes.empty() ? std::string() : fmt::format(" (m x n x k: {})", fmt::join(shapes, ", ")));
  }

  // The gradient is widened right before the backward kernels of padded attention.
  void widenings(size_t attention) {
    for (size_t i = attention; i-- > 0 && attention - i <= kCutsMost;) {
      if (kind(i).kind == KernelKind::kAttention) continue;
      if (inside(t, event(i), "SliceBackward0") == nullptr) return;
      if (w.duration_ns[i] < 0) replace_op(g, w, i, 0, true);
    }
  }

  std::string padded_heads() {
    const HostEvent* padded = nullptr;
    for (size_t i = 0; i < g.ops.size(); ++i) {
      const HostEvent* attention = inside(t, event(i), "aten::scaled_dot_product_attention");
      if (attention == nullptr || inside(t, event(i), "aten::constant_pad_nd") == nullptr) continue;
      padded = attention;
      replace_op(g, w, i, 0, true);
    }
    if (padded == nullptr) return {};
    const bool vendor = !t.devices.empty() && t.devices.front().major >= 9;
    for (size_t i = 0; i < g.ops.size(); ++i) {
      if (inside(t, event(i), "ConstantPadNdBackward0") != nullptr) replace_op(g, w, i, 0, true);
      if (kind(i).kind != KernelKind::kAttention) continue;
      const std::string_view name = t.text(event(i).name);
      const bool backward = contains(name, "bwd") || contains(name, "backward");
      if (backward) widenings(i);
      if (!vendor || !contains(name, "flash")) continue;
      const Kernels& k = *d.kernels;
      scale(i, backward ? k.attention_backward / k.attention_vendor_backward
                        : k.attention_forward / k.attention_vendor_forward);
    }
    const auto dims = parse_dims(t.text(padded->shapes));
    if (dims.empty() || dims[0].size() != 4)
      return "attention whose heads are padded to a multiple of 8";
    return fmt::format("attention whose heads of {} elements are padded", dims[0][3]);
  }

  std::string padded_channels() {
    std::set<int32_t> padded;
    const auto pads = [&](size_t i) { return contains(t.text(event(i).name), "AddPaddingKernel"); };
    for (size_t i = 0; i < g.ops.size(); ++i) {
      if (event(i).op >= 0 && pads(i)) padded.insert(event(i).op);
    }
    for (size_t i = 0; i < g.ops.size(); ++i) {
      if (!padded.contains(event(i).op)) continue;
      if (pads(i) || kind(i).kind == KernelKind::kSet) replace_op(g, w, i, 0, true);
    }
    return padded.empty() ? "" : "padding the channels of convolutions";
  }
};

}  // namespace

Waste misaligned_shapes(const StepGraph& g, const Trace& t, const KernelTable& table,
                        const DeviceModel& d) {
  Rule rule{g, t, table, d, waste_of(g, Cause::kMisalignedShapes)};
  if (d.kernels == nullptr) return rule.w;
  for (const std::string& what : {rule.matmuls(), rule.padded_heads(), rule.padded_channels()}) {
    if (what.empty()) continue;
    if (!rule.w.what.empty()) rule.w.what += " and to ";
    rule.w.what += what;
  }
  rule.w.confidence = Confidence::kHigh;
  return rule.w;
}

}  // namespace assay
