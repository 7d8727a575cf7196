// nvidia-smi dmon and pmon: a line a GPU, or a process, and interval, under a header that comes
// again every screen.
//
//   # gpu    pwr  gtemp  mtemp     sm    mem   mclk   pclk
//   # Idx      W      C      C      %      %    MHz    MHz
//       0     77     28     31      0      0   3201    345
//
// `-o DT` puts date and time before `gpu`, `--format csv` separates with commas. Columns are told
// by the header alone, because -s and drivers choose them.
//
// dcgmi dmon is much the same, under short names of DCGM's fields:
//
//   #Entity   GPUTL  TENSO
//   ID
//   GPU 0     98     0.113
#include <string>

#include <fmt/format.h>

#include "base/units.h"
#include "ingest/smi_value.h"
#include "ingest/telemetry.h"
#include "ingest/text.h"
#include "ingest/time_text.h"

namespace assay {
namespace {

constexpr size_t kColumnsMost = 128;

struct Known {
  std::string_view name;
  Metric metric;
  double scale = 1;
};
// `nvidia-smi dmon -h`; the last three are of --gpm-metrics.
constexpr Known kKnown[] = {
    {"pwr", Metric::kPowerW},
    {"gtemp", Metric::kTemperatureC},
    {"temp", Metric::kTemperatureC},
    {"mtemp", Metric::kMemoryTemperatureC},
    {"sm", Metric::kGpuUtilisation, kPercent},
    {"mclk", Metric::kMemoryClockMhz},
    {"pclk", Metric::kSmClockMhz},
    {"fb", Metric::kMemoryUsedBytes, kMiB},
    {"sbecc", Metric::kEccCorrected},
    {"dbecc", Metric::kEccUncorrected},
    {"pci", Metric::kPcieReplays},
    {"rxpci", Metric::kPcieReceivedBytesPerS, kMega},
    {"txpci", Metric::kPcieSentBytesPerS, kMega},
    {"smutil", Metric::kSmActive, kPercent},
    {"smocc", Metric::kSmOccupancy, kPercent},
    {"mmaact", Metric::kTensorActive, kPercent},
};

// The columns of `dcgmi dmon -e IDS`, by the field that each stands for.
struct DcgmColumn {
  std::string_view name;
  int field;
};
constexpr DcgmColumn kDcgmColumns[] = {
    {"smclk", 100},  {"mmclk", 101},  {"dvcctr", 112}, {"mmtmp", 140},  {"gtemp", 150},
    {"tmptr", 150},  {"power", 155},  {"powr", 155},   {"gputl", 203},  {"xider", 230},
    {"fbttl", 250},  {"fbusd", 252},  {"gract", 1001}, {"smact", 1002}, {"smocc", 1003},
    {"tenso", 1004}, {"drama", 1005}, {"fp32a", 1007}, {"pcitx", 1009}, {"pcirx", 1010},
    {"nvltx", 1011}, {"nvlrx", 1012}};

struct MonitorLayout {
  std::vector<std::string> names;
  bool commas = false;
  bool dcgm = false;  // `GPU 0` stands for the index
  int gpu = -1, date = -1, time = -1, pid = -1, power_violation = -1, thermal_violation = -1;
  bool processes() const { return pid >= 0; }
};

std::vector<std::string_view> split(std::string_view line, bool commas) {
  return commas ? fields(line, ',', kColumnsMost) : words(line, kColumnsMost);
}

std::optional<MetricName> metric_of(const MonitorLayout& layout, std::string_view name) {
  if (layout.dcgm) {
    for (const DcgmColumn& c : kDcgmColumns) {
      if (c.name == name) return dcgm_field(c.field);
    }
    return std::nullopt;
  }
  for (const Known& k : kKnown) {
    if (k.name == name) return MetricName{k.metric, k.scale};
  }
  return std::nullopt;
}

// The header of names, not the line of units below it.
bool read_header(std::string_view line, MonitorLayout& out) {
  if (line.empty() || line[0] != '#') return false;
  line = trimmed(line.substr(1));
  MonitorLayout next;
  next.commas = contains(line, ",");
  size_t known = 0;
  for (const std::string_view word : split(line, next.commas)) {
    const int at = static_cast<int>(next.names.size());
    const std::string name = lower(word);
    if (name == "entity" && at == 0) next.dcgm = true;
    if (name == "gpu" || (next.dcgm && at == 0)) next.gpu = at;
    if (name == "date") next.date = at;
    if (name == "time") next.time = at;
    if (name == "pid") next.pid = at;
    if (name == "pviol") next.power_violation = at;
    if (name == "tviol") next.thermal_violation = at;
    known += metric_of(next, name) ? 1 : 0;
    next.names.push_back(name);
  }
  if (next.gpu < 0 || known == 0) return false;
  out = std::move(next);
  return true;
}

// Where a log is being read.
struct State {
  MonitorLayout layout;
  double last_clock = -1, days = 0;  // of times without a date: midnights passed
  // Of pmon: a sample is over when a GPU comes again that was left, or a process that was seen.
  int last_gpu = -1;
  std::vector<std::pair<int, std::string>> seen;
  std::unordered_map<int, size_t> samples;
};

std::string_view cell(const std::vector<std::string_view>& row, int column) {
  if (column < 0 || static_cast<size_t>(column) >= row.size()) return {};
  return row[static_cast<size_t>(column)];
}

// `20260703` and `22:11:09`; zero where there is neither.
double time_of(State& state, const std::vector<std::string_view>& row) {
  const std::string_view date = cell(row, state.layout.date), clock = cell(row, state.layout.time);
  if (clock.size() < 8) return 0;
  std::string text = "1970-01-01 ";
  const bool dated = date.size() == 8 && unsigned_number(date);
  if (dated) {
    text = fmt::format("{}-{}-{} ", date.substr(0, 4), date.substr(4, 2), date.substr(6, 2));
  }
  const std::optional<double> at_s = time_at(text + std::string(clock.substr(0, 16)));
  if (!at_s || dated) return at_s.value_or(0);
  if (*at_s < state.last_clock) state.days += 1;
  state.last_clock = *at_s;
  return *at_s + state.days * kSecondsPerDay;
}

std::optional<int> gpu_of(const State& state, const std::vector<std::string_view>& row) {
  const std::optional<uint64_t> index = unsigned_number(cell(row, state.layout.gpu));
  if (!index || *index >= 1024) return std::nullopt;
  return static_cast<int>(*index);
}

int series_of(TelemetryBuilder& builder, int gpu) {
  GpuSeries identity;
  identity.index = gpu;
  return builder.series(identity);
}

void add_device_row(TelemetryBuilder& builder, State& state, int gpu,
                    const std::vector<std::string_view>& row) {
  const int series = series_of(builder, gpu);
  if (series < 0) return;
  const size_t sample = builder.new_sample(series, time_of(state, row));
  for (size_t i = 0; i < row.size() && i < state.layout.names.size(); ++i) {
    const std::optional<MetricName> known = metric_of(state.layout, state.layout.names[i]);
    if (!known) continue;
    const std::optional<double> value = smi_value(known->metric, row[i]);
    if (value) builder.set(series, sample, known->metric, *value * known->scale);
  }
  // Violations are the share of the interval, and yes or no; a sample is one or the other.
  constexpr double kMostOfTheTime = 50;  // per cent
  const std::optional<double> power = whole_number(cell(row, state.layout.power_violation));
  const std::optional<double> heat = whole_number(cell(row, state.layout.thermal_violation));
  if (!power && !heat) return;
  unsigned reasons = 0;
  if (power.value_or(0) >= kMostOfTheTime) reasons |= kReasonPowerCap;
  if (heat.value_or(0) > 0) reasons |= kReasonSwThermal;
  builder.set(series, sample, Metric::kThrottleReasons, reasons);
}

// Processes of one GPU and one interval are added up.
void add_process_row(TelemetryBuilder& builder, State& state, int gpu,
                     const std::vector<std::string_view>& row) {
  const std::pair<int, std::string> process{gpu, std::string(cell(row, state.layout.pid))};
  const bool again = std::find(state.seen.begin(), state.seen.end(), process) != state.seen.end();
  constexpr size_t kProcessesMost = 4096;
  if (gpu < state.last_gpu || again || state.seen.size() >= kProcessesMost) {
    state.seen.clear();
    state.samples.clear();
  }
  state.last_gpu = gpu;
  state.seen.push_back(process);
  const int series = series_of(builder, gpu);
  if (series < 0) return;
  const auto found = state.samples.find(gpu);
  const size_t sample = found != state.samples.end()
                            ? found->second
                            : builder.new_sample(series, time_of(state, row));
  state.samples.emplace(gpu, sample);
  for (size_t i = 0; i < row.size() && i < state.layout.names.size(); ++i) {
    const bool busy = state.layout.names[i] == "sm", memory = state.layout.names[i] == "fb";
    if (!busy && !memory) continue;
    const Metric metric = busy ? Metric::kGpuUtilisation : Metric::kMemoryUsedBytes;
    const double before = builder.edit(series).at(sample, metric);
    // A dash is a process that did nothing, or no process at all.
    const double value = whole_number(row[i]).value_or(0) * (busy ? kPercent : kMiB);
    builder.set(series, sample, metric, (std::isnan(before) ? 0 : before) + value);
  }
}

}  // namespace

bool is_smi_monitor_header(std::string_view line) {
  MonitorLayout layout;
  return read_header(trimmed(line), layout) && layout.names.size() >= 2;
}

Telemetry read_smi_monitor(std::string_view text, const std::string& file) {
  TelemetryBuilder builder(file);
  State state;
  std::string_view line;
  int line_number = 0;
  while (!builder.full() && next_line(text, line)) {
    ++line_number;
    const std::string_view bare = trimmed(line);
    if (bare.empty() || read_header(bare, state.layout) || bare[0] == '#') continue;
    std::vector<std::string_view> row = split(bare, state.layout.commas);
    if (state.layout.dcgm) {
      // Instances, switches and links are other entities; `ID` ends the header.
      if (row[0] != "GPU" || row.size() < 2) continue;
      row.erase(row.begin());
    }
    const std::optional<int> gpu = gpu_of(state, row);
    // The command of a process may hold blanks, so that a row of pmon may have more cells.
    const size_t columns = state.layout.names.size();
    const bool whole = state.layout.processes() ? row.size() >= columns : row.size() == columns;
    if (!gpu || !whole) {
      builder.problem(Severity::kWarning,
                      fmt::format("{} of the header's {} cells", row.size(), columns), line_number,
                      "the line is cut short or damaged; it is left out");
    } else if (state.layout.processes()) {
      add_process_row(builder, state, *gpu, row);
    } else {
      add_device_row(builder, state, *gpu, row);
    }
  }
  Telemetry out = builder.finish();
  if (out.gpus.empty() && !has_errors(out.problems)) {
    out.problems.push_back({Severity::kError,
                            "no line of a GPU in this output of dmon or pmon",
                            {file, 0, 0, 1},
                            "",
                            ""});
  }
  return out;
}

}  // namespace assay
