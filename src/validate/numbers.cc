#include "validate/numbers.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "validate/text.h"

namespace assay {
namespace {

constexpr std::string_view kTimes = "\xc3\x97";  // the multiplication sign

template <size_t N>
bool among(const std::array<std::string_view, N>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

bool is_alpha(char c) { return lower(c) >= 'a' && lower(c) <= 'z'; }

// Units of another kind than any column's: no number of them is read.
constexpr std::array<std::string_view, 14> kOtherUnits = {
    "ms",  "msec", "milliseconds", "us", "min", "mins",    "minutes",
    "mib", "mb",   "tb",           "h",  "tib", "percent", "hours"};

// The number that begins at `from`, with commas between its thousands; `end` is behind it.
std::optional<double> number_at(std::string_view text, size_t from, size_t& end) {
  end = from;
  while (end < text.size() && (is_digit(text[end]) || text[end] == '.' || text[end] == ',')) ++end;
  return cell_number(text.substr(from, end - from));
}

}  // namespace

bool blank_number(std::string_view cell) {
  const std::string words = plain_words(cell);
  // Dashes of all lengths stand for nothing; other letters and digits beyond ASCII do not.
  if (words == " ") {
    for (size_t i = 0; i < cell.size(); ++i) {
      const bool dash = cell.substr(i, 2) == "\xe2\x80" || cell.substr(i, 3) == "\xe2\x88\x92";
      if (dash) i += 2;
      if (!dash && static_cast<unsigned char>(cell[i]) >= 0x80) return false;
    }
    return true;
  }
  return unstated(words) || words == " none " || words == " not available ";
}

bool denied_degree(std::string_view cell) {
  const std::string words = plain_words(cell);
  return words == " none " || words == " no " || words == " off " || words == " 0 " ||
         words == " disabled " || words == " false ";
}

std::string bare_number(std::string_view cell, std::string_view labels) {
  std::string out;
  for (size_t i = 0; i < cell.size(); ++i) {
    const std::string_view rest = cell.substr(i);
    const bool between = !out.empty() && is_digit(out.back()) && i + 1 < cell.size();
    if (rest.starts_with("\xc2\xa0")) {  // a blank that does not break
      out += ' ', i += 1;
    } else if (rest.starts_with("\xe2\x80\xaf") || rest.starts_with("\xe2\x80\x89")) {
      out += ' ', i += 2;  // narrower ones
    } else if (between && rest[0] == '\'' && is_digit(rest[1])) {
      continue;  // 8'192
    } else if (between && rest.starts_with("\xe2\x80\x99")) {
      i += 2;
    } else if (rest.starts_with("\xe2\x89\x88")) {  // about equal
      i += 2;
    } else {
      out += cell[i];
    }
  }
  std::string_view text = trimmed_cell(out);
  if (text.starts_with('~')) text = trimmed_cell(text.substr(1));
  size_t letters = 0;
  while (letters < text.size() && is_alpha(text[letters])) ++letters;
  const std::string word = lower(text.substr(0, letters));
  const std::vector<std::string> known = split_any(labels, " ");
  const bool about = word == "about" || word == "approx";
  if (letters > 0 && (about || std::find(known.begin(), known.end(), word) != known.end())) {
    const size_t digit = text.find_first_not_of(" =:_-.", letters);
    if (digit != std::string_view::npos && is_digit(text[digit])) text.remove_prefix(digit);
  }
  return std::string(text);
}

bool says_more(std::string_view cell, std::string_view units, bool each) {
  static constexpr std::array<std::string_view, 19> kMore = {
      "k",       "m",     "million", "thousand", "billion", "token", "tokens",
      "nodes",   "node",  "it",      "its",      "iter",    "iters", "iterations",
      "batches", "steps", "samples", "servers",  "hosts"};
  const std::string_view text = trimmed_cell(cell);
  size_t end = text.find_first_not_of("0123456789.,+- ");
  if (end == std::string_view::npos) return false;
  // `1e9`: the letter belongs to the number.
  const bool exponent =
      (text[end] == 'e' || text[end] == 'E') && end > 0 && text[end - 1] != ' ' &&
      end + 1 < text.size() &&
      std::string_view("0123456789+-").find(text[end + 1]) != std::string_view::npos;
  if (exponent) end = std::min(text.find_first_not_of("0123456789+-", end + 1), text.size());
  if (end == text.size()) return false;
  const std::vector<std::string> all = split_any(plain_words(text.substr(end)), " ");
  if (all.size() > 1 && all[0] == "per" && all[1] == "node") return true;
  if (text[end] == '(') return !all.empty() && among(kOtherUnits, all[0]);
  if (text[end] == '%') return true;
  // A product, unless it counts parts: `8x8`, but `64 x H100`.
  const bool sign = text.substr(end, 2) == kTimes;
  const bool times = sign || (!all.empty() && all[0] == "x");
  const size_t next = sign ? 0 : 1;
  if (times) return next >= all.size() || cell_number(all[next]).has_value();
  if (all.empty()) return true;
  const bool sum = std::find(all.begin(), all.end(), "total") != all.end() ||
                   std::find(all.begin(), all.end(), "all") != all.end();
  if (each && sum) return true;
  for (const std::string& unit : split_any(units, " ")) {
    if (all[0] == unit) return sum && unit != "b" && unit != "billion";
  }
  const bool attached = end > 0 && text[end - 1] != ' ' && !exponent;
  const bool others = all.size() > 1 && all[0] == "per" &&
                      (all[1] == "gpu" || all[1] == "device" || all[1] == "rank");
  return attached || others || among(kMore, all[0]) || among(kOtherUnits, all[0]);
}

std::optional<double> in_thousands(std::string_view cell) {
  const std::string_view text = trimmed_cell(cell.substr(0, cell.find('(')));
  const size_t end = text.find_first_not_of("0123456789.");
  if (end == 0 || end == std::string_view::npos || end > 6) return {};
  const std::string unit = squeezed(text.substr(end));
  constexpr double kThousand = 1024;
  double scale = 0;
  if (unit == "k" || unit == "ktokens" || unit == "ki") scale = kThousand;
  if (unit == "m" || unit == "mtokens" || unit == "mi") scale = kThousand * kThousand;
  const std::optional<double> count = cell_number(text.substr(0, end));
  if (scale == 0 || !count || std::floor(*count * scale) != *count * scale) return {};
  return *count * scale;
}

bool counts_tokens(std::string_view cell) {
  const std::vector<std::string> all = split_any(plain_words(cell), " ");
  return !all.empty() && is_digit(all[0][0]) &&
         std::any_of(all.begin(), all.end(), [](const std::string& word) {
           return word == "tok" || word == "toks" || word.ends_with("tok") ||
                  word.ends_with("token") || word.ends_with("tokens");
         });
}

std::optional<double> batch_in_tokens(std::string_view cell, std::optional<int64_t> seq,
                                      std::optional<int64_t> accelerators) {
  static constexpr std::array<std::string_view, 5> kEach = {"gpu", "device", "rank", "accelerator",
                                                            "chip"};
  static constexpr std::array<std::string_view, 6> kShares = {"node",   "replica", "host",
                                                              "server", "worker",  "dp"};
  if (!seq || !counts_tokens(cell)) return {};
  size_t end = 0;
  const std::string_view text = trimmed_cell(cell);
  std::optional<double> number = number_at(text, 0, end);
  if (!number || *number <= 0) return {};
  const size_t power = text.find_first_not_of("0123456789+", end + 1);
  if (end + 1 < text.size() && (text[end] == 'e' || text[end] == 'E') && power > end + 1) {
    number = cell_number(text.substr(0, power));  // 1.05e6
    end = std::min(power, text.size());
    if (!number) return {};
  }
  const std::vector<std::string> all = split_any(plain_words(text.substr(end)), " ");
  if (all.empty()) return {};
  const auto counted_in = [&](std::string_view letter, std::string_view name) {
    const std::string_view word = all[0];
    const bool unit = word.starts_with(letter) && (word.substr(1) == "i" || word.size() == 1 ||
                                                   counts_tokens("1 " + std::string(word)));
    return word == name || (unit && !word.starts_with("tok"));
  };
  const bool thousands = counted_in("k", "thousand"), millions = counted_in("m", "million");
  auto length = static_cast<double>(*seq);
  // Every accelerator reads so many, where the cell says that; a node's or a replica's share is no
  // batch.
  for (size_t i = 0; i + 1 < all.size(); ++i) {
    const std::string_view word = all[i], whose = all[i + 1];
    const bool tokens =
        word.ends_with("tok") || word.ends_with("token") || word.ends_with("tokens");
    if (word != "per" && !tokens) continue;
    if (whose == "per") continue;
    if (among(kEach, whose)) {
      if (!accelerators) return {};
      length /= static_cast<double>(*accelerators);
    } else if (word == "per" ? whose != "step" && whose != "batch" : among(kShares, whose)) {
      return {};
    }
  }
  // Powers of two where they come out even, as a batch of them does.
  const double binary = *number * (millions ? 1048576.0 : thousands ? 1024.0 : 1.0) / length;
  if (std::floor(binary) == binary && binary >= 1) return binary;
  const double sequences = std::round(*number * (millions ? 1e6 : thousands ? 1e3 : 1.0) / length);
  return sequences >= 1 ? std::optional(sequences) : std::nullopt;
}

std::optional<double> accelerators_in(std::string_view cell, std::optional<int64_t> per_node) {
  static constexpr std::array<std::string_view, 7> kNodes = {
      "node", "nodes", "server", "servers", "hosts", "machine", "machines"};
  static constexpr std::array<std::string_view, 6> kParts = {"gpu",  "gpus",    "accelerators",
                                                             "npus", "devices", "chips"};
  std::string text;
  for (size_t i = 0; i < cell.size(); ++i) {
    const bool sign = cell.substr(i, 2) == kTimes;
    text += sign || cell[i] == '*' ? 'x' : lower(cell[i]);
    if (sign) ++i;
  }
  size_t at = 0, factors = 0;
  double product = 1;
  bool nodes = false, parts = false;
  for (bool more = true; more;) {
    const std::optional<double> n = number_at(text, at, at);
    if (!n || *n < 1) break;
    product *= *n, ++factors;
    more = false;
    for (;;) {  // what it counts, and whether another factor follows
      while (at < text.size() && text[at] == ' ') ++at;
      size_t end = at;
      while (end < text.size() && is_alpha(text[end])) ++end;
      const std::string_view word = std::string_view(text).substr(at, end - at);
      if (word == "x") {
        at = std::min(text.find_first_not_of(' ', end), text.size());
        more = at < text.size() && is_digit(text[at]);
        break;
      }
      if (!among(kNodes, word) && !among(kParts, word)) break;
      nodes = nodes || among(kNodes, word);
      parts = parts || among(kParts, word);
      at = end;
    }
  }
  if (factors > 1) return product;
  if (factors == 0 || !nodes || parts) return {};
  // `4 nodes (32 GPUs)`, `4 nodes of 8 GPUs`.
  const std::string rest = plain_words(std::string_view(text).substr(at));
  for (const std::string_view part : kParts) {
    const std::optional<double> n = number_before(rest, part);
    if (n) return says_any(rest, {"per", "each", "of", "with", "a"}) ? product * *n : *n;
  }
  if (!per_node) return {};
  return product * static_cast<double>(*per_node);
}

std::optional<bool> read_switch(std::string_view cell, std::string_view yes, std::string_view no) {
  const std::string words = plain_words(cell);
  const std::vector<std::string> all = split_any(words, " ");
  if (all.empty()) return {};
  static constexpr std::array<std::string_view, 4> kYes = {"1", "yes", "y", "true"};
  static constexpr std::array<std::string_view, 4> kNo = {"0", "no", "n", "false"};
  static constexpr std::array<std::string_view, 4> kDenials = {"not", "non", "without", "un"};
  // A denial of what the column asks: `not gated`; of something else it says nothing.
  const std::vector<std::string> says_yes = split_any(yes, " "), says_no = split_any(no, " ");
  const auto in = [](const std::vector<std::string>& list, const std::string& word) {
    return std::find(list.begin(), list.end(), word) != list.end();
  };
  for (size_t i = 0; i < all.size(); ++i) {
    const bool denied = i > 0 && (among(kDenials, all[i - 1]) || all[i - 1] == "no");
    if (in(says_yes, all[i])) return !denied;
  }
  if (among(kYes, all[0])) return true;
  if (among(kNo, all[0])) return false;
  for (const std::string& word : all) {
    if (in(says_no, word)) return false;
  }
  return {};
}

}  // namespace assay
