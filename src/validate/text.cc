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

// --- what is said and what is denied ------------------------------------------------------------
//
// A phrase is denied by words near it, within its clause: before it (`no x`, `did not use the x`,
// `no y or x`, `rather than x`) or behind it (`x off`, `x=0`, `x was not used`). A denial of
// something else must not reach it: `x (no y)`, `x/no y` and `x; no y` are two clauses, while
// `x (off)` and `x (disabled for now)` answer. `not` behind a phrase denies it only where nothing
// but a participle follows: `bf16 not fp8` says bf16.
namespace {

constexpr std::array<std::string_view, 6> kNo = {"no", "without", "not", "non", "never", "wo"};
constexpr std::array<std::string_view, 7> kOff = {"off",    "false",  "disabled",   "disables",
                                                  "unused", "absent", "unavailable"};
constexpr std::array<std::string_view, 7> kVerbs = {"is",   "was",    "are",     "were",
                                                    "been", "turned", "switched"};
constexpr std::array<std::string_view, 20> kUsed = {
    "used",    "enabled",    "supported", "available",   "needed",   "turned",   "set",
    "applied", "active",     "on",        "possible",    "required", "yet",      "overlapped",
    "present", "compatible", "run",       "implemented", "in",       "installed"};

// Whether an aside denies something of its own: `(no graphs)`, `(FP8 off)`; `(off)`, `(not used)`
// and `(disabled for now)` answer what stands before them.
bool denies_apart(std::string_view aside) {
  const std::vector<std::string> all = split_any(plain_words(aside), " ");
  if (all.size() < 2) return false;
  if (all[0] == "not") return !one_of(all[1], kUsed);
  if (one_of(all[0], kNo)) return true;
  if (one_of(all[0], kOff) || one_of(all[0], kVerbs)) return false;
  return std::any_of(all.begin(), all.end(), [](const std::string& word) {
    return one_of(word, kOff) || one_of(word, kNo);
  });
}

// What is in brackets from `open` on; behind a stroke, up to the next mark. Nothing where it does
// not end soon.
std::string_view aside_at(std::string_view text, size_t open) {
  constexpr size_t kLongest = 160;
  const bool bracket = text[open] == '(';
  const std::string_view near = text.substr(open + 1, kLongest);
  size_t end = near.find_first_of(bracket ? ")" : ",;()/");
  if (end == std::string_view::npos) end = bracket ? 0 : near.size();
  return near.substr(0, end);
}

// `w/o` in full, and switches in words: `x=0` is `x off`.
std::string spelled_out(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = text.substr(i);
    const bool word = i > 0 && (is_letter(text[i - 1]) || is_digit(text[i - 1]));
    const auto ends = [&](size_t n) { return n >= rest.size() || !is_letter(rest[n]); };
    if (!word && rest.size() > 2 && lower(rest[0]) == 'w' && rest[1] == '/' &&
        lower(rest[2]) == 'o' && ends(3)) {
      out += "without";
      i += 2;
    } else if (rest.starts_with("=0") && ends(2) &&
               !(rest.size() > 2 && (is_digit(rest[2]) || rest[2] == '.'))) {
      out += " off";
      i += 1;
    } else if (lower(rest.size() > 1 ? rest[1] : ' ') == 'n' && rest[0] == '=' &&
               plain_words(rest.substr(1, 4)) == " none " && ends(5)) {
      out += " off";
      i += 4;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace

std::string clause_words(std::string_view written) {
  const std::string text = spelled_out(written.substr(0, kLongestCell));
  std::string out = " |";
  size_t from = 0, until = 0;  // `until`: the end of an aside of its own
  for (size_t i = 0; i <= text.size(); ++i) {
    const bool last = i == text.size();
    const char c = last ? ';' : text[i];
    const bool stop = c == ',' || c == '.';
    const bool blank = i + 1 >= text.size() || text[i + 1] == ' ' || text[i + 1] == '\n';
    bool ends = c == ';' || c == '\n' || (stop && blank) || (c == ')' && i == until);
    if (!ends && (c == '(' || c == '/')) {
      const std::string_view aside = aside_at(text, i);
      // Behind a stroke a denial comes first: `FP8/BF16 off` has one thing that is off.
      const std::string head = plain_words(aside.substr(0, 12));
      ends = denies_apart(aside) &&
             (c == '(' || head.starts_with(" no ") || head.starts_with(" without "));
      if (ends) until = i + 1 + aside.size();
    }
    if (!ends) continue;
    const std::string clause = plain_words(std::string_view(text).substr(from, i - from));
    if (clause.size() > 1) out += clause + "|";
    from = i + 1;
  }
  return out + " ";
}

std::vector<std::string> clauses_of(const std::string& words) {
  std::vector<std::string> out;
  for (const std::string& clause : split_any(words, "|")) out.push_back(" " + clause + " ");
  return out;
}

bool says(const std::string& words, std::string_view phrase) {
  return find_phrase(words, phrase) != std::string::npos;
}

bool says_any(const std::string& words, const std::vector<std::string_view>& phrases) {
  return std::any_of(phrases.begin(), phrases.end(),
                     [&](std::string_view p) { return says(words, p); });
}

namespace {

constexpr std::array<std::string_view, 12> kTold = {
    "shown",     "stated", "said",      "given",    "named",     "known",
    "mentioned", "told",   "specified", "reported", "disclosed", "published"};

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

bool denied_before(const std::string& words, size_t at) {
  static constexpr std::array<std::string_view, 17> kBetween = {
      "use", "using",      "any",      "the",  "a",     "explicit", "with", "yet",     "need",
      "tp",  "activation", "gradient", "full", "layer", "dp",       "cpu",  "pipeline"};
  constexpr int kReach = 4;
  bool listed = false;  // beyond an `or`, whatever is listed
  for (int i = 0; i < kReach; ++i) {
    const std::string_view word = word_before(words, at);
    if (word.empty() || word == "|") return false;
    at -= word.size() + 1;
    const std::string_view earlier = word_before(words, at);
    if (one_of(word, kNo) || word == "disable" || word == "disabled" || word == "disables")
      return true;
    // `w/o x` becomes the words `w o x`.
    if ((word == "o" && earlier == "w") || (word == "than" && earlier == "rather") ||
        (word == "of" && earlier == "instead")) {
      return true;
    }
    if (word == "or" || word == "nor") listed = true;
    if (!listed && !one_of(word, kBetween)) return false;
  }
  return false;
}

// What may stand between a phrase and its denial: `x was turned off`, `FlashAttention 2: no`.
bool passed_over(std::string_view word) {
  static constexpr std::array<std::string_view, 15> kNouns = {
      "set",     "to",   "device", "mode",      "granularity", "enable", "activations", "attention",
      "backend", "impl", "kernel", "optimizer", "schedule",    "bridge", "attn"};
  if (one_of(word, kVerbs) || one_of(word, kNouns)) return true;
  // A release: `2`, `v2`, `fa2`.
  if (word.starts_with("fa")) word.remove_prefix(2);
  if (word.starts_with("v")) word.remove_prefix(1);
  return word.size() == 1 && word[0] >= '1' && word[0] <= '9';
}

bool denied_after(const std::string& words, size_t from) {
  std::string_view word = word_after(words, from);
  bool release = false;  // `NVLink 4.0` is two words more
  for (int i = 0; i < 4 && (passed_over(word) || (release && to_number(word))); ++i) {
    release = is_digit(word.back());
    from += word.size() + 1;
    word = word_after(words, from);
  }
  if (one_of(word, kOff)) return true;
  const std::string_view next = word_after(words, from + word.size() + 1);
  const bool ends = next.empty() || next == "|";
  if (word == "not" || word == "never") return ends || one_of(next, kUsed);
  // `compile: no graph breaks` denies the breaks.
  return ends && (word == "no" || word == "none" || word == "0");
}

}  // namespace

bool denied_at(const std::string& words, size_t space, size_t length) {
  return denied_before(words, space) || denied_after(words, space + length + 1);
}

std::optional<bool> claims(const std::string& words, std::string_view phrase) {
  std::optional<bool> said;
  for (size_t at = find_phrase(words, phrase); at != std::string::npos;
       at = find_phrase(words, phrase, at + 1)) {
    if (left_open(words, at + phrase.size() + 1)) continue;
    const bool is = !denied_at(words, at, phrase.size());
    said = said.value_or(false) || is;
  }
  return said;
}

bool affirms(const std::string& words, std::initializer_list<std::string_view> phrases) {
  return std::any_of(phrases.begin(), phrases.end(),
                     [&](std::string_view p) { return claims(words, p).value_or(false); });
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
  static constexpr std::array<std::string_view, 16> kNothing = {
      " ",         " n a ",         " na ",     " nan ",           " null ",    " unknown ",
      " unclear ", " unspecified ", " varies ", " variable ",      " various ", " default ",
      " tbd ",     " undisclosed ", " auto ",   " not applicable "};
  return one_of(words, kNothing);
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
    // `1,024`, `1 024`.
    const bool comma = (c == ',' || c == ' ') && i > 0 && is_digit(text[i - 1]) &&
                       i + 3 < text.size() && is_digit(text[i + 1]) && is_digit(text[i + 2]) &&
                       is_digit(text[i + 3]) && (i + 4 >= text.size() || !is_digit(text[i + 4]));
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
