#include "validate/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "validate/cells.h"
#include "validate/numbers.h"
#include "validate/text.h"

namespace assay {
namespace {

constexpr double kLargestNumber = 1e12;  // no honest figure of a training run is larger

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
    TextColumn{"step_time_s", &Run::time_text},
    TextColumn{"tflops_kind", &Run::tflops_kind},
    TextColumn{"pp", &Run::pp_text},
};

constexpr std::string_view kNumberFix = "write a number above zero, in the unit of its column";
constexpr std::string_view kTimeFix =
    "write seconds as a number above zero with a decimal point, as in 0.85 for 850 ms";

struct NumberColumn {
  std::string_view name;
  std::optional<double> Run::*to;
  std::string_view units;  // that may stand behind the number
  std::string_view fix = kNumberFix;
  bool each = false;  // of one accelerator, not of all
};
constexpr std::array kNumberColumns = {
    NumberColumn{"params_b", &Run::params_b, "b billion"},
    NumberColumn{"gpu_mem_gb", &Run::gpu_mem_gb, "gb g gib"},
    NumberColumn{"peak_mem_gb", &Run::peak_mem_gb, "gb g gib"},
    NumberColumn{"step_time_s", &Run::step_time_s, "s sec seconds", kTimeFix},
    NumberColumn{"step_time_norm_s", &Run::step_time_norm_s, "s", kTimeFix},
    NumberColumn{"tflops_per_gpu", &Run::tflops_per_gpu, "tflops tflop tf", kNumberFix, true},
    NumberColumn{"mfu_pct", &Run::mfu_pct, "percent"},
    NumberColumn{"tokens_per_s_per_gpu", &Run::tokens_per_s_per_gpu, "tokens tok per", kNumberFix,
                 true},
};

// Limits as in world/workload.h and world/plan.h; beyond them nobody trains, and sums would
// overflow.
struct CountColumn {
  std::string_view name;
  std::optional<int64_t> Run::*to;
  double least = 1, most = 1e6;
  std::string_view units = "";  // that may stand beside the number, on either side
  bool degree = false;          // `none` is one
};
constexpr std::array kCountColumns = {
    CountColumn{"layers", &Run::layers, 1, 1e5, "l layer layers"},
    CountColumn{"hidden", &Run::hidden, 1, 1e7},
    CountColumn{"ffn_hidden", &Run::ffn, 1, 1e7},
    CountColumn{"heads", &Run::heads, 1, 65536, "heads head"},
    CountColumn{"kv_heads", &Run::kv_heads, 1, 65536, "heads head kv"},
    CountColumn{"vocab", &Run::vocab, 1, 1e8},
    CountColumn{"seq_len", &Run::seq, 1, 1e9, "token tokens seq"},
    CountColumn{"gpus_per_node", &Run::per_node},
    CountColumn{"n_gpus", &Run::accelerators, 1, 1e6, "gpu gpus"},
    CountColumn{"parallel_tp", &Run::tp, 1, 1e6, "tp", true},
    CountColumn{"pp", &Run::pp, 1, 1e6, "pp stages", true},
    CountColumn{"cp", &Run::cp, 1, 1e6, "cp", true},
    CountColumn{"ep", &Run::ep, 0, 1e6, "ep", true},
    CountColumn{"dp", &Run::dp, 1, 1e6, "dp"},
    CountColumn{"sharding_group", &Run::sharding_group, 0, 1e6},
    CountColumn{"micro_batch", &Run::micro_batch, 1, 1e9, "per mbs"},
    CountColumn{"global_batch", &Run::global_batch, 1, 1e9, "gbs sequences samples"},
    CountColumn{"grad_accum", &Run::grad_accum, 1, 1e9, "steps"},
    CountColumn{"moe_experts", &Run::experts, 0, 1e6},
    CountColumn{"moe_topk", &Run::experts_per_token, 0, 1e6},
    CountColumn{"moe_expert_ffn", &Run::expert_ffn, 0, 1e7},
    CountColumn{"moe_shared_ffn", &Run::shared_ffn, 0, 1e7},
    CountColumn{"moe_dense_layers", &Run::dense_layers, 0, 1e5},
};

struct FlagColumn {
  std::string_view name;
  std::optional<bool> Run::*to;
  std::string_view yes, no;  // words that answer
};
constexpr std::array kFlagColumns = {
    FlagColumn{"gated_mlp", &Run::gated_mlp, "swiglu geglu reglu glu gated silu swish",
               "gelu relu relu2 plain ungated"},
    FlagColumn{"tied_embed", &Run::tied_embeddings, "tied shared", "untied separate unshared"},
};

std::string quoted(std::string_view column, std::string_view cell) {
  return fmt::format("{} \"{}\"", column, sanitize(std::string(cell.substr(0, 64)), 40));
}

// Columns that decide what ran; any other cell that cannot be read is taken as blank.
bool is_needed(std::string_view column) {
  static constexpr std::array<std::string_view, 10> kNeeded = {
      "layers", "hidden", "seq_len", "n_gpus",       "parallel_tp",
      "pp",     "cp",     "ep",      "global_batch", "moe_experts"};
  return std::find(kNeeded.begin(), kNeeded.end(), column) != kNeeded.end();
}

void note_unreadable(std::string_view column, std::string_view cell, std::string fix, Run& run) {
  const bool needed = is_needed(column);
  if (!needed) {
    run.ignored.push_back({std::string(column), quoted(column, cell), std::move(fix)});
    return;
  }
  if (run.unreadable.empty()) {
    run.unreadable_column = column;
    run.unreadable_fix = std::move(fix);
  }
  run.unreadable.push_back(quoted(column, cell));
}

// `22 GiB`, `61440 MiB`: the peak is compared in the unit that it is written in.
bool read_binary_memory(std::string_view cell, double value, Run& run) {
  const std::string words = plain_words(cell);
  const bool mega = words.find("mib ") != std::string::npos;
  if (!mega && words.find("gib ") == std::string::npos) return false;
  constexpr double kMega = 1024;
  run.peak_mem_gb = mega ? value / kMega : value;
  run.peak_in_gib = true;
  return true;
}

void read_numbers(const CsvTable& table, const CsvRow& row, Run& run) {
  for (const NumberColumn& c : kNumberColumns) {
    std::string_view cell = trimmed_cell(table.cell(row, c.name));
    if (blank_number(cell)) continue;
    if (c.name == "mfu_pct" && cell.ends_with('%')) cell.remove_suffix(1);
    if (&Run::step_time_s == c.to && run.ran_out_of_memory()) continue;
    const std::optional<double> value = cell_number(cell);
    if (c.name == "peak_mem_gb" && value && *value > 0 && read_binary_memory(cell, *value, run))
      continue;
    if (value && *value > 0 && *value <= kLargestNumber && !says_more(cell, c.units, c.each)) {
      run.*c.to = *value;
    } else {
      note_unreadable(c.name, cell, std::string(c.fix), run);
    }
  }
}

// What the cell says of recomputation, if anything; the stack's default is taken where it does not.
void note_no_recompute(const CsvTable& table, const CsvRow& row, Run& run) {
  const std::string_view cell = trimmed_cell(table.cell(row, "recompute"));
  if (!read_recompute(std::string(cell)).unreadable) return;
  note_unreadable("recompute", cell, "write none, selective, full or a share of the layers", run);
  run.recompute.clear();
}

// A step that was measured as no number is no blank cell: the run went wrong, or its log was read
// wrongly. Where another column tells the time, nobody misses it.
void note_no_number(const CsvTable& table, const CsvRow& row, Run& run) {
  if (run.measured_s()) return;
  for (const NumberColumn& c : kNumberColumns) {
    const bool time = c.fix == kTimeFix || c.name == "tokens_per_s_per_gpu";
    const std::string_view cell = table.cell(row, c.name);
    if (time && squeezed(cell) == "nan") note_unreadable(c.name, cell, std::string(c.fix), run);
  }
}

// One count of the row. A batch in tokens waits for the length of its sequences.
void read_count(const CountColumn& c, std::string_view written, Run& run) {
  if (c.degree && denied_degree(written)) {
    run.*c.to = 1;
    return;
  }
  if (blank_number(written)) return;
  const std::string word = squeezed(written);
  const bool dense = word == "no" || word == "dense" || word == "nomoe";
  if (dense && c.name.starts_with("moe")) return;
  const std::string cell = bare_number(written, c.units);
  std::optional<double> taken;
  if (c.name == "seq_len") taken = in_thousands(cell);
  if (c.name == "n_gpus") taken = accelerators_in(cell, run.per_node);
  if (c.name == "global_batch") taken = batch_in_tokens(cell, run.seq, run.accelerators);
  const std::optional<double> value = taken ? taken : cell_number(cell);
  if (value && *value >= c.least && *value <= c.most && std::floor(*value) == *value &&
      (taken || !says_more(cell, c.units))) {
    run.*c.to = static_cast<int64_t>(*value);
    if (taken) run.taken.push_back(fmt::format("{} for {}", *value, quoted(c.name, written)));
    return;
  }
  note_unreadable(c.name, written,
                  fmt::format("write a whole number from {:.0f} to {:.0f}", c.least, c.most), run);
}

void read_counts(const CsvTable& table, const CsvRow& row, Run& run) {
  for (const CountColumn& c : kCountColumns) read_count(c, table.cell(row, c.name), run);
  // Model chunks may be described in words instead of counted.
  run.vpp_text = std::string(trimmed_cell(table.cell(row, "vpp")));
  run.vpp = read_chunks(run.vpp_text).chunks;
}

void read_flags(const CsvTable& table, const CsvRow& row, Run& run) {
  for (const FlagColumn& c : kFlagColumns) {
    run.*c.to = read_switch(table.cell(row, c.name), c.yes, c.no);
  }
}

// Ranks that hold a sequence of their own, where the row tells.
std::optional<int64_t> data_ranks(const Run& run) {
  const int64_t shared = run.tp.value_or(1) * run.pp.value_or(1) * run.cp.value_or(1);
  if (run.accelerators && *run.accelerators % shared == 0) return *run.accelerators / shared;
  return run.dp;
}

// A batch in tokens by its size: as many as its parts come to, or more than anybody trains with.
void batch_from_tokens(Run& run) {
  constexpr double kMostTokens = 1e9;  // of a batch; published ones end at some 100 million
  if (!run.global_batch || !run.seq || *run.global_batch % *run.seq != 0) return;
  const std::optional<int64_t> ranks = data_ranks(run);
  const double tokens = static_cast<double>(*run.global_batch);
  const double each = static_cast<double>(run.micro_batch.value_or(0)) *
                      static_cast<double>(run.grad_accum.value_or(0)) *
                      static_cast<double>(ranks.value_or(0));
  const bool parts = each > 0 && each * static_cast<double>(*run.seq) == tokens;
  if (!parts && tokens * static_cast<double>(*run.seq) <= kMostTokens) return;
  run.taken.push_back(fmt::format("global batch {} from {} tokens", *run.global_batch / *run.seq,
                                  *run.global_batch));
  run.global_batch = *run.global_batch / *run.seq;
}

// Where the cell is blank: from the notes, else from a step's time and its tokens per second.
void batch_from_elsewhere(Run& run) {
  const std::string told = clause_words(run.notes + " ; " + run.overlap_notes);
  if (!run.grad_accum) {
    run.grad_accum = count_after(
        told,
        {"gradient accumulation", "gradient accumulation steps", "grad accumulation",
         "grad accumulation steps", "grad accum", "grad accum steps", "accumulation steps"},
        1e6);
  }
  if (run.global_batch) return;
  run.global_batch =
      count_after(told, {"global batch size", "global batch", "gbs", "global batchsize"}, 1e9);
  const std::optional<double> step = run.step_time_s ? run.step_time_s : run.step_time_norm_s;
  if (!run.global_batch && step && run.tokens_per_s_per_gpu && run.accelerators && run.seq) {
    const double batch = *step * *run.tokens_per_s_per_gpu *
                         static_cast<double>(*run.accelerators) / static_cast<double>(*run.seq);
    // Rounded figures: the nearest that comes out even.
    const std::optional<int64_t> ranks = data_ranks(run);
    const double unit =
        static_cast<double>(run.micro_batch.value_or(1)) * static_cast<double>(ranks.value_or(1));
    const double even = std::round(batch / unit) * unit;
    constexpr double kNear = 0.02;
    const double whole = even > 0 && std::abs(even / batch - 1) < kNear ? even : std::round(batch);
    if (whole >= 1 && whole <= 1e9) run.global_batch = static_cast<int64_t>(whole);
  }
  if (!run.global_batch) return;
  run.batch_derived = true;
  run.taken.push_back(fmt::format("global batch {}, not from its cell", *run.global_batch));
}

}  // namespace

std::optional<double> Run::by_tokens_s() const {
  if (!tokens_per_s_per_gpu || !accelerators || !global_batch || !seq) return {};
  return static_cast<double>(*global_batch) * static_cast<double>(*seq) /
         (*tokens_per_s_per_gpu * static_cast<double>(*accelerators));
}

std::optional<double> Run::measured_s() const {
  if (step_time_norm_s) return step_time_norm_s;
  if (step_time_s) return step_time_s;
  return by_tokens_s();
}

std::string_view Run::unusable_for() const {
  if (quality != "A" && quality != "B") return "quality";
  if (check != "ok" && check != "single_metric") return "check";
  if (!accelerators) return "n_gpus";
  if (!seq) return "seq_len";
  if (!by_name && !layers) return "layers";
  if (!by_name && !hidden) return "hidden";
  if (!micro_batch) return "micro_batch";
  if (!global_batch || batch_derived) return "global_batch";
  return step_time_norm_s ? "" : time_column;
}

std::string Run::free_text() const {
  return overlap_notes + " ; " + framework + " ; " + precision + " ; " + zero + " ; " + notes;
}

bool Run::ran_out_of_memory() const {
  const bool no_time = time_text.find_first_of("0123456789") == std::string::npos;
  return says_any(plain_words(check), {"oom", "out of memory"}) ||
         (no_time && affirms(clause_words(time_text), {"oom", "out of memory", "cuda oom"}));
}

namespace {

// Somebody's own table knows nothing of our judgement of others' runs: without these columns it is
// one source, and its rows are taken at their word.
void take_own(const CsvTable& table, Run& run) {
  if (table.column("quality") < 0) run.quality = "A";
  if (table.column("check") < 0) run.check = "ok";
  for (const std::string_view name : {"tokens_per_s_per_gpu", "step_time_s", "step_time_norm_s"}) {
    if (table.column(name) >= 0) run.time_column = name;
  }
  const bool timed = table.column(run.time_column) >= 0;
  if (!timed) run.time_column = "step_time_s";
  if (table.column("source") < 0) run.source = table.file.substr(table.file.rfind('/') + 1);
}

}  // namespace

namespace {

// A column that no row fills is as good as none.
bool filled(const CsvTable& table, std::string_view column) {
  return std::any_of(table.rows.begin(), table.rows.end(), [&](const CsvRow& row) {
    return !blank_number(table.cell(row, column));
  });
}

}  // namespace

std::vector<Run> read_runs(const CsvTable& table) {
  const bool shapes = filled(table, "layers") || filled(table, "hidden");
  std::vector<Run> runs;
  runs.reserve(table.rows.size());
  for (const CsvRow& row : table.rows) {
    Run& run = runs.emplace_back();
    run.line = row.line;
    for (const TextColumn& c : kTextColumns) {
      run.*c.to = std::string(trimmed_cell(table.cell(row, c.name)));
    }
    if (run.id.empty()) run.id = fmt::format("line {}", row.line);
    read_numbers(table, row, run);
    take_own(table, run);
    run.by_name = !shapes;
    read_counts(table, row, run);
    batch_from_tokens(run);
    batch_from_elsewhere(run);
    note_no_number(table, row, run);
    note_no_recompute(table, row, run);
    if (table.column("step_time_norm_s") < 0) run.step_time_norm_s = run.measured_s();
    read_flags(table, row, run);
    if (row.fields.size() < 2) {
      run.unreadable.push_back("a row of one cell");
      run.unreadable_fix = "part the cells by commas";
    }
  }
  return runs;
}

}  // namespace assay
