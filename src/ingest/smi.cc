// nvidia-smi's two ways of printing: the query log (CSV) and the full text of -q.
#include <string>

#include <fmt/format.h>

#include "base/csv.h"
#include "ingest/smi_value.h"
#include "ingest/telemetry.h"
#include "ingest/text.h"
#include "ingest/time_text.h"

namespace assay {
namespace {

struct Column {
  int index = 0;
  std::optional<MetricName> metric;
  unsigned reason = 0;
};

struct Columns {
  std::vector<Column> metrics;
  int timestamp = -1, index = -1, uuid = -1, name = -1, pci = -1, host = -1;
  bool mask = false;  // the reasons are in one column already
};

Columns columns_of(const std::vector<std::string_view>& header) {
  Columns out;
  for (size_t i = 0; i < header.size(); ++i) {
    const std::string_view name = header[i];
    const int at = static_cast<int>(i);
    if (name == "timestamp" || name == "time" || name == "ts") out.timestamp = at;
    if (name == "index" || name == "gpu" || name == "gpu_index" || name == "gpu_id") out.index = at;
    if (name == "uuid" || name == "gpu_uuid") out.uuid = at;
    if (name == "name" || name == "gpu_name") out.name = at;
    if (name == "pci.bus_id" || name == "gpu_bus_id") out.pci = at;
    if (name == "hostname" || name == "host" || name == "node") out.host = at;
    Column column{at, sample_metric(name), reason_column(name)};
    if (column.metric && column.metric->metric == Metric::kThrottleReasons) {
      out.mask = true;
      column.reason = 0;
    }
    if (column.metric || column.reason != 0) out.metrics.push_back(column);
  }
  return out;
}

std::string cell_text(const std::vector<std::string_view>& row, int column) {
  if (column < 0 || static_cast<size_t>(column) >= row.size()) return {};
  const std::string_view cell = trimmed(row[static_cast<size_t>(column)]);
  return is_absent_value(cell) ? std::string() : std::string(cell.substr(0, 256));
}

// A GPU is told by its host and its bus id, or else its UUID, or else its index: the bus id first,
// because that is what -q prints too.
int series_of(TelemetryBuilder& builder, const Columns& columns,
              const std::vector<std::string_view>& row) {
  GpuSeries full;
  full.host = cell_text(row, columns.host);
  full.uuid = cell_text(row, columns.uuid);
  full.pci = cell_text(row, columns.pci);
  full.model = cell_text(row, columns.name);
  const std::optional<double> index = whole_number(cell_text(row, columns.index));
  if (index && *index >= 0 && *index < 1024) full.index = static_cast<int>(*index);
  GpuSeries key;
  key.pci = full.pci;
  if (key.pci.empty()) {
    key.host = full.host;
    key.uuid = full.uuid;
    key.index = full.uuid.empty() ? full.index : -1;
  }
  const int series = builder.series(key);
  if (series < 0) return series;
  GpuSeries& gpu = builder.edit(series);
  if (gpu.host.empty()) gpu.host = full.host;
  if (gpu.uuid.empty()) gpu.uuid = full.uuid;
  if (gpu.model.empty()) gpu.model = full.model;
  if (gpu.index < 0) gpu.index = full.index;
  return series;
}

// One row of a query log becomes one sample.
void add_row(TelemetryBuilder& builder, const Columns& columns,
             const std::vector<std::string_view>& row) {
  const int series = series_of(builder, columns, row);
  if (series < 0) return;
  const double at_s = sample_time(cell_text(row, columns.timestamp));
  const size_t sample = builder.new_sample(series, at_s);
  unsigned reasons = 0;
  bool any_reason = false;
  for (const Column& column : columns.metrics) {
    if (static_cast<size_t>(column.index) >= row.size()) continue;
    const std::string_view cell = row[static_cast<size_t>(column.index)];
    if (column.reason != 0) {
      const std::optional<double> active = smi_value(Metric::kThrottleReasons, cell);
      any_reason = any_reason || active.has_value();
      if (active && *active != 0) reasons |= column.reason;
      continue;
    }
    const std::optional<double> value = smi_value(column.metric->metric, cell);
    if (!value) continue;
    const Metric metric = column.metric->metric;
    // Several columns of one metric (power.draw and its .instant): the first one holds.
    if (!std::isnan(builder.edit(series).at(sample, metric))) continue;
    builder.set(series, sample, metric, *value * column.metric->scale);
  }
  if (any_reason && !columns.mask) {
    builder.set(series, sample, Metric::kThrottleReasons, static_cast<double>(reasons));
  }
}

// Rows until the text or the table ends. `line` counts the lines read.
void read_rows(TelemetryBuilder& builder, std::string_view& rest, int& line_number,
               std::string_view header, bool stop_at_blank) {
  const std::vector<std::string_view> names = fields(header, ',');
  const Columns columns = columns_of(names);
  std::string_view line;
  while (!builder.full()) {
    const std::string_view before = rest;
    if (!next_line(rest, line)) return;
    if (stop_at_blank && (trimmed(line).empty() || line[0] == '#')) {
      rest = before;
      return;
    }
    ++line_number;
    const std::string_view bare = trimmed(line);
    if (bare.empty() || bare == trimmed(header)) continue;  // a log that was started again
    const std::vector<std::string_view> row = fields(bare, ',');
    if (row.size() != names.size()) {
      builder.problem(Severity::kWarning,
                      fmt::format("{} cells in a table of {} columns", row.size(), names.size()),
                      line_number, "the line is cut short or damaged; it is left out");
      continue;
    }
    add_row(builder, columns, row);
  }
}

bool is_query_header(std::string_view line) {
  const std::vector<std::string_view> names = fields(line, ',');
  if (names.size() < 2) return false;
  size_t known = 0;
  for (const std::string_view name : names) {
    known += sample_metric(name) || reason_column(name) != 0 ? 1 : 0;
  }
  return known >= 1 && known * 10 >= names.size();  // the full query has some 200 columns
}

// Cheap, because captures are asked about every line with a comma.
bool may_be_query_header(std::string_view line) {
  return contains(line, "clocks") || contains(line, "power.") || contains(line, "temperature.") ||
         contains(line, "utilization.") || contains(line, "memory.") || contains(line, "ecc.") ||
         contains(line, "pcie.") || contains(line, "remapped_rows.");
}

// --- nvidia-smi -q ----------------------------------------------------------------------------

// Where a -q text is being read: the GPU, and the headings above the line by their indentation.
struct QueryState {
  double at_s = 0;
  int series = -1;
  size_t sample = 0;
  unsigned reasons = 0;
  bool any_reason = false;
  std::vector<std::pair<size_t, std::string>> headings;  // indentation, name
};

void end_gpu(TelemetryBuilder& builder, QueryState& state) {
  if (state.series >= 0 && state.any_reason) {
    builder.set(state.series, state.sample, Metric::kThrottleReasons,
                static_cast<double>(state.reasons));
  }
  state = QueryState{state.at_s, -1, 0, 0, false, {}};
}

// ECC counts are printed by memory and by kind; they are added up.
void add_ecc(TelemetryBuilder& builder, const QueryState& state, std::string_view section,
             std::string_view key, double value) {
  const bool ever = contains_any_case(section, "aggregate");
  const bool uncorrectable = contains_any_case(key, "uncorrectable");
  if (!uncorrectable && ever) return;
  const Metric metric = ever            ? Metric::kEccUncorrectedEver
                        : uncorrectable ? Metric::kEccUncorrected
                                        : Metric::kEccCorrected;
  const double before = builder.edit(state.series).at(state.sample, metric);
  builder.set(state.series, state.sample, metric, (std::isnan(before) ? 0 : before) + value);
}

void add_field(TelemetryBuilder& builder, QueryState& state, std::string_view key,
               std::string_view value) {
  const std::string section = state.headings.empty() ? "" : state.headings.back().second;
  GpuSeries& gpu = builder.edit(state.series);
  if (section.empty()) {
    if (key == "Product Name") gpu.model = std::string(value.substr(0, 256));
    if (key == "GPU UUID") gpu.uuid = std::string(value.substr(0, 256));
  }
  const bool in_reasons =
      contains_any_case(section, "reasons") && !contains_any_case(section, "counters");
  const bool nested_reason = section == "HW Slowdown";
  if (in_reasons || nested_reason) {
    const unsigned bit = reason_key(key);
    if (bit != 0 && (value == "Active" || value == "Not Active")) {
      state.any_reason = true;
      if (value == "Active") state.reasons |= bit;
    }
    return;
  }
  if ((section == "Volatile" || section == "Aggregate") && contains_any_case(key, "correctable")) {
    const std::optional<double> count = whole_number(value);
    if (count) add_ecc(builder, state, section, key, *count);
    return;
  }
  const std::optional<MetricName> metric = smi_query_path(section, key);
  if (!metric) return;
  const std::optional<double> number = smi_value(metric->metric, value);
  if (number) builder.set(state.series, state.sample, metric->metric, *number * metric->scale);
}

// `GPU 00000000:00:06.0` at the left edge begins a GPU.
bool begins_gpu(std::string_view line) {
  return line.starts_with("GPU ") && line.size() > 12 && contains(line, ":") &&
         !contains(line, " : ") && !contains(line, "(UUID");
}

void query_line(TelemetryBuilder& builder, QueryState& state, std::string_view line) {
  size_t indent = 0;
  while (indent < line.size() && line[indent] == ' ') ++indent;
  const std::string_view bare = trimmed(line);
  if (bare.empty()) return;
  const size_t colon = bare.find(" : ");
  const std::string_view key = trimmed(bare.substr(0, colon));
  const std::string_view value =
      colon == std::string_view::npos ? std::string_view() : trimmed(bare.substr(colon + 3));
  if (indent == 0) {
    if (key == "Timestamp") state.at_s = time_at(value).value_or(0);
    if (!begins_gpu(bare)) return;
    end_gpu(builder, state);
    GpuSeries identity;
    identity.pci = std::string(trimmed(bare.substr(4)).substr(0, 64));
    state.series = builder.series(identity);
    if (state.series >= 0) state.sample = builder.new_sample(state.series, state.at_s);
    return;
  }
  if (state.series < 0) return;
  while (!state.headings.empty() && state.headings.back().first >= indent) {
    state.headings.pop_back();
  }
  if (colon == std::string_view::npos) {
    if (state.headings.size() < 16) state.headings.emplace_back(indent, std::string(key));
    return;
  }
  add_field(builder, state, key, value);
  // `HW Slowdown : Active` has children of its own.
  if (key == "HW Slowdown") state.headings.emplace_back(indent, std::string(key));
}

}  // namespace

bool is_absent_value(std::string_view cell) {
  return cell.empty() || cell[0] == '[' || cell == "-" || cell == "N/A" ||
         contains_any_case(cell, "error");
}

std::optional<double> smi_value(Metric metric, std::string_view cell) {
  cell = trimmed(cell);
  if (is_absent_value(cell)) return std::nullopt;
  if (cell.starts_with("0x")) {
    const std::optional<uint64_t> mask = unsigned_number(cell, 16);
    return mask ? std::optional<double>(static_cast<double>(*mask)) : std::nullopt;
  }
  if (metric == Metric::kRecoveryAction) {
    const std::string word = lower(cell);
    if (word == "none") return 0;
    if (word == "reset" || contains(word, "gpu reset")) return 1;
    if (contains(word, "reboot")) return 2;
    if (contains(word, "drain") && contains(word, "p2p")) return 3;
    if (contains(word, "drain")) return 4;
  }
  if (cell == "Yes" || cell == "Active") return 1;
  if (cell == "No" || cell == "Not Active") return 0;
  return leading_number(cell);
}

Telemetry read_smi_csv(std::string_view text, const std::string& file) {
  TelemetryBuilder builder(file);
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  std::string_view header;
  int line_number = 0;
  while (next_line(text, header)) {
    ++line_number;
    if (!trimmed(header).empty()) break;
  }
  header = trimmed(header);
  if (!is_query_header(header)) {
    builder.problem(Severity::kError, "no header line: the columns cannot be told apart",
                    line_number, "log with --format=csv, without `noheader`");
    return builder.finish();
  }
  read_rows(builder, text, line_number, header, false);
  Telemetry out = builder.finish();
  // Without `index` or `uuid` every row looks like one GPU; several at one time give it away.
  for (GpuSeries& gpu : out.gpus) {
    if (gpu.index < 0 && gpu.uuid.empty() && gpu.pci.empty() && gpu.size() > 1) {
      size_t same = 0;
      for (size_t i = 1; i < gpu.size(); ++i) same += gpu.at_s[i] == gpu.at_s[i - 1] ? 1 : 0;
      if (gpu.at_s[0] > 0 && same * 2 > gpu.size()) {
        out.problems.push_back({Severity::kWarning,
                                "several rows at each time and no `index` or `uuid` column: the "
                                "GPUs are read as one",
                                {file, 1, 0, 1},
                                "",
                                "add index to --query-gpu"});
      }
    }
  }
  return out;
}

Telemetry read_smi_text(std::string_view text, const std::string& file) {
  TelemetryBuilder builder(file);
  QueryState state;
  bool in_query = false;
  std::string_view line;
  int line_number = 0;
  while (!builder.full() && next_line(text, line)) {
    ++line_number;
    if (contains(line, "NVSMI LOG")) {
      end_gpu(builder, state);
      state.at_s = 0;
      in_query = true;
    } else if (!line.empty() && line[0] == '#') {
      end_gpu(builder, state);
      in_query = false;
    } else if (!in_query && contains(line, ",") && may_be_query_header(line) &&
               is_query_header(trimmed(line))) {
      read_rows(builder, text, line_number, trimmed(line), true);
    } else if (in_query) {
      query_line(builder, state, line);
    }
  }
  end_gpu(builder, state);
  Telemetry out = builder.finish();
  if (out.gpus.empty()) {
    out.problems.push_back(
        {Severity::kError, "no GPU in this nvidia-smi text", {file, line_number, 0, 1}, "", ""});
  }
  return out;
}

}  // namespace assay
