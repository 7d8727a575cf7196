#include "ingest/metrics.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>

#include "ingest/text.h"

namespace assay {
namespace {

constexpr double kMilli = 1e-3, kMicro = 1e-6, kNano = 1e-9;

// Exporters. Names of DCGM: dcgm_fields.h of DCGM 4.6 and the names before it; `dcgm_*` are those
// of dcgm-exporter 1.x; `nvidia_gpu_*` those of mindprince/nvidia_gpu_prometheus_exporter.
struct Exported {
  int dcgm_id;  // 0: not a DCGM field
  Metric metric;
  double scale;
  std::array<std::string_view, 4> names;
};
constexpr Exported kExported[] = {
    {100, Metric::kSmClockMhz, 1, {"DCGM_FI_DEV_SM_CLOCK", "dcgm_sm_clock"}},
    {101, Metric::kMemoryClockMhz, 1, {"DCGM_FI_DEV_MEM_CLOCK", "dcgm_memory_clock"}},
    {110, Metric::kAppClockMhz, 1, {"DCGM_FI_DEV_APP_SM_CLOCK"}},
    {112,
     Metric::kThrottleReasons,
     1,
     {"DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS"}},
    {113, Metric::kSmClockMaxMhz, 1, {"DCGM_FI_DEV_MAX_SM_CLOCK"}},
    {140,
     Metric::kMemoryTemperatureC,
     1,
     {"DCGM_FI_DEV_MEMORY_TEMP_CELSIUS", "DCGM_FI_DEV_MEMORY_TEMP", "dcgm_memory_temp"}},
    {150,
     Metric::kTemperatureC,
     1,
     {"DCGM_FI_DEV_GPU_TEMP_CELSIUS", "DCGM_FI_DEV_GPU_TEMP", "dcgm_gpu_temp",
      "nvidia_gpu_temperature_celsius"}},
    {153,
     Metric::kTemperatureMarginC,
     1,
     {"DCGM_FI_DEV_GPU_TEMP_MARGIN_CELSIUS", "DCGM_FI_DEV_GPU_TEMP_LIMIT"}},
    {155,
     Metric::kPowerW,
     1,
     {"DCGM_FI_DEV_BOARD_POWER_WATTS", "DCGM_FI_DEV_POWER_USAGE", "dcgm_power_usage"}},
    {156,
     Metric::kEnergyJ,
     kMilli,
     {"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "dcgm_total_energy_consumption"}},
    {157,
     Metric::kPowerW,
     1,
     {"DCGM_FI_DEV_BOARD_POWER_RAW_WATTS", "DCGM_FI_DEV_POWER_USAGE_INSTANT"}},
    {160,
     Metric::kPowerLimitW,
     1,
     {"DCGM_FI_DEV_BOARD_POWER_LIMIT_REQUESTED_WATTS", "DCGM_FI_DEV_POWER_MGMT_LIMIT"}},
    {162,
     Metric::kPowerLimitMaxW,
     1,
     {"DCGM_FI_DEV_BOARD_POWER_LIMIT_MAX_WATTS", "DCGM_FI_DEV_POWER_MGMT_LIMIT_MAX"}},
    {163,
     Metric::kPowerLimitDefaultW,
     1,
     {"DCGM_FI_DEV_BOARD_POWER_LIMIT_DEFAULT_WATTS", "DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF"}},
    {164,
     Metric::kPowerLimitW,
     1,
     {"DCGM_FI_DEV_BOARD_POWER_LIMIT_ENFORCED_WATTS", "DCGM_FI_DEV_ENFORCED_POWER_LIMIT"}},
    {202,
     Metric::kPcieReplays,
     1,
     {"DCGM_FI_DEV_PCIE_REPLAY_TOTAL", "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
      "dcgm_pcie_replay_counter"}},
    {203,
     Metric::kGpuUtilisation,
     kPercent,
     {"DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_GPU_UTIL_RATIO", "dcgm_gpu_utilization",
      "nvidia_gpu_duty_cycle"}},
    {230, Metric::kXid, 1, {"DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_DEV_XID_ERROR", "dcgm_xid_errors"}},
    {235, Metric::kPcieGenerationMax, 1, {"DCGM_FI_DEV_PCIE_MAX_LINK_GEN"}},
    {236, Metric::kPcieWidthMax, 1, {"DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH"}},
    {237, Metric::kPcieGeneration, 1, {"DCGM_FI_DEV_PCIE_LINK_GEN"}},
    {238, Metric::kPcieWidth, 1, {"DCGM_FI_DEV_PCIE_LINK_WIDTH"}},
    {240, Metric::kPowerViolationS, kNano, {"DCGM_FI_DEV_POWER_VIOLATION", "dcgm_power_violation"}},
    {241,
     Metric::kSwThermalViolationS,
     kNano,
     {"DCGM_FI_DEV_THERMAL_VIOLATION", "dcgm_thermal_violation"}},
    {250, Metric::kMemoryTotalBytes, kMiB, {"DCGM_FI_DEV_FB_TOTAL"}},
    {252, Metric::kMemoryUsedBytes, kMiB, {"DCGM_FI_DEV_FB_USED", "dcgm_fb_used"}},
    {310, Metric::kEccCorrected, 1, {"DCGM_FI_DEV_ECC_SBE_VOL_TOTAL"}},
    {311, Metric::kEccUncorrected, 1, {"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"}},
    {313, Metric::kEccUncorrectedEver, 1, {"DCGM_FI_DEV_ECC_DBE_AGG_TOTAL"}},
    {392,
     Metric::kPagesPending,
     1,
     {"DCGM_FI_DEV_PAGE_RETIRED_PENDING", "DCGM_FI_DEV_RETIRED_PENDING"}},
    {393,
     Metric::kRowsRemappedUncorrectable,
     1,
     {"DCGM_FI_DEV_ROW_REMAP_UNCORRECTABLE_TOTAL", "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS"}},
    {394,
     Metric::kRowsRemappedCorrectable,
     1,
     {"DCGM_FI_DEV_ROW_REMAP_CORRECTABLE_TOTAL", "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS"}},
    {395,
     Metric::kRowRemapFailed,
     1,
     {"DCGM_FI_DEV_ROW_REMAP_FAILED", "DCGM_FI_DEV_ROW_REMAP_FAILURE"}},
    {396, Metric::kRowRemapPending, 1, {"DCGM_FI_DEV_ROW_REMAP_PENDING"}},
    {419,
     Metric::kNvlinkCrcErrors,
     1,
     {"DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_TOTAL", "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL"}},
    {429,
     Metric::kNvlinkReplays,
     1,
     {"DCGM_FI_DEV_NVLINK_REPLAY_ERROR_TOTAL", "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL"}},
    {439,
     Metric::kNvlinkRecoveries,
     1,
     {"DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_TOTAL", "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL"}},
    {1001,
     Metric::kEngineActive,
     1,
     {"DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO"}},
    {1002, Metric::kSmActive, 1, {"DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_PROF_SM_UTIL_RATIO"}},
    {1003,
     Metric::kSmOccupancy,
     1,
     {"DCGM_FI_PROF_SM_OCCUPANCY", "DCGM_FI_PROF_SM_OCCUPANCY_RATIO"}},
    {1004,
     Metric::kTensorActive,
     1,
     {"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_PROF_TENSOR_UTIL_RATIO"}},
    {1005, Metric::kDramActive, 1, {"DCGM_FI_PROF_DRAM_ACTIVE", "DCGM_FI_PROF_DRAM_UTIL_RATIO"}},
    {1007,
     Metric::kFp32Active,
     1,
     {"DCGM_FI_PROF_PIPE_FP32_ACTIVE", "DCGM_FI_PROF_FP32_UTIL_RATIO"}},
    {1009, Metric::kPcieSentBytesPerS, 1, {"DCGM_FI_PROF_PCIE_TX_BYTES"}},
    {1010, Metric::kPcieReceivedBytesPerS, 1, {"DCGM_FI_PROF_PCIE_RX_BYTES"}},
    {1011, Metric::kNvlinkSentBytesPerS, 1, {"DCGM_FI_PROF_NVLINK_TX_BYTES"}},
    {1012, Metric::kNvlinkReceivedBytesPerS, 1, {"DCGM_FI_PROF_NVLINK_RX_BYTES"}},
    {0, Metric::kPowerW, kMilli, {"nvidia_gpu_power_usage_milliwatts"}},
    {0, Metric::kMemoryUsedBytes, 1, {"nvidia_gpu_memory_used_bytes"}},
    {0, Metric::kMemoryTotalBytes, 1, {"nvidia_gpu_memory_total_bytes"}},
};

// Columns of nvidia-smi --query-gpu (its --help-query-gpu), and the section and key under which
// nvidia-smi -q prints the same.
struct Smi {
  Metric metric;
  double scale;
  std::array<std::string_view, 3> columns;
  std::array<std::string_view, 2> paths;  // `section/key`, lower case
};
constexpr Smi kSmi[] = {
    {Metric::kSmClockMhz, 1, {"clocks.current.sm", "clocks.sm"}, {"clocks/sm"}},
    {Metric::kMemoryClockMhz, 1, {"clocks.current.memory", "clocks.mem"}, {"clocks/memory"}},
    {Metric::kSmClockMaxMhz, 1, {"clocks.max.sm"}, {"max clocks/sm"}},
    {Metric::kAppClockMhz,
     1,
     {"clocks.applications.graphics", "clocks.applications.gr"},
     {"applications clocks/graphics"}},
    {Metric::kPowerW,
     1,
     {"power.draw", "power.draw.instant", "power.draw.average"},
     {"gpu power readings/instantaneous power draw", "power readings/power draw"}},
    {Metric::kPowerLimitW,
     1,
     {"enforced.power.limit", "power.limit"},
     {"gpu power readings/current power limit", "power readings/enforced power limit"}},
    {Metric::kPowerLimitDefaultW,
     1,
     {"power.default_limit"},
     {"gpu power readings/default power limit", "power readings/default power limit"}},
    {Metric::kPowerLimitMaxW,
     1,
     {"power.max_limit"},
     {"gpu power readings/max power limit", "power readings/max power limit"}},
    {Metric::kTemperatureC, 1, {"temperature.gpu"}, {"temperature/gpu current temp"}},
    {Metric::kMemoryTemperatureC, 1, {"temperature.memory"}, {"temperature/memory current temp"}},
    {Metric::kTemperatureMarginC, 1, {"temperature.gpu.tlimit"}, {"temperature/gpu t.limit temp"}},
    {Metric::kThrottleReasons,
     1,
     {"clocks_event_reasons.active", "clocks_throttle_reasons.active"},
     {}},
    {Metric::kPowerViolationS,
     kMicro,
     {"clocks_event_reasons_counters.sw_power_cap"},
     {"clocks event reasons counters/sw power capping"}},
    {Metric::kSwThermalViolationS,
     kMicro,
     {"clocks_event_reasons_counters.sw_thermal_slowdown"},
     {"clocks event reasons counters/sw thermal slowdown"}},
    {Metric::kHwThermalViolationS,
     kMicro,
     {"clocks_event_reasons_counters.hw_thermal_slowdown"},
     {"clocks event reasons counters/hw thermal slowdown"}},
    {Metric::kPowerBrakeS,
     kMicro,
     {"clocks_event_reasons_counters.hw_power_brake_slowdown"},
     {"clocks event reasons counters/hw power braking"}},
    {Metric::kGpuUtilisation, kPercent, {"utilization.gpu"}, {"utilization/gpu"}},
    {Metric::kMemoryUsedBytes, kMiB, {"memory.used"}, {"fb memory usage/used"}},
    {Metric::kMemoryTotalBytes, kMiB, {"memory.total"}, {"fb memory usage/total"}},
    {Metric::kEccCorrected, 1, {"ecc.errors.corrected.volatile.total"}, {}},
    {Metric::kEccUncorrected, 1, {"ecc.errors.uncorrected.volatile.total"}, {}},
    {Metric::kEccUncorrectedEver, 1, {"ecc.errors.uncorrected.aggregate.total"}, {}},
    {Metric::kRowsRemappedCorrectable,
     1,
     {"remapped_rows.correctable"},
     {"remapped rows/correctable error"}},
    {Metric::kRowsRemappedUncorrectable,
     1,
     {"remapped_rows.uncorrectable"},
     {"remapped rows/uncorrectable error"}},
    {Metric::kRowRemapPending, 1, {"remapped_rows.pending"}, {"remapped rows/pending"}},
    {Metric::kRowRemapFailed,
     1,
     {"remapped_rows.failure"},
     {"remapped rows/remapping failure occurred"}},
    {Metric::kPagesPending, 1, {"retired_pages.pending"}, {"retired pages/pending page blacklist"}},
    {Metric::kPcieReplays, 1, {}, {"pci/replays since reset"}},
    {Metric::kPcieGeneration, 1, {"pcie.link.gen.current"}, {"pcie generation/current"}},
    {Metric::kPcieGenerationMax, 1, {"pcie.link.gen.max"}, {"pcie generation/max"}},
    {Metric::kPcieWidth, 1, {"pcie.link.width.current"}, {"link width/current"}},
    {Metric::kPcieWidthMax, 1, {"pcie.link.width.max"}, {"link width/max"}},
    {Metric::kRecoveryAction, 1, {"gpu_recovery_action"}, {"/gpu recovery action"}},
};

struct Reason {
  unsigned bit;
  std::string_view column;  // after `clocks_event_reasons.`
  std::string_view key;
};
constexpr Reason kReasons[] = {
    {kReasonIdle, "gpu_idle", "idle"},
    {kReasonAppClocks, "applications_clocks_setting", "applications clocks setting"},
    {kReasonPowerCap, "sw_power_cap", "sw power cap"},
    {kReasonHwSlowdown, "hw_slowdown", "hw slowdown"},
    {kReasonHwThermal, "hw_thermal_slowdown", "hw thermal slowdown"},
    {kReasonPowerBrake, "hw_power_brake_slowdown", "hw power brake slowdown"},
    {kReasonSwThermal, "sw_thermal_slowdown", "sw thermal slowdown"},
    {kReasonSyncBoost, "sync_boost", "sync boost"},
    {kReasonDisplay, "display_clock_setting", "display clock setting"},
};

std::optional<MetricName> column_named(std::string_view name) {
  for (const Smi& row : kSmi) {
    for (const std::string_view column : row.columns) {
      if (!column.empty() && column == name) return MetricName{row.metric, row.scale};
    }
  }
  return std::nullopt;
}

// nvidia_gpu_exporter turns `power.draw [W]` into `nvidia_smi_power_draw_watts`: dots become
// underscores, and the unit a base unit at the end.
std::optional<MetricName> smi_exported(std::string_view name) {
  struct Ending {
    std::string_view text;
    double scale;  // from the base unit to the unit of Metric
  };
  constexpr Ending kEndings[] = {
      {"_clock_hz", 1 / kMega}, {"_ratio", 1}, {"_watts", 1}, {"_bytes", 1}, {"_seconds", 1}};
  double scale = 1;
  for (const Ending& ending : kEndings) {
    const size_t n = ending.text.size();
    if (name.size() > n && name.substr(name.size() - n) == ending.text) {
      name.remove_suffix(n);
      scale = ending.scale;
      break;
    }
  }
  for (const Smi& row : kSmi) {
    for (const std::string_view column : row.columns) {
      if (column.size() != name.size() || column.empty()) continue;
      const bool same = std::equal(column.begin(), column.end(), name.begin(),
                                   [](char a, char b) { return a == b || (a == '.' && b == '_'); });
      if (same) return MetricName{row.metric, scale};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<MetricName> exported_metric(std::string_view name) {
  constexpr std::string_view kSmiPrefix = "nvidia_smi_";
  if (name.starts_with(kSmiPrefix)) return smi_exported(name.substr(kSmiPrefix.size()));
  for (const Exported& row : kExported) {
    for (const std::string_view known : row.names) {
      if (!known.empty() && known == name) return MetricName{row.metric, row.scale};
    }
  }
  return std::nullopt;
}

std::optional<MetricName> dcgm_field(int id) {
  for (const Exported& row : kExported) {
    if (row.dcgm_id == id && id > 0) return MetricName{row.metric, row.scale};
  }
  return std::nullopt;
}

std::optional<MetricName> smi_column(std::string_view name) {
  const size_t unit = name.find(" [");
  return column_named(trimmed(name.substr(0, unit)));
}

unsigned reason_column(std::string_view name) {
  for (const std::string_view prefix : {"clocks_event_reasons.", "clocks_throttle_reasons."}) {
    if (!name.starts_with(prefix)) continue;
    for (const Reason& reason : kReasons) {
      if (reason.column == name.substr(prefix.size())) return reason.bit;
    }
  }
  return 0;
}

std::optional<MetricName> smi_query_path(std::string_view section, std::string_view key) {
  const std::string path = lower(section) + "/" + lower(key);
  for (const Smi& row : kSmi) {
    for (const std::string_view known : row.paths) {
      if (!known.empty() && known == path) return MetricName{row.metric, row.scale};
    }
  }
  return std::nullopt;
}

unsigned reason_key(std::string_view key) {
  const std::string name = lower(key);
  for (const Reason& reason : kReasons) {
    if (reason.key == name) return reason.bit;
  }
  return 0;
}

namespace {

struct Ending {
  std::string_view text;
  double scale;
};
constexpr Ending kUnits[] = {{"_mhz", 1},
                             {"_ghz", 1e3},
                             {"_milliwatts", kMilli},
                             {"_mw", kMilli},
                             {"_watts", 1},
                             {"_w", 1},
                             {"_celsius", 1},
                             {"_c", 1},
                             {"_ratio", 1},
                             {"_percent", kPercent},
                             {"_pct", kPercent},
                             {"_mib", kMiB},
                             {"_mb", kMega},
                             {"_bytes", 1}};

// What programs call a metric once the unit is taken off. `scale` holds where there was none; zero:
// without a unit the name says nothing.
struct Habit {
  Metric metric;
  double scale;
  std::array<std::string_view, 6> names;
};
constexpr Habit kHabits[] = {
    {Metric::kSmClockMhz,
     1,
     {"sm_clock", "clock_sm", "clocks_sm", "clocks_current_sm", "gpu_clock"}},
    {Metric::kMemoryClockMhz, 1, {"mem_clock", "memory_clock", "clock_mem", "clocks_mem"}},
    {Metric::kSmClockMaxMhz, 1, {"max_sm_clock", "sm_clock_max", "clocks_max_sm"}},
    {Metric::kPowerW, 1, {"power", "power_draw", "gpu_power", "board_power"}},
    {Metric::kPowerW, 0, {"power_usage"}},  // milliwatts of NVML, watts of DCGM
    {Metric::kPowerLimitW, 1, {"power_limit", "enforced_power_limit", "power_cap"}},
    {Metric::kTemperatureC,
     1,
     {"temperature", "temp", "gpu_temp", "gpu_temperature", "temperature_gpu"}},
    {Metric::kMemoryTemperatureC,
     1,
     {"memory_temp", "mem_temp", "hbm_temp", "temperature_memory", "memory_temperature"}},
    {Metric::kGpuUtilisation,
     kPercent,
     {"utilization_gpu", "gpu_util", "gpu_utilization", "util", "utilization"}},
    {Metric::kMemoryUsedBytes, 0, {"memory_used", "mem_used", "fb_used"}},
    {Metric::kThrottleReasons,
     1,
     {"throttle_reasons", "clocks_event_reasons", "clocks_throttle_reasons",
      "clocks_event_reasons_active"}},
    {Metric::kSmActive, 1, {"sm_active", "sm_activity"}},
    {Metric::kSmOccupancy, 1, {"sm_occupancy"}},
    {Metric::kTensorActive,
     1,
     {"tensor_active", "tensor_activity", "any_tensor", "pipe_tensor_active"}},
    {Metric::kDramActive, 1, {"dram_active", "dram_activity"}},
    {Metric::kXid, 1, {"xid", "xid_errors"}},
};

std::optional<MetricName> habit(std::string_view name, std::optional<double> unit) {
  for (const Habit& row : kHabits) {
    for (const std::string_view known : row.names) {
      if (known.empty() || known != name) continue;
      const double scale = unit.value_or(row.scale);
      if (scale == 0) return std::nullopt;
      return MetricName{row.metric, scale};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<MetricName> sample_metric(std::string_view name) {
  if (name.size() > 64) return std::nullopt;
  std::optional<MetricName> found = smi_column(name);
  if (!found) found = exported_metric(name);
  if (found) return found;
  std::string plain = lower(trimmed(name));
  std::replace_if(
      plain.begin(), plain.end(), [](char c) { return c == '.' || c == '-' || c == ' '; }, '_');
  found = habit(plain, std::nullopt);
  for (const Ending& unit : kUnits) {
    if (found || !std::string_view(plain).ends_with(unit.text)) continue;
    found = habit(std::string_view(plain).substr(0, plain.size() - unit.text.size()), unit.scale);
  }
  return found;
}

std::optional<MetricName> monitor_key(std::string_view name) {
  struct Row {
    std::string_view name;
    MetricName metric;
  };
  constexpr Row kRows[] = {{"gpu_usage", {Metric::kGpuUtilisation, kPercent}},
                           {"gpu_temperature", {Metric::kTemperatureC, 1}},
                           {"gpu_power", {Metric::kPowerW, 1}},
                           {"gpu_power_limit", {Metric::kPowerLimitW, 1}},
                           {"gpu_mem_used", {Metric::kMemoryUsedBytes, 1}},
                           {"gpu_mem_total", {Metric::kMemoryTotalBytes, 1}},
                           {"gpu_corrected_ecc", {Metric::kEccCorrected, 1}},
                           {"gpu_uncorrected_ecc", {Metric::kEccUncorrected, 1}}};
  for (const Row& row : kRows) {
    if (row.name == name) return row.metric;
  }
  return std::nullopt;
}

std::string_view metric_name(Metric metric) {
  constexpr std::array<std::string_view, kMetrics> kNames = {"SM clock (MHz)",
                                                             "memory clock (MHz)",
                                                             "maximum SM clock (MHz)",
                                                             "application clock (MHz)",
                                                             "power (W)",
                                                             "power limit (W)",
                                                             "default power limit (W)",
                                                             "maximum power limit (W)",
                                                             "energy (J)",
                                                             "temperature (C)",
                                                             "memory temperature (C)",
                                                             "margin to slowdown (C)",
                                                             "throttle reasons",
                                                             "time at the power cap (s)",
                                                             "time in SW thermal slowdown (s)",
                                                             "time in HW thermal slowdown (s)",
                                                             "time in power brake (s)",
                                                             "GPU utilisation",
                                                             "engine active",
                                                             "SM active",
                                                             "SM occupancy",
                                                             "tensor active",
                                                             "DRAM active",
                                                             "FP32 active",
                                                             "PCIe sent (B/s)",
                                                             "PCIe received (B/s)",
                                                             "NVLink sent (B/s)",
                                                             "NVLink received (B/s)",
                                                             "memory used (B)",
                                                             "memory (B)",
                                                             "ECC corrected",
                                                             "ECC uncorrected",
                                                             "ECC uncorrected, ever",
                                                             "rows remapped, correctable",
                                                             "rows remapped, uncorrectable",
                                                             "row remap pending",
                                                             "row remap failed",
                                                             "page retirement pending",
                                                             "PCIe replays",
                                                             "PCIe generation",
                                                             "PCIe generation, maximum",
                                                             "PCIe width",
                                                             "PCIe width, maximum",
                                                             "NVLink replays",
                                                             "NVLink recoveries",
                                                             "NVLink CRC errors",
                                                             "XID",
                                                             "recovery action"};
  return kNames[static_cast<size_t>(metric)];
}

}  // namespace assay
