// One measured training run as somebody wrote it down: a row of a table with the columns of
// data/training_runs.csv. Columns may stand in any order, be missing or be unknown; a blank cell
// was not stated. Nothing is guessed here: see scenario.h for what the cells are taken to mean.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/csv.h"
#include "world/catalog.h"

namespace assay {

// A cell that holds no possible value and is taken as blank.
struct IgnoredCell {
  std::string column;
  std::string text;  // `step_time_s "fast"`
  std::string fix;
};

struct Run {
  int line = 0;  // of the file
  std::string id, source, date, quality, check;
  std::string model_name, gpu, intra_link, inter_link, framework, precision, zero, recompute;
  std::string flash_attention, overlap_notes, notes, task, vpp_text;
  std::string time_text, tflops_kind, pp_text;

  std::optional<double> params_b, gpu_mem_gb, peak_mem_gb;
  std::optional<double> step_time_s, step_time_norm_s, tokens_per_s_per_gpu;
  std::optional<double> tflops_per_gpu, mfu_pct;  // of the model's FLOPs
  bool peak_in_gib = false;                       // so the cell of the peak says
  std::optional<int64_t> layers, hidden, ffn, heads, kv_heads, vocab, seq;
  std::optional<int64_t> accelerators, per_node;
  std::optional<int64_t> tp, pp, vpp, cp, ep, dp, sharding_group;
  std::optional<int64_t> micro_batch, global_batch, grad_accum;
  std::optional<int64_t> experts, experts_per_token, expert_ffn, shared_ffn, dense_layers;
  std::optional<bool> gated_mlp, tied_embeddings;

  // The column of step times: of those that the table has, the first that counts.
  std::string_view time_column = "step_time_norm_s";
  bool by_name = false;  // the table has no columns of shapes: models are known by their names

  bool batch_derived = false;  // the global batch is not from its cell

  // Cells that hold no possible value, as `layers "abc"`: those without which a run is unknown, and
  // those that are taken as blank.
  std::vector<std::string> unreadable;
  std::vector<IgnoredCell> ignored;
  std::vector<std::string> taken;  // cells that were taken for what they do not say as such
  std::string unreadable_column, unreadable_fix;  // of the first of them

  // Measured seconds of one step: as normalised, as stated, or from tokens per second.
  std::optional<double> measured_s() const;
  std::optional<double> by_tokens_s() const;  // from its tokens per second
  // A run counts where its quality is A or B, it was checked, and shape, batch and time are stated.
  // The column that makes a run unusable; empty: none.
  std::string_view unusable_for() const;
  bool usable() const { return unusable_for().empty(); }
  // A run that its authors saw fail for memory.
  bool ran_out_of_memory() const;
  // Everything free that the row holds, for remarks.
  std::string free_text() const;
};

// One Run per row of the table, in its order. A row without an id is named by its line.
std::vector<Run> read_runs(const CsvTable&);

}  // namespace assay
