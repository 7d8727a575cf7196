// The shape of a run's model: what the row states, then the catalog model of that name, then the
// conventions that most published models follow.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "validate/model_name.h"
#include "validate/scenario.h"
#include "validate/text.h"
#include "world/model_size.h"

namespace assay {
namespace {

// Families by the beginning of a word of the name: whether their MLPs have two up-projections.
struct FamilyShape {
  std::string_view word;
  bool gated;
  int64_t vocab;
};
constexpr std::array kFamilies = {
    FamilyShape{"llama", true, 32000},      FamilyShape{"tinyllama", true, 32000},
    FamilyShape{"mistral", true, 32000},    FamilyShape{"mixtral", true, 32000},
    FamilyShape{"qwen", true, 151936},      FamilyShape{"gemma", true, 256000},
    FamilyShape{"deepseek", true, 129280},  FamilyShape{"kimi", true, 163840},
    FamilyShape{"yi", true, 64000},         FamilyShape{"phi", true, 32064},
    FamilyShape{"olmo", true, 50304},       FamilyShape{"granite", true, 49152},
    FamilyShape{"smollm", true, 49152},     FamilyShape{"internlm", true, 92544},
    FamilyShape{"palm", true, 256000},      FamilyShape{"gpt", false, 51200},
    FamilyShape{"opt", false, 50272},       FamilyShape{"bloom", false, 250880},
    FamilyShape{"neox", false, 50432},      FamilyShape{"pythia", false, 50304},
    FamilyShape{"mpt", false, 50368},       FamilyShape{"falcon", false, 65024},
    FamilyShape{"bert", false, 30528},      FamilyShape{"nemotron", false, 256000},
    FamilyShape{"starcoder", false, 49152},
};

const FamilyShape* family_of(const std::string& name) {
  for (const std::string& word : split_any(plain_words(name), " ")) {
    for (const FamilyShape& f : kFamilies) {
      if (word.starts_with(f.word)) return &f;
    }
  }
  return nullptr;
}

// Qwen3 and Gemma 3, of whatever size.
bool norms_heads(const std::string& name) {
  const std::string words = plain_words(name);
  return words.find(" qwen3") != std::string::npos || words.find(" gemma3") != std::string::npos ||
         says_any(words, {"qwen 3", "gemma 3"});
}

// Families whose attention and MLP stand side by side, of whatever size.
bool side_by_side(const std::string& name) {
  const std::string words = plain_words(name);
  if (says_any(words, {"falcon 3", "falcon h1", "falcon mamba"})) return false;
  return says_any(words, {"neox", "gptneox", "gpt j", "gptj", "pythia", "palm", "falcon", "codegen",
                          "phi 1", "phi 2"});
}

// GPT-2, GPT-3, OPT and BERT, of whatever size, have an embedding of positions; what was named
// after them later has a gated MLP or says that it turns queries and keys.
bool learns_positions(const Run& run, const Model& m) {
  const std::string words = plain_words(run.model_name);
  if (m.gated_mlp || side_by_side(run.model_name)) return false;
  if (says_any(words + plain_words(run.notes), {"rope", "rotary"})) return false;
  return says_any(words, {"gpt", "gpt2", "gpt3", "nanogpt", "opt", "bert", "roberta"});
}

template <class T, class U>
void take(T& to, const std::optional<U>& stated) {
  if (stated) to = static_cast<T>(*stated);
}

int64_t usual_heads(int64_t hidden) {
  for (const int64_t size : {int64_t{128}, int64_t{64}, int64_t{80}, int64_t{96}}) {
    if (hidden % size == 0) return hidden / size;
  }
  return 1;
}

// What no one stated, by convention. Of a model that is `known` nothing is left to convention but
// what goes with a stated width of its MLP or number of heads.
void fill_conventions(const Run& run, const Model* known, Model& m,
                      std::vector<std::string>& assumed) {
  const FamilyShape* family = family_of(run.model_name);
  const bool attends = !known || known->heads > 0 || run.heads;
  if (m.heads == 0 && attends) {
    m.heads = usual_heads(m.hidden);
    assumed.push_back(fmt::format("{} heads", m.heads));
  }
  if (m.kv_heads == 0) m.kv_heads = m.heads;
  if (m.head_dim == 0 && m.heads > 0 && m.hidden % m.heads != 0) {
    m.head_dim = m.hidden > 4096 ? 128 : 64;
    assumed.push_back(fmt::format("head size {}", m.head_dim));
  }
  const bool own_mlp = known && (!run.ffn || *run.ffn == known->ffn);
  if (!run.gated_mlp && !own_mlp) {
    m.gated_mlp = run.ffn ? *run.ffn != 4 * m.hidden : !family || family->gated;
  }
  if (m.ffn == 0 && !own_mlp) {
    const int64_t gated = (8 * m.hidden / 3 + 255) / 256 * 256;
    m.ffn = m.gated_mlp ? gated : 4 * m.hidden;
    assumed.push_back(fmt::format("MLP width {}", m.ffn));
  }
  if (m.vocab == 0) {
    m.vocab = family ? family->vocab : 51200;
    assumed.push_back(fmt::format("vocabulary {}", m.vocab));
  }
  if (m.experts > 0 && m.expert_ffn == 0) m.expert_ffn = m.ffn;
  if (m.experts > 0 && m.experts_per_token == 0) m.experts_per_token = 2;
}

void fill_positions(const Run& run, Model& m) {
  m.learned_positions = learns_positions(run, m);
  m.rotary = !says_any(plain_words(run.model_name), {"bloom", "mpt", "t5", "mt5"});
}

// How far the shape's parameters are from those stated.
double parameters_off(const Run& run, const Model& m) {
  return std::abs(parameters(m) / (*run.params_b * 1e9) - 1);
}

// Keys and values that several heads share, where nobody says how many there are: the stated number
// of parameters does.
void fill_kv_heads(const Run& run, Model& m, std::vector<std::string>& assumed) {
  if (run.kv_heads || !run.params_b || !run.heads || m.kv_heads != m.heads) return;
  // A rounded size says too little: 7 B may be 6.7.
  const bool rounded = std::floor(*run.params_b) == *run.params_b && *run.params_b < 100;
  if (m.kind != ModelKind::kTransformer || rounded || parameters_off(run, m) < 0.01) return;
  Model other = m;
  for (int64_t shared = 2; shared <= m.heads; shared *= 2) {
    if (m.heads % shared != 0) break;
    other.kv_heads = m.heads / shared;
    if (parameters_off(run, other) > 0.01) continue;
    m.kv_heads = other.kv_heads;
    assumed.push_back(
        fmt::format("{} key-value heads from {} B parameters", m.kv_heads, *run.params_b));
    return;
  }
}

// The head size of a shape whose heads do not fill its width: hidden / heads is only a convention,
// and a stated number of parameters says where it fails. A size is taken when the count then agrees
// to a hundredth and did not to three.
void fill_head_size(const Run& run, Model& m, std::vector<std::string>& assumed) {
  if (!run.params_b || !run.heads || m.head_dim > 0 || m.kind != ModelKind::kTransformer) return;
  if (parameters_off(run, m) < 0.03) return;
  for (const int64_t size : {int64_t{64}, int64_t{80}, int64_t{96}, int64_t{128}, int64_t{256}}) {
    Model other = m;
    other.head_dim = size;
    if (parameters_off(run, other) > 0.01) continue;
    m.head_dim = size;
    assumed.push_back(fmt::format("head size {} from {} B parameters", size, *run.params_b));
    return;
  }
}

// Few codes have the projection of an embedding that is narrower than its model; whose number of
// parameters is that of a wide one has a wide one.
void widen_embedding(const Run& run, Model& m) {
  if (!run.params_b || m.embedding_dim == 0 || m.kind != ModelKind::kTransformer) return;
  Model wide = m;
  wide.embedding_dim = 0;
  if (parameters_off(run, wide) < parameters_off(run, m)) m = wide;
}

}  // namespace

tl::expected<Model, Refusal> choose_model(const Run& run, const Catalog& catalog,
                                          std::vector<std::string>& assumed) {
  const Model* known = run.model_name.empty() ? nullptr : named_model(catalog, run);
  if (!known || (run.hidden && *run.hidden != known->hidden)) {
    if (const Model* twin = latent_twin(catalog, run)) {
      known = twin;
      assumed.push_back("attention of " + twin->name);
    }
  }
  // A name is trusted where the width agrees; its depth may have been cut.
  const bool agrees = known && (!run.hidden || *run.hidden == known->hidden);
  Model m;
  if (agrees) m = *known;
  if (agrees && (!run.layers || !run.hidden)) {
    assumed.push_back(fmt::format("shape of {}", known->name));
  }
  m.name = run.model_name.empty() ? "model" : sanitize(run.model_name, 60);
  take(m.layers, run.layers);
  take(m.hidden, run.hidden);
  std::string missing;
  if (m.layers == 0) missing += "layers";
  if (m.hidden == 0) missing += missing.empty() ? "hidden" : ", hidden";
  if (!missing.empty())
    return tl::unexpected(Refusal{
        RunStatus::kIncomplete, "not stated: " + missing, m.layers == 0 ? "layers" : "hidden",
        known || run.model_name.empty()
            ? fmt::format("fill in {}", missing)
            : fmt::format("fill in {}, or name a model of `assay catalog list models`", missing)});

  const bool other_heads = run.heads && *run.heads != m.heads;
  take(m.heads, run.heads);
  if (other_heads) {
    m.head_dim = 0;
    if (!run.kv_heads) m.kv_heads = 0;
  }
  take(m.kv_heads, run.kv_heads);
  take(m.ffn, run.ffn);
  take(m.vocab, run.vocab);
  take(m.gated_mlp, run.gated_mlp);
  take(m.tied_embeddings, run.tied_embeddings);
  take(m.experts, run.experts);
  take(m.experts_per_token, run.experts_per_token);
  take(m.expert_ffn, run.expert_ffn);
  take(m.shared_expert_ffn, run.shared_ffn);
  take(m.dense_layers, run.dense_layers);
  // A model cut in depth keeps its proportions, unless it is said which layers it lost.
  if (!run.dense_layers && agrees && m.layers < known->layers)
    m.dense_layers = m.dense_layers * m.layers / known->layers;
  m.dense_layers = std::min(m.dense_layers, m.layers);
  if (!agrees) m.head_norm = norms_heads(run.model_name);
  if (!agrees) m.parallel_block = side_by_side(run.model_name);
  if (!agrees || m.kind == ModelKind::kTransformer)
    fill_conventions(run, agrees ? known : nullptr, m, assumed);
  if (!agrees) fill_positions(run, m), fill_kv_heads(run, m, assumed);
  widen_embedding(run, m);
  fill_head_size(run, m, assumed);
  if (m.kv_heads > m.heads || (m.kv_heads > 0 && m.heads % m.kv_heads != 0)) {
    return tl::unexpected(
        Refusal{RunStatus::kUnsupported,
                fmt::format("{} key-value heads do not divide {} heads", m.kv_heads, m.heads),
                "kv_heads", "correct `kv_heads` or `heads`"});
  }
  if (m.experts > 0 && m.experts_per_token > m.experts) {
    return tl::unexpected(Refusal{RunStatus::kUnsupported,
                                  fmt::format("{} of {} experts", m.experts_per_token, m.experts),
                                  "moe_topk", "correct `moe_topk` or `moe_experts`"});
  }
  return m;
}

}  // namespace assay
