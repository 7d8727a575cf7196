// What can be sampled of a GPU, and the many names under which it is exported.
//
// DCGM's field ids are stable, its names are not (4.6 renamed half of them), and each exporter has
// names of its own; the table maps them all to one enum with one unit. The unit is the end of the
// enumerator's name; activities and utilisations are ratios from 0 to 1.
#pragma once

#include <optional>
#include <string_view>

namespace assay {

// Units in which tools print what is kept in base units.
inline constexpr double kMega = 1e6, kMiB = 1048576.0, kPercent = 0.01;

enum class Metric {
  kSmClockMhz,
  kMemoryClockMhz,
  kSmClockMaxMhz,
  kAppClockMhz,  // the clock the operator asked for
  kPowerW,
  kPowerLimitW,  // enforced
  kPowerLimitDefaultW,
  kPowerLimitMaxW,
  kEnergyJ,  // a counter
  kTemperatureC,
  kMemoryTemperatureC,
  kTemperatureMarginC,  // to the limit at which clocks fall
  kThrottleReasons,     // a bit mask, see ThrottleReason
  kPowerViolationS,     // counters: time spent with clocks held down, by whom
  kSwThermalViolationS,
  kHwThermalViolationS,
  kPowerBrakeS,
  kGpuUtilisation,  // a kernel was resident; says nothing about work
  kEngineActive,
  kSmActive,
  kSmOccupancy,
  kTensorActive,
  kDramActive,
  kFp32Active,
  kPcieSentBytesPerS,
  kPcieReceivedBytesPerS,
  kNvlinkSentBytesPerS,
  kNvlinkReceivedBytesPerS,
  kMemoryUsedBytes,
  kMemoryTotalBytes,
  kEccCorrected,    // since the driver was loaded
  kEccUncorrected,  // since the driver was loaded
  kEccUncorrectedEver,
  kRowsRemappedCorrectable,
  kRowsRemappedUncorrectable,
  kRowRemapPending,
  kRowRemapFailed,
  kPagesPending,
  kPcieReplays,  // a counter
  kPcieGeneration,
  kPcieGenerationMax,
  kPcieWidth,
  kPcieWidthMax,
  kNvlinkReplays,  // counters
  kNvlinkRecoveries,
  kNvlinkCrcErrors,
  kXid,             // the last one seen; 0: none
  kRecoveryAction,  // what the driver asks for: 0 none, 1 reset, 2 reboot, 3 drain P2P, 4 drain
  kEnd
};
constexpr int kMetrics = static_cast<int>(Metric::kEnd);

// Bits of kThrottleReasons (nvml.h, nvmlClocksEventReason*; the same in DCGM field 112).
enum ThrottleReason : unsigned {
  kReasonIdle = 0x1,
  kReasonAppClocks = 0x2,
  kReasonPowerCap = 0x4,
  kReasonHwSlowdown = 0x8,
  kReasonSyncBoost = 0x10,
  kReasonSwThermal = 0x20,
  kReasonHwThermal = 0x40,
  kReasonPowerBrake = 0x80,
  kReasonDisplay = 0x100,
};

// A metric and what a value under that name must be multiplied by.
struct MetricName {
  Metric metric = Metric::kEnd;
  double scale = 1;
};

// `DCGM_FI_DEV_SM_CLOCK`, `DCGM_FI_PROF_TENSOR_UTIL_RATIO`, `nvidia_smi_power_draw_watts`,
// `nvidia_gpu_duty_cycle`, ...
std::optional<MetricName> exported_metric(std::string_view name);
std::optional<MetricName> dcgm_field(int id);
// `clocks.current.sm [MHz]`, `power.draw`: a column of nvidia-smi --query-gpu. A bit of
// `clocks_event_reasons` in a column of its own is reason_column.
std::optional<MetricName> smi_column(std::string_view name);
unsigned reason_column(std::string_view name);  // 0: not one
// `GPU Link Info/PCIe Generation/Current`: the last parts of a path of nvidia-smi -q.
std::optional<MetricName> smi_query_path(std::string_view section, std::string_view key);
unsigned reason_key(std::string_view key);  // `SW Power Cap`; 0: not one
// A name that a sampler of its own chose: any of the above, or the habits of such programs
// (`power_w`, `sm_clock_mhz`, `gpu_util`, `tensor_active`), with the unit at its end.
std::optional<MetricName> sample_metric(std::string_view name);
// `gpu_usage` of SuperBench's monitor.
std::optional<MetricName> monitor_key(std::string_view name);

std::string_view metric_name(Metric);  // `SM clock (MHz)`

}  // namespace assay
