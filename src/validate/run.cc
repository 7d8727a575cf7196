#include "validate/run.h"

#include <array>
#include <cmath>

#include <fmt/format.h>

#include "validate/text.h"

namespace assay {
namespace {

constexpr double kLargestCount = 1e12;  // no honest count of a training run is larger

struct TextColumn {
  std::string_view name;
  std::string Run::*to;
};
constexpr std::array kTextColumns = {
    TextColumn{"id", &Run::id},
    TextColumn{"source", &Run::source},
    TextColumn{"date", &Run::date},
    TextColumn{"quality", &Run::quality},
    TextColumn{"check", &Run::check},
    TextColumn{"model_name", &Run::model_name},
    TextColumn{"gpu", &Run::gpu},
    TextColumn{"intra_link", &Run::intra_link},
    TextColumn{"inter_link", &Run::inter_link},
    TextColumn{"framework", &Run::framework},
    TextColumn{"precision", &Run::precision},
    TextColumn{"zero_stage_or_fsdp", &Run::zero},
    TextColumn{"recompute", &Run::recompute},
    TextColumn{"flash_attention", &Run::flash_attention},
    TextColumn{"overlap_notes", &Run::overlap_notes},
    TextColumn{"notes", &Run::notes},
    TextColumn{"task", &Run::task},
};

struct NumberColumn {
  std::string_view name;
  std::optional<double> Run::*to;
};
constexpr std::array kNumberColumns = {
    NumberColumn{"params_b", &Run::params_b},
    NumberColumn{"gpu_mem_gb", &Run::gpu_mem_gb},
    NumberColumn{"peak_mem_gb", &Run::peak_mem_gb},
    NumberColumn{"step_time_s", &Run::step_time_s},
    NumberColumn{"step_time_norm_s", &Run::step_time_norm_s},
    NumberColumn{"tokens_per_s_per_gpu", &Run::tokens_per_s_per_gpu},
};

struct CountColumn {
  std::string_view name;
  std::optional<int64_t> Run::*to;
  bool zero_allowed = false;
};
constexpr std::array kCountColumns = {
    CountColumn{"layers", &Run::layers},
    CountColumn{"hidden", &Run::hidden},
    CountColumn{"ffn_hidden", &Run::ffn},
    CountColumn{"heads", &Run::heads},
    CountColumn{"kv_heads", &Run::kv_heads},
    CountColumn{"vocab", &Run::vocab},
    CountColumn{"seq_len", &Run::seq},
    CountColumn{"n_gpus", &Run::accelerators},
    CountColumn{"gpus_per_node", &Run::per_node},
    CountColumn{"parallel_tp", &Run::tp},
    CountColumn{"pp", &Run::pp},
    CountColumn{"cp", &Run::cp},
    CountColumn{"ep", &Run::ep, true},
    CountColumn{"dp", &Run::dp},
    CountColumn{"sharding_group", &Run::sharding_group, true},
    CountColumn{"micro_batch", &Run::micro_batch},
    CountColumn{"global_batch", &Run::global_batch},
    CountColumn{"grad_accum", &Run::grad_accum},
    CountColumn{"moe_experts", &Run::experts, true},
    CountColumn{"moe_topk", &Run::experts_per_token, true},
    CountColumn{"moe_expert_ffn", &Run::expert_ffn, true},
    CountColumn{"moe_shared_ffn", &Run::shared_ffn, true},
    CountColumn{"moe_dense_layers", &Run::dense_layers, true},
};

struct FlagColumn {
  std::string_view name;
  std::optional<bool> Run::*to;
};
constexpr std::array kFlagColumns = {
    FlagColumn{"gated_mlp", &Run::gated_mlp},
    FlagColumn{"tied_embed", &Run::tied_embeddings},
};

// Words that stand where nothing was stated.
bool is_blank(std::string_view cell) {
  const std::string word = squeezed(cell);
  return word.empty() || word == "na" || word == "nan" || word == "null" || word == "unknown" ||
         word == "notstated";
}

std::string quoted(std::string_view column, std::string_view cell) {
  return fmt::format("{} \"{}\"", column, sanitize(std::string(cell.substr(0, 64)), 40));
}

void read_numbers(const CsvTable& table, const CsvRow& row, Run& run) {
  for (const NumberColumn& c : kNumberColumns) {
    const std::string_view cell = table.cell(row, c.name);
    if (is_blank(cell)) continue;
    const std::optional<double> value = cell_number(cell);
    if (value && *value > 0 && *value <= kLargestCount) {
      run.*c.to = *value;
    } else {
      run.unreadable.push_back(quoted(c.name, cell));
    }
  }
}

void read_counts(const CsvTable& table, const CsvRow& row, Run& run) {
  for (const CountColumn& c : kCountColumns) {
    const std::string_view cell = table.cell(row, c.name);
    if (is_blank(cell)) continue;
    const std::optional<double> value = cell_number(cell);
    const double least = c.zero_allowed ? 0 : 1;
    if (value && *value >= least && *value <= kLargestCount && std::floor(*value) == *value) {
      run.*c.to = static_cast<int64_t>(*value);
    } else {
      run.unreadable.push_back(quoted(c.name, cell));
    }
  }
  // Model chunks may be described in words instead of counted.
  run.vpp_text = std::string(trimmed(table.cell(row, "vpp")));
  const std::optional<double> vpp = cell_number(run.vpp_text);
  if (vpp && *vpp >= 1 && *vpp <= 1e6 && std::floor(*vpp) == *vpp) {
    run.vpp = static_cast<int64_t>(*vpp);
  }
}

void read_flags(const CsvTable& table, const CsvRow& row, Run& run) {
  for (const FlagColumn& c : kFlagColumns) {
    const std::string word = squeezed(table.cell(row, c.name));
    if (word == "1" || word == "10" || word == "yes" || word == "true") run.*c.to = true;
    if (word == "0" || word == "00" || word == "no" || word == "false") run.*c.to = false;
  }
}

}  // namespace

std::optional<double> Run::measured_s() const {
  if (step_time_norm_s) return step_time_norm_s;
  if (step_time_s) return step_time_s;
  if (tokens_per_s_per_gpu && accelerators && global_batch && seq) {
    return static_cast<double>(*global_batch) * static_cast<double>(*seq) /
           (*tokens_per_s_per_gpu * static_cast<double>(*accelerators));
  }
  return {};
}

bool Run::usable() const {
  return (quality == "A" || quality == "B") && (check == "ok" || check == "single_metric") &&
         accelerators && seq && layers && hidden && micro_batch && global_batch && step_time_norm_s;
}

bool Run::ran_out_of_memory() const {
  const std::string words = plain_words(check);
  return says(words, "oom") || says(words, "out of memory");
}

std::vector<Run> read_runs(const CsvTable& table) {
  std::vector<Run> runs;
  runs.reserve(table.rows.size());
  for (const CsvRow& row : table.rows) {
    Run& run = runs.emplace_back();
    run.line = row.line;
    for (const TextColumn& c : kTextColumns) {
      run.*c.to = std::string(trimmed(table.cell(row, c.name)));
    }
    if (run.id.empty()) run.id = fmt::format("line {}", row.line);
    read_numbers(table, row, run);
    read_counts(table, row, run);
    read_flags(table, row, run);
    if (row.fields.size() < 2) run.unreadable.push_back("a row of one cell");
  }
  return runs;
}

}  // namespace assay
