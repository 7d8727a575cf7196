#include "diagnose/trace_evidence.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/diagnostic.h"

namespace assay {
namespace {

constexpr size_t kNameMost = 100;
constexpr size_t kChainMost = 6;  // operators of a chain that are worth printing

std::string clean(std::string_view text) { return sanitize(std::string(text), kNameMost); }

std::string at(const FindingInput& in, int64_t ns) {
  return fmt::format("{:.3f} ms", static_cast<double>(ns - in.view.from_ns) * 1e-6);
}
std::string length(int64_t ns) { return fmt::format("{:.1f} us", static_cast<double>(ns) * 1e-3); }

}  // namespace

std::string op_chain(const Trace& t, int32_t thread, int64_t at_ns) {
  // The last event of the thread that began before: it, or one of its parents, holds the time.
  auto after = std::upper_bound(t.host.begin(), t.host.end(), at_ns,
                                [](int64_t when, const HostEvent& e) { return when < e.start_ns; });
  int32_t found = -1;
  for (auto it = after; it != t.host.begin();) {
    --it;
    if (it->thread != thread || it->kind == HostKind::kPython) continue;
    found = static_cast<int32_t>(it - t.host.begin());
    break;
  }
  std::vector<std::string> names;
  for (int depth = 0; found >= 0 && depth < 64; ++depth) {
    const HostEvent& e = t.host[static_cast<size_t>(found)];
    const bool holds = e.start_ns <= at_ns && at_ns < e.start_ns + e.duration_ns;
    if (holds && e.kind != HostKind::kPython && names.size() < kChainMost &&
        t.text(e.name).substr(0, 12) != "ProfilerStep") {
      names.push_back(clean(t.text(e.name)));
    }
    found = e.parent;
  }
  std::reverse(names.begin(), names.end());
  return fmt::format("{}", fmt::join(names, " > "));
}

Evidence kernel_evidence(const FindingInput& in, const std::vector<int32_t>& ops) {
  struct Sum {
    int64_t time = 0;
    int64_t count = 0;
  };
  std::map<std::pair<std::string_view, std::string_view>, Sum> sums;
  int64_t all = 0;
  auto add = [&](const DeviceOp& op) {
    const DeviceEvent& e = in.trace.device[static_cast<size_t>(op.event)];
    Sum& sum = sums[{in.trace.text(e.name), op_name(in.trace, e)}];
    sum.time += op.busy_ns;
    ++sum.count;
  };
  for (const DeviceOp& op : in.graph.ops) all += op.busy_ns;
  if (ops.empty()) {
    for (const DeviceOp& op : in.graph.ops) add(op);
  } else {
    for (int32_t i : ops) add(in.graph.ops[static_cast<size_t>(i)]);
  }
  std::vector<std::pair<std::pair<std::string_view, std::string_view>, Sum>> order(sums.begin(),
                                                                                   sums.end());
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.second.time > b.second.time; });
  Evidence e;
  e.title = "kernels of the step by their part of its busy time";
  e.file = in.trace.file;
  e.columns = {"time", "share", "count", "operator", "kernel"};
  for (const auto& [key, sum] : order) {
    if (e.rows.size() >= kEvidenceRows) break;
    const double share =
        static_cast<double>(sum.time) / static_cast<double>(std::max<int64_t>(all, 1));
    e.rows.push_back({length(sum.time), fmt::format("{:.1f} %", share * 100),
                      fmt::format("{}", sum.count), clean(key.second), clean(key.first)});
  }
  return e;
}

Evidence gap_evidence(const FindingInput& in, Cause cause) {
  Evidence e;
  e.title = "the longest idle gaps of the device";
  e.file = in.trace.file;
  e.columns = {"at", "idle", "the host", "next on the device"};
  for (const IdleGap& gap : in.idle.gaps) {
    if (gap.cause != cause || e.rows.size() >= kEvidenceRows) continue;
    std::string next = "-", host = "-";
    if (gap.next >= 0) {
      const DeviceEvent& event = in.trace.device[static_cast<size_t>(gap.next)];
      next = clean(in.trace.text(event.name));
      if (event.launch >= 0) {
        const RuntimeEvent& launch = in.trace.runtime[static_cast<size_t>(event.launch)];
        host = op_chain(in.trace, launch.thread, gap.start_ns);
      }
    }
    e.rows.push_back({at(in, gap.start_ns), length(gap.end_ns - gap.start_ns),
                      host.empty() ? "nothing recorded" : host, next});
  }
  return e;
}

Evidence call_evidence(const FindingInput& in, Cause cause) {
  Evidence e;
  e.title = "calls that hold the host";
  e.file = in.trace.file;
  e.columns = {"at", "held", "call", "bytes", "operators"};
  std::vector<const HostCall*> calls;
  for (const HostCall& call : in.graph.calls) {
    if (call.runtime >= 0 && cause_of(call) == cause) calls.push_back(&call);
  }
  auto held = [&](const HostCall* call) {
    return in.trace.runtime[static_cast<size_t>(call->runtime)].duration_ns;
  };
  std::stable_sort(calls.begin(), calls.end(),
                   [&](const HostCall* a, const HostCall* b) { return held(a) > held(b); });
  for (const HostCall* call : calls) {
    if (e.rows.size() >= kEvidenceRows) break;
    const RuntimeEvent& r = in.trace.runtime[static_cast<size_t>(call->runtime)];
    std::string bytes = "-";
    if (call->kind == CallKind::kCopy) {
      const DeviceOp& op = in.graph.ops[static_cast<size_t>(call->first_op)];
      bytes = fmt::format("{}", in.trace.device[static_cast<size_t>(op.event)].bytes);
    }
    e.rows.push_back({at(in, r.start_ns), length(r.duration_ns), clean(in.trace.text(r.name)),
                      bytes, op_chain(in.trace, r.thread, r.start_ns)});
  }
  return e;
}

std::vector<Evidence> evidence_of(const Priced& p, const FindingInput& in) {
  std::vector<Evidence> out;
  switch (p.cause) {
    case Cause::kDataStarved:
    case Cause::kGarbageCollection:
    case Cause::kLaunchBound:
      out.push_back(gap_evidence(in, p.cause));
      break;
    case Cause::kHostSync:
    case Cause::kPageableCopies:
    case Cause::kAllocator:
      out.push_back(call_evidence(in, p.cause));
      out.push_back(gap_evidence(in, p.cause));
      break;
    case Cause::kExposedCommunication:
    case Cause::kPipelineBubble: {
      std::vector<int32_t> ops;
      for (size_t i = 0; i < in.graph.ops.size(); ++i) {
        const size_t event = static_cast<size_t>(in.graph.ops[i].event);
        if (in.table.of(event).kind == KernelKind::kCommunication) {
          ops.push_back(static_cast<int32_t>(i));
        }
      }
      out.push_back(kernel_evidence(in, ops));
      break;
    }
    default:
      out.push_back(kernel_evidence(in, p.waste.ops));
  }
  std::erase_if(out, [](const Evidence& e) { return e.rows.empty(); });
  return out;
}

}  // namespace assay
