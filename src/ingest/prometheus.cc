// What Prometheus and its exporters write: the scraped page and the answer to a query.
#include <string>

#include <fmt/format.h>
#include <simdjson.h>

#include "ingest/telemetry.h"
#include "ingest/text.h"

namespace assay {
namespace {

constexpr size_t kMaxLabels = 64;

struct Label {
  std::string_view name;
  std::string value;
};
using Labels = std::vector<Label>;

// The value of the first of these labels that is there. Labels have changed their names over the
// versions of dcgm-exporter, and Prometheus puts `exported_` before one that collides.
std::string label(const Labels& labels, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    for (const Label& each : labels) {
      if (each.name == name && !each.value.empty()) return each.value.substr(0, 256);
    }
  }
  return {};
}

GpuSeries identity_of(const Labels& labels) {
  GpuSeries gpu;
  gpu.host = label(labels, {"exported_hostname", "Hostname", "hostname", "node", "nodename",
                            "kubernetes_node", "host", "instance"});
  gpu.uuid = label(labels, {"UUID", "uuid", "gpu_uuid"});
  gpu.model = label(labels, {"modelName", "model_name", "name"});
  gpu.pci = label(labels, {"pci_bus_id"});
  gpu.mig = label(labels, {"GPU_I_ID"});
  gpu.index =
      small_index(label(labels, {"gpu", "GPU", "minor_number", "gpu_id", "index", "device"}));
  return gpu;
}

// The same GPU may come with more or fewer labels from one metric to the next; what identifies it
// is its host and its UUID, or else its index.
int series_of(TelemetryBuilder& builder, const Labels& labels) {
  const GpuSeries full = identity_of(labels);
  GpuSeries key;
  key.host = full.host;
  key.uuid = full.uuid;
  key.mig = full.mig;
  if (full.uuid.empty()) {
    key.index = full.index;
    key.pci = full.index < 0 ? full.pci : std::string();
  }
  if (key.uuid.empty() && key.index < 0 && key.pci.empty()) return -1;
  const int series = builder.series(key);
  if (series < 0) return -1;
  GpuSeries& gpu = builder.edit(series);
  if (gpu.model.empty()) gpu.model = full.model;
  if (gpu.pci.empty()) gpu.pci = full.pci;
  if (gpu.index < 0) gpu.index = full.index;
  return series;
}

// Names before a label set end here.
bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == ':';
}

// `{a="b",c="d\"e"}`; false when it is not well formed. `rest` is left after the brace.
bool read_labels(std::string_view& rest, Labels& out) {
  rest.remove_prefix(1);
  while (true) {
    while (!rest.empty() && (rest[0] == ' ' || rest[0] == ',')) rest.remove_prefix(1);
    if (rest.empty()) return false;
    if (rest[0] == '}') {
      rest.remove_prefix(1);
      return true;
    }
    size_t n = 0;
    while (n < rest.size() && is_name_char(rest[n])) ++n;
    if (n == 0 || out.size() >= kMaxLabels) return false;
    Label item{rest.substr(0, n), {}};
    rest.remove_prefix(n);
    if (!rest.starts_with("=\"")) return false;
    rest.remove_prefix(2);
    while (!rest.empty() && rest[0] != '"') {
      if (rest[0] == '\\' && rest.size() > 1) rest.remove_prefix(1);
      item.value += rest[0];
      rest.remove_prefix(1);
    }
    if (rest.empty()) return false;
    rest.remove_prefix(1);
    out.push_back(std::move(item));
  }
}

struct Point {
  std::string_view name;
  Labels labels;
  double value = 0;
  double at_s = 0;  // 0: the line has no time
};

// One line of a page. False where it is not a sample, or its value is not a finite number.
bool read_point(std::string_view line, Point& out) {
  size_t n = 0;
  while (n < line.size() && is_name_char(line[n])) ++n;
  if (n == 0) return false;
  out.name = line.substr(0, n);
  line.remove_prefix(n);
  while (!line.empty() && line[0] == ' ') line.remove_prefix(1);
  if (!line.empty() && line[0] == '{' && !read_labels(line, out.labels)) return false;
  const std::vector<std::string_view> parts = words(line, 3);
  if (parts.empty()) return false;
  const std::optional<double> value = whole_number(parts[0]);
  if (!value) return false;
  out.value = *value;
  const std::optional<double> milliseconds =
      parts.size() > 1 ? whole_number(parts[1]) : std::nullopt;
  out.at_s = milliseconds ? *milliseconds / 1000 : 0;
  return true;
}

// The unit of field 203 is percent, but its name in DCGM 4.6 ends in RATIO, and an exporter may
// take that at its word: a fraction under that name is one.
double scaled(std::string_view name, const MetricName& metric, double value) {
  const bool ratio = metric.metric == Metric::kGpuUtilisation && name.size() > 6 &&
                     name.substr(name.size() - 6) == "_RATIO";
  return ratio && value > 0 && value < 1 ? value : value * metric.scale;
}

// `nvidia_smi_gpu_info{...} 1`: the labels of a GPU whose other metrics carry the UUID alone.
bool is_info(std::string_view name) { return name == "nvidia_smi_gpu_info"; }

void add_point(TelemetryBuilder& builder, const Point& point, std::vector<size_t>& newest_sample) {
  const std::optional<MetricName> metric = exported_metric(point.name);
  if (!metric && !is_info(point.name)) return;
  const int series = series_of(builder, point.labels);
  if (series < 0 || !metric) return;
  if (newest_sample.size() <= static_cast<size_t>(series)) {
    newest_sample.resize(static_cast<size_t>(series) + 1, std::string::npos);
  }
  size_t& newest = newest_sample[static_cast<size_t>(series)];
  size_t sample = newest;
  if (point.at_s > 0) {
    sample = builder.sample_at(series, point.at_s);
  } else if (newest == std::string::npos) {
    sample = newest = builder.new_sample(series, 0);
  }
  const double before = builder.edit(series).at(sample, metric->metric);
  const double value = scaled(point.name, *metric, point.value);
  // The same metric again: several pages were written into one file.
  const bool twice = !std::isnan(before) && point.at_s <= 0 && before != value &&
                     metric->metric != Metric::kPowerW && metric->metric != Metric::kPowerLimitW;
  if (twice) sample = newest = builder.new_sample(series, 0);
  builder.set(series, sample, metric->metric, value);
}

// --- JSON -------------------------------------------------------------------------------------

Labels labels_of(simdjson::dom::object metric, std::string_view& name) {
  Labels labels;
  for (const auto field : metric) {
    std::string_view value;
    if (field.value.get(value) != simdjson::SUCCESS) continue;
    if (field.key == "__name__") name = value;
    if (labels.size() < kMaxLabels) labels.push_back({field.key, std::string(value)});
  }
  return labels;
}

// `[1700000000.1, "42"]`
bool read_pair(simdjson::dom::element pair, double& at_s, double& value) {
  simdjson::dom::array items;
  if (pair.get(items) != simdjson::SUCCESS || items.size() != 2) return false;
  std::string_view text;
  if (items.at(0).get(at_s) != simdjson::SUCCESS) return false;
  if (items.at(1).get(text) == simdjson::SUCCESS) {
    const std::optional<double> number = whole_number(text);
    if (!number) return false;
    value = *number;
    return std::isfinite(at_s);
  }
  return items.at(1).get(value) == simdjson::SUCCESS && std::isfinite(at_s);
}

// One series of a vector or a matrix. False when the limit of values is reached.
bool add_result(TelemetryBuilder& builder, simdjson::dom::element result, size_t& unnamed) {
  simdjson::dom::object metric;
  if (result["metric"].get(metric) != simdjson::SUCCESS) return true;
  std::string_view name;
  const Labels labels = labels_of(metric, name);
  if (name.empty()) ++unnamed;
  const std::optional<MetricName> known = exported_metric(name);
  if (!known) return true;
  const int series = series_of(builder, labels);
  if (series < 0) return true;
  const auto add = [&](simdjson::dom::element pair) {
    double at_s = 0, value = 0;
    if (!read_pair(pair, at_s, value)) return true;
    return builder.set(series, builder.sample_at(series, at_s), known->metric,
                       scaled(name, *known, value));
  };
  simdjson::dom::element single;
  if (result["value"].get(single) == simdjson::SUCCESS) return add(single);
  simdjson::dom::array many;
  if (result["values"].get(many) != simdjson::SUCCESS) return true;
  for (const simdjson::dom::element pair : many) {
    if (!add(pair)) return false;
  }
  return true;
}

}  // namespace

Telemetry read_prometheus_text(std::string_view text, const std::string& file) {
  TelemetryBuilder builder(file);
  std::vector<size_t> newest_sample;
  std::string_view line;
  int line_number = 0;
  size_t points = 0;
  while (!builder.full() && next_line(text, line)) {
    ++line_number;
    const std::string_view bare = trimmed(line);
    if (bare.empty() || bare[0] == '#') continue;
    Point point;
    if (!read_point(bare, point)) {
      if (!contains(bare, "NaN") && !contains(bare, "Inf")) {
        builder.problem(Severity::kWarning, "not a sample: " + sanitize(std::string(bare), 60),
                        line_number);
      }
      continue;
    }
    ++points;
    add_point(builder, point, newest_sample);
  }
  Telemetry out = builder.finish();
  if (out.gpus.empty()) {
    out.problems.push_back({Severity::kWarning,
                            fmt::format("{} samples, none of a GPU metric that is known", points),
                            {file, 0, 0, 1},
                            "",
                            ""});
  }
  return out;
}

Telemetry read_prometheus_json(std::string_view text, const std::string& file) {
  TelemetryBuilder builder(file);
  simdjson::dom::parser parser(kMaxJsonBytes);
  simdjson::dom::element root;
  const simdjson::error_code error = parser.parse(text.data(), text.size()).get(root);
  if (error != simdjson::SUCCESS) {
    builder.problem(Severity::kError, fmt::format("not JSON: {}", simdjson::error_message(error)));
    return builder.finish();
  }
  simdjson::dom::element data = root;
  simdjson::dom::element inner;
  if (root["data"].get(inner) == simdjson::SUCCESS) data = inner;
  simdjson::dom::array results;
  if (data["result"].get(results) != simdjson::SUCCESS) {
    std::string_view message;
    const bool stated = root["error"].get(message) == simdjson::SUCCESS;
    builder.problem(Severity::kError, stated
                                          ? "the query failed: " + sanitize(std::string(message))
                                          : std::string("no `data.result` in this query result"));
    return builder.finish();
  }
  size_t unnamed = 0;
  for (const simdjson::dom::element result : results) {
    if (!add_result(builder, result, unnamed)) break;
  }
  if (unnamed > 0) {
    builder.problem(Severity::kWarning,
                    fmt::format("{} series have no metric name and are left out", unnamed), 0,
                    "query the metric itself, not a function of it such as rate()");
  }
  Telemetry out = builder.finish();
  if (out.gpus.empty() && out.problems.empty()) {
    out.problems.push_back(
        {Severity::kWarning, "no GPU metric that is known", {file, 0, 0, 1}, "", ""});
  }
  return out;
}

}  // namespace assay
