// Samples of GPUs over time, whoever took them: nvidia-smi, DCGM or another exporter through
// Prometheus, NVML.
//
// A series is one GPU (or one MIG instance of it). Its samples are in the order of time; columns
// hold one metric each and are either empty or as long as the times, with NaN where a sample lacks
// the metric. Values are finite, in the unit of Metric, as the tool printed them: nothing is
// judged here. Values that DCGM uses for `blank` are NaN. Host and model names are untrusted text:
// they pass sanitize() before they reach a terminal.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/diagnostic.h"
#include "ingest/metrics.h"
#include "ingest/recognise.h"

namespace assay {

struct GpuSeries {
  std::string host;   // empty: not stated
  std::string uuid;   // empty: not stated
  std::string model;  // `NVIDIA H200`; empty: not stated
  std::string pci;    // `00000000:1A:00.0`; empty: not stated
  std::string mig;    // the instance; empty: a whole GPU
  int index = -1;     // -1: not stated

  std::vector<double> at_s;  // since 1970; all zero where the samples have no time
  std::array<std::vector<double>, kMetrics> columns;

  size_t size() const { return at_s.size(); }
  bool has(Metric m) const { return !columns[static_cast<size_t>(m)].empty(); }
  // NaN where the sample lacks it.
  double at(size_t sample, Metric m) const {
    const std::vector<double>& column = columns[static_cast<size_t>(m)];
    return column.empty() ? std::nan("") : column[sample];
  }
  double last(Metric) const;     // the newest value there is, or NaN
  double largest(Metric) const;  // or NaN
  double smallest(Metric) const;
  // `n1 GPU 3`, `GPU-5269b708`, `GPU 0`: fit for a terminal.
  std::string name() const;
};

struct Telemetry {
  std::string file;
  std::vector<GpuSeries> gpus;
  Diagnostics problems;
  size_t samples() const;
};

// What bounds the memory of a hostile or a very long log: 16 Mi values are 128 MB, and an index of
// times as much again.
constexpr size_t kMaxTelemetryValues = size_t{16} << 20;
constexpr size_t kMaxSeries = 65536;

Telemetry read_smi_csv(std::string_view text, const std::string& file);
// nvidia-smi -q, and captures that hold it among other screens; query CSV in them is read too.
Telemetry read_smi_text(std::string_view text, const std::string& file);
// nvidia-smi -q -x, one document or several after one another.
Telemetry read_smi_xml(std::string_view text, const std::string& file);
// nvidia-smi dmon and pmon. Times without a date count from 1970-01-01, so that differences hold.
Telemetry read_smi_monitor(std::string_view text, const std::string& file);
// `# gpu pwr gtemp ...`: the line of names above the rows of dmon and pmon.
bool is_smi_monitor_header(std::string_view line);
Telemetry read_prometheus_text(std::string_view text, const std::string& file);
Telemetry read_prometheus_json(std::string_view text, const std::string& file);
Telemetry read_monitor_jsonl(std::string_view text, const std::string& file);
// Whichever of them `kind` is; an error where it is none.
Telemetry read_telemetry(FileKind kind, std::string_view text, const std::string& file);

// Collects samples of any order into a Telemetry. For the readers.
class TelemetryBuilder {
 public:
  explicit TelemetryBuilder(const std::string& file) { out_.file = file; }

  // The series of that identity, made when new; -1 when there are too many.
  int series(const GpuSeries& identity);
  // The sample of a series at a time; a new one where there is none.
  size_t sample_at(int series, double at_s);
  size_t new_sample(int series, double at_s);
  // False when the limit of values is reached: the reader stops.
  bool set(int series, size_t sample, Metric, double value);
  GpuSeries& edit(int series) { return out_.gpus[static_cast<size_t>(series)]; }

  void problem(Severity, std::string message, int line = 0, std::string help = "");
  bool full() const { return values_ >= kMaxTelemetryValues; }
  Telemetry finish();  // sorted by time

 private:
  Telemetry out_;
  std::unordered_map<std::string, int> by_key_;
  std::vector<std::unordered_map<double, size_t>> by_time_;
  size_t values_ = 0;
  size_t suppressed_ = 0;
};

inline constexpr size_t kMaxJsonBytes = size_t{256} << 20;
int small_index(std::string_view);  // of a GPU, `3` or `nvidia3`; -1: none

}  // namespace assay
