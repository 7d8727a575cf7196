#include "base/diagnostic.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "base/text.h"

namespace assay {
namespace {

constexpr size_t kShownColumns = 90;  // of a source line; longer ones are cut around the caret

std::string_view severity_name(Severity s) {
  switch (s) {
    case Severity::kError:
      return "error";
    case Severity::kWarning:
      return "warning";
    case Severity::kNote:
      return "note";
  }
  return "error";
}

// The bytes of one well-formed UTF-8 character at the start of `s`, or 0.
size_t utf8_length(std::string_view s, uint32_t& code) {
  const auto byte = [&](size_t i) -> uint32_t { return static_cast<unsigned char>(s[i]); };
  const uint32_t first = byte(0);
  const size_t length = first < 0x80         ? 1
                        : (first >> 5) == 6  ? 2
                        : (first >> 4) == 14 ? 3
                        : (first >> 3) == 30 ? 4
                                             : 0;
  if (length == 0 || s.size() < length) return 0;
  code = length == 1 ? first : first & (0xFFu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0u) != 0x80u) return 0;
    code = (code << 6) | (byte(i) & 0x3Fu);
  }
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  return code < kSmallest[length] || code > 0x10FFFF || surrogate ? 0 : length;
}

// Characters that move the cursor or reorder text, and so could make a message lie.
bool is_unsafe(uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code <= 0x9F) || (code >= 0x200B && code <= 0x200F) ||
         (code >= 0x2028 && code <= 0x202E) || (code >= 0x2060 && code <= 0x206F) || code == 0xFEFF;
}

// Splits sanitised text into its characters.
std::vector<std::string> characters(const std::string& text) {
  std::vector<std::string> out;
  for (size_t i = 0; i < text.size();) {
    uint32_t code = 0;
    const size_t n = std::max<size_t>(1, utf8_length(std::string_view(text).substr(i), code));
    out.push_back(text.substr(i, n));
    i += n;
  }
  return out;
}

// The source line and the caret line below it, cut to kShownColumns around the caret.
std::string caret_lines(const Diagnostic& d) {
  const std::vector<std::string> line = characters(sanitize(d.source_line, 100000));
  const size_t column = d.at.column > 0 ? static_cast<size_t>(d.at.column) - 1 : 0;
  const size_t caret = std::min(column, line.size());
  size_t begin = 0;
  if (line.size() > kShownColumns && caret > kShownColumns / 2) begin = caret - kShownColumns / 2;
  const size_t end = std::min(line.size(), begin + kShownColumns);
  std::string shown = begin > 0 ? "..." : "";
  const size_t shift = shown.size();
  for (size_t i = begin; i < end; ++i) shown += line[i];
  if (end < line.size()) shown += "...";
  const std::string digits = fmt::format("{}", d.at.line);
  const std::string gutter(digits.size() + 2, ' ');
  std::string out = fmt::format("{}|\n {} | {}\n", gutter, digits, shown);
  if (d.at.column > 0) {
    const size_t room = end > caret ? end - caret : 1;
    const size_t length = std::min(static_cast<size_t>(std::max(1, d.at.length)), room);
    out += fmt::format("{}| {}{}\n", gutter, std::string(shift + caret - begin, ' '),
                       std::string(length, '^'));
  }
  return out;
}

// Lower case with `_`, `-`, `.` and blanks alike: such differences cost nothing in nearest().
std::string folded(const std::string& word) {
  std::string out;
  for (char c : lower(word)) {
    out += c == '_' || c == '.' || c == ' ' ? '-' : c;
  }
  return out;
}

// Damerau-Levenshtein distance of adjacent transpositions.
size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, change});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) now[j] = std::min(now[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, now);
  }
  return last[b.size()];
}

}  // namespace

Diagnostic to_diagnostic(const Failure& f) {
  Diagnostic d;
  d.message = f.message;
  d.at.file = f.file;
  d.help = f.help;
  return d;
}

bool has_errors(const Diagnostics& all) {
  return std::any_of(all.begin(), all.end(),
                     [](const Diagnostic& d) { return d.severity == Severity::kError; });
}

std::string render(const Diagnostic& d) {
  std::string out = fmt::format("{}: {}\n", severity_name(d.severity), sanitize(d.message, 1000));
  const std::string file = sanitize(d.at.file, 300);
  const size_t digits = d.at.line > 0 ? fmt::formatted_size("{}", d.at.line) : 1;
  const std::string indent(digits + 1, ' ');
  if (d.at.line > 0) {
    out += fmt::format("{}--> {}:{}", indent, file.empty() ? "input" : file, d.at.line);
    out += d.at.column > 0 ? fmt::format(":{}\n", d.at.column) : "\n";
    if (!d.source_line.empty()) out += caret_lines(d);
  } else if (!file.empty()) {
    out += fmt::format("{}--> {}\n", indent, file);
  }
  if (!d.help.empty()) out += fmt::format("{} = help: {}\n", indent, sanitize(d.help, 1000));
  return out;
}

std::string render(const Diagnostics& all) {
  std::string out;
  for (const Diagnostic& d : all) {
    if (!out.empty()) out += '\n';
    out += render(d);
  }
  return out;
}

void sort_by_place(Diagnostics& all) {
  std::vector<std::string> files;
  const auto rank = [&](const Diagnostic& d) {
    return std::find(files.begin(), files.end(), d.at.file) - files.begin();
  };
  for (const Diagnostic& d : all) {
    if (rank(d) == std::ssize(files)) files.push_back(d.at.file);
  }
  std::stable_sort(all.begin(), all.end(), [&](const Diagnostic& a, const Diagnostic& b) {
    return std::make_tuple(rank(a), a.at.line, a.at.column) <
           std::make_tuple(rank(b), b.at.line, b.at.column);
  });
}

std::string nearest(const std::string& word, const std::vector<std::string>& candidates) {
  constexpr size_t kLongest = 64;  // nobody misspells longer words; keeps hostile ones cheap
  if (word.empty() || word.size() > kLongest) return "";
  const std::string wanted = folded(word);
  // A third of the letters may be wrong; beyond that a suggestion is noise.
  size_t most = std::max<size_t>(1, wanted.size() / 3);
  // Of equally near words the one that begins alike, then the one as long: `nodez` is `nodes`.
  std::tuple<size_t, size_t, size_t> least;
  std::string best;
  for (const std::string& candidate : candidates) {
    const size_t longer = std::max(candidate.size(), wanted.size());
    const size_t shorter = std::min(candidate.size(), wanted.size());
    if (candidate.size() > kLongest || longer - shorter > most) continue;
    const std::string word_there = folded(candidate);
    const size_t distance = edit_distance(wanted, word_there);
    // A word of which nothing is left is not a correction.
    if (distance > most || distance >= wanted.size()) continue;
    const auto differs =
        std::mismatch(wanted.begin(), wanted.end(), word_there.begin(), word_there.end());
    const auto alike = static_cast<size_t>(differs.first - wanted.begin());
    const std::tuple rank(distance, kLongest - alike, longer - shorter);
    if (!best.empty() && rank >= least) continue;
    least = rank;
    most = distance;
    best = candidate;
  }
  return best;
}

std::string sanitize(const std::string& text, size_t max) {
  std::string out;
  std::string_view rest = text;
  for (size_t kept = 0; !rest.empty(); ++kept) {
    if (kept == max) return out + "...";
    uint32_t code = 0;
    const size_t n = utf8_length(rest, code);
    if (n == 0 || is_unsafe(code)) {
      out += '?';
    } else {
      out += rest.substr(0, n);
    }
    rest.remove_prefix(std::max<size_t>(1, n));
  }
  return out;
}

}  // namespace assay
