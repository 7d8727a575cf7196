#include "sim/expect.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/random.h"
#include "sim/prepare.h"

namespace assay {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

double lognormal_mean(Seconds median, double sigma) {
  return median.v * std::exp(0.5 * sigma * sigma);
}

// Failures of one kind: what each costs, and what it takes with it.
struct Blows {
  double per_s = 0;
  Extent extent = Extent::kNode;
  double down_s = 0;    // until the job can restart
  double rework_s = 0;  // beyond what was done since the last save
  bool ages = false;    // more often in the first weeks
};

// The run is looked at in the middle of so many parts of its time.
constexpr int kParts = 32;
// A token target's time follows from the goodput over that time.
constexpr int kRounds = 12;

class Expecter {
 public:
  explicit Expecter(const RunSpec& spec) : run_(spec), spec_(run_.spec), recovery_(spec_.recovery) {
    elastic_ = recovery_.policy == RecoveryPolicy::kElastic;
    horizon_ = spec_.period.v;
    gather();
    hours();
  }

  Expectation expect() {
    Expectation e;
    e.mtbf = run_.mtbf;
    if (!run_.intervals.empty()) e.interval = run_.intervals.back();
    const double work = run_.target_work / kNanosecondsPerSecond;
    const double start = std::min(start_up(), spec_.period.v);
    if (work > 0) horizon_ = std::min(horizon_, start + work);
    for (int round = 0; round < kRounds; ++round) {
      e.slowdown = slowdown();
      const double steady = mean_steady(e.slowdown, e);
      if (elastic_) e.slowdown *= run_.group_factor(up_);
      const double needed = steady > 0 ? start + work * e.slowdown / steady : kNever;
      e.time = work > 0 ? Seconds(needed) : spec_.period;
      e.start = std::max(0.0, 1 - start / e.time.v);
      e.goodput = std::clamp(steady * e.start, 0.0, 1.0);
      const double next = std::min(spec_.period.v, e.time.v);
      if (std::abs(next - horizon_) <= 1e-6 * horizon_) break;
      horizon_ = next;
    }
    return e;
  }

 private:
  void gather();
  void hours();
  double left_by_repair(const PreparedProcess&, double busy) const;
  double mean_steady(double pace, Expectation&);
  double infant(double t) const;
  double infant_until(double t) const;
  double restart_s(int tier) const;
  double places(double pace, double often) const;
  double place(size_t index, double pace, double often) const;
  double in_repair(double t) const;
  double pool_suffices(double t) const;
  double replicas_up(double t, double often) const;
  double planned_stops() const;
  double start_up() const;
  double slowdown() const;
  double speed(double base, bool from_the_start) const;

  const PreparedRun run_;
  const RunSpec& spec_;
  const Recovery& recovery_;
  bool elastic_ = false;
  double horizon_ = 0;        // how long the run takes, as far as is known
  std::vector<Blows> blows_;  // of which work is lost
  double leaves_per_s_ = 0;   // elastic: losses of a replica
  double swaps_per_s_ = 0;    // of these, with a node to replace
  double repairs_per_s_ = 0;  // of job and spares
  double up_ = 1;             // elastic: share of the replicas
  double clocks_ = 0;         // excess of a step by the site's clocks, as work is lost by it
  double hours_running_ = 1;
};

// Rates over those of settled machines: at a time, and on average until then.
double Expecter::infant(double t) const {
  const InfantMortality& i = spec_.infant;
  return i.decay.v > 0 ? 1 + (i.multiplier - 1) * std::exp(-t / i.decay.v) : 1;
}
double Expecter::infant_until(double t) const {
  const InfantMortality& i = spec_.infant;
  if (!(i.decay.v > 0)) return 1;
  return 1 + (i.multiplier - 1) * i.decay.v / t * -std::expm1(-t / i.decay.v);
}

double Expecter::mean_steady(double pace, Expectation& e) {
  double sum = 0, up = 0, kept_alone = 0;
  for (int i = 0; i < kParts; ++i) {
    const double t = horizon_ * (i + 0.5) / kParts, often = infant(t);
    const double kept = places(pace, often);
    const double here = elastic_ ? replicas_up(t, often) : pool_suffices(t);
    sum += kept * here;
    kept_alone += kept;
    up += here / kParts;
  }
  if (elastic_) up_ = up;
  e.places = kept_alone / kParts;
  e.machines = kept_alone > 0 ? sum / kept_alone : 1;
  e.hours = hours_running_;
  e.planned = 1 - planned_stops();
  // Stalls stop everyone; their share is none of the replicas'.
  if (elastic_) {
    const double stall = (recovery_.leave_stall + recovery_.rejoin_stall).v;
    e.machines *= std::exp(-leaves_per_s_ * infant_until(horizon_) * stall);
  }
  e.input = pace / (pace + run_.data_excess - run_.data_usual);
  return e.places * e.machines * e.hours * e.planned * e.input;
}

// What fails while it is being repaired changes nothing, and lemons are in repair most: the rate
// that is left of a machine's, where `busy` is its mean number of repairs at a time.
double Expecter::left_by_repair(const PreparedProcess& p, double busy) const {
  if (p.whole_job) return 1;
  if (p.frailty == nullptr) return 1 / (1 + busy);
  constexpr int kQualities = 128;
  double sum = 0;
  for (int i = 0; i < kQualities; ++i) {
    const double own = p.frailty->factor((i + 0.5) / kQualities);
    sum += own / (1 + busy * own) / kQualities;
  }
  return sum;
}

void Expecter::gather() {
  const double nodes = static_cast<double>(run_.nodes);
  const double spares = 1 + static_cast<double>(spec_.spares.nodes) / nodes;
  const double whole = elastic_ ? recovery_.whole_job : 1;
  double busy = 0;
  for (const PreparedProcess& p : run_.processes) {
    if (!p.whole_job) busy += p.per_second * p.spec.replaced;
  }
  busy *= lognormal_mean(spec_.repair.median, run_.repair_sigma);
  const auto add = [&](double per_s, Blows b, double replaced) {
    leaves_per_s_ += per_s * (1 - whole);
    swaps_per_s_ += per_s * (1 - whole) * replaced;
    b.per_s = per_s * whole;
    b.down_s += replaced * recovery_.swap.v;
    blows_.push_back(b);
  };
  for (const PreparedProcess& p : run_.processes) {
    const double each = p.per_second * left_by_repair(p, busy);
    const double replaced = p.whole_job ? 0 : p.spec.replaced;
    const double detection = lognormal_mean(p.spec.detection, p.spec.detection_sigma);
    add(each * (p.whole_job ? 1 : nodes), {0, p.spec.extent, detection, 0, !p.whole_job}, replaced);
    repairs_per_s_ += each * nodes * replaced * spares;
  }
  for (const ShockProcess& s : spec_.shocks) {
    const bool site = s.nodes == 0;
    const double domains = site ? 1 : std::ceil(nodes / static_cast<double>(s.nodes));
    const double per_s = domains * s.per_year / kSecondsPerYear;
    if (site) {
      blows_.push_back({per_s, Extent::kSite, s.duration_mean.v, 0});
    } else if (!s.takes_nodes) {
      add(per_s, {0, Extent::kProcess, s.detection.v, 0}, 0);
    } else {
      const bool spared = s.nodes <= spec_.spares.nodes;
      const Seconds down = spared ? s.detection : std::max(s.detection, s.duration_mean);
      add(per_s, {0, Extent::kDomain, down.v, 0}, 1);
    }
  }
  const SilentCorruption& c = spec_.corruption;
  const double unnoticed = lognormal_mean(c.detection_median, c.detection_sigma);
  // Only the safest place reaches back before a corruption.
  const Extent safest =
      spec_.checkpoints.empty() ? Extent::kSite : spec_.checkpoints.back().survives;
  blows_.push_back({run_.corruption_rate(), safest, recovery_.swap.v, unnoticed});
}

double Expecter::restart_s(int tier) const {
  const bool cold = recovery_.policy == RecoveryPolicy::kRequeue;
  double s = run_.restart_time(spec_.gpus, tier, cold).v;
  if (!cold) return s;
  const double nodes = static_cast<double>(run_.nodes) * (1 - spec_.start.prepulled);
  return s + recovery_.requeue_wait.v + (spec_.start.kept ? 0 : run_.image_pull(nodes).v);
}

double Expecter::place(size_t index, double pace, double often) const {
  const bool saved = index < spec_.checkpoints.size();
  const Extent most = saved ? spec_.checkpoints[index].survives : Extent::kSite;
  double per_s = 0, down = 0, rework = 0;
  for (const Blows& b : blows_) {
    const bool before = index > 0 && b.extent <= spec_.checkpoints[index - 1].survives;
    if (before || b.extent > most) continue;
    const double rate = b.per_s * (b.ages ? often : 1);
    per_s += rate;
    down += rate * b.down_s;
    rework += rate * std::min(b.rework_s, horizon_);
  }
  double save = 0, interval = horizon_;
  if (saved) {
    const SaveTier& t = run_.schedule.tiers[index];
    save = to_seconds(t.stall + t.starve).v;
    interval = run_.intervals[index].v * pace;
  }
  if (interval > horizon_) interval = horizon_, save = 0;
  if (!(per_s > 0)) return interval / (interval + save);
  const double persist =
      saved ? std::min(to_seconds(run_.schedule.tiers[index].persist).v, interval) : 0;
  const double again = restart_s(saved ? static_cast<int>(index) : -1) + persist;
  const CheckpointCosts costs{Seconds(1 / per_s), Seconds(save), Seconds(down / per_s),
                              Seconds(again + rework / per_s)};
  return exact_ettr(costs, Seconds(interval + save));
}

double Expecter::places(double pace, double often) const {
  double kept = 1;
  for (size_t i = 0; i < spec_.checkpoints.size(); ++i) kept *= place(i, pace, often);
  const bool all = !spec_.checkpoints.empty() && spec_.checkpoints.back().survives == Extent::kSite;
  return all ? kept : kept * place(spec_.checkpoints.size(), pace, often);
}

// Mean number of machines in repair a time after the start.
double Expecter::in_repair(double t) const {
  const double median = spec_.repair.median.v, sigma = run_.repair_sigma;
  const double per_s = repairs_per_s_ * infant_until(t);
  if (!(median > 0)) return 0;
  if (!(sigma > 0)) return per_s * std::min(t, median);
  const double score = std::log(t / median) / sigma;
  const double mean = lognormal_mean(spec_.repair.median, sigma);
  return per_s * (t * normal_cdf(-score) + mean * normal_cdf(score - sigma));
}

double Expecter::pool_suffices(double t) const {
  const double mean = in_repair(t);
  return mean > 0 ? 1 - gamma_cdf(mean, static_cast<double>(spec_.spares.nodes) + 1) : 1;
}

// Share of the replicas that is not away, each with its own restarts and waits for a spare.
double Expecter::replicas_up(double t, double often) const {
  const double replicas = static_cast<double>(recovery_.replicas);
  double away = (run_.restart_time(spec_.gpus / recovery_.replicas, -1, false) + recovery_.heal).v;
  if (leaves_per_s_ > 0) away += recovery_.swap.v * swaps_per_s_ / leaves_per_s_;
  const double mean = in_repair(t), pool = static_cast<double>(spec_.spares.nodes);
  double vacant = 0;  // mean of what is in repair beyond the pool
  if (mean > 0) {
    vacant = mean * (pool > 0 ? gamma_cdf(mean, pool) : 1) - pool * gamma_cdf(mean, pool + 1);
  }
  return std::exp(-(often * leaves_per_s_ * away + std::max(0.0, vacant)) / replicas);
}

double Expecter::planned_stops() const {
  if (!(spec_.maintenance.every.v > 0)) return 0;
  double cost = spec_.maintenance.duration.v;
  const int last = static_cast<int>(spec_.checkpoints.size()) - 1;
  if (last >= 0) {
    const SaveTier& t = run_.schedule.tiers.back();
    cost += to_seconds(t.stall + t.persist).v;
  }
  cost += restart_s(last);
  return std::min(1.0, cost / spec_.maintenance.every.v);
}

double Expecter::start_up() const {
  const StartUp& up = spec_.start;
  const Seconds init = recovery_.allocation + recovery_.init_base +
                       recovery_.init_per_gpu * static_cast<double>(spec_.gpus);
  return lognormal_mean(up.queue_median, up.queue_sigma) +
         run_.image_pull(static_cast<double>(run_.nodes) * (1 - up.prepulled)).v +
         (init + recovery_.compile + recovery_.warmup).v;
}

// Mean work per time of steps that wait for the slowest machine. `base` is what they take without
// any; the chance of an excess above x is 1 - e^-m(x), with m(x) the mean number of machines above
// x, so the mean of 1 / (base + excess) is 1 / base - the integral of chance / (base + x)^2.
double Expecter::speed(double base, bool from_the_start) const {
  const Stragglers& s = spec_.stragglers;
  const double nodes = static_cast<double>(run_.nodes);
  const double least = s.fail_slow_least.v, most = s.fail_slow_most.v;
  // An evicted machine stays until the first restart after that.
  const double cut = s.evicted_after.v > 0 ? s.evicted_after.v + run_.mtbf.v : kNever;
  const double ratio = std::log(most / least), until = std::clamp(cut, least, most);
  const double lasts =
      ratio > 0 ? (until - least + until * std::log(most / until)) / ratio : std::min(least, cut);
  const double born = from_the_start ? nodes * s.slow_nodes : 0;
  const double failing = nodes * s.fail_slow_per_node_day / kSecondsPerDay * lasts;
  const double links =
      nodes * s.slow_link_per_node_day / kSecondsPerDay * std::min(s.slow_link_mean.v, cut);
  double reach =
      s.slow_link_by + std::max(s.slow_by, s.fail_slow_by) * (30 + std::log1p(born + failing));
  const auto domains = [&](const ShockProcess& h) {
    return h.takes_nodes ? 0 : std::ceil(nodes / static_cast<double>(h.nodes));
  };
  for (const ShockProcess& h : spec_.shocks) {
    if (domains(h) > 0) reach = std::max(reach, h.slow_by);
  }
  const auto above = [&](double x) {
    double m = x < s.slow_link_by ? links : 0;
    for (const ShockProcess& h : spec_.shocks) {
      if (x < h.slow_by)
        m += domains(h) * h.per_year / kSecondsPerYear * std::min(h.duration_mean.v, cut);
    }
    if (s.slow_by > 0) m += born * std::exp(-x / s.slow_by);
    if (s.fail_slow_by > 0) m += failing * std::exp(-x / s.fail_slow_by);
    return -std::expm1(-m);
  };
  constexpr int kSlices = 512;
  double lost = 0;
  for (int i = 0; i < kSlices; ++i) {
    const double x = reach * (i + 0.5) / kSlices;
    lost += above(x) / ((base + x) * (base + x)) * reach / kSlices;
  }
  return 1 / base - lost;
}

double Expecter::slowdown() const {
  const double base =
      1 + run_.jitter_excess + run_.data_usual + spec_.corruption.replayed + clocks_;
  const double evicted = spec_.stragglers.evicted_after.v;
  if (!(evicted > 0)) return 1 / speed(base, true);
  const double share = std::min(1.0, (evicted + run_.mtbf.v) / horizon_);
  return 1 / (share * speed(base, true) + (1 - share) * speed(base, false));
}

void Expecter::hours() {
  double work = 0, running = 0, all = 0;
  const auto add = [&](const std::vector<RunHour>& hours) {
    for (const RunHour& h : hours) {
      const double on = h.outage ? 0 : h.powered;
      work += on / std::max(1.0, run_.clock_factor(h.thermal_clock * h.facility_clock));
      running += on;
    }
    all += static_cast<double>(hours.size());
  };
  add(spec_.site.hours);
  for (const std::vector<RunHour>& other : spec_.site.others) add(other);
  if (all > 0) hours_running_ = running / all;
  if (running > 0) clocks_ = running / work - 1;
}

}  // namespace

Expectation expect_run(const RunSpec& spec) { return Expecter(spec).expect(); }

}  // namespace assay
