// Which stack a framework's name means. Names are in catalog/stacks.yaml, as `aliases` of a stack
// or as `kin` of the one that shards likewise; what is here is how a run is brought to one of them.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "validate/scenario.h"
#include "validate/text.h"

namespace assay {
namespace {

const Stack* named(const Catalog& catalog, std::string_view name) {
  for (const Stack& s : catalog.stacks) {
    if (s.name == name) return &s;
  }
  return nullptr;
}

// The 3D stack as it was before selective recompute and flash attention.
const Stack* early_megatron(const Catalog& catalog) {
  if (const Stack* s = named(catalog, "megatron-lm-2021")) return s;
  return find_stack(catalog, "megatron-lm 2021");
}

// A stack as it was in the year of the run: an entry `NAME-YEAR` stands for NAME up to that year.
const Stack* as_of(const Catalog& catalog, const Stack* stack, int year) {
  if (!stack || year == 0) return stack;
  const Stack* best = stack;
  int nearest = 10000;
  for (const Stack& s : catalog.stacks) {
    if (s.name.size() != stack->name.size() + 5 || !s.name.starts_with(stack->name + "-")) continue;
    const int until = year_of(s.name);
    if (until >= year && until < nearest) {
      best = &s;
      nearest = until;
    }
  }
  return best;
}

const Stack* first_of(const Catalog& catalog, Sharding sharding) {
  for (const Stack& s : catalog.stacks) {
    if (s.sharding == sharding) return &s;
  }
  return nullptr;
}

// How frameworks of this name shard when their users say nothing more.
std::optional<Sharding> known_sharding(const Catalog& catalog, const std::string& words) {
  for (const Sharding sharding :
       {Sharding::kJax, Sharding::k3d, Sharding::kZero, Sharding::kFsdp}) {
    for (const Stack& s : catalog.stacks) {
      if (s.sharding != sharding) continue;
      for (const std::string& name : s.kin) {
        if (says(words, name)) return sharding;
      }
    }
  }
  return std::nullopt;
}

struct Family {
  Sharding sharding;
  std::string why;
  bool unknown = false;
};

// How a run of an unknown framework shards: by its name, its hardware, or its columns.
Family family_of(const Catalog& catalog, const Run& run, const std::string& words,
                 const ShardingCell& sharding) {
  const bool three_d = run.tp.value_or(1) > 1 || run.pp.value_or(1) > 1 || run.vpp.value_or(1) > 1;
  const std::optional<Sharding> by_name = known_sharding(catalog, words);
  if (by_name == Sharding::kJax) return {Sharding::kJax, "its name"};
  if (sharding.zero == 3 && run.pp.value_or(1) == 1 && by_name != Sharding::k3d) {
    // `FSDP2 (ZeRO-3)` says which of the two it is and explains it.
    const std::string cell = plain_words(run.zero);
    const bool zero = by_name == Sharding::kZero || names_zero(run.zero);
    const bool engine = zero && !says_any(cell, {"fsdp", "fsdp2"});
    return {engine ? Sharding::kZero : Sharding::kFsdp, "its sharding"};
  }
  if (sharding.zero == 2 && !three_d)
    return {sharding.by_module ? Sharding::kFsdp : Sharding::kZero, "its sharding"};
  if (sharding.distributed_optimizer) return {Sharding::k3d, "its distributed optimizer"};
  if (run.pp.value_or(1) > 1 || (three_d && !by_name))
    return {Sharding::k3d, "its parallel degrees"};
  if (by_name == Sharding::k3d && sharding.zero == 3) return {Sharding::kFsdp, "its sharding"};
  if (by_name) return {*by_name, "its name"};
  if (run.sharding_group.value_or(0) > 1) return {Sharding::kFsdp, "its sharding group"};
  // MLPerf's submissions without a name are by vendors, who run a Megatron of their own.
  if (trimmed_cell(words).empty() && says(plain_words(run.notes), "mlperf")) {
    return {Sharding::k3d, "MLPerf's usual stack"};
  }
  return {Sharding::kFsdp, "nothing stated", true};
}

// The member of a family that suits the run: recent or old, one device or many.
const Stack* member(const Catalog& catalog, const Run& run, const std::string& words,
                    Sharding sharding) {
  const int year = year_of(run.date);
  const Stack* stack = nullptr;
  if (sharding == Sharding::k3d) {
    stack = year > 0 && year <= 2021 ? early_megatron(catalog) : nullptr;
    // Nobody else's defaults are NeMo's recipes, which overlap and interleave all they can.
    const bool by_name = known_sharding(catalog, words) == Sharding::k3d;
    const bool vendor = trimmed_cell(words).empty() && says(plain_words(run.notes), "mlperf");
    if (!stack && vendor) stack = named(catalog, "megatron-submission");
    if (!stack) stack = named(catalog, by_name ? "megatron-lm" : "megatron-like");
  } else if (sharding == Sharding::kFsdp) {
    const bool second = says_any(words, {"fsdp2", "torchtune", "fully shard"}) ||
                        says(plain_words(run.zero), "fsdp2");
    stack = named(catalog, second ? "pytorch-fsdp2-plain" : "pytorch-fsdp");
  }
  return stack ? stack : first_of(catalog, sharding);
}

// JAX is one framework on two kinds of hardware: its stack on TPUs runs on XLA's own collectives.
// Of those of a kind the one that is kin to what was named, else the first.
const Stack* jax_stack(const Catalog& catalog, const Accelerator& accelerator,
                       const std::string& words, const Run& run) {
  const bool tpu = squeezed(accelerator.vendor) == "google";
  const bool loop = says_any(plain_words(run.notes), {"scanned layers", "scan over layers"});
  const Stack* first = nullptr;
  for (const Stack& s : catalog.stacks) {
    if (s.sharding != Sharding::kJax || (s.library == "xla") != tpu) continue;
    for (const std::string& name : s.kin) {
      if (says(words, name)) return &s;
    }
    if (loop && s.kept_traffic > 1) return &s;
    if (!first) first = &s;
  }
  return first ? first : first_of(catalog, Sharding::kJax);
}

// Whether DeepSpeed's engine shards: it is named, or the stage is given as ZeRO where the framework
// is one that runs on either engine.
bool on_deepspeed(const std::string& words, const std::string& zero_words, const Stack* stack) {
  if (says_any(words, {"fsdp", "fsdp2", "torchtitan", "fms fsdp"}) ||
      says_any(zero_words, {"fsdp", "fully sharded"})) {
    return false;
  }
  if (says(words, "deepspeed") || says(zero_words, "deepspeed")) return true;
  return stack && stack->sharding == Sharding::kFsdp && names_zero(zero_words);
}

// Front ends to Hugging Face's model code, the most particular first: a text that names one often
// names the libraries beneath it too.
constexpr std::array<std::string_view, 21> kFrontEnds = {
    "unsloth",       "llama factory", "llamafactory",
    "axolotl",       "ms swift",      "swift",
    "xtuner",        "sfttrainer",    "trl",
    "openrlhf",      "fastchat",      "verl",
    "open instruct", "llama recipes", "llama cookbook",
    "transformers",  "accelerate",    "hugging face",
    "huggingface",   "peft",          "hf"};

// The front end that the framework's text names. Its code moves more memory than the engine that
// shards it, and it says what is recomputed; Liger replaces just those kernels that move the most.
const Stack* front_end(const std::string& words, const Catalog& catalog) {
  if (says(words, "halo")) return find_stack(catalog, "halo");  // brings Liger itself
  if (says(words, "liger")) return nullptr;
  for (const std::string_view name : kFrontEnds) {
    if (says(words, name)) return find_stack(catalog, std::string(name));
  }
  return nullptr;
}

// Kernels and collectives come with the hardware: on these, any framework runs on the vendor's
// stack.
const Stack* hardware_stack(const std::string& words, const Catalog& catalog,
                            const Accelerator& accelerator) {
  const std::string vendor = squeezed(accelerator.vendor);
  if (vendor == "google") return first_of(catalog, Sharding::kJax);
  if (vendor == "aws") return find_stack(catalog, "neuron");
  // Intel's Max and Arc are GPUs and run PyTorch's own engines.
  if (vendor == "intel" && accelerator.architecture.starts_with("gaudi")) {
    const bool hub = says_any(words, {"optimum", "gauditrainer"}) || front_end(words, catalog);
    return find_stack(catalog, hub ? "optimum-habana" : "gaudi");
  }
  return nullptr;
}

// The stack with the longest alias among the framework's words that `counts`.
template <class Counts>
const Stack* longest_alias(const std::string& words, const Catalog& catalog, Counts&& counts) {
  const Stack* best = nullptr;
  size_t length = 0;
  for (const Stack& s : catalog.stacks) {
    std::vector<std::string> names = s.aliases;
    names.push_back(s.name);
    for (const std::string& name : names) {
      const std::string phrase(trimmed_cell(plain_words(name)));
      // `zero bubble` and `zero copy` are not DeepSpeed's.
      if (phrase == "zero" && says_any(words, {"zero bubble", "zero copy"})) continue;
      if (!phrase.empty() && phrase.size() > length && says(words, phrase) && counts(s, phrase)) {
        best = &s;
        length = phrase.size();
      }
    }
  }
  return best;
}

// PyTorch, its release and its sharding stand in brackets behind many a framework's name.
bool names_engine(const Stack& s, const std::string& phrase) {
  if (!s.name.starts_with("pytorch-")) return false;
  const std::string first = phrase.substr(0, phrase.find(' '));
  return first == "pytorch" || first == "torch" || first == "fsdp" || first == "fsdp2" ||
         first == "lightning";
}

// The stack that the words name: a framework's own name before that of the engine beneath it. Front
// ends to Hugging Face's models are told from the engine later.
const Stack* by_alias(const std::string& words, const Catalog& catalog) {
  const Stack* any =
      longest_alias(words, catalog, [](const Stack&, const std::string&) { return true; });
  if (!any) return nullptr;
  // In whatever order they stand: `DeepSpeed/Megatron`, `swift megatron sft`.
  if (says_any(words, {"megatron", "megatronlm"})) {
    if (says(words, "deepspeed") && (any->name == "deepspeed-zero" || any->name == "megatron-lm"))
      return find_stack(catalog, "megatron-deepspeed");
    if (says(words, "swift")) return named(catalog, "megatron-swift");
  }
  if (!any->name.starts_with("pytorch-") || front_end(words, catalog)) return any;
  const Stack* own = longest_alias(words, catalog, [](const Stack& s, const std::string& phrase) {
    return !names_engine(s, phrase);
  });
  return own && !own->name.starts_with("pytorch-") ? own : any;
}

// The release of NeMo that a text names, as year and month (`nemo:26.06.01` is 2606); zero: none.
int nemo_release(const std::string& words) {
  const std::vector<std::string> all = split_any(words, " ");
  for (size_t i = 0; i + 2 < all.size(); ++i) {
    if (all[i] != "nemo" && all[i] != "release") continue;
    const size_t at = i + (all[i + 1] == "framework" || all[i + 1] == "container" ? 1 : 0);
    if (at + 2 >= all.size()) continue;
    std::string first = all[at + 1];
    if (first.starts_with('v')) first.erase(0, 1);
    const std::optional<double> year = cell_number(first), month = cell_number(all[at + 2]);
    if (year && month && *year >= 20 && *year < 100 && *month >= 1 && *month <= 12)
      return static_cast<int>(*year) * 100 + static_cast<int>(*month);
  }
  return 0;
}

// Where a model's weights or tokenizer come from, and the image that all runs in, are not the
// framework; nor is what is denied or only compared with.
std::string framework_words(const std::string& cell) {
  std::string words = " ";
  for (const std::string& part : clauses_of(clause_words(cell))) {
    const size_t count = split_any(part, " ").size();
    const bool off = part.ends_with(" off ") || part.ends_with(" disabled ");
    const bool no =
        part.starts_with(" no ") || part.starts_with(" not ") || part.starts_with(" without ");
    if (!no && !(off && count <= 3)) words += part.substr(1);
  }
  for (const std::string_view versus : {" vs ", " versus ", " compared with ", " compared to "}) {
    const size_t at = words.find(versus);
    if (at != std::string::npos && at > 0) words.resize(at + 1);
  }
  for (const std::string_view aside :
       {" from hugging face ", " from huggingface ", " from hf ", " hf transformers tokenizer ",
        " hugging face checkpoints ", " huggingface checkpoints ", " hf checkpoints ",
        " hf checkpoint ", " hugging face weights ", " hf weights ", " hf tokenizer ",
        " hugging face tokenizer ", " transformers tokenizer ", " transformers modeling backend ",
        " hugging face datasets ", " hf datasets ", " nvcr io nvidia pytorch "}) {
    const size_t at = words.find(aside);
    if (at != std::string::npos) words = words.substr(0, at + 1) + words.substr(at + aside.size());
  }
  // MindSpore's library is called as Hugging Face's.
  const size_t library = words.find(" mindspore transformers ");
  if (library != std::string::npos) words.replace(library, 24, " mindformers ");
  // `FSDP + Megatron TP` took its tensor parallelism from there, not its loop.
  const size_t part = says(words, "fsdp") ? words.find(" megatron tp ") : std::string::npos;
  if (part != std::string::npos) words.erase(part, std::string_view(" megatron tp").size());
  return words;
}

// By the cell, or by the name: `Qwen3-235B-A22B`.
bool has_experts(const Run& run) {
  if (run.experts.value_or(1) > 1) return true;
  for (const std::string& word : split_any(plain_words(run.model_name), " ")) {
    if (word.size() >= 3 && word.front() == 'a' && word.back() == 'b' &&
        word.find_first_not_of("0123456789", 1) == word.size() - 1) {
      return true;
    }
  }
  return false;
}

// NeMo's containers of mid 2026 on run another stack, which MLPerf's round of that time had
// already; so does a run that says what sets it apart. With experts its recipes do so in
// block-scaled formats alone, on Blackwell (Megatron-Bridge, scripts/performance/configs:
// cuda_graph_impl).
bool later_nemo(const Run& run, const std::string& words, const Accelerator& accelerator,
                bool hybrid) {
  constexpr int kLaterNemo = 2606;
  const std::string told = plain_words(run.overlap_notes + " ; " + run.notes);
  // Graphs of some modules are what came before.
  if (says_any(told, {"dense modules only", "graph without effect", "graphs without effect",
                      "recipe v1", "te cuda graph", "te cuda graphs"})) {
    return false;
  }
  if (hybrid) return false;
  if (says_any(told, {"full iteration cuda graphs", "full iteration cuda graph"})) return true;
  if (says_any(told, {"mlperf training v6", "mlperf v6"}) && !says(words, "megatron lm"))
    return true;
  if (nemo_release(words) < kLaterNemo) return false;
  if (!has_experts(run)) return true;
  return accelerator.architecture.starts_with("blackwell") &&
         says_any(plain_words(run.precision), {"mxfp8", "fp8 mx", "nvfp4"});
}

// Whether NVIDIA tunes this model's runs (Megatron-Bridge, scripts/performance/configs; NeMo's
// performance pages before it). Others are set up by who runs them, with Megatron-Core's defaults.
bool has_recipe(const Run& run) {
  const std::string model = plain_words(run.model_name);
  if (has_experts(run)) return true;
  return model.find(" qwen") == std::string::npos && model.find(" gemma") == std::string::npos &&
         model.find(" mistral") == std::string::npos;
}

// Of NVIDIA's frameworks: whose recipes, of which release.
const Stack* megatron_as_run(const Stack* stack, const Run& run, const std::string& words,
                             const Accelerator& accelerator, bool hybrid, const Catalog& catalog) {
  // NeMo is often named beside the Megatron that it runs on; Megatron-LM in NeMo's container is not
  // NeMo.
  if (stack->name == "megatron-lm" && says(words, "nemo") && !says(words, "megatron lm")) {
    return named(catalog, "megatron-core");
  }
  if (stack->name == "megatron-core") {
    if (later_nemo(run, words, accelerator, hybrid)) return named(catalog, "megatron-core-r26");
    if (!has_recipe(run)) return named(catalog, "megatron-core-plain");
  }
  // Megatron-Core by its own name is started by Megatron-LM's scripts, not by NeMo's recipes.
  if (stack->name == "megatron-core" && says_any(words, {"megatron core", "mcore"}) &&
      !says_any(words, {"nemo", "nvidia", "bridge"})) {
    return named(catalog, "megatron-core-plain");
  }
  return stack;
}

// The stack that a name means, as a run describes it.
const Stack* as_run(const Stack* stack, const Run& run, const std::string& words, bool single,
                    const Accelerator& accelerator, bool hybrid, const Catalog& catalog) {
  if (!stack) return nullptr;
  // Autocast keeps the weights in 32 bits.
  const std::string cells = clause_words(run.precision + " ; " + run.notes);
  std::optional<bool> cast =
      claims_any(cells, {"mixed precision", "mixed precision training", "autocast", "amp"});
  for (const char* off : {"mixed precision no", "mixed precision off", "mixed precision disabled",
                          "mixed precision training not", "mixed precision not"})
    if (says(cells, off)) cast = false;
  if (!cast && affirms(cells, {"fp32 weights"})) cast = true;
  if (!cast && affirms(clause_words(run.precision), {"mixed"})) cast = true;
  const bool mixed = cast.value_or(false);
  // The longest name is that of an engine or a library, and the front end is named beside it.
  const bool engine = stack->name == "pytorch-eager" || stack->name == "pytorch-fsdp";
  if (engine || stack->name == "transformers" || stack->name == "trl") {
    const Stack* front = front_end(words, catalog);
    // An engine that shards casts the weights itself.
    const bool sharded = (read_sharding(run.zero).zero.value_or(0) > 0 ||
                          read_sharding(run.framework, true).zero.value_or(0) > 0);
    // The Trainer trains no 16-bit weights in fp16: its scaler refuses their gradients. Adapters
    // beside frozen ones are few.
    const std::string written = clause_words(run.precision);
    const bool scaled =
        affirms(written, {"fp16", "float16"}) && !affirms(written, {"bf16"}) && cast != false &&
        read_task(told_task(run.task, run.framework, run.precision), run.model_name) != Task::kLora;
    // TRL has PEFT hold what bitsandbytes does not quantise in 32 bits, and runs it under autocast.
    const bool upcast = front && front->name == "trl" && says_any(cells, {"bitsandbytes", "bnb"});
    if (front && (upcast || (front->name == "transformers" && (mixed || scaled))) && !sharded) {
      return named(catalog, "transformers-autocast");
    }
    // Model code beside an engine, and nobody's trainer: a loop of their own.
    if (front && front->name == "transformers" && engine && !says(words, "trainer")) {
      return named(catalog, "transformers-loop");
    }
    if (front) return front;
  }
  if (stack->name == "pytorch-eager") {
    const bool replicated = (says(words, "ddp") || says(plain_words(run.zero), "ddp")) &&
                            !says_any(words, {"fsdp", "fsdp2"});
    if (!single && !(replicated && mixed)) return nullptr;  // a loop for one device, or its copies
    return mixed ? named(catalog, "pytorch-autocast") : stack;
  }
  // Code like torchtitan's that replicates its model under autocast has none of FSDP2's mixed
  // precision.
  const bool titan = stack->name == "pytorch-fsdp2" || stack->name == "torchtitan";
  if (titan && mixed && says(plain_words(run.zero), "ddp") && !says_any(words, {"fsdp", "fsdp2"}))
    return named(catalog, "pytorch-autocast");
  // torchtitan did not run its loss in parts before.
  if (stack->name == "torchtitan" && !dated_from(run.date, "2026-05"))
    stack = named(catalog, "pytorch-fsdp2");
  // DeepEP takes over most of what torchtitan does to routed tokens.
  if ((stack->name == "pytorch-fsdp2" || stack->name == "torchtitan") &&
      affirms(clause_words(run.framework + " ; " + run.overlap_notes), {"deepep", "hybridep"})) {
    return named(catalog, "pytorch-fsdp2-deepep");
  }
  // Its fused kernels come with flash attention.
  if (stack->name == "picotron" && says(plain_words(run.flash_attention), "sdpa"))
    return named(catalog, "picotron-sdpa");
  // Its defaults are torchtitan's; the engine alone has none of them.
  if (stack->name == "pytorch-fsdp2" && !says_any(words, {"torchtitan", "nemo rl"})) {
    return named(catalog, "pytorch-fsdp2-plain");
  }
  return megatron_as_run(stack, run, words, accelerator, hybrid, catalog);
}

}  // namespace

ShardingCell stated_sharding(const Run& run) {
  const ShardingCell cell = read_sharding(run.zero);
  return cell.zero ? cell : read_sharding(run.framework, true);
}

StackChoice choose_stack(const Run& run, const Accelerator& accelerator, const Catalog& catalog,
                         bool hybrid) {
  StackChoice out;
  // A name that is nothing but asides is taken as it stands.
  std::string words = framework_words(run.framework);
  if (!by_alias(words, catalog) && !known_sharding(catalog, words))
    words = plain_words(run.framework);
  const ShardingCell sharding = stated_sharding(run);
  const bool single = run.accelerators.value_or(1) == 1;
  const int year = year_of(run.date + " " + run.framework);
  const Stack* stack = by_alias(words, catalog);
  const Stack* const named_so = stack;

  // JAX and what runs on it: other names beside it are those of kernel libraries.
  if (stack && known_sharding(catalog, words) == Sharding::kJax)
    stack = jax_stack(catalog, accelerator, words, run);
  const Stack* eager = named(catalog, "pytorch-eager");
  stack = as_run(stack, run, words, single, accelerator, hybrid, catalog);
  // `4D: TP, CP, PP, FSDP` says how weights are sharded; FSDP's first version has no pipelines.
  if (stack && stack->name == "pytorch-fsdp" && run.pp.value_or(1) > 1) stack = nullptr;

  // DeepSpeed shards weights and gradients with its own engine, whatever model code runs on it.
  const Stack* zero = first_of(catalog, Sharding::kZero);
  const bool sharded =
      sharding.zero == 3 || (sharding.zero == 2 && (!stack || stack->sharding != Sharding::k3d));
  const bool engine = !single || says(words, "deepspeed");
  if (zero && engine && sharded && run.pp.value_or(1) == 1 &&
      on_deepspeed(words, plain_words(run.zero), stack)) {
    out.code = as_of(catalog, front_end(words, catalog), year);
    if (!stack || stack->sharding != zero->sharding) stack = zero;
  }

  // The same name before selective recompute and flash attention existed.
  const Stack* old = early_megatron(catalog);
  const bool before = year > 0 ? year <= 2021 : accelerator.bf16.v <= 0;
  if (old && stack && (stack->name == "megatron-core" || stack->name == "megatron-lm") && before)
    stack = old;
  if (stack && stack->sharding == Sharding::kJax)
    stack = jax_stack(catalog, accelerator, words, run);
  stack = as_of(catalog, stack, year);

  const Stack* native = hardware_stack(words, catalog, accelerator);
  if (native && stack != native) {
    out.stack = native;
    out.assumed = fmt::format("stack {} by the accelerator", native->name);
    return out;
  }
  if (stack) {
    out.stack = stack;
    const std::string dated = named_so ? named_so->name + "-20" : "";
    const bool older = named_so && (stack == old || stack->name.starts_with(dated));
    if (older && stack != named_so) out.assumed = fmt::format("stack {} by its age", stack->name);
    return out;
  }
  // One accelerator runs plain PyTorch, unless the framework is known to bring its own kernels.
  if (single && eager && known_sharding(catalog, words) != Sharding::k3d) {
    out.stack = eager;
    out.assumed = fmt::format("stack {} (one accelerator)", eager->name);
    return out;
  }
  const Family family = family_of(catalog, run, words, sharding);
  const Stack* nearest = family.sharding == Sharding::kJax
                             ? jax_stack(catalog, accelerator, words, run)
                             : member(catalog, run, words, family.sharding);
  out.stack = as_of(catalog, nearest, year);
  if (!out.stack && !catalog.stacks.empty()) out.stack = &catalog.stacks.front();
  if (out.stack) out.assumed = fmt::format("stack {} by {}", out.stack->name, family.why);
  out.unknown = family.unknown;
  return out;
}

}  // namespace assay
