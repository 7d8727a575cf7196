#include "diagnose/training.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "diagnose/robust.h"

namespace assay {
namespace {

// What became of one line of the log.
struct LoggedRow {
  const TrainingIteration* it = nullptr;
  double step_s = 0;   // per iteration; 0: not stated
  int segment = 0;     // lives of the trainer
  bool first = false;  // of its segment: kernels are compiled, caches are cold
  bool lost = false;   // done again later
  bool comparable = false;
  double gap_s = 0;  // after the line before, beyond its own steps
};

struct LoggedRun {
  std::vector<LoggedRow> rows;
  int64_t interval = 1;
  double usual_s = 0, sigma_s = 0;
  double batch = 0;  // the most common one; 0: not stated
};

// The key with the highest count, the smallest of equals; `otherwise` where there is none.
template <class Key>
Key most_common(const std::map<Key, size_t>& counts, Key otherwise) {
  Key best = otherwise;
  size_t most = 0;
  for (const auto& [key, count] : counts) {
    if (count > most) {
      most = count;
      best = key;
    }
  }
  return best;
}

int64_t usual_interval(const std::vector<TrainingIteration>& lines) {
  std::map<int64_t, size_t> counts;
  for (size_t i = 1; i < lines.size(); ++i) {
    const int64_t step = lines[i].iteration - lines[i - 1].iteration;
    if (step > 0) ++counts[step];
  }
  return most_common(counts, int64_t{1});
}

// Whether an event of one of these kinds was logged between two lines. Events are in the order of
// their lines.
bool event_between(const TrainingLog& log, int from_line, int to_line,
                   std::initializer_list<TrainingEventKind> kinds) {
  auto at =
      std::upper_bound(log.events.begin(), log.events.end(), from_line,
                       [](int line, const TrainingEvent& event) { return line < event.line; });
  for (; at != log.events.end() && at->line < to_line; ++at) {
    if (std::find(kinds.begin(), kinds.end(), at->kind) != kinds.end()) return true;
  }
  return false;
}

// A start between two lines is a new life; so is a counter that goes back.
bool restarts_between(const TrainingLog& log, int from_line, int to_line) {
  return event_between(log, from_line, to_line,
                       {TrainingEventKind::kStart, TrainingEventKind::kTrainingBegins});
}

// A line is lost when a later life goes over its iteration again. Read from the end, the lowest
// iteration that later lives begin with decides.
void mark_lost(std::vector<LoggedRow>& rows) {
  int64_t redone_from = std::numeric_limits<int64_t>::max();
  int64_t first_of_life = std::numeric_limits<int64_t>::max();
  for (size_t i = rows.size(); i > 0; --i) {
    LoggedRow& row = rows[i - 1];
    if (i < rows.size() && rows[i].segment != row.segment) {
      redone_from = std::min(redone_from, first_of_life);
      first_of_life = std::numeric_limits<int64_t>::max();
    }
    row.lost = row.it->iteration >= redone_from;
    first_of_life = std::min(first_of_life, row.it->iteration);
  }
}

// Returns the most common batch.
double mark_comparable(std::vector<LoggedRow>& rows) {
  std::map<double, size_t> batches;
  for (const LoggedRow& row : rows) ++batches[row.it->batch.value_or(0)];
  const double usual = most_common(batches, 0.0);
  for (LoggedRow& row : rows) {
    row.comparable = !row.first && row.step_s > 0 && row.it->batch.value_or(0) == usual;
  }
  return usual;
}

LoggedRun run_of(const TrainingLog& log) {
  LoggedRun run;
  run.interval = usual_interval(log.iterations);
  int segment = 0;
  for (size_t i = 0; i < log.iterations.size(); ++i) {
    const TrainingIteration& it = log.iterations[i];
    LoggedRow row;
    row.it = &it;
    row.step_s = it.elapsed ? it.elapsed->v : 0;
    row.first = i == 0;
    if (i > 0) {
      const TrainingIteration& before = log.iterations[i - 1];
      row.first = it.iteration <= before.iteration || restarts_between(log, before.line, it.line);
      if (it.at_s && before.at_s && *it.at_s > *before.at_s) {
        const int64_t jump = it.iteration - before.iteration;
        const double steps = static_cast<double>(jump > 0 && !row.first ? jump : run.interval);
        row.gap_s = std::max(0.0, *it.at_s - *before.at_s - steps * row.step_s);
      }
    }
    segment += row.first && i > 0 ? 1 : 0;
    row.segment = segment;
    run.rows.push_back(row);
  }
  mark_lost(run.rows);
  run.batch = mark_comparable(run.rows);
  std::vector<double> steps;
  for (const LoggedRow& row : run.rows) {
    if (row.comparable) steps.push_back(row.step_s);
  }
  if (steps.empty()) {
    for (const LoggedRow& row : run.rows) {
      if (row.step_s > 0) steps.push_back(row.step_s);
    }
  }
  run.usual_s = median_of(steps);
  run.sigma_s = robust_sigma(steps);
  return run;
}

// --- the period -------------------------------------------------------------------------------

// A gap belongs to the restart, the checkpoint or the evaluation that was logged in it, else to
// nobody.
void add_gaps(const TrainingLog& log, const LoggedRun& run, TrainingPeriod& period) {
  for (size_t i = 1; i < run.rows.size(); ++i) {
    const LoggedRow& row = run.rows[i];
    const int from = run.rows[i - 1].it->line, to = row.it->line;
    if (row.first) {
      period.start_up += Seconds(row.gap_s);
    } else if (event_between(log, from, to, {TrainingEventKind::kCheckpointSaved})) {
      period.checkpoint += Seconds(row.gap_s);
    } else if (event_between(log, from, to, {TrainingEventKind::kEvaluation})) {
      period.evaluation += Seconds(row.gap_s);
    } else {
      period.gaps += Seconds(row.gap_s);
    }
  }
  // Before the first line: from the start of the trainer, less the steps of that line.
  const LoggedRow& first = run.rows.front();
  if (!first.it->at_s || log.events.empty() || !log.events.front().at_s) return;
  const double steps = static_cast<double>(run.interval) * first.step_s;
  const double before = *first.it->at_s - *log.events.front().at_s - steps;
  if (log.events.front().line < first.it->line) period.start_up += Seconds(std::max(0.0, before));
}

// Where lines have no times, the trainer's own figures must do.
void add_events(const TrainingLog& log, TrainingPeriod& period) {
  double started_s = 0;  // 0: not known
  for (const TrainingEvent& event : log.events) {
    if (event.kind == TrainingEventKind::kCheckpointSaved && event.duration) {
      period.checkpoint += *event.duration;
    }
    if (event.kind == TrainingEventKind::kStart) started_s = event.at_s.value_or(0);
    if (event.kind == TrainingEventKind::kTrainingBegins && started_s > 0 && event.at_s) {
      period.start_up += Seconds(std::max(0.0, *event.at_s - started_s));
      started_s = 0;
    }
  }
}

Seconds wall_clock(const TrainingLog& log) {
  double first = 0, last = 0;
  const auto see = [&](const std::optional<double>& at_s) {
    if (!at_s) return;
    first = first == 0 ? *at_s : std::min(first, *at_s);
    last = std::max(last, *at_s);
  };
  for (const TrainingIteration& it : log.iterations) see(it.at_s);
  for (const TrainingEvent& event : log.events) see(event.at_s);
  return Seconds(last - first);
}

TrainingPeriod period_of(const TrainingLog& log, const LoggedRun& run) {
  TrainingPeriod period;
  period.log_interval = run.interval;
  period.usual_step = Seconds(run.usual_s);
  period.usual_batch = run.batch;
  const double k = static_cast<double>(run.interval);
  bool timed = false;
  for (size_t i = 0; i < run.rows.size(); ++i) {
    const LoggedRow& row = run.rows[i];
    const double usual = row.comparable ? run.usual_s : row.step_s;
    const double excess = row.first ? row.step_s - std::min(row.step_s, run.usual_s)
                                    : std::max(0.0, row.step_s - usual);
    timed = timed || row.it->at_s.has_value();
    period.nan_losses += row.it->nan + (row.it->loss_is_nan ? 1 : 0);
    period.skipped += row.it->skipped;
    if (row.lost) {
      period.repeated += run.interval;
      period.lost_work += Seconds(k * row.step_s);
    } else {
      period.iterations += run.interval;
      period.steps += Seconds(k * (row.step_s - excess));
      (row.first ? period.warm_up : period.slow_steps) += Seconds(k * excess);
    }
    if (i > 0 && row.first) ++period.restarts;
    if (i > 0 && !row.first) {
      const int64_t jump = row.it->iteration - run.rows[i - 1].it->iteration;
      period.unlogged += std::max<int64_t>(0, jump - run.interval);
    }
  }
  if (timed) {
    add_gaps(log, run, period);
  } else {
    add_events(log, period);
  }
  const Seconds known = period.steps + period.slow_steps + period.warm_up + period.lost_work +
                        period.checkpoint + period.evaluation + period.start_up + period.gaps;
  period.wall = std::max(known, wall_clock(log));
  period.other = period.wall - known;
  return period;
}

// --- findings ---------------------------------------------------------------------------------

std::string minutes(Seconds t) {
  return t.v < 120 ? fmt::format("{:.1f} s", t.v) : fmt::format("{:.1f} min", t.v / 60);
}

Evidence table_of(const TrainingLog& log, const std::string& title,
                  const std::vector<const LoggedRow*>& rows) {
  Evidence out;
  out.title = title;
  out.file = log.file;
  out.columns = {"line", "iteration", "step", "gap before"};
  for (const LoggedRow* row : rows) {
    if (out.rows.size() >= kEvidenceRows) break;
    out.rows.push_back({fmt::format("{}", row->it->line), fmt::format("{}", row->it->iteration),
                        fmt::format("{:.3f} s", row->step_s),
                        row->gap_s > 0 ? minutes(Seconds(row->gap_s)) : "-"});
  }
  return out;
}

// The one place at which steps became slower and stayed so. Both sides need enough lines to have a
// median of their own, and the difference must stand far out of the scatter that is left.
struct Shift {
  size_t at = 0;  // index into the comparable rows
  double before_s = 0, after_s = 0;
};

std::optional<Shift> find_shift(const std::vector<const LoggedRow*>& rows) {
  constexpr size_t kSide = 8;
  constexpr double kSigmas =
      6;  // the best of many places is looked at, so five sigma are not enough
  const size_t n = rows.size();
  if (n < 2 * kSide) return std::nullopt;
  std::vector<double> sums(n + 1, 0.0);
  for (size_t i = 0; i < n; ++i) sums[i + 1] = sums[i] + rows[i]->step_s;
  // The cut that explains most of the variance, then medians, which spikes cannot move.
  size_t best = 0;
  double best_score = 0;
  for (size_t cut = kSide; cut + kSide <= n; ++cut) {
    const double a = static_cast<double>(cut), b = static_cast<double>(n - cut);
    const double difference = (sums[n] - sums[cut]) / b - sums[cut] / a;
    const double score = difference * difference * a * b;
    if (score > best_score) {
      best_score = score;
      best = cut;
    }
  }
  if (best == 0) return std::nullopt;
  std::vector<double> before, after, rest;
  for (size_t i = 0; i < n; ++i) (i < best ? before : after).push_back(rows[i]->step_s);
  const Shift shift{best, median_of(before), median_of(after)};
  for (const double v : before) rest.push_back(v - shift.before_s);
  for (const double v : after) rest.push_back(v - shift.after_s);
  const double error =
      robust_sigma(rest) * 1.2533 *  // of a median, by sqrt(pi / 2)
      std::sqrt(1.0 / static_cast<double>(before.size()) + 1.0 / static_cast<double>(after.size()));
  const double change = shift.after_s - shift.before_s;
  if (change < kWorthFixing * shift.after_s || change < kSigmas * error) return std::nullopt;
  return shift;
}

bool add_shift(const TrainingLog& log, const std::vector<const LoggedRow*>& rows, Analysis& out) {
  const std::optional<Shift> shift = find_shift(rows);
  if (!shift) return false;
  const double share = 1 - shift->before_s / shift->after_s;
  Finding finding;
  finding.cause = Cause::kStraggler;
  finding.title =
      fmt::format("Steps became {:.1f} % slower at iteration {} and stayed so",
                  100 * (shift->after_s / shift->before_s - 1), rows[shift->at]->it->iteration);
  finding.detail = fmt::format(
      "{:.3f} s a step before, {:.3f} s after, with the same batch size: one part of the machine "
      "has become slower, and all wait for it.",
      shift->before_s, shift->after_s);
  finding.fix =
      "Compare the ranks: profiler traces of one step from all of them, or clocks, "
      "temperatures and throttle reasons of all GPUs; exchange the slow node for a spare.";
  finding.confidence = Confidence::kMedium;
  // It lasts, so what counts is a step of today, not the mean over the log.
  finding.gain = Seconds(shift->after_s - shift->before_s);
  finding.share = share;
  finding.step_after = Seconds(shift->before_s);
  const size_t from = shift->at > 5 ? shift->at - 5 : 0;
  const size_t to = std::min(rows.size(), shift->at + 5);
  finding.evidence.push_back(table_of(log, "lines around the change",
                                      {rows.begin() + static_cast<std::ptrdiff_t>(from),
                                       rows.begin() + static_cast<std::ptrdiff_t>(to)}));
  out.findings.push_back(std::move(finding));
  return true;
}

// The distance at which spikes come, if nearly all of them keep it; 0 otherwise.
int64_t period_of_spikes(const std::vector<const LoggedRow*>& spikes) {
  if (spikes.size() < 4) return 0;
  std::vector<double> distances;
  for (size_t i = 1; i < spikes.size(); ++i) {
    distances.push_back(
        static_cast<double>(spikes[i]->it->iteration - spikes[i - 1]->it->iteration));
  }
  const int64_t usual = static_cast<int64_t>(median_of(distances));
  if (usual < 2) return 0;
  const auto kept = std::count_if(distances.begin(), distances.end(), [&](double d) {
    return d > 0 && static_cast<int64_t>(d) % usual == 0;
  });
  return static_cast<size_t>(kept) * 10 >= distances.size() * 8 ? usual : 0;
}

void add_spikes(const TrainingLog& log, const LoggedRun& run,
                const std::vector<const LoggedRow*>& rows, const TrainingPeriod& period,
                Analysis& out) {
  const double limit = run.usual_s + std::max(0.1 * run.usual_s, 5 * run.sigma_s);
  std::vector<const LoggedRow*> spikes;
  double excess = 0, total = 0;
  for (const LoggedRow* row : rows) {
    total += row->step_s;
    if (row->step_s <= limit) continue;
    spikes.push_back(row);
    excess += row->step_s - run.usual_s;
  }
  if (spikes.empty() || !(total > 0)) return;
  const int64_t every = period_of_spikes(spikes);
  const auto saved = std::count_if(spikes.begin(), spikes.end(), [&](const LoggedRow* row) {
    const int before = row == &run.rows.front() ? 0 : (row - 1)->it->line;
    return event_between(log, before, row->it->line,
                         {TrainingEventKind::kCheckpointSaved, TrainingEventKind::kEvaluation});
  });
  // Of the whole log, as the ledger has it.
  const double share = excess * static_cast<double>(period.log_interval) / period.wall.v;
  const bool known = static_cast<size_t>(saved) * 2 > spikes.size();
  const std::string rhythm =
      every > 0 ? fmt::format("every {} iterations", every) : std::string("at no fixed distance");
  if (known || share < kWorthFixing) {
    out.notes.push_back(fmt::format("{} of {} steps are slow, {}{}: {:.1f} % of the time",
                                    spikes.size(), rows.size(), rhythm,
                                    known ? ", at checkpoints or evaluations" : "", 100 * share));
    return;
  }
  Finding finding;
  finding.cause = every > 0 ? Cause::kGarbageCollection : Cause::kStraggler;
  finding.title = fmt::format("{} of {} steps are slow, {}", spikes.size(), rows.size(), rhythm);
  finding.detail = fmt::format(
      "They take {:.3f} s on average where {:.3f} s are usual. {}",
      run.usual_s + excess / static_cast<double>(spikes.size()), run.usual_s,
      every > 0 ? "A fixed distance, and no checkpoint or evaluation in the log: something is "
                  "cleared or written at that interval, most often Python's garbage."
                : "Without a rhythm it is a part of the machine that is slow at times: a rank, the "
                  "network, storage.");
  finding.fix = every > 0
                    ? "gc.disable() in the training loop and gc.collect() at a fixed step on "
                      "all ranks at once (Megatron: --manual-gc); then look at what else runs "
                      "at that interval."
                    : "Take profiler traces of all ranks over a slow step, and compare their "
                      "GPU clocks and network counters.";
  finding.confidence = Confidence::kLow;
  finding.share = share;
  finding.gain = Seconds(excess * static_cast<double>(period.log_interval));
  finding.step_after = Seconds(run.usual_s);
  finding.evidence.push_back(table_of(log, "slow steps", spikes));
  out.findings.push_back(std::move(finding));
}

// Time between lines in which nothing was logged and nothing restarted.
void add_standstill(const TrainingLog& log, const LoggedRun& run, const TrainingPeriod& period,
                    Analysis& out) {
  constexpr double kStuckS = 300;
  constexpr double kStuckSteps = 5;
  std::vector<const LoggedRow*> stuck;
  double total = 0;
  for (size_t i = 1; i < run.rows.size(); ++i) {
    const LoggedRow& row = run.rows[i];
    const int from = run.rows[i - 1].it->line, to = row.it->line;
    const bool explained = event_between(
        log, from, to, {TrainingEventKind::kCheckpointSaved, TrainingEventKind::kEvaluation});
    if (explained || row.gap_s < kStuckS || row.gap_s < kStuckSteps * run.usual_s) continue;
    stuck.push_back(&row);
    total += row.gap_s;
  }
  if (stuck.empty() || total < kWorthFixing * period.wall.v) return;
  std::stable_sort(stuck.begin(), stuck.end(),
                   [](const LoggedRow* a, const LoggedRow* b) { return a->gap_s > b->gap_s; });
  Finding finding;
  finding.cause = Cause::kHang;
  finding.title = fmt::format("The run stood still {} times, for {} together", stuck.size(),
                              minutes(Seconds(total)));
  finding.detail = fmt::format(
      "The longest is {} before iteration {}, where a step takes {:.1f} s, with no checkpoint or "
      "evaluation in the log.",
      minutes(Seconds(stuck.front()->gap_s)), stuck.front()->it->iteration, run.usual_s);
  finding.fix =
      "Give the kernel logs and Flight Recorder dumps of that time; set a shorter "
      "collective timeout (--distributed-timeout-minutes) so that a dead rank is noticed.";
  finding.confidence = Confidence::kMedium;
  finding.gain = Seconds(total);
  finding.share = total / period.wall.v;
  finding.evidence.push_back(table_of(log, "the longest gaps between lines", stuck));
  out.findings.push_back(std::move(finding));
}

// Losses that are no numbers up to the end of the log: everything since the first is for nothing.
// Single ones that the trainer skipped are a note.
void add_divergence(const TrainingLog& log, const LoggedRun& run, const TrainingPeriod& period,
                    Analysis& out) {
  std::vector<const LoggedRow*> lost;
  double time = 0;
  for (size_t i = run.rows.size(); i > 0 && run.rows[i - 1].it->loss_is_nan; --i) {
    lost.insert(lost.begin(), &run.rows[i - 1]);
    time += run.rows[i - 1].step_s * static_cast<double>(run.interval) + run.rows[i - 1].gap_s;
  }
  if (lost.empty()) return;
  Finding finding;
  finding.cause = Cause::kDiverged;
  finding.urgent = true;
  finding.title =
      fmt::format("The loss is no number from iteration {} on", lost.front()->it->iteration);
  finding.detail =
      fmt::format("The last {} lines of the log, {}: nothing that is trained since is of use.",
                  lost.size(), minutes(Seconds(time)));
  finding.fix =
      "Stop it. Go back to a checkpoint before it, skip the batches around it, or lower the "
      "learning "
      "rate; if it comes at another place each time, suspect a GPU (run it again on others).";
  finding.confidence = Confidence::kHigh;
  finding.share = period.wall.v > 0 ? std::min(1.0, time / period.wall.v) : 0;
  finding.evidence.push_back(table_of(log, "lines whose loss is no number", lost));
  out.findings.push_back(std::move(finding));
}

void add_notes(const TrainingLog& log, const LoggedRun& run, const TrainingPeriod& period,
               Analysis& out) {
  out.notes.push_back(fmt::format("{} iterations of {:.3f} s (scatter {:.1f} %)", period.iterations,
                                  run.usual_s,
                                  run.usual_s > 0 ? 100 * run.sigma_s / run.usual_s : 0.0));
  if (period.restarts > 0) {
    const std::string times =
        period.restarts == 1 ? "once" : fmt::format("{} times", period.restarts);
    out.notes.push_back(fmt::format("it restarted {}; {} iterations ({}) were done twice", times,
                                    period.repeated, minutes(period.lost_work)));
    out.open.push_back(
        {"why the run restarted " + times, "kernel logs and Slurm accounting of that time"});
  }
  if (period.unlogged > 0) {
    out.notes.push_back(fmt::format("{} iterations have no line in this log", period.unlogged));
  }
  if (period.nan_losses > 0 || period.skipped > 0) {
    out.notes.push_back(fmt::format("{} losses are not numbers, {} iterations were skipped",
                                    period.nan_losses, period.skipped));
  }
  std::vector<double> tflops;
  for (const TrainingIteration& it : log.iterations) {
    if (it.tflops && *it.tflops > 0) tflops.push_back(*it.tflops);
  }
  if (!tflops.empty()) {
    out.notes.push_back(
        fmt::format("{:.0f} TFLOP/s per GPU, as the trainer counts", median_of(tflops)));
  }
}

}  // namespace

TrainingDiagnosis diagnose_training_log(const TrainingLog& log) {
  TrainingDiagnosis out;
  if (log.iterations.empty()) return out;
  const LoggedRun run = run_of(log);
  out.period = period_of(log, run);
  std::vector<const LoggedRow*> comparable;
  for (const LoggedRow& row : run.rows) {
    if (row.comparable) comparable.push_back(&row);
  }
  if (!add_shift(log, comparable, out.analysis)) {
    add_spikes(log, run, comparable, out.period, out.analysis);
  }
  add_standstill(log, run, out.period, out.analysis);
  add_divergence(log, run, out.period, out.analysis);
  add_notes(log, run, out.period, out.analysis);
  return out;
}

}  // namespace assay
