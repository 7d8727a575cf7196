// What a kernel said about its machine: GPU faults (XID), NVSwitch faults (SXID), memory killed
// for, PCIe errors, links and disks that went away.
//
// Lines may come from dmesg in any of its forms, /dev/kmsg, journalctl, syslog or NVIDIA's fabric
// manager, with or without times. An event keeps the wall-clock time or the time since boot,
// whichever the line had. Details are fit for a terminal.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"

namespace assay {

enum class KernelEventKind {
  kXid,
  kSxid,
  kOutOfMemory,   // the OOM killer
  kPcieError,     // AER
  kMachineCheck,  // CPU or host memory
  kDisk,          // NVMe or SCSI errors
  kLinkDown,      // InfiniBand or Ethernet
  kBoot,          // the kernel started: what came before is another life
  kDriverLoaded,  // the NVIDIA driver was loaded, so its GPUs were reset
  kPanic,
};

struct KernelEvent {
  KernelEventKind kind = KernelEventKind::kXid;
  int line = 0;
  std::optional<double> at_s;      // since 1970
  std::optional<double> uptime_s;  // since boot
  std::string host;                // of syslog and journal lines; else empty
  std::string pci;                 // `0000:38:00`; empty: none
  int code = 0;                    // of an XID or SXID
  bool fatal = false;              // the line says `Fatal`
  std::string process;             // who was running or was killed; else empty
  std::string detail;              // the message after the code
};

struct KernelLog {
  std::string file;
  std::vector<KernelEvent> events;      // in the order of the file
  std::optional<double> last_s;         // the newest wall-clock time seen
  std::optional<double> last_uptime_s;  // of the last line that has one
  size_t lines = 0;
  Diagnostics problems;
};

KernelLog read_kernel_log(std::string_view text, const std::string& file);

}  // namespace assay
