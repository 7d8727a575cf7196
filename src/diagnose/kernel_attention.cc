// Unfused attention is found by its shape in the stream of kernels: a softmax with a batched matmul
// on either side and nothing but memory-bound kernels (scale, mask, dropout, casts, copies)
// between. Backward it is a softmax gradient with up to two batched matmuls on either side. A
// softmax that is written out (an exponential between the matmuls, with a reduction beside it)
// counts as well. Copies that make the first matmul's operands contiguous belong to it, and so does
// everything inside PyTorch's own fallback (`_scaled_dot_product_attention_math`), which casts to
// fp32, scales, guards the softmax against rows of minus infinity, and casts back. Where heads are
// turned for the batched matmuls, so are the results and the gradients; see take_turns.
//
// Its size is needed to price the fused kernel. Where shapes are recorded the matmuls tell it.
// Where not, the kernels' grids do: the softmax has a block per row of scores, an element-wise
// kernel between the matmuls covers all scores, and the copy after the second matmul covers the
// output; so tokens = scores / rows, heads x batch = rows / tokens, head size = output / rows.
// Where even that fails, the fused kernel is taken to cost what the two matmuls cost.
//
// A bias that is added to the scores (ALiBi, relative positions) goes to the fused kernel as well,
// which reads it for every score. Only recorded shapes tell it from a mask: a bias differs from
// head to head. One that is learned has a gradient, which the vendor's kernel does not give; the
// framework then takes a slower one.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "diagnose/kernel_waste.h"
#include "perf/attention.h"

namespace assay {
namespace {

constexpr size_t kReach = 16;     // kernels between the softmax and a matmul of its own
constexpr int kScoresDepth = 8;   // of operators inside one another
constexpr size_t kCastsMost = 6;  // kernels on either side of the fallback's backward pass
// Operators after the backward pass among which the gradients of queries, keys and values reach
// their projections: matmuls, sums and casts of three linear layers.
constexpr size_t kGradientReach = 48;
constexpr int kGradients = 3;  // of queries, keys and values
constexpr std::string_view kFallback = "aten::_scaled_dot_product_attention_math";
constexpr std::string_view kAddNode = "autograd::engine::evaluate_function: AddBackward0";

// Time with a bias over the time without, of the vendor's kernel on an H200 (seven shapes, 512 to
// 4096 tokens, heads of 64 to 128: 1.73 to 2.19 forward, 1.21 to 1.84 backward); and of the kernel
// that also gives the bias its gradient (4.2 to 5.5, 2.7 to 5.8).
// test/data/h200_attention_bias.csv.
struct BiasCost {
  double forward = 1, backward = 1;
};
constexpr BiasCost kBiasGiven{1.95, 1.65};
constexpr BiasCost kBiasLearned{5.0, 4.5};

struct Core {
  size_t first = 0, last = 0;  // operations of the graph, both included
  size_t scores = 0;           // the first matmul; before it stand copies of its operands
  bool backward = false;
  bool masked = false;
  bool biased = false;         // something that differs from head to head is added to the scores
  bool added = false;          // something is, whatever its shape
  bool bias_learned = false;   // backward: the scores' gradient is summed over the batch
  std::vector<size_t> beside;  // goes with it, but stands apart
  bool turned = false;         // forward: both operands of the scores were copied to be whole
  std::vector<size_t> matmuls;
  size_t softmax = 0;
};

struct Search {
  const StepGraph& g;
  const Trace& t;
  const KernelTable& table;

  const DeviceEvent& event(size_t i) const { return t.device[static_cast<size_t>(g.ops[i].event)]; }
  const KernelClass& kind(size_t i) const { return table.of(static_cast<size_t>(g.ops[i].event)); }
  bool batched_matmul(size_t i) const {
    const std::string_view op = op_name(t, event(i));
    return kind(i).kind == KernelKind::kMatmul && (op == "aten::bmm" || op == "aten::baddbmm");
  }
  bool between(size_t i) const {
    const KernelKind k = kind(i).kind;
    return is_memory_kind(k) || k == KernelKind::kSet;
  }

  // The operator of this name around an event; -1: none.
  int32_t around(size_t i, std::string_view name) const {
    int32_t op = event(i).op;
    for (int depth = 0; op >= 0 && depth < kScoresDepth; ++depth) {
      const HostEvent& h = t.host[static_cast<size_t>(op)];
      if (t.text(h.name) == name) return op;
      op = h.parent;
    }
    return -1;
  }
  bool inside(size_t i, std::string_view name) const { return around(i, name) >= 0; }
  // The outermost matrix product around an event; -1: none.
  int32_t product(size_t i) const {
    int32_t op = event(i).op, found = -1;
    for (int depth = 0; op >= 0 && depth < kScoresDepth; ++depth) {
      const HostEvent& h = t.host[static_cast<size_t>(op)];
      if (t.text(h.name) == "aten::matmul") found = op;
      op = h.parent;
    }
    return found;
  }
  // A batched matmul takes its operands whole: transposed heads are copied first, inside the same
  // product. A fused kernel reads them where they are.
  void take_copies(Core& core) const {
    core.scores = core.first;
    const int32_t around = product(core.first);
    int copies = 0;
    while (around >= 0 && core.first > 0 && between(core.first - 1) &&
           product(core.first - 1) == around) {
      --core.first;
      copies += copied(core.first) ? 1 : 0;
    }
    core.turned = !core.backward && copies >= 2;
    // Queries that are scaled before the product; a fused kernel does it on the way.
    size_t before = core.first;
    while (before > 0 && kind(before - 1).kind == KernelKind::kSet) --before;
    if (!core.backward && before > 0 && scales(before - 1)) core.first = before - 1;
  }
  // A tensor is laid out anew.
  bool copied(size_t i) const {
    return kind(i).kind == KernelKind::kMove && inside(i, "aten::clone");
  }
  // Heads that lie side by side in each token (views of a projection's output) are turned for the
  // batched matmuls, their result is turned back, and in the backward pass so are its gradient and
  // those of queries, keys and values. A fused kernel takes and gives them where they lie. Where
  // the scores' operands need no copy the heads are apart already (rotary positions see to that),
  // and the fused kernel's result is turned as well.
  void take_turns(Core& core) const {
    size_t at = core.backward ? core.first : core.last;
    do {
      if (core.backward ? at == 0 : at + 1 == g.ops.size()) return;
      at = core.backward ? at - 1 : at + 1;
    } while (kind(at).kind == KernelKind::kSet);
    if (copied(at)) core.beside.push_back(at);
    int gradients = 0;
    for (size_t i = core.last + 1; core.backward && i < g.ops.size(); ++i) {
      if (i > core.last + kGradientReach || gradients == kGradients) break;
      if (kind(i).kind == KernelKind::kSoftmax) break;
      if (!copied(i) || !inside(i, "ViewBackward0")) continue;
      core.beside.push_back(i);
      ++gradients;
    }
  }
  // Multiplies by a number.
  bool scales(size_t i) const {
    const std::string_view name = t.text(event(i).name);
    return op_name(t, event(i)) == "aten::mul" && contains(name, "UnaryFunctor<") &&
           contains(name, "MulFunctor");
  }
  // Casts, scales and copies of the fallback's backward pass, which records no operator of its own.
  bool of_fallback_backward(size_t i) const {
    if (!between(i)) return false;
    for (std::string_view node :
         {"ToCopyBackward0", "UnsafeViewBackward0", "MulBackward0", "MulBackward1"}) {
      if (inside(i, node)) return true;
    }
    return false;
  }
  void take_fallback(Core& core) const {
    if (core.backward) {
      if (!inside(core.softmax, "SafeSoftmaxBackward0")) return;
      const size_t first = core.first, last = core.last;
      while (core.first > 0 && first - core.first < kCastsMost &&
             of_fallback_backward(core.first - 1)) {
        --core.first;
      }
      while (core.last + 1 < g.ops.size() && core.last - last < kCastsMost &&
             of_fallback_backward(core.last + 1)) {
        ++core.last;
      }
      return;
    }
    const int32_t fallback = around(core.softmax, kFallback);
    if (fallback < 0) return;
    while (core.first > 0 && around(core.first - 1, kFallback) == fallback) --core.first;
    while (core.last + 1 < g.ops.size() && around(core.last + 1, kFallback) == fallback) {
      ++core.last;
    }
  }
  // The exponential of a softmax that is written out, or its gradient.
  bool exponential(size_t i) const {
    if (kind(i).kind != KernelKind::kElementwise) return false;
    const std::string_view op = op_name(t, event(i));
    return op == "aten::exp" || op == "aten::exp_" || inside(i, "ExpBackward0");
  }
  bool reduces(const Core& core) const {
    for (size_t i = core.first; i <= core.last; ++i) {
      if (kind(i).kind == KernelKind::kReduction) return true;
    }
    return false;
  }

  // Sizes of an operator's operand, where shapes are recorded.
  std::vector<int64_t> operand(size_t i, size_t index) const {
    const int32_t op = event(i).op;
    if (op < 0) return {};
    const std::vector<std::vector<int64_t>> all =
        parse_dims(t.text(t.host[static_cast<size_t>(op)].shapes));
    return index < all.size() ? all[index] : std::vector<int64_t>{};
  }
  // `[batch,] heads, queries, keys`, with more than one head.
  static bool by_heads(const std::vector<int64_t>& dims) {
    return dims.size() >= 3 && dims[dims.size() - 3] > 1;
  }
  bool adds(size_t i) const {
    const std::string_view op = op_name(t, event(i));
    return op == "aten::add" || op == "aten::add_";
  }
  bool adds_bias(size_t i) const {
    const std::vector<int64_t> to = operand(i, 0), bias = operand(i, 1);
    return adds(i) && by_heads(to) && by_heads(bias) && to.back() == bias.back();
  }
  // The gradient of a bias is the sum of the scores' over the batch.
  bool sums_scores(size_t i, const Core& core) const {
    if (kind(i).kind != KernelKind::kReduction || op_name(t, event(i)) != "aten::sum") return false;
    if (!t.shapes) return i < core.last && inside(i, kAddNode);
    const std::vector<int64_t> dims = operand(i, 0);
    return dims.size() == 4 && by_heads(dims) && dims[2] == dims[3];
  }
  void find_bias(Core& core) const {
    for (size_t i = core.first; !core.backward && i < core.softmax; ++i) {
      core.biased = core.biased || adds_bias(i);
      core.added = core.added || adds(i);
    }
    const size_t end = std::min(core.last + kReach, g.ops.size());
    for (size_t i = core.softmax; core.backward && i < end; ++i) {
      core.bias_learned = core.bias_learned || sums_scores(i, core);
    }
  }
  // Weights that are asked for (`need_weights`, the default of MultiheadAttention) are averaged
  // over the heads right after the output's matmul; a fused kernel has none. No norm begins so.
  void find_mean(Core& core) const {
    bool projected = false;
    for (size_t i = core.last + 1; i < g.ops.size() && i < core.last + kReach; ++i) {
      if (kind(i).kind == KernelKind::kSet) continue;
      const bool mean =
          kind(i).kind == KernelKind::kReduction && op_name(t, event(i)) == "aten::mean";
      if (projected) {
        if (mean) core.beside.push_back(i);
        return;
      }
      projected = kind(i).kind == KernelKind::kMatmul;
    }
  }

  // Walks from the softmax in one direction over what lies between, then over the matmuls.
  bool reach(size_t from, int step, size_t most, Core& core) const {
    size_t at = from, edge = from, found = 0;
    for (size_t walked = 0; walked < kReach; ++walked) {
      if ((step < 0 && at == 0) || (step > 0 && at + 1 >= g.ops.size())) break;
      at = step < 0 ? at - 1 : at + 1;
      if (batched_matmul(at)) {
        core.matmuls.push_back(at);
        edge = at;
        if (++found == most) break;
      } else if (!between(at) || (found > 0 && kind(at).kind != KernelKind::kSet)) {
        break;
      } else if (found == 0 && kind(at).kind == KernelKind::kSoftmax) {
        break;
      }
    }
    (step < 0 ? core.first : core.last) = edge;
    return found > 0;
  }

  std::vector<Core> cores() const {
    std::vector<Core> out;
    for (size_t i = 0; i < g.ops.size(); ++i) {
      if (!out.empty() && i <= out.back().last) continue;
      const bool written_out = exponential(i);
      if (!written_out && (kind(i).kind != KernelKind::kSoftmax || kind(i).compiled)) continue;
      const std::string_view op = op_name(t, event(i));
      if (contains(op, "log_softmax")) continue;
      Core core;
      core.softmax = i;
      core.backward = contains(op, "backward") || contains(t.text(event(i).name), "Backward") ||
                      (written_out && inside(i, "ExpBackward0"));
      const size_t most = core.backward ? 2 : 1;
      if (!reach(i, -1, most, core) || !reach(i, +1, most, core)) continue;
      if (written_out && !reduces(core)) continue;
      take_copies(core);
      take_fallback(core);
      find_bias(core);
      if (!core.backward) find_mean(core);
      for (size_t k = core.first; k <= core.last; ++k) {
        if (inside(k, "aten::_safe_softmax")) continue;  // its `where` is no mask
        const std::string_view name = op_name(t, event(k));
        core.masked = core.masked || contains(name, "masked_fill") || contains(name, "where") ||
                      contains(name, "triu") || contains(name, "tril");
      }
      out.push_back(core);
    }
    const bool turned =
        std::any_of(out.begin(), out.end(), [](const Core& core) { return core.turned; });
    for (Core& core : out) {
      if (turned) take_turns(core);
    }
    return out;
  }
};

struct Size {
  int64_t sequences_heads = 0, queries = 0, keys = 0, head = 0;
  bool known() const { return sequences_heads > 0 && queries > 0 && keys > 0 && head > 0; }
};

int64_t softmax_rows(std::string_view name, const DeviceEvent& e) {
  if (contains(name, "softmax_warp")) {
    // One warp a row, two rows a warp up to 128 columns; block.y warps.
    const int64_t rows = static_cast<int64_t>(e.grid[0]) * std::max(e.block[1], 1);
    return rows;
  }
  return static_cast<int64_t>(e.grid[0]);
}

int64_t element_bytes(std::string_view name) {
  return contains(name, "float") && !contains(name, "BFloat16") && !contains(name, "Half") ? 4 : 2;
}

// Columns that a kernel of PyTorch's for short rows is made for: the next power of two. 0: another.
int64_t softmax_columns(std::string_view name) {
  size_t at = name.find("softmax_warp_forward<");
  for (int comma = 0; comma < 3 && at != std::string_view::npos; ++comma) {
    at = name.find(',', at + 1);
  }
  if (at == std::string_view::npos) return 0;
  int64_t log2 = 0;
  for (at += 2; at < name.size() && name[at] >= '0' && name[at] <= '9' && log2 < 100; ++at) {
    log2 = log2 * 10 + (name[at] - '0');
  }
  return log2 > 0 && log2 < 20 ? int64_t{1} << log2 : 0;
}

Size size_from_grids(const Search& s, const Core& core) {
  Size size;
  const DeviceEvent& softmax = s.event(core.softmax);
  const int64_t rows = softmax_rows(s.t.text(softmax.name), softmax);
  if (rows <= 0) return size;
  int64_t scores = 0;
  for (size_t i = core.scores; i <= core.last; ++i) {
    const DeviceEvent& e = s.event(i);
    const std::string_view name = s.t.text(e.name);
    int64_t n = elements_of(name, e);
    if (e.kind == DeviceKind::kCopy && e.bytes > 0) n = e.bytes / element_bytes(name);
    scores = std::max(scores, n);
  }
  if (scores == 0) scores = rows * softmax_columns(s.t.text(softmax.name));
  int64_t output = 0;
  for (size_t i = core.last + 1; i < s.g.ops.size() && i < core.last + 4 && output == 0; ++i) {
    output = elements_of(s.t.text(s.event(i).name), s.event(i));
  }
  if (scores < rows || output < rows) return size;
  size.keys = scores / rows;
  size.queries = size.keys;  // of its own sequence
  size.sequences_heads = std::max<int64_t>(rows / size.queries, 1);
  size.head = output / rows;
  if (size.head < 8 || size.head > 1024 || rows < size.queries) return {};
  return size;
}

Size size_of(const Search& s, const Core& core) {
  // Scores are queries x keys from k = head size.
  const auto first = recorded_matmul(s.t, s.event(core.scores));
  if (first && !core.backward) return {first->batch, first->m, first->n, first->k};
  // A softmax that is written out has no kernel with a block a row.
  return s.kind(core.softmax).kind == KernelKind::kSoftmax ? size_from_grids(s, core) : Size{};
}

}  // namespace

namespace {

// Of a learned bias each core shows its own; a given one has no gradient.
BiasCost bias_cost(const Core& core, bool learned) {
  if (!learned) return kBiasGiven;
  return core.added || core.bias_learned ? kBiasLearned : BiasCost{};
}

}  // namespace

Waste unfused_attention(const StepGraph& g, const Trace& t, const KernelTable& table,
                        const DeviceModel& d) {
  Waste w;
  w.cause = Cause::kUnfusedAttention;
  w.duration_ns.assign(g.ops.size(), -1);
  const Search search{g, t, table};
  const std::vector<Core> cores = search.cores();
  Size size;
  bool masked = false, biased = false, learned = false;
  for (const Core& core : cores) {
    masked = masked || core.masked;
    biased = biased || core.biased;
    learned = learned || core.bias_learned;
    if (!core.backward && !size.known()) size = size_of(search, core);
  }
  for (const Core& core : cores) biased = biased || (learned && core.added);
  AttentionTime fused;
  const bool priced = size.known() && d.accelerator != nullptr;
  if (priced) {
    AttentionShape shape;
    shape.heads = size.sequences_heads;
    shape.qk_dim = shape.v_dim = static_cast<double>(size.head);
    shape.queries = static_cast<double>(size.queries);
    shape.keys = static_cast<double>(size.keys);
    shape.causal = masked && size.queries == size.keys;
    // The library picks its vendor's kernel from Hopper on.
    const bool vendor = !t.devices.empty() && t.devices.front().major >= 9;
    fused = attention_time(shape, vendor ? AttentionKernel::kVendor : AttentionKernel::kPortable,
                           *d.accelerator, *d.kernels);
    w.biased = biased;
    w.what =
        fmt::format("{} sequences x heads, {} x {} scores, head size {}{}", size.sequences_heads,
                    size.queries, size.keys, size.head, biased ? ", with a bias" : "");
  }
  for (const Core& core : cores) {
    int64_t before = 0, busy = 0, matmuls = 0;
    for (size_t i = core.first; i <= core.last; ++i) {
      before += g.ops[i].duration_ns;
      busy += g.ops[i].busy_ns;
      w.duration_ns[i] = 0;
      w.ops.push_back(static_cast<int32_t>(i));
    }
    for (size_t i : core.matmuls) matmuls += g.ops[i].duration_ns;
    for (size_t i : core.beside) {
      busy += g.ops[i].busy_ns;
      w.duration_ns[i] = 0;
      w.ops.push_back(static_cast<int32_t>(i));
    }
    const BiasCost bias = biased ? bias_cost(core, learned) : BiasCost{};
    const Seconds time =
        core.backward ? fused.backward * bias.backward : fused.forward * bias.forward;
    const int64_t after = std::min(before, priced ? static_cast<int64_t>(time.v * 1e9) : matmuls);
    w.duration_ns[core.first] = after;
    w.before_ns += busy;
    w.saved_ns += std::max<int64_t>(busy - after, 0);
  }
  w.confidence = priced ? Confidence::kHigh : Confidence::kMedium;
  return w;
}

}  // namespace assay
