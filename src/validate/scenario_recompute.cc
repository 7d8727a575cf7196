// What a row says about recomputation, laid over the stack's defaults.
#include "validate/scenario_recompute.h"

#include <fmt/format.h>

#include <algorithm>

#include "perf/layer.h"
#include "validate/text.h"
#include "world/model_size.h"

namespace assay {
namespace {

// Share of a layer's matmul work that `parts` repeat. Beside experts few layers have an MLP of
// their own: its parts count nothing there. Experts and latents are counted apart.
double matmuls_again(const RecomputeParts& parts, const Model& m) {
  const double h = static_cast<double>(m.hidden), ffn = static_cast<double>(m.ffn);
  const double q = static_cast<double>(m.heads) * head_dim(m);
  const double kv = static_cast<double>(m.kv_heads > 0 ? m.kv_heads : m.heads) * head_dim(m);
  const double qkv = h * (q + 2 * kv), out = q * h, down = h * ffn;
  const double up = m.gated_mlp ? 2 * down : down;
  const double mlp = (parts.up ? up : 0) + (parts.down ? down : 0);
  const double again = (parts.qkv ? qkv : 0) + (parts.out ? out : 0) + (m.experts > 0 ? 0 : mlp);
  const double all = qkv + out + up + down;
  return all > 0 ? again / all : 0;
}

// What a policy keeps of a layer, its input among it, in tensors of model width.
double tensors_kept(const RecomputeParts& again, const Model& m) {
  const double h = static_cast<double>(m.hidden), one = h > 0 ? head_dim(m) / h : 0;
  const double q = static_cast<double>(m.heads) * one;
  const double kv = static_cast<double>(m.kv_heads > 0 ? m.kv_heads : m.heads) * one;
  return 1 + (again.qkv ? 0 : q + 2 * kv) + (again.attention ? 0 : q) + (again.out ? 0 : 1);
}

// Whether a checkpointed block stops at the last tensor that is needed. torchtitan asks for the
// whole block since September 2025 (pytorch/torchtitan pull 1580); PyTorch's own default is to
// stop.
bool stops_early(const Run& run, const Scenario& s) {
  const int year = year_of(run.date);
  if (year > 0 && year < s.setting.stack.recipe.stops_early_since) return false;
  if (says(plain_words(run.framework), "torchtitan") && dated_from(run.date, "2025-09"))
    return false;
  return s.plan.early_stop;
}

// torchtitan's own configurations of Qwen3 from 14B on, of GPT-OSS and of Llama 3 70B and 405B run
// whole layers again; smaller ones and DeepSeek's do not (torchtitan/models, config_registry.py).
bool recipe_runs_layers_again(const Run& run, const Scenario& s) {
  constexpr double kLarge = 1.4e10;
  const Model& m = s.setting.workload.model;
  return says(plain_words(run.framework), "torchtitan") && m.kv_lora_rank == 0 &&
         parameters(m) >= kLarge;
}

}  // namespace

void apply_recompute(const Run& run, Scenario& s) {
  RecomputeCell cell = read_recompute(run.recompute);
  if (!cell.kind) cell = read_recompute_notes(run.notes);
  if (!cell.kind) cell = read_recompute_notes(run.overlap_notes);
  if (!cell.kind) {
    if (s.plan.recompute == Recompute::kSelective && recipe_runs_layers_again(run, s)) {
      s.plan.recompute = Recompute::kFull;
      s.plan.early_stop = stops_early(run, s);
    }
    s.assumed.push_back(fmt::format(
        "recompute {}", enum_names(Recompute{})[static_cast<size_t>(s.plan.recompute)]));
    return;
  }
  s.recompute_stated = true;
  if (cell.guessed) s.assumed.push_back("recompute full: its cell names no other");
  s.plan.recompute = *cell.kind;
  s.plan.recompute_layers = cell.fraction.value_or(1);
  if (cell.layer_count) {
    const int64_t stage = std::max<int64_t>(1, s.setting.workload.model.layers / s.plan.pp);
    const int64_t of = *cell.layer_count <= stage ? stage : s.setting.workload.model.layers;
    s.plan.recompute_layers =
        std::min(1.0, static_cast<double>(*cell.layer_count) / static_cast<double>(of));
  }
  if (cell.layers_kept) {
    const auto all = static_cast<double>(s.setting.workload.model.layers);
    s.plan.recompute_layers =
        std::max(0.0, 1 - static_cast<double>(*cell.layers_kept) / std::max(1.0, all));
  }
  s.plan.early_stop = cell.early_stop.value_or(stops_early(run, s));
  if (cell.offload_activations > 0) s.plan.offload_activations = cell.offload_activations;
  if (s.plan.recompute == Recompute::kSelective && !cell.parts) {
    cell.parts = read_recompute_modules(run.notes);
  }
  if (cell.parts) {
    Stack& stack = s.setting.stack;
    stack.selective_matmul = matmuls_again(*cell.parts, s.setting.workload.model);
    stack.selective_attention = cell.parts->attention ? 1 : 0;
    stack.selective_memory = cell.parts->memory;
    stack.selective_experts = cell.parts->experts;
    stack.selective_latent = cell.parts->latent;
    if (cell.parts->saves)
      stack.selective_kept = tensors_kept(*cell.parts, s.setting.workload.model);
  }
}

}  // namespace assay
