// sacct's parsable output. A record has as many fields as the header; where it has not:
//  - too few: a text field held a line break. The record goes on in the next lines until the fields
//    are complete; a line that is complete by itself is never swallowed.
//  - too many: a text field held the separator. The surplus belongs to the free-text column that
//    makes state and times fall into place.
#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include <fmt/format.h>

#include "ingest/slurm.h"
#include "ingest/slurm_columns.h"
#include "ingest/text.h"

namespace assay {
namespace {

constexpr size_t kMaxJobs = size_t{4} << 20;
constexpr size_t kMaxLines = size_t{16} << 20;
constexpr size_t kMaxJoined = 200;  // lines of one record

class SacctReader {
 public:
  SacctReader(std::string_view text, const std::string& file, SlurmReading& out)
      : text_(text), file_(file), out_(out) {}

  void read() {
    if (!read_header()) return;
    for (size_t i = 0; i < out_.jobs.size(); ++i) lives_.emplace(life(out_.jobs[i]), i);
    std::vector<std::string_view> lines;
    std::string_view rest = text_;
    for (std::string_view line; next_line(rest, line);) {
      if (lines.size() >= kMaxLines) {
        problem(header_line_ + lines.size(), "too many lines: the rest is skipped");
        break;
      }
      lines.push_back(line);
      counts_.push_back(layout_.count(line));
    }
    for (size_t i = 0; i < lines.size();) i = read_record(lines, i);
    if (out_.jobs.empty() && out_.steps > 0) {
      problem(0, "only steps and no job: run sacct without a filter on steps, or with -X");
    }
    if (dropped_ > kSlurmProblems) {
      problem(0, fmt::format("{} more lines were skipped", dropped_ - kSlurmProblems));
    }
  }

 private:
  void problem(size_t line, std::string message) {
    out_.problems.push_back(
        assay::problem(Severity::kWarning, std::move(message), file_, static_cast<int>(line)));
  }
  void drop(size_t line, const char* why) {
    if (++dropped_ <= kSlurmProblems) problem(line + header_line_ + 1, why);
  }

  bool read_header() {
    layout_ = find_sacct_columns(text_);
    text_.remove_prefix(layout_.rows_at);
    header_line_ = layout_.lines_above;
    for (size_t i = 0; i < layout_.names.size(); ++i) {
      if (!layout_.names[i].empty())
        columns_.emplace(layout_.names[i], i);  // the first `End` counts
    }
    if (columns_.empty()) {
      problem(1, "not sacct's output: no column is a JobID");
      return false;
    }
    if (layout_.inferred) {
      std::string known;
      for (const std::string& name : layout_.names) {
        if (!name.empty()) known += (known.empty() ? "" : ", ") + name;
      }
      problem(1, "no header: columns are told by their looks (" + known +
                     "); sacct without -n would name them");
    }
    say_what_is_missing();
    return true;
  }
  // Without sizes or times there is no ledger; better to hear it here than to see an empty one.
  void say_what_is_missing() {
    const auto none = [&](std::initializer_list<const char*> names) {
      return std::none_of(names.begin(), names.end(),
                          [&](const char* name) { return columns_.count(name) > 0; });
    };
    std::string missing;
    if (none({"AllocTRES", "ReqTRES", "AllocGRES", "ReqGRES"})) missing += ",AllocTRES%80";
    if (none({"State"})) missing += ",State";
    if (none({"Start"})) missing += ",Start";
    if (none({"End", "Elapsed", "ElapsedRaw"})) missing += ",End";
    if (missing.empty()) return;
    problem(header_line_,
            "columns that a ledger needs are not here: add --format=JobID,..." + missing);
  }

  // Fields of a line, the empty one after a trailing separator removed.
  std::vector<std::string_view> fields_of(std::string_view line) const {
    std::vector<std::string_view> out = layout_.split(line);
    if (out.size() == layout_.names.size() + 1 && trimmed(out.back()).empty()) out.pop_back();
    return out;
  }

  // Whether so many fields, ending with this line, are one record.
  bool complete(size_t count, std::string_view line) const {
    return count == layout_.names.size() ||
           (count == layout_.names.size() + 1 && trimmed(line).ends_with(layout_.separator));
  }

  // Reads the record that starts at line i; returns the line after it. Counting separators first
  // keeps a hostile file of a million short lines cheap.
  size_t read_record(const std::vector<std::string_view>& lines, size_t i) {
    if (trimmed(lines[i]).empty()) return i + 1;
    if (complete(counts_[i], lines[i])) {
      take(fields_of(lines[i]), i);
      return i + 1;
    }
    if (counts_[i] > layout_.names.size()) {
      std::vector<std::string_view> row = layout_.split(lines[i]);
      if (mend_surplus(row)) {
        take(row, i);
      } else {
        drop(i, "more fields than the header has: skipped");
      }
      return i + 1;
    }
    size_t count = counts_[i];
    for (size_t j = i + 1; j < lines.size() && j - i < kMaxJoined; ++j) {
      if (counts_[j] >= layout_.names.size()) break;
      count += counts_[j] - 1;
      if (count < layout_.names.size()) continue;
      if (!complete(count, lines[j])) break;
      std::string joined(lines[i]);
      for (size_t k = i + 1; k <= j; ++k) joined.append(" ").append(lines[k]);
      const std::vector<std::string_view> row = fields_of(joined);
      if (!plausible(row)) break;
      take(row, i);
      return j + 1;
    }
    drop(i, "fewer fields than the header has: skipped");
    return i + 1;
  }

  std::string_view cell(const std::vector<std::string_view>& row, const char* name) const {
    const auto found = columns_.find(name);
    if (found == columns_.end() || found->second >= row.size()) return {};
    return trimmed(row[found->second]);
  }
  // Whether the fields can stand where they are: a job id, a state, times.
  bool plausible(const std::vector<std::string_view>& row) const {
    std::string_view id = cell(row, "JobID");
    if (id.empty()) id = cell(row, "JobIDRaw");
    if (id.empty() || id[0] < '0' || id[0] > '9') return false;
    if (columns_.count("State") && parse_job_state(cell(row, "State")) == JobState::kUnknown) {
      return false;
    }
    for (const char* name : {"Start", "End", "Submit", "Eligible"}) {
      const std::string_view time = cell(row, name);
      if (!time.empty() && time != "Unknown" && time != "None" && time != "N/A" &&
          !parse_slurm_time(time)) {
        return false;
      }
    }
    return true;
  }
  bool mend_surplus(std::vector<std::string_view>& row) const {
    const size_t surplus = row.size() - layout_.names.size();
    constexpr size_t kMostSurplus = 64;
    if (surplus > kMostSurplus) return false;
    for (const char* name : {"JobName", "SubmitLine", "Comment", "AdminComment", "SystemComment",
                             "WorkDir", "Constraints", "Reason"}) {
      const auto found = columns_.find(name);
      if (found == columns_.end()) continue;
      const size_t k = found->second;
      std::vector<std::string_view> mended(row.begin(), row.begin() + static_cast<ptrdiff_t>(k));
      const char* begin = row[k].data();
      const std::string_view& last = row[k + surplus];
      mended.emplace_back(begin, static_cast<size_t>(last.data() + last.size() - begin));
      mended.insert(mended.end(), row.begin() + static_cast<ptrdiff_t>(k + surplus + 1), row.end());
      if (plausible(mended)) {
        row = std::move(mended);
        return true;
      }
    }
    return false;
  }

  static std::string clean(std::string_view text) {
    return sanitize(std::string(text.substr(0, 400)), 100);
  }
  void take(const std::vector<std::string_view>& row, size_t line) {
    std::string_view id = cell(row, "JobID");
    if (id.empty()) id = cell(row, "JobIDRaw");
    if (id.empty() || id[0] < '0' || id[0] > '9') {
      drop(line, "no job id: skipped");
      return;
    }
    if (id.find('.') != std::string_view::npos) {
      ++out_.steps;
      return;
    }
    if (out_.jobs.size() >= kMaxJobs) {
      drop(line, "too many jobs: skipped");
      return;
    }
    SlurmJob job;
    job.id = clean(id);
    job.base = job.id.substr(0, job.id.find_first_of("_+"));
    job.name = clean(cell(row, "JobName"));
    job.user = clean(cell(row, "User"));
    job.account = clean(cell(row, "Account"));
    job.reason = clean(cell(row, "Reason"));
    job.state = parse_job_state(cell(row, "State"));
    job.submit_s = parse_slurm_time(cell(row, "Submit"));
    job.eligible_s = parse_slurm_time(cell(row, "Eligible"));
    job.start_s = parse_slurm_time(cell(row, "Start"));
    job.end_s = parse_slurm_time(cell(row, "End"));
    if (const std::optional<uint64_t> raw = unsigned_number(cell(row, "ElapsedRaw"));
        raw && *raw < (uint64_t{1} << 40)) {
      job.elapsed_s = static_cast<int64_t>(*raw);
    } else {
      job.elapsed_s = parse_slurm_duration(cell(row, "Elapsed"));
    }
    take_size(row, line, job);
    take_exit(cell(row, "ExitCode"), job);
    if (!keep_latest(job)) out_.jobs.push_back(std::move(job));
  }
  // A cell of a fixed column that ends so was too long for it.
  bool cut(std::string_view text) const { return !layout_.spans.empty() && text.ends_with('+'); }

  void take_size(const std::vector<std::string_view>& row, size_t line, SlurmJob& job) {
    const std::string_view allocated = cell(row, "AllocTRES"), asked = cell(row, "ReqTRES");
    const std::string_view hosts = cell(row, "NodeList");
    if (!cut(hosts)) job.node_list = sanitize(std::string(hosts), 8192);
    if (!told_cut_ && (cut(allocated) || cut(asked) || cut(hosts))) {
      told_cut_ = true;
      problem(
          header_line_ + line + 1,
          "cells are cut to the width of their column: use sacct -P, or AllocTRES%80,NodeList%200");
    }
    const std::optional<double> nodes = whole_number(cell(row, "NNodes"));
    const std::optional<double> alloc_nodes = whole_number(cell(row, "AllocNodes"));
    constexpr double kMostNodes = 1e6;
    if (nodes && *nodes >= 0 && *nodes < kMostNodes) job.nodes = static_cast<int64_t>(*nodes);
    if (alloc_nodes && *alloc_nodes > 0 && *alloc_nodes < kMostNodes) {
      job.nodes = static_cast<int64_t>(*alloc_nodes);
    }
    const std::string_view tres = trimmed(allocated).empty() ? asked : allocated;
    if (job.nodes == 0) job.nodes = tres_nodes(tres).value_or(0);
    job.gpus = tres_gpus(tres);
    if (job.gpus > 0) return;
    // Before TRES, gres were printed a node.
    std::string_view gres = cell(row, "AllocGRES");
    if (gres.empty()) gres = cell(row, "ReqGRES");
    if (tres.empty())
      job.gpus = gres_gpus(gres) * static_cast<double>(std::max<int64_t>(job.nodes, 1));
  }
  static void take_exit(std::string_view text, SlurmJob& job) {
    const size_t colon = text.find(':');
    const std::optional<uint64_t> code = unsigned_number(text.substr(0, colon));
    if (code && *code < 65536) job.exit_code = static_cast<int>(*code);
    if (colon == std::string_view::npos) return;
    const std::optional<uint64_t> signal = unsigned_number(text.substr(colon + 1));
    if (signal && *signal < 256) job.signal = static_cast<int>(*signal);
  }
  // Several files, or several pictures of a running job, hold the same life of a job: the one that
  // has ended, or was seen later, stays. A requeued job has lives with different starts.
  using Life = std::tuple<std::string, int64_t, int64_t>;
  static Life life(const SlurmJob& job) {
    return {job.id, job.start_s.value_or(-1), job.submit_s.value_or(-1)};
  }
  bool keep_latest(SlurmJob& job) {
    const auto [at, added] = lives_.try_emplace(life(job), out_.jobs.size());
    if (added) return false;
    SlurmJob& known = out_.jobs[at->second];
    ++out_.duplicates;
    const bool ended = known.state != JobState::kRunning && known.state != JobState::kPending;
    const bool newer = job.elapsed_s.value_or(0) > known.elapsed_s.value_or(0) ||
                       (job.state != JobState::kRunning && job.state != JobState::kPending);
    if (!ended && newer) known = std::move(job);
    return true;
  }

  std::string_view text_;
  const std::string& file_;
  SlurmReading& out_;
  SlurmColumns layout_;
  std::map<std::string, size_t, std::less<>> columns_;
  std::map<Life, size_t> lives_;
  std::vector<uint32_t> counts_;  // fields of each line
  size_t header_line_ = 0;
  size_t dropped_ = 0;
  bool told_cut_ = false;
};

}  // namespace

void read_sacct(std::string_view text, const std::string& file, SlurmReading& out) {
  SacctReader(text, file, out).read();
}

}  // namespace assay
