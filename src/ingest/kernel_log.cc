#include "ingest/kernel_log.h"

#include <algorithm>
#include <array>

#include "ingest/text.h"
#include "ingest/time_text.h"

namespace assay {
namespace {

constexpr size_t kEventsMax = size_t{1} << 20;

// A line taken apart: when and where, and the message itself.
struct Line {
  std::optional<double> at_s, uptime_s;
  std::string_view host, message;
};

// `<6>` of a console, `6,3964,206764307,-;` of /dev/kmsg.
std::string_view without_level(std::string_view line, Line& out) {
  if (line.size() > 3 && line[0] == '<') {
    const size_t close = line.find('>');
    if (close < 5) return line.substr(close + 1);
  }
  const size_t semicolon = line.find(';');
  if (semicolon == std::string_view::npos || semicolon > 64) return line;
  const std::vector<std::string_view> parts = fields(line.substr(0, semicolon), ',');
  if (parts.size() < 4) return line;
  const std::optional<uint64_t> microseconds = unsigned_number(parts[2]);
  if (!microseconds || !unsigned_number(parts[0]) || !unsigned_number(parts[1])) return line;
  out.uptime_s = static_cast<double>(*microseconds) * 1e-6;
  return line.substr(semicolon + 1);
}

// `[12345.678]` since boot, or `[Sun Feb 23 16:24:18 2025]` of dmesg -T.
std::string_view without_stamp(std::string_view line, Line& out) {
  if (line.empty() || line[0] != '[') return line;
  const size_t close = line.find(']');
  if (close == std::string_view::npos || close > 40) return line;
  const std::string_view inside = trimmed(line.substr(1, close - 1));
  constexpr double kUptimeMost = 1e10;  // three centuries: beyond it a number is no time
  std::optional<double> uptime = whole_number(inside);
  if (uptime && !(*uptime >= 0 && *uptime < kUptimeMost)) uptime.reset();
  const std::optional<double> time = uptime ? std::nullopt : time_at(inside);
  if (!uptime && !time) return line;
  if (uptime) out.uptime_s = uptime;
  if (time) out.at_s = time;
  return trimmed(line.substr(close + 1));
}

// `Nov 15 06:48:40 host kernel: text` and the same with an ISO time. Syslog has no year;
// differences within a file are what counts, so any year does.
std::string_view without_syslog(std::string_view line, Line& out) {
  const size_t mark = line.find(" kernel: ");
  if (mark == std::string_view::npos || mark > 128) return line;
  const std::string_view head = line.substr(0, mark);
  constexpr int kSomeYear = 2024;  // a leap year, so that February 29 is a day
  out.at_s = time_at(head);
  if (!out.at_s) out.at_s = syslog_time_at(head, kSomeYear);
  const size_t blank = head.rfind(' ');
  if (blank != std::string_view::npos) out.host = head.substr(blank + 1);
  return trimmed(line.substr(mark + 9));
}

// `kern  :warn  : 2025-01-21T04:41:44,283302+00:00 text` of dmesg -x --time-format iso.
std::string_view without_facility(std::string_view line, Line& out) {
  if (!line.starts_with("kern ") && !line.starts_with("user ") && !line.starts_with("daemon")) {
    return line;
  }
  const size_t first = line.find(':');
  const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
  if (second == std::string_view::npos || second > 24) return line;
  const std::string_view rest = trimmed(line.substr(second + 1));
  out.at_s = time_at(rest);
  if (!out.at_s) return rest;
  const size_t blank = rest.find(' ');
  return blank == std::string_view::npos ? std::string_view() : trimmed(rest.substr(blank + 1));
}

Line take_apart(std::string_view line) {
  Line out;
  line = trimmed(line);
  line = without_level(line, out);
  line = without_facility(line, out);
  line = without_syslog(line, out);
  line = without_stamp(trimmed(line), out);
  // `2025-01-21T04:41:44,283302+00:00 NVRM: ...` of dmesg --time-format iso.
  const std::optional<double> time = time_at(line);
  const size_t blank = line.find(' ');
  if (time && blank != std::string_view::npos && line.find('T') < blank) {
    out.at_s = time;
    line = trimmed(line.substr(blank + 1));
  }
  out.message = line;
  return out;
}

// `Xid (PCI:0000:38:00): 13, pid=123, name=python, Graphics SM ...`; also without `PCI:`.
bool read_fault(std::string_view message, std::string_view mark, KernelEvent& event) {
  const size_t at = message.find(mark);
  if (at == std::string_view::npos) return false;
  std::string_view rest = message.substr(at + mark.size());
  const size_t close = rest.find("): ");
  if (close == std::string_view::npos || close > 64) return false;
  std::string_view pci = rest.substr(0, close);
  if (pci.starts_with("PCI:")) pci.remove_prefix(4);
  rest.remove_prefix(close + 3);
  size_t digits = 0;
  while (digits < rest.size() && rest[digits] >= '0' && rest[digits] <= '9') ++digits;
  const std::optional<uint64_t> code = unsigned_number(rest.substr(0, digits));
  if (!code || *code > 1000000) return false;
  event.code = static_cast<int>(*code);
  event.pci = sanitize(std::string(pci), 32);
  rest.remove_prefix(digits);
  while (!rest.empty() && (rest[0] == ',' || rest[0] == ' ')) rest.remove_prefix(1);
  const size_t name = rest.find("name=");
  if (name != std::string_view::npos) {
    const std::string_view value = rest.substr(name + 5);
    const std::string_view process = value.substr(0, value.find(','));
    if (process != "<unknown>") event.process = sanitize(std::string(process), 64);
  }
  event.detail = sanitize(std::string(rest), 160);
  event.fatal =
      contains(rest, "Fatal") && !contains(rest, "Non-fatal") && !contains(rest, "Nonfatal");
  return true;
}

// The fabric manager's own words for what the kernel calls an SXid: `detected NVSwitch non-fatal
// error 12028 on fid 0 on NVSwitch pci bus id 00000000:86:00.0 physical id 3 port 61`.
bool read_switch_error(std::string_view message, KernelEvent& event) {
  constexpr std::string_view kMark = "detected NVSwitch ", kError = "fatal error ",
                             kBus = "pci bus id ";
  const size_t at = message.find(kMark);
  if (at == std::string_view::npos) return false;
  const std::string_view rest = message.substr(at + kMark.size());
  const size_t error = rest.find(kError);
  if (error == std::string_view::npos || error > 8) return false;
  const std::string_view number = rest.substr(error + kError.size());
  const std::optional<uint64_t> code = unsigned_number(number.substr(0, number.find(' ')));
  if (!code || *code > 1000000) return false;
  event.kind = KernelEventKind::kSxid;
  event.code = static_cast<int>(*code);
  event.fatal = error == 0;
  const size_t bus = rest.find(kBus);
  if (bus != std::string_view::npos) {
    const std::string_view pci = rest.substr(bus + kBus.size());
    event.pci = sanitize(std::string(pci.substr(0, pci.find(' '))), 32);
  }
  event.detail = sanitize(std::string(rest), 160);
  return true;
}

struct Mark {
  std::string_view text;
  KernelEventKind kind;
};
// Phrases of Linux: mm/oom_kill.c, drivers/pci/pcie/aer.c, arch/x86/kernel/cpu/mce, drivers/nvme,
// drivers/infiniband, init/main.c; and of the NVIDIA driver when it is loaded.
constexpr Mark kMarks[] = {
    {"Out of memory: Kill", KernelEventKind::kOutOfMemory},
    {"Memory cgroup out of memory", KernelEventKind::kOutOfMemory},
    {"PCIe Bus Error: severity=Uncorrect", KernelEventKind::kPcieError},
    {"AER: Uncorrected (Fatal)", KernelEventKind::kPcieError},
    {"AER: Uncorrectable (Fatal)", KernelEventKind::kPcieError},
    {"[Hardware Error]: Uncorrected", KernelEventKind::kMachineCheck},
    {"mce: [Hardware Error]", KernelEventKind::kMachineCheck},
    {"EDAC MC", KernelEventKind::kMachineCheck},
    {"controller is down; will reset", KernelEventKind::kDisk},
    {"critical medium error", KernelEventKind::kDisk},
    {"I/O error, dev nvme", KernelEventKind::kDisk},
    {"Linux version ", KernelEventKind::kBoot},
    {"NVRM: loading NVIDIA", KernelEventKind::kDriverLoaded},
    {"Kernel panic - not syncing", KernelEventKind::kPanic},
};

// A corrected memory error is counted by EDAC and costs nothing; only UE is an event.
bool is_harmless(std::string_view message, KernelEventKind kind) {
  return kind == KernelEventKind::kMachineCheck && contains(message, "EDAC MC") &&
         !contains(message, " UE ");
}

bool is_network_down(std::string_view message) {
  const bool network = contains(message, "mlx5_core") || contains(message, "infiniband") ||
                       contains(message, "bnxt_en") || contains(message, "efa ") ||
                       contains(message, "irdma");
  return network && contains_any_case(message, "link down");
}

bool read_event(std::string_view message, KernelEvent& event) {
  event.kind = KernelEventKind::kXid;
  if (read_fault(message, "SXid (", event)) {
    event.kind = KernelEventKind::kSxid;
    // Each fault prints three lines; `Severity` and `Data` repeat the first.
    return !event.detail.starts_with("Severity") && !event.detail.starts_with("Data");
  }
  if (contains(message, "NVRM") && read_fault(message, "Xid (", event)) return true;
  if (read_switch_error(message, event)) return true;
  for (const Mark& mark : kMarks) {
    if (!contains(message, mark.text) || is_harmless(message, mark.kind)) continue;
    event.kind = mark.kind;
    event.detail = sanitize(std::string(message), 160);
    const size_t open = message.find('('), close = message.find(')');
    if (mark.kind == KernelEventKind::kOutOfMemory && open < close &&
        close != std::string_view::npos) {
      event.process = sanitize(std::string(message.substr(open + 1, close - open - 1)), 64);
    }
    return true;
  }
  if (is_network_down(message)) {
    event.kind = KernelEventKind::kLinkDown;
    event.detail = sanitize(std::string(message), 160);
    return true;
  }
  return false;
}

}  // namespace

KernelLog read_kernel_log(std::string_view text, const std::string& file) {
  KernelLog out;
  out.file = file;
  std::string_view raw;
  int number = 0;
  while (next_line(text, raw)) {
    ++number;
    const Line line = take_apart(raw);
    if (line.message.empty()) continue;
    ++out.lines;
    if (line.at_s) out.last_s = std::max(*line.at_s, out.last_s.value_or(*line.at_s));
    if (line.uptime_s) out.last_uptime_s = line.uptime_s;
    KernelEvent event;
    if (!read_event(line.message, event)) continue;
    event.line = number;
    event.at_s = line.at_s;
    event.uptime_s = line.uptime_s;
    event.host = sanitize(std::string(line.host), 64);
    if (out.events.size() >= kEventsMax) {
      out.problems.push_back(problem(Severity::kWarning,
                                     "more than a million events: the rest of the file is not read",
                                     file, number));
      break;
    }
    out.events.push_back(std::move(event));
  }
  return out;
}

}  // namespace assay
