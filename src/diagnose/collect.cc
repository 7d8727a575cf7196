#include "diagnose/collect.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "diagnose/collect_slurm.h"
#include "diagnose/critical_path.h"
#include "diagnose/fleet.h"
#include "diagnose/hang_evidence.h"
#include "diagnose/hardware.h"
#include "diagnose/infer_steps.h"
#include "diagnose/robust.h"
#include "diagnose/straggler.h"
#include "diagnose/training.h"
#include "ingest/kineto.h"
#include "ingest/text.h"
#include "ingest/text_file.h"
#include "plan/words.h"

namespace assay {
namespace {

void fold(const TraceDiagnosis& t, int rank, TraceTotals& totals) {
  if (totals.traces == 0) {
    totals.first = t.whole;
    totals.accelerator = t.accelerator;
    totals.steps = t.steps;
  }
  ++totals.traces;
  totals.ledger += t.step;
  totals.step_s += t.step_time.v;
  totals.uneven = totals.uneven || t.uneven;
  totals.usual_s += t.replayed.v;
  totals.spread_s = std::max(totals.spread_s, t.spread.v);
  totals.unexplained_s += t.unexplained.v;
  totals.steps = std::min(totals.steps, t.steps);
  for (const Finding& f : t.analysis.findings) {
    if (f.cause == Cause::kHealthy) continue;
    CauseOverRanks& seen = totals.causes[f.cause];
    if (seen.ranks.empty() || f.share > seen.worst.share) seen.worst = f;
    seen.share_sum += f.share;
    seen.gain_sum += f.gain.v;
    const Seconds after = f.step_after.value_or(t.replayed.v > 0 ? t.replayed : t.step_time);
    seen.after_sum += after.v;
    seen.low_sum += f.step_range ? f.step_range->low.v : after.v;
    seen.high_sum += f.step_range ? f.step_range->high.v : after.v;
    seen.ranks.push_back(rank);
  }
  // One rank's notes stand for all: the others say the same.
  if (totals.traces == 1) {
    totals.notes = t.analysis.notes;
    totals.open = t.analysis.open;
  }
}

// The job that a trace belongs to. Ranks of one job have one world size and each a number of its
// own; the folder decides where two jobs could take it. A trace that names no rank and talks to
// nobody is a job by itself.
TraceJob& job_of(const RankSummary& rank, const std::string& path, std::vector<TraceJob>& jobs) {
  const bool alone = rank.rank < 0 && rank.world_size <= 1 && rank.collectives.empty();
  const std::string folder = folder_of(path);
  TraceJob* found = nullptr;
  for (TraceJob& job : jobs) {
    if (alone || job.alone || job.totals.world_size != rank.world_size) continue;
    const bool taken = std::any_of(job.ranks.begin(), job.ranks.end(), [&](const RankSummary& r) {
      return rank.rank >= 0 && r.rank == rank.rank;
    });
    if (taken) continue;
    if (found == nullptr || (job.folder == folder && found->folder != folder)) found = &job;
  }
  if (found != nullptr) return *found;
  jobs.push_back({});
  jobs.back().folder = folder;
  jobs.back().alone = alone;
  return jobs.back();
}

// What a reader of text adds to the diagnosis: its problems, and whether the file was of use.
void take_problems(Diagnostics& from, FileRead& file, Diagnosis& d) {
  file.used = !has_errors(from);
  d.problems.insert(d.problems.end(), from.begin(), from.end());
  from.clear();
}

void not_read(const Failure& why, FileRead& file, Diagnosis& d) {
  file.summary = "not read: " + why.message;
  d.problems.push_back(to_diagnostic(why));
}

void warn(const std::string& name, const std::string& what, Diagnosis& d) {
  d.problems.push_back(problem(Severity::kWarning, what, name));
}

std::string many(size_t n, std::string_view one, std::string_view more) {
  return fmt::format("{} {}", count(static_cast<int64_t>(n)), n == 1 ? one : more);
}

PathAccount path_account(const Trace& trace) {
  const CriticalPath path = trace.steps.empty()
                                ? critical_path(trace)
                                : critical_path_of_step(trace, trace.steps.size() > 1 ? 1 : 0);
  return {path.total_ns, path.of(PathKind::kHost), path.of(PathKind::kDevice),
          path.of(PathKind::kLaunch), path.of(PathKind::kBetween)};
}

void collect_trace(ByteSource source, const DiagnoseOptions& options, Collected& collected,
                   Diagnosis& d, FileRead& file) {
  const std::string name = source.name();
  Result<Trace> trace = read_kineto(std::move(source), d.problems);
  if (!trace) return not_read(trace.error(), file, d);
  infer_steps(*trace);
  file.used = true;
  file.cut = trace->cut;
  file.summary =
      trace->steps.empty() ? "no steps marked" : many(trace->steps.size(), "step", "steps");
  if (trace->steps_inferred) file.summary += " (not marked)";
  file.summary += ", " + many(trace->events, "event", "events");
  if (trace->rank >= 0 && trace->world_size > 1)
    file.summary += fmt::format(", rank {} of {}", trace->rank, trace->world_size);
  TraceContext context;
  context.accelerator = options.accelerator;
  context.kernels = options.kernels;
  const TraceDiagnosis diagnosis = diagnose_trace(*trace, context);
  file.device = diagnosis.whole;
  if (diagnosis.step_time.v <= 0 || trace->device.empty()) {
    warn(name, "the trace has no device events: nothing to diagnose", d);
    return;
  }
  file.judged = true;
  file.path_of_step = path_account(*trace);
  RankSummary summary = summarise(*trace);
  TraceJob& job = job_of(summary, name, collected.jobs);
  fold(diagnosis, trace->rank, job.totals);
  job.totals.world_size = std::max(job.totals.world_size, trace->world_size);
  job.ranks.push_back(std::move(summary));
}

void collect_operations(ByteSource source, Collected& collected, Diagnosis& d, FileRead& file) {
  const std::string name = source.name();
  Result<OperationTrace> trace = read_operations(std::move(source));
  if (!trace) return not_read(trace.error(), file, d);
  take_problems(trace->problems, file, d);
  file.cut = trace->cut;
  file.summary = many(trace->operations.size(), "operation", "operations");
  file.judged = file.used && !trace->operations.empty();
  if (file.used) collected.operations.push_back(std::move(*trace));
}

void collect_dump(const std::string& text, const std::string& path, Collected& collected,
                  Diagnosis& d, FileRead& file) {
  tl::expected<FlightDump, Diagnostic> dump = read_flight_dump(text, path);
  if (!dump) {
    file.summary = "not read: " + dump.error().message;
    d.problems.push_back(dump.error());
    return;
  }
  take_problems(dump->problems, file, d);
  std::error_code error;
  const auto written = std::filesystem::last_write_time(path, error);
  if (!error) {
    dump->written_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                           std::chrono::file_clock::to_sys(written).time_since_epoch())
                           .count();
  }
  file.summary =
      fmt::format("rank {}, {}", dump->rank, many(dump->entries.size(), "operation", "operations"));
  file.judged = file.used;
  if (file.used) collected.dumps.push_back(std::move(*dump));
}

// One reading into its list. `judged`: there is something in it that could be sick or well.
template <class T>
void keep(T reading, std::string summary, bool judged, std::vector<T>& list, Diagnosis& d,
          FileRead& file) {
  if (!judged && reading.problems.empty()) {
    warn(reading.file, "holds nothing to judge by: cut short, or nothing was recorded", d);
  }
  take_problems(reading.problems, file, d);
  file.summary = std::move(summary);
  file.judged = file.used && judged;
  if (file.used) list.push_back(std::move(reading));
}

void collect_nccl(NcclTests tests, Collected& collected, Diagnosis& d, FileRead& file) {
  size_t rows = 0;
  for (const NcclTest& t : tests.tests) rows += t.rows.size();
  std::string summary =
      fmt::format("{}, {}", many(tests.tests.size(), "test", "tests"), many(rows, "size", "sizes"));
  const bool failed = std::any_of(tests.tests.begin(), tests.tests.end(),
                                  [](const NcclTest& t) { return !t.failures.empty(); });
  keep(std::move(tests), std::move(summary), rows > 0 || failed, collected.nccl_tests, d, file);
}

void collect_topology(Topology t, Collected& collected, Diagnosis& d, FileRead& file) {
  std::string summary =
      fmt::format("{} GPUs, {} NICs", t.count(TopoKind::kGpu), t.count(TopoKind::kNic));
  const bool judged = t.count(TopoKind::kGpu) > 0;
  keep(std::move(t), std::move(summary), judged, collected.topologies, d, file);
}

// Samples whose every value is missing, not a number or negative (a field in error) say nothing.
bool says_something(const GpuSeries& gpu) {
  for (const std::vector<double>& column : gpu.columns) {
    for (double value : column) {
      if (std::isfinite(value) && value >= 0) return true;
    }
  }
  return false;
}

void collect_telemetry(Telemetry t, Collected& collected, Diagnosis& d, FileRead& file) {
  std::string summary =
      many(t.gpus.size(), "GPU", "GPUs") + ", " + many(t.samples(), "sample", "samples");
  const bool judged = std::any_of(t.gpus.begin(), t.gpus.end(), says_something);
  file.moment = std::all_of(t.gpus.begin(), t.gpus.end(),
                            [](const GpuSeries& gpu) { return gpu.size() < kSamplesLeast; });
  keep(std::move(t), std::move(summary), judged, collected.telemetry, d, file);
}

void collect_text(FileKind kind, const std::string& text, const std::string& path,
                  Collected& collected, Diagnosis& d, FileRead& file) {
  if (is_telemetry(kind))
    return collect_telemetry(read_telemetry(kind, text, path), collected, d, file);
  switch (kind) {
    case FileKind::kFlightRecorderPickle:
    case FileKind::kFlightRecorderJson:
      return collect_dump(text, path, collected, d, file);
    case FileKind::kNcclTests:
      return collect_nccl(read_nccl_tests(text, path), collected, d, file);
    case FileKind::kNcclTestsJson:
      return collect_nccl(read_nccl_tests_json(text, path), collected, d, file);
    case FileKind::kTopoMatrix:
      return collect_topology(read_topo_matrix(text, path), collected, d, file);
    case FileKind::kNvlinkStatus:
      return collect_topology(read_nvlink_status(text, path), collected, d, file);
    case FileKind::kNcclXml:
      return collect_topology(read_nccl_xml(text, path), collected, d, file);
    case FileKind::kHwlocXml:
      return collect_topology(read_hwloc_xml(text, path), collected, d, file);
    case FileKind::kKernelLog: {
      KernelLog log = read_kernel_log(text, path);
      std::string summary =
          many(log.lines, "line", "lines") + ", " + many(log.events.size(), "event", "events");
      const bool judged = log.lines > 0;
      return keep(std::move(log), std::move(summary), judged, collected.kernel_logs, d, file);
    }
    case FileKind::kTrainingLog: {
      TrainingLog log = read_training_log(text, path);
      std::string summary = many(log.iterations.size(), "iteration", "iterations");
      const bool judged = !log.iterations.empty();
      return keep(std::move(log), std::move(summary), judged, collected.training_logs, d, file);
    }
    case FileKind::kSacct:
    case FileKind::kSinfo:
    case FileKind::kSqueue:
    case FileKind::kScontrol:
      return collect_slurm(kind, text, path, collected.slurm, file, d.problems);
    default:
      file.summary = "not used: nothing here can diagnose it";
      warn(path, fmt::format("{}: nothing here can diagnose it", kind_name(kind)), d);
  }
}

void analyse_traces(const TraceTotals& totals, Diagnosis& d) {
  if (totals.traces == 0) return;
  const double n = totals.traces;
  MeasuredStep step;
  step.step = Seconds(totals.step_s / n);
  step.usual = Seconds(totals.usual_s / n);
  step.spread = Seconds(totals.spread_s);
  step.uneven = totals.uneven;
  step.steps = totals.steps;
  step.ranks = totals.traces;
  step.world_size = totals.world_size;
  step.ledger = totals.ledger;
  step.ledger *= 1 / n;
  step.device = totals.first;
  step.unexplained = Seconds(totals.unexplained_s / n);
  step.accelerator = totals.accelerator;
  step.source = "trace";
  d.step = step;
  for (const auto& [cause, seen] : totals.causes) {
    Finding f = seen.worst;
    // Ranks that do not show the cause have nothing to give back. The share is of the mean step, so
    // that the gain, its share and the step before it are of one step.
    const bool one_step = totals.traces > 1 && seen.gain_sum > 0 && totals.usual_s > 0;
    f.share = one_step ? seen.gain_sum / totals.usual_s : seen.share_sum / n;
    f.gain = Seconds(seen.gain_sum / n);
    const double others = n - static_cast<double>(seen.ranks.size());
    const Seconds unchanged = step.usual.v > 0 ? step.usual : step.step;
    const auto over_ranks = [&](double sum) { return Seconds((sum + others * unchanged.v) / n); };
    f.step_after = over_ranks(seen.after_sum);
    if (f.step_range) f.step_range = {over_ranks(seen.low_sum), over_ranks(seen.high_sum)};
    if (totals.traces > 1) f.where.clear();  // of the rank that stands for all
    if (totals.traces > 1 && seen.ranks.size() < static_cast<size_t>(totals.traces)) {
      for (int rank : seen.ranks) f.where.push_back(fmt::format("rank {}", rank));
    }
    d.findings.push_back(std::move(f));
  }
  d.notes.insert(d.notes.end(), totals.notes.begin(), totals.notes.end());
  d.open.insert(d.open.end(), totals.open.begin(), totals.open.end());
}

// What telemetry can be held against: the part, and the MFU that a training log beside it claims.
HardwareContext hardware_context(const Collected& c) {
  HardwareContext context;
  context.accelerator = c.accelerator;
  std::vector<double> tflops;
  for (const TrainingLog& log : c.training_logs) {
    for (const TrainingIteration& it : log.iterations) {
      if (it.tflops && *it.tflops > 0) tflops.push_back(*it.tflops);
    }
  }
  const double peak = c.accelerator != nullptr ? c.accelerator->bf16.v / 1e12 : 0;
  if (!tflops.empty() && peak > 0) context.mfu = median_of(tflops) / peak;
  return context;
}

void add(Analysis analysis, Diagnosis& d) {
  std::move(analysis.findings.begin(), analysis.findings.end(), std::back_inserter(d.findings));
  std::move(analysis.open.begin(), analysis.open.end(), std::back_inserter(d.open));
  std::move(analysis.notes.begin(), analysis.notes.end(), std::back_inserter(d.notes));
}

std::optional<JobPath> job_path(const RanksDiagnosis& d) {
  if (d.path.empty()) return std::nullopt;
  JobPath path;
  std::map<int, double> local;
  for (const JobSegment& s : d.path) {
    const Seconds length(static_cast<double>(s.duration_ns) * 1e-9);
    path.total += length;
    if (s.wire) {
      path.wire += length;
    } else {
      local[d.ranks[static_cast<size_t>(s.rank)].rank] += length.v;
    }
  }
  for (const auto& [rank, seconds] : local) path.ranks.emplace_back(rank, Seconds(seconds));
  std::stable_sort(path.ranks.begin(), path.ranks.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return path;
}

// One rank alone cannot tell waiting from wire time; where the others' ends of its collectives are
// known, its guess is dropped.
void analyse_ranks(std::vector<RankSummary> ranks, Diagnosis& d) {
  RanksDiagnosis diagnosis = diagnose_ranks(std::move(ranks));
  d.job_path = job_path(diagnosis);
  const auto guesses = [](const Finding& f) {
    return f.cause == Cause::kExposedCommunication || f.cause == Cause::kPipelineBubble;
  };
  const auto says = [&](const Finding& f) { return guesses(f) || f.cause == Cause::kStraggler; };
  Analysis together = std::move(diagnosis.analysis);
  const bool known =
      !diagnosis.collectives.empty() && diagnosis.collectives.size() >= diagnosis.unmatched;
  if (known || std::any_of(together.findings.begin(), together.findings.end(), says))
    std::erase_if(d.findings, guesses);
  add(std::move(together), d);
}

// What stands for a job in a list of several.
std::string job_name(const TraceJob& job) {
  const std::string first = base_name(job.ranks.front().file);
  if (job.ranks.size() == 1) return first;
  return fmt::format("{} ({} ranks)", job.folder.empty() ? first : base_name(job.folder),
                     job.ranks.size());
}

double largest_share(const Diagnosis& d) {
  double most = 0;
  for (const Finding& f : d.findings) most = std::max(most, f.share);
  return most;
}

// Several jobs are diagnosed one by one: their times mean nothing together. The step that is
// printed is that of the one with most to gain.
void analyse_jobs(std::vector<TraceJob> jobs, Diagnosis& d) {
  std::vector<Diagnosis> each(jobs.size());
  size_t shown = 0;
  for (size_t i = 0; i < jobs.size(); ++i) {
    const std::string name = job_name(jobs[i]);
    analyse_traces(jobs[i].totals, each[i]);
    if (jobs[i].ranks.size() > 1) analyse_ranks(std::move(jobs[i].ranks), each[i]);
    if (largest_share(each[i]) > largest_share(each[shown])) shown = i;
    if (jobs.size() == 1) continue;
    for (Finding& f : each[i].findings) f.where.insert(f.where.begin(), name);
    each[i].notes.clear();  // they do not say which trace they are of
  }
  for (size_t i = 0; i < each.size(); ++i) {
    for (Finding& f : each[i].findings) f.elsewhere = i != shown;
    add({std::move(each[i].findings), std::move(each[i].open), std::move(each[i].notes)}, d);
  }
  if (each.empty()) return;
  d.step = std::move(each[shown].step);
  d.job_path = std::move(each[shown].job_path);
  if (jobs.size() == 1) return;
  d.notes.push_back(
      fmt::format("these are traces of {} jobs, by world size and rank: each was diagnosed by "
                  "itself, and the step above is that of the one with most to gain",
                  jobs.size()));
}

// Telemetry shows that a device did nothing; whether it should have is not in it.
void ask_about_idle(const std::vector<GpuTime>& gpus, Diagnosis& d) {
  size_t idlers = 0, unknown = 0, seen = 0;
  double sum = 0;
  for (const GpuTime& gpu : gpus) {
    if (gpu.samples < kSamplesLeast) continue;
    ++seen;
    if (!gpu.load_known) {
      ++unknown;
      continue;
    }
    const double share = gpu.observed.v > 0 ? gpu.idle / gpu.observed : 0;
    if (share >= kIdleAsked) ++idlers;
    sum += share;
    d.idle_most = std::max(d.idle_most, share);
  }
  if (seen > unknown) d.idle_mean = sum / static_cast<double>(seen - unknown);
  if (idlers > 0) {
    const std::string who = gpus.size() == 1
                                ? "the GPU idles"
                                : fmt::format("{} of {} GPUs idle up to", idlers, gpus.size());
    d.open.push_back(
        {fmt::format("{} {:.0f} % of the time, and telemetry cannot tell whether a "
                     "job ran: it may have waited, or there was none",
                     who, 100 * d.idle_most),
         "a profiler trace or the log of the job, or accounting (sacct) of that time"});
  }
  if (unknown > 0) {
    d.open.push_back({fmt::format("whether {} of {} GPUs {} busy: no column says so", unknown,
                                  gpus.size(), gpus.size() == 1 ? "was" : "were"),
                      "utilization.gpu and clocks_event_reasons.active in the query log (DCGM "
                      "fields 203, 112)"});
  }
}

void analyse_telemetry(const Collected& c, Diagnosis& d) {
  HardwareDiagnosis hardware = diagnose_telemetry(c.telemetry, hardware_context(c));
  add(std::move(hardware.analysis), d);
  const ClockAccount& clocks = hardware.clocks;
  ask_about_idle(hardware.gpus, d);
  if (hardware.gpus.empty() || !hardware.gpus.front().timed || clocks.observed.v <= 0) return;
  if (std::none_of(hardware.gpus.begin(), hardware.gpus.end(),
                   [](const GpuTime& gpu) { return gpu.load_known; }))
    return;  // all of it would stand as idle
  const double gpus = static_cast<double>(hardware.gpus.size());
  MeasuredPeriod period;
  period.what = fmt::format("{}, {}, telemetry", many(hardware.gpus.size(), "GPU", "GPUs"),
                            duration(clocks.observed.v));
  period.paid = clocks.observed * gpus;
  const std::pair<const char*, Seconds> lines[] = {{"running", clocks.running},
                                                   {"clocks: power cap", clocks.power_cap},
                                                   {"clocks: thermal", clocks.thermal},
                                                   {"clocks: facility", clocks.facility_cap},
                                                   {"idle", clocks.idle}};
  for (const auto& [name, time] : lines) {
    if (time.v > 0) period.lines.push_back({name, time * gpus, time / clocks.observed});
  }
  d.periods.push_back(std::move(period));
}

void analyse_training(const TrainingLog& log, Diagnosis& d) {
  TrainingDiagnosis training = diagnose_training_log(log);
  add(std::move(training.analysis), d);
  const TrainingPeriod& p = training.period;
  if (p.wall.v <= 0) return;
  MeasuredPeriod period;
  period.wall_clock = true;
  period.what = fmt::format("{}, {} kept", duration(p.wall.v),
                            many(static_cast<size_t>(p.iterations), "iteration", "iterations"));
  period.paid = p.wall;
  period.step = p.usual_step;
  period.batch = p.usual_batch;
  const std::pair<const char*, Seconds> lines[] = {
      {"steps", p.steps},           {"slow steps", p.slow_steps},
      {"warm-up", p.warm_up},       {"lost work", p.lost_work},
      {"checkpoint", p.checkpoint}, {"evaluation", p.evaluation},
      {"start-up", p.start_up},     {"gaps", p.gaps},
      {"in no line", p.other}};
  for (const auto& [name, time] : lines) {
    if (time.v > 0) period.lines.push_back({name, time, time / p.wall});
  }
  d.periods.push_back(std::move(period));
}

}  // namespace

std::string folder_of(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

namespace {

// One file that is open; the kind decides the reader.
void collect_source(ByteSource source, const DiagnoseOptions& options, Collected& collected,
                    Diagnosis& d, FileRead& file) {
  const std::string name = source.name();
  const Result<FileKind> kind = recognise(source);
  file.missing = source.broken();
  if (!kind) return not_read(kind.error(), file, d);
  file.kind = *kind;
  if (*kind == FileKind::kKinetoTrace) {
    return collect_trace(std::move(source), options, collected, d, file);
  }
  if (*kind == FileKind::kStragglerCsv) {
    return collect_operations(std::move(source), collected, d, file);
  }
  if (*kind == FileKind::kUnknown) {
    const std::string damage = source.damage();
    not_read(damage.empty() ? why_unknown(source.peek(64).value_or(""), name)
                            : Failure{damage, name, "copy or record it again"},
             file, d);
    d.problems.back().severity = Severity::kWarning;
    return;
  }
  const Result<std::string> text = read_rest(source);
  file.missing = source.broken();
  if (!text) return not_read(text.error(), file, d);
  file.cut = !source.damage().empty();
  if (file.cut) warn(name, source.damage() + "; what came before is read", d);
  collect_text(*kind, *text, file.path == "-" ? name : file.path, collected, d, file);
}

}  // namespace

void collect(const std::string& path, const DiagnoseOptions& options, Collected& collected,
             Diagnosis& d) {
  FileRead file;
  file.path = path;
  collected.accelerator = options.accelerator;
  Result<ByteSource> source = ByteSource::open(path, KinetoLimits().json_bytes);
  if (source) {
    collect_source(std::move(*source), options, collected, d, file);
  } else {
    file.missing = true;
    not_read(source.error(), file, d);
  }
  d.files.push_back(std::move(file));
}

void analyse(Collected& c, Diagnosis& d) {
  analyse_jobs(std::move(c.jobs), d);
  for (const OperationTrace& trace : c.operations) {
    const WhatIf w = what_if(trace);
    if (w.usable) d.what_ifs.push_back({trace.file, w.slowdown, w.measured, w.original, w.ideal});
    add(diagnose_operations(trace, w), d);
  }
  if (!c.dumps.empty()) analyse_hangs(c, d);
  if (!c.telemetry.empty()) analyse_telemetry(c, d);
  if (!c.kernel_logs.empty()) add(diagnose_kernel_logs(c.kernel_logs), d);
  if (!c.nccl_tests.empty()) add(diagnose_nccl_tests(c.nccl_tests), d);
  if (!c.topologies.empty()) add(diagnose_topologies(c.topologies), d);
  if (!c.slurm.jobs.empty() || !c.slurm.nodes.empty() || !c.slurm.queue.empty()) {
    analyse_slurm(c.slurm, d);
  }
  for (const TrainingLog& log : c.training_logs) analyse_training(log, d);
}

}  // namespace assay
