// Norms and activations that are written out: `x * torch.rsqrt(x.pow(2).mean(-1) + eps) * weight`,
// or GELU's cubic by hand, each operation a kernel of its own, where the framework has one kernel
// for all of them (rms_norm, gelu) and one or two for their gradient. Unlike the passes that any
// eager program makes, these need no compiler to go.
//
// A norm is known by its reciprocal root after a reduction, GELU by its hyperbolic tangent beside a
// power; their gradients by the nodes of those two. From there the passes before and after belong
// to it as far as the formula goes: so many products, one cast in and one out, one addition. What
// is left over (the residual's addition, the rotation of queries) stays.
//
// Bytes tell the time of the fused kernel, as with optimizers (kernel_update.cc): it reads and
// writes each tensor once, and where the passes cast to fp32 it moves 16 bit. For a norm of 8192
// rows of 2048 on an H200 that makes 18 us of 233 forward and 42 of 502 backward, measured 23 and
// 68; for GELU on 16384 rows of 3072 57 of 1074 and 61 of 1384, measured 67 and 91.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"
#include "diagnose/kernel_waste.h"

namespace assay {
namespace {

constexpr int kWrittenDepth = 8;  // of operators inside one another
constexpr std::string_view kNode = "autograd::engine::evaluate_function: ";
constexpr std::string_view kCast = "aten::_to_copy";
// A pass of less than this share of the longest works on one value a row.
constexpr double kRowValues = 0.1;

// So many passes of this name (of a node: of names that begin so) may belong to the formula.
struct Allowed {
  std::string_view name;
  int left;
};

struct Formula {
  std::string_view anchor;  // its operator or node
  std::vector<Allowed> before, after;
  std::string_view needed;  // one of its passes; empty: a reduction
  int fused = 0;            // tensors that its fused kernels move
  bool norm = false;
};

// Input and output; their two and the weight's gradient once more; the gradient's, the input and
// the result.
constexpr int kForwardMoves = 2, kNormBackwardMoves = 5, kBackwardMoves = 3;

std::vector<Formula> formulas() {
  return {
      {"aten::rsqrt",
       {{"aten::add", 1},
        {"aten::mean", 1},
        {"aten::sum", 1},
        {"aten::pow", 1},
        {"aten::mul", 1},
        {kCast, 1}},
       {{"aten::mul", 2}, {kCast, 1}},
       "",
       kForwardMoves,
       true},
      {"RsqrtBackward",
       {{"MulBackward", 6}, {"ToCopyBackward", 1}},
       {{"RsqrtBackward", 2},
        {"AddBackward", 1},
        {"MeanBackward", 1},
        {"PowBackward", 4},
        {"MulBackward", 2},
        {"ToCopyBackward", 1}},
       "",
       kNormBackwardMoves,
       true},
      {"aten::tanh",
       {{"aten::mul", 3}, {"aten::add", 1}, {"aten::pow", 1}, {kCast, 1}},
       {{"aten::add", 1}, {"aten::mul", 2}},
       "aten::pow",
       kForwardMoves,
       false},
      {"TanhBackward",
       {{"MulBackward", 3}, {"AddBackward", 1}},
       {{"MulBackward", 4}, {"AddBackward", 2}, {"PowBackward", 3}, {"ToCopyBackward", 2}},
       "PowBackward",
       kBackwardMoves,
       false},
  };
}

struct WrittenSearch {
  const StepGraph& g;
  const Trace& t;
  const KernelTable& table;

  const DeviceEvent& event(size_t i) const { return t.device[static_cast<size_t>(g.ops[i].event)]; }
  KernelKind kind(size_t i) const { return table.of(static_cast<size_t>(g.ops[i].event)).kind; }

  // The node of the backward pass that launched it, without its number; else its operator; a cast
  // is one whatever copies for it. Empty: no pass of a formula.
  std::string_view pass(size_t i) const {
    const KernelClass& k = table.of(static_cast<size_t>(g.ops[i].event));
    const bool single = k.kind == KernelKind::kElementwise || k.kind == KernelKind::kReduction ||
                        k.kind == KernelKind::kMove;
    if (!single || k.compiled) return {};
    std::string_view found = op_name(t, event(i));
    int32_t op = event(i).op;
    for (int depth = 0; op >= 0 && depth < kWrittenDepth; ++depth) {
      const HostEvent& h = t.host[static_cast<size_t>(op)];
      const std::string_view name = t.text(h.name);
      if (name.starts_with(kNode)) return name.substr(kNode.size());
      if (name == kCast) found = kCast;
      op = h.parent;
    }
    return found;
  }
  static bool is(std::string_view pass, std::string_view name) {
    return name.starts_with("aten::") ? pass == name : pass.starts_with(name);
  }

  void walk(size_t from, size_t step, std::vector<Allowed> allowed,
            std::vector<size_t>& group) const {
    for (size_t i = from + step; i < g.ops.size(); i += step) {  // below zero is beyond the end
      if (kind(i) == KernelKind::kSet) continue;
      const std::string_view name = pass(i);
      const auto it = std::find_if(allowed.begin(), allowed.end(), [&](const Allowed& a) {
        return a.left > 0 && is(name, a.name);
      });
      if (name.empty() || it == allowed.end() || g.ops[i].lane != g.ops[from].lane) return;
      --it->left;
      group.push_back(i);
    }
  }

  // The passes of a formula around its anchor, in order; empty: it is something else.
  std::vector<size_t> group_at(size_t anchor, const Formula& f) const {
    if (!is(pass(anchor), f.anchor)) return {};
    std::vector<size_t> group = {anchor};
    walk(anchor, static_cast<size_t>(-1), f.before, group);
    walk(anchor, 1, f.after, group);
    const bool complete = std::any_of(group.begin(), group.end(), [&](size_t i) {
      return f.needed.empty() ? kind(i) == KernelKind::kReduction : is(pass(i), f.needed);
    });
    if (!complete || group.size() < kRunLeast) return {};
    std::sort(group.begin(), group.end());
    return group;
  }

  // One kernel stands where the group's longest stood, and the others go.
  void fuse(const std::vector<size_t>& group, int fused, Waste& w) const {
    const size_t longest = *std::max_element(group.begin(), group.end(), [&](size_t a, size_t b) {
      return g.ops[a].duration_ns < g.ops[b].duration_ns;
    });
    const double most = static_cast<double>(g.ops[longest].duration_ns);
    double all = 0, moved = 0;
    bool casts = false;
    for (size_t i : group) {
      const double ns = static_cast<double>(g.ops[i].duration_ns);
      if (ns < kRowValues * most) continue;
      all += ns;
      moved += kind(i) == KernelKind::kReduction ? 1 : tensors_moved(t.text(event(i).name));
      casts = casts || is(pass(i), kCast) || is(pass(i), "ToCopyBackward");
    }
    if (moved <= 0) return;
    const double left = all * fused * (casts ? 0.5 : 1) / moved;
    const int64_t kept = std::max<int64_t>(std::llround(left), kKernelFloor);
    for (size_t i : group) replace_op(g, w, i, i == longest ? kept : 0, true);
  }
};

}  // namespace

Waste written_out(const StepGraph& g, const Trace& t, const KernelTable& table) {
  Waste w = waste_of(g, Cause::kMemoryBound);
  const WrittenSearch search{g, t, table};
  const std::vector<Formula> all = formulas();
  int norms = 0, activations = 0;
  for (size_t i = 0; i < g.ops.size(); ++i) {
    if (w.duration_ns[i] >= 0) continue;
    for (const Formula& f : all) {
      const std::vector<size_t> group = search.group_at(i, f);
      const bool taken =
          std::any_of(group.begin(), group.end(), [&](size_t k) { return w.duration_ns[k] >= 0; });
      if (group.empty() || taken) continue;
      search.fuse(group, f.fused, w);
      (f.norm ? norms : activations) += f.anchor.starts_with("aten::") ? 1 : 0;
      break;
    }
  }
  if (w.ops.empty()) return w;
  w.written_ns = w.before_ns;
  const std::string what = norms > 0 && activations > 0
                               ? fmt::format("{} norms and {} activations", norms, activations)
                           : norms > 0 ? fmt::format("{} norms", norms)
                                       : fmt::format("{} activations", activations);
  w.what = fmt::format(
      "{:.1f} ms a step go to {} kernels of {} that are written out in single operations, with "
      "their gradients; the framework has fused ones.",
      static_cast<double>(w.before_ns) * 1e-6, w.ops.size(), what);
  return w;
}

}  // namespace assay
