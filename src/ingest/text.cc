#include "ingest/text.h"

#include <charconv>
#include <cmath>

namespace assay {
namespace {

std::optional<double> number_at(std::string_view text, std::string_view& rest) {
  text = trimmed(text);
  if (!text.empty() && text[0] == '+') text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !std::isfinite(value)) return std::nullopt;
  rest = text.substr(static_cast<size_t>(end - text.data()));
  return value;
}

}  // namespace

bool next_line(std::string_view& rest, std::string_view& line) {
  if (rest.empty()) return false;
  const size_t end = rest.find('\n');
  line = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return true;
}

bool contains_any_case(std::string_view text, std::string_view part) {
  if (part.size() > text.size()) return false;
  for (size_t i = 0; i + part.size() <= text.size(); ++i) {
    size_t k = 0;
    while (k < part.size() && lower(text[i + k]) == part[k]) ++k;
    if (k == part.size()) return true;
  }
  return false;
}

std::vector<std::string_view> words(std::string_view text, size_t max) {
  std::vector<std::string_view> out;
  size_t i = 0;
  while (out.size() < max) {
    while (i < text.size() && is_blank(text[i])) ++i;
    if (i == text.size()) break;
    const size_t start = i;
    while (i < text.size() && !is_blank(text[i])) ++i;
    out.push_back(text.substr(start, i - start));
  }
  return out;
}

std::vector<std::string_view> fields(std::string_view text, char separator, size_t max) {
  std::vector<std::string_view> out;
  while (out.size() < max) {
    const size_t end = text.find(separator);
    out.push_back(trimmed(text.substr(0, end)));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return out;
}

std::optional<double> leading_number(std::string_view text) {
  std::string_view rest;
  return number_at(text, rest);
}

std::optional<double> whole_number(std::string_view text) {
  std::string_view rest;
  const std::optional<double> value = number_at(text, rest);
  return value && trimmed(rest).empty() ? value : std::nullopt;
}

std::optional<uint64_t> unsigned_number(std::string_view text, int base) {
  text = trimmed(text);
  if (base == 16 && (text.starts_with("0x") || text.starts_with("0X"))) text.remove_prefix(2);
  uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, base);
  if (error != std::errc() || stop != end || text.empty()) return std::nullopt;
  return value;
}

std::string without_escapes(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\x1b') {
      out += text[i];
      continue;
    }
    // CSI: ESC [ parameters, then one letter. Anything else after ESC loses the ESC alone.
    if (i + 1 >= text.size() || text[i + 1] != '[') continue;
    size_t end = i + 2;
    while (end < text.size() && text[end] >= 0x20 && text[end] < 0x40) ++end;
    i = end < text.size() ? end : text.size() - 1;
  }
  return out;
}

Diagnostic problem(Severity severity, std::string message, const std::string& file, int line) {
  Diagnostic out;
  out.severity = severity;
  out.message = std::move(message);
  out.at.file = file;
  out.at.line = line;
  return out;
}

}  // namespace assay
