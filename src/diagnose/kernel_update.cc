// Parameters that are updated by hand: `p.mul_(1 - lr * decay); m.mul_(b1).add_(g, alpha=1 - b1);
// ...` in a loop over the tensors, outside any optimizer of the framework.
//
// In the trace that is what the step's own thread launches after the backward pass (which has a
// thread of its own) and after the last arithmetic: passes over one tensor after another, four and
// more over each, one of them in place. Small reductions between them (the norms of LAMB) belong to
// it. They are the optimizer's, and no part of the model that a compiler would fuse.
//
// As with Adam's passes over lists (kernel_optimizer.cc) bytes tell the time of a fused kernel.
// What a pass moves is in its kernel's name: one operand in and the result out, two operands and
// the result, and so on.
#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "base/text.h"
#include "diagnose/gain_share.h"
#include "diagnose/kernel_waste.h"

namespace assay {
namespace {

constexpr int64_t kAside = 100;  // a kernel on so many times fewer elements is beside the passes
// Parameter, gradient and momentum read, all but the gradient written; Adam has a second moment.
constexpr int kFusedMomentum = 5, kFusedAdam = 7;

int64_t covered(const Trace& t, const DeviceEvent& e) { return elements_of(t.text(e.name), e); }

bool same_tensor(int64_t a, int64_t b) {
  return static_cast<double>(std::abs(a - b)) <= kSameTensor * static_cast<double>(std::max(a, b));
}

int32_t launching_thread(const Trace& t, const DeviceEvent& e) {
  return t.runtime[static_cast<size_t>(e.launch)].thread;
}

bool in_place(const Trace& t, const DeviceEvent& e) { return op_name(t, e).ends_with("_"); }

// Passes over one tensor.
struct TensorPasses {
  std::vector<int32_t> events;  // with what is beside them
  int64_t elements = 0;
  size_t passes = 0;
  bool updates = false;
};

struct Updates {
  const Trace& t;
  const KernelTable& table;
  std::vector<int32_t> found;
  TensorPasses open;
  size_t tensors = 0;

  void close() {
    if (open.passes >= kRunLeast && open.updates) {
      found.insert(found.end(), open.events.begin(), open.events.end());
      ++tensors;
    }
    open = {};
  }
  void visit(int32_t index) {
    const DeviceEvent& e = t.device[static_cast<size_t>(index)];
    const KernelClass& k = table.of(static_cast<size_t>(index));
    const bool set = k.kind == KernelKind::kSet;
    if (!set && (!is_memory_kind(k.kind) || k.compiled)) return close();
    const int64_t elements = k.kind == KernelKind::kElementwise ? covered(t, e) : 0;
    const bool beside =
        set || k.kind == KernelKind::kReduction || elements * kAside < open.elements;
    if (!beside && !same_tensor(elements, open.elements)) close();
    if (beside && open.passes == 0) return;
    open.events.push_back(index);
    if (beside) return;
    open.elements = elements;
    ++open.passes;
    open.updates = open.updates || in_place(t, e);
  }
};

}  // namespace

int tensors_moved(std::string_view kernel) {
  if (contains(kernel, "addcdiv") || contains(kernel, "addcmul")) return 4;
  if (contains(kernel, "CUDAFunctor_add") || contains(kernel, "BinaryFunctor") ||
      contains(kernel, "lerp")) {
    return 3;
  }
  return 2;
}

void mark_updates(const Trace& t, KernelTable& table) {
  const std::vector<int32_t> events = events_by_launch(t);
  std::map<uint32_t, uint32_t> made;  // class to the same class, the optimizer's
  const auto launched = [&](int32_t e) {
    return t.runtime[static_cast<size_t>(t.device[static_cast<size_t>(e)].launch)].start_ns;
  };
  const auto first_at = [&](int64_t when) {
    return std::partition_point(events.begin(), events.end(),
                                [&](int32_t e) { return launched(e) < when; });
  };
  for (int32_t index : t.steps) {
    const HostEvent& step = t.host[static_cast<size_t>(index)];
    if (step.duration_ns <= 0) continue;
    const auto begin = first_at(step.start_ns), end = first_at(step.start_ns + step.duration_ns);
    auto tail = end;
    while (tail != begin && !is_math_kind(table.of(static_cast<size_t>(*(tail - 1))).kind)) --tail;
    if (tail == begin) continue;
    const DeviceEvent& last = t.device[static_cast<size_t>(*(tail - 1))];
    if (launching_thread(t, last) == step.thread) continue;
    Updates updates{t, table, {}, {}, 0};
    for (; tail != end; ++tail) {
      const DeviceEvent& e = t.device[static_cast<size_t>(*tail)];
      if (launching_thread(t, e) == step.thread) updates.visit(*tail);
    }
    updates.close();
    if (updates.tensors < 2) continue;
    for (int32_t event : updates.found) {
      uint32_t& of = table.event_class[static_cast<size_t>(event)];
      const auto [it, fresh] = made.try_emplace(of, static_cast<uint32_t>(table.classes.size()));
      if (fresh) {
        KernelClass k = table.classes[of];
        k.kind = KernelKind::kOptimizer;
        k.by_hand = true;
        table.classes.push_back(k);
      }
      of = it->second;
    }
  }
}

Waste hand_updates(const StepGraph& g, const Trace& t, const KernelTable& table) {
  Waste w = waste_of(g, Cause::kMemoryBound);
  int moved = 0;
  size_t tensors = 0;
  std::vector<size_t> group;
  int64_t elements = 0;
  const auto close = [&] {
    double before = 0;
    int own = 0;
    bool roots = false;
    for (size_t i : group) {
      const std::string_view name = t.text(t.device[static_cast<size_t>(g.ops[i].event)].name);
      before += static_cast<double>(g.ops[i].duration_ns);
      own += tensors_moved(name);
      roots = roots || contains(name, "sqrt");
    }
    const int fused = roots ? kFusedAdam : kFusedMomentum;
    if (own > fused) {
      for (size_t i : group) {
        const double left = i == group.back() ? before * fused / own : 0;
        // The one that stays takes longer than it did, and the others are part of it.
        DeviceOp after = g.ops[i];
        set_duration(after, std::llround(left));
        w.duration_ns[i] = after.duration_ns;
        w.ops.push_back(static_cast<int32_t>(i));
        w.before_ns += g.ops[i].busy_ns;
        w.saved_ns += g.ops[i].busy_ns - after.busy_ns;
      }
      moved += own;
      ++tensors;
    }
    group.clear();
  };
  for (size_t i = 0; i < g.ops.size(); ++i) {
    const size_t event = static_cast<size_t>(g.ops[i].event);
    const int64_t n = covered(t, t.device[event]);
    const bool update = table.of(event).by_hand && n > 0 && n * kAside >= elements;
    if (!update) continue;
    if (!same_tensor(n, elements)) close();
    elements = n;
    group.push_back(i);
  }
  close();
  if (tensors == 0) return w;
  w.optimizer_ns = w.before_ns;
  w.what = fmt::format(
      "{:.1f} ms a step go to an optimizer that is written out: {} kernels on {} tensors, {:.0f} "
      "tensors moved for each where a fused kernel moves {}.",
      static_cast<double>(w.before_ns) * 1e-6, w.ops.size(), tensors,
      static_cast<double>(moved) / static_cast<double>(tensors), kFusedAdam);
  return w;
}

}  // namespace assay
