// Architectures by their model_type. From the classes' defaults in the transformers library, and
// from the published configs of those that bring their own code, from memory.
#include "world/hf_types.h"

#include <algorithm>
#include <span>

namespace assay {
namespace {

struct Row {
  std::string_view type;
  bool gated, tied, causal, positions, wide_ffn;
};

// Every type whose code differs from a Llama's.
constexpr Row kRows[] = {
    {"gpt2", false, true, true, true, true},
    {"gpt_neox", false, false, true, false, true},
    {"gpt_neo", false, true, true, true, true},
    {"gptj", false, false, true, false, true},
    {"gpt_bigcode", false, true, true, true, true},
    {"codegen", false, false, true, false, true},
    {"starcoder2", false, true, true, false, false},
    {"bloom", false, true, true, false, true},
    {"opt", false, true, true, true, false},
    {"mpt", false, true, true, false, true},
    {"falcon", false, true, true, false, true},
    {"RefinedWeb", false, true, true, false, true},
    {"RefinedWebModel", false, true, true, false, true},
    {"bert", false, true, false, true, false},
    {"megatron-bert", false, true, false, true, false},
    {"albert", false, true, false, true, false},
    {"ernie", false, true, false, true, false},
    {"roberta", false, true, false, true, false},
    {"camembert", false, true, false, true, false},
    {"xlm-roberta", false, true, false, true, false},
    {"xlm-roberta-xl", false, true, false, true, false},
    {"roberta-prelayernorm", false, true, false, true, false},
    {"data2vec-text", false, true, false, true, false},
    {"ibert", false, true, false, true, false},
    {"nezha", false, true, false, false, false},
    {"roformer", false, true, false, false, false},
    {"esm", false, true, false, false, false},
    {"xlm", false, true, false, true, true},
    {"flaubert", false, true, false, true, true},
    {"nomic_bert", true, true, false, false, false},
    {"eurobert", true, false, false, false, false},
    {"distilbert", false, true, false, true, false},
    {"mpnet", false, true, false, true, false},
    {"electra", false, true, false, true, false},
    {"deberta", false, true, false, false, false},
    {"deberta-v2", false, true, false, false, false},
    {"modernbert", true, true, false, false, false},
    {"modernbert-decoder", true, true, true, false, false},
    {"t5", false, true, true, false, false},
    {"longt5", false, true, true, false, false},
    {"mt5", true, false, true, false, false},
    {"umt5", true, false, true, false, false},
    {"t5gemma", true, true, true, false, false},
    {"t5gemma2", true, true, true, false, false},
    {"switch_transformers", false, true, true, false, false},
    {"bart", false, true, true, true, false},
    {"mbart", false, true, true, true, false},
    {"plbart", false, true, true, true, false},
    {"blenderbot", false, true, true, true, false},
    {"blenderbot-small", false, true, true, true, false},
    {"whisper", false, true, true, true, false},
    {"marian", false, true, true, false, false},
    {"pegasus", false, true, true, false, false},
    {"pegasus_x", false, true, true, false, false},
    {"m2m_100", false, true, true, false, false},
    {"nllb-moe", false, true, true, false, false},
    {"xglm", false, true, true, false, false},
    {"openai-gpt", false, true, true, true, true},
    {"biogpt", false, true, true, true, false},
    {"ctrl", false, true, true, false, false},
    {"clip_text_model", false, true, true, true, false},
    {"siglip_text_model", false, true, false, true, false},
    {"rwkv", false, false, true, false, false},
    {"rwkv5", false, false, true, false, false},
    {"rwkv6", false, false, true, false, false},
    {"rwkv7", false, false, true, false, false},
    {"phi-msft", false, false, true, false, true},
    {"phi", false, false, true, false, false},
    {"persimmon", false, false, true, false, false},
    {"nemotron", false, false, true, false, false},
    {"nemotron_h", false, false, true, false, false},
    {"arcee", false, false, true, false, false},
    {"apertus", false, false, true, false, false},
    {"gemma", true, true, true, false, false},
    {"gemma2", true, true, true, false, false},
    {"gemma3", true, true, true, false, false},
    {"gemma3n", true, true, true, false, false},
    {"gemma4", true, true, true, false, false},
    {"recurrent_gemma", true, true, true, false, false},
    {"zamba", true, true, true, false, false},
    {"zamba2", true, true, true, false, false},
    {"vaultgemma", true, true, true, false, false},
    {"cohere", true, true, true, false, false},
    {"cohere2", true, true, true, false, false},
    {"minicpm", true, true, true, false, false},
    {"minicpm3", true, true, true, false, false},
    {"minicpmv", true, true, true, false, false},
    {"minicpmo", true, true, true, false, false},
    {"mamba", true, true, true, false, false},
    {"falcon_mamba", true, true, true, false, false},
    {"lfm2", true, true, true, false, false},
    {"lfm2_moe", true, true, true, false, false},
    {"smollm3", true, true, true, false, false},
    {"ernie4_5", true, true, true, false, false},
    {"ernie4_5_moe", true, true, true, false, false},
    {"ernie4_5_moe_vl", true, true, true, false, false},
    {"ernie4_5_vl", true, true, true, false, false},
    {"ernie4_5_vl_moe", true, true, true, false, false},
};

// Decoders of the Llama kind: a gated MLP, rotary positions, two embeddings unless they say other.
constexpr std::string_view kLlamaKind[] = {"llama",
                                           "llama4",
                                           "mllama",
                                           "mistral",
                                           "mistral3",
                                           "ministral",
                                           "ministral3",
                                           "mixtral",
                                           "qwen",
                                           "qwen2",
                                           "qwen2_moe",
                                           "qwen2_vl",
                                           "qwen2_5_vl",
                                           "qwen2_5_omni",
                                           "qwen3",
                                           "qwen3_moe",
                                           "qwen3_next",
                                           "qwen3_vl",
                                           "qwen3_vl_moe",
                                           "qwen3_omni_moe",
                                           "qwen3_5",
                                           "qwen3_5_moe",
                                           "deepseek",
                                           "deepseek_v2",
                                           "deepseek_v3",
                                           "deepseek_v32",
                                           "deepseek_vl_v2",
                                           "kimi_k2",
                                           "kimi_k25",
                                           "kimi_vl",
                                           "kimi_linear",
                                           "glm",
                                           "glm4",
                                           "glm4_moe",
                                           "glm4_moe_lite",
                                           "glm4v",
                                           "glm4v_moe",
                                           "glm_moe_dsa",
                                           "chatglm",
                                           "internlm",
                                           "internlm2",
                                           "internlm3",
                                           "internvl_chat",
                                           "baichuan",
                                           "Yi",
                                           "yi",
                                           "olmo",
                                           "olmo2",
                                           "olmo3",
                                           "olmo_hybrid",
                                           "olmoe",
                                           "flex_olmo",
                                           "granite",
                                           "granitemoe",
                                           "granitemoeshared",
                                           "granitemoehybrid",
                                           "stablelm",
                                           "stablelm_epoch",
                                           "exaone",
                                           "exaone4",
                                           "hunyuan",
                                           "hunyuan_v1_dense",
                                           "hunyuan_v1_moe",
                                           "minimax",
                                           "minimax_text_01",
                                           "minimax_m1",
                                           "minimax_m2",
                                           "jamba",
                                           "bamba",
                                           "falcon_h1",
                                           "mamba2",
                                           "xlstm",
                                           "longcat_flash",
                                           "diffllama",
                                           "open-llama",
                                           "seed_oss",
                                           "dots1",
                                           "cwm",
                                           "helium",
                                           "bitnet",
                                           "dbrx",
                                           "grok-1",
                                           "gpt_oss",
                                           "phi3",
                                           "phi3_v",
                                           "phi4mm",
                                           "phi4_multimodal",
                                           "phimoe",
                                           "bailing_moe",
                                           "bailing_moe_v2",
                                           "mimo",
                                           "aquila",
                                           "xverse",
                                           "orion",
                                           "deci",
                                           "nemotron-nas",
                                           "openelm",
                                           "pixtral",
                                           "llava",
                                           "aria"};

constexpr std::string_view kAnotherModel =
    "name a model of its size (`assay catalog list models`), or write the shape that comes closest "
    "as `workload: {model: {layers: N, hidden: N, ...}}` in YAML";
constexpr std::string_view kBlockSparse = "its attention is sparse, block by block";
constexpr std::string_view kPooled = "layers work on sequences of different lengths";
constexpr Undescribed kUndescribed[] = {
    {"longcat_flash_ngram", "half of its weights are tables of word pairs and triples",
     kAnotherModel},
    {"jetmoe", "its attention has experts, too", kAnotherModel},
    {"longformer", kBlockSparse, kAnotherModel},
    {"led", kBlockSparse, kAnotherModel},
    {"big_bird", kBlockSparse, kAnotherModel},
    {"bigbird_pegasus", kBlockSparse, kAnotherModel},
    {"reformer", "its attention is hashed, and its layers are reversible", kAnotherModel},
    {"xlnet", "it is trained by two streams of attention", kAnotherModel},
    {"transfo-xl", "its vocabulary is embedded by frequency, and segments see the ones before",
     kAnotherModel},
    {"funnel", kPooled, kAnotherModel},
    {"canine", kPooled, kAnotherModel},
    {"blt", kPooled, kAnotherModel},
    {"mobilebert", "its layers have bottlenecks and several MLPs", kAnotherModel},
    {"convbert", "half of its attention is convolutions that depend on the input", kAnotherModel},
    {"fnet", "it has Fourier transforms instead of attention", kAnotherModel},
};

// `gemma3_text`, `mllama_text_model` -> `gemma3`, `mllama`.
std::string_view family_of(std::string_view type) {
  for (const std::string_view half : {"_text", "_text_model"}) {
    if (type.ends_with(half)) return type.substr(0, type.size() - half.size());
  }
  return type;
}

std::optional<TypeDefaults> exactly(std::string_view type) {
  for (const Row& r : kRows) {
    if (r.type == type) return TypeDefaults{r.gated, r.tied, r.causal, r.positions, r.wide_ffn};
  }
  const std::span<const std::string_view> usual(kLlamaKind);
  if (std::find(usual.begin(), usual.end(), type) != usual.end()) return TypeDefaults{};
  return {};
}

constexpr ImageReader kImageReaders[] = {{"vit", 1},
                                         {"vit_msn", 1},
                                         {"deit", 2},
                                         {"ijepa", 0},
                                         {"dinov2", 1},
                                         {"dinov2_with_registers", 1},
                                         {"clip_vision_model", 1},
                                         {"siglip_vision_model", 0}};

}  // namespace

std::optional<TypeDefaults> type_defaults(const std::string& type) {
  const std::optional<TypeDefaults> known = exactly(type);
  return known ? known : exactly(family_of(type));
}

const ImageReader* image_reader(const std::string& type) {
  const auto found = std::find_if(std::begin(kImageReaders), std::end(kImageReaders),
                                  [&](const ImageReader& r) { return r.type == type; });
  return found == std::end(kImageReaders) ? nullptr : found;
}

const Undescribed* undescribed(const std::string& type) {
  for (const Undescribed& u : kUndescribed) {
    if (u.type == type || u.type == family_of(type)) return &u;
  }
  return nullptr;
}

}  // namespace assay
