// Nodes on which jobs die again and again.
//
// A job that dies says little: its user may have broken it, and a job on 500 nodes dies on 499
// innocent ones. So each node's deaths are counted against what its own jobs let expect:
//  - A failure (the job's own exit) is expected at the rate at which jobs of that user and name
//    fail on other nodes, drawn towards the fleet's rate where there are few. A user whose jobs
//    always fail surprises nobody, and one whose jobs run nowhere else says nothing about the node.
//  - A death by the system (NODE_FAIL, a requeue that was no preemption) is expected at the fleet's
//    rate a node-hour, times the nodes and hours of the job.
// Tasks of one array that end alike on one node are one observation. Cancelled, preempted and
// out-of-memory jobs say nothing about a node and are left out. The number of deaths is compared
// with a Poisson distribution of the expected number; the chance times the number of nodes
// (Bonferroni) must be below one in a hundred. The surest node is named first and the deaths of its
// jobs are then forgotten, so that its companions in the same jobs are not named after it.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "diagnose/week_jobs.h"

namespace assay {
namespace {

constexpr double kFalseAlarms = 0.01;  // chance of naming any node of a healthy fleet
constexpr size_t kLeastDeaths = 3;
constexpr size_t kMostNodes = 50;  // named
constexpr double kPriorJobs = 2;   // weight of the fleet's rate in the rate of one user's jobs

struct Trial {
  const WeekJob* job = nullptr;
  bool died = false;
  bool by_system = false;
  int kin = -1;  // jobs of the same user and name
  double node_hours = 0;
  bool explained = false;
};

struct Tally {
  double trials = 0, failures = 0;
};

class NodeSearch {
 public:
  explicit NodeSearch(const WeekJobs& in) : in_(in), on_node_(in.nodes.size()) { collect(); }

  std::vector<SickNode> run() {
    std::vector<SickNode> out;
    size_t tested = 0;
    for (const std::vector<int>& trials : on_node_) tested += trials.empty() ? 0 : 1;
    while (out.size() < kMostNodes) {
      int best = -1;
      SickNode sickest;
      for (size_t n = 0; n < on_node_.size(); ++n) {
        const SickNode node = judge(n);
        if (node.died < kLeastDeaths) continue;
        if (best < 0 || node.p < sickest.p) {
          best = static_cast<int>(n);
          sickest = node;
        }
      }
      if (best < 0 || sickest.p * static_cast<double>(tested) > kFalseAlarms) break;
      find_companions(static_cast<size_t>(best), sickest);
      for (const int t : on_node_[static_cast<size_t>(best)]) {
        if (trials_[static_cast<size_t>(t)].died) trials_[static_cast<size_t>(t)].explained = true;
      }
      out.push_back(std::move(sickest));
    }
    return out;
  }

 private:
  void collect() {
    std::map<std::pair<std::string, std::string>, int> kin;
    std::set<std::tuple<std::string, std::string, JobState>> arrays;
    for (const WeekJob& job : in_.jobs) {
      const JobState state = job.job->state;
      const bool system = state == JobState::kNodeFail || state == JobState::kRequeued;
      const bool died = system || state == JobState::kFailed;
      const bool lived = state == JobState::kCompleted || state == JobState::kTimeout;
      if (job.nodes.empty() || job.from_s >= job.to_s || (!died && !lived)) continue;
      const bool task = job.job->id.find('_') != std::string::npos;
      if (task && !arrays.insert({job.job->base, job.job->node_list, state}).second) continue;
      Trial trial;
      trial.job = &job;
      trial.died = died;
      trial.by_system = system;
      trial.kin = kin.try_emplace({job.job->user, job.job->name}, static_cast<int>(kin.size()))
                      .first->second;
      trial.node_hours =
          static_cast<double>(job.nodes.size()) * static_cast<double>(job.to_s - job.from_s) / 3600;
      for (const int n : job.nodes) {
        on_node_[static_cast<size_t>(n)].push_back(static_cast<int>(trials_.size()));
      }
      trials_.push_back(trial);
    }
    kin_.resize(kin.size());
    for (const Trial& trial : trials_) count(trial, +1);
  }
  void count(const Trial& trial, double sign) {
    Tally& tally = kin_[static_cast<size_t>(trial.kin)];
    const double failed = trial.died && !trial.by_system ? sign : 0;
    tally.trials += sign;
    tally.failures += failed;
    all_.trials += sign;
    all_.failures += failed;
    hours_ += sign * trial.node_hours;
    system_deaths_ += trial.by_system ? sign : 0;
  }

  // The node against the rest of the fleet: its own jobs are taken out of the rates first.
  SickNode judge(size_t n) {
    SickNode out;
    out.name = in_.nodes[n].name;
    for (const int t : on_node_[n]) count(trials_[static_cast<size_t>(t)], -1);
    const double fleet = (all_.failures + 0.5) / (all_.trials + 1);
    const double rate = (system_deaths_ + 1) / std::max(hours_, 1.0);  // one more: never zero
    for (const int t : on_node_[n]) {
      const Trial& trial = trials_[static_cast<size_t>(t)];
      if (trial.explained) continue;
      const Tally& kin = kin_[static_cast<size_t>(trial.kin)];
      // Jobs of one user that run nowhere else cannot tell the user from the node.
      if (kin.trials < kPriorJobs && !trial.by_system) continue;
      const double fails = (std::max(kin.failures, 0.0) + kPriorJobs * fleet) /
                           (std::max(kin.trials, 0.0) + kPriorJobs);
      out.expected += std::min(1.0, fails + 1 - std::exp(-rate * trial.node_hours));
      ++out.jobs;
      out.died += trial.died;
      if (trial.died) {
        out.gpu_seconds +=
            trial.job->job->gpus * static_cast<double>(trial.job->to_s - trial.job->from_s);
      }
    }
    for (const int t : on_node_[n]) count(trials_[static_cast<size_t>(t)], +1);
    out.p = poisson_tail(out.died, out.expected);
    return out;
  }

  void find_companions(size_t best, SickNode& out) const {
    const std::vector<int> deaths = deaths_of(best);
    for (size_t n = 0; n < on_node_.size(); ++n) {
      if (n == best || on_node_[n].size() < deaths.size()) continue;
      // As many jobs that lived: a companion with more of them is the less likely.
      if (on_node_[n].size() == on_node_[best].size() && deaths_of(n) == deaths) {
        out.companions.push_back(in_.nodes[n].name);
      }
    }
  }
  std::vector<int> deaths_of(size_t n) const {
    std::vector<int> out;
    for (const int t : on_node_[n]) {
      const Trial& trial = trials_[static_cast<size_t>(t)];
      if (trial.died && !trial.explained) out.push_back(t);
    }
    return out;
  }

  const WeekJobs& in_;
  std::vector<std::vector<int>> on_node_;  // trials
  std::vector<Trial> trials_;
  std::vector<Tally> kin_;
  Tally all_;
  double hours_ = 0, system_deaths_ = 0;
};

}  // namespace

double poisson_tail(size_t count, double mean) {
  if (count == 0) return 1;
  if (mean <= 0) return 0;
  const double k = static_cast<double>(count);
  const auto term = [&](double i) {
    return std::exp(-mean + i * std::log(mean) - std::lgamma(i + 1));
  };
  double sum = 0;
  if (k <= mean) {  // the lower tail is the smaller sum
    for (size_t i = 0; i < count; ++i) sum += term(static_cast<double>(i));
    return std::max(0.0, 1 - sum);
  }
  double now = term(k);
  for (double i = k + 1; now > sum * 1e-15; ++i) {
    sum += now;
    now *= mean / i;
  }
  return std::min(sum, 1.0);
}

std::vector<SickNode> find_sick_nodes(const WeekJobs& jobs) { return NodeSearch(jobs).run(); }

}  // namespace assay
