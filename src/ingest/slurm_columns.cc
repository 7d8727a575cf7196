#include "ingest/slurm_columns.h"

#include <algorithm>
#include <map>
#include <optional>

#include "ingest/slurm.h"
#include "ingest/text.h"

namespace assay {
namespace {

constexpr size_t kMaxColumns = 1024;
constexpr size_t kSample = 200;  // records that are looked at to infer names

bool is_name(char c) { return (lower(c) >= 'a' && lower(c) <= 'z') || is_digit(c) || c == '_'; }

// The separator is what stands between the names: `|`, or `|#`, `^`, a comma, a tab.
std::string separator_of(std::string_view header) {
  constexpr size_t kMostSeparator = 4;
  const auto end = std::find_if_not(header.begin(), header.end(), is_name);
  const auto next = std::find_if(end, header.end(), is_name);
  const std::string between(end, next);
  return between.empty() || between.size() > kMostSeparator ? "|" : between;
}

// Runs of dashes under the names.
std::vector<std::pair<size_t, size_t>> dashes(std::string_view line) {
  std::vector<std::pair<size_t, size_t>> out;
  if (line.find_first_not_of("- ") != std::string_view::npos) return out;
  for (size_t at = line.find('-'); at != std::string_view::npos && out.size() <= kMaxColumns;) {
    const size_t end = std::min(line.find(' ', at), line.size());
    out.emplace_back(at, end - at);
    at = line.find('-', end);
  }
  return out;
}

bool job_id(std::string_view cell) {
  return !cell.empty() && is_digit(cell[0]) &&
         cell.find_first_of(":-,=/") == std::string_view::npos && cell.size() < 64;
}
bool exit_code(std::string_view cell) {
  const size_t colon = cell.find(':');
  return colon != std::string_view::npos && unsigned_number(cell.substr(0, colon)) &&
         unsigned_number(cell.substr(colon + 1));
}
bool resources(std::string_view cell) { return contains(cell, "cpu=") && contains(cell, ","); }
bool moment(std::string_view cell) { return contains(cell, "T") && parse_slurm_time(cell); }
bool span_of_time(std::string_view cell) {
  return std::count(cell.begin(), cell.end(), ':') == 2 && parse_slurm_duration(cell);
}
bool state(std::string_view cell) {
  return cell.size() > 3 && parse_job_state(cell) != JobState::kUnknown;
}

// Names for columns without any, from the jobs among the first records. Of several columns of one
// look: a request stands before its allocation; times are in the order in which they happen, so the
// last two are start and end and the first of three is the submission.
class Inference {
 public:
  Inference(std::string_view text, const SlurmColumns& columns) {
    std::string_view line;
    while (rows_.size() < kSample && next_line(text, line)) {
      std::vector<std::string_view> row = columns.split(line);
      if (row.size() > kMaxColumns || row.size() < 2) continue;
      for (std::string_view& cell : row) cell = trimmed(cell);
      width_ = rows_.empty() ? row.size() : width_;
      if (row.size() == width_ && job_id(row[0])) rows_.push_back(std::move(row));
    }
  }

  std::vector<std::string> names() const {
    std::vector<std::string> out(width_);
    if (rows_.empty()) return {};
    out[0] = "JobID";
    const std::vector<size_t> states = like(state);
    if (states.empty()) return {};
    out[states[0]] = "State";
    name(out, like(exit_code), {"ExitCode"});
    const std::vector<size_t> sizes = like(resources);
    if (!sizes.empty()) out[sizes.front()] = "ReqTRES";
    if (!sizes.empty()) out[sizes.back()] = "AllocTRES";
    const std::vector<size_t> times = like(moment);
    if (times.size() == 2) name(out, times, {"Start", "End"});
    if (times.size() == 3) name(out, times, {"Submit", "Start", "End"});
    if (times.size() == 4) name(out, times, {"Submit", "Eligible", "Start", "End"});
    name(out, like(span_of_time), {"Elapsed"});
    if (times.size() >= 2) name_elapsed(out, times[times.size() - 2], times.back());
    return out;
  }

 private:
  // Unnamed columns in which every cell that says something looks so, and at least one does.
  std::vector<size_t> like(bool (*looks)(std::string_view)) const {
    std::vector<size_t> out;
    for (size_t k = 1; k < width_; ++k) {
      size_t yes = 0, no = 0;
      for (const std::vector<std::string_view>& row : rows_) {
        const bool blank = row[k].empty() || row[k] == "Unknown" || row[k] == "None";
        if (!blank) ++(looks(row[k]) ? yes : no);
      }
      if (yes > 0 && no == 0) out.push_back(k);
    }
    return out;
  }
  static void name(std::vector<std::string>& out, const std::vector<size_t>& at,
                   std::initializer_list<const char*> names) {
    size_t i = 0;
    for (const char* each : names) {
      if (i < at.size()) out[at[i++]] = each;
    }
  }
  // A bare number that is the time from start to end.
  void name_elapsed(std::vector<std::string>& out, size_t start, size_t end) const {
    for (size_t k = 1; k < width_; ++k) {
      size_t yes = 0, no = 0;
      for (const std::vector<std::string_view>& row : rows_) {
        const std::optional<int64_t> a = parse_slurm_time(row[start]),
                                     b = parse_slurm_time(row[end]);
        const std::optional<uint64_t> took = unsigned_number(row[k]);
        if (a && b) ++(took && *b >= *a && static_cast<uint64_t>(*b - *a) == *took ? yes : no);
      }
      if (yes > 0 && no == 0) out[k] = "ElapsedRaw";
    }
  }

  std::vector<std::vector<std::string_view>> rows_;
  size_t width_ = 0;
};

}  // namespace

std::vector<std::string_view> SlurmColumns::split(std::string_view line) const {
  std::vector<std::string_view> out;
  if (!spans.empty()) {
    for (const auto& [at, width] : spans) {
      out.push_back(line.substr(std::min(at, line.size()), width));
    }
    return out;
  }
  while (out.size() <= 4 * kMaxColumns) {
    const size_t at = line.find(separator);
    out.push_back(line.substr(0, at));
    if (at == std::string_view::npos) break;
    line.remove_prefix(at + separator.size());
  }
  return out;
}

uint32_t SlurmColumns::count(std::string_view line) const {
  if (!spans.empty()) return static_cast<uint32_t>(spans.size());
  uint32_t out = 1;
  for (size_t at = line.find(separator); at != std::string_view::npos && out < 4 * kMaxColumns;
       at = line.find(separator, at + separator.size())) {
    ++out;
  }
  return out;
}

SlurmColumns find_sacct_columns(std::string_view text) {
  SlurmColumns out;
  std::string_view rest = text, header;
  while (next_line(rest, header)) {
    ++out.lines_above;
    if (!trimmed(header).empty()) break;
  }
  if (header.starts_with("\xef\xbb\xbf")) header.remove_prefix(3);
  std::string_view under, below = rest;
  if (next_line(below, under)) out.spans = dashes(under);
  if (out.spans.empty()) {
    out.separator = separator_of(header);
  } else {
    rest = below;
    ++out.lines_above;
  }
  for (std::string_view name : out.split(header)) out.names.emplace_back(trimmed(name));
  while (!out.names.empty() && out.names.back().empty()) out.names.pop_back();
  if (!out.spans.empty()) out.spans.resize(out.names.size());
  const auto has = [&](const char* name) {
    return std::find(out.names.begin(), out.names.end(), name) != out.names.end();
  };
  out.rows_at = static_cast<size_t>(rest.data() - text.data());
  if (out.names.size() > kMaxColumns) out.names.clear();
  if (has("JobID") || has("JobIDRaw") || out.names.empty()) return out;
  // No header: the first line is a record already.
  out.spans.clear();
  out.separator = "|";
  out.rows_at = 0;
  out.lines_above = 0;
  out.inferred = true;
  out.names = Inference(text, out).names();
  return out;
}

}  // namespace assay
