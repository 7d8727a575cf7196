// What a cell about recomputation means: none, parts of every layer, or some of the layers whole.
#include <algorithm>
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
  again.up = again.experts = again.saves = true;
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
  const bool function = says_any(words, {"mlp activation function", "mlp activation func"});
  if (says_any(words, {"norm", "norms", "layernorm", "rmsnorm", "act", "moe act", "swiglu",
                       "activation function", "activation func"})) {
    parts.memory = 0.5;
    named = true;
  }
  if (says_any(words, {"mlp", "ffn"}) && !function) {
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

// Small numbers in digits: `one of four layers`, `every 2nd layer`, `every other layer`.
std::string in_digits(const std::string& words) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 18> kNames = {
      {{"one", "1"},
       {"two", "2"},
       {"three", "3"},
       {"four", "4"},
       {"five", "5"},
       {"six", "6"},
       {"eight", "8"},
       {"other", "2"},
       {"second", "2"},
       {"2nd", "2"},
       {"third", "3"},
       {"3rd", "3"},
       {"fourth", "4"},
       {"4th", "4"},
       {"sixth", "6"},
       {"6th", "6"},
       {"eighth", "8"},
       {"8th", "8"}}};
  std::string out = " ";
  for (const std::string& word : split_any(words, " ")) {
    const auto name =
        std::find_if(kNames.begin(), kNames.end(), [&](const auto& n) { return n.first == word; });
    out += (name == kNames.end() ? word : std::string(name->second)) + " ";
  }
  return out;
}

// `full on 10 of 80 layers`, `1 of every 4 layers`, `every 2nd layer`, OLMo's `one_in_four`.
std::optional<double> share_of_layers(const std::string& written) {
  if (trimmed_cell(written) == "half" ||
      says_any(written, {"half of the layers", "half the layers", "alternate layers", "selective 2",
                         "selective ac option 2", "selective ac 2"})) {
    return 0.5;  // of them `selective 2` is torchtitan's
  }
  std::string words = in_digits(written);
  for (size_t at; (at = words.find(" out of ")) != std::string::npos;) words.replace(at, 8, " of ");
  if (const auto n = count_after(words, {"ac freq"}, 1000)) return 1.0 / static_cast<double>(*n);
  const std::vector<std::string> all = split_any(words, " ");
  const auto layers = [&](size_t i) {
    return i < all.size() &&
           (all[i] == "layers" || all[i] == "layer" || all[i] == "blocks" || all[i] == "block");
  };
  for (size_t i = 0; i + 1 < all.size(); ++i) {
    const std::optional<double> next = cell_number(all[i + 1]);
    if (all[i] == "every" && next && *next > 0 && layers(i + 2) &&
        words.find(" 1 of every ") == std::string::npos) {
      return 1 / *next;
    }
    if (i == 0 || (all[i] != "of" && all[i] != "in")) continue;
    const std::optional<double> some = cell_number(all[i - 1]);
    const size_t at = i + 1 + (all[i + 1] == "every" || all[i + 1] == "the" ? 1 : 0);
    if (!some || at >= all.size()) continue;
    const std::optional<double> whole = cell_number(all[at]);
    const bool olmo = all[i] == "in" && *some == 1;
    const bool alone = i == 1 && at + 1 == all.size();  // `10 of 32`
    if ((olmo || alone || layers(at + 1)) && whole && *some <= *whole && *whole > 0)
      return *some / *whole;
  }
  return {};
}

// `12/32 layers` as `12 of 32 layers`.
std::string with_ratios(const std::string& cell) {
  std::string out;
  for (size_t i = 0; i < cell.size(); ++i) {
    const bool ratio = cell[i] == '/' && i > 0 && i + 1 < cell.size() && is_digit(cell[i - 1]) &&
                       is_digit(cell[i + 1]);
    out += ratio ? std::string(" of ") : std::string(1, cell[i]);
  }
  return out;
}

// `block, 10 layers`, `recompute_num_layers 4`. Megatron's `uniform` recomputes every layer, so
// many at a time, and so did its first way, every so many; one layer at a time is that default.
std::optional<int64_t> layers_named(const std::string& words) {
  if (says_any(words, {"uniform", "every", "checkpoint num layers"})) return {};
  if (says_any(words, {"full 1 layer", "full recompute num layers 1", "full num layers 1"}))
    return {};
  for (const std::string_view unit : {"layers", "layer"}) {
    const std::optional<double> n = number_before(words, unit);
    if (n && *n >= 1) return static_cast<int64_t>(std::min(*n, 1e5));
  }
  return count_after(words, {"num layers", "recompute num layers", "block", "layers"}, 1e5);
}

// `all but the last 4 layers`, `all except 4 layers`.
std::optional<int64_t> layers_left(const std::string& words) {
  if (!says_any(words, {"layers", "layer", "blocks"})) return {};
  std::string near = " ";
  for (const std::string& word : split_any(words, " ")) {
    if (word != "the" && word != "last" && word != "first" && word != "for") near += word + " ";
  }
  return count_after(near, {"all but", "all except", "all layers but", "all layers except"}, 1e5);
}

// A cell about what goes to the host instead: `activation offloading`.
bool only_offloads(const std::string& words) {
  static constexpr std::array<std::string_view, 14> kWords = {
      "activation", "activations", "offload", "offloaded", "offloading", "cpu",     "host",
      "to",         "the",         "of",      "all",       "async",      "enabled", "on"};
  const std::vector<std::string> all = split_any(words, " ");
  return words.find(" offload") != std::string::npos &&
         std::all_of(all.begin(), all.end(), [&](const std::string& word) {
           return std::find(kWords.begin(), kWords.end(), word) != kWords.end();
         });
}

// Whether the cell says that nothing is computed again. A switch of something else in it that is
// off (`use_reentrant=False`, `no offload`) does not.
bool denies_recompute(const std::string& words, const std::string& clauses) {
  if (without(words) || words == " 0 " || words == " n " || words == " never " ||
      says_any(words, {"none", "not needed", "0 layers", "nothing recomputed"})) {
    return true;
  }
  if (says_any(words, {"zero recompute", "everything saveable"})) return true;
  for (const std::string_view no : {" | no | ", " | off | ", " | false | "}) {
    if (clauses.starts_with(no)) return true;
  }
  const std::optional<bool> said =
      claims_any(clauses, {"gradient checkpointing", "activation checkpointing", "recompute",
                           "remat", "recomputation", "checkpointing", "activation recomputation",
                           "recompute activations"});
  if (said) return !*said;
  for (const std::string_view yes : {" yes ", " true ", " on ", " enabled ", " all "}) {
    if (words.starts_with(yes)) return false;
  }
  // Whole layers are named: what is off is something else.
  if (says_any(words, {"uniform", "block", "blocks", "layer", "layers", "per layer"})) return false;
  return says_any(words, {"no", "off", "false", "disabled"});
}

}  // namespace

RecomputeCell read_recompute(const std::string& cell) {
  RecomputeCell out;
  const std::string words = plain_words(cell), clauses = clause_words(cell);
  if (unstated(words)) return out;
  out.early_stop = claims_any(clauses, {"early stop", "earlystop"});
  if (affirms(clauses, {"offloaded", "offload"})) out.offload_activations = 0.5;
  if (only_offloads(words)) {
    out.kind = Recompute::kNone;
    out.offload_activations = 1;
    return out;
  }
  // What is kept, by its name; what is not is computed again.
  const bool saved =
      says_any(words, {"dots saveable", "dots saved", "dots offloaded", "projection saved",
                       "checkpoint dots", "batch dims saveable"});
  const bool selective =
      saved ||
      says_any(words, {"selective", "selectiveac", "sel", "select", "dots", "ac op", "sac",
                       "minimal", "save dot", "save qkv proj", "qkv proj offloaded",
                       "save out proj", "save qkv out proj", "saves", "core attn"}) ||
      affirms(clauses, {"recompute activations"});
  const bool denied = denies_recompute(words, clauses);
  const bool full =
      claims_any(clauses, {"full", "full recompute", "full recomputation"}).value_or(false);
  // Whole layers, in so many words.
  const bool whole =
      words.ends_with(" on ") || words == " 1 " || words.starts_with(" on ") ||
      words == " gradient checkpointing " || words == " activation checkpointing " ||
      says_any(words, {"yes", "true", "uniform", "all", "layer", "layers", "enabled"});
  // The budget of PyTorch's compiler. Nobody wrote less than 0.75 of it: taken for none.
  if (says(words, "memory budget")) {
    out.kind = Recompute::kNone;
    return out;
  }
  const std::optional<RecomputeParts> parts = named_parts(words);
  out.fraction = share_of_layers(plain_words(with_ratios(cell)));
  if (!out.fraction) out.fraction = percent_in(cell);
  if (const auto share = cell_number(cell); share && *share > 0 && *share < 1) out.fraction = share;
  out.layers_kept = layers_left(words);
  // Part of the layers where they are counted, else part of each.
  const bool partial = says(words, "partial");
  if (partial && !out.fraction) out.layer_count = layers_named(words);
  const bool counted = out.fraction || out.layers_kept || out.layer_count;
  if (!out.fraction && !selective) out.fraction = fraction_in(cell);
  if (counted) {
    out.kind = Recompute::kFull;
  } else if (words.starts_with(" none ") || (denied && !selective && !partial && !full)) {
    out.kind = Recompute::kNone;
  } else if (full) {
    out.kind = Recompute::kFull;
  } else if (selective || partial || (parts && (!whole || says(words, "only")))) {
    out.kind = Recompute::kSelective;
    if (!saved && !says_any(words, {"op", "per op"})) out.parts = parts;
  } else {
    // Everything else that people write here (`yes`, `block`, `uniform`, a remat policy that keeps
    // little) recomputes whole layers.
    out.guessed = !whole && !says(words, "block");
    const std::string letters = squeezed(cell);
    const auto has = [&](const char* part) { return letters.find(part) != std::string::npos; };
    const bool known = has("ckpt") || has("checkpoint") || has("recomp") || has("remat") ||
                       has("sav") || has("custom") || has("auto") || has("policy") ||
                       has("reentrant") || has("enable") || has("fullac") ||
                       says_any(words, {"ac", "gc", "y", "blocks", "whole", "granular"});
    out.unreadable = out.guessed && !out.fraction && !known;
    if (!out.unreadable) out.kind = Recompute::kFull;
  }
  if (out.kind == Recompute::kFull && !counted) out.layer_count = layers_named(words);
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
  // Whoever wrote them left the cell blank on purpose.
  for (const std::string& clause : clauses_of(words)) {
    const bool about = says_any(clause, {"checkpointing", "recompute", "recomputation", "ac"});
    if (about && says(clause, "left blank")) return out;
  }
  // `recompute 10 layers per stage`, `activation checkpointing every 2nd layer`.
  for (const std::string& clause : clauses_of(words)) {
    const bool about = affirms(clause, {"recompute", "recomputed", "recomputing", "recomputation",
                                        "activation checkpointing", "gradient checkpointing"});
    if (!about || says(clause, "selective")) continue;
    out.fraction = share_of_layers(clause);
    const std::vector<std::string> all = split_any(in_digits(clause), " ");
    for (size_t k = 0; k + 2 < all.size(); ++k) {
      const std::optional<double> n = cell_number(all[k + 1]);
      const bool layers = all[k + 2] == "layers" || all[k + 2] == "layer";
      if (all[k].starts_with("recomput") && layers && n && *n >= 1)
        out.layer_count = static_cast<int64_t>(std::min(*n, 1e5));
    }
    if (!out.fraction && !out.layer_count) continue;
    out.kind = Recompute::kFull;
    return out;
  }
  // Megatron's flag without a granularity is the selective one.
  if (affirms(words, {"recompute selective", "recompute granularity selective", "selective ac",
                      "ac selective", "selective activation checkpointing",
                      "selective activation recomputation", "selective recompute",
                      "selective activation recompute", "recompute activations",
                      "selective recomputation"})) {
    out.kind = Recompute::kSelective;
    return out;
  }
  const std::optional<bool> said =
      claims_any(words, {"use checkpoint true", "full activation checkpointing",
                         "rematerialization", "activation checkpointing", "gradient checkpointing",
                         "recompute full", "recompute granularity full", "recomputation full",
                         "ac full", "full ac", "full recomputation", "activation recomputation",
                         "full recompute", "activation recompute"});
  const bool none = says_any(words, {"recompute none", "no recompute", "no recomputation",
                                     "use checkpoint false", "recomputation none"});
  if (said || none) out.kind = said.value_or(false) ? Recompute::kFull : Recompute::kNone;
  return out;
}

}  // namespace assay
