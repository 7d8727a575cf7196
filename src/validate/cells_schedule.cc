// How a pipeline's stages are cut and in what order they run.
#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "validate/cells.h"
#include "validate/text.h"

namespace assay {
namespace {

constexpr double kMostChunks = 64;  // of a stage; nobody has so many layers in one

// The first number of a few words, also where letters stand at it: `VP2`, `x2`, `two`.
std::optional<int64_t> small_count(const std::string& words) {
  static constexpr std::array<std::pair<std::string_view, int64_t>, 6> kNames = {
      {{"one", 1}, {"two", 2}, {"three", 3}, {"four", 4}, {"five", 5}, {"six", 6}}};
  for (const std::string& word : split_any(words, " |")) {
    for (const auto& [name, n] : kNames) {
      if (word == name) return n;
    }
    const size_t digit = word.find_first_of("0123456789");
    if (digit == std::string::npos) continue;
    const std::optional<double> n = cell_number(word.substr(digit));
    if (n && *n >= 1 && *n <= kMostChunks) return static_cast<int64_t>(*n);
  }
  return {};
}

std::optional<double> layers_of_chunk(const std::string& words) {
  const std::vector<std::string> all = split_any(words, " ");
  if (all.size() == 2 && all[1].starts_with("layer")) return cell_number(all[0]);
  for (const std::string_view flag :
       {"layers per virtual pipeline stage", "layers per virtual stage", "layers per chunk",
        "layers per model chunk", "layers a chunk"}) {
    const std::optional<double> before = number_before(words, flag),
                                after = number_after(words, flag);
    const std::optional<double> n = before ? before : after;
    if (n && *n >= 1) return n;
  }
  return {};
}

}  // namespace

ChunksCell read_chunks(const std::string& cell) {
  ChunksCell out;
  const std::string words = clause_words(cell), plain = plain_words(cell);
  if (unstated(plain)) return out;
  out.told = true;
  out.layers_each = layers_of_chunk(plain);
  if (out.layers_each) return out;
  const bool off = says_any(words, {"| off", "| none", "| no", "| false", "| disabled", "| 0 |"}) ||
                   cell_number(cell).value_or(1) < 1;
  if (off || claims_any(words, {"interleaved", "interleaving"}) == false) {
    out.chunks = 1;
    return out;
  }
  out.chunks = small_count(plain);
  out.interleaved = !out.chunks && says(plain, "interleaved");
  return out;
}

ChunksCell read_chunks_notes(const std::string& notes) {
  ChunksCell out;
  const std::string words = clause_words(notes);
  out.layers_each = layers_of_chunk(words);
  out.chunks =
      count_after(words,
                  {"vpp", "vpp size", "vpp degree", "virtual pipeline", "virtual pipeline size",
                   "virtual pipeline degree", "virtual pipeline parallel size",
                   "virtual pipeline parallelism", "virtual pipeline model parallel size"},
                  kMostChunks);
  const std::optional<double> stages = number_before(words, "virtual stages");
  if (stages && *stages >= 1 && *stages < kMostChunks) out.chunks = static_cast<int64_t>(*stages);
  if (out.chunks || out.layers_each) return out;
  const std::optional<bool> interleaved =
      claims_any(words, {"interleaved 1f1b", "interleaved1f1b", "interleaved schedule",
                         "interleaved pipeline", "interleaved", "interleaving"});
  const std::optional<bool> cut = claims_any(
      words, {"vpp", "virtual pipeline", "virtual stages", "virtual pipelining", "virtual stage"});
  // `1F1B` by itself is the plain one; what only runs beside it may be either.
  bool plain = interleaved == false || cut == false;
  for (const std::string& clause : clauses_of(words)) {
    const bool beside = says_any(clause, {"interleaved", "overlapped", "overlap", "zero bubble"});
    plain = plain || (says_any(clause, {"1f1b", "gpipe"}) && !interleaved && !cut && !beside);
  }
  if (plain) out.chunks = 1;
  out.interleaved = !plain && affirms(words, {"interleaved 1f1b", "interleaved1f1b",
                                              "interleaved schedule", "interleaved pipeline"});
  return out;
}

}  // namespace assay
