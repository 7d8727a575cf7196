#include "validate/documents.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "base/text.h"
#include "validate/text.h"

namespace assay {
namespace {

// Data by name: tokens of the document that a token is in, which is above the mean of documents,
// since long ones hold more of them. Rounded, from memory; attention over such documents is a few
// percent of a step either way. `wikitext` is cut by paragraph.
struct NamedData {
  std::string_view name;
  int64_t tokens;
};
constexpr std::array kNamedData = {
    NamedData{"squad", 200}, NamedData{"alpaca", 150},     NamedData{"dolly", 300},
    NamedData{"tulu", 900},  NamedData{"tulu3", 900},      NamedData{"wikitext", 200},
    NamedData{"dclm", 2000}, NamedData{"openhermes", 700}, NamedData{"longwriter", 10000},
};

// Data that nobody names: instructions and answers, and pages of the web. Assumed.
constexpr int64_t kUsualDocument = 500, kUsualPage = 2000;
// The document that a token is in over the mean of documents. Assumed: 1 where all are alike, 2
// where lengths are spread as those of an exponential distribution.
constexpr double kLongerThanMean = 1.5;

// A number in letters, as people write small ones.
std::optional<double> spelled(std::string_view word) {
  constexpr std::array<std::string_view, 11> kWords = {
      "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"};
  const auto found = std::find(kWords.begin(), kWords.end(), word);
  if (found == kWords.end()) return std::nullopt;
  return 2.0 + static_cast<double>(found - kWords.begin());
}

// `21.6 per pack`, `1,200 per pack`, `six per pack`: the number in front of a phrase. Nothing for
// parts of words, negative numbers and powers.
std::optional<double> decimal_before(std::string_view text, size_t at) {
  const std::string_view before = trimmed_cell(text.substr(0, at));
  const size_t space = before.find_last_of(" (");
  const std::string_view last = space == std::string_view::npos ? before : before.substr(space + 1);
  if (const std::optional<double> n = spelled(last)) return n;
  const size_t start = before.find_last_not_of("0123456789.,");
  if (start == std::string_view::npos) return cell_number(before);
  if (before[start] != ' ' && before[start] != '(') return std::nullopt;
  return cell_number(before.substr(start + 1));
}

// Documents in one sequence, where that is told: `21.6 per pack`, `2.4 sequences per 128K row`,
// `about six documents to a 32,768-token pack`.
double documents_told(std::string text) {
  for (char& c : text) c = lower(c);
  constexpr size_t kNear = 20;  // what they are in stands close behind
  constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kPhrases = {
      {{"", "per "},
       {"sequences ", "per "},
       {"documents ", "per "},
       {"samples ", "per "},
       {"examples ", "per "},
       {"sequences ", "to a "},
       {"documents ", "to a "},
       {"samples ", "to a "},
       {"examples ", "to a "}}};
  for (const auto& [what, in] : kPhrases) {
    const std::string phrase = std::string(what) + std::string(in);
    for (size_t at = text.find(phrase); at != std::string::npos; at = text.find(phrase, at + 1)) {
      const std::string behind = text.substr(at + phrase.size(), kNear);
      const bool in_one = behind.find("pack") != std::string::npos ||
                          behind.find("row") != std::string::npos ||
                          (what == "documents " && behind.starts_with("sequence"));
      const std::optional<double> count = in_one ? decimal_before(text, at) : std::nullopt;
      if (count && *count > 1 && *count < 1e6) return *count;
    }
  }
  return 0;
}

// `documents of 1200 tokens`, `1200 tokens per document`.
int64_t tokens_told(const std::string& words) {
  std::optional<double> n = number_before(words, "tokens per document");
  if (!n) n = number_before(words, "tokens a document");
  if (!n) n = number_after(words, "documents of");
  if (!n) n = number_after(words, "mean document");
  return n && *n >= 1 && *n < 1e9 ? std::llround(*n) : 0;
}

}  // namespace

PackedCell read_packed(const std::string& text) {
  PackedCell out;
  const std::string words = clause_words(text);
  out.packed =
      claims_any(words, {"packed", "packs", "packing", "sequence packing", "sample packing",
                         "packed sequence", "packed sequences", "offline packed"});
  if (says_any(words, {"unpacked", "padded to max length", "padded to the maximum length",
                       "one document per sequence", "crosses document", "crosses documents",
                       "attends across documents", "attention across documents"})) {
    out.packed = false;
  }
  const std::optional<bool> masked =
      claims_any(words, {"document mask", "document masking", "intra document",
                         "intra document masking", "per document mask", "block diagonal mask",
                         "block diagonal attention", "block causal mask", "thd"});
  out.apart = masked.value_or(says_any(
      words, {"does not cross documents", "attention inside each sample",
              "attention inside each document", "kept to documents", "no cross document attention",
              "attention is short", "attention nearly free", "packed short documents"}));
  out.documents = documents_told(text);
  for (const NamedData& d : kNamedData) {
    if (says(words, d.name)) out.tokens = d.tokens;
  }
  if (const int64_t told = tokens_told(words)) out.tokens = told;
  return out;
}

int64_t packed_document(const PackedCell& cell, int64_t seq, bool tuning, int64_t by_default) {
  const bool apart = cell.apart || (by_default > 0 && cell.packed.value_or(true));
  if (!apart || cell.packed == false) return 0;
  int64_t tokens = cell.tokens;
  if (tokens == 0 && cell.documents > 0) {
    tokens = std::llround(kLongerThanMean * static_cast<double>(seq) / cell.documents);
  }
  if (tokens == 0) tokens = by_default > 0 ? by_default : tuning ? kUsualDocument : kUsualPage;
  return tokens < seq ? std::max<int64_t>(1, tokens) : 0;
}

int64_t shared_sequence(int64_t seq, int64_t ranks) {
  if (ranks <= 1 || seq <= ranks) return seq;
  const int64_t over = seq % ranks;
  return over == 0 ? seq : seq - over + ranks;
}

}  // namespace assay
