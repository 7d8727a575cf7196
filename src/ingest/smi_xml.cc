// nvidia-smi -q -x: the full query as XML, one document a query (`-l` prints one after another).
//
// Elements are found by their name and their parent's; names drift between drivers (throttle
// reasons became event reasons in 535, power_readings became gpu_power_readings), so each metric
// lists what it was called. Document types and entities are never looked at: reading begins at the
// root element.
#include <algorithm>
#include <string>

#include <fmt/format.h>
#include <pugixml.hpp>

#include "ingest/smi_value.h"
#include "ingest/telemetry.h"
#include "ingest/text.h"
#include "ingest/time_text.h"

namespace assay {
namespace {

constexpr std::string_view kOpen = "<nvidia_smi_log";
constexpr std::string_view kClose = "</nvidia_smi_log>";
constexpr size_t kDocumentMost = size_t{64} << 20;  // 16 GPUs are 300 KB
constexpr int kXmlDepthMost = 8;
constexpr size_t kGpusMost = 1024;

struct Element {
  std::string_view parent, name;
  Metric metric;
  double scale = 1;
  bool fallback = false;  // holds only where no other element gave the metric
};
constexpr double kKilo = 1e3;
constexpr Element kElements[] = {
    {"clocks", "sm_clock", Metric::kSmClockMhz},
    {"clocks", "mem_clock", Metric::kMemoryClockMhz},
    {"max_clocks", "sm_clock", Metric::kSmClockMaxMhz},
    {"applications_clocks", "graphics_clock", Metric::kAppClockMhz},
    {"gpu_power_readings", "instant_power_draw", Metric::kPowerW},
    {"gpu_power_readings", "power_draw", Metric::kPowerW, 1, true},
    {"gpu_power_readings", "average_power_draw", Metric::kPowerW, 1, true},
    {"gpu_power_readings", "current_power_limit", Metric::kPowerLimitW},
    {"gpu_power_readings", "default_power_limit", Metric::kPowerLimitDefaultW},
    {"gpu_power_readings", "max_power_limit", Metric::kPowerLimitMaxW},
    {"power_readings", "power_draw", Metric::kPowerW},
    {"power_readings", "enforced_power_limit", Metric::kPowerLimitW},
    {"power_readings", "power_limit", Metric::kPowerLimitW, 1, true},
    {"power_readings", "default_power_limit", Metric::kPowerLimitDefaultW},
    {"power_readings", "max_power_limit", Metric::kPowerLimitMaxW},
    {"temperature", "gpu_temp", Metric::kTemperatureC},
    {"temperature", "memory_temp", Metric::kMemoryTemperatureC},
    {"temperature", "gpu_temp_tlimit", Metric::kTemperatureMarginC},
    {"utilization", "gpu_util", Metric::kGpuUtilisation, kPercent},
    {"fb_memory_usage", "used", Metric::kMemoryUsedBytes, kMiB},
    {"fb_memory_usage", "total", Metric::kMemoryTotalBytes, kMiB},
    {"remapped_rows", "remapped_row_corr", Metric::kRowsRemappedCorrectable},
    {"remapped_rows", "remapped_row_unc", Metric::kRowsRemappedUncorrectable},
    {"remapped_rows", "remapped_row_pending", Metric::kRowRemapPending},
    {"remapped_rows", "remapped_row_failure", Metric::kRowRemapFailed},
    {"retired_pages", "pending_retirement", Metric::kPagesPending},
    {"retired_pages", "pending_blacklist", Metric::kPagesPending},
    {"pci", "replay_counter", Metric::kPcieReplays},
    {"pci", "tx_util", Metric::kPcieSentBytesPerS, kKilo},
    {"pci", "rx_util", Metric::kPcieReceivedBytesPerS, kKilo},
    {"pcie_gen", "current_link_gen", Metric::kPcieGeneration},
    {"pcie_gen", "max_link_gen", Metric::kPcieGenerationMax},
    {"link_widths", "current_link_width", Metric::kPcieWidth},
    {"link_widths", "max_link_width", Metric::kPcieWidthMax},
    {"gpu", "gpu_recovery_action", Metric::kRecoveryAction},
};

// Below these are other things that have clocks, memory and power of their own.
bool is_passed_over(std::string_view name) {
  return name == "mig_devices" || name == "processes" || name == "accounted_processes" ||
         name == "supported_clocks" || name == "accounting_mode";
}

// One GPU of one document.
struct Gpu {
  TelemetryBuilder& builder;
  int series = -1;
  size_t sample = 0;
  unsigned reasons = 0;
  bool any_reason = false;

  double now(Metric m) const { return builder.edit(series).at(sample, m); }
  void set(Metric m, double value) { builder.set(series, sample, m, value); }
  void add(Metric m, double value) { set(m, (std::isnan(now(m)) ? 0 : now(m)) + value); }
};

std::string_view text_of(const pugi::xml_node& node) { return trimmed(node.child_value()); }

// `sram_correctable`, `dram_uncorrectable`, `sram_uncorrectable_parity`; before Ampere `total` of
// `single_bit` and `double_bit`.
void add_ecc(Gpu& gpu, std::string_view section, std::string_view parent, std::string_view name,
             double count) {
  const bool old_total = name == "total" && (parent == "single_bit" || parent == "double_bit");
  if (!old_total && (parent != section || !contains(name, "correctable"))) return;
  const bool uncorrectable = contains(name, "uncorrectable") || parent == "double_bit";
  const bool ever = section == "aggregate";
  if (ever && !uncorrectable) return;
  gpu.add(ever            ? Metric::kEccUncorrectedEver
          : uncorrectable ? Metric::kEccUncorrected
                          : Metric::kEccCorrected,
          count);
}

// `clocks_event_reason_sw_power_cap` in either spelling; the column's name ends the same way.
void add_reason(Gpu& gpu, std::string_view name, std::string_view value) {
  for (const std::string_view prefix : {"clocks_event_reason_", "clocks_throttle_reason_"}) {
    if (!name.starts_with(prefix)) continue;
    const std::string column = "clocks_event_reasons." + std::string(name.substr(prefix.size()));
    const unsigned bit = reason_column(column);
    if (bit == 0 || (value != "Active" && value != "Not Active")) return;
    gpu.any_reason = true;
    if (value == "Active") gpu.reasons |= bit;
  }
}

void add_leaf(Gpu& gpu, std::string_view section, std::string_view parent, std::string_view name,
              std::string_view value) {
  if (parent == "clocks_event_reasons" || parent == "clocks_throttle_reasons") {
    return add_reason(gpu, name, value);
  }
  if (section == "volatile" || section == "aggregate") {
    const std::optional<double> count = whole_number(value);
    if (count && *count >= 0) add_ecc(gpu, section, parent, name, *count);
    return;
  }
  constexpr std::string_view kCounter = "clocks_event_reasons_counters_";
  if (name.starts_with(kCounter)) {
    const std::optional<MetricName> counter =
        smi_column(fmt::format("clocks_event_reasons_counters.{}", name.substr(kCounter.size())));
    const std::optional<double> number =
        counter ? smi_value(counter->metric, value) : std::optional<double>();
    if (number) gpu.set(counter->metric, *number * counter->scale);
    return;
  }
  for (const Element& e : kElements) {
    if (e.parent != parent || e.name != name) continue;
    const std::optional<double> number = smi_value(e.metric, value);
    if (number && (!e.fallback || std::isnan(gpu.now(e.metric))))
      gpu.set(e.metric, *number * e.scale);
  }
}

// Depth is bounded, so recursion is.
void add_children(Gpu& gpu, const pugi::xml_node& node, std::string_view section, int depth) {
  const std::string_view parent = node.name();
  for (const pugi::xml_node& child : node.children()) {
    if (gpu.builder.full()) return;
    const std::string_view name = child.name();
    if (child.type() != pugi::node_element || is_passed_over(name)) continue;
    const pugi::xml_node first = child.first_child();
    if (first.type() != pugi::node_element) {
      add_leaf(gpu, section, parent, name, text_of(child));
    } else if (depth < kXmlDepthMost) {
      const bool ecc = name == "volatile" || name == "aggregate";
      add_children(gpu, child, ecc ? name : section, depth + 1);
    }
  }
}

void add_gpu(TelemetryBuilder& builder, const pugi::xml_node& node, double at_s, size_t order) {
  GpuSeries identity;
  identity.pci = std::string(node.attribute("id").as_string()).substr(0, 64);
  if (identity.pci.empty())
    identity.pci = std::string(text_of(node.child("pci").child("pci_bus_id")).substr(0, 64));
  if (identity.pci.empty()) identity.index = static_cast<int>(order);
  Gpu gpu{builder, builder.series(identity)};
  if (gpu.series < 0) return;
  gpu.sample = builder.new_sample(gpu.series, at_s);
  GpuSeries& series = builder.edit(gpu.series);
  series.model = std::string(text_of(node.child("product_name")).substr(0, 256));
  series.uuid = std::string(text_of(node.child("uuid")).substr(0, 256));
  add_children(gpu, node, "", 0);
  if (gpu.any_reason) gpu.set(Metric::kThrottleReasons, static_cast<double>(gpu.reasons));
}

int line_of(std::string_view text, size_t at) {
  return 1 + static_cast<int>(
                 std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
}

}  // namespace

Telemetry read_smi_xml(std::string_view text, const std::string& file) {
  TelemetryBuilder builder(file);
  int line = 1;
  size_t counted = 0;  // up to where `line` was counted
  size_t gpus = 0;
  for (size_t at = text.find(kOpen); at != std::string_view::npos && !builder.full();
       at = text.find(kOpen, at)) {
    line += line_of(text.substr(counted, at - counted), at - counted) - 1;
    counted = at;
    // Without its end the document goes on to the next one's beginning, or to the end of the text.
    const size_t next = text.find(kOpen, at + kOpen.size());
    const size_t close = text.find(kClose, at);
    const size_t end = close < next ? close + kClose.size() : std::min(next, text.size());
    const std::string_view one = text.substr(at, end - at);
    at = end;
    if (one.size() > kDocumentMost) {
      builder.problem(Severity::kWarning, "a document of more than 64 MB is left out", line);
      continue;
    }
    pugi::xml_document document;
    const pugi::xml_parse_result parsed =
        document.load_buffer(one.data(), one.size(), pugi::parse_minimal | pugi::parse_escapes);
    if (!parsed) {
      const size_t stop =
          std::min(one.size(), static_cast<size_t>(std::max<std::ptrdiff_t>(parsed.offset, 0)));
      builder.problem(Severity::kWarning,
                      fmt::format("the XML is cut short or damaged ({}); what came before is read",
                                  parsed.description()),
                      line + line_of(one, stop) - 1);
    }
    const pugi::xml_node root = document.child("nvidia_smi_log");
    const double at_s = time_at(text_of(root.child("timestamp"))).value_or(0);
    size_t order = 0;
    for (const pugi::xml_node& node : root.children("gpu")) {
      if (order >= kGpusMost || builder.full()) break;
      if (!node.first_child()) continue;  // cut before it said anything
      add_gpu(builder, node, at_s, order++);
    }
    gpus += order;
  }
  if (gpus == 0) builder.problem(Severity::kError, "no GPU in this output of nvidia-smi -q -x");
  return builder.finish();
}

}  // namespace assay
