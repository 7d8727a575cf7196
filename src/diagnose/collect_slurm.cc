#include "diagnose/collect_slurm.h"

#include <algorithm>

#include <fmt/format.h>

#include "diagnose/week.h"

namespace assay {
namespace {

std::string gpu_hours(double gpu_seconds) { return fmt::format("{:.1f}", gpu_seconds / 3600); }

MeasuredPeriod period_of(const WeekReport& week) {
  MeasuredPeriod out;
  out.paid = Seconds(week.paid());
  const double period_s = static_cast<double>(week.period.to_s - week.period.from_s);
  const bool short_one = period_s < 2 * kSecondsPerDay;
  out.what = fmt::format("{:.0f} GPUs{}, {:.1f} {}, {} jobs, Slurm accounting", week.capacity_gpus,
                         week.capacity_assumed ? " (assumed)" : "",
                         period_s / (short_one ? kSecondsPerHour : kSecondsPerDay),
                         short_one ? "hours" : "days", week.jobs);
  for (size_t a = 0; a < kWeekAccounts; ++a) {
    const double spent = week.gpu_seconds[a];
    if (spent <= 0) continue;
    out.lines.push_back({std::string(week_account_name(static_cast<WeekAccount>(a))),
                         Seconds(spent), week.paid() > 0 ? spent / week.paid() : 0});
  }
  out.losses.push_back({"GPU-hours", "share", "account", "what"});
  for (const WeekLoss& loss : week.losses) {
    out.losses.push_back(
        {gpu_hours(loss.gpu_seconds),
         fmt::format("{:.1f} %", week.paid() > 0 ? 100 * loss.gpu_seconds / week.paid() : 0),
         std::string(week_account_name(loss.account)), loss.what});
  }
  return out;
}

}  // namespace

void collect_slurm(FileKind kind, std::string_view text, const std::string& path, SlurmReading& out,
                   FileRead& file, Diagnostics& problems) {
  const size_t jobs = out.jobs.size(), nodes = out.nodes.size(), queue = out.queue.size();
  if (kind == FileKind::kSacct) read_sacct(text, path, out);
  if (kind == FileKind::kSinfo) read_sinfo(text, path, out);
  if (kind == FileKind::kSqueue) read_squeue(text, path, out);
  if (kind == FileKind::kScontrol) read_scontrol(text, path, out);
  file.used = !has_errors(out.problems);
  // Nodes, queues and jobs without GPUs make no ledger, so nothing in them is sick or well.
  file.judged =
      file.used && std::any_of(out.jobs.begin() + static_cast<ptrdiff_t>(jobs), out.jobs.end(),
                               [](const SlurmJob& job) { return job.gpus > 0 && job.start_s; });
  problems.insert(problems.end(), out.problems.begin(), out.problems.end());
  out.problems.clear();
  const auto add = [&](size_t count, const char* what) {
    if (count == 0) return;
    file.summary += fmt::format("{}{} {}{}", file.summary.empty() ? "" : ", ", count, what,
                                count == 1 ? "" : "s");
  };
  add(out.jobs.size() - jobs, "job");
  add(out.nodes.size() - nodes, "node");
  add(out.queue.size() - queue, "pending or running job");
  if (file.summary.empty()) file.summary = "no job and no node that is new";
}

void analyse_slurm(const SlurmReading& slurm, Diagnosis& d) {
  if (slurm.jobs.empty()) {
    d.notes.push_back("nodes and queues alone make no ledger: accounting (sacct) is missing");
    return;
  }
  WeekReport week = diagnose_week(slurm);
  if (week.paid() > 0) d.periods.push_back(period_of(week));
  for (Finding& finding : week.analysis.findings) d.findings.push_back(std::move(finding));
  for (OpenQuestion& open : week.analysis.open) d.open.push_back(std::move(open));
  for (std::string& note : week.analysis.notes) d.notes.push_back(std::move(note));
  double dead = 0;
  for (const WeekAccount account : {WeekAccount::kFailed, WeekAccount::kTimeout,
                                    WeekAccount::kNodeFail, WeekAccount::kRequeued}) {
    dead += week[account];
  }
  if (dead > kWorthFixing * week.paid()) {
    d.open.push_back(
        {fmt::format("{:.0f} % of the GPU-hours went to jobs that failed, timed out or "
                     "were requeued; accounting does not say why",
                     100 * dead / week.paid()),
         "the logs and profiler traces of the jobs under the largest losses"});
  }
  if (week.queued_gpu_seconds > 0) {
    d.notes.push_back(fmt::format(
        "jobs waited for {} GPU-hours in the queue, half of them longer than {:.0f} min",
        gpu_hours(week.queued_gpu_seconds), week.queue_wait_median_s.value_or(0) / 60));
  }
}

}  // namespace assay
