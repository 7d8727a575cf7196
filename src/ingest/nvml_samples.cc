// JSON of programs that sample NVML by themselves: a line, or an element of one array, for each
// time.
//
// There is no format, only habits, and three of them are read: one key a GPU (`gpu_usage:3`, as
// SuperBench's monitor writes), one object a GPU with the names of nvidia-smi, DCGM or the like
// (`{"timestamp": ..., "index": 3, "power_w": 612}`), and one object a time with a list of such
// (`{"time": ..., "gpus": [...]}`). Names are looked up by sample_metric.
#include <string>

#include <fmt/format.h>
#include <simdjson.h>

#include "ingest/smi_value.h"
#include "ingest/telemetry.h"
#include "ingest/text.h"
#include "ingest/time_text.h"

namespace assay {
namespace {

constexpr int kDepthMost = 2;  // lists of GPUs within lists of hosts

// What the objects around it say of a sample.
struct Around {
  double at_s = 0;
  std::string host;
};

// The first of these keys that holds a text or a whole number, as text.
std::string text_at(const simdjson::dom::object& object, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    simdjson::dom::element value;
    if (object[key].get(value) != simdjson::SUCCESS) continue;
    std::string_view text;
    int64_t number = 0;
    if (value.get(text) == simdjson::SUCCESS) return std::string(text.substr(0, 256));
    if (value.get(number) == simdjson::SUCCESS) return std::to_string(number);
  }
  return {};
}

Around around(const simdjson::dom::object& object, Around outer) {
  for (const char* key : {"timestamp", "time", "ts", "datetime", "unix_time"}) {
    simdjson::dom::element value;
    if (object[key].get(value) != simdjson::SUCCESS) continue;
    std::string_view text;
    double number = 0;
    if (value.get(text) == simdjson::SUCCESS) outer.at_s = sample_time(text);
    if (value.get(number) == simdjson::SUCCESS) outer.at_s = epoch_seconds(number);
    break;
  }
  const std::string host = text_at(object, {"hostname", "host", "node"});
  if (!host.empty()) outer.host = host;
  return outer;
}

std::optional<double> number_of(Metric metric, const simdjson::dom::element& value) {
  double number = 0;
  bool yes = false;
  std::string_view text;
  if (value.get(number) == simdjson::SUCCESS) return number;
  if (value.get(yes) == simdjson::SUCCESS) return yes ? 1.0 : 0.0;
  if (value.get(text) == simdjson::SUCCESS) return smi_value(metric, text);
  return std::nullopt;
}

// `gpu_usage:3`
void add_columns_by_gpu(TelemetryBuilder& builder, const simdjson::dom::object& object,
                        const Around& at) {
  // A second line at the same time is a second sample, so times are not merged across lines.
  std::unordered_map<int, size_t> samples;
  for (const auto field : object) {
    const size_t colon = field.key.rfind(':');
    if (colon == std::string_view::npos) continue;
    const std::optional<MetricName> metric = monitor_key(field.key.substr(0, colon));
    const int index = small_index(field.key.substr(colon + 1));
    double value = 0;
    if (!metric || index < 0 || field.value.get(value) != simdjson::SUCCESS) continue;
    GpuSeries identity;
    identity.index = index;
    identity.host = at.host;
    const int series = builder.series(identity);
    if (series < 0) continue;
    const auto found = samples.find(series);
    const size_t sample =
        found != samples.end() ? found->second : builder.new_sample(series, at.at_s);
    samples.emplace(series, sample);
    builder.set(series, sample, metric->metric, value * metric->scale);
  }
}

void add_gpu(TelemetryBuilder& builder, const simdjson::dom::object& object, const Around& at) {
  int series = -1;
  size_t sample = 0;
  for (const auto field : object) {
    const std::optional<MetricName> metric = sample_metric(field.key);
    const std::optional<double> value =
        metric ? number_of(metric->metric, field.value) : std::optional<double>();
    if (!value) continue;
    if (series < 0) {
      GpuSeries identity;
      identity.host = at.host;
      identity.uuid = text_at(object, {"uuid", "gpu_uuid", "UUID"});
      identity.index = small_index(
          text_at(object, {"index", "gpu", "gpu_index", "gpu_id", "device", "minor_number"}));
      if (!identity.uuid.empty()) identity.index = -1;
      series = builder.series(identity);
      if (series < 0) return;
      builder.edit(series).model = text_at(object, {"name", "gpu_name", "model", "model_name"});
      sample = builder.new_sample(series, at.at_s);
    }
    builder.set(series, sample, metric->metric, *value * metric->scale);
  }
}

void add_object(TelemetryBuilder& builder, const simdjson::dom::object& object, const Around& outer,
                int depth) {
  const Around at = around(object, outer);
  add_columns_by_gpu(builder, object, at);
  add_gpu(builder, object, at);
  for (const auto field : object) {
    simdjson::dom::array list;
    if (depth >= kDepthMost || field.value.get(list) != simdjson::SUCCESS) continue;
    for (const simdjson::dom::element element : list) {
      simdjson::dom::object inner;
      if (builder.full() || element.get(inner) != simdjson::SUCCESS) break;
      add_object(builder, inner, at, depth + 1);
    }
  }
}

}  // namespace

Telemetry read_monitor_jsonl(std::string_view text, const std::string& file) {
  TelemetryBuilder builder(file);
  simdjson::dom::parser parser(kMaxJsonBytes);
  simdjson::dom::array all;
  if (trimmed(text.substr(0, 64)).starts_with("[") &&
      parser.parse(text.data(), text.size()).get(all) == simdjson::SUCCESS) {
    for (const simdjson::dom::element element : all) {
      simdjson::dom::object object;
      if (builder.full()) break;
      if (element.get(object) == simdjson::SUCCESS) add_object(builder, object, {}, 0);
    }
    return builder.finish();
  }
  std::string_view line;
  int line_number = 0;
  while (!builder.full() && next_line(text, line)) {
    ++line_number;
    if (trimmed(line).empty()) continue;
    simdjson::dom::object object;
    if (parser.parse(line.data(), line.size()).get(object) != simdjson::SUCCESS) {
      builder.problem(Severity::kWarning, "not a JSON object; the line is left out", line_number);
      continue;
    }
    add_object(builder, object, {}, 0);
  }
  Telemetry out = builder.finish();
  if (out.gpus.empty()) {
    out.problems.push_back({Severity::kError, "no sample of a GPU", {file, 0, 0, 1}, "", ""});
  }
  return out;
}

}  // namespace assay
