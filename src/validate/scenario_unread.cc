// Substitutions that would otherwise go without a word: a format that the part has no unit for, a
// task or sharding that nobody knows, a framework known by one word of its name.
#include "validate/scenario_unread.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "validate/text.h"

namespace assay {
namespace {

// The part's peak for a format; zero: it has no such unit, and another runs in its place.
FlopRate unit_for(const Accelerator& a, Precision p) {
  switch (p) {
    case Precision::kNvfp4:
    case Precision::kMxfp4:
      return a.fp4;
    case Precision::kMxfp8:
    case Precision::kFp8:
      return a.fp8;
    case Precision::kInt8:
      return a.int8;
    case Precision::kBf16:
      return a.bf16;
    default:
      return a.fp32;
  }
}

bool known_task(const std::string& task) {
  const std::string words = clause_words(task);
  return unstated(plain_words(task)) || read_task(task, "") != Task::kPretrain ||
         affirms(words, {"pretrain", "pretraining", "pre training", "pre train", "training",
                         "train", "mlm", "continued", "from scratch"});
}

// Known by a technique, or as somebody's own: what runs there is not that stack's code.
bool known_by_a_word(const std::string& framework, const Stack& stack) {
  const std::string words = plain_words(framework);
  if (says_any(words, {"my", "own", "our", "custom", "in house", "inhouse", "homegrown",
                       "home grown", "bespoke", "self written", "internal"})) {
    return true;
  }
  return stack.sharding == Sharding::kJax && says(words, "jax") &&
         !says_any(words, {"maxtext", "pax", "paxml", "praxis", "t5x", "levanter", "saxml",
                           "toolbox", "rosetta", "easydel", "easylm", "alpa", "axlearn", "midgpt",
                           "lingvo", "pathways"});
}

}  // namespace

void tell_unread(const Run& run, Scenario& s) {
  const Accelerator& a = s.setting.cluster.accelerator;
  if (unit_for(a, s.plan.precision).v <= 0) {
    s.assumed.push_back(
        fmt::format("{} has no unit for {}: run as a wider format", a.name,
                    enum_names(Precision{})[static_cast<size_t>(s.plan.precision)]));
  }
  if (!known_task(run.task)) {
    s.assumed.push_back(
        fmt::format("task \"{}\" is not known: pre-training", sanitize(run.task, 40)));
  }
  if (learns_from_others(run.task)) {
    s.assumed.push_back(fmt::format(
        "task \"{}\" as fine-tuning: a sample is one sequence, and no other model runs beside",
        sanitize(run.task, 40)));
  }
  if (!unstated(plain_words(run.zero)) && !read_sharding(run.zero).zero) {
    s.assumed.push_back(
        fmt::format("as if blank: zero_stage_or_fsdp \"{}\"", sanitize(run.zero, 40)));
  }
  const bool told = std::any_of(s.assumed.begin(), s.assumed.end(),
                                [](const std::string& t) { return t.starts_with("stack "); });
  if (!told && known_by_a_word(run.framework, s.setting.stack)) {
    s.assumed.push_back(fmt::format("stack {} by a word of its name", s.setting.stack.name));
  }
}

}  // namespace assay
