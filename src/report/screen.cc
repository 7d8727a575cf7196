#include "report/screen.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace assay {

std::string footer(const Stamp& s) {
  return fmt::format("assay {}, catalog {}, seed {}", s.version, s.catalog_date, s.seed);
}

std::string bar(double share, int columns, const Style& style) {
  const double wanted = std::clamp(share, 0.0, 1.0) * columns;
  const int whole = static_cast<int>(std::floor(wanted + (style.unicode ? 0 : 0.5)));
  std::string text;
  for (int i = 0; i < whole; ++i) text += style.unicode ? "\xe2\x96\x88" : "#";
  if (style.unicode) {
    static const char* const kEighths[] = {"",
                                           "\xe2\x96\x8f",
                                           "\xe2\x96\x8e",
                                           "\xe2\x96\x8d",
                                           "\xe2\x96\x8c",
                                           "\xe2\x96\x8b",
                                           "\xe2\x96\x8a",
                                           "\xe2\x96\x89"};
    text += kEighths[static_cast<int>((wanted - whole) * 8) & 7];
  }
  int shown = whole;
  if (style.unicode && text.size() > static_cast<size_t>(3 * whole)) ++shown;
  if (text.empty() && share > 0) text = ".", shown = 1;
  return text + std::string(static_cast<size_t>(std::max(columns - shown, 0)), ' ');
}

std::string left(const std::string& text, size_t columns) {
  return text.size() >= columns ? text : text + std::string(columns - text.size(), ' ');
}

std::string right(const std::string& text, size_t columns) {
  return text.size() >= columns ? text : std::string(columns - text.size(), ' ') + text;
}

std::string bold(const std::string& text, const Style& style) {
  return style.color ? "\x1b[1m" + text + "\x1b[0m" : text;
}

std::string warning(const std::string& text, const Style& style) {
  const std::string line = "! " + text;
  return style.color ? "\x1b[33m" + line + "\x1b[0m" : line;
}

std::string wrap(const std::string& text, int width, size_t indent) {
  std::string out;
  size_t column = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t word = std::min(text.find_first_not_of(' ', at), text.size());
    const size_t end = std::min(text.find(' ', word), text.size());
    if (word == end) break;
    const bool first = column == 0;
    if (!first && column + (end - at) > static_cast<size_t>(width)) {
      out += "\n" + std::string(indent, ' ');
      out.append(text, word, end - word);
      column = indent + (end - word);
    } else {
      out.append(text, at, end - at);
      column += end - at;
    }
    at = end;
  }
  return out;
}

std::string command_lines(const std::string& command, int width, size_t indent) {
  std::string out;
  size_t column = 0;
  bool quoted = false;
  for (size_t at = 0; at < command.size();) {
    size_t end = std::min(command.find_first_not_of(' ', at), command.size());
    for (; end < command.size() && (quoted || command[end] != ' '); ++end)
      quoted ^= command[end] == '\'';
    // Room for the backslash where something follows.
    const size_t room = static_cast<size_t>(width) - (end < command.size() ? 2 : 0);
    if (column > indent && column + (end - at) > room) {
      out += " \\\n" + std::string(indent, ' ');
      column = indent;
      at = command.find_first_not_of(' ', at);
    }
    out.append(command, at, end - at);
    column += end - at;
    at = end;
  }
  return out;
}

std::string with_tail(const std::string& text, const std::string& tail, int width) {
  const size_t columns = static_cast<size_t>(width);
  if (text.size() + tail.size() <= columns)
    return trimmed_lines(left(text, columns - tail.size()) + tail) + "\n";
  return trimmed_lines(wrap(text, width, 6) + "\n" + right(tail, columns)) + "\n";
}

std::string trimmed_lines(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '\n') {
      while (!out.empty() && out.back() == ' ') out.pop_back();
    }
    out += c;
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

std::string table(const std::vector<std::vector<std::string>>& rows, size_t indent) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line(indent, ' ');
    for (size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line += "  ";
      line += i == 0 ? left(row[i], widths[i]) : right(row[i], widths[i]);
    }
    out += line + "\n";
  }
  return trimmed_lines(out);
}

}  // namespace assay
