// Sizes that keep libraries from their fast kernels.
//
// Matmuls say so in their names (`align1`, `align2`). Attention does not: the framework pads heads
// whose size is no multiple of 8 with kernels of its own inside the attention operator, takes the
// portable kernel instead of the vendor's, and cuts the result; backward the same again. Padding
// and cutting go, and the vendor's kernel comes, when the size is even. Convolutions do not either:
// cuDNN clears a buffer and pads the channels of input, weight and output into and out of it.
//
// A compiler does the same by itself, and its kernels say so in their names, which list what they
// were made of: `triton_poi_fused_addmm_t_3` holds nothing but a matmul's operand, so it pads it;
// `triton_poi_fused_..._constant_pad_nd_..._6` before attention pads heads.
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

// A compiled kernel made of nothing but a matmul and views of its operands.
bool pads_a_matmul(std::string_view name) {
  constexpr std::string_view kHead = "triton_poi_fused_";
  if (name.substr(0, kHead.size()) != kHead) return false;
  bool matmul = false;
  for (size_t at = kHead.size(); at < name.size();) {
    const size_t end = std::min(name.find('_', at), name.size());
    const std::string_view word = name.substr(at, end - at);
    const bool product = word == "mm" || word == "addmm" || word == "bmm" || word == "baddbmm";
    const bool number = !word.empty() && word[0] >= '0' && word[0] <= '9';
    matmul = matmul || product;
    if (!product && !number && word != "t" && word != "view") return false;
    at = end + 1;
  }
  return matmul;
}

bool is_backward_pass(std::string_view kernel) {
  return contains(kernel, "bwd") || contains(kernel, "backward");
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
    const bool planes = in_planes(g, t);
    for (size_t i = 0; i < g.ops.size(); ++i) {
      const double rate = aligned_rate(kind(i), d);
      if (rate >= 1 || (planes && in_convolution(t, event(i)))) continue;
      any = true;
      scale(i, rate);
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

  // The vendor's attention instead of the portable one, which takes any size.
  void give_to_vendor(size_t i) {
    const std::string_view name = t.text(event(i).name);
    const bool vendor = !t.devices.empty() && t.devices.front().major >= 9;
    if (!vendor || !contains(name, "flash")) return;
    const Kernels& k = *d.kernels;
    scale(i, is_backward_pass(name) ? k.attention_backward / k.attention_vendor_backward
                                    : k.attention_forward / k.attention_vendor_forward);
  }

  std::string compiled_matmuls() {
    bool any = false;
    for (size_t i = 0; i < g.ops.size(); ++i) {
      if (!kind(i).compiled || !pads_a_matmul(t.text(event(i).name))) continue;
      any = true;
      replace_op(g, w, i, 0, true);
    }
    return any ? "matmuls that the compiler pads" : "";
  }

  // Up to three kernels before the portable attention, that do nothing but pad what it takes.
  bool pads_heads(size_t attention) {
    bool any = false;
    for (size_t i = attention; i-- > 0 && attention - i <= 3;) {
      const std::string_view name = t.text(event(i).name);
      if (!kind(i).compiled || !contains(name, "constant_pad_nd")) break;
      if (contains(name, "clone") || contains(name, "stack")) break;
      any = true;
      replace_op(g, w, i, 0, true);
    }
    return any;
  }

  std::string compiled_heads() {
    bool any = false;
    const auto is_cut = [&](size_t i) {
      return kind(i).compiled && contains(t.text(event(i).name), "slice");
    };
    const auto portable = [&](size_t i) {
      return kind(i).kind == KernelKind::kAttention &&
             contains(t.text(event(i).name), "pytorch_flash");
    };
    for (size_t i = 0; i < g.ops.size(); ++i) {
      if (portable(i) && pads_heads(i)) any = true;
    }
    if (!any) return {};
    for (size_t i = 0; i < g.ops.size(); ++i) {
      // Padded gradients are copied into order before the backward pass.
      const bool moves = is_memory_kind(kind(i).kind) &&
                         inside(t, event(i), "aten::_flash_attention_backward") != nullptr;
      if (moves) replace_op(g, w, i, 0, true);
      if (!portable(i)) continue;
      give_to_vendor(i);
      if (i + 1 < g.ops.size() && is_cut(i + 1)) replace_op(g, w, i + 1, 0, true);
    }
    return "attention whose heads the compiler pads to a multiple of 8";
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
    for (size_t i = 0; i < g.ops.size(); ++i) {
      if (inside(t, event(i), "ConstantPadNdBackward0") != nullptr) replace_op(g, w, i, 0, true);
      if (kind(i).kind != KernelKind::kAttention) continue;
      if (is_backward_pass(t.text(event(i).name))) widenings(i);
      give_to_vendor(i);
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

double aligned_rate(const KernelClass& k, const DeviceModel& d) {
  if (k.kind != KernelKind::kMatmul || !k.tensor_cores || k.align == 0) return 1;
  if (k.align * (k.precision == Precision::kTf32 ? 4 : 2) >= kRowBytes) return 1;
  const MatmulParams& params = d.kernels->matmul;
  return k.align == 1 ? params.aligned_element : params.aligned_partly;
}

Waste misaligned_shapes(const StepGraph& g, const Trace& t, const KernelTable& table,
                        const DeviceModel& d) {
  Rule rule{g, t, table, d, waste_of(g, Cause::kMisalignedShapes)};
  if (d.kernels == nullptr) return rule.w;
  for (const std::string& what : {rule.matmuls(), rule.compiled_matmuls(), rule.compiled_heads(),
                                  rule.padded_heads(), rule.padded_channels()}) {
    if (what.empty()) continue;
    if (!rule.w.what.empty()) rule.w.what += " and to ";
    rule.w.what += what;
  }
  rule.w.confidence = Confidence::kHigh;
  return rule.w;
}

}  // namespace assay
