#include "config/value.h"

#include <algorithm>

#include <fmt/format.h>

namespace assay {
namespace {

std::string_view line_text(const Source& source, int line) {
  if (line < 1 || static_cast<size_t>(line) > source.line_starts.size()) return {};
  const size_t begin = source.line_starts[static_cast<size_t>(line) - 1];
  std::string_view rest = std::string_view(source.text).substr(begin);
  rest = rest.substr(0, rest.find('\n'));
  if (!rest.empty() && rest.back() == '\r') rest.remove_suffix(1);
  return rest;
}

// Characters, not bytes: continuation bytes of UTF-8 take no column.
int characters_in(std::string_view text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u;
  }));
}

}  // namespace

const Source* Sources::add(std::string file, std::string text) {
  Source& source = all_.emplace_back();
  source.order = all_.size();
  source.file = std::move(file);
  source.text = std::move(text);
  if (source.text.compare(0, 3, "\xEF\xBB\xBF") == 0) source.text.erase(0, 3);
  source.line_starts.push_back(0);
  for (size_t i = 0; i < source.text.size(); ++i) {
    if (source.text[i] == '\n') source.line_starts.push_back(i + 1);
  }
  return &source;
}

const Entry* Value::find(std::string_view key) const {
  for (const Entry& entry : entries) {
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

Entry* Value::find(std::string_view key) {
  return const_cast<Entry*>(static_cast<const Value*>(this)->find(key));
}

Value scalar_value(std::string text, const Mark& at) {
  Value value;
  value.kind = Value::Kind::kScalar;
  value.text = std::move(text);
  value.at = at;
  return value;
}

const Value* find_path(const Value& map, std::string_view path) {
  const size_t dot = path.find('.');
  const Entry* entry = map.find(path.substr(0, dot));
  if (entry == nullptr) return nullptr;
  return dot == path.npos ? &entry->value : find_path(entry->value, path.substr(dot + 1));
}

bool said_later(const Mark& a, const Mark& b) {
  const auto order = [](const Mark& m) { return m.source == nullptr ? 0 : m.source->order; };
  return order(a) != order(b) ? order(a) > order(b) : a.offset > b.offset;
}

Mark last_stated(const Value& map, std::initializer_list<std::string_view> paths) {
  const Value* last = nullptr;
  for (const std::string_view path : paths) {
    const Value* found = find_path(map, path);
    if (found != nullptr && (last == nullptr || said_later(found->at, last->at))) last = found;
  }
  return last == nullptr ? map.at : last->at;
}

std::string file_of(const Mark& mark) { return mark.source == nullptr ? "" : mark.source->file; }

int line_of(const Mark& mark) {
  if (mark.source == nullptr || mark.offset == Mark::kWhole) return 0;
  const std::vector<size_t>& starts = mark.source->line_starts;
  const size_t offset = std::min(mark.offset, mark.source->text.size());
  return static_cast<int>(std::upper_bound(starts.begin(), starts.end(), offset) - starts.begin());
}

Diagnostic problem_at(const Mark& mark, std::string message, std::string help) {
  constexpr size_t kLongestLine = 100000;  // beyond it the caret is not shown in place
  Diagnostic d;
  d.message = std::move(message);
  d.help = std::move(help);
  d.at.file = file_of(mark);
  d.at.line = line_of(mark);
  if (d.at.line == 0) return d;
  const std::string_view text = mark.source->text;
  const size_t begin = mark.source->line_starts[static_cast<size_t>(d.at.line) - 1];
  const size_t offset = std::min(mark.offset, text.size());
  const std::string_view marked = text.substr(offset, mark.length);
  d.at.column = characters_in(text.substr(begin, offset - begin)) + 1;
  d.at.length = std::max(1, characters_in(marked.substr(0, marked.find('\n'))));
  std::string line(line_text(*mark.source, d.at.line));
  std::replace(line.begin(), line.end(), '\t', ' ');
  d.source_line = sanitize(line, kLongestLine);
  return d;
}

bool list_is_full(Diagnostics& problems) {
  constexpr size_t kMaxProblems = 100;
  if (problems.size() < kMaxProblems) return false;
  if (problems.size() == kMaxProblems) {
    problems.push_back(problem_at(
        {}, fmt::format("more than {} problems: the others are not listed", kMaxProblems),
        "mend these first; is it the right file?"));
  }
  return true;
}

}  // namespace assay
