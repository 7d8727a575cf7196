#include "diagnose/week_jobs.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "base/hostlist.h"

namespace assay {
namespace {

constexpr size_t kMaxPlacements = size_t{16} << 20;

WeekAccount account_of(JobState state) {
  switch (state) {
    case JobState::kCompleted:
      return WeekAccount::kCompleted;
    case JobState::kFailed:
    case JobState::kOutOfMemory:
      return WeekAccount::kFailed;
    case JobState::kCancelled:
      return WeekAccount::kCancelled;
    case JobState::kTimeout:
      return WeekAccount::kTimeout;
    case JobState::kNodeFail:
      return WeekAccount::kNodeFail;
    case JobState::kPreempted:
    case JobState::kRequeued:
      return WeekAccount::kRequeued;
    default:
      return WeekAccount::kRunning;
  }
}

// When an allocation ended; none: it still runs.
std::optional<int64_t> end_of(const SlurmJob& job) {
  if (!job.start_s) return std::nullopt;
  if (job.state == JobState::kRunning) return std::nullopt;
  if (job.end_s) return std::max(*job.end_s, *job.start_s);
  if (job.elapsed_s) return *job.start_s + *job.elapsed_s;
  return std::nullopt;
}

class Placer {
 public:
  Placer(const SlurmReading& in, std::optional<WeekPeriod> period) : in_(in) {
    find_period(period);
    for (const SlurmNode& node : in.nodes) {
      if (node.gpus > 0) index(node.name, node.gpus);
    }
    nodes_listed_ = !out_.nodes.empty();
    for (const SlurmJob& job : in.jobs) eligible_known_ |= job.eligible_s.has_value();
  }

  WeekJobs place() {
    std::unordered_set<std::string> known;
    for (const SlurmJob& job : in_.jobs) {
      known.insert(job.id);
      if (job.gpus > 0) add(job);
    }
    // Jobs that only squeue shows wait until the end.
    for (const SlurmJob& job : in_.queue) {
      if (job.state == JobState::kPending && job.gpus > 0 && !known.count(job.id)) add(job);
    }
    drain();
    find_capacity();
    return std::move(out_);
  }

 private:
  void find_period(std::optional<WeekPeriod> period) {
    if (period && period->to_s > period->from_s) {
      out_.period = *period;
      return;
    }
    out_.period_assumed = true;
    bool any = false;
    for (const SlurmJob& job : in_.jobs) {
      if (!job.start_s || job.gpus <= 0) continue;
      int64_t end = end_of(job).value_or(*job.start_s + job.elapsed_s.value_or(0));
      out_.period.from_s = any ? std::min(out_.period.from_s, *job.start_s) : *job.start_s;
      out_.period.to_s = any ? std::max(out_.period.to_s, end) : end;
      any = true;
    }
  }

  int index(const std::string& name, double gpus) {
    const auto [at, added] = by_name_.try_emplace(name, static_cast<int>(out_.nodes.size()));
    if (added) {
      out_.nodes.emplace_back();
      out_.nodes.back().name = name;
      out_.nodes.back().gpus = gpus;
    }
    return at->second;
  }

  void add(const SlurmJob& job) {
    const WeekPeriod& period = out_.period;
    const auto within = [&](int64_t t) { return std::clamp(t, period.from_s, period.to_s); };
    WeekJob out;
    out.job = &job;
    out.account = account_of(job.state);
    const bool held = job.start_s && job.state != JobState::kPending;
    if (held) {
      out.from_s = within(*job.start_s);
      out.to_s = within(end_of(job).value_or(period.to_s));
    }
    queue(job, held, out);
    if (out.from_s == out.to_s && out.queue_from_s == out.queue_to_s) return;
    if (held && placements_ < kMaxPlacements) {
      if (const auto names = expand_hostlist(job.node_list); names && !names->empty()) {
        for (const std::string& name : *names) {
          if (name != "None assigned") out.nodes.push_back(index(name, 0));
        }
        placements_ += out.nodes.size();
      }
    }
    out_.jobs.push_back(std::move(out));
  }
  // From the moment Slurm may start it (after its dependencies) until it starts or is given up.
  void queue(const SlurmJob& job, bool held, WeekJob& out) const {
    const WeekPeriod& period = out_.period;
    std::optional<int64_t> from = job.eligible_s;
    // No date where others have one: its dependencies never let it wait for GPUs.
    if (!from && (job.state != JobState::kPending || !eligible_known_)) from = job.submit_s;
    if (!from) return;
    int64_t to = period.to_s;
    if (held) to = *job.start_s;
    if (!held && job.end_s) to = *job.end_s;
    out.queue_from_s = std::clamp(*from, period.from_s, period.to_s);
    out.queue_to_s = std::max(std::clamp(to, period.from_s, period.to_s), out.queue_from_s);
  }

  // sinfo says which nodes are drained now. Since when: its reason's date, else the end of the last
  // job it ran.
  void drain() {
    std::unordered_map<std::string, const SlurmNode*> drained;
    for (const SlurmNode& node : in_.nodes) {
      if (node.drain || node.down) drained.emplace(node.name, &node);
    }
    std::vector<int64_t> last(out_.nodes.size(), out_.period.from_s);
    for (const WeekJob& job : out_.jobs) {
      for (const int n : job.nodes) {
        last[static_cast<size_t>(n)] = std::max(last[static_cast<size_t>(n)], job.to_s);
      }
    }
    for (size_t n = 0; n < out_.nodes.size(); ++n) {
      const auto found = drained.find(out_.nodes[n].name);
      if (found == drained.end()) continue;
      out_.nodes[n].drained_from = std::clamp(found->second->since_s.value_or(last[n]),
                                              out_.period.from_s, out_.period.to_s);
      out_.nodes[n].reason = found->second->reason;
    }
  }

  // What each node and the cluster had in use at most, which is the least that they have.
  void find_capacity() {
    struct Change {
      int64_t at_s;
      double gpus;
    };
    std::vector<Change> all;
    std::vector<std::vector<Change>> by_node(out_.nodes.size());
    for (const WeekJob& job : out_.jobs) {
      if (job.from_s >= job.to_s) continue;
      all.push_back({job.from_s, job.job->gpus});
      all.push_back({job.to_s, -job.job->gpus});
      for (const int n : job.nodes) {
        const double share = job.job->gpus / static_cast<double>(job.nodes.size());
        by_node[static_cast<size_t>(n)].push_back({job.from_s, share});
        by_node[static_cast<size_t>(n)].push_back({job.to_s, -share});
      }
    }
    const auto most = [](std::vector<Change>& changes) {
      std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
        return a.at_s != b.at_s ? a.at_s < b.at_s : a.gpus < b.gpus;
      });
      double now = 0, top = 0;
      for (const Change& change : changes) top = std::max(top, now += change.gpus);
      return top;
    };
    double sum = 0;
    for (size_t n = 0; n < out_.nodes.size(); ++n) {
      out_.nodes[n].gpus = std::max(out_.nodes[n].gpus, std::ceil(most(by_node[n]) - 1e-9));
      sum += out_.nodes[n].gpus;
    }
    const double used = most(all);
    double listed = nodes_listed_ ? 0 : in_.partition_gpus;
    for (const SlurmNode& node : in_.nodes) listed += node.gpus;
    out_.capacity_assumed = listed <= 0;
    out_.capacity =
        out_.capacity_assumed ? used : std::max({listed, used, nodes_listed_ ? sum : 0});
    out_.capacity_raised = !out_.capacity_assumed && out_.capacity > listed + 1e-9;
  }

  const SlurmReading& in_;
  WeekJobs out_;
  std::unordered_map<std::string, int> by_name_;
  size_t placements_ = 0;
  bool nodes_listed_ = false;
  bool eligible_known_ = false;
};

}  // namespace

WeekJobs place_jobs(const SlurmReading& in, std::optional<WeekPeriod> period) {
  return Placer(in, period).place();
}

}  // namespace assay
