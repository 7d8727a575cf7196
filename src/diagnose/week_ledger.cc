// One sweep over the moments at which anything changes. Between two of them allocations, queue and
// nodes are constant, so each account grows by its GPUs times the length.
#include <algorithm>
#include <climits>
#include <cmath>
#include <map>

#include "diagnose/week_jobs.h"

namespace assay {
namespace {

enum class Change : uint8_t { kEnd, kUnqueue, kDrain, kQueue, kStart };

struct Moment {
  int64_t at_s = 0;
  Change change = Change::kEnd;
  size_t index = 0;  // of the job or the node
};

// A request: GPUs on each of so many nodes.
using Shape = std::pair<int, int64_t>;

class Sweep {
 public:
  Sweep(const WeekJobs& in, WeekReport& out) : in_(in), out_(out), used_(in.nodes.size()) {
    drained_.resize(in.nodes.size());
    for (size_t n = 0; n < in.nodes.size(); ++n) count_node(n, +1);
  }

  void run() {
    std::vector<Moment> moments = collect();
    std::sort(moments.begin(), moments.end(), [](const Moment& a, const Moment& b) {
      return a.at_s != b.at_s ? a.at_s < b.at_s : a.change < b.change;
    });
    int64_t last = in_.period.from_s;
    for (const Moment& moment : moments) {
      spend(static_cast<double>(moment.at_s - last));
      last = moment.at_s;
      apply(moment);
    }
    spend(static_cast<double>(in_.period.to_s - last));
    const double length = static_cast<double>(in_.period.to_s - in_.period.from_s);
    out_.shapes_known = length > 0 ? known_s_ / length : 0;
  }

 private:
  std::vector<Moment> collect() const {
    std::vector<Moment> out;
    for (size_t j = 0; j < in_.jobs.size(); ++j) {
      const WeekJob& job = in_.jobs[j];
      if (job.from_s < job.to_s) {
        out.push_back({job.from_s, Change::kStart, j});
        out.push_back({job.to_s, Change::kEnd, j});
      }
      if (job.queue_from_s < job.queue_to_s) {
        out.push_back({job.queue_from_s, Change::kQueue, j});
        out.push_back({job.queue_to_s, Change::kUnqueue, j});
      }
    }
    for (size_t n = 0; n < in_.nodes.size(); ++n) {
      if (in_.nodes[n].drained_from) out.push_back({*in_.nodes[n].drained_from, Change::kDrain, n});
    }
    return out;
  }

  static Shape shape_of(const SlurmJob& job) {
    const int64_t nodes = std::max<int64_t>(job.nodes, 1);
    const double each = std::ceil(job.gpus / static_cast<double>(nodes));
    return {static_cast<int>(std::min(each, 1e6)), nodes};
  }

  // A node's free GPUs in the histograms of its kind: drained, whole or partly used.
  void count_node(size_t n, int sign) {
    const double free = in_.nodes[n].gpus - used_[n];
    if (free <= 0) return;
    if (drained_[n]) {
      drained_free_ += sign * free;
      return;
    }
    const int whole = static_cast<int>(std::floor(free + 1e-9));
    auto& histogram = used_[n] > 1e-9 ? partly_ : wholly_;
    if ((histogram[whole] += sign) == 0) histogram.erase(whole);
  }

  void apply(const Moment& moment) {
    if (moment.change == Change::kDrain) {
      count_node(moment.index, -1);
      drained_[moment.index] = true;
      count_node(moment.index, +1);
      return;
    }
    const WeekJob& job = in_.jobs[moment.index];
    if (moment.change == Change::kQueue || moment.change == Change::kUnqueue) {
      const int sign = moment.change == Change::kQueue ? 1 : -1;
      const Shape shape = shape_of(*job.job);
      queued_gpus_ += sign * job.job->gpus;
      if ((queue_[shape] += sign) == 0) queue_.erase(shape);
      return;
    }
    const int sign = moment.change == Change::kStart ? 1 : -1;
    held_[static_cast<size_t>(job.account)] += sign * job.job->gpus;
    if (job.nodes.empty()) unplaced_ += sign;
    const double share =
        job.nodes.empty() ? 0 : job.job->gpus / static_cast<double>(job.nodes.size());
    for (const int node : job.nodes) {
      const size_t n = static_cast<size_t>(node);
      count_node(n, -1);
      used_[n] = std::max(0.0, used_[n] + sign * share);
      if (used_[n] < 1e-9) used_[n] = 0;
      count_node(n, +1);
    }
  }

  // GPUs of partly used nodes that no job of the queue fits on. Of all jobs that want as many GPUs
  // of a node, the one on the fewest nodes decides; the queue is ordered by both.
  double fragmented() const {
    int least = INT_MAX;  // GPUs of a node that some job could start with now
    for (auto at = queue_.begin(); at != queue_.end();
         at = queue_.lower_bound({at->first.first + 1, INT64_MIN})) {
      if (nodes_with(at->first.first) < at->first.second) continue;
      least = at->first.first;
      break;
    }
    double out = 0;
    for (const auto& [free, count] : partly_) {
      if (free < least) out += static_cast<double>(free) * static_cast<double>(count);
    }
    return out;
  }
  int64_t nodes_with(int gpus) const {
    int64_t out = 0;
    for (const auto* histogram : {&partly_, &wholly_}) {
      for (auto at = histogram->lower_bound(gpus); at != histogram->end(); ++at) out += at->second;
    }
    return out;
  }

  void spend(double seconds) {
    if (seconds <= 0) return;
    double rest = in_.capacity;
    for (size_t a = 0; a < kWeekAccounts; ++a) {
      const double held = std::max(0.0, held_[a]);
      out_.gpu_seconds[a] += held * seconds;
      rest -= held;
    }
    rest = std::max(rest, 0.0);
    const auto add = [&](WeekAccount account, double gpus) {
      gpus = std::clamp(gpus, 0.0, rest);
      out_.gpu_seconds[static_cast<size_t>(account)] += gpus * seconds;
      rest -= gpus;
    };
    add(WeekAccount::kDrained, drained_free_);
    const bool queued = !queue_.empty();
    if (unplaced_ == 0) known_s_ += seconds;
    if (queued && unplaced_ == 0) add(WeekAccount::kFragmented, fragmented());
    add(queued ? WeekAccount::kWaiting : WeekAccount::kIdle, rest);
    out_.queued_gpu_seconds += std::max(0.0, queued_gpus_) * seconds;
  }

  const WeekJobs& in_;
  WeekReport& out_;
  std::vector<double> used_;
  std::vector<char> drained_;
  std::array<double, kWeekAccounts> held_{};
  std::map<int, int64_t> partly_, wholly_;  // nodes by free GPUs
  std::map<Shape, int64_t> queue_;
  double queued_gpus_ = 0, drained_free_ = 0, known_s_ = 0;
  int64_t unplaced_ = 0;
};

}  // namespace

void fill_week(const WeekJobs& jobs, WeekReport& out) {
  Sweep(jobs, out).run();
  std::vector<double> waits;
  for (const WeekJob& job : jobs.jobs) {
    if (job.from_s < job.to_s && job.job->start_s && (job.job->eligible_s || job.job->submit_s)) {
      const int64_t from = job.job->eligible_s.value_or(job.job->submit_s.value_or(0));
      waits.push_back(static_cast<double>(std::max<int64_t>(0, *job.job->start_s - from)));
    }
    out.jobs += job.from_s < job.to_s;
  }
  if (waits.empty()) return;
  std::nth_element(waits.begin(), waits.begin() + static_cast<ptrdiff_t>(waits.size() / 2),
                   waits.end());
  out.queue_wait_median_s = waits[waits.size() / 2];
}

}  // namespace assay
