#include "validate/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/text.h"

namespace assay {
namespace {

// Locale-free on purpose: the same bytes mean the same on every machine.
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

constexpr size_t kLongestCell = 4096;  // longer text says nothing that a shorter one does not

size_t find_phrase(const std::string& words, std::string_view phrase, size_t from = 0) {
  const std::string padded = " " + std::string(phrase) + " ";
  return words.find(padded, from);
}

std::string_view word_before(const std::string& words, size_t space) {
  if (space == 0) return {};
  const size_t start = words.rfind(' ', space - 1);
  return std::string_view(words).substr(start + 1, space - start - 1);
}

std::string_view word_after(const std::string& words, size_t space) {
  if (space + 1 >= words.size()) return {};
  const size_t end = words.find(' ', space + 1);
  return std::string_view(words).substr(space + 1, end - space - 1);
}

template <size_t N>
bool one_of(std::string_view word, const std::array<std::string_view, N>& list) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

std::optional<double> to_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return {};
  return value;
}

}  // namespace

std::string plain_words(std::string_view text) {
  std::string out = " ";
  for (const char c : text.substr(0, kLongestCell)) {
    if (is_letter(c) || is_digit(c)) {
      out += lower(c);
    } else if (out.back() != ' ') {
      out += ' ';
    }
  }
  if (out.back() != ' ') out += ' ';
  return out;
}

std::string clause_words(std::string_view text) {
  text = text.substr(0, kLongestCell);
  std::string out = " |";
  size_t from = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    const bool last = i == text.size();
    const char c = last ? ';' : text[i];
    const bool stop = c == ',' || c == '.';
    const bool blank = i + 1 >= text.size() || text[i + 1] == ' ' || text[i + 1] == '\n';
    if (c != ';' && c != '\n' && !(stop && blank)) continue;
    const std::string clause = plain_words(text.substr(from, i - from));
    if (clause.size() > 1) out += clause + "|";
    from = i + 1;
  }
  return out + " ";
}

bool says(const std::string& words, std::string_view phrase) {
  return find_phrase(words, phrase) != std::string::npos;
}

bool says_any(const std::string& words, const std::vector<std::string_view>& phrases) {
  return std::any_of(phrases.begin(), phrases.end(),
                     [&](std::string_view p) { return says(words, p); });
}

namespace {

constexpr std::array<std::string_view, 10> kTold = {"shown",     "stated",  "said",      "given",
                                                    "named",     "known",   "mentioned", "told",
                                                    "specified", "reported"};

// Whether the next few words say that something is not told: `compile of this row not shown`.
bool left_open(const std::string& words, size_t from) {
  constexpr int kNear = 6;
  std::string_view last;
  for (int i = 0; i < kNear && from < words.size(); ++i) {
    const std::string_view next = word_after(words, from);
    if (next == "|") return false;
    if (next == "unknown" || next == "unstated") return true;
    if (last == "not" && one_of(next, kTold)) return true;
    last = next;
    from += next.size() + 1;
  }
  return false;
}

}  // namespace

std::optional<bool> claims(const std::string& words, std::string_view phrase) {
  static constexpr std::array<std::string_view, 7> kDenyBefore = {
      "no", "without", "not", "non", "disable", "disabled", "wo"};
  static constexpr std::array<std::string_view, 7> kDenyAfter = {"off", "false",    "0",  "none",
                                                                 "no",  "disabled", "not"};
  const size_t at = find_phrase(words, phrase);
  if (at == std::string::npos) return {};
  if (left_open(words, at + phrase.size() + 1)) return {};
  const std::string_view before = word_before(words, at);
  if (one_of(before, kDenyBefore)) return false;
  // `w/o x` becomes the words `w o x`.
  if (before == "o" && word_before(words, at - before.size() - 1) == "w") return false;
  return !one_of(word_after(words, at + phrase.size() + 1), kDenyAfter);
}

std::optional<bool> claims_any(const std::string& words,
                               std::initializer_list<std::string_view> phrases) {
  std::optional<bool> said;
  for (const std::string_view phrase : phrases) {
    if (const std::optional<bool> one = claims(words, phrase)) said = said.value_or(true) && *one;
  }
  return said;
}

bool unstated(const std::string& words) {
  if (words.starts_with(" not ") && one_of(word_after(words, 4), kTold)) return true;
  return words == " " || words == " n a " || words == " na " || words == " unknown " ||
         words == " unspecified " || words == " default ";
}

bool without(const std::string& words) {
  return words.starts_with(" without ") || words.starts_with(" w o ") ||
         says_any(words, {"not used", "not enabled", "unused"});
}

std::optional<double> number_after(const std::string& words, std::string_view phrase) {
  const size_t at = find_phrase(words, phrase);
  if (at == std::string::npos) return {};
  return to_number(word_after(words, at + phrase.size() + 1));
}

std::optional<double> number_before(const std::string& words, std::string_view phrase) {
  size_t at = 0;
  while ((at = find_phrase(words, phrase, at)) != std::string::npos) {
    if (const std::optional<double> n = to_number(word_before(words, at))) return n;
    ++at;
  }
  return {};
}

std::optional<int64_t> count_after(const std::string& words,
                                   std::initializer_list<std::string_view> phrases, double most) {
  for (const std::string_view phrase : phrases) {
    const std::optional<double> n = number_after(words, phrase);
    if (n && *n >= 1 && *n <= most && std::floor(*n) == *n) return static_cast<int64_t>(*n);
  }
  return {};
}

std::string_view trimmed_cell(std::string_view text) {
  const std::string_view blanks = " \t\r\n\f\v";
  const size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::optional<double> cell_number(std::string_view cell) {
  const std::string_view text = trimmed_cell(cell).substr(0, kLongestCell);
  std::string digits;
  size_t i = 0;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    const bool exponent = (c == 'e' || c == 'E') && !digits.empty() && i + 1 < text.size() &&
                          (is_digit(text[i + 1]) || text[i + 1] == '+' || text[i + 1] == '-');
    const bool sign =
        (c == '-' || c == '+') && (i == 0 || text[i - 1] == 'e' || text[i - 1] == 'E');
    const bool comma = c == ',' && i > 0 && is_digit(text[i - 1]) && i + 3 < text.size() &&
                       is_digit(text[i + 1]) && is_digit(text[i + 2]) && is_digit(text[i + 3]);
    if (is_digit(c) || c == '.' || exponent || (sign && c == '-')) {
      digits += c;
    } else if (!comma && !sign) {
      break;
    }
  }
  // What follows the number must be apart from it: `8 GB`, `8 (x)`, `8GB`; never `8-10` or `8/2`.
  if (i < text.size() && !is_letter(text[i]) && text[i] != ' ' && text[i] != '(' &&
      text[i] != '%') {
    return {};
  }
  return to_number(digits);
}

std::vector<std::string> split_any(std::string_view text, std::string_view separators) {
  std::vector<std::string> parts;
  size_t from = 0;
  while (from <= text.size()) {
    const size_t end = std::min(text.find_first_of(separators, from), text.size());
    const std::string_view part = trimmed_cell(text.substr(from, end - from));
    if (!part.empty()) parts.emplace_back(part);
    from = end + 1;
  }
  return parts;
}

std::string squeezed(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, kLongestCell)) {
    if (is_letter(c) || is_digit(c)) out += lower(c);
  }
  return out;
}

}  // namespace assay
