#include "diagnose/kernel_waste.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "base/text.h"
#include "diagnose/gain_share.h"
#include "perf/matmul.h"

namespace assay {
namespace {

// A memory-bound kernel in 16 bit against fp32: half the bytes, at a lower rate (fused AdamW of 1e9
// elements, test/data/h200_elementwise.csv: 5.32 against 8.18 ms; the element-wise kernels of a 1B
// Llama, test/data/traces: 0.66).
constexpr double kHalfBytes = 0.65;
// Fused attention in fp32 reaches this share of the vector units' peak, on whatever units it runs
// (1B Llama, 2048 tokens, forward and backward on an H200).
constexpr double kVectorAttention = 0.49;

// Matmuls in TF32 that go on for seconds, against one by itself, at which the matmul model is held:
// 335 of 402 TFLOP/s (8192^3, test/data/h200_sustained.csv and h200_gemm.csv): the card is at its
// power cap.
constexpr double kTf32Held = 0.83;

double efficiency(const MatmulParams& m, Precision p) {
  switch (p) {
    case Precision::kFp32:
      return m.efficiency_fp32;
    case Precision::kTf32:
      return m.efficiency_tf32;
    default:
      return m.efficiency;
  }
}

// Rate over rate of two precisions for one shape, or for large matmuls where it is not known.
double matmul_speed_up(const std::optional<RecordedMatmul>& shape, Precision from, Precision to,
                       const DeviceModel& d) {
  const MatmulParams& params = d.kernels->matmul;
  if (shape) {
    MatmulShape s{shape->m, shape->n, shape->k, shape->batch, from};
    const Seconds slow = matmul_time(s, *d.accelerator, params);
    s.precision = to;
    return slow / matmul_time(s, *d.accelerator, params);
  }
  return (peak(*d.accelerator, to).v * efficiency(params, to)) /
         (peak(*d.accelerator, from).v * efficiency(params, from));
}

// Matmuls in fp64 run at this share of the fp32 vector peak where the device has fp64 tensor cores
// (62.4 of 67 TFLOP/s for a matmul of 16384 x 32000 x 1024 on an H200).
constexpr double kDoubleOfFp32 = 0.93;

double double_speed_up(const std::optional<RecordedMatmul>& shape, Precision to,
                       const DeviceModel& d) {
  // Against fp32 on vector units, for which the matmul model has its efficiency.
  const double vector = d.kernels->matmul.efficiency_fp32 / kDoubleOfFp32;
  return matmul_speed_up(shape, Precision::kFp32, to, d) * vector;
}

double attention_speed_up(Precision to, const DeviceModel& d) {
  // Forward and backward, which is two and a half times the work.
  const double rate =
      3.5 / (1 / d.kernels->attention_forward + 2.5 / d.kernels->attention_backward);
  return peak(*d.accelerator, to).v * rate / (d.accelerator->fp32.v * kVectorAttention);
}

// Whether a memory-bound kernel gets shorter when the model's tensors do. The loss keeps fp32.
bool is_fp32(const Trace& t, const DeviceOp& op) {
  const std::string_view name = t.text(t.device[static_cast<size_t>(op.event)].name);
  for (std::string_view stays : {"BFloat16", "bfloat16", "Half", "__half", "SoftMax", "nll_loss"}) {
    if (contains(name, stays)) return false;
  }
  return true;
}

// On vector units, or attention that makes fp32 of TF32 and is no faster.
bool in_fp32(const KernelClass& k) { return k.precision_known && k.precision == Precision::kFp32; }

// cuDNN has a weight gradient for depthwise convolutions in 16 bit that passes over the tensors
// once, as its data gradient does (`c1_k1` in both names); in fp32 and TF32 it takes one for any
// convolution, 10 to 20 times as long (ConvNeXt-T on an H200: 49 ms a step instead of 1.4, beside
// data gradients of 4). Per operation: the data gradient's time beside such a weight gradient; -1:
// none such.
std::vector<int64_t> depthwise_gradients(const StepGraph& g, const Trace& t,
                                         const KernelTable& table) {
  std::vector<int64_t> out(g.ops.size(), -1);
  std::map<int32_t, int64_t> data;  // by operator
  const auto special = [&](const DeviceEvent& e) { return contains(t.text(e.name), "_c1_k1_"); };
  for (const DeviceOp& op : g.ops) {
    const DeviceEvent& e = t.device[static_cast<size_t>(op.event)];
    if (e.op >= 0 && special(e)) data[e.op] = op.duration_ns;
  }
  for (size_t i = 0; i < g.ops.size(); ++i) {
    const DeviceEvent& e = t.device[static_cast<size_t>(g.ops[i].event)];
    const KernelClass& k = table.of(static_cast<size_t>(g.ops[i].event));
    const bool wide =
        !k.precision_known || k.precision == Precision::kFp32 || k.precision == Precision::kTf32;
    const auto found = data.find(e.op);
    if (k.kind != KernelKind::kConvolution || !wide || special(e) || found == data.end()) continue;
    out[i] = found->second;
  }
  return out;
}

// Autocast casts what goes into a matmul and leaves the rest: rows that are looked up, joined and
// added by an index stay in fp32 (gathers, scatters and their gradients; copies and concatenations
// right beside them).
std::vector<char> rows_in_fp32(const StepGraph& g, const Trace& t, const KernelTable& table) {
  const size_t n = g.ops.size();
  std::vector<char> by_index(n, 0);
  for (size_t i = 0; i < n; ++i) {
    const size_t event = static_cast<size_t>(g.ops[i].event);
    const KernelClass& k = table.of(event);
    by_index[i] = k.kind == KernelKind::kEmbedding || k.scatters ||
                  contains(t.text(t.device[event].name), "indexing_backward");
  }
  std::vector<char> out = by_index;
  for (size_t i = 0; i < n; ++i) {
    if (table.of(static_cast<size_t>(g.ops[i].event)).kind != KernelKind::kMove) continue;
    out[i] = (i > 0 && by_index[i - 1] != 0) || (i + 1 < n && by_index[i + 1] != 0);
  }
  return out;
}
// The cast of such rows before their matmul and of their gradient after it, over the kernel that
// made them: 6 bytes an element against 8, twice.
constexpr double kCasts = 1.5;

// Where a matmul runs in fp32 amid tensors of 16 bit, what goes into it is cast before it, and its
// gradient after it; in 16 bit there is nothing to cast.
bool drop_casts(const StepGraph& g, const Trace& t, const KernelTable& table, size_t matmul,
                Waste& w) {
  constexpr int kCastDepth = 4;  // of operators inside one another
  const auto kind = [&](size_t i) { return table.of(static_cast<size_t>(g.ops[i].event)).kind; };
  const auto casts = [&](size_t i) {
    if (kind(i) != KernelKind::kMove || w.duration_ns[i] >= 0) return false;
    int32_t op = t.device[static_cast<size_t>(g.ops[i].event)].op;
    for (int depth = 0; op >= 0 && depth < kCastDepth; ++depth) {
      const HostEvent& h = t.host[static_cast<size_t>(op)];
      if (t.text(h.name) == "aten::_to_copy") return true;
      op = h.parent;
    }
    return false;
  };
  bool any = false;
  const auto walk = [&](size_t i, size_t step) {
    for (i += step; i < g.ops.size(); i += step) {  // below zero is beyond the end
      if (kind(i) == KernelKind::kSet) continue;
      if (!casts(i)) return;
      replace_op(g, w, i, 0, false);
      any = true;
    }
  };
  walk(matmul, static_cast<size_t>(-1));
  walk(matmul, 1);
  return any;
}

// Under autocast a linear layer launches casts: of weight and input before the forward product, of
// their gradients after the two of the backward pass, and of a bias and its gradient. So three
// products have four casts, or six. A convolution's input comes in 16 bit from the one before it:
// two, of the weight and its gradient.
double autocasts(const Trace& t, const DeviceEvent& e) {
  constexpr double kConvolution = 2.0 / 3, kPlain = 4.0 / 3, kWithBias = 2;
  constexpr int kProductDepth = 4;  // of operators inside one another
  int32_t op = e.op;
  for (int depth = 0; op >= 0 && depth < kProductDepth; ++depth) {
    const HostEvent& h = t.host[static_cast<size_t>(op)];
    const std::string_view name = t.text(h.name);
    if (contains(name, "onvolution")) return kConvolution;
    if (contains(name, "addmm") || contains(name, "Addmm")) return kWithBias;
    op = h.parent;
  }
  return kPlain;
}

bool is_batch_norm(const StepGraph& g, const Trace& t, size_t op) {
  const std::string_view name = t.text(t.device[static_cast<size_t>(g.ops[op].event)].name);
  for (std::string_view part : {"batch_norm", "batchnorm", "bn_fw", "bn_bw"}) {
    if (name.find(part) != std::string_view::npos) return true;
  }
  return false;
}

// A fused kernel reads what its passes read from elsewhere and writes what the backward pass needs,
// however many they are: over twelve compiled twins on H200s fused kernels take 0.16 to 0.39 of the
// time of what they were made of.
constexpr double kFusedLeast = 1.0 / 6;

// A scatter at the end of fused passes reads nothing of its own any more; what is left is its
// write, against the read and the write of a pass.
constexpr double kScatterOfPass = 0.5;
constexpr int kScatterDepth = 8;  // of operators inside one another

// Out of place, a scatter copies what it adds to; that copy parts nothing.
bool is_scatter_target(const Trace& t, const DeviceEvent& e) {
  if (e.kind != DeviceKind::kCopy) return false;
  int32_t op = e.op;
  for (int depth = 0; op >= 0 && depth < kScatterDepth; ++depth) {
    const HostEvent& h = t.host[static_cast<size_t>(op)];
    if (is_scatter(t.text(h.name))) return true;
    op = h.parent;
  }
  return false;
}

// Memory-bound kernels that follow one another in a lane, two and more.
std::vector<std::vector<size_t>> runs_of(const StepGraph& g, const Trace& t,
                                         const KernelTable& table) {
  std::vector<std::vector<size_t>> runs;
  std::vector<size_t> run;
  auto close = [&] {
    if (run.size() > 1) runs.push_back(run);
    run.clear();
  };
  int32_t lane = -1;
  for (size_t i = 0; i < g.ops.size(); ++i) {
    const size_t event = static_cast<size_t>(g.ops[i].event);
    const KernelClass& k = table.of(event);
    if (k.kind == KernelKind::kSet) continue;
    if (is_scatter_target(t, t.device[event])) continue;
    // Compiled kernels are fused already; copies by the copy engine cannot be.
    const bool fusable =
        is_memory_kind(k.kind) && !k.compiled && t.device[event].kind == DeviceKind::kKernel;
    if (!fusable || g.ops[i].lane != lane) close();
    lane = g.ops[i].lane;
    if (fusable) run.push_back(i);
  }
  close();
  return runs;
}

}  // namespace

Waste waste_of(const StepGraph& g, Cause cause) {
  Waste w;
  w.cause = cause;
  w.duration_ns.assign(g.ops.size(), -1);
  return w;
}

void replace_op(const StepGraph& g, Waste& w, size_t op, int64_t duration, bool blame) {
  set_op(g, w, op, std::min(duration, g.ops[op].duration_ns), blame);
}

void set_op(const StepGraph& g, Waste& w, size_t op, int64_t duration, bool blame) {
  w.duration_ns[op] = duration;
  DeviceOp after = g.ops[op];
  set_duration(after, duration);
  w.saved_ns += g.ops[op].busy_ns - after.busy_ns;
  if (!blame) return;
  w.ops.push_back(static_cast<int32_t>(op));
  w.before_ns += g.ops[op].busy_ns;
}

void join(Waste& to, const Waste& other) {
  for (size_t i = 0; i < to.duration_ns.size(); ++i) {
    if (other.duration_ns[i] >= 0) to.duration_ns[i] = other.duration_ns[i];
  }
  to.ops.insert(to.ops.end(), other.ops.begin(), other.ops.end());
  to.before_ns += other.before_ns;
  to.saved_ns += other.saved_ns;
  to.optimizer_ns += other.optimizer_ns;
  to.written_ns += other.written_ns;
  if (!to.what.empty() && !other.what.empty()) to.what += ' ';
  to.what += other.what;
}

Precision half_of(const Accelerator& a) {
  return a.bf16.v > 0 ? Precision::kBf16 : Precision::kFp16;
}

Waste no_tensor_cores(const StepGraph& g, const Trace& t, const KernelTable& table,
                      const DeviceModel& d, Precision to) {
  Waste w = waste_of(g, Cause::kNoTensorCores);
  if (d.accelerator == nullptr || peak(*d.accelerator, to).v <= d.accelerator->fp32.v) return w;
  if (to == Precision::kTf32 && d.accelerator->tf32.v <= 0) return w;
  int64_t vector_ns = 0, tensor_ns = 0, tf32_ns = 0, fp32_ns = 0, memory_ns = 0;
  const std::vector<int64_t> depthwise = depthwise_gradients(g, t, table);
  for (size_t i = 0; i < g.ops.size(); ++i) {
    const DeviceOp& op = g.ops[i];
    const KernelClass& k = table.of(static_cast<size_t>(op.event));
    if (depthwise[i] >= 0) continue;
    if (is_memory_kind(k.kind)) {
      memory_ns += op.duration_ns;
      if (is_fp32(t, op)) fp32_ns += op.duration_ns;
    }
    if (!is_math_kind(k.kind)) continue;
    (in_fp32(k) ? vector_ns : tensor_ns) += op.duration_ns;
    if (k.precision_known && k.precision == Precision::kTf32) tf32_ns += op.duration_ns;
  }
  // A model in TF32 keeps its tensors in fp32 by choice, and its attention with them.
  const bool chosen = 2 * tf32_ns > tensor_ns;
  int64_t fp64_ns = 0;
  // Only where fp32 is the rule does everything else shrink with a change of format: most of the
  // arithmetic, not of its time, for a few matmuls in fp32 take as long as many in 16 bit.
  const double faster_usual = matmul_speed_up(std::nullopt, Precision::kFp32, to, d);
  const bool rule = static_cast<double>(vector_ns) > faster_usual * static_cast<double>(tensor_ns);
  const bool all = rule && 2 * fp32_ns > memory_ns && to != Precision::kTf32;
  if (all) w.casts.assign(g.ops.size(), 0);
  bool amid_half = false;  // the model is in 16 bit but for these matmuls: nothing new to cast
  const std::vector<char> rows = all ? rows_in_fp32(g, t, table) : std::vector<char>(g.ops.size());
  for (size_t i = 0; i < g.ops.size(); ++i) {
    const DeviceOp& op = g.ops[i];
    const KernelClass& k = table.of(static_cast<size_t>(op.event));
    const double ns = static_cast<double>(op.duration_ns);
    if (depthwise[i] >= 0) {
      if (to == Precision::kTf32) continue;
      const auto half = std::llround(static_cast<double>(depthwise[i]) * kHalfBytes);
      replace_op(g, w, i, std::max(half, static_cast<long long>(kKernelFloor)), true);
    } else if (is_math_kind(k.kind) && in_fp32(k) && !(k.tensor_cores && chosen)) {
      if (to == Precision::kTf32 && k.kind == KernelKind::kAttention) continue;
      const auto shape = k.kind == KernelKind::kMatmul
                             ? recorded_matmul(t, t.device[static_cast<size_t>(op.event)])
                             : std::nullopt;
      const double faster = k.kind == KernelKind::kAttention ? attention_speed_up(to, d)
                            : k.fp64                         ? double_speed_up(shape, to, d)
                                     : matmul_speed_up(shape, Precision::kFp32, to, d) *
                                           (to == Precision::kTf32 ? kTf32Held : 1);
      if (k.fp64) fp64_ns += op.duration_ns;
      const bool cast = i > 0 && rows[i - 1] != 0;
      const double casts = cast ? static_cast<double>(g.ops[i - 1].duration_ns) * kCasts : 0;
      const auto left = std::llround(ns / faster + casts);
      replace_op(g, w, i, std::max(left, static_cast<long long>(kKernelFloor)), true);
      const bool cast_now = to != Precision::kTf32 && drop_casts(g, t, table, i, w);
      amid_half = amid_half || cast_now;
      if (all) w.casts[i] = autocasts(t, t.device[static_cast<size_t>(op.event)]);
    } else if (all && w.duration_ns[i] < 0 && rows[i] == 0 && is_fp32(t, op) &&
               (is_memory_kind(k.kind) || k.kind == KernelKind::kOptimizer)) {
      const auto less = std::llround(ns * kHalfBytes);
      replace_op(g, w, i, std::max(less, static_cast<long long>(kKernelFloor)), false);
    }
  }
  if (amid_half) w.casts.clear();
  w.confidence = Confidence::kHigh;
  if (2 * fp64_ns > w.before_ns && fp64_ns > 0) w.what = "fp64";
  return w;
}

Waste fusable_kernels(const StepGraph& g, const Trace& t, const KernelTable& table) {
  Waste w = waste_of(g, Cause::kMemoryBound);
  w.memory_ns = memory_time_ns(g, table);
  w.math_ns = math_time_ns(g, table);
  auto scatters = [&](size_t i) { return table.of(static_cast<size_t>(g.ops[i].event)).scatters; };
  for (const std::vector<size_t>& run : runs_of(g, t, table)) {
    const size_t longest = *std::max_element(run.begin(), run.end(), [&](size_t a, size_t b) {
      const bool moved = scatters(a);
      if (moved != scatters(b)) return moved;
      return g.ops[a].duration_ns < g.ops[b].duration_ns;
    });
    const bool batch =
        std::any_of(run.begin(), run.end(), [&](size_t i) { return is_batch_norm(g, t, i); });
    const double pass = static_cast<double>(g.ops[longest].duration_ns);
    double all = 0;
    for (size_t i : run) all += scatters(i) ? 0 : static_cast<double>(g.ops[i].duration_ns);
    for (size_t i : run) {
      if (!batch && i == longest) {
        set_op(g, w, i, std::llround(std::max(pass, all * kFusedLeast)), true);
        continue;
      }
      const bool written = scatters(i) && !scatters(longest);
      const int64_t left = written ? std::llround(pass * kScatterOfPass) : 0;
      replace_op(g, w, i, is_batch_norm(g, t, i) ? g.ops[i].duration_ns : left, true);
    }
  }
  return w;
}

bool is_memory_bound(const StepGraph& g, const Trace& t, const KernelTable& table) {
  const int64_t memory = memory_time_ns(g, table), math = math_time_ns(g, table);
  if (memory <= math) return false;
  int64_t many = 0, fusable = 0;
  for (const std::vector<size_t>& run : runs_of(g, t, table)) {
    size_t passes = 0;
    int64_t busy = 0;
    for (size_t i : run) {
      if (is_batch_norm(g, t, i)) continue;
      ++passes;
      busy += g.ops[i].busy_ns;
    }
    fusable += busy;
    if (passes >= kRunLeast) many += busy;
  }
  return 2 * many > memory || fusable > math;
}

int64_t memory_time_ns(const StepGraph& g, const KernelTable& table) {
  int64_t sum = 0;
  for (const DeviceOp& op : g.ops) {
    if (is_memory_kind(table.of(static_cast<size_t>(op.event)).kind)) sum += op.busy_ns;
  }
  return sum;
}

int64_t math_time_ns(const StepGraph& g, const KernelTable& table) {
  int64_t sum = 0;
  for (const DeviceOp& op : g.ops) {
    if (is_math_kind(table.of(static_cast<size_t>(op.event)).kind)) sum += op.busy_ns;
  }
  return sum;
}

}  // namespace assay
