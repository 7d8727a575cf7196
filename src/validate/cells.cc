#include "validate/cells.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "validate/text.h"

namespace assay {
namespace {

// Formats by how their names begin, narrowest first.
struct Format {
  std::string_view begin;
  Precision precision;
};
constexpr std::array kFormats = {
    Format{"nvfp4", Precision::kNvfp4},   Format{"mxfp4", Precision::kMxfp4},
    Format{"fp4", Precision::kNvfp4},     Format{"mxfp8", Precision::kMxfp8},
    Format{"fp8mx", Precision::kMxfp8},   Format{"fp8", Precision::kFp8},
    Format{"float8", Precision::kFp8},    Format{"e4m3", Precision::kFp8},
    Format{"int8", Precision::kInt8},     Format{"bf16", Precision::kBf16},
    Format{"bfloat16", Precision::kBf16}, Format{"fp16", Precision::kFp16},
    Format{"float16", Precision::kFp16},  Format{"half", Precision::kFp16},
    Format{"tf32", Precision::kTf32},     Format{"fp32", Precision::kFp32},
    Format{"float32", Precision::kFp32},
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
  return says_any(
      words, {"mx", "rowwise", "row wise", "blockwise", "block wise", "block scaled", "sub channel",
              "subchannel", "per channel", "per block", "block", "tile", "tilewise"});
}

// `500` and `500w`, of an accelerator.
std::optional<double> watts_of(std::string word) {
  if (word.ends_with('w')) word.pop_back();
  const std::optional<double> watts = cell_number(word);
  return watts && *watts >= 50 && *watts <= 5000 ? watts : std::nullopt;
}

// `500W power cap`, `500 W power limit`, `power capped at 500 W`, `TDP 550W`: watts on either side.
std::optional<double> power_cap(const std::string& words) {
  const std::vector<std::string> all = split_any(words, " ");
  const auto unit = [&](size_t i) { return i < all.size() && all[i] == "w"; };
  for (const std::string_view phrase :
       {"power capped at", "power capped to", "power cap", "power limit", "tdp"}) {
    const std::vector<std::string> said = split_any(phrase, " ");
    const auto found = std::search(all.begin(), all.end(), said.begin(), said.end());
    if (found == all.end()) continue;
    const size_t at = static_cast<size_t>(found - all.begin()), next = at + said.size();
    const size_t before = at - (at > 0 && unit(at - 1) ? 1 : 0);
    if (before > 0) {
      if (const std::optional<double> watts = watts_of(all[before - 1])) return watts;
    }
    if (next < all.size() && (all[next].ends_with('w') || unit(next + 1))) {
      if (const std::optional<double> watts = watts_of(all[next])) return watts;
    }
  }
  return {};
}

// Load of the busiest expert rank over the mean where tokens go where the router sends them and
// none is dropped. Four pairs of the same plan with and without forced balance (Qwen3-235B over 8
// expert ranks, Megatron-MoE-ModelZoo; the step is 9 to 25 % longer) ask for 1.89 to 1.98.
constexpr double kNaturalRoutingSkew = 1.9;

// Experts that drop what exceeds their capacity are padded up to it: so much work is done,
// whatever the router sends.
std::optional<double> capacity_factor(std::string_view text) {
  for (const std::string_view name : {"capacity factor", "capacity_factor", "fixed capacity"}) {
    const size_t at = text.find(name);
    if (at == std::string_view::npos) continue;
    std::string_view rest = text.substr(at + name.size());
    if (rest.starts_with(" of")) rest.remove_prefix(3);
    rest.remove_prefix(std::min(rest.find_first_not_of(" =:"), rest.size()));
    return cell_number(rest.substr(0, rest.find_first_not_of("0123456789.")));
  }
  return std::nullopt;
}

void read_overlaps(const std::string& words, Remarks& out) {
  out.overlap_tp =
      claims_any(words, {"asynctp", "async tp", "async tensor parallel", "tp comm overlap",
                         "tp dp comm overlap", "tp overlap", "ub overlap", "overlap tp",
                         "tensor parallel communication overlap", "tensor parallel overlap"});
  if (!out.overlap_tp &&
      says_any(words, {"vanilla tp", "tp not asynchronous", "| not asynchronous |"}))
    out.overlap_tp = false;
  out.overlap_grad = claims_any(
      words,
      {"overlap grad reduce", "grad reduce overlap", "grad bucket overlap", "gradient bucketing",
       "dp comm overlap", "overlap grad", "overlap comm", "grad overlap", "dp overlap",
       "gradient all reduce overlapped", "overlap grad sync", "gradient reduce overlapped",
       "grad reduce overlapped", "grad and param sync overlapped",
       "gradient reduce and parameter gather overlapped", "overlapped gradient all reduce",
       "overlapped grad reduce", "overlap of gradient reduce"});
  out.overlap_param = claims_any(
      words, {"overlap param gather", "param gather overlap", "dp comm overlap", "overlap param",
              "fsdp prefetch", "overlap param sync", "grad and param sync overlapped",
              "parameter gather overlapped", "param all gather overlapped",
              "overlap grad reduce and param gather", "overlapped grad reduce param gather",
              "overlap grad param", "overlap of param gather"});
  out.overlap_expert = claims_any(
      words, {"a2a overlap", "overlap a2a", "ep overlap", "dualpipe",
              "overlap moe expert parallel comm", "all to all overlap", "all to all overlapped",
              "overlap of all to all", "overlap of the ep all to all", "ep communication overlap",
              "expert parallel communication overlap", "overlapped expert communication",
              "expert communication overlap"});
  if (says(words, "dispatch without overlap")) out.overlap_expert = false;
  const bool none = says_any(
      words, {"| no overlap |", "no overlap flags", "compute overlap disabled", "| no overlap tp",
              "| without overlap |", "no comm overlap", "no communication overlap"});
  if (none) {
    out.overlap_tp = out.overlap_grad = out.overlap_param = out.overlap_expert = false;
  }
}

void read_state_bytes(const std::string& words, Remarks& out) {
  // All that is kept of a parameter: 16-bit weight and gradient, and the optimizer's states.
  for (const std::string_view unit : {"bytes a parameter", "bytes per parameter", "bytes param"}) {
    const std::optional<double> all = number_before(words, unit);
    if (!all || *all < 8 || *all > 20) continue;
    out.weight_bytes = out.gradient_bytes = 2;
    out.optimizer_bytes = *all - 4;
  }
  if (says_any(words, {"bf16 parameters and optimizer state", "bf16 optimizer state", "pure bf16",
                       "pure fp16", "bf16 optimizer states", "bf16 sr", "stochastic rounding",
                       "bf16 true", "bf16 throughout", "adam states bf16", "adamw states bf16",
                       "optimizer states bf16"})) {
    out.weight_bytes = out.gradient_bytes = out.gradient_comm_bytes = 2;
    out.optimizer_bytes = 4;
  }
  // A quantised base under LoRA: 4 or 8 bits a weight and their scales.
  if (says_any(words, {"qlora", "nf4", "4bit", "4 bit", "int4"})) out.base_weight_bytes = 0.55;
  if (says_any(words, {"load in 8bit", "llm int8", "8bit base", "8 bit base"})) {
    out.base_weight_bytes = 1.05;
  }
  if (says(words, "sgd") && !says(words, "momentum")) out.optimizer_bytes = 0;
  if (says_any(words, {"adamw 8bit", "adam 8bit", "8bit adam", "8bit adamw", "8 bit adam",
                       "8 bit adamw", "adamw8bit", "8 bit optimizer", "8bit optimizer",
                       "8 bit paged adamw", "8bit paged adamw"})) {
    // Paged state is in managed memory, which no allocator counts and the host takes back.
    out.optimizer_bytes = says(words, "paged") ? 0 : 2;
  }
  if (says_any(words, {"bf16 grad reduce", "bf16 gradient reduction", "bf16 grads", "bf16 reduce",
                       "bf16 gradient reduce", "bf16 reduce scatter"})) {
    out.gradient_comm_bytes = 2;
  }
  if (says_any(words, {"fp32 gradient reduction", "fp32 grad reduce", "fp32 gradient accumulation",
                       "gradients accumulated in fp32", "fp32 main grads"})) {
    out.gradient_comm_bytes = 4;
  }
  if (says_any(words, {"fp8 all gather", "float8 all gather", "fp8 param gather"})) {
    out.weight_comm_bytes = 1;
  }
  if (says_any(words, {"optimizer in backward", "stepped in backward", "optim in bwd",
                       "optimizer in bwd", "fused backward", "lomo"})) {
    out.gradients_resident = false;
  }
  if (says(words, "experts replicated")) out.experts_whole = 1;
  out.fused_norms = claims_any(words, {"use fused rms norm", "fused rms norm"}).value_or(false);
  out.fused_loss = says_any(words, {"liger", "fused linear cross entropy", "chunked cross entropy",
                                    "cut cross entropy", "chunked loss", "loss in chunks",
                                    "fused cross entropy", "unsloth"}) &&
                   !says(words, "logits are kept");
}

bool offloads_parameters(const std::string& words) {
  return says_any(words,
                  {"parameter offload", "param offload", "parameters offload", "offload param",
                   "offload parameters", "offload of parameters", "offload params",
                   "parameters offloaded", "params offloaded", "offload model"});
}

void read_offloads(const std::string& words, Remarks& out) {
  if (offloads_parameters(words)) out.offload_parameters = 1;
  out.offload_layers = count_after(
      words, {"cpu offload layers", "offload layers", "cpu offloading num layers"}, 1e5);
  if (says_any(words,
               {"activation offload", "activation offloading", "offload activations",
                "activations offloaded", "activation cpu offload", "activation cpu offloading"})) {
    out.offload_activations = 1;
  }
  if (says_any(words,
               {"optimizer offload", "offload optimizer", "optimizer cpu offload",
                "cpu offloaded adamw", "cpu offloaded adam", "cpu offloaded optimizer",
                "cpu optimizer", "cpu adam", "deepspeedcpuadam", "zero offload",
                "optimizer offloaded", "offloaded optimizer", "adam offload", "adamw offload",
                "offload of optimizer", "adam offloaded", "adamw offloaded", "cpu adamw"})) {
    out.offload_optimizer = 1;
  }
}

}  // namespace

PrecisionCell read_precision(const std::string& cell) {
  PrecisionCell out;
  std::string words = plain_words(cell);
  // A preset that was changed names its own format first.
  const size_t changed = words.rfind(" overridden to ");
  if (changed != std::string::npos) words.erase(0, changed);
  const bool only_possible = says_any(words, {"possible", "optional", "optionally"});
  int named = 0;
  const std::vector<std::string> all = split_any(words, " ");
  for (size_t i = 0; i < all.size(); ++i) {
    const auto format = std::find_if(kFormats.begin(), kFormats.end(),
                                     [&](const Format& f) { return all[i].starts_with(f.begin); });
    if (format == kFormats.end()) continue;
    // `fp32 (no TF32)`; `bf16, fp8 Adam moments`.
    if (i > 0 && (all[i - 1] == "no" || all[i - 1] == "without" || all[i - 1] == "not")) continue;
    const std::string_view next = i + 1 < all.size() ? std::string_view(all[i + 1]) : "";
    if (next == "adam" || next == "moments") continue;
    if (next == "not" && i + 2 < all.size() && (all[i + 2] == "used" || all[i + 2] == "enabled"))
      continue;
    if (next == "attention" && i + 2 == all.size()) continue;
    ++named;
    if (!out.precision) {
      out.precision = format->precision;
    } else if (!only_possible && width(format->precision) < width(*out.precision)) {
      out.precision = format->precision;
    }
  }
  if (out.precision == Precision::kFp8 && fine_scaled(words)) out.precision = Precision::kMxfp8;
  if (!out.precision && says(words, "16 mixed")) out.precision = Precision::kFp16;
  out.ambiguous = named > 1 && (only_possible || says(words, "or"));
  return out;
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

ShardingCell read_sharding(const std::string& cell) {
  ShardingCell out;
  const std::string words = plain_words(cell);
  if (unstated(words)) return out;
  if (says_any(words, {"fsdp", "fsdp1", "fsdp2", "fully sharded", "hsdp", "megatron fsdp",
                       "hybrid shard", "full shard", "gemini", "fully shard", "simplefsdp",
                       "params and gradients sharded"})) {
    out.zero = 3;
    out.fsdp = true;
    out.by_module = true;
  }
  out.hybrid = says_any(words, {"hsdp", "hybrid shard", "hybrid", "mics", "hpz"});
  if (says_any(words, {"shard grad op", "not resharded", "no reshard", "no resharding",
                       "without resharding", "never reshard", "reshard after forward never"})) {
    out.zero = 2;
  }
  // Megatron-FSDP's own words for what it shards.
  if (says(words, "strategy optim")) out.zero = says(words, "optim grads") ? 2 : 1;
  if (says(words, "optim grads params")) out.zero = 3;
  if (!out.zero &&
      says_any(words, {"optimizer state sharded", "os sharded", "optimizer sharding",
                       "shard optimizer", "weight update sharding", "distributedfusedadam"})) {
    out.zero = 1;
  }
  if (cell.find("ZeRO++") != std::string::npos) out.zero = 3, out.fsdp = true;
  const bool plain = claims(words, "distributed optimizer") == false;
  if (!plain && says_any(words, {"distributed optimizer", "dist optimizer", "zero optimizer"})) {
    out.zero = 1;
    out.distributed_optimizer = true;
  }
  for (int64_t stage = 0; stage <= 3; ++stage) {
    const std::string n = std::to_string(stage);
    if (says(words, "zero " + n) || says(words, "zero" + n) || says(words, "stage " + n) ||
        says(words, "zero stage " + n) || says(words, "z" + n) || words == " " + n + " " ||
        (says(words, "zero") && says(words, "o" + n)) || says(words, "stage" + n)) {
      out.zero = stage;
      out.fsdp = stage == 3;
    }
  }
  if (!out.zero && says(words, "zero offload")) out.zero = 2;  // it is stage 2
  if (!out.zero && (plain || without(words))) out.zero = 0;
  if (!out.zero && says_any(words, {"none", "no", "ddp", "dp", "data parallel", "no shard",
                                    "replicated", "ds 3d"})) {
    out.zero = 0;
  }
  if (says_any(words, {"offload", "infinity"})) {
    out.offload_optimizer = 1;
    if (!out.zero) out.zero = 3;
    // FSDP's own offload moves weights and all; DeepSpeed's has a switch for each.
    const bool fsdp = out.fsdp && !says(words, "zero") && !says(words, "optimizer");
    if (fsdp || says(words, "infinity") || offloads_parameters(words)) out.offload_parameters = 1;
  }
  return out;
}

std::optional<bool> read_flash(const std::string& cell) {
  const std::string words = plain_words(cell);
  if (unstated(words)) return {};
  const bool softmax = says_any(words, {"fused softmax", "softmax fusion"});
  const bool flash = words.find("flash") != std::string::npos;
  return !(without(words) || words == " 0 " || (softmax && !flash) ||
           says_any(words, {"no", "off", "false", "unfused", "eager", "math", "none", "naive",
                            "disabled"}));
}

bool second_flash(const std::string& words) {
  return says_any(words, {"fa2", "fa 2", "flash attention 2", "flashattention 2", "flashattention2",
                          "flash attention2", "flash attn 2", "v2", "sdpa flash", "flash sdpa"});
}

// The first generation lived on as a Triton kernel; the second has one too.
bool early_flash(const std::string& cell) {
  const std::string words = plain_words(cell);
  return says_any(words, {"fa1", "fa 1", "flash attention 1", "flashattention 1", "flash attn 1",
                          "v1", "flash v1"}) ||
         (says(words, "triton") && !second_flash(words));
}

bool later_flash(const std::string& cell) {
  return says_any(plain_words(cell), {"2", "3", "4", "fa2", "fa3", "fa4", "v2", "v3", "cudnn"});
}

std::optional<AttentionKernel> read_attention_kernel(const std::string& cell) {
  const std::string words = plain_words(cell);
  if (early_flash(cell)) return AttentionKernel::kEarly;
  // PyTorch's memory-efficient kernel is as old: on H200 and B200 it takes twice the portable one's
  // time and more (NVIDIA/cudnn-frontend, benchmark/Llama-3.2-1B-Training).
  if (says_any(words, {"efficient", "xformers"})) return AttentionKernel::kEarly;
  // Transformer Engine chooses by itself.
  if (says_any(words, {"te", "transformer engine"}) && !says_any(words, {"aiter", "ck"})) return {};
  if (says_any(words,
               {"cudnn", "fa3", "fa4", "fa 3", "fa 4", "flash attention 3", "flash attention 4",
                "flashattention 3", "flashattention 4", "aiter", "ck"})) {
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

Task read_task(const std::string& task, const std::string& model_name) {
  const std::string words = plain_words(task + " " + model_name);
  if (says_any(words, {"lora", "qlora", "peft", "dora"})) return Task::kLora;
  if (says_any(plain_words(task), {"sft", "finetune", "fine", "finetuning", "dpo", "full ft"})) {
    return Task::kSft;
  }
  return Task::kPretrain;
}

Remarks read_remarks(const std::string& text) {
  Remarks out;
  const std::string words = clause_words(text);
  out.compiled = claims_any(words, {"torch compile", "compile", "compiled", "torchcompile"});
  if (!out.compiled && says(words, "eager")) out.compiled = false;
  out.cuda_graphs = claims_any(words, {"cuda graph", "cuda graphs", "cudagraph", "cudagraphs"});
  // NVIDIA's submissions capture the layers (MCORE_CUDA_GRAPH=1 in the configs of v5.0; earlier
  // rounds are taken to be alike), and others run them.
  const bool submission = says(words, "nvidia mlperf") ||
                          (says(words, "mlperf training") && says_any(words, {"nemo", "nvidia"}));
  if (!out.cuda_graphs && submission) out.cuda_graphs = true;
  // Megatron lists what it captures: the router alone is not the layer.
  for (const std::string& part : split_any(words, "|")) {
    const std::string clause = " " + part + " ";
    if (says_any(clause, {"cuda graph", "cuda graphs"}) && says(clause, "router") &&
        !says_any(clause, {"attn", "attention"})) {
      out.cuda_graphs = false;
    }
  }
  out.fused_optimizer = claims_any(words, {"fused adam", "fused adamw", "adamw fused", "fusedadam",
                                           "fused lamb", "fusedlamb", "fused optimizer", "apex"});
  read_overlaps(words, out);
  if (says_any(words, {"zero bubble", "zbv", "zb h1", "zb h2", "dualpipe"})) {
    out.schedule = Schedule::kZeroBubble;
  } else if (says(words, "gpipe")) {
    out.schedule = Schedule::kGpipe;
  } else if (says_any(words, {"interleaved 1f1b", "interleaved1f1b"})) {
    out.schedule = Schedule::kInterleaved;
  } else if (says(words, "1f1b")) {
    out.schedule = Schedule::kOneFOneB;
  }
  if (says_any(words, {"ulysses", "cp comm type a2a", "cp a2a", "deepspeed ulysses"})) {
    out.context = ContextKind::kAllToAll;
  }
  out.sequence_parallel =
      claims_any(words, {"sequence parallel", "sequence parallelism", "sp enabled"});
  read_offloads(words, out);
  if (says_any(words, {"force balanced", "forced balance", "force balance", "balanced routing",
                       "tokendrop", "token drop", "drop and pad"})) {
    out.expert_skew = 1;
  } else if (const auto capacity = capacity_factor(text)) {
    out.expert_skew = 1;
    out.expert_capacity = std::clamp(*capacity, 1.0, 64.0);
  } else if (says_any(words, {"dropless", "routing not forced", "balance not forced",
                              "uneven routing", "unbalanced routing", "natural routing"})) {
    out.expert_skew = kNaturalRoutingSkew;
  }
  out.multi_token_prediction = claims_any(words, {"mtp", "multi token prediction"});
  out.micro_batch = count_after(words,
                                {"per device batch size", "per device batch", "local batch size",
                                 "micro batch size", "per device train batch size"},
                                1e6);
  out.lora_rank = count_after(words, {"lora rank", "lora r", "rank"}, 4096);
  if (says_any(words, {"all projections", "all linear", "all linear layers", "lora target all",
                       "gate proj", "down proj", "lora mlp"})) {
    out.lora_mlp = true;
  }
  out.power_cap_w = power_cap(words);
  read_state_bytes(words, out);
  return out;
}

}  // namespace assay
