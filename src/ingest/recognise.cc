#include "ingest/recognise.h"

#include <algorithm>
#include <array>
#include <vector>

#include "ingest/telemetry.h"
#include "ingest/text.h"

namespace assay {
namespace {

// --- JSON -------------------------------------------------------------------------------------

// The outline of a JSON text: its top-level keys (or those of the first element, for an array of
// objects). A scanner of strings and brackets, so that a text cut anywhere still has an outline.
struct Outline {
  bool array = false;
  bool several = false;  // a second document follows the first: JSON lines
  std::vector<std::string_view> keys;
  std::string_view schema;  // the value of a top-level `schema`

  bool has(std::string_view key) const {
    return std::find(keys.begin(), keys.end(), key) != keys.end();
  }
};

// Past the closing quote of the string that starts at `i`; npos when it is cut.
size_t string_end(std::string_view text, size_t i) {
  for (++i; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

size_t skip_blanks(std::string_view text, size_t i) {
  while (i < text.size() &&
         (text[i] == ' ' || text[i] == '\t' || text[i] == '\n' || text[i] == '\r')) {
    ++i;
  }
  return i;
}

Outline outline(std::string_view text) {
  Outline out;
  size_t i = skip_blanks(text, 0);
  out.array = i < text.size() && text[i] == '[';
  const int key_depth = out.array ? 2 : 1;
  int depth = 0;
  constexpr size_t kKeysMax = 4096;
  while (i < text.size()) {
    const char c = text[i];
    if (c == '"') {
      const size_t end = string_end(text, i);
      if (end == std::string_view::npos) break;
      const size_t after = skip_blanks(text, end);
      if (depth == key_depth && after < text.size() && text[after] == ':') {
        const std::string_view key = text.substr(i + 1, end - i - 2);
        out.keys.push_back(key);
        const size_t value = skip_blanks(text, after + 1);
        if (key == "schema" && value < text.size() && text[value] == '"') {
          out.schema = text.substr(value + 1, 40);
        }
      }
      i = end;
      continue;
    }
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    ++i;
    if (depth <= 0) {  // the end of the document
      const size_t next = skip_blanks(text, i);
      out.several = next < text.size() && text[next] == '{';
      break;
    }
    if (out.keys.size() >= kKeysMax) break;
  }
  return out;
}

// How many of `names` occur as whole fields of a header.
int hits(const std::vector<std::string_view>& header, std::initializer_list<const char*> names) {
  int n = 0;
  for (const char* name : names) {
    n += std::find(header.begin(), header.end(), std::string_view(name)) != header.end() ? 1 : 0;
  }
  return n;
}

// Names that stand for a metric of a GPU, whoever chose them.
size_t metrics_among(const std::vector<std::string_view>& names) {
  constexpr size_t kLookedAt = 512;
  size_t known = 0;
  for (size_t i = 0; i < names.size() && i < kLookedAt; ++i)
    known += sample_metric(names[i]) ? 1 : 0;
  return known;
}

// What samples NVML: `gpu_usage:3`, or a time beside names of metrics, or beside a list of GPUs.
bool is_sampler(const Outline& it) {
  const bool time = it.has("time") || it.has("timestamp") || it.has("ts");
  const bool columns = std::any_of(it.keys.begin(), it.keys.end(), [](std::string_view key) {
    return key.starts_with("gpu_") && contains(key, ":");
  });
  return time && (columns || it.has("gpus") || metrics_among(it.keys) >= 2);
}

FileKind json_kind(std::string_view text) {
  const Outline it = outline(text);
  if (it.array) {
    const bool events = it.has("ph") && (it.has("ts") || it.has("pid"));
    if (events) return FileKind::kKinetoTrace;
    return is_sampler(it) ? FileKind::kMonitorJsonl : FileKind::kUnknown;
  }
  if (it.schema.starts_with("assay.")) return FileKind::kAssayResult;
  if (it.has("traceEvents") || (it.has("schemaVersion") && it.has("deviceProperties"))) {
    return FileKind::kKinetoTrace;
  }
  if (it.has("pg_config") || it.has("pg_status") || (it.has("entries") && it.has("version"))) {
    return FileKind::kFlightRecorderJson;
  }
  if (it.has("status") && it.has("data") && contains(text, "\"resultType\"")) {
    return FileKind::kPrometheusJson;
  }
  // A query result without the envelope, as `.data` of the answer is often saved.
  if (it.has("resultType") && it.has("result")) return FileKind::kPrometheusJson;
  if (it.has("schema") && it.has("nodes")) return FileKind::kExecutionTrace;
  if (it.has("nccl_version") && (it.has("args") || it.has("results"))) {
    return FileKind::kNcclTestsJson;
  }
  return is_sampler(it) ? FileKind::kMonitorJsonl : FileKind::kUnknown;
}

// --- XML --------------------------------------------------------------------------------------

// The name of the root element, past declarations, comments and a document type.
std::string_view xml_root(std::string_view text) {
  size_t i = 0;
  while ((i = text.find('<', i)) != std::string_view::npos) {
    const std::string_view rest = text.substr(i);
    if (rest.starts_with("<!--")) {
      const size_t end = text.find("-->", i);
      if (end == std::string_view::npos) return {};
      i = end + 3;
    } else if (rest.starts_with("<?") || rest.starts_with("<!")) {
      const size_t end = text.find('>', i);
      if (end == std::string_view::npos) return {};
      i = end + 1;
    } else {
      return rest.substr(1, rest.find_first_of(" \t\r\n/>", 1) - 1);
    }
  }
  return {};
}

FileKind xml_kind(std::string_view text) {
  const std::string_view root = xml_root(text);
  if (root == "system") return FileKind::kNcclXml;
  if (root == "topology") return FileKind::kHwlocXml;
  if (root == "nvidia_smi_log") return FileKind::kSmiXml;
  return FileKind::kUnknown;
}

// --- Text -------------------------------------------------------------------------------------

bool all_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// `timestamp, temperature.gpu, power.draw.instant [W]`: at least two columns that nvidia-smi has.
bool is_smi_header(std::string_view line) {
  constexpr std::array<std::string_view, 12> kFamilies = {
      "temperature.", "utilization.", "power.draw", "power.limit",
      "clocks.",      "clocks_event", "pstate",     "clocks_throttle_reasons",
      "ecc.errors",   "pcie.link",    "memory.",    "enforced.power"};
  const std::vector<std::string_view> columns = fields(line, ',');
  const auto known = std::count_if(columns.begin(), columns.end(), [&](std::string_view column) {
    return std::any_of(kFamilies.begin(), kFamilies.end(),
                       [&](std::string_view family) { return column.starts_with(family); });
  });
  const bool named = hits(columns, {"timestamp", "index", "name", "uuid", "gpu_uuid"}) > 0;
  if (known >= 2 || (known == 1 && named)) return true;
  // A sampler of its own: a time, and two columns whose names say what they are.
  return hits(columns, {"timestamp", "time", "ts"}) > 0 && metrics_among(columns) >= 2;
}

// `2026/11/15 07:02:20.435, 123.10, ...`: the log of `--format=csv,noheader`.
bool is_smi_row(std::string_view line) {
  const std::vector<std::string_view> columns = fields(line, ',');
  if (columns.size() < 3 || columns[0].size() < 19) return false;
  const std::string_view t = columns[0];
  return t[4] == '/' && t[7] == '/' && t[10] == ' ' && t[13] == ':' && all_digits(t.substr(0, 4));
}

FileKind table_kind(std::string_view first_line) {
  if (is_smi_header(first_line) || is_smi_row(first_line)) return FileKind::kSmiCsv;
  const std::vector<std::string_view> commas = fields(first_line, ',');
  if (hits(commas, {"dp_rank", "stage", "step", "optype", "start_ts", "duration"}) == 6) {
    return FileKind::kStragglerCsv;
  }
  return FileKind::kUnknown;
}

bool is_final_state(std::string_view cell) {
  constexpr std::array<std::string_view, 7> kStates = {
      "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY"};
  const std::string_view word = cell.substr(0, cell.find(' '));  // `CANCELLED by 1001`
  return std::find(kStates.begin(), kStates.end(), word) != kStates.end();
}

bool is_job_state(std::string_view word) {
  constexpr std::array<std::string_view, 5> kStates = {"RUNNING", "PENDING", "COMPLETING",
                                                       "SUSPENDED", "REQUEUED"};
  return std::find(kStates.begin(), kStates.end(), word) != kStates.end();
}

bool names_node_state(std::string_view word) {
  while (!word.empty() && contains("*~#!%$@^-+", word.substr(word.size() - 1))) {
    word.remove_suffix(1);
  }
  const std::string state = lower(word);
  constexpr std::array<std::string_view, 13> kStates = {
      "idle", "allocated", "alloc", "mixed", "mix",  "drained", "drain",
      "down", "draining",  "drng",  "maint", "comp", "reserved"};
  return std::find(kStates.begin(), kStates.end(), state) != kStates.end();
}

// Header or rows of Slurm's tools: `A|B|C` with -P or -o, or columns in blanks.
FileKind slurm_line(std::string_view line) {
  if (line.starts_with("JobId=") || line.starts_with("NodeName=") ||
      line.starts_with("PartitionName=") || line.starts_with("Configuration data as of")) {
    return FileKind::kScontrol;
  }
  std::vector<std::string_view> columns = contains(line, "|") ? fields(line, '|') : words(line);
  for (std::string_view& column : columns) {  // `|#` is a separator that people really use
    if (column.starts_with("#")) column.remove_prefix(1);
  }
  if (columns.size() < 2) return FileKind::kUnknown;
  if (hits(columns, {"JobID", "JobIDRaw"}) > 0 &&
      hits(columns, {"State", "Elapsed", "Start", "End", "AllocTRES", "NodeList", "ExitCode",
                     "AllocCPUS", "Partition", "ElapsedRaw", "Submit"}) > 0) {
    return FileKind::kSacct;
  }
  if (hits(columns, {"JOBID", "ST", "STATE", "PARTITION", "USER", "TIME", "NODES"}) >= 3 &&
      hits(columns, {"JOBID"}) > 0) {
    return FileKind::kSqueue;
  }
  if (hits(columns, {"PARTITION", "AVAIL", "NODES", "STATE", "NODELIST", "HOSTNAMES", "GRES"}) >=
      3) {
    return FileKind::kSinfo;
  }
  if (!contains(line, "|") || columns.size() < 5) return FileKind::kUnknown;
  // No header: a row of squeue has a job's state, one of sinfo a node's. Jobs that are over stand
  // in accounting alone.
  if (std::any_of(columns.begin(), columns.end(), is_final_state)) return FileKind::kSacct;
  if (std::any_of(columns.begin(), columns.end(), is_job_state)) return FileKind::kSqueue;
  if (std::any_of(columns.begin(), columns.end(), names_node_state)) return FileKind::kSinfo;
  return FileKind::kUnknown;
}

bool is_nccl_tests_header(std::string_view line) {
  if (contains(line, "algbw") && contains(line, "busbw") && contains(line, "size")) return true;
  return contains(line, "# nThread ") && contains(line, "nGpus");
}

// The command alone: what a test that failed before its header leaves.
bool is_nccl_tests_command(std::string_view line) {
  if (!contains(line, " -b ") && !contains(line, " -e ")) return false;
  constexpr std::array<std::string_view, 11> kPrograms = {
      "all_reduce_perf", "all_gather_perf", "reduce_scatter_perf", "alltoall_perf",
      "alltoallv_perf",  "broadcast_perf",  "reduce_perf",         "sendrecv_perf",
      "gather_perf",     "scatter_perf",    "hypercube_perf"};
  return std::any_of(kPrograms.begin(), kPrograms.end(),
                     [&](std::string_view program) { return contains(line, program); });
}

bool is_training_line(std::string_view line) {
  if (contains(line, "elapsed time per iteration")) return contains(line, "iteration ");
  // NeMo: `Training epoch 0, iteration 10/999 | lr: ... | train_step_timing in s: 1.2`.
  if (contains(line, "train_step_timing")) return true;
  return contains(line, "Training epoch") && contains(line, "iteration");
}

bool is_prometheus_line(std::string_view line) {
  if (line.starts_with("# TYPE ") || line.starts_with("# HELP ")) {
    return words(line).size() >= 3;
  }
  const size_t brace = line.find('{');
  if (brace == std::string_view::npos || brace == 0) return false;
  const std::string_view name = line.substr(0, brace);
  const size_t close = line.rfind('}');
  if (close == std::string_view::npos || !contains(line, "=\"")) return false;
  const bool name_ok = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == ':';
  });
  return name_ok && leading_number(line.substr(close + 1)).has_value();
}

// `GPU0 X NV18 ...`: a row of the matrix has its own X.
bool is_topo_row(std::string_view line) {
  const std::vector<std::string_view> cells = words(line, 64);
  return cells.size() >= 2 && cells[0].starts_with("GPU") && all_digits(cells[0].substr(3)) &&
         std::find(cells.begin(), cells.end(), std::string_view("X")) != cells.end();
}

// `Link 3: 25 GB/s`, `Link 3: <inactive>`, `Link 3: Replay Errors: 0`
bool is_nvlink_row(std::string_view line) {
  if (!line.starts_with("Link ")) return false;
  const std::vector<std::string_view> cells = words(line, 8);
  return cells.size() >= 3 && cells[1].size() > 1 && cells[1].back() == ':' &&
         all_digits(cells[1].substr(0, cells[1].size() - 1)) &&
         (contains(line, "GB/s") || contains(line, "inactive") || contains(line, " Errors") ||
          contains(line, " BER:"));
}

// Faults of GPUs and switches, as the kernel and the fabric manager tell them.
bool is_fault_line(std::string_view line) {
  return contains(line, "NVRM: Xid") || contains(line, "SXid (PCI:") ||
         contains(line, "detected NVSwitch ");
}

bool is_kernel_time(std::string_view inside) {
  inside = trimmed(inside);
  const size_t dot = inside.find('.');
  if (dot != std::string_view::npos) {
    return all_digits(inside.substr(0, dot)) && all_digits(inside.substr(dot + 1));
  }
  // dmesg -T: `Sun Feb 23 16:24:18 2025`; fabric manager: `Feb 25 2025 13:59:45`.
  const std::vector<std::string_view> parts = words(inside);
  if (parts.size() == 4 && parts[0].size() == 3 && all_digits(parts[1]) && all_digits(parts[2]) &&
      contains(parts[3], ":")) {
    return true;
  }
  return parts.size() == 5 && parts[0].size() == 3 && parts[1].size() == 3 &&
         contains(parts[3], ":") && all_digits(parts[4]);
}

// The ways in which kernels' lines are printed: dmesg, dmesg -x, dmesg -T, /dev/kmsg, syslog.
bool is_kernel_line(std::string_view line) {
  if (is_fault_line(line)) return true;
  if (line.starts_with("kern  :")) return true;
  if (contains(line, " kernel: ")) return true;
  if (line.size() > 3 && line[0] == '<' && line.find(">[") < 5) {
    line.remove_prefix(line.find(">[") + 1);
  }
  if (!line.empty() && line[0] == '[') {
    const size_t close = line.find(']');
    return close != std::string_view::npos && is_kernel_time(line.substr(1, close - 1));
  }
  const size_t semicolon = line.find(';');  // kmsg: `6,3964,206764307,-;text`
  if (semicolon == std::string_view::npos) return false;
  const std::vector<std::string_view> parts = fields(line.substr(0, semicolon), ',');
  return parts.size() >= 4 && all_digits(parts[0]) && all_digits(parts[1]) && all_digits(parts[2]);
}

struct Votes {
  int lines = 0, training = 0, nccl = 0, nccl_command = 0, prometheus = 0, topo = 0, kernel = 0,
      smi_text = 0, smi_xml = 0, smi_monitor = 0, nvlink = 0;
  int xid = 0;
};

Votes count_votes(std::string_view text) {
  Votes votes;
  std::string_view line;
  while (next_line(text, line)) {
    const std::string_view bare = trimmed(line);
    if (bare.empty()) continue;
    ++votes.lines;
    votes.training += is_training_line(bare) ? 1 : 0;
    votes.nccl += is_nccl_tests_header(bare) ? 1 : 0;
    votes.nccl_command += is_nccl_tests_command(bare) ? 1 : 0;
    votes.prometheus += is_prometheus_line(bare) ? 1 : 0;
    votes.topo += is_topo_row(bare) ? 1 : 0;
    votes.kernel += is_kernel_line(bare) ? 1 : 0;
    votes.xid += is_fault_line(bare) ? 1 : 0;
    votes.smi_xml += bare.starts_with("<nvidia_smi_log") ? 1 : 0;
    votes.smi_monitor += is_smi_monitor_header(bare) ? 1 : 0;
    votes.nvlink += is_nvlink_row(bare) ? 1 : 0;
    votes.smi_text += contains(bare, "NVSMI LOG") || contains(bare, "$ nvidia-smi -q") ||
                              contains(bare, "NVIDIA System Management Interface")
                          ? 1
                          : 0;
  }
  return votes;
}

std::string_view first_line_of(std::string_view text) {
  std::string_view line;
  while (next_line(text, line)) {
    if (!trimmed(line).empty()) return trimmed(line);
  }
  return {};
}

FileKind text_kind(std::string_view text) {
  const std::string_view first = first_line_of(text);
  const FileKind table = table_kind(first);
  if (table != FileKind::kUnknown) return table;
  const Votes votes = count_votes(text);
  if (votes.smi_text > 0) return FileKind::kSmiText;
  if (votes.smi_xml > 0) return FileKind::kSmiXml;
  if (votes.smi_monitor > 0) return FileKind::kSmiMonitor;
  if (votes.training > 0) return FileKind::kTrainingLog;
  if (votes.prometheus * 2 > votes.lines) return FileKind::kPrometheusText;
  if (votes.nccl > 0) return FileKind::kNcclTests;
  if (votes.topo > 0) return FileKind::kTopoMatrix;
  if (votes.nvlink * 2 > votes.lines) return FileKind::kNvlinkStatus;
  if (votes.xid > 0 || votes.kernel * 2 > votes.lines) return FileKind::kKernelLog;
  if (votes.nccl_command > 0) return FileKind::kNcclTests;
  return slurm_line(first);
}

// A pickle of protocol 2 to 5 that speaks of collectives.
FileKind pickle_kind(std::string_view text) {
  const bool ours = contains(text, "pg_config") || contains(text, "pg_status") ||
                    contains(text, "collective_seq_id") || contains(text, "profiling_name");
  return ours ? FileKind::kFlightRecorderPickle : FileKind::kUnknown;
}

// What a file is packed with, by its first bytes; empty: nothing known.
std::string_view packed_with(std::string_view head) {
  struct Magic {
    std::string_view bytes, name;
  };
  constexpr std::array<Magic, 5> kMagics = {{{"\x28\xb5\x2f\xfd", "zstd"},
                                             {"PK\x03\x04", "zip"},
                                             {"\xfd"
                                              "7zXZ",
                                              "xz"},
                                             {"BZh", "bzip2"},
                                             {"\x04\x22\x4d\x18", "lz4"}}};
  for (const Magic& m : kMagics) {
    if (head.substr(0, m.bytes.size()) == m.bytes) return m.name;
  }
  return {};
}

}  // namespace

Failure why_unknown(std::string_view head, const std::string& file) {
  if (head.empty())
    return {"the file is empty", file, "what should have written it did not: record it again"};
  const std::string_view packed = packed_with(head);
  if (!packed.empty())
    return {"packed with " + std::string(packed), file, "unpack it, or pack it with gzip"};
  return {"not a kind of file that is known here", file,
          "`assay diagnose --help` lists what can be read"};
}

std::string_view kind_name(FileKind kind) {
  constexpr std::array<std::string_view, kFileKinds> kNames = {"unknown",
                                                               "profiler trace",
                                                               "Flight Recorder dump",
                                                               "Flight Recorder dump (JSON)",
                                                               "PyTorch execution trace",
                                                               "nvidia-smi query log",
                                                               "nvidia-smi -q",
                                                               "nvidia-smi -q -x",
                                                               "dmon or pmon",
                                                               "Prometheus page",
                                                               "Prometheus query result",
                                                               "NVML samples",
                                                               "nccl-tests",
                                                               "nccl-tests (JSON)",
                                                               "nvidia-smi topo -m",
                                                               "nvidia-smi nvlink",
                                                               "NCCL topology",
                                                               "hwloc topology",
                                                               "kernel log",
                                                               "sacct",
                                                               "sinfo",
                                                               "squeue",
                                                               "scontrol",
                                                               "training log",
                                                               "operations of a job",
                                                               "assay result"};
  return kNames[static_cast<size_t>(kind)];
}

FileKind recognise(std::string_view head) {
  if (head.size() >= 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5) {
    return pickle_kind(head);
  }
  if (head.starts_with("\xef\xbb\xbf")) head.remove_prefix(3);
  if (contains(head.substr(0, 4096), std::string_view("\0", 1))) return FileKind::kUnknown;
  const size_t start = skip_blanks(head, 0);
  if (start == head.size()) return FileKind::kUnknown;
  // A log line may begin with a bracket too, hence the look at what JSON must have next.
  const char first = head[start];
  if (first == '{' || first == '[') {
    const FileKind kind = json_kind(head);
    if (kind != FileKind::kUnknown || first == '{') return kind;
  }
  if (first == '<') {
    const FileKind kind = xml_kind(head);
    if (kind != FileKind::kUnknown) return kind;
  }
  if (!contains(head, "\x1b")) return text_kind(head);
  const std::string plain = without_escapes(head);
  return text_kind(plain);
}

Result<FileKind> recognise(ByteSource& source) {
  const Result<std::string_view> head = source.peek(kRecogniseBytes);
  if (!head) return tl::unexpected(head.error());
  const FileKind kind = recognise(*head);
  if (kind != FileKind::kUnknown || head->size() < kRecogniseBytes) return kind;
  const Result<std::string_view> more = source.peek(kRecogniseBytesMost);
  return more ? recognise(*more) : kind;
}

Result<FileKind> recognise_file(const std::string& path) {
  Result<ByteSource> source = ByteSource::open(path, kRecogniseBytesMost);
  if (!source) return tl::unexpected(source.error());
  return recognise(*source);
}

bool is_telemetry(FileKind kind) {
  switch (kind) {
    case FileKind::kSmiCsv:
    case FileKind::kSmiText:
    case FileKind::kSmiXml:
    case FileKind::kSmiMonitor:
    case FileKind::kPrometheusText:
    case FileKind::kPrometheusJson:
    case FileKind::kMonitorJsonl:
      return true;
    default:
      return false;
  }
}

}  // namespace assay
