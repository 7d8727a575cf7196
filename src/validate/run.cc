#include "validate/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "validate/cells.h"
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
};

constexpr std::string_view kNumberFix = "write a number above zero, in the unit of its column";
constexpr std::string_view kTimeFix =
    "write seconds as a number above zero with a decimal point, as in 0.85 for 850 ms";

struct NumberColumn {
  std::string_view name;
  std::optional<double> Run::*to;
  std::string_view units;  // that may stand behind the number
  std::string_view fix = kNumberFix;
};
constexpr std::array kNumberColumns = {
    NumberColumn{"params_b", &Run::params_b, "b billion"},
    NumberColumn{"gpu_mem_gb", &Run::gpu_mem_gb, "gb g gib"},
    NumberColumn{"peak_mem_gb", &Run::peak_mem_gb, "gb g gib"},
    NumberColumn{"step_time_s", &Run::step_time_s, "s sec seconds", kTimeFix},
    NumberColumn{"step_time_norm_s", &Run::step_time_norm_s, "s", kTimeFix},
    NumberColumn{"tokens_per_s_per_gpu", &Run::tokens_per_s_per_gpu, "tokens tok per"},
};

// Limits as in world/workload.h and world/plan.h; beyond them nobody trains, and sums would
// overflow.
struct CountColumn {
  std::string_view name;
  std::optional<int64_t> Run::*to;
  double least = 1, most = 1e6;
  std::string_view units = "";  // that may stand behind the number
};
constexpr std::array kCountColumns = {
    CountColumn{"layers", &Run::layers, 1, 1e5},
    CountColumn{"hidden", &Run::hidden, 1, 1e7},
    CountColumn{"ffn_hidden", &Run::ffn, 1, 1e7},
    CountColumn{"heads", &Run::heads, 1, 65536},
    CountColumn{"kv_heads", &Run::kv_heads, 1, 65536},
    CountColumn{"vocab", &Run::vocab, 1, 1e8},
    CountColumn{"seq_len", &Run::seq, 1, 1e9, "token tokens"},
    CountColumn{"n_gpus", &Run::accelerators},
    CountColumn{"gpus_per_node", &Run::per_node},
    CountColumn{"parallel_tp", &Run::tp},
    CountColumn{"pp", &Run::pp},
    CountColumn{"cp", &Run::cp},
    CountColumn{"ep", &Run::ep, 0, 1e6},
    CountColumn{"dp", &Run::dp},
    CountColumn{"sharding_group", &Run::sharding_group, 0, 1e6},
    CountColumn{"micro_batch", &Run::micro_batch, 1, 1e9, "per"},
    CountColumn{"global_batch", &Run::global_batch, 1, 1e9},
    CountColumn{"grad_accum", &Run::grad_accum, 1, 1e9},
    CountColumn{"moe_experts", &Run::experts, 0, 1e6},
    CountColumn{"moe_topk", &Run::experts_per_token, 0, 1e6},
    CountColumn{"moe_expert_ffn", &Run::expert_ffn, 0, 1e7},
    CountColumn{"moe_shared_ffn", &Run::shared_ffn, 0, 1e7},
    CountColumn{"moe_dense_layers", &Run::dense_layers, 0, 1e5},
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
  // Dashes of all lengths stand for nothing; other letters and digits beyond ASCII do not.
  if (word.empty()) {
    for (size_t i = 0; i < cell.size(); ++i) {
      const bool dash = cell.substr(i, 2) == "\xe2\x80" || cell.substr(i, 3) == "\xe2\x88\x92";
      if (dash) i += 2;
      if (!dash && static_cast<unsigned char>(cell[i]) >= 0x80) return false;
    }
  }
  return word.empty() || word == "na" || word == "nan" || word == "null" || word == "unknown" ||
         word == "notstated";
}

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

// Whether more stands behind the number than a reader may pass over: `8k`, `8x8`, `4M tokens`,
// `850 ms`, `64%`. `unit` may stand there: `80GB`.
bool says_more(std::string_view cell, std::string_view units) {
  static constexpr std::array<std::string_view, 20> kMore = {
      "k",   "m",    "million", "thousand", "billion", "token", "tokens",  "nodes", "ms", "msec",
      "min", "mins", "minutes", "mib",      "mb",      "tb",    "percent", "hours", "h",  "tib"};
  const std::string_view text = trimmed_cell(cell);
  size_t end = text.find_first_not_of("0123456789.,+- ");
  if (end == std::string_view::npos) return false;
  // `1e9`: the letter belongs to the number.
  const bool exponent =
      (text[end] == 'e' || text[end] == 'E') && end > 0 && text[end - 1] != ' ' &&
      end + 1 < text.size() &&
      std::string_view("0123456789+-").find(text[end + 1]) != std::string_view::npos;
  if (exponent) end = std::min(text.find_first_not_of("0123456789+-", end + 1), text.size());
  if (end == text.size() || text[end] == '(') return false;
  if (text[end] == '%') return true;
  const std::vector<std::string> all = split_any(plain_words(text.substr(end)), " ");
  // A product, unless it counts parts: `8x8`, but `64 x H100`.
  const bool times = text.substr(end, 2) == "\xc3\x97" || (!all.empty() && all[0] == "x");
  const size_t next = text.substr(end, 2) == "\xc3\x97" ? 0 : 1;
  if (times) return next >= all.size() || cell_number(all[next]).has_value();
  if (all.empty()) return true;
  const bool sum = std::find(all.begin(), all.end(), "total") != all.end() ||
                   std::find(all.begin(), all.end(), "all") != all.end();
  for (const std::string& unit : split_any(units, " ")) {
    if (all[0] == unit) return sum && unit != "b" && unit != "billion";
  }
  const bool attached = end > 0 && text[end - 1] != ' ' && !exponent;
  const bool others = all.size() > 1 && all[0] == "per" &&
                      (all[1] == "gpu" || all[1] == "device" || all[1] == "rank");
  return attached || others || std::find(kMore.begin(), kMore.end(), all[0]) != kMore.end();
}

void read_numbers(const CsvTable& table, const CsvRow& row, Run& run) {
  for (const NumberColumn& c : kNumberColumns) {
    const std::string_view cell = table.cell(row, c.name);
    if (is_blank(cell)) continue;
    const std::optional<double> value = cell_number(cell);
    if (value && *value > 0 && *value <= kLargestNumber && !says_more(cell, c.units)) {
      run.*c.to = *value;
    } else {
      note_unreadable(c.name, cell, std::string(c.fix), run);
    }
  }
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

// `8k` tokens are 8,192: sequences are powers of two in this notation. As many digits as a length
// has, and nothing else but its unit.
std::optional<double> in_thousands(std::string_view cell) {
  const std::string_view text = trimmed_cell(cell);
  const size_t end = text.find_first_not_of("0123456789");
  if (end == 0 || end == std::string_view::npos || end > 6) return {};
  const std::string unit = squeezed(text.substr(end));
  if (unit != "k" && unit != "ktokens" && unit != "ki") return {};
  constexpr double kThousand = 1024;
  const std::optional<double> count = cell_number(text.substr(0, end));
  return count ? std::optional(*count * kThousand) : std::nullopt;
}

void read_counts(const CsvTable& table, const CsvRow& row, Run& run) {
  for (const CountColumn& c : kCountColumns) {
    const std::string_view cell = table.cell(row, c.name);
    if (is_blank(cell)) continue;
    const std::string word = squeezed(cell);
    const bool dense = word == "none" || word == "no" || word == "dense" || word == "nomoe";
    if (dense && c.name.starts_with("moe")) continue;
    const std::optional<double> thousands = c.name == "seq_len" ? in_thousands(cell) : std::nullopt;
    const std::optional<double> value = thousands ? thousands : cell_number(cell);
    if (thousands) run.taken.push_back(fmt::format("{} for {}", *value, quoted(c.name, cell)));
    if (value && *value >= c.least && *value <= c.most && std::floor(*value) == *value &&
        (thousands || !says_more(cell, c.units))) {
      run.*c.to = static_cast<int64_t>(*value);
    } else {
      note_unreadable(c.name, cell,
                      fmt::format("write a whole number from {:.0f} to {:.0f}", c.least, c.most),
                      run);
    }
  }
  // Model chunks may be described in words instead of counted.
  run.vpp_text = std::string(trimmed_cell(table.cell(row, "vpp")));
  if (is_blank(run.vpp_text)) run.vpp_text.clear();
  run.vpp = read_chunks(run.vpp_text).chunks;
}

void read_flags(const CsvTable& table, const CsvRow& row, Run& run) {
  for (const FlagColumn& c : kFlagColumns) {
    const std::string word = squeezed(table.cell(row, c.name));
    const auto is = [&](std::initializer_list<std::string_view> words) {
      return std::find(words.begin(), words.end(), word) != words.end();
    };
    if (is({"1", "10", "yes", "y", "true", "swiglu", "geglu", "gated", "tied", "shared"}))
      run.*c.to = true;
    if (is({"0", "00", "no", "n", "false", "gelu", "relu", "plain", "untied", "separate"}))
      run.*c.to = false;
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

std::string_view Run::unusable_for() const {
  if (quality != "A" && quality != "B") return "quality";
  if (check != "ok" && check != "single_metric") return "check";
  if (!accelerators) return "n_gpus";
  if (!seq) return "seq_len";
  if (!by_name && !layers) return "layers";
  if (!by_name && !hidden) return "hidden";
  if (!micro_batch) return "micro_batch";
  if (!global_batch) return "global_batch";
  return step_time_norm_s ? "" : time_column;
}

std::string Run::free_text() const {
  return overlap_notes + " ; " + framework + " ; " + precision + " ; " + zero + " ; " + notes;
}

bool Run::ran_out_of_memory() const {
  const std::string words = plain_words(check);
  return says(words, "oom") || says(words, "out of memory");
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
  run.by_name = table.column("layers") < 0 && table.column("hidden") < 0;
  if (table.column("source") < 0) run.source = table.file.substr(table.file.rfind('/') + 1);
}

}  // namespace

std::vector<Run> read_runs(const CsvTable& table) {
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
    read_counts(table, row, run);
    note_no_number(table, row, run);
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
