#include "ingest/training_log.h"

#include <algorithm>
#include <cmath>

#include "ingest/text.h"
#include "ingest/time_text.h"

namespace assay {
namespace {

constexpr size_t kIterationsMax = size_t{4} << 20;
constexpr size_t kLoggedEventsMax = size_t{1} << 20;

// The first of these texts that the line has, and what follows it.
std::optional<std::string_view> after(std::string_view line, std::string_view key) {
  const size_t at = line.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  return line.substr(at + key.size());
}

// A time anywhere near the start: `[2024-05-01 12:00:00.123]`, `[NeMo I 2024-05-01 12:00:00 ...`,
// or after `datetime: `.
std::optional<double> line_time(std::string_view line) {
  if (const auto rest = after(line, "datetime: ")) return time_at(*rest);
  const size_t looked_at = std::min<size_t>(line.size(), 64);
  for (size_t i = 0; i + 19 <= line.size() && i < looked_at; ++i) {
    const bool start = line[i] == '2' && (i == 0 || line[i - 1] < '0' || line[i - 1] > '9');
    if (!start || line[i + 4] != '-') continue;
    if (const std::optional<double> time = time_at(line.substr(i))) return time;
  }
  return std::nullopt;
}

bool is_nan_word(std::string_view value) {
  const std::string word = lower(trimmed(value).substr(0, 8));
  return word.starts_with("nan") || word.starts_with("inf") || word.starts_with("-inf") ||
         word.starts_with("-nan");
}

// One `key: value` (or `key=value`) of an iteration line.
void add_field(TrainingIteration& out, std::string_view key, std::string_view value) {
  const std::optional<double> number = leading_number(value);
  const auto counted = [&]() -> int64_t {
    return number && *number >= 0 && *number < 1e15 ? static_cast<int64_t>(*number) : 0;
  };
  if (key.starts_with("elapsed time per iteration")) {
    const double unit = contains(key, "(ms)") ? 1e-3 : 1;
    if (number && *number >= 0) out.elapsed = Seconds(*number * unit);
  } else if (key.starts_with("train_step_timing")) {
    if (number && *number >= 0) out.elapsed = Seconds(*number);
  } else if (key == "consumed samples" || key == "consumed_samples") {
    out.samples = number;
  } else if (key == "consumed tokens" || key == "consumed_tokens") {
    out.tokens = number;
  } else if (key == "global batch size" || key == "global_batch_size") {
    out.batch = number;
  } else if (key == "lm loss" || key == "lm-loss" || key == "reduced_train_loss" || key == "loss") {
    out.loss = number;
    out.loss_is_nan = !number && is_nan_word(value);
  } else if (key == "TFLOPs" || contains(key, "TFLOP/s/GPU")) {
    out.tflops = number;
  } else if (key == "number of skipped iterations") {
    out.skipped = counted();
  } else if (key == "number of nan iterations") {
    out.nan = counted();
  } else if (key == "global_step") {
    if (number && *number >= 0) out.iteration = counted();
  }
}

// `iteration   12695/  115311`
bool read_counter(std::string_view line, TrainingIteration& out) {
  const auto rest = after(line, "iteration ");
  if (!rest) return false;
  const std::string_view head = rest->substr(0, rest->find('|'));
  const size_t slash = head.find('/');
  if (slash == std::string_view::npos) return false;
  const std::optional<uint64_t> iteration = unsigned_number(head.substr(0, slash));
  const std::optional<double> planned = leading_number(head.substr(slash + 1));
  if (!iteration || *iteration > uint64_t{1} << 53) return false;
  out.iteration = static_cast<int64_t>(*iteration);
  if (planned && *planned >= 0 && *planned < 1e15) out.planned = static_cast<int64_t>(*planned);
  return true;
}

void add_fields(std::string_view line, char separator, char assign, TrainingIteration& out) {
  for (const std::string_view field : fields(line, separator, 64)) {
    const size_t colon = field.find(assign);
    if (colon == std::string_view::npos) continue;
    add_field(out, trimmed(field.substr(0, colon)), field.substr(colon + 1));
  }
}

// Megatron and NeMo's plain log: fields between bars.
bool read_iteration(std::string_view line, TrainingIteration& out) {
  const bool megatron = contains(line, "elapsed time per iteration");
  const bool nemo = contains(line, "Training epoch") || contains(line, "train_step_timing");
  if (!megatron && !nemo) return false;
  if (read_counter(line, out)) {
    add_fields(line, '|', ':', out);
    return true;
  }
  // NeMo's progress bar: `Epoch 0: 10%| | 3/300 [00:50<..., global_step=2.0, train_step_timing in
  // s=5.6]`. The bar is drawn again and again; its last state of a step is what counts.
  if (!contains(line, "global_step=")) return false;
  out.iteration = -1;
  add_fields(line, ',', '=', out);
  return out.iteration >= 0 && out.elapsed.has_value();
}

std::optional<int64_t> iteration_in(std::string_view line) {
  const auto rest = after(line, "at iteration ");
  if (!rest) return std::nullopt;
  const std::optional<double> number = leading_number(*rest);
  if (!number || *number < 0 || *number > 1e15) return std::nullopt;
  return static_cast<int64_t>(*number);
}

bool read_event(std::string_view line, TrainingEvent& out) {
  struct EventMark {
    std::string_view text;
    TrainingEventKind kind;
  };
  constexpr EventMark kEventMarks[] = {
      {"[after megatron is initialized]", TrainingEventKind::kStart},
      {"[before the start of training step]", TrainingEventKind::kTrainingBegins},
      {"[after training is done]", TrainingEventKind::kEnd},
      {"successfully saved checkpoint", TrainingEventKind::kCheckpointSaved},
      {"successfully loaded checkpoint", TrainingEventKind::kCheckpointLoaded},
      {"validation loss at iteration", TrainingEventKind::kEvaluation},
  };
  for (const EventMark& mark : kEventMarks) {
    if (!contains(line, mark.text)) continue;
    out.kind = mark.kind;
    out.iteration = iteration_in(line);
    out.at_s = line_time(line);
    return true;
  }
  // The timers' report: `time (ms) | save-checkpoint: 12345.67`, or with dots and (min, max).
  const auto timer = after(line, "save-checkpoint");
  if (!timer) return false;
  const size_t colon = timer->find(':');
  if (colon == std::string_view::npos || colon > 80) return false;
  std::string_view value = trimmed(timer->substr(colon + 1));
  if (value.starts_with("(")) value = value.substr(std::min(value.size(), value.find(',') + 1));
  const std::optional<double> milliseconds = leading_number(value);
  if (!milliseconds || *milliseconds < 0) return false;
  out.kind = TrainingEventKind::kCheckpointSaved;
  out.duration = Seconds(*milliseconds * 1e-3);
  return true;
}

// A timer's duration belongs to the save that was reported just before it.
void add_event(TrainingLog& log, TrainingEvent event) {
  if (event.duration && !log.events.empty() && !log.events.back().duration &&
      log.events.back().kind == TrainingEventKind::kCheckpointSaved) {
    log.events.back().duration = event.duration;
    return;
  }
  if (log.events.size() < kLoggedEventsMax) log.events.push_back(event);
}

}  // namespace

TrainingLog read_training_log(std::string_view text, const std::string& file) {
  TrainingLog out;
  out.file = file;
  int number = 0;
  std::string_view line;
  bool again = false;
  while (next_line(text, line)) {
    ++number;
    // A progress bar overwrites its line with carriage returns.
    const size_t last = line.rfind('\r');
    if (last != std::string_view::npos && last + 1 < line.size()) line.remove_prefix(last + 1);
    TrainingIteration iteration;
    if (read_iteration(line, iteration)) {
      iteration.line = number;
      iteration.at_s = line_time(line);
      const bool same = !out.iterations.empty() && !again &&
                        out.iterations.back().iteration == iteration.iteration;
      // Several ranks may print the same line.
      if (same) {
        out.iterations.back() = iteration;
      } else if (out.iterations.size() < kIterationsMax) {
        out.iterations.push_back(iteration);
      }
      again = false;
      continue;
    }
    TrainingEvent event;
    if (!read_event(line, event)) continue;
    event.line = number;
    again = again || event.kind == TrainingEventKind::kStart;
    add_event(out, event);
  }
  if (out.iterations.empty()) {
    out.problems.push_back(
        problem(Severity::kWarning, "no iteration line in this training log", file));
  }
  return out;
}

}  // namespace assay
