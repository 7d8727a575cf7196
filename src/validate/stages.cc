#include "validate/stages.h"

#include <cmath>
#include <numeric>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "perf/pipeline.h"
#include "validate/text.h"

namespace assay {
namespace {

// The numbers of `[5, 7, 7, 7]` behind a phrase; none where there is no such list.
std::vector<int64_t> list_behind(std::string text, std::string_view phrase) {
  for (char& c : text) c = lower(c);
  const size_t at = text.find(phrase);
  if (at == std::string::npos) return {};
  const size_t open = text.find('[', at + phrase.size());
  const size_t close = text.find(']', at);
  if (open == std::string::npos || close == std::string::npos || close < open) return {};
  if (open > at + phrase.size() + 4) return {};  // of something else
  std::vector<int64_t> out;
  for (const std::string& part : split_any(text.substr(open + 1, close - open - 1), ",")) {
    const std::optional<double> number = cell_number(part);
    if (!number || *number < 0 || *number > 1e5 || *number != std::floor(*number)) return {};
    out.push_back(static_cast<int64_t>(*number));
  }
  return out;
}

// `7 layers on the last stage`, `last stage has 7 layers`, `--decoder-last-pipeline-num-layers 7`.
std::optional<int64_t> stated_of(const std::string& end, const std::string& clause,
                                 int64_t layers) {
  std::optional<double> n = number_before(clause, "layers on the " + end + " stage");
  if (!n) n = number_before(clause, "layers in the " + end + " stage");
  if (!n) n = number_after(clause, end + " stage has");
  if (!n) n = number_after(clause, "decoder " + end + " pipeline num layers");
  if (!n || *n < 1 || *n > static_cast<double>(layers) || *n != std::floor(*n)) return std::nullopt;
  return static_cast<int64_t>(*n);
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
  StageEnds ends;
  for (const std::string& clause : clauses_of(clause_words(text))) {
    if (says_any(clause, {"recompute", "recomputed", "offload", "offloaded", "checkpoint", "frozen",
                          "not"})) {
      continue;  // of something else
    }
    ends.first = stated_of("first", clause, layers).value_or(ends.first);
    ends.last = stated_of("last", clause, layers).value_or(ends.last);
  }
  const bool stated = ends.first > 0 || ends.last > 0;
  if (!stated || !Stages{layers, pp, ends.first, ends.last}.possible()) return std::nullopt;
  return ends;
}

StageEnds balanced_ends(const Model& m, int64_t pp) {
  const double h = static_cast<double>(m.hidden);
  const double layer = h * (4 * h + 3 * static_cast<double>(m.ffn));
  const double head = h * static_cast<double>(m.vocab);
  const double all = static_cast<double>(m.layers) * layer + head;
  StageEnds ends;
  double work = 0;
  int64_t stage = 0;
  for (int64_t i = 0; i < m.layers; ++i) {
    work += layer;
    ends.first += stage == 0 ? 1 : 0;
    ends.last += stage == pp - 1 ? 1 : 0;
    if (stage < pp - 1 && work > all * static_cast<double>(stage + 1) / static_cast<double>(pp))
      ++stage;
  }
  ends.last = std::max<int64_t>(1, ends.last);  // a stage of nothing but the head is not described
  return ends;
}

}  // namespace assay
