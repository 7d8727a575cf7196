// Sick hardware, from telemetry and kernel logs: what throttling costs, what is broken, and whether
// a busy GPU is working.
//
// Throttling is priced in time: while a GPU is busy at clock f instead of the clock f_max it could
// hold, the share 1 - f / f_max of that time is lost, to whatever reason the driver gives. Time at
// the power cap is a line of the ledger; it becomes a finding only when something can be done about
// it (a limit set below the part's own, a power brake). Heat always is one.
//
// GPU utilisation is not work: it says that a kernel was resident. OFU, tensor activity x clock /
// maximum clock, is the share of the peak that was used, and bounds the MFU from above.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "diagnose/finding.h"
#include "ingest/kernel_log.h"
#include "ingest/telemetry.h"
#include "world/accelerator.h"

namespace assay {

struct HardwareContext {
  const Accelerator* accelerator = nullptr;  // where the files do not name the part
  std::optional<double> mfu;                 // of the run, as the trainer or the model says
  std::optional<double> now_s;               // since 1970; none: the end of each log is now
};

// Fewer samples than these, a second apart, may all fall between two steps.
constexpr size_t kSamplesLeast = 10;

// One GPU's observed time. busy + idle = observed; the losses are parts of busy.
struct GpuTime {
  std::string name;  // `n1 GPU 3`
  std::string file;
  std::string model;
  bool timed = true;  // false: samples have no times, and each counts as one second
  size_t samples = 0;
  bool load_known = true;  // false: nothing in the samples says whether it was busy
  Seconds observed, idle, busy;
  Seconds lost_power_cap, lost_thermal, lost_power_brake, lost_slowdown, lost_setting,
      lost_unexplained;
  double clock_mhz = 0, clock_max_mhz = 0;  // mean while busy; the clock it could hold
  std::optional<double> ofu;                // over the busy time
  std::optional<double> utilisation, tensor, sm, dram, fp32;  // means over the time not idle
};

// The mean GPU's time, by what its clock was held down for. The parts sum to observed. Telemetry
// cannot fill a whole ledger (it does not know what was useful); these are its clock accounts.
struct ClockAccount {
  Seconds observed;
  Seconds running;  // busy, as if at the clock it could hold
  Seconds power_cap, thermal, facility_cap;
  Seconds idle;
};

struct HardwareDiagnosis {
  Analysis analysis;
  std::vector<GpuTime> gpus;
  ClockAccount clocks;
};

HardwareDiagnosis diagnose_telemetry(const std::vector<Telemetry>&, const HardwareContext& = {});

// XIDs, SXIDs and what else a kernel says of its machine. A fault counts when nothing has cleared
// it since (a boot, the driver loaded again) and it is not older than kFaultMemory.
Analysis diagnose_kernel_logs(const std::vector<KernelLog>&, const HardwareContext& = {});

// A fault that has not come back in a day of use is history: an old line must not keep a node
// drained.
constexpr Seconds kFaultMemory{86400};

}  // namespace assay
