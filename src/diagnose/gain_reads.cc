#include "diagnose/gain_reads.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "diagnose/gain_share.h"
#include "diagnose/gain_whatif.h"
#include "diagnose/kernel_table.h"

namespace assay {
namespace {

constexpr int kReadDepthMost = 16;  // of operators inside one another

// A sum or a mean may be a model's loss; with a comparison before it, it counts something.
constexpr std::array kSums = {"aten::sum", "aten::mean"};
constexpr std::array kReducers = {"aten::linalg_vector_norm",
                                  "aten::norm",
                                  "aten::any",
                                  "aten::all",
                                  "aten::min",
                                  "aten::max",
                                  "aten::amin",
                                  "aten::amax",
                                  "aten::aminmax",
                                  "aten::_aminmax",
                                  "aten::histc",
                                  "aten::std",
                                  "aten::var",
                                  "aten::count_nonzero",
                                  "aten::median"};
constexpr std::array kComparisons = {"aten::ne",    "aten::eq",          "aten::gt",
                                     "aten::lt",    "aten::ge",          "aten::le",
                                     "aten::isnan", "aten::isinf",       "aten::isfinite",
                                     "aten::abs",   "aten::logical_or",  "aten::logical_and",
                                     "aten::neg",   "aten::logical_not", "aten::bitwise_or",
                                     "aten::isin",  "aten::bitwise_not", "aten::bitwise_and"};

template <size_t n>
bool is_one_of(const std::array<const char*, n>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

enum class ReadPart : uint8_t { kNothing, kReduces, kCounts, kCompares };

struct Marks {
  const Trace& t;
  StepGraph& g;

  const DeviceEvent& event(int32_t op) const {
    return t.device[static_cast<size_t>(g.ops[static_cast<size_t>(op)].event)];
  }
  const RuntimeEvent& runtime(const HostCall& call) const {
    return t.runtime[static_cast<size_t>(call.runtime)];
  }

  // What the operators around an event do with it, and the outermost of those that do.
  ReadPart part_of(const DeviceEvent& e, int32_t& outermost) const {
    ReadPart part = ReadPart::kNothing;
    int32_t op = e.op;
    for (int depth = 0; op >= 0 && depth < kReadDepthMost; ++depth) {
      const HostEvent& h = t.host[static_cast<size_t>(op)];
      const std::string_view name = t.text(h.name);
      const ReadPart own = is_one_of(kReducers, name)      ? ReadPart::kReduces
                           : is_one_of(kSums, name)        ? ReadPart::kCounts
                           : is_one_of(kComparisons, name) ? ReadPart::kCompares
                                                           : ReadPart::kNothing;
      if (own != ReadPart::kNothing) {
        part = own;
        outermost = op;
      }
      op = h.parent;
    }
    return part;
  }

  bool only_moves(const HostCall& call) const {
    for (int32_t i = 0; i < call.ops; ++i) {
      if (event(call.first_op + i).kind == DeviceKind::kKernel) return false;
    }
    return true;
  }

  void mark(size_t from, size_t to, int32_t outermost) {
    for (size_t i = from; i < to; ++i) {
      g.calls[i].for_read = true;
      g.calls[i].kept = 0;
    }
    // The host's work before the first of them is theirs only from where their operator began.
    HostCall& first = g.calls[from];
    if (from == 0 || g.calls[from - 1].runtime < 0 || outermost < 0) return;
    const RuntimeEvent& before = runtime(g.calls[from - 1]);
    const int64_t begin = before.start_ns + std::max<int64_t>(before.duration_ns, 0);
    const int64_t work = runtime(first).start_ns - begin;
    const int64_t other = t.host[static_cast<size_t>(outermost)].start_ns - begin;
    if (work <= 0) return;
    first.kept = std::clamp(static_cast<double>(other) / static_cast<double>(work), 0.0, 1.0);
  }

  // `if tensor == 0:` reads the one value that the comparison makes.
  bool asks_whether(const HostCall& call) const {
    int32_t op = call.ops > 0 ? event(call.first_op).op : -1;
    for (int depth = 0; op >= 0 && depth < kReadDepthMost; ++depth) {
      const HostEvent& h = t.host[static_cast<size_t>(op)];
      if (t.text(h.name) == "aten::is_nonzero") return true;
      op = h.parent;
    }
    return false;
  }

  // Marks what the read of this call is the only reader of: one reduction, with the comparisons
  // before it. What was computed in bulk before the first read may be wanted on the device.
  void read(size_t at) {
    size_t from = at;        // the first call that is the read's for certain
    int32_t outermost = -1;  // its operator
    ReadPart last = ReadPart::kNothing;
    const bool asks = asks_whether(g.calls[at]);
    for (size_t i = at; i-- > 0;) {
      const HostCall& call = g.calls[i];
      if (call.runtime < 0 || call.for_read || waits(call)) break;
      if (call.kind == CallKind::kAllocate || call.kind == CallKind::kSync) break;
      if (call.ops == 0 || only_moves(call)) continue;
      int32_t around = -1;
      const ReadPart part = part_of(event(call.first_op), around);
      // A reduction of several passes is one: they are of one operator.
      const bool again = around >= 0 && around == outermost;
      const bool fits = (last != ReadPart::kNothing || asks) && part == ReadPart::kCompares;
      const bool begins =
          last == ReadPart::kNothing && (part == ReadPart::kReduces || part == ReadPart::kCounts);
      if (!fits && !begins && !again) break;
      last = part;
      outermost = around;
      if (part == ReadPart::kCounts) continue;
      from = i;
    }
    if (from < at) mark(from, at + 1, outermost);
  }

  // Anomaly mode asks of every gradient whether any of it is no number, by an operator that nothing
  // else calls.
  bool in_anomaly_mode() const {
    int checks = 0;
    constexpr int kChecksLeast = 8;  // a step has dozens; one or two may be somebody's own
    for (const HostCall& call : g.calls) {
      if (!call.for_read || call.ops == 0) continue;
      int32_t op = event(call.first_op).op;
      for (int depth = 0; op >= 0 && depth < kReadDepthMost; ++depth) {
        const HostEvent& h = t.host[static_cast<size_t>(op)];
        if (t.text(h.name) == "aten::_is_any_true") ++checks;
        op = h.parent;
      }
    }
    return checks >= kChecksLeast;
  }
};

// The forward pass at the backward pass's work per launch.
void forget_stacks(StepGraph& g, const Trace& t) {
  struct Side {
    int64_t work = 0, launches = 0;
  };
  const auto thread = [&](const HostCall& call) {
    return t.runtime[static_cast<size_t>(call.runtime)].thread;
  };
  int32_t backward = -1;
  for (const HostCall& call : g.calls) {
    if (call.for_read && call.runtime >= 0) backward = thread(call);
  }
  Side checked, other;
  for (const HostCall& call : g.calls) {
    if (call.runtime < 0 || call.for_read) continue;
    Side& side = thread(call) == backward ? checked : other;
    side.work += call.work_ns;
    side.launches += call.ops > 0 ? 1 : 0;
  }
  if (checked.launches == 0 || other.work <= 0) return;
  const double each = static_cast<double>(checked.work) / static_cast<double>(checked.launches);
  const double share = each * static_cast<double>(other.launches) / static_cast<double>(other.work);
  if (share >= 1) return;
  for (HostCall& call : g.calls) {
    if (call.runtime < 0 || call.for_read || thread(call) == backward) continue;
    call.work_ns = std::llround(static_cast<double>(call.work_ns) * share);
  }
}

}  // namespace

void mark_reads(const Trace& t, StepGraph& g) {
  Marks marks{t, g};
  for (size_t i = 0; i < g.calls.size(); ++i) {
    if (!waits(g.calls[i])) continue;
    const bool fetched = i > 0 && g.calls[i - 1].for_read && g.calls[i].ops == 0;
    if (fetched) {
      marks.mark(i, i + 1, -1);  // completes the copy before it
    } else {
      marks.read(i);
    }
  }
  g.anomaly_mode = marks.in_anomaly_mode();
}

StepGraph without_reads(StepGraph g, const Trace& t) {
  if (g.anomaly_mode) forget_stacks(g, t);
  for (HostCall& call : g.calls) {
    if (!call.for_read) continue;
    call.work_ns = std::llround(static_cast<double>(call.work_ns) * call.kept);
    call.call_ns = 0;
    for (int32_t i = 0; i < call.ops; ++i) {
      DeviceOp& op = g.ops[static_cast<size_t>(call.first_op + i)];
      op.gap_ns = std::min<int64_t>(op.gap_ns, 0);
      op.latency_ns = op.late_ns = 0;
      set_duration(op, 0);
    }
  }
  return g;
}

}  // namespace assay
