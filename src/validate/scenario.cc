#include "validate/scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "perf/layer.h"
#include "perf/memory.h"
#include "perf/predict.h"
#include "validate/documents.h"
#include "validate/scenario_attention.h"
#include "validate/scenario_fit.h"
#include "validate/scenario_notes.h"
#include "validate/scenario_recompute.h"
#include "validate/scenario_remarks.h"
#include "validate/scenario_unread.h"
#include "validate/stages.h"
#include "validate/text.h"

namespace assay {
namespace {

using Assumed = std::vector<std::string>;

std::string joined(const std::vector<std::string>& parts, const std::string& between) {
  std::string out;
  for (const std::string& p : parts) out += out.empty() ? p : between + p;
  return out;
}

// Nothing can be said without these cells.
Refusal not_stated(const std::vector<std::string>& columns) {
  std::string names;
  for (const std::string& c : columns) names += (names.empty() ? "`" : ", `") + c + "`";
  return {RunStatus::kIncomplete, "not stated: " + joined(columns, ", "), columns.front(),
          "fill in " + names};
}
Refusal unsupported(std::string reason, std::string column, std::string fix) {
  return {RunStatus::kUnsupported, std::move(reason), std::move(column), std::move(fix)};
}

// --- policy: precision, recompute, sharding, overlap -------------------------------------------

bool narrow(Precision p) {
  return !single_precision(p) && p != Precision::kBf16 && p != Precision::kFp16;
}

void apply_precision(const Run& run, Scenario& s) {
  PrecisionCell cell = read_precision(run.precision);
  if (!cell.precision) cell.precision = read_precision_notes(run.notes);
  // Where the row's own notes say that the precision was inferred, a stack whose code trains in
  // single precision knows better.
  if (single_precision(s.plan.precision) && inferred(run.notes, "precision"))
    cell = PrecisionCell{};
  if (s.plan.precision == Precision::kBf16 && s.setting.cluster.accelerator.bf16.v <= 0) {
    s.plan.precision = Precision::kFp16;  // what stacks did on hardware without bf16
  }
  // Most of the work is the experts', or all but attention's projections.
  const bool experts = cell.experts_wide && s.setting.workload.model.experts > 0;
  if (cell.precision && (experts || cell.attention_only) && narrow(*cell.precision)) {
    s.plan.precision = Precision::kBf16;
    s.assumed.push_back(
        fmt::format("bf16 throughout, as the {} are", experts ? "experts" : "most of its matmuls"));
  } else if (cell.precision) {
    s.plan.precision = *cell.precision;
  } else {
    std::string text = fmt::format(
        "precision {}", enum_names(Precision{})[static_cast<size_t>(s.plan.precision)]);
    if (!unstated(plain_words(run.precision)))
      text += fmt::format(", as if blank: \"{}\"", sanitize(run.precision.substr(0, 64), 40));
    s.assumed.push_back(std::move(text));
  }
  const Accelerator& device = s.setting.cluster.accelerator;
  if (s.plan.precision == Precision::kFp32 && !cell.no_tf32 &&
      s.setting.stack.sharding == Sharding::k3d && squeezed(device.vendor) == "nvidia" &&
      device.tf32.v > 0) {
    s.plan.precision = Precision::kTf32;
    s.assumed.push_back("tf32 for fp32, as NVIDIA's containers set it");
  }
  if (cell.ambiguous) {
    s.assumed.push_back(
        fmt::format("of several precisions, {}",
                    enum_names(Precision{})[static_cast<size_t>(s.plan.precision)]));
  }
  hold_words(s.setting.stack, s.plan.precision);
}

// `EP8`, `ep=8`, `expert parallelism 8` in notes; not `no EP8`.
std::optional<int64_t> experts_spread(const std::string& text) {
  constexpr double kMost = 4096;
  for (const std::string& clause : clauses_of(clause_words(text))) {
    const std::vector<std::string> all = split_any(clause, " |");
    if (std::any_of(all.begin(), all.end(),
                    [](const std::string& w) { return w == "no" || w == "without" || w == "not"; }))
      continue;
    for (const std::string& word : all) {
      const std::optional<double> n =
          word.starts_with("ep") ? cell_number(word.substr(2)) : std::nullopt;
      if (n && *n >= 1 && *n <= kMost && std::floor(*n) == *n) return static_cast<int64_t>(*n);
    }
    if (const auto n = count_after(clause, {"ep", "expert parallel", "expert parallelism"}, kMost))
      return n;
  }
  return {};
}

// Ranks that hold one copy of the weights together; zero: all of them.
int64_t sharding_group(const Run& run, const ShardingCell& cell, const Scenario& s) {
  if (s.plan.zero < 1) return 0;
  const int64_t all = s.plan.dp * s.plan.cp;
  int64_t group = run.sharding_group.value_or(0);
  if (group == 0) group = cell.group.value_or(0);
  if (group == 0 && cell.copies && all % *cell.copies == 0) group = all / *cell.copies;
  // A `dp` below the ranks that there are counts copies (see apply_degrees).
  const bool copies = s.setting.stack.sharding != Sharding::k3d && s.plan.zero == 3 && run.dp &&
                      *run.dp > 1 && *run.dp < s.plan.dp;
  if (group == 0 && copies && s.plan.dp % *run.dp == 0) group = s.plan.dp / *run.dp;
  if (group == 0 && cell.hybrid) {
    group = count_after(plain_words(run.zero), {"shard", "shard size", "partition"}, 1e6)
                .value_or(s.setting.cluster.node.accelerators);
  }
  return group > 1 && group < all && all % group == 0 ? group : 0;
}

void apply_sharding(const Run& run, bool resembles, Scenario& s) {
  const ShardingCell cell = stated_sharding(run);
  if (cell.zero) {
    s.plan.zero = *cell.zero;
    // Megatron-FSDP fetches and reduces under the computation, and its guide reduces in 16 bits
    // (NVIDIA/Megatron-LM, docs/discussions/megatron-fsdp-user-guide). Gaudi's is taken as alike.
    const std::string& library = s.setting.stack.library;
    const bool megatron = s.setting.stack.sharding == Sharding::k3d && library != "neuron";
    if (s.plan.zero == 3 && megatron) {
      s.plan.overlap_grad = s.plan.overlap_param = true;
      s.setting.stack.gradient_comm_bytes = std::min(2.0, s.setting.stack.gradient_comm_bytes);
    }
  } else if (s.setting.accelerators > 1) {
    // Of a framework that only resembles its stack, nothing says that it shards.
    if (resembles && s.plan.zero == 1) s.plan.zero = 0;
    // DeepSpeed refuses a pipeline together with sharded gradients or weights.
    if (s.plan.pp > 1 && s.setting.stack.sharding == Sharding::kZero)
      s.plan.zero = std::min<int64_t>(s.plan.zero, 1);
    s.assumed.push_back(fmt::format("ZeRO-{}", s.plan.zero));
  }
  // Beside a pipeline FSDP keeps the weights gathered from a step's first micro-batch to its last
  // (torchtitan's reshard_after_forward), or each would be fetched for every micro-batch.
  const bool fsdp = s.setting.stack.sharding == Sharding::kFsdp;
  if (s.plan.zero == 3 && s.plan.pp > 1 && (cell.by_module || fsdp)) {
    s.plan.zero = 2;
    s.assumed.push_back("weights stay gathered beside a pipeline");
  }
  if (s.plan.zero == 3 && fsdp &&
      (keeps_gathered(run.overlap_notes) || keeps_gathered(run.notes))) {
    s.plan.zero = 2;
  }
  s.plan.offload_optimizer = std::max(s.plan.offload_optimizer, cell.offload_optimizer);
  s.plan.offload_parameters = std::max(s.plan.offload_parameters, cell.offload_parameters);
  s.plan.sharding_group = sharding_group(run, cell, s);
}

// Fine-tuning in frameworks that pack keeps attention to each document. MLPerf's data are one
// document a sequence.
void apply_documents(const Run& run, Scenario& s) {
  Workload& w = s.setting.workload;
  const bool tuning = w.task != Task::kPretrain;
  const bool mlperf = claims(clause_words(run.date + " ; " + run.notes), "mlperf").value_or(false);
  if (mlperf || w.model.kind == ModelKind::kDlrm) return;
  const PackedCell cell = read_packed(run.notes + " ; " + run.overlap_notes);
  w.document =
      packed_document(cell, w.seq, tuning, tuning ? s.setting.stack.recipe.finetune_document : 0);
  if (w.document > 0) {
    s.assumed.push_back(fmt::format("packed documents of {} tokens", w.document));
  }
}

// --- degrees and batch -------------------------------------------------------------------------

// Tensor parallel as wide as a node allows and pipeline for the rest: how people split a stated
// model-parallel product.
void split_model_parallel(int64_t product, const Scenario& s, Plan& p) {
  const int64_t widest = std::min(product, s.setting.cluster.node.accelerators);
  p.tp = 1;
  for (int64_t tp = 1; tp <= widest; ++tp) {
    if (product % tp == 0 && s.setting.workload.model.heads % tp == 0) p.tp = tp;
  }
  p.pp = product / p.tp;
}

// The largest divisor of `n` that is at most `limit`.
int64_t divisor_below(int64_t n, int64_t limit) {
  for (int64_t d = std::min(n, std::min<int64_t>(limit, 1 << 20)); d > 1; --d) {
    if (n % d == 0) return d;
  }
  return 1;
}

// Layers of a chunk where interleaving is stated and its degree is not: as NVIDIA's recipes have it
// (catalog/stacks.yaml, recipe.chunk_layers); the three runs of Llama 3's report ask for no fewer
// chunks. PyTorch's own pipelines have two (torchtitan, distributed/pipeline_parallel.py).
constexpr int64_t kChunkLayers = 2;

// Chunks of a stage: stated, else as the stack's recipes cut it where every stage can be cut so.
void apply_chunks(const Run& run, Scenario& s) {
  Plan& p = s.plan;
  p.vpp = 1;
  if (p.pp == 1) return;
  ChunksCell cell = read_chunks(run.vpp_text);
  if (run.vpp) cell.chunks = run.vpp, cell.told = true;
  const size_t aside = run.pp_text.find('(');  // `8 (interleaved, v=6)`
  if (!cell.told && aside != std::string::npos && says(plain_words(run.pp_text), "interleaved"))
    cell = read_chunks(run.pp_text.substr(aside));
  const bool told = cell.told;
  if (!told) cell = read_chunks_notes(run.overlap_notes + " ; " + run.notes);
  const int64_t layers = s.setting.workload.model.layers;
  const int64_t most = (layers + p.pp - 1) / p.pp;  // of a stage; the first and last may have fewer
  const double chunk = told ? 0 : s.setting.stack.recipe.chunk_layers;
  if (cell.chunks) {
    p.vpp = *cell.chunks;
  } else if (cell.layers_each) {
    p.vpp = std::max<int64_t>(1, std::llround(static_cast<double>(most) / *cell.layers_each));
  } else if (cell.interleaved) {
    const bool recipes = s.setting.stack.sharding == Sharding::k3d;
    p.vpp = recipes ? std::max<int64_t>(2, divisor_below(most, most / kChunkLayers)) : 2;
    s.assumed.push_back(fmt::format("{} model chunks per stage", p.vpp));
  } else if (chunk > 0 && most * p.pp <= layers + 2) {
    p.vpp = divisor_below(most, static_cast<int64_t>(static_cast<double>(most) / chunk));
    s.assumed.push_back(fmt::format("{} model chunks per stage, as its recipes interleave", p.vpp));
  }
}

tl::expected<void, Refusal> apply_degrees(const Run& run, Scenario& s) {
  Plan& p = s.plan;
  const int64_t n = s.setting.accelerators;
  p.tp = run.tp.value_or(1);
  p.pp = run.pp.value_or(1);
  p.cp = run.cp.value_or(1);
  p.ep = std::max<int64_t>(1, run.ep.value_or(1));
  const bool unstated = !run.tp && !run.pp;
  const bool three_d = s.setting.stack.sharding == Sharding::k3d;
  // Where weights are sharded over all ranks, fewer `dp` than those count their copies.
  const bool copies = !three_d && stated_sharding(run).zero.value_or(p.zero) == 3;
  if (unstated && !copies && run.dp && n % (*run.dp * p.cp) == 0 && *run.dp * p.cp < n) {
    split_model_parallel(n / (*run.dp * p.cp), s, p);
    s.assumed.push_back(fmt::format("tp {} pp {} from dp {}", p.tp, p.pp, *run.dp));
  } else if (unstated && !three_d && run.global_batch && *run.global_batch * p.cp < n &&
             n % (*run.global_batch * p.cp) == 0) {
    // Fewer sequences than ranks: each sequence is shared by a tensor group.
    split_model_parallel(n / (*run.global_batch * p.cp), s, p);
    s.assumed.push_back(fmt::format("tp {} pp {} from batch {}", p.tp, p.pp, *run.global_batch));
  } else if (unstated && three_d && n > 1 && !run.micro_batch) {
    return tl::unexpected(not_stated({"parallel_tp", "pp", "micro_batch"}));
  }
  const bool too_many = p.tp > n || p.pp > n / p.tp || p.cp > n / (p.tp * p.pp);
  const int64_t model_parallel = too_many ? 0 : p.tp * p.pp * p.cp;
  if (too_many || n % model_parallel != 0) {
    return tl::unexpected(unsupported(
        fmt::format("tp {} x pp {} x cp {} does not divide {} accelerators", p.tp, p.pp, p.cp, n),
        "parallel_tp", "correct `parallel_tp`, `pp`, `cp` or `n_gpus`"));
  }
  p.dp = n / model_parallel;
  const bool counted = copies && run.dp && p.dp % *run.dp == 0;
  if (run.dp && *run.dp != p.dp && !(unstated && three_d) && !counted) {
    s.assumed.push_back(fmt::format("dp {} (stated {})", p.dp, *run.dp));
  }
  apply_chunks(run, s);
  const Model& m = s.setting.workload.model;
  if (const auto ends = read_stage_ends(run.notes, layer_count(m), p.pp); ends && p.vpp == 1) {
    p.first_layers = ends->first, p.last_layers = ends->last;
  } else if (s.setting.stack.recipe.balances_stages && p.pp > 1 && p.vpp == 1) {
    const StageEnds cut = balanced_ends(m, p.pp);
    p.first_layers = cut.first, p.last_layers = cut.last;
  }
  const int64_t experts = s.setting.workload.model.experts;
  if (experts == 0) p.ep = 1;
  // A library that carries tokens to experts is named: they are spread as far as they go.
  const int64_t ranks = n / p.pp;
  const std::optional<int64_t> noted = experts_spread(run.free_text());
  if (experts > 0 && !run.ep && noted && experts % *noted == 0 && ranks % *noted == 0) {
    p.ep = *noted;
    s.assumed.push_back(fmt::format("ep {} by the notes", p.ep));
  } else if (experts > 0 && !run.ep &&
             affirms(clause_words(run.free_text()), {"deepep", "hybridep"})) {
    p.ep = std::gcd(experts, ranks);
    s.assumed.push_back(fmt::format("ep {}", p.ep));
  }
  return {};
}

tl::expected<void, Refusal> apply_batch(const Run& run, const Remarks& remarks, Scenario& s) {
  Plan& p = s.plan;
  Workload& w = s.setting.workload;
  std::optional<int64_t> micro = run.micro_batch ? run.micro_batch : remarks.micro_batch;
  const int64_t accumulate = run.grad_accum.value_or(1);
  if (!run.global_batch && !micro) {
    return tl::unexpected(not_stated({"micro_batch", "global_batch"}));
  }
  if (!run.global_batch) {
    if (static_cast<double>(*micro) * static_cast<double>(p.dp) * static_cast<double>(accumulate) >
        1e9) {
      return tl::unexpected(unsupported("the batch is not a possible number of sequences",
                                        "micro_batch", "correct `micro_batch` or `grad_accum`"));
    }
    w.global_batch = *micro * p.dp * accumulate;
    p.micro_batch = *micro;
    s.assumed.push_back(fmt::format("global batch {}", w.global_batch));
    return {};
  }
  w.global_batch = *run.global_batch;
  // A batch that does not come out even is what the framework would round it to.
  if (w.global_batch % p.dp != 0) {
    const int64_t rounded = std::max<int64_t>(1, (w.global_batch + p.dp / 2) / p.dp) * p.dp;
    s.assumed.push_back(fmt::format("global batch {} (stated {})", rounded, w.global_batch));
    w.global_batch = rounded;
  }
  const int64_t per_rank = w.global_batch / p.dp;
  if (!micro) {
    const bool whole =
        s.setting.stack.sharding != Sharding::k3d;  // these run a rank's batch in one piece
    micro = run.grad_accum ? per_rank / accumulate : whole && p.pp == 1 ? per_rank : 1;
    const auto each = static_cast<int64_t>(s.setting.stack.recipe.stage_microbatches);
    if (!run.grad_accum && p.pp > 1 && each > 0) micro = per_rank / (each * p.pp * p.vpp);
    micro = std::max<int64_t>(1, *micro);
    s.assumed.push_back(fmt::format("micro-batch {}", *micro));
  }
  // JAX frameworks count a batch per device and run a rank's share, of all the devices that hold
  // one sequence group, in one piece.
  const bool per_device = s.setting.stack.sharding == Sharding::kJax && p.pp == 1 &&
                          !run.grad_accum && p.tp * p.cp > 1 && *micro * p.tp * p.cp == per_rank;
  if (per_device) {
    s.assumed.push_back(fmt::format("batch {} of a device, so {} of a rank", *micro, per_rank));
    micro = per_rank;
  }
  p.micro_batch = *micro;
  if (per_rank % p.micro_batch != 0) {
    const int64_t fitting = divisor_below(per_rank, p.micro_batch);
    s.assumed.push_back(fmt::format("micro-batch {} (stated {})", fitting, p.micro_batch));
    p.micro_batch = fitting;
  }
  return {};
}

RunClass class_of(const Scenario& s) {
  if (s.setting.workload.task == Task::kLora) return RunClass::kLora;
  if (s.setting.workload.model.experts > 0) return RunClass::kMoe;
  if (s.plan.cp > 1 || s.setting.workload.seq >= 32768) return RunClass::kLongContext;
  if (s.plan.zero == 3) return RunClass::kFsdp;
  return RunClass::kDense;
}

tl::expected<void, Refusal> check_stated(const Run& run) {
  if (!run.unreadable.empty()) {
    return tl::unexpected(Refusal{RunStatus::kIncomplete,
                                  "cannot read " + joined(run.unreadable, ", "),
                                  run.unreadable_column, run.unreadable_fix});
  }
  std::vector<std::string> missing;
  if (run.gpu.empty()) missing.push_back("gpu");
  if (!run.accelerators) missing.push_back("n_gpus");
  if (!run.seq) missing.push_back("seq_len");
  if (!missing.empty()) return tl::unexpected(not_stated(missing));
  if (*run.accelerators > 1000000) {
    return tl::unexpected(unsupported(fmt::format("{} accelerators", *run.accelerators), "n_gpus",
                                      "write at most 1000000"));
  }
  return {};
}

// A 3D framework's layers in a loop of one's own under autocast: 32 bits between the matmuls, casts
// around them, and 32-bit weights, gradients and moments. Shares and counts as plain PyTorch's and
// Hugging Face's layers have them (catalog/stacks.yaml, pytorch-autocast, transformers-autocast).
void run_under_autocast(Stack& stack) {
  constexpr double kTraffic = 1.5, kSaved = 1.6, kCasts = 13;  // casts of a pass and layer
  stack.traffic *= kTraffic;
  stack.traffic_plain *= kTraffic;
  stack.traffic_compiled *= kTraffic;
  stack.saved_hidden *= kSaved;
  stack.saved_plain *= kSaved;
  for (double* n : {&stack.kernels_forward, &stack.kernels_backward, &stack.launches_forward,
                    &stack.launches_backward}) {
    *n += kCasts;
  }
  stack.residual_bytes = 4;
  stack.weight_bytes = stack.gradient_bytes = stack.gradient_bytes_fp16 = 4;
  stack.weight_comm_bytes = stack.gradient_comm_bytes = 4;
  stack.optimizer_bytes = stack.optimizer_bytes_fp16 = 8;
}

// What a layer costs and saves is the model code's, whatever engine shards it.
void run_code(const Stack& code, Stack& engine) {
  engine.traffic = code.traffic;
  if (engine.kernels_forward > 0) {  // not where one program holds them all
    engine.kernels_forward = code.kernels_forward;
    engine.kernels_backward = code.kernels_backward;
  }
  engine.launches_forward = code.launches_forward;
  engine.launches_backward = code.launches_backward;
  engine.launches_adapter = code.launches_adapter;
  engine.adapters_apart = code.adapters_apart;
  engine.adapter_casts = code.adapter_casts;
  engine.unpack_bytes = code.unpack_bytes;
  engine.recipe.adapts_mlp = code.recipe.adapts_mlp;
  engine.launch = code.launch;
  engine.checkpoint_host = code.checkpoint_host;
  engine.gelu_traffic = code.gelu_traffic;
  engine.head_norm_forward = code.head_norm_forward;
  engine.head_norm_backward = code.head_norm_backward;
  engine.saved_head_norm = code.saved_head_norm;
  engine.saved_hidden = code.saved_hidden;
  engine.saved_plain = code.saved_plain;
  engine.saved_frozen = code.saved_frozen;
  engine.saved_ffn = code.saved_ffn;
  engine.saved_gelu = code.saved_gelu;
  engine.saved_scores = code.saved_scores;
  engine.expand_kv = code.expand_kv;
  engine.logits_bytes = code.logits_bytes;
  engine.logits_bytes_masked = code.logits_bytes_masked;
  engine.recipe.stops_early_since = code.recipe.stops_early_since;
}

// Casts to 8 bits are Transformer Engine's own kernels wherever it is named, not those of the
// engine beneath: what they move is stated for the stack that always runs on it.
void cast_by_engine(const Run& run, const Catalog& catalog, Stack& stack) {
  const std::string words = clause_words(run.framework + " ; " + run.precision);
  const Stack* engine = find_stack(catalog, "megatron-core");
  if (!engine || stack.sharding != Sharding::kFsdp || !affirms(words, {"transformer engine", "te"}))
    return;
  stack.quantize_traffic = engine->quantize_traffic;
  stack.quantize_blocks = engine->quantize_blocks;
}

std::string nearest_accelerator(const std::string& gpu, const Catalog& catalog) {
  std::vector<std::string> names;
  for (const Accelerator& a : catalog.accelerators) names.push_back(a.name);
  const std::string near = nearest(gpu.substr(0, 60), names);
  return near.empty() ? "name one as `assay catalog list accelerators` has it"
                      : fmt::format("did you mean `{}`?", near);
}

}  // namespace

MemoryCounter choose_counter(const Run& run) {
  MemoryCounter out;
  const std::string words = plain_words(run.notes + " ; " + run.overlap_notes);
  // torchtitan prints the peak of what the allocator reserved, in GiB (its metrics:
  // max_reserved_gib); trackio what the driver shows, in GiB (trackio/gpu.py, collect_gpu_metrics).
  const bool titan = says(plain_words(run.framework), "torchtitan");
  const bool trackio = says(words, "trackio");
  const bool told = says_any(words, {"gib", "mib by 1024"});
  const bool converted = says_any(words, {"converted", "turned from gib", "turned into gb",
                                          "from gib", "gib there", "here gb", "to gb"});
  if (((titan || trackio || told) && !converted) || run.peak_in_gib) out.unit = kGiB;
  out.device = trackio || says_any(words, {"nvidia smi", "amd smi", "rocm smi", "npu smi", "dcgm",
                                           "driver shows", "driver level", "monitor"});
  const bool inside = says_any(words, {"peak active", "max allocated", "memory is the active"});
  out.reserved = (titan && !inside) || out.device || says(words, "reserved");
  return out;
}

tl::expected<Scenario, Refusal> to_scenario(const Run& written, const Catalog& catalog) {
  const Run run = with_notes(written);
  if (const auto checked = check_stated(run); !checked) return tl::unexpected(checked.error());
  Scenario s;
  for (const IgnoredCell& cell : run.ignored) s.assumed.push_back("as if blank: " + cell.text);
  for (const std::string& cell : run.taken) s.assumed.push_back(cell);
  const Accelerator* accelerator = choose_accelerator(run, catalog);
  if (!accelerator && (accelerator = usual_accelerator(run, catalog))) {
    s.assumed.push_back("accelerator " + accelerator->name);
  }
  if (!accelerator) {
    return tl::unexpected(
        unsupported(fmt::format("no single known accelerator in \"{}\"", sanitize(run.gpu, 60)),
                    "gpu", nearest_accelerator(run.gpu, catalog)));
  }
  tl::expected<Model, Refusal> model = choose_model(run, catalog, s.assumed);
  if (!model) return tl::unexpected(model.error());
  const StackChoice stack = choose_stack(run, *accelerator, catalog, model->mixer.layers > 0);
  if (!stack.stack)
    return tl::unexpected(
        unsupported("the catalog has no stack", "framework", "add one to the catalog"));
  if (!stack.assumed.empty()) s.assumed.push_back(stack.assumed);

  s.setting.workload.model = std::move(*model);
  s.setting.workload.name = s.setting.workload.model.name;
  s.setting.workload.task =
      read_task(told_task(run.task, run.framework, run.precision), run.model_name);
  s.setting.workload.seq = shared_sequence(*run.seq, run.cp.value_or(1));
  if (s.setting.workload.seq != *run.seq) s.assumed.push_back("sequence padded for its ranks");
  s.setting.cluster = choose_cluster(run, *accelerator, catalog, s.assumed);
  s.setting.accelerators = *run.accelerators;
  resolve(s.setting, catalog);
  s.setting.stack = *stack.stack;
  if (stack.code) {
    run_code(*stack.code, s.setting.stack);
    s.assumed.push_back("model code of " + stack.code->name);
  }
  cast_by_engine(run, catalog, s.setting.stack);
  // A submission to MLPerf brings its vendor's kernels, whatever its framework is called.
  if (says(plain_words(run.date), "mlperf")) s.setting.stack.casts_tuned = true;
  const bool eager3d = stack.stack->sharding == Sharding::k3d && stack.stack->kernels_forward > 0;
  const std::string precision = clause_words(run.precision);
  // Transformer Engine's `fp8_autocast` casts inside its own kernels.
  if (eager3d && affirms(precision, {"autocast"}) && precision.find("fp8") == std::string::npos) {
    run_under_autocast(s.setting.stack);
    s.assumed.push_back("layers under autocast");
  }
  // MLPerf's benchmark adapts attention alone, whoever runs it.
  const bool mlperf = says(plain_words(run.date + " ; " + run.notes), "mlperf");
  s.setting.workload.lora_mlp = s.setting.stack.recipe.adapts_mlp && !mlperf;
  s.plan = stack.stack->defaults;
  if (stack.code) s.plan.recompute = stack.code->defaults.recompute;

  const Remarks remarks = remarks_of(run);
  if (const auto done = apply_degrees(run, s); !done) return tl::unexpected(done.error());
  if (const auto done = apply_batch(run, remarks, s); !done) return tl::unexpected(done.error());
  apply_precision(run, s);
  apply_recompute(run, s);
  apply_sharding(run, !stack.assumed.empty() && stack.stack->sharding == Sharding::k3d, s);
  apply_attention(run, s);
  apply_documents(run, s);
  apply_remarks(remarks, s);
  s.counter = choose_counter(run);
  fit_sharding(run, stack.unknown, s);
  fit_state(run, s);
  fit_recompute(run, s);
  s.kind = class_of(s);
  tell_unread(run, s);
  return s;
}

}  // namespace assay
