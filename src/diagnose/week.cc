#include "diagnose/week.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "diagnose/week_jobs.h"

namespace assay {
namespace {

constexpr size_t kLosses = 10;

std::string hours(double gpu_seconds) {
  return fmt::format("{:.{}f} GPU-hours", gpu_seconds / 3600, gpu_seconds < 36000 ? 1 : 0);
}

// Allocations that came to nothing by user and name, drained nodes by reason, and the rest of what
// nobody held as one line each.
void list_losses(const WeekJobs& jobs, WeekReport& out) {
  struct Sum {
    double gpu_seconds = 0;
    size_t jobs = 0;
  };
  std::map<std::pair<WeekAccount, std::string>, Sum> sums;
  for (const WeekJob& job : jobs.jobs) {
    if (job.account <= WeekAccount::kRunning || job.from_s >= job.to_s) continue;
    const std::string& user = job.job->user.empty() ? job.job->account : job.job->user;
    Sum& sum = sums[{job.account, fmt::format("{}: {}", user.empty() ? "?" : user, job.job->name)}];
    sum.gpu_seconds += job.job->gpus * static_cast<double>(job.to_s - job.from_s);
    ++sum.jobs;
  }
  for (const auto& [key, sum] : sums) {
    out.losses.push_back(
        {key.first, fmt::format("{} ({} job{})", key.second, sum.jobs, sum.jobs == 1 ? "" : "s"),
         sum.gpu_seconds});
  }
  for (const WeekNode& node : jobs.nodes) {
    if (!node.drained_from) continue;
    const double seconds = static_cast<double>(jobs.period.to_s - *node.drained_from);
    out.losses.push_back(
        {WeekAccount::kDrained,
         fmt::format("node {}{}{}", node.name, node.reason.empty() ? "" : ": ", node.reason),
         node.gpus * seconds});
  }
  const std::pair<WeekAccount, const char*> kUnheld[] = {
      {WeekAccount::kFragmented, "free GPUs of partly used nodes that no queued job fits on"},
      {WeekAccount::kWaiting, "free GPUs while jobs were queued"},
      {WeekAccount::kIdle, "GPUs that nobody asked for"}};
  for (const auto& [account, what] : kUnheld) out.losses.push_back({account, what, out[account]});
  std::erase_if(out.losses, [](const WeekLoss& loss) { return loss.gpu_seconds <= 0; });
  std::stable_sort(out.losses.begin(), out.losses.end(), [](const WeekLoss& a, const WeekLoss& b) {
    return a.gpu_seconds > b.gpu_seconds;
  });
  if (out.losses.size() > kLosses) out.losses.resize(kLosses);
}

Evidence deaths_on(const SickNode& node, const WeekJobs& jobs) {
  Evidence out;
  out.title = fmt::format("jobs that died on {}", node.name);
  out.columns = {"job", "user", "name", "ended as", "exit", "nodes", "GPU-hours"};
  for (const WeekJob& job : jobs.jobs) {
    if (job.account != WeekAccount::kFailed && job.account != WeekAccount::kNodeFail &&
        job.account != WeekAccount::kRequeued) {
      continue;
    }
    const bool here = std::any_of(job.nodes.begin(), job.nodes.end(), [&](int n) {
      return jobs.nodes[static_cast<size_t>(n)].name == node.name;
    });
    if (!here || out.rows.size() >= kEvidenceRows) continue;
    out.rows.push_back(
        {job.job->id, job.job->user, job.job->name, std::string(job_state_name(job.job->state)),
         fmt::format("{}:{}", job.job->exit_code, job.job->signal),
         fmt::format("{}", job.nodes.size()),
         fmt::format("{:.1f}", job.job->gpus * static_cast<double>(job.to_s - job.from_s) / 3600)});
  }
  return out;
}

void tell_sick_node(const SickNode& node, const WeekJobs& jobs, WeekReport& out) {
  const std::string counts = fmt::format(
      "{} of {} jobs died on it where their rates elsewhere let expect {:.1f} "
      "(chance {:.1g})",
      node.died, node.jobs, node.expected, node.p);
  if (!node.companions.empty()) {
    out.analysis.open.push_back(
        {fmt::format("one of {} nodes kills jobs, among them {}: {}, always in the same jobs",
                     node.companions.size() + 1, node.name, counts),
         "a job on each of them alone (a burn-in), or their kernel logs"});
    return;
  }
  Finding finding;
  finding.cause = Cause::kHardwareFault;
  finding.urgent = true;
  finding.title = fmt::format("Jobs die again and again on node {}", node.name);
  finding.where = {fmt::format("node {}", node.name)};
  finding.detail = fmt::format("{}; {} were lost with them.", counts, hours(node.gpu_seconds));
  finding.detail[0] =
      static_cast<char>(std::toupper(static_cast<unsigned char>(finding.detail[0])));
  finding.fix = fmt::format(
      "scontrol update NodeName={} State=DRAIN Reason=\"{} of {} jobs died\"; then its kernel log, "
      "dcgmi diag -r 3, and a burn-in before it returns",
      node.name, node.died, node.jobs);
  finding.confidence = node.p < 1e-6 ? Confidence::kHigh : Confidence::kMedium;
  // What is beyond the expected number would not have died elsewhere.
  const double beyond =
      std::max(0.0, 1 - node.expected / static_cast<double>(std::max<size_t>(node.died, 1)));
  finding.gain = Seconds(node.gpu_seconds * beyond);
  finding.share = out.paid() > 0 ? finding.gain.v / out.paid() : 0;
  finding.evidence.push_back(deaths_on(node, jobs));
  out.analysis.findings.push_back(std::move(finding));
}

void write_notes(const WeekJobs& jobs, const SlurmReading& in, WeekReport& out) {
  std::vector<std::string>& notes = out.analysis.notes;
  if (out.period_assumed) {
    notes.push_back(
        "the period is assumed: from the first start to the last end in the accounting");
  }
  if (out.capacity_assumed) {
    notes.push_back(
        fmt::format("the capacity is assumed: {:.0f} GPUs, the most that were in use at "
                    "once; sinfo or scontrol show node would tell",
                    out.capacity_gpus));
  } else if (jobs.capacity_raised) {
    notes.push_back(
        fmt::format("more GPUs were in use than the nodes that are listed have: the "
                    "capacity is taken as {:.0f}",
                    out.capacity_gpus));
  }
  if (out.shapes_known < 1 && out.jobs > 0) {
    notes.push_back(
        fmt::format("fragmentation is known for {:.0f} % of the period: the rest has "
                    "jobs without a list of nodes",
                    100 * out.shapes_known));
  }
  if (in.steps > 0) {
    notes.push_back(fmt::format("{} row{} of steps left out: their jobs count", in.steps,
                                in.steps == 1 ? "" : "s"));
  }
}

}  // namespace

std::string_view week_account_name(WeekAccount account) {
  constexpr std::string_view kNames[] = {"completed",  "running",   "failed",   "cancelled",
                                         "timeout",    "node-fail", "requeued", "drained",
                                         "fragmented", "waiting",   "idle"};
  return kNames[static_cast<size_t>(account)];
}

double WeekReport::paid() const {
  return capacity_gpus * static_cast<double>(period.to_s - period.from_s);
}

WeekReport diagnose_week(const SlurmReading& in, std::optional<WeekPeriod> period) {
  const WeekJobs jobs = place_jobs(in, period);
  WeekReport out;
  out.period = jobs.period;
  out.period_assumed = jobs.period_assumed;
  out.capacity_gpus = jobs.capacity;
  out.capacity_assumed = jobs.capacity_assumed;
  fill_week(jobs, out);
  list_losses(jobs, out);
  out.sick = find_sick_nodes(jobs);
  for (const SickNode& node : out.sick) tell_sick_node(node, jobs, out);
  if (out.jobs == 0) {
    out.analysis.notes.push_back("no job with GPUs ran in the period");
    return out;
  }
  write_notes(jobs, in, out);
  return out;
}

}  // namespace assay
