#include "validate/documents.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "validate/text.h"

namespace assay {
namespace {

// Data by name: tokens of the document that a token is in, which is above the mean of documents,
// since long ones hold more of them. Rounded, from the data sets' own cards; `wikitext` is cut by
// paragraph.
struct NamedData {
  std::string_view name;
  int64_t tokens;
};
constexpr std::array kNamedData = {
    NamedData{"squad", 200}, NamedData{"alpaca", 150},     NamedData{"dolly", 300},
    NamedData{"tulu", 900},  NamedData{"tulu3", 900},      NamedData{"wikitext", 200},
    NamedData{"dclm", 2000}, NamedData{"openhermes", 700}, NamedData{"longwriter", 10000},
};

// Fine-tuning data that nobody names.
constexpr int64_t kUsualDocument = 500;
// The document that a token is in, over the mean of documents: their lengths differ by about two.
constexpr double kLongerThanMean = 1.5;

// `21.6 per pack`: the number, with its decimals, in front of a phrase.
std::optional<double> decimal_before(std::string_view text, std::string_view phrase) {
  const size_t at = text.find(phrase);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view before = trimmed_cell(text.substr(0, at));
  const size_t start = before.find_last_not_of("0123456789.");
  return cell_number(start == std::string_view::npos ? before : before.substr(start + 1));
}

}  // namespace

PackedCell read_packed(const std::string& text) {
  PackedCell out;
  const std::string words = clause_words(text);
  out.packed =
      claims_any(words, {"packed", "packs", "packing", "sequence packing", "offline packed"});
  out.apart = affirms(
      words, {"attention does not cross", "does not cross documents",
              "attention inside each sample", "inside each document", "attention kept to documents",
              "kept to documents", "thd", "document mask", "document masking", "intra document",
              "block diagonal mask", "attention is short"});
  for (const std::string_view unit :
       {"per pack", "sequences per", "documents per sequence", "samples per pack"}) {
    if (const auto count = decimal_before(text, unit); count && *count > 1 && *count < 1e6) {
      out.documents = *count;
    }
  }
  for (const NamedData& d : kNamedData) {
    if (says(words, d.name)) out.tokens = d.tokens;
  }
  return out;
}

int64_t packed_document(const PackedCell& cell, int64_t seq, int64_t by_default) {
  const bool apart = cell.apart || (by_default > 0 && cell.packed.value_or(true));
  if (!apart || cell.packed == false) return 0;
  int64_t tokens = cell.tokens;
  if (cell.documents > 0) {
    tokens = std::llround(kLongerThanMean * static_cast<double>(seq) / cell.documents);
  }
  if (tokens == 0) tokens = by_default > 0 ? by_default : kUsualDocument;
  return tokens < seq ? std::max<int64_t>(1, tokens) : 0;
}

}  // namespace assay
