#include "validate/cells.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "validate/text.h"

namespace assay {
namespace {

// Formats by how their names begin, narrowest first.
struct Format {
  std::string_view begin;
  Precision precision;
};
constexpr std::array kFormats = {
    Format{"nvfp4", Precision::kNvfp4},  Format{"mxfp4", Precision::kMxfp4},
    Format{"fp4", Precision::kNvfp4},    Format{"mxfp8", Precision::kMxfp8},
    Format{"fp8mx", Precision::kMxfp8},  Format{"fp8", Precision::kFp8},
    Format{"float8", Precision::kFp8},   Format{"e4m3", Precision::kFp8},
    Format{"e2m1", Precision::kNvfp4},   Format{"hfp8", Precision::kFp8},
    Format{"e5m2", Precision::kFp8},     Format{"int8", Precision::kInt8},
    Format{"bf16", Precision::kBf16},    Format{"bfloat16", Precision::kBf16},
    Format{"fp16", Precision::kFp16},    Format{"float16", Precision::kFp16},
    Format{"half", Precision::kFp16},    Format{"f16", Precision::kFp16},
    Format{"tf32", Precision::kTf32},    Format{"fp32", Precision::kFp32},
    Format{"float32", Precision::kFp32}, Format{"f32", Precision::kFp32},
};

// How narrow a format is: what matmuls run in is the narrowest of those named together.
int width(Precision p) {
  switch (p) {
    case Precision::kNvfp4:
    case Precision::kMxfp4:
      return 4;
    case Precision::kMxfp8:
    case Precision::kFp8:
    case Precision::kInt8:
      return 8;
    case Precision::kFp16:
    case Precision::kBf16:
      return 16;
    case Precision::kTf32:
      return 19;
    case Precision::kFp32:
      return 32;
  }
  return 32;
}

// Scales finer than one per tensor take another hardware path, or an emulated one.
bool fine_scaled(const std::string& words) {
  return affirms(words, {"mx", "rowwise", "row wise", "blockwise", "block wise", "block scaled",
                         "block scaling", "sub channel", "subchannel", "per channel", "per block",
                         "fp8 block", "tile", "tilewise", "block 128", "128 block"});
}

// The words of a precision's cell, its formats in one word each: `FP-16`, `8-bit float`.
std::string format_words(const std::string& cell) {
  std::string words = clause_words(cell);
  constexpr std::pair<std::string_view, std::string_view> kSpellings[] = {
      {" fp 4 ", " fp4 "},
      {" fp 8 ", " fp8 "},
      {" fp 16 ", " fp16 "},
      {" fp 32 ", " fp32 "},
      {" bf 16 ", " bf16 "},
      {" tf 32 ", " tf32 "},
      {" mx fp8 ", " mxfp8 "},
      {" mx fp4 ", " mxfp4 "},
      {" nv fp4 ", " nvfp4 "},
      {" int 8 ", " int8 "},
      {" 8 bit float ", " fp8 "},
      {" float 8 ", " fp8 "},
      {" | single | ", " | fp32 | "},
      {" | float | ", " | fp32 | "},
      {" | 32 | ", " | fp32 | "},
      {" | 16 | ", " | fp16 | "},
      {" full precision ", " fp32 "},
      {" single precision ", " fp32 "},
      {" half precision ", " fp16 "},
      {" 16 true ", " fp16 "},
      {" 32 true ", " fp32 "}};
  for (const auto& [from, to] : kSpellings) {
    for (size_t at; (at = words.find(from)) != std::string::npos;) {
      words = words.substr(0, at) + std::string(to) + words.substr(at + from.size());
    }
  }
  return words;
}

// Whether a format is that of what is sent or kept, not of matmuls: `fp8 all-to-all`, `bf16, fp8
// Adam moments`.
bool beside_matmuls(const std::vector<std::string>& all, size_t i) {
  static constexpr std::array<std::string_view, 14> kOther = {
      "adam",     "moments", "optimizer", "planned",   "communication", "comm", "comms",
      "dispatch", "a2a",     "master",    "allreduce", "traffic",       "kv",   "primary"};
  static constexpr std::array<std::string_view, 6> kBetween = {"for", "in",        "the",
                                                               "of",  "quantized", "quantised"};
  static constexpr std::array<std::string_view, 7> kSums = {
      "grad", "grads", "gradient", "gradients", "reduce", "reduction", "reductions"};
  const auto word = [&](size_t k) { return k < all.size() ? std::string_view(all[k]) : ""; };
  const auto among = [](const auto& list, std::string_view w) {
    return std::find(list.begin(), list.end(), w) != list.end();
  };
  size_t behind = i + 1;
  while (among(kBetween, word(behind))) ++behind;
  const std::string_view next = word(behind), later = word(behind + 1);
  if (among(kOther, next)) return true;
  // `fp32 gradient reduction`; in `bf16 (grads fp32)` they are the second's.
  const bool another = std::any_of(kFormats.begin(), kFormats.end(),
                                   [&](const Format& f) { return later.starts_with(f.begin); });
  if (among(kSums, next) && !another) return true;
  if (i > 0 && among(kSums, all[i - 1])) return true;
  if (next == "all") return later == "to" || later == "gather" || later == "reduce";
  if (next == "weights") return later == "frozen";
  return next == "attention" && (later.empty() || later == "|");
}

bool wide(std::string_view word) {
  return word == "bf16" || word == "bfloat16" || word == "fp16" || word == "float16";
}

// `fp8 (linears), bf16 experts`, `mxfp8 (linears only, experts bf16)`: experts are not in the
// narrow format. `experts only, linears bf16` says the opposite.
bool wide_experts(const std::vector<std::string>& all) {
  const auto word = [&](size_t k) { return k < all.size() ? std::string_view(all[k]) : ""; };
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i] != "experts" && all[i] != "expert") continue;
    const size_t next = i + (word(i + 1) == "in" ? 2 : 1);
    if (wide(word(next))) return true;
    const bool named = std::any_of(kFormats.begin(), kFormats.end(), [&](const Format& f) {
      return word(next).starts_with(f.begin);
    });
    if (i > 0 && wide(word(i - 1)) && !named) return true;
  }
  return false;
}

}  // namespace

PrecisionCell read_precision(const std::string& cell) {
  PrecisionCell out;
  std::string words = format_words(cell);
  // A preset that was changed names its own format first.
  const size_t changed = words.rfind(" overridden to ");
  if (changed != std::string::npos) words.erase(0, changed);
  const bool only_possible = says_any(words, {"possible", "optional", "optionally"});
  int named = 0;
  std::optional<Precision> beside;
  const std::vector<std::string> all = split_any(words, " ");
  for (size_t i = 0, at = 0, next = 0; i < all.size(); ++i) {
    at = words.find(" " + all[i], next);
    next = at + all[i].size();
    const auto format = std::find_if(kFormats.begin(), kFormats.end(),
                                     [&](const Format& f) { return all[i].starts_with(f.begin); });
    if (format == kFormats.end()) continue;
    if (denied_at(words, at, all[i].size())) continue;  // `fp32 (no TF32)`
    if (beside_matmuls(all, i)) {
      if (!beside || width(format->precision) < width(*beside)) beside = format->precision;
      continue;
    }
    ++named;
    if (!out.precision) {
      out.precision = format->precision;
    } else if (!only_possible && width(format->precision) < width(*out.precision)) {
      out.precision = format->precision;
    }
  }
  if (!out.precision) out.precision = beside;
  if (out.precision == Precision::kFp8 && fine_scaled(words)) out.precision = Precision::kMxfp8;
  if (!out.precision && says(words, "16 mixed")) out.precision = Precision::kFp16;
  out.no_tf32 = claims(words, "tf32") == false;
  out.experts_wide = wide_experts(all);
  out.attention_only = says_any(words, {"attention projections only", "qkv and output only"});
  out.ambiguous = named > 1 && (only_possible || says(words, "or"));
  return out;
}

std::optional<Precision> read_precision_notes(const std::string& notes) {
  const std::string words = format_words(notes);
  for (const Format& f : kFormats) {
    const std::string name(f.begin);
    if (name == "half") continue;  // `in half the time`
    for (const std::string& said : {"trained in " + name, "training in " + name, name + " training",
                                    name + " enabled", "precision " + name}) {
      if (claims(words, said).value_or(false)) return f.precision;
    }
  }
  // A clause of nothing else: `fp16`, `FP8 hybrid delayed scaling`.
  static constexpr std::array<std::string_view, 17> kBeside = {
      "mixed",   "precision", "training", "amp",         "autocast",   "hybrid",
      "delayed", "scaling",   "current",  "recipe",      "tensorwise", "rowwise",
      "compute", "blockwise", "te",       "transformer", "engine"};
  for (const std::string& clause : clauses_of(words)) {
    bool all = true, any = false;
    for (const std::string& word : split_any(clause, " ")) {
      const bool format = std::any_of(kFormats.begin(), kFormats.end(),
                                      [&](const Format& f) { return word == f.begin; });
      any = any || format;
      all = all && (format || std::find(kBeside.begin(), kBeside.end(), word) != kBeside.end());
    }
    if (any && all) return read_precision(clause).precision;
  }
  return {};
}

bool inferred(const std::string& notes, std::string_view cell) {
  constexpr std::string_view kMark = "inferred:";
  const size_t at = notes.find(kMark);
  if (at == std::string::npos) return false;
  const size_t from = at + kMark.size();
  const size_t end = std::min(notes.find(';', from), notes.size());
  for (const std::string& part : split_any(std::string_view(notes).substr(from, end - from), ",")) {
    if (part == cell) return true;
  }
  return false;
}

bool keeps_gathered(const std::string& text) {
  return says_any(plain_words(text),
                  {"shard grad op", "not resharded", "no reshard", "no resharding",
                   "without resharding", "never reshard", "never resharded", "not reshard",
                   "reshard after forward never", "reshard after forward false",
                   "reshard after forward off", "reshard after forward disabled"});
}

namespace {

// `ZeRO-3`, `stage 3`, `z3`, `ZeRO O2`; the last that is not denied. A framework's name may hold
// the stage of a training (`stage 2 of mid-training`), so there the word alone is not enough.
std::optional<int64_t> stage_of(const std::string& words, bool named) {
  std::optional<int64_t> out;
  for (int64_t stage = 0; stage <= 3; ++stage) {
    const std::string n = std::to_string(stage);
    const std::string ways[] = {"zero " + n, "zero" + n, "zero stage " + n, "zero stage" + n};
    for (const std::string& way : ways) {
      if (claims(words, way).value_or(false)) out = stage;
    }
    // `DeepSpeed (stage 3)`, but not `DeepSpeed-Chat stage 1`.
    const bool engine = says(words, "deepspeed") && !says(words, "chat");
    const bool staged =
        claims(words, "stage " + n).value_or(false) || claims(words, "stage" + n).value_or(false);
    if (named && engine && staged) out = stage;
    if (named) continue;
    if (staged || claims(words, "z" + n).value_or(false) || words == " | " + n + " | " ||
        (says(words, "zero") && claims(words, "o" + n).value_or(false))) {
      out = stage;
    }
  }
  return out;
}

// The degrees of torchtitan and its kin: `dp_replicate=4 dp_shard=8`; a shard degree of -1 is all
// ranks that are left.
void read_degrees(const std::string& cell, ShardingCell& out) {
  std::string text = cell;
  for (const std::string_view rest : {"=-1", "= -1", ": -1", " -1"}) {
    const size_t at = text.find(rest);
    if (at != std::string::npos) text.replace(at, rest.size(), " rest");
  }
  const std::string words = plain_words(text);
  out.group = count_after(
      words, {"dp shard", "dp shard degree", "data parallel shard degree", "shard degree"}, 1e6);
  out.copies = count_after(words,
                           {"dp replicate", "dp replicate degree", "data parallel replicate degree",
                            "replicate degree", "replicate"},
                           1e6);
  const bool shards = says_any(words, {"dp shard", "data parallel shard degree", "shard degree"});
  if (shards && !out.zero) {
    out.zero = out.group == 1 ? 0 : 3;
    out.fsdp = out.by_module = out.zero == 3;
  }
}

}  // namespace

bool names_zero(const std::string& cell) {
  for (const std::string& word : split_any(plain_words(cell), " ")) {
    if (word.starts_with("zero") || word == "z1" || word == "z2" || word == "z3") return true;
  }
  return false;
}

ShardingCell read_sharding(const std::string& cell, bool framework) {
  ShardingCell out;
  const std::string words = clause_words(cell);
  if (unstated(plain_words(cell))) return out;
  if (affirms(words, {"fsdp", "fsdp1", "fsdp2", "fully sharded", "hsdp", "megatron fsdp",
                      "hybrid shard", "full shard", "gemini", "fully shard", "simplefsdp",
                      "params and gradients sharded", "sharded data parallelism"})) {
    out.zero = 3;
    out.fsdp = true;
    out.by_module = true;
  }
  out.hybrid = affirms(words, {"hsdp", "hybrid shard", "hybrid", "mics", "hpz"});
  if (keeps_gathered(cell)) out.zero = 2, out.by_module = true;
  // FSDP's own name for a plain copy on every rank.
  if (out.by_module && says(words, "no shard")) out.zero = 0, out.fsdp = false;
  read_degrees(cell, out);
  // Megatron-FSDP's own words for what it shards.
  if (says(words, "strategy optim")) out.zero = says(words, "optim grads") ? 2 : 1;
  if (says(words, "optim grads params")) out.zero = 3;
  if (!out.zero &&
      affirms(words, {"optimizer state sharded", "os sharded", "optimizer sharding",
                      "shard optimizer", "weight update sharding", "distributedfusedadam"})) {
    out.zero = 1;
  }
  if (cell.find("ZeRO++") != std::string::npos) out.zero = 3, out.fsdp = true;
  const std::optional<bool> distributed =
      claims_any(words, {"distributed optimizer", "distributed optimiser", "dist optimizer",
                         "dist optimiser", "dist opt", "distopt", "zero optimizer"});
  if (distributed.value_or(false)) {
    out.zero = 1;
    out.distributed_optimizer = true;
  }
  if (const std::optional<int64_t> stage = stage_of(words, framework)) {
    out.zero = stage;
    out.fsdp = *stage == 3;
  }
  // DeepSpeed has a switch for the optimizer and one for weights; other words mean the optimizer,
  // and FSDP's own offload moves all.
  const std::optional<bool> general = claims_any(words, {"offload", "cpu offload", "infinity"});
  const std::optional<bool> states =
      claims_any(words, {"offload optimizer", "optimizer offload", "offload optimizer device"});
  const bool weights = offloads_parameters(words) || says(words, "infinity");
  const bool only = says_any(words, {"offload params only", "offload parameters only"});
  const bool offload = states.value_or(false) || weights || (!states && general.value_or(false));
  if (!out.zero && offload && says(words, "zero offload")) out.zero = 2;
  if (!out.zero && distributed == false) out.zero = 0;
  if (!out.zero && affirms(words, {"p os g p", "pos g p"})) out.zero = 3;
  if (!out.zero && affirms(words, {"p os g", "pos g"})) out.zero = 2;
  if (!out.zero && affirms(words, {"p os", "pos"})) out.zero = 1;
  if (!out.zero && (claims(words, "zero") == false ||
                    affirms(words, {"ddp", "no shard", "replicated", "ds 3d", "horovod",
                                    "distributeddataparallel", "distributed data parallel"}))) {
    out.zero = 0;
  }
  if (!out.zero && !framework) {
    const std::string plain = plain_words(cell);
    if (without(plain) ||
        says_any(plain, {"none", "no", "dp", "data parallel", "off", "false", "disabled"}))
      out.zero = 0;
  }
  if (offload) {
    out.offload_optimizer = only || states == false ? 0 : 1;
    if (!out.zero) out.zero = 3;
    const bool fsdp = out.fsdp && !names_zero(cell) && !says(words, "optimizer");
    if (fsdp || weights || only) out.offload_parameters = 1;
  }
  return out;
}

namespace {

// Releases apart from names: `flashattn3` is `flash attn 3`.
std::string attention_words(const std::string& words) {
  std::string out = " ";
  for (std::string word : split_any(words, " ")) {
    if (word.starts_with("flashattn")) word.insert(5, " ");
    const bool named = word.starts_with("flash") || word.starts_with("attn");
    const char last = word.back(), before = word.size() > 1 ? word[word.size() - 2] : ' ';
    if (named && is_digit(last) && !is_digit(before)) word.insert(word.size() - 1, " ");
    out += word + " ";
  }
  return out;
}

// `no (SDPA)`: not the library, but a fused kernel all the same. Nothing: the cell does not begin
// with a denial. A denial of the library in what follows (`no (FA2 unsupported)`) says no more.
std::optional<bool> denied_but_fused(const std::string& plain) {
  const std::vector<std::string> all = split_any(plain, " ");
  static constexpr std::array<std::string_view, 4> kDenials = {"no", "false", "off", "none"};
  if (all.size() < 2 || std::find(kDenials.begin(), kDenials.end(), all[0]) == kDenials.end())
    return {};
  const std::string rest = plain.substr(all[0].size() + 1);
  const bool unfused = says_any(rest, {"math", "eager", "unfused", "naive", "no"});
  const bool fused = affirms(rest, {"sdpa", "torch sdpa", "pytorch sdpa", "xformers", "cudnn",
                                    "memory efficient", "mem efficient"});
  return fused && !unfused ? std::optional(true) : std::nullopt;
}

}  // namespace

std::optional<bool> read_flash(const std::string& cell) {
  const std::string words = attention_words(clause_words(cell));
  const std::string plain = attention_words(plain_words(cell));
  if (unstated(plain)) return {};
  if (const std::optional<bool> fused = denied_but_fused(plain)) return fused;
  // A kernel that is named decides; a denial of something else (`no dropout`) does not.
  static constexpr std::array<std::string_view, 16> kKernels = {"flash attention",
                                                                "flash attn",
                                                                "flashattention",
                                                                "flash",
                                                                "fa",
                                                                "fa1",
                                                                "fa2",
                                                                "fa3",
                                                                "fa4",
                                                                "cudnn",
                                                                "sdpa",
                                                                "fused attention",
                                                                "fused attn",
                                                                "xformers",
                                                                "transformer engine",
                                                                "te"};
  const bool unfused = claims(words, "math backend") != false &&
                       affirms(words, {"unfused", "eager", "math", "naive", "vanilla", "standard"});
  // MaxText's `dot_product` writes its scores; PyTorch's operator is the scaled one.
  if (says(plain, "dot product") && !says(plain, "scaled dot product")) return false;
  for (const std::string_view no : {" | no | ", " | off | ", " | false | ", " | none | "}) {
    if (words.starts_with(no)) return false;
  }
  if (words.starts_with(" | yes | ") || words.starts_with(" | true | ")) return true;
  bool denied = false;
  for (const std::string_view kernel : kKernels) {
    const bool chooses = kernel == "sdpa" || kernel == "te" || kernel == "transformer engine";
    const std::optional<bool> said = claims(words, kernel);
    if (said.value_or(false) && !(unfused && chooses)) return true;
    denied = denied || said == false;
  }
  const bool softmax = says_any(plain, {"fused softmax", "softmax fusion"});
  if (denied || unfused || softmax || without(plain) || plain == " 0 " || plain == " n ")
    return false;
  const bool answered = plain.starts_with(" yes ") || plain.starts_with(" true ");
  return answered || !says_any(plain, {"no", "off", "false", "none", "disabled"});
}

namespace {

bool second_flash(const std::string& words) {
  return says_any(words, {"fa2", "fa 2", "flash attention 2", "flashattention 2", "flashattention2",
                          "flash attention2", "flash attn 2", "v2", "sdpa flash", "flash sdpa"});
}

}  // namespace

// The first generation lived on as a Triton kernel; the second has one too.
bool early_flash(const std::string& cell) {
  const std::string words = attention_words(plain_words(cell));
  return says_any(words, {"fa1", "fa 1", "flash attention 1", "flashattention 1", "flash attn 1",
                          "flash attention v1", "flashattention v1", "fa v1", "flash v1"}) ||
         words == " v1 " || (says(words, "triton") && !second_flash(words));
}

bool later_flash(const std::string& cell) {
  return says_any(attention_words(plain_words(cell)),
                  {"2", "3", "4", "fa2", "fa3", "fa4", "v2", "v3", "cudnn"});
}

std::optional<AttentionKernel> read_attention_kernel(const std::string& cell) {
  const std::string words = attention_words(plain_words(cell));
  const std::string clauses = attention_words(clause_words(cell));
  if (early_flash(cell)) return AttentionKernel::kEarly;
  // PyTorch's memory-efficient kernel is as old: on H200 and B200 it takes twice the portable one's
  // time and more (NVIDIA/cudnn-frontend, benchmark/Llama-3.2-1B-Training).
  if (says_any(words, {"efficient", "xformers"}) && words.find("flash") == std::string::npos)
    return AttentionKernel::kEarly;
  // Transformer Engine chooses by itself, unless what it chose is said: `TE (cuDNN)`.
  const bool chose = says_any(words, {"aiter", "ck", "te cudnn", "transformer engine cudnn"});
  if (says_any(words, {"te", "transformer engine"}) && !chose) return {};
  if (affirms(clauses,
              {"cudnn", "fa3", "fa4", "fa 3", "fa 4", "flash attention 3", "flash attention 4",
               "flashattention 3", "flashattention 4", "flashattention3", "flashattention4",
               "flash attn 3", "flash attn 4", "flash attention v3", "flash attention v4", "fa v3",
               "flash attention3", "aiter", "ck"})) {
    return AttentionKernel::kVendor;
  }
  if (second_flash(words)) return AttentionKernel::kPortable;
  return {};
}

std::optional<int> pytorch_minor(const std::string& text) {
  const std::string words = plain_words(text);
  constexpr std::string_view kName = "torch 2 ";
  const size_t at = words.find(kName);
  if (at == std::string::npos) return {};
  const std::string_view rest = std::string_view(words).substr(at + kName.size());
  const std::optional<double> n = cell_number(rest.substr(0, rest.find(' ')));
  if (!n || *n < 0 || *n > 99) return {};
  return static_cast<int>(*n);
}

bool learns_from_others(const std::string& task) {
  return affirms(clause_words(task),
                 {"dpo", "orpo", "kto", "ipo", "simpo", "cpo", "grpo", "ppo", "rloo", "rlhf",
                  "rlvr", "rl", "dapo", "gspo", "reward", "preference", "distillation"});
}

bool before_fused(const std::string& text) {
  const std::string words = plain_words(text);
  for (const std::string_view torch : {"torch", "pytorch"}) {
    if (number_after(words, torch) == 1) return true;
  }
  // `Transformers 4.18`: its models call the operator since 4.36.
  constexpr double kFirst = 36;
  for (const std::string_view name : {"transformers 4", "hf 4", "hugging face 4"}) {
    const std::optional<double> minor = number_after(words, name);
    if (minor && *minor < kFirst) return true;
  }
  return false;
}

std::string told_task(const std::string& task, const std::string& framework,
                      const std::string& precision) {
  if (!unstated(plain_words(task))) return task;
  if (affirms(clause_words(framework + " ; " + precision), {"qlora", "nf4"})) return "qlora";
  return affirms(clause_words(framework), {"lora", "dora"}) ? "lora" : task;
}

Task read_task(const std::string& task, const std::string& model_name) {
  const std::string words = clause_words(task + "; " + model_name);
  if (affirms(words, {"lora", "qlora", "peft", "dora"})) return Task::kLora;
  if (affirms(clause_words(task), {"sft", "finetune", "fine", "finetuning", "full ft",
                                   "instruction tuning", "instruction"}) ||
      learns_from_others(task)) {
    return Task::kSft;
  }
  return Task::kPretrain;
}

}  // namespace assay
