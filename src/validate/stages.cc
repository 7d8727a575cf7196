#include "validate/stages.h"

#include <cmath>
#include <numeric>
#include <string_view>
#include <vector>

#include "validate/text.h"

namespace assay {
namespace {

// The numbers of `[5, 7, 7, 7]` behind a phrase; none where there is no such list.
std::vector<int64_t> list_behind(std::string_view text, std::string_view phrase) {
  const size_t at = text.find(phrase);
  if (at == std::string_view::npos) return {};
  const size_t open = text.find('[', at + phrase.size());
  const size_t close = text.find(']', at);
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return {};
  if (open > at + phrase.size() + 4) return {};  // of something else
  std::vector<int64_t> out;
  for (const std::string& part : split_any(text.substr(open + 1, close - open - 1), ",")) {
    const std::optional<double> number = cell_number(part);
    if (!number || *number < 0 || *number > 1e5 || *number != std::floor(*number)) return {};
    out.push_back(static_cast<int64_t>(*number));
  }
  return out;
}

}  // namespace

std::optional<StageEnds> read_stage_ends(const std::string& text, int64_t layers, int64_t pp) {
  if (pp < 2) return std::nullopt;
  std::vector<int64_t> stages = list_behind(text, "layers/stage");
  if (stages.empty()) stages = list_behind(text, "layers per stage");
  if (static_cast<int64_t>(stages.size()) == pp) {
    const int64_t sum = std::accumulate(stages.begin(), stages.end(), int64_t{0});
    if (sum == layers + 2) --stages.front(), --stages.back();  // with embedding and head
    const bool all = sum == layers || sum == layers + 2;
    if (all && stages.front() > 0 && stages.back() > 0) {
      return StageEnds{stages.front(), stages.back()};
    }
    return std::nullopt;
  }
  const std::string words = clause_words(text);
  StageEnds ends;
  for (const std::string_view where : {"layers on the last stage", "layers in the last stage"}) {
    if (const auto n = number_before(words, where)) ends.last = std::llround(*n);
  }
  for (const std::string_view where : {"layers on the first stage", "layers in the first stage"}) {
    if (const auto n = number_before(words, where)) ends.first = std::llround(*n);
  }
  const bool some = ends.first > 0 || ends.last > 0;
  if (!some || ends.first < 0 || ends.last < 0 || ends.first + ends.last > layers - pp + 2) {
    return std::nullopt;
  }
  return ends;
}

}  // namespace assay
