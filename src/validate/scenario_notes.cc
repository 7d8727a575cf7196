#include "validate/scenario_notes.h"

#include "validate/text.h"

namespace assay {
namespace {

constexpr size_t kFewWords = 5;

// Clauses that state a thing: short, and not about what it is compared with.
std::vector<std::string> statements(const Run& run) {
  std::vector<std::string> out;
  for (std::string& clause : clauses_of(clause_words(run.notes + " ; " + run.overlap_notes))) {
    const bool compares = says_any(clause, {"vs", "versus", "than", "unlike", "baseline", "instead",
                                            "or", "against", "compared"});
    if (!compares && split_any(clause, " ").size() <= kFewWords) out.push_back(std::move(clause));
  }
  return out;
}

bool about_attention(const std::string& clause) {
  return claims_any(clause,
                    {"flash attention", "flash attn", "flashattention", "flashattention2", "fa2",
                     "fa3", "fa4", "flash attention 2", "flash attention 3", "sdpa", "xformers"}) ||
         affirms(clause, {"eager attention", "attn implementation eager", "unfused attention",
                          "attention implementation eager", "naive attention", "math attention"});
}

bool about_sharding(const std::string& clause) {
  return names_zero(clause) || says_any(clause, {"fsdp", "fsdp2", "hsdp", "full shard", "ddp",
                                                 "fully sharded", "distributed optimizer"});
}

}  // namespace

Run with_notes(Run run) {
  const bool sharding = stated_sharding(run).zero.has_value() || !unstated(plain_words(run.zero));
  const bool attention = read_flash(run.flash_attention).has_value();
  for (const std::string& clause : statements(run)) {
    const std::string_view text = trimmed_cell(clause);
    if (!sharding && about_sharding(clause) && read_sharding(std::string(text), true).zero) {
      run.zero = text;
    }
    if (!attention && about_attention(clause)) run.flash_attention = text;
  }
  return run;
}

Remarks remarks_of(const Run& run) {
  Remarks out = read_remarks(run.free_text());
  if (!out.base_weight_bytes) {
    out.base_weight_bytes = read_base_weight(told_task(run.task, run.framework, run.precision) +
                                             " ; " + run.model_name);
  }
  if (!out.multi_token_prediction) {
    out.multi_token_prediction = claims(clause_words(run.model_name), "mtp");
  }
  return out;
}

}  // namespace assay
