// Kernel logs to findings: which node must be drained, and what is only an application's fault.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "diagnose/hardware.h"
#include "diagnose/xid.h"
#include "ingest/time_text.h"

namespace assay {
namespace {

// The machine that a line is about: syslog names it, else the file stands for it.
std::string node_of(const KernelLog& log, const KernelEvent& event) {
  return event.host.empty() ? base_name(log.file) : event.host;
}

std::string times(size_t n) { return n == 1 ? "once" : fmt::format("{} times", n); }

bool is_fault(KernelEventKind kind) {
  return kind == KernelEventKind::kXid || kind == KernelEventKind::kSxid;
}

bool is_old(const KernelLog& log, const KernelEvent& event, const HardwareContext& context) {
  if (event.at_s && (context.now_s || log.last_s)) {
    return context.now_s.value_or(*log.last_s) - *event.at_s > kFaultMemory.v;
  }
  if (event.uptime_s && log.last_uptime_s) {
    return *log.last_uptime_s - *event.uptime_s > kFaultMemory.v;
  }
  return false;
}

// Whether the machine was new at each event: it booted, its driver was loaded, or its clock since
// boot had started again (a boot whose first line is not in the log).
std::vector<bool> fresh_starts(const KernelLog& log) {
  constexpr double kFresh = 600;  // s
  std::vector<bool> fresh(log.events.size(), false);
  std::map<std::string, double> uptime;
  for (size_t i = 0; i < log.events.size(); ++i) {
    const KernelEvent& event = log.events[i];
    fresh[i] = event.kind == KernelEventKind::kBoot || event.kind == KernelEventKind::kDriverLoaded;
    if (!event.uptime_s) continue;
    const auto [before, first] = uptime.emplace(node_of(log, event), *event.uptime_s);
    if (!first && *event.uptime_s < before->second && *event.uptime_s < kFresh) fresh[i] = true;
    before->second = *event.uptime_s;
  }
  return fresh;
}

// What is still true at the end of the log, in its order. Read from the end: a start of the machine
// has reset its GPUs, and an XID 154 that says `None` has cleared one.
std::vector<const KernelEvent*> current_events(const KernelLog& log,
                                               const HardwareContext& context) {
  const std::vector<bool> fresh = fresh_starts(log);
  std::set<std::string> clear_nodes;
  std::set<std::pair<std::string, std::string>> clear_devices;
  std::vector<const KernelEvent*> current;
  for (size_t i = log.events.size(); i > 0; --i) {
    const KernelEvent& event = log.events[i - 1];
    const std::string node = node_of(log, event);
    const XidInfo* info = event.kind == KernelEventKind::kXid ? find_xid(event.code) : nullptr;
    const bool clears = info != nullptr && info->drain == XidDrain::kByAction &&
                        !must_drain(*info, event.fatal, event.detail);
    const bool start =
        event.kind == KernelEventKind::kBoot || event.kind == KernelEventKind::kDriverLoaded;
    const bool cleared = clear_nodes.count(node) > 0 || clear_devices.count({node, event.pci}) > 0;
    if (!cleared && !clears && !start && !is_old(log, event, context)) current.push_back(&event);
    if (fresh[i - 1]) clear_nodes.insert(node);
    if (clears) clear_devices.insert({node, event.pci});
  }
  std::reverse(current.begin(), current.end());
  return current;
}

bool drains(const KernelEvent& event) {
  if (event.kind == KernelEventKind::kSxid) return event.fatal;
  if (event.kind != KernelEventKind::kXid) return false;
  const XidInfo* info = find_xid(event.code);
  return info != nullptr && must_drain(*info, event.fatal, event.detail);
}

std::string code_name(const KernelEvent& event) {
  return fmt::format("{} {}", event.kind == KernelEventKind::kSxid ? "SXID" : "XID", event.code);
}

std::string code_words(const KernelEvent& event) {
  if (event.kind == KernelEventKind::kSxid) {
    return code_name(event) + ", a fault of the NVSwitch";
  }
  const XidInfo* info = find_xid(event.code);
  return fmt::format("{}, {}", code_name(event),
                     info != nullptr ? info->what : "a code without a published meaning");
}

std::string when_words(const KernelEvent& event) {
  if (!event.at_s) {
    return event.uptime_s ? fmt::format("{:.0f} s after boot", *event.uptime_s) : "-";
  }
  constexpr size_t kYear = 5;  // syslog has none, so none is shown
  const std::string date = date_words(*event.at_s);
  return date.size() > kYear ? date.substr(kYear) : date;
}

Evidence table_of(const KernelLog& log, const std::vector<const KernelEvent*>& events,
                  const std::string& title) {
  Evidence out;
  out.title = title;
  out.file = log.file;
  out.columns = {"line", "when", "code", "bus", "process", "text"};
  for (const KernelEvent* event : events) {
    if (out.rows.size() >= kEvidenceRows) break;
    out.rows.push_back({fmt::format("{}", event->line), when_words(*event),
                        event->code > 0 ? fmt::format("{}", event->code) : "", event->pci,
                        event->process, event->detail});
  }
  return out;
}

// The first fault is the cause; what follows on the same node is mostly its echo.
Finding drain_finding(const KernelLog& log, const std::string& node,
                      const std::vector<const KernelEvent*>& faults) {
  const KernelEvent& first = *faults.front();
  const XidInfo* info = first.kind == KernelEventKind::kXid ? find_xid(first.code) : nullptr;
  Finding finding;
  finding.cause = Cause::kHardwareFault;
  finding.urgent = true;
  finding.title = fmt::format("{}: {}", node, code_words(first));
  std::set<std::string> others;
  std::map<std::string, KernelEventKind> devices;
  for (const KernelEvent* event : faults) {
    const bool same = event->code == first.code && event->kind == first.kind;
    if (!same) others.insert(code_name(*event));
    devices.emplace(event->pci, event->kind);
  }
  finding.detail = fmt::format("{} lines on {} device{}. ", faults.size(), devices.size(),
                               devices.size() == 1 ? "" : "s");
  if (!others.empty()) {
    finding.detail += fmt::format("It was followed by {}. ", fmt::join(others, ", "));
  }
  finding.detail += "Nothing in the log has cleared it since; the node must be drained.";
  finding.fix =
      info != nullptr
          ? info->action
          : "Drain the node; restart the fabric manager or reset the baseboard, and check "
            "the links named in the log.";
  finding.where.push_back("node " + node);
  for (const auto& [device, kind] : devices) {
    if (!device.empty() && finding.where.size() <= kNamesShown) {
      finding.where.push_back((kind == KernelEventKind::kXid ? "GPU at " : "NVSwitch at ") +
                              device);
    }
  }
  finding.confidence = info != nullptr ? info->confidence : Confidence::kMedium;
  if (!first.at_s && !first.uptime_s && finding.confidence == Confidence::kHigh) {
    finding.confidence = Confidence::kMedium;  // without a time it may be old
  }
  finding.evidence.push_back(table_of(log, faults, "faults in the kernel log"));
  return finding;
}

void add_faults_of_node(const KernelLog& log, const std::string& node,
                        const std::vector<const KernelEvent*>& events, Analysis& out) {
  std::vector<const KernelEvent*> drain;
  std::map<std::pair<bool, int>, size_t> harmless;
  for (const KernelEvent* event : events) {
    if (!is_fault(event->kind)) continue;
    if (drains(*event)) {
      drain.push_back(event);
    } else {
      ++harmless[{event->kind == KernelEventKind::kSxid, event->code}];
    }
  }
  if (!drain.empty()) out.findings.push_back(drain_finding(log, node, drain));
  for (const auto& [code, count] : harmless) {
    if (code.first) {
      out.notes.push_back(
          fmt::format("{}: SXID {}, {}, not fatal", node, code.second, times(count)));
      continue;
    }
    const XidInfo* info = find_xid(code.second);
    const bool application = info != nullptr && info->kind == XidClass::kApplication;
    out.notes.push_back(fmt::format("{}: XID {}, {} ({}): {}", node, code.second, times(count),
                                    info != nullptr ? info->what : "no published meaning",
                                    application
                                        ? "the application's fault, no reason to drain the node"
                                        : "no reason to drain the node by itself"));
  }
}

struct Other {
  KernelEventKind kind;
  size_t least;  // so many before it is a finding; fewer are a note
  Confidence confidence;
  const char* title;
  const char* fix;
};
// One link that goes down is a cable somebody pulled; three times is a bad one.
constexpr Other kOthers[] = {
    {KernelEventKind::kPcieError, 1, Confidence::kHigh, "uncorrectable PCIe errors",
     "Drain the node; reseat the card on the bus named, check riser and slot."},
    {KernelEventKind::kMachineCheck, 1, Confidence::kHigh,
     "uncorrected errors of the CPU or memory",
     "Drain the node; ipmitool sel list names the module; replace it."},
    {KernelEventKind::kDisk, 1, Confidence::kMedium, "a disk that fails",
     "smartctl -a on the disk; keep data and checkpoints off it until it is replaced."},
    {KernelEventKind::kLinkDown, 3, Confidence::kMedium, "a network link that goes up and down",
     "ibstat and mlxlink on the port; clean or replace the cable or transceiver."},
};

void add_others_of_node(const KernelLog& log, const std::string& node,
                        const std::vector<const KernelEvent*>& events, Analysis& out) {
  for (const Other& other : kOthers) {
    std::vector<const KernelEvent*> lines;
    for (const KernelEvent* event : events) {
      const bool corrected = event->kind == KernelEventKind::kMachineCheck &&
                             event->detail.find("Uncorrected") == std::string::npos &&
                             event->detail.find(" UE ") == std::string::npos;
      if (event->kind == other.kind && !corrected) lines.push_back(event);
    }
    if (lines.empty()) continue;
    if (lines.size() < other.least) {
      out.notes.push_back(fmt::format("{}: {}", node, lines.front()->detail));
      continue;
    }
    Finding finding;
    finding.cause = Cause::kHardwareFault;
    finding.urgent = true;
    finding.title = fmt::format("{}: {}", node, other.title);
    finding.detail = fmt::format("{} lines, the first: {}", lines.size(), lines.front()->detail);
    finding.fix = other.fix;
    finding.where = {"node " + node};
    finding.confidence = other.confidence;
    finding.evidence.push_back(table_of(log, lines, "lines of the kernel log"));
    out.findings.push_back(std::move(finding));
  }
  size_t killed = 0, panics = 0;
  std::string process;
  for (const KernelEvent* event : events) {
    if (event->kind == KernelEventKind::kOutOfMemory) {
      ++killed;
      process = event->process;
    }
    panics += event->kind == KernelEventKind::kPanic ? 1 : 0;
  }
  if (killed > 0) {
    out.notes.push_back(
        fmt::format("{}: host memory ran out {}, last killed: {}; a rank that vanishes this way "
                    "makes the others hang",
                    node, times(killed), process.empty() ? "unknown" : process));
  }
  if (panics > 0) {
    out.open.push_back(
        {fmt::format("{}: the kernel panicked; every rank on it was lost", node),
         "the lines above the panic, the machine's event log (ipmitool sel list) and "
         "a crash dump, if one was kept"});
  }
}

}  // namespace

Analysis diagnose_kernel_logs(const std::vector<KernelLog>& logs, const HardwareContext& context) {
  Analysis out;
  for (const KernelLog& log : logs) {
    const std::vector<const KernelEvent*> current = current_events(log, context);
    std::map<std::string, std::vector<const KernelEvent*>> by_node;
    for (const KernelEvent* event : current) by_node[node_of(log, *event)].push_back(event);
    for (const auto& [node, events] : by_node) {
      add_faults_of_node(log, node, events, out);
      add_others_of_node(log, node, events, out);
    }
    const auto faults = std::count_if(log.events.begin(), log.events.end(),
                                      [](const KernelEvent& e) { return is_fault(e.kind); });
    const auto left = std::count_if(current.begin(), current.end(),
                                    [](const KernelEvent* e) { return is_fault(e->kind); });
    if (faults > left) {
      out.notes.push_back(fmt::format("{}: {} of {} faults are old or were cleared by a reset",
                                      base_name(log.file), faults - left, faults));
    }
  }
  return out;
}

}  // namespace assay
