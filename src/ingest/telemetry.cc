#include "ingest/telemetry.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/assert.h"
#include "ingest/text.h"

namespace assay {
namespace {

constexpr size_t kTelemetryProblems = 20;

// DCGM writes these where it has no value: dcgm_fields.h, DCGM_INT64_BLANK, DCGM_FP64_BLANK and
// DCGM_INT32_BLANK with the three codes above each (not found, not supported, no permission).
bool is_blank(double value) {
  constexpr double kFp64Blank = 140737488355328.0;
  constexpr double kInt32Blank = 2147483632.0;
  return std::abs(value) >= kFp64Blank || (value >= kInt32Blank && value <= kInt32Blank + 3);
}

// Activities are ratios; some recording rules make percents of them.
double as_ratio(Metric metric, double value) {
  switch (metric) {
    case Metric::kEngineActive:
    case Metric::kSmActive:
    case Metric::kSmOccupancy:
    case Metric::kTensorActive:
    case Metric::kDramActive:
    case Metric::kFp32Active: {
      constexpr double kSurelyPercent = 1.5;  // rounding makes 1.0x of a ratio, never 1.5
      return value > kSurelyPercent ? value / 100 : value;
    }
    default:
      return value;
  }
}

void sort_by_time(GpuSeries& gpu) {
  if (std::is_sorted(gpu.at_s.begin(), gpu.at_s.end())) return;
  std::vector<size_t> order(gpu.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return gpu.at_s[a] < gpu.at_s[b]; });
  const auto reorder = [&](std::vector<double>& column) {
    if (column.empty()) return;
    std::vector<double> sorted(column.size());
    for (size_t i = 0; i < order.size(); ++i) sorted[i] = column[order[i]];
    column = std::move(sorted);
  };
  reorder(gpu.at_s);
  for (std::vector<double>& column : gpu.columns) reorder(column);
}

template <class Better>
double best(const std::vector<double>& column, Better better) {
  double result = std::nan("");
  for (const double value : column) {
    if (!std::isnan(value) && (std::isnan(result) || better(value, result))) result = value;
  }
  return result;
}

}  // namespace

double GpuSeries::last(Metric m) const {
  const std::vector<double>& column = columns[static_cast<size_t>(m)];
  for (size_t i = column.size(); i > 0; --i) {
    if (!std::isnan(column[i - 1])) return column[i - 1];
  }
  return std::nan("");
}

double GpuSeries::largest(Metric m) const {
  return best(columns[static_cast<size_t>(m)], [](double a, double b) { return a > b; });
}

double GpuSeries::smallest(Metric m) const {
  return best(columns[static_cast<size_t>(m)], [](double a, double b) { return a < b; });
}

std::string GpuSeries::name() const {
  std::string out;
  if (!host.empty()) out = sanitize(host, 64) + " ";
  if (index >= 0) {
    out += fmt::format("GPU {}", index);
  } else if (!uuid.empty()) {
    out += sanitize(uuid.substr(0, 12), 64);
  } else if (!pci.empty()) {
    out += "GPU " + sanitize(pci, 64);
  } else {
    out += "GPU";
  }
  if (!mig.empty()) out += " MIG " + sanitize(mig, 64);
  return out;
}

size_t Telemetry::samples() const {
  size_t n = 0;
  for (const GpuSeries& gpu : gpus) n += gpu.size();
  return n;
}

int TelemetryBuilder::series(const GpuSeries& identity) {
  // An index is only unique on its host; a UUID is unique, but masked ones are all alike.
  const std::string key = fmt::format("{}\n{}\n{}\n{}\n{}", identity.host, identity.index,
                                      identity.uuid, identity.pci, identity.mig);
  const auto found = by_key_.find(key);
  if (found != by_key_.end()) return found->second;
  if (out_.gpus.size() >= kMaxSeries) return -1;
  const int index = static_cast<int>(out_.gpus.size());
  by_key_.emplace(key, index);
  out_.gpus.push_back(identity);
  by_time_.emplace_back();
  return index;
}

size_t TelemetryBuilder::new_sample(int series, double at_s) {
  GpuSeries& gpu = edit(series);
  gpu.at_s.push_back(std::isfinite(at_s) ? at_s : 0);
  ++values_;
  for (std::vector<double>& column : gpu.columns) {
    if (!column.empty()) {
      column.push_back(std::nan(""));
      ++values_;
    }
  }
  return gpu.size() - 1;
}

size_t TelemetryBuilder::sample_at(int series, double at_s) {
  std::unordered_map<double, size_t>& times = by_time_[static_cast<size_t>(series)];
  const auto found = times.find(at_s);
  if (found != times.end()) return found->second;
  const size_t sample = new_sample(series, at_s);
  times.emplace(at_s, sample);
  return sample;
}

bool TelemetryBuilder::set(int series, size_t sample, Metric metric, double value) {
  if (full()) return false;
  if (!std::isfinite(value) || is_blank(value)) return true;
  GpuSeries& gpu = edit(series);
  ASSERT(sample < gpu.size());
  std::vector<double>& column = gpu.columns[static_cast<size_t>(metric)];
  if (column.empty()) {
    column.assign(gpu.size(), std::nan(""));
    values_ += gpu.size();
  }
  column[sample] = as_ratio(metric, value);
  return true;
}

void TelemetryBuilder::problem(Severity severity, std::string message, int line, std::string help) {
  if (out_.problems.size() >= kTelemetryProblems) {
    ++suppressed_;
    return;
  }
  out_.problems.push_back(assay::problem(severity, std::move(message), out_.file, line));
  out_.problems.back().help = std::move(help);
}

Telemetry TelemetryBuilder::finish() {
  for (GpuSeries& gpu : out_.gpus) sort_by_time(gpu);
  if (full()) {
    out_.problems.push_back(assay::problem(
        Severity::kWarning, "too many samples: the rest of the file is not read", out_.file));
    out_.problems.back().help = "give a shorter period, or fewer fields";
  }
  if (suppressed_ > 0) {
    out_.problems.push_back(assay::problem(
        Severity::kNote, fmt::format("{} more problems of this kind", suppressed_), out_.file));
  }
  return std::move(out_);
}

Telemetry read_telemetry(FileKind kind, std::string_view text, const std::string& file) {
  switch (kind) {
    case FileKind::kSmiCsv:
      return read_smi_csv(text, file);
    case FileKind::kSmiText:
      return read_smi_text(text, file);
    case FileKind::kSmiXml:
      return read_smi_xml(text, file);
    case FileKind::kSmiMonitor:
      return read_smi_monitor(text, file);
    case FileKind::kPrometheusText:
      return read_prometheus_text(text, file);
    case FileKind::kPrometheusJson:
      return read_prometheus_json(text, file);
    case FileKind::kMonitorJsonl:
      return read_monitor_jsonl(text, file);
    default:
      break;
  }
  TelemetryBuilder builder(file);
  builder.problem(Severity::kError, fmt::format("{} is not telemetry", kind_name(kind)));
  return builder.finish();
}

int small_index(std::string_view text) {
  if (text.starts_with("nvidia")) text.remove_prefix(6);  // device="nvidia3"
  const std::optional<uint64_t> value = unsigned_number(text);
  return value && *value < 1024 ? static_cast<int>(*value) : -1;
}

}  // namespace assay
