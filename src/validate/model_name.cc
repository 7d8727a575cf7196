#include "validate/model_name.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "validate/text.h"

namespace assay {
namespace {

// Words of a name that do not change the shape.
constexpr std::array<std::string_view, 22> kSameShape = {
    "lora", "qlora", "sft",      "pretrain", "instruct", "base",  "hf",        "chat",
    "it",   "proxy", "thinking", "text",     "inferred", "coder", "structure", "shape",
    "math", "code",  "like",     "style",    "meta",     "bf16"};

bool same_shape(const std::string& word) {
  return std::find(kSameShape.begin(), kSameShape.end(), word) != kSameShape.end();
}

// A release: `v0.3`, `0324`, `2507`.
bool release(std::string_view word) {
  const bool version = word.size() > 1 && word[0] == 'v';
  if (version) word.remove_prefix(1);
  return word.find_first_not_of(version ? "0123456789." : "0123456789") == word.npos &&
         (version || word.size() == 4);
}

// Words of a name in lower case, `+` spelled out; `2.5` is one word, as the catalog has it.
std::vector<std::string> name_words(const std::string& name) {
  std::string spelled;
  const size_t slash = name.rfind('/');
  const bool number = slash != std::string::npos && slash + 1 < name.size() &&
                      name.find_first_not_of("0123456789", slash + 1) == std::string::npos;
  for (size_t i = number ? 0 : slash + 1; i < name.size() && name[i] != '('; ++i) {
    const bool point = name[i] == '.' && i > 0 && i + 1 < name.size() && is_digit(name[i - 1]) &&
                       is_digit(name[i + 1]);
    const char c = lower(name[i]);
    if (c == '+') {
      spelled += " plus ";
    } else {
      spelled += (c >= 'a' && c <= 'z') || is_digit(c) || point ? c : ' ';
    }
  }
  std::vector<std::string> words;
  for (std::string& word : split_any(spelled, " ")) {
    if (words.empty() || !same_shape(word)) words.push_back(std::move(word));
  }
  return words;
}

std::string words_joined(const std::vector<std::string>& words, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) out += (i > 0 ? "-" : "") + words[i];
  return out;
}

// Whether a width or a number of heads that the row states is another.
bool other_shape(const Run& run, const Model& m) {
  return (run.hidden && *run.hidden != m.hidden) || (run.heads && *run.heads != m.heads);
}

// `Qwen3-235B` of `Qwen3-235B-A22B`, where one model alone begins so.
const Model* beginning_with(const Catalog& catalog, const std::string& name) {
  const Model* only = nullptr;
  for (const Model& m : catalog.models) {
    if (!m.name.starts_with(name + "-")) continue;
    if (only) return nullptr;
    only = &m;
  }
  return only;
}

}  // namespace

const Model* named_model(const Catalog& catalog, const Run& run) {
  const bool plus = run.model_name.find('+') != std::string::npos;
  if (const Model* m = find_model(catalog, run.model_name); m && !plus) return m;
  const std::vector<std::string> words = name_words(run.model_name);
  if (words.empty()) return nullptr;
  const std::string whole = words_joined(words, words.size());
  if (const Model* m = find_model(catalog, whole)) return m;
  // A family's name with more behind it: by the shape where that is stated, else where what stands
  // there is a release.
  for (size_t count = words.size(); count > 0; --count) {
    std::string family = words_joined(words, count);
    const Model* m = find_model(catalog, family);
    const size_t point = family.rfind('.');  // `DeepSeek-V3.2`
    if (!m && run.hidden && point != std::string::npos && point + 2 == family.size()) {
      family.resize(point);
      m = find_model(catalog, family);
    }
    if (!m || other_shape(run, *m)) continue;
    if (run.hidden || std::all_of(words.begin() + static_cast<ptrdiff_t>(count), words.end(),
                                  [](const std::string& word) { return release(word); })) {
      return m;
    }
  }
  const std::string& last = words.back();
  const bool sized = words.size() > 1 && last.back() == 'b' && is_digit(last[0]);
  return sized ? beginning_with(catalog, whole) : nullptr;
}

const Model* latent_twin(const Catalog& catalog, const Run& run) {
  if (!run.hidden || !run.heads || run.experts.value_or(0) == 0) return nullptr;
  const int64_t kv_heads = run.kv_heads.value_or(*run.heads);
  if (kv_heads != *run.heads && kv_heads != 1) return nullptr;  // shared by groups: ordinary ones
  for (const Model& m : catalog.models) {
    if (m.kv_lora_rank > 0 && m.mixer.layers == 0 && m.hidden == *run.hidden &&
        m.heads == *run.heads && m.experts == *run.experts) {
      return &m;
    }
  }
  return nullptr;
}

}  // namespace assay
