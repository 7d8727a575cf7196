#include "ingest/straggler_csv.h"

#include <charconv>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "ingest/text.h"

namespace assay {
namespace {

constexpr size_t kListedProblems = 20;
constexpr double kMaxSeconds = 1e9;  // thirty years: beyond it a time is a mistake
constexpr size_t kStragglerColumns = 64;

void split(std::string_view text, std::vector<std::string_view>& cells) {
  cells.clear();
  size_t from = 0;
  while (cells.size() < kStragglerColumns) {
    const size_t comma = text.find(',', from);
    std::string_view cell = text.substr(from, comma - from);
    if (cell.size() >= 2 && cell.front() == '"' && cell.back() == '"')
      cell = cell.substr(1, cell.size() - 2);
    cells.push_back(cell);
    if (comma == std::string_view::npos) break;
    from = comma + 1;
  }
}

bool to_int(std::string_view text, int64_t& value) {
  const char* end = text.data() + text.size();
  const std::from_chars_result read = std::from_chars(text.data(), end, value);
  return read.ec == std::errc() && read.ptr == end;
}

bool to_small(std::string_view text, int32_t least, int32_t& value) {
  int64_t wide = 0;
  if (!to_int(text, wide) || wide < least || wide >= kMaxOperationRank) return false;
  value = static_cast<int32_t>(wide);
  return true;
}

bool to_ns(std::string_view text, int64_t& ns) {
  double seconds = 0;
  const char* end = text.data() + text.size();
  const std::from_chars_result read = std::from_chars(text.data(), end, seconds);
  if (read.ec != std::errc() || read.ptr != end || !(std::abs(seconds) <= kMaxSeconds))
    return false;
  ns = std::llround(seconds * 1e9);
  return true;
}

}  // namespace

OperationReader::OperationReader(std::string file) { trace_.file = std::move(file); }

void OperationReader::fail(const std::string& why) {
  failed_ = true;
  trace_.problems.push_back(problem(Severity::kError, why, trace_.file, line_));
}

void OperationReader::refuse(const std::string& why) {
  if (++trace_.refused <= kListedProblems)
    trace_.problems.push_back(problem(Severity::kWarning, why, trace_.file, line_));
}

bool OperationReader::header(std::string_view text) {
  if (text.substr(0, 3) == "\xef\xbb\xbf") text.remove_prefix(3);
  split(text, cells_);
  const std::pair<std::string_view, int*> wanted[] = {
      {"dp_rank", &columns_.dp},        {"stage", &columns_.stage},
      {"rank", &columns_.rank},         {"step", &columns_.step},
      {"optype", &columns_.type},       {"start_ts", &columns_.start},
      {"duration", &columns_.duration}, {"seq_id", &columns_.sequence},
      {"mc", &columns_.chunk}};
  for (const auto& [name, index] : wanted) {
    for (size_t i = 0; i < cells_.size(); ++i)
      if (cells_[i] == name) *index = static_cast<int>(i);
    const bool optional = name == "seq_id" || name == "mc";
    if (*index < 0 && !optional) {
      fail(fmt::format("no column `{}`: this is not a table of operations", name));
      return false;
    }
  }
  return true;
}

void OperationReader::row(std::string_view text) {
  ++trace_.rows;
  split(text, cells_);
  const auto cell = [&](int column) {
    return column >= 0 && static_cast<size_t>(column) < cells_.size()
               ? cells_[static_cast<size_t>(column)]
               : std::string_view();
  };
  Operation op;
  if (!to_small(cell(columns_.rank), 0, op.rank) || !to_small(cell(columns_.dp), 0, op.dp) ||
      !to_small(cell(columns_.stage), 0, op.stage) || !to_int(cell(columns_.step), op.step))
    return refuse("rank, dp_rank, stage or step is not a number of sensible size");
  if (!to_ns(cell(columns_.start), op.start_ns) || !to_ns(cell(columns_.duration), op.duration_ns))
    return refuse("start_ts or duration is not a number of seconds");
  if (op.duration_ns < 0) return refuse("the duration is negative");
  if (columns_.sequence >= 0 && !to_small(cell(columns_.sequence), -1, op.sequence))
    return refuse("seq_id is not a number of sensible size");
  if (columns_.chunk >= 0 && !to_small(cell(columns_.chunk), -1, op.chunk))
    return refuse("mc is not a number of sensible size");
  const std::string_view name = cell(columns_.type);
  if (name.empty()) return refuse("optype is empty");

  const uint64_t place = uint64_t(uint32_t(op.dp)) << 32 | uint32_t(op.stage);
  if (places_.try_emplace(op.rank, place).first->second != place)
    return refuse(fmt::format("rank {} is at two places of the grid", op.rank));
  const auto [type, is_new] =
      type_ids_.try_emplace(std::string(name), static_cast<uint16_t>(trace_.types.size()));
  if (is_new) {
    if (trace_.types.size() >= kMaxOperationTypes)
      return fail(fmt::format("more than {} types of operations", kMaxOperationTypes));
    trace_.types.emplace_back(name);
  }
  op.type = type->second;
  if (trace_.operations.size() >= kMaxOperations)
    return fail(fmt::format("more than {} operations: give fewer steps", kMaxOperations));
  trace_.operations.push_back(op);
}

void OperationReader::line(std::string_view text) {
  ++line_;
  if (failed_) return;
  if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
  if (text.empty()) return;
  if (!has_header_) {
    has_header_ = header(text);
  } else {
    row(text);
  }
}

void OperationReader::feed(std::string_view bytes) {
  while (!failed_ && !bytes.empty()) {
    const size_t end = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, end);
    if (partial_.size() + piece.size() > kMaxOperationLine) too_long_ = true;
    if (end == std::string_view::npos) {
      if (!too_long_) partial_.append(piece);
      return;
    }
    if (too_long_) {
      ++line_;
      if (!has_header_) return fail("the first line is too long to be a header");
      ++trace_.rows;
      refuse("the line is too long to be a row");
    } else if (partial_.empty()) {
      line(piece);
    } else {
      partial_.append(piece);
      line(partial_);
    }
    partial_.clear();
    too_long_ = false;
    bytes.remove_prefix(end + 1);
  }
}

OperationTrace OperationReader::finish() {
  if (too_long_) feed("\n");
  if (!partial_.empty()) line(std::exchange(partial_, {}));
  if (!has_header_ && !failed_) fail("empty: no header of a table of operations");
  if (trace_.refused > kListedProblems)
    trace_.problems.push_back(problem(
        Severity::kWarning,
        fmt::format("{} rows are left out, {} of them listed", trace_.refused, kListedProblems),
        trace_.file, 0));
  if (failed_) trace_.operations.clear();
  return std::move(trace_);
}

Result<OperationTrace> read_operations(ByteSource source) {
  OperationReader reader(source.name());
  std::string buffer(size_t{1} << 20, '\0');
  for (;;) {
    const Result<size_t> read = source.read(buffer.data(), buffer.size());
    if (!read) return tl::unexpected(read.error());
    if (*read == 0) break;
    if (source.bytes_out() > kMaxOperationBytes)
      return tl::unexpected(Failure{"holds more than 4 GiB of text", source.name()});
    reader.feed({buffer.data(), *read});
  }
  OperationTrace trace = reader.finish();
  trace.cut = !source.damage().empty();
  if (trace.cut)
    trace.problems.push_back(problem(Severity::kWarning, source.damage(), trace.file, 0));
  return trace;
}

Result<OperationTrace> read_operations(const std::string& path) {
  Result<ByteSource> source = ByteSource::open(path, kMaxOperationBytes);
  if (!source) return tl::unexpected(source.error());
  return read_operations(std::move(*source));
}

}  // namespace assay
