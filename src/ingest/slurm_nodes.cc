// sinfo, squeue and scontrol: pictures of a moment. Columns are found by their names; where a site
// prints no header, by what stands in them.
#include <algorithm>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "base/hostlist.h"
#include "ingest/slurm.h"
#include "ingest/text.h"

namespace assay {
namespace {

constexpr size_t kMaxNodes = size_t{1} << 18;
constexpr size_t kMaxQueue = size_t{1} << 20;
constexpr size_t kMaxConfig = 4096;

void warn(SlurmReading& out, const std::string& file, size_t line, std::string message) {
  if (out.problems.size() > kSlurmProblems) return;
  out.problems.push_back(
      problem(Severity::kWarning, std::move(message), file, static_cast<int>(line)));
}

std::string clean(std::string_view text, size_t max = 100) {
  return sanitize(std::string(text.substr(0, 4 * max)), max);
}

// `IDLE+DRAIN`, `drained*`, `alloc`, `mix-`, `down~`.
void read_state(std::string_view text, SlurmNode& node) {
  node.state = lower(clean(text));
  const auto has = [&](std::string_view word) { return contains(node.state, word); };
  node.drain = has("drain") || has("drng");
  node.down = has("down") || has("fail") || has("not_responding") || has("no_respond") ||
              has("power_down") || has("powered_down") || has("unk") || has("future");
  node.reserved = has("maint") || has("resv") || has("reserved");
}

// A node may stand in many partitions; it is one node. Later rows fill what earlier ones left open.
class Nodes {
 public:
  explicit Nodes(SlurmReading& out) : out_(out) {
    for (size_t i = 0; i < out.nodes.size(); ++i) by_name_.emplace(out.nodes[i].name, i);
  }
  bool add(const SlurmNode& node) {
    if (node.name.empty()) return true;
    const auto found = by_name_.find(node.name);
    if (found == by_name_.end()) {
      if (out_.nodes.size() >= kMaxNodes) return false;
      by_name_.emplace(node.name, out_.nodes.size());
      out_.nodes.push_back(node);
      return true;
    }
    SlurmNode& known = out_.nodes[found->second];
    known.gpus = std::max(known.gpus, node.gpus);
    known.gpus_used = std::max(known.gpus_used, node.gpus_used);
    known.drain |= node.drain;
    known.down |= node.down;
    known.reserved |= node.reserved;
    if (known.reason.empty()) known.reason = node.reason;
    if (!known.since_s) known.since_s = node.since_s;
    return true;
  }

 private:
  SlurmReading& out_;
  std::unordered_map<std::string, size_t> by_name_;
};

std::vector<std::string_view> cells_of(std::string_view line) {
  if (!contains(line, "|")) return words(line);
  std::vector<std::string_view> out = fields(line, '|');
  for (std::string_view& cell : out) {  // `|#` is a separator that sites really use
    if (cell.starts_with("#")) cell = trimmed(cell.substr(1));
  }
  return out;
}

bool is_node_state(std::string_view text) {
  const std::string state = lower(text.substr(0, 40));
  for (const std::string_view known :
       {"idle", "alloc", "mix", "drain", "drng", "down", "comp", "maint", "resv", "reserved",
        "fail", "unk", "planned", "power"}) {
    if (state.starts_with(known)) return true;
  }
  return false;
}

// Where the columns of a table are; -1: it has none.
struct NodeColumns {
  int names = -1, state = -1, gres = -1, used = -1, reason = -1, since = -1;
};

NodeColumns columns_by_name(const std::vector<std::string_view>& header) {
  NodeColumns out;
  for (size_t i = 0; i < header.size(); ++i) {
    const std::string name = lower(header[i]);
    const int at = static_cast<int>(i);
    if (name == "nodelist" || name == "nodehost" || name == "hostnames" || name == "node") {
      if (out.names < 0) out.names = at;
    } else if (name.starts_with("state")) {
      out.state = at;  // the long form stands last
    } else if (name == "gres" || name == "tres_per_node") {
      out.gres = at;
    } else if (name == "gres_used" || name == "gresused") {
      out.used = at;
    } else if (name == "reason") {
      out.reason = at;
    } else if (name == "timestamp") {
      out.since = at;
    }
  }
  return out;
}

NodeColumns columns_by_content(const std::vector<std::string_view>& row) {
  NodeColumns out;
  for (size_t i = 0; i < row.size(); ++i) {
    const int at = static_cast<int>(i);
    if (row[i].starts_with("gpu:") || row[i] == "gpu" || row[i] == "(null)") {
      (out.gres < 0 ? out.gres : out.used) = at;
    } else if (out.state < 0 && i > 0 && is_node_state(row[i])) {
      out.state = at;
    }
  }
  out.names = out.state > 0 ? 0 : -1;
  return out;
}

std::string_view at(const std::vector<std::string_view>& row, int column) {
  return column >= 0 && static_cast<size_t>(column) < row.size() ? row[static_cast<size_t>(column)]
                                                                 : std::string_view();
}

// `key=value` tokens; a token without `=` goes on with the value before it.
std::vector<std::pair<std::string_view, std::string>> pairs_of(std::string_view text) {
  std::vector<std::pair<std::string_view, std::string>> out;
  for (const std::string_view token : words(text, 4096)) {
    const size_t equals = token.find('=');
    const bool key = equals != std::string_view::npos && equals > 0 && token[0] >= 'A' &&
                     token[0] <= 'Z' &&
                     token.substr(0, equals).find_first_of(",/\\\"'()[]") == std::string_view::npos;
    if (key) {
      out.emplace_back(token.substr(0, equals), std::string(token.substr(equals + 1)));
    } else if (!out.empty() && out.back().second.size() < 1000) {
      out.back().second.append(" ").append(token);
    }
  }
  return out;
}

using Pairs = std::vector<std::pair<std::string_view, std::string>>;

std::string_view value_of(const Pairs& pairs, std::string_view key) {
  for (const auto& [name, value] : pairs) {
    if (name == key) return value;
  }
  return {};
}

void take_node(const Pairs& pairs, Nodes& nodes) {
  SlurmNode node;
  node.name = clean(value_of(pairs, "NodeName"));
  read_state(value_of(pairs, "State"), node);
  const std::string_view configured = value_of(pairs, "CfgTRES");
  node.gpus = std::max(tres_gpus(configured), gres_gpus(value_of(pairs, "Gres")));
  node.gpus_used =
      std::max(tres_gpus(value_of(pairs, "AllocTRES")), gres_gpus(value_of(pairs, "GresUsed")));
  std::string reason(value_of(pairs, "Reason"));
  // `bad cable [root@2023-01-16T00:56:11]`
  if (const size_t sign = reason.rfind('@'); sign != std::string::npos) {
    node.since_s = parse_slurm_time(std::string_view(reason).substr(sign + 1, 19));
    if (const size_t open = reason.rfind('[', sign); open != std::string::npos) reason.resize(open);
  }
  node.reason = clean(trimmed(reason));
  nodes.add(node);
}

void take_job(const Pairs& pairs, SlurmReading& out) {
  if (out.queue.size() >= kMaxQueue) return;
  SlurmJob job;
  job.id = clean(value_of(pairs, "JobId"));
  job.base = job.id;
  job.name = clean(value_of(pairs, "JobName"));
  job.user = clean(value_of(pairs, "UserId"));
  job.account = clean(value_of(pairs, "Account"));
  job.reason = clean(value_of(pairs, "Reason"));
  job.state = parse_job_state(value_of(pairs, "JobState"));
  job.submit_s = parse_slurm_time(value_of(pairs, "SubmitTime"));
  job.eligible_s = parse_slurm_time(value_of(pairs, "EligibleTime"));
  job.start_s = parse_slurm_time(value_of(pairs, "StartTime"));
  job.end_s = parse_slurm_time(value_of(pairs, "EndTime"));
  job.node_list = clean(value_of(pairs, "NodeList"), 8192);
  std::string_view tres = value_of(pairs, "AllocTRES");
  if (tres.empty() || tres == "(null)") tres = value_of(pairs, "ReqTRES");
  if (tres.empty()) tres = value_of(pairs, "TRES");
  job.gpus = tres_gpus(tres);
  job.nodes = tres_nodes(tres).value_or(0);
  out.queue.push_back(std::move(job));
}

// A row of squeue: by the header's names, else by content.
SlurmJob queue_row(const std::vector<std::string_view>& header,
                   const std::vector<std::string_view>& row) {
  SlurmJob job;
  std::string_view per_node;
  for (size_t i = 0; i < row.size(); ++i) {
    const std::string name = i < header.size() ? lower(header[i]) : "";
    const std::string_view cell = row[i];
    if (name == "jobid" || name == "arrayjobid") {
      if (job.id.empty()) job.id = clean(cell);
    } else if (name == "st" || name == "state") {
      job.state = parse_job_state(cell);
    } else if (name == "name") {
      job.name = clean(cell);
    } else if (name == "user") {
      job.user = clean(cell);
    } else if (name == "nodes") {
      const std::optional<double> nodes = whole_number(cell);
      if (nodes && *nodes >= 0 && *nodes < 1e6) job.nodes = static_cast<int64_t>(*nodes);
    } else if (name == "submit_time") {
      job.submit_s = parse_slurm_time(cell);
    } else if (name == "start_time") {
      job.start_s = parse_slurm_time(cell);
    } else if (contains(name, "tres_per_node") || name == "gres") {
      per_node = cell;
    } else if (name.starts_with("nodelist") || name == "reason") {
      if (cell.starts_with("(")) job.reason = clean(cell);
    } else if (contains(cell, "cpu=") && contains(cell, "node=")) {
      job.gpus = tres_gpus(cell);
      job.nodes = tres_nodes(cell).value_or(job.nodes);
    } else if (header.empty() && job.state == JobState::kUnknown && cell.size() > 3) {
      job.state = parse_job_state(cell);
    }
    // A job id has digits first; small numbers are counts of something.
    if (header.empty() && job.id.empty() && !cell.empty() && cell[0] >= '1' && cell[0] <= '9' &&
        cell.find_first_not_of("0123456789_[]-%,+") == std::string_view::npos &&
        (cell.size() >= 5 || contains(cell, "_"))) {
      job.id = clean(cell);
    }
    if (header.empty() && cell.starts_with("gres")) per_node = cell;
  }
  if (job.gpus <= 0)
    job.gpus = gres_gpus(per_node) * static_cast<double>(std::max<int64_t>(job.nodes, 1));
  job.base = job.id.substr(0, job.id.find_first_of("_+"));
  return job;
}

}  // namespace

void read_sinfo(std::string_view text, const std::string& file, SlurmReading& out) {
  Nodes nodes(out);
  NodeColumns columns;
  size_t number = 0;
  bool header = false;
  for (std::string_view line; next_line(text, line);) {
    ++number;
    const std::vector<std::string_view> row = cells_of(line);
    if (row.size() < 2) continue;
    if (const NodeColumns named = columns_by_name(row); named.names >= 0 && named.state >= 0) {
      columns = named;
      header = true;
      continue;
    }
    if (!header) columns = columns_by_content(row);
    SlurmNode node;
    read_state(at(row, columns.state), node);
    if (columns.names < 0 || node.state.empty()) {
      warn(out, file, number, "a row without a node and a state: skipped");
      continue;
    }
    node.gpus = gres_gpus(at(row, columns.gres));
    node.gpus_used = gres_gpus(at(row, columns.used));
    if (const std::string_view reason = at(row, columns.reason); reason != "none") {
      node.reason = clean(reason);
    }
    node.since_s = parse_slurm_time(at(row, columns.since));
    const auto names = expand_hostlist(at(row, columns.names));
    if (!names) {
      warn(out, file, number, "list of nodes: " + names.error());
      continue;
    }
    for (const std::string& name : *names) {
      node.name = clean(name);
      if (!nodes.add(node)) return;
    }
  }
}

void read_squeue(std::string_view text, const std::string& file, SlurmReading& out) {
  std::vector<std::string_view> header;
  size_t number = 0;
  for (std::string_view line; next_line(text, line);) {
    ++number;
    const std::vector<std::string_view> row = cells_of(line);
    if (row.size() < 3) continue;
    if (std::any_of(row.begin(), row.end(), [](std::string_view c) { return c == "JOBID"; })) {
      header = row;
      continue;
    }
    SlurmJob job = queue_row(header, row);
    if (job.id.empty() || job.state == JobState::kUnknown) {
      warn(out, file, number, "a row without a job id and a state: skipped");
    } else if (out.queue.size() < kMaxQueue) {
      out.queue.push_back(std::move(job));
    }
  }
}

void read_scontrol(std::string_view text, const std::string& file, SlurmReading& out) {
  Nodes nodes(out);
  std::string record;
  constexpr size_t kMaxRecord = 65536;
  const auto finish = [&] {
    const Pairs pairs = pairs_of(record);
    if (pairs.empty()) return;
    if (pairs[0].first == "NodeName") take_node(pairs, nodes);
    if (pairs[0].first == "JobId") take_job(pairs, out);
    if (pairs[0].first == "PartitionName") {
      out.partition_gpus = std::max(out.partition_gpus, tres_gpus(value_of(pairs, "TRES")));
    }
    record.clear();
  };
  size_t number = 0;
  for (std::string_view line; next_line(text, line);) {
    ++number;
    // `Key   = value`: the configuration.
    const size_t equals = line.find(" = ");
    if (equals != std::string_view::npos && line.find('=') == equals + 1 && line[0] != ' ') {
      if (out.config.size() < kMaxConfig) {
        out.config[clean(trimmed(line.substr(0, equals)))] =
            clean(trimmed(line.substr(equals + 3)), 400);
      }
      continue;
    }
    const bool starts = line.starts_with("NodeName=") || line.starts_with("PartitionName=") ||
                        line.starts_with("JobId=");
    if (starts || trimmed(line).empty()) finish();
    if (record.size() + line.size() > kMaxRecord) {
      warn(out, file, number, "a record longer than 64 KiB: cut");
      continue;
    }
    record.append(" ").append(line);
  }
  finish();
}

}  // namespace assay
