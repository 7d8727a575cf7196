// What a cell about recomputation means: none, parts of every layer, or some of the layers whole.
#include <array>
#include <utility>

#include "base/text.h"
#include "validate/cells.h"
#include "validate/text.h"

namespace assay {
namespace {

std::optional<double> fraction_in(const std::string& cell) {
  const size_t slash = cell.find('/');
  if (slash == std::string::npos || slash == 0) return {};
  size_t first = slash;
  while (first > 0 && cell[first - 1] >= '0' && cell[first - 1] <= '9') --first;
  const std::optional<double> top = cell_number(cell.substr(first, slash - first));
  const std::optional<double> bottom = cell_number(cell.substr(slash + 1));
  if (!top || !bottom || *bottom <= 0 || *top < 0 || *top > *bottom) return {};
  return *top / *bottom;
}

// What MaxText's policies leave to be computed again: they say what is saved, and a down-projection
// is never needed twice (get_remat_policy of its decoders). `minimal` is no more than selective.
std::optional<RecomputeParts> saved_by_policy(const std::string& words) {
  const bool offloaded = says(words, "qkv proj offloaded");
  if (!says_any(words, {"save", "saves"}) && !offloaded) return {};
  RecomputeParts again;
  again.attention = !says(words, "with context");
  again.memory = 1;
  again.up = true;
  if (says_any(words,
               {"except mlp", "except mlpwi", "qkv out proj", "saves attention projections"}))
    return again;
  again.out = says(words, "qkv proj");
  again.qkv = says(words, "out proj");
  if (again.out == again.qkv) return {};
  return again;
}

// The parts of a layer that `selective: norm+act` names, as Megatron-Core's --recompute-modules
// calls them: `mlp` is a dense one, `moe` all experts. Norms and activations are about half of the
// traffic of a layer, an MLP's part with its norm somewhat more.
std::optional<RecomputeParts> named_parts(const std::string& words) {
  if (std::optional<RecomputeParts> saved = saved_by_policy(words)) return saved;
  RecomputeParts parts;
  bool named = false;
  if (says_any(words, {"norm", "norms", "layernorm", "rmsnorm", "act", "moe act", "swiglu",
                       "activation function"})) {
    parts.memory = 0.5;
    named = true;
  }
  if (says_any(words, {"mlp", "ffn"})) {
    parts.up = parts.down = true;
    named = true;
  }
  if (says_any(words, {"moe", "moe expert", "experts"}) && !says(words, "moe act")) {
    parts.experts = true;
    parts.memory = 0.6;
    named = true;
  }
  if (says_any(words, {"mla up proj", "up proj"})) parts.latent = named = true;
  if (says_any(words, {"core attn", "core attention", "attn", "attention"})) {
    parts.attention = named = true;
  }
  if (!named) return {};
  return parts;
}

// `50% of the layers`, `12.5 % of layers`.
std::optional<double> percent_in(const std::string& cell) {
  const size_t sign = cell.find('%');
  const std::string words = plain_words(cell);
  const bool alone = trimmed_cell(cell).size() == sign + 1;  // `25%`
  if (sign == std::string::npos || !(alone || says_any(words, {"layers", "blocks"}))) return {};
  size_t end = sign;
  while (end > 0 && cell[end - 1] == ' ') --end;
  size_t first = end;
  while (first > 0 && (is_digit(cell[first - 1]) || cell[first - 1] == '.')) --first;
  const std::optional<double> share = cell_number(cell.substr(first, end - first));
  if (!share || *share < 0 || *share > 100) return {};
  return *share / 100;
}

// `full on 10 of 80 layers`, `1 of every 4 layers`, `every 2nd layer`.
std::optional<double> share_of_layers(const std::string& words) {
  if (says_any(words, {"half of the layers", "half the layers", "every other layer",
                       "every second layer", "alternate layers", "every 2nd layer", "selective 2",
                       "selective ac option 2", "every 2 layers", "selective ac 2"})) {
    return 0.5;  // of them `selective 2` is torchtitan's
  }
  if (const auto n = count_after(words, {"ac freq"}, 1000)) return 1.0 / static_cast<double>(*n);
  // `one_in_four`, as OLMo calls it.
  constexpr std::array<std::pair<std::string_view, double>, 4> kOneIn = {
      {{"one in two", 2}, {"one in three", 3}, {"one in four", 4}, {"one in eight", 8}}};
  for (const auto& [said, of] : kOneIn) {
    if (says(words, said)) return 1 / of;
  }
  if (says_any(words, {"every 3rd layer", "every third layer", "every 3 layers"})) return 1.0 / 3;
  if (says_any(words, {"every 4th layer", "every fourth layer", "every 4 layers"})) return 0.25;
  const std::vector<std::string> all = split_any(words, " ");
  for (size_t i = 1; i + 1 < all.size(); ++i) {
    if (all[i] != "of" && all[i] != "in") continue;
    const std::optional<double> some = cell_number(all[i - 1]);
    const size_t at = i + 1 + (all[i + 1] == "every" || all[i + 1] == "the" ? 1 : 0);
    if (!some || at >= all.size()) continue;
    const std::optional<double> whole = cell_number(all[at]);
    if (at + 1 < all.size() && all[at + 1] == "layers" && whole && *some <= *whole && *whole > 0)
      return *some / *whole;
  }
  return {};
}

// `block, 10 layers`, `recompute_num_layers 4`. Megatron's `uniform` recomputes every layer, so
// many at a time, and so did its first way, every so many.
std::optional<int64_t> layers_named(const std::string& words) {
  if (says_any(words, {"uniform", "every"})) return {};
  for (const std::string_view unit : {"layers", "layer"}) {
    const std::optional<double> n = number_before(words, unit);
    if (n && *n >= 1) return static_cast<int64_t>(std::min(*n, 1e5));
  }
  return count_after(words, {"num layers", "recompute num layers", "block", "layers"}, 1e5);
}

// Whether the cell says that nothing is computed again. A switch of something else in it that is
// off (`use_reentrant=False`, `no offload`) does not.
bool denies_recompute(const std::string& words, const std::string& clauses) {
  if (without(words) || words == " 0 " || says_any(words, {"none", "not needed", "0 layers"}))
    return true;
  if (says_any(words, {"zero recompute", "everything saveable"})) return true;
  for (const std::string_view no : {" | no | ", " | off | ", " | false | "}) {
    if (clauses.starts_with(no)) return true;
  }
  const std::optional<bool> said =
      claims_any(clauses, {"gradient checkpointing", "activation checkpointing", "recompute",
                           "remat", "recomputation", "checkpointing", "activation recomputation"});
  if (said) return !*said;
  for (const std::string_view yes : {" yes ", " true ", " on ", " enabled ", " all "}) {
    if (words.starts_with(yes)) return false;
  }
  return says_any(words, {"no", "off", "false", "disabled"});
}

}  // namespace

RecomputeCell read_recompute(const std::string& cell) {
  RecomputeCell out;
  const std::string words = plain_words(cell), clauses = clause_words(cell);
  if (unstated(words)) return out;
  out.early_stop = claims_any(clauses, {"early stop", "earlystop"});
  if (affirms(clauses, {"offloaded", "offload"})) out.offload_activations = 0.5;
  // What is kept, by its name; what is not is computed again.
  const bool saved =
      says_any(words, {"dots saveable", "dots saved", "dots offloaded", "projection saved",
                       "checkpoint dots", "batch dims saveable"});
  const bool selective =
      saved || says_any(words, {"selective", "selectiveac", "ac op", "sac", "minimal", "save dot",
                                "save qkv proj", "qkv proj offloaded", "save out proj",
                                "save qkv out proj", "saves", "partial", "core attn"});
  const bool denied = denies_recompute(words, clauses);
  const bool full =
      claims_any(clauses, {"full", "full recompute", "full recomputation"}).value_or(false);
  // Whole layers, in so many words.
  const bool whole =
      words.ends_with(" on ") || words == " 1 " || words.starts_with(" on ") ||
      says_any(words, {"yes", "true", "uniform", "all", "layer", "layers", "enabled"});
  // The budget of PyTorch's compiler. Nobody wrote less than 0.75 of it: taken for none.
  if (says(words, "memory budget")) {
    out.kind = Recompute::kNone;
    return out;
  }
  const std::optional<RecomputeParts> parts = named_parts(words);
  out.fraction = share_of_layers(words);
  if (!out.fraction) out.fraction = percent_in(cell);
  if (!out.fraction && !selective) out.fraction = fraction_in(cell);
  if (out.fraction) {
    out.kind = Recompute::kFull;
  } else if (words.starts_with(" none ") || (denied && !selective && !full)) {
    out.kind = Recompute::kNone;
  } else if (full) {
    out.kind = Recompute::kFull;
  } else if (selective || (parts && (!whole || says(words, "only")))) {
    out.kind = Recompute::kSelective;
    if (!saved && !says_any(words, {"op", "per op"})) out.parts = parts;
  } else {
    // Everything else that people write here (`yes`, `block`, `uniform`, a remat policy that keeps
    // little) recomputes whole layers.
    out.kind = Recompute::kFull;
    out.guessed = !whole && !says(words, "block");
  }
  if (out.kind == Recompute::kFull && !out.fraction) out.layer_count = layers_named(words);
  return out;
}

std::optional<RecomputeParts> read_recompute_modules(const std::string& notes) {
  for (const std::string& part : split_any(notes, ";")) {
    const std::string words = plain_words(part);
    if (says(words, "recompute modules") || (says(words, "modules") && says(words, "recomputed"))) {
      return named_parts(words);
    }
  }
  return {};
}

RecomputeCell read_recompute_notes(const std::string& notes) {
  RecomputeCell out;
  const std::string words = clause_words(notes);
  // Megatron's flag without a granularity is the selective one.
  if (affirms(words, {"selective activation checkpointing", "selective activation recomputation",
                      "selective recompute", "selective activation recompute",
                      "recompute activations", "selective recomputation"})) {
    out.kind = Recompute::kSelective;
    return out;
  }
  const std::optional<bool> said =
      claims_any(words, {"use checkpoint true", "full activation checkpointing",
                         "rematerialization", "activation checkpointing", "gradient checkpointing",
                         "activation recomputation", "full recompute", "activation recompute"});
  const bool none = says_any(words, {"recompute none", "no recompute", "no recomputation",
                                     "use checkpoint false", "recomputation none"});
  if (said || none) out.kind = said.value_or(false) ? Recompute::kFull : Recompute::kNone;
  return out;
}

}  // namespace assay
