#include "sim/engine.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/assert.h"

namespace assay {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

}  // namespace

Engine::Engine(const PreparedRun& run, uint64_t seed, const RunOptions& options)
    : run_(run), seed_(seed), options_(options), history_(run.schedule), late_(*run.late, seed) {
  chronicle_.by_cause.assign(run.cause_names.size(), 0);
  chronicle_.interruptions.assign(run.cause_names.size(), 0);
  work_most_ = kNoLimit;
}

RunResult Engine::run() {
  begin();
  Event event;
  while (!chronicle_.finished && next(event)) dispatch(event);
  if (!chronicle_.finished) {
    now_ = run_.horizon;
    finish(false);
  }
  return settle(run_, chronicle_, history_.segments(), options_);
}

bool Engine::next(Event& event) {
  // Beside the queue: arrivals, known from the start, and the next late batch, which every segment
  // foretells anew.
  Nanoseconds time = kTimeMax;
  uint8_t priority = 0;
  if (!queue_.empty()) time = queue_.top().time, priority = queue_.top().priority();
  const auto sooner = [&](Nanoseconds at, Kind kind) {
    return at < time || (at == time && static_cast<uint8_t>(kind) < priority);
  };
  bool queued = !queue_.empty();
  const bool arrivals_left = next_arrival_ < arrivals_.size();
  if (arrivals_left && sooner(arrivals_[next_arrival_].time, Kind::kArrival)) {
    time = arrivals_[next_arrival_].time, priority = static_cast<uint8_t>(Kind::kArrival);
    event = {Kind::kArrival, static_cast<int32_t>(next_arrival_), 0};
    queued = false;
  }
  if (late_at_ < kTimeMax && sooner(late_at_, Kind::kLate)) {
    now_ = late_at_;
    event = {Kind::kLate, 0, 0};
    return now_ < run_.horizon;
  }
  if (time == kTimeMax) return false;
  if (queued) {
    event = queue_.pop().payload;
  } else {
    ++next_arrival_;
  }
  now_ = time;
  return now_ < run_.horizon;
}

void Engine::push(Nanoseconds time, Kind kind, int32_t index, uint32_t generation) {
  if (time < run_.horizon) queue_.push(time, static_cast<uint8_t>(kind), {kind, index, generation});
}

void Engine::begin() {
  const size_t weather = weather_of(run_.spec.site, seed_);
  hours_ = weather == 0 ? &run_.spec.site.hours : &run_.spec.site.others[weather - 1];
  machines_.resize(static_cast<size_t>(run_.machines));
  slots_.resize(static_cast<size_t>(run_.nodes));
  for (int32_t m = 0; m < static_cast<int32_t>(run_.machines); ++m) {
    if (m < static_cast<int32_t>(run_.nodes)) {
      place(m, m);
    } else {
      pool_.insert(m);
    }
  }
  arrivals_ = by_time(draw_arrivals(run_, seed_));
  const Stragglers& s = run_.spec.stragglers;
  const Stream::Family slow_nodes = Stream::family(seed_, cause_id("slow node"));
  for (int32_t m = 0; s.slow_nodes > 0 && m < static_cast<int32_t>(run_.machines); ++m) {
    Stream luck(slow_nodes, static_cast<uint64_t>(m));
    const bool is_slow = luck.uniform() < s.slow_nodes;
    if (is_slow) slow_.push_back({m, exponential_quantile(luck.uniform(), s.slow_by), 0, kTimeMax});
  }
  slowest_ = slowest();
  const bool many = run_.spec.recovery.policy == RecoveryPolicy::kElastic;
  replicas_.resize(many ? static_cast<size_t>(run_.spec.recovery.replicas) : 1);
  if (!hours_->empty()) push(0, Kind::kSite, 0);
  if (run_.spec.maintenance.every.v > 0) {
    push(to_ns(run_.spec.maintenance.every), Kind::kMaintenance, 1);
  }
  Segment start;
  start.forced = true;
  // About what it will take: an arrival or a change of the hour ends one and begins another.
  history_.segments().reserve(arrivals_.size() + hours_->size() + 64);
  chronicle_.slices.reserve(arrivals_.size() + 64);
  history_.segments().push_back(start);

  const StartUp& up = run_.spec.start;
  const Recovery& r = run_.spec.recovery;
  const double queue = lognormal_quantile(Stream(seed_, cause_id("queue")).uniform(),
                                          up.queue_median.v, up.queue_sigma);
  const double pulling = static_cast<double>(run_.nodes) * (1 - up.prepulled);
  const Seconds init =
      r.allocation + r.init_base + r.init_per_gpu * static_cast<double>(run_.spec.gpus);
  start_steps_ = {{Account::kQueue, to_ns(Seconds(queue))},
                  {Account::kImagePull, to_ns(run_.image_pull(pulling))},
                  {Account::kInit, to_ns(init)},
                  {Account::kCompile, to_ns(r.compile)},
                  {Account::kWarmup, to_ns(r.warmup)}};
  next_start_step();
}

void Engine::next_start_step() {
  while (start_step_ < start_steps_.size() && start_steps_[start_step_].second == 0) ++start_step_;
  if (start_step_ == start_steps_.size()) return begin_stepping();
  const auto [account, duration] = start_steps_[start_step_++];
  enter(Phase::kStarting, account, duration);
}

void Engine::dispatch(const Event& e) {
  switch (e.kind) {
    case Kind::kSite:
      return on_site();
    case Kind::kRepaired:
      return on_repaired(e.index);
    case Kind::kSlowEnd:
      std::erase_if(slow_, [&](const Slow& s) { return s.until <= now_; });
      return change_pace();
    case Kind::kArrival:
      return on_arrival(arrivals_[static_cast<size_t>(e.index)]);
    case Kind::kFound:
      return on_found(e.index);
    case Kind::kReplica:
      return on_replica(static_cast<size_t>(e.index), e.generation);
    case Kind::kPhase:
      if (e.generation == phase_generation_) on_phase_end();
      return;
    case Kind::kMaintenance:
      push(to_ns(run_.spec.maintenance.every * static_cast<double>(e.index + 1)),
           Kind::kMaintenance, e.index + 1);
      return on_maintenance();
    case Kind::kTarget:
      if (e.generation == segment_generation_ && phase_ == Phase::kStepping) finish(true);
      return;
    case Kind::kLate:
      return on_late();
  }
}

// --- phases -----------------------------------------------------------------------------------

void Engine::enter(Phase phase, Account account, Nanoseconds duration) {
  leave();
  phase_ = phase;
  phase_account_ = account;
  phase_begin_ = now_;
  ++phase_generation_;
  if (duration < kTimeMax) push(now_ + duration, Kind::kPhase, 0, phase_generation_);
}

void Engine::leave() {
  if (phase_ == Phase::kStepping || phase_begin_ == now_) return;
  const int64_t all = run_.spec.gpus;
  int64_t away = 0;
  if (phase_ == Phase::kStalled || phase_ == Phase::kPaused) {
    for (size_t i = 0; i < replicas_.size(); ++i) {
      const Replica& r = replicas_[i];
      if (r.state == Replica::State::kUp) continue;
      const int64_t each = replica_gpus(i);
      const bool replacing = r.state == Replica::State::kReplacing;
      chronicle_.slices.push_back({phase_begin_, now_,
                                   replacing ? Account::kReplacement : Account::kRestart, each,
                                   r.cause});
      away += each;
    }
  }
  chronicle_.slices.push_back({phase_begin_, now_, phase_account_, all - away, cause_});
}

void Engine::on_phase_end() {
  switch (phase_) {
    case Phase::kStarting:
      return next_start_step();
    case Phase::kStalled:
      return resume_elastic();
    case Phase::kDetecting:
    case Phase::kOutage:
      return begin_replacing();
    case Phase::kReplacing:
      return enough() ? begin_restart() : begin_replacing();
    case Phase::kRestarting:
      return begin_stepping();
    case Phase::kSaving: {
      Segment save;
      save.begin = save.end = now_;
      save.from.work = save.work_end = save.kept = state_.work;
      save.from.saves = state_.saves;
      save.forced = true;
      history_.segments().push_back(save);
      stopped_at_ = now_;
      return enter(Phase::kMaintaining, Account::kMaintenance,
                   to_ns(run_.spec.maintenance.duration));
    }
    case Phase::kMaintaining:
      return begin_replacing();
    case Phase::kStepping:
    case Phase::kPaused:
      return;
  }
}

bool Engine::running() const {
  return phase_ == Phase::kStepping || phase_ == Phase::kStalled || phase_ == Phase::kPaused;
}

void Engine::stop(int cause) {
  note_interruption(cause);
  if (phase_ == Phase::kStepping) end_segment();
  leave();
  phase_begin_ = now_;
  if (phase_ == Phase::kSaving) maintenance_due_ = true;
  if (running()) {
    stopped_at_ = now_;
    chronicle_.longest_run = std::max(chronicle_.longest_run, now_ - running_since_);
  }
  cause_ = cause;
  planned_ = false;
}

void Engine::interrupt(const Blow& blow) {
  if (elastic() && running() && !blow.whole_job) return lose_replicas(blow);
  extent_ = std::max(extent_, blow.extent);
  const bool waiting = phase_ == Phase::kDetecting || phase_ == Phase::kReplacing ||
                       phase_ == Phase::kOutage || phase_ == Phase::kMaintaining;
  if (waiting) return;  // it is down already; what must be replaced has been vacated
  stop(blow.cause);
  enter(Phase::kDetecting, Account::kDetection, blow.detection);
}

void Engine::outage(int cause, Nanoseconds until) {
  if (phase_ == Phase::kOutage && until <= outage_until_) return;
  if (phase_ != Phase::kOutage) stop(cause);
  extent_ = Extent::kSite;
  outage_until_ = until;
  enter(Phase::kOutage, Account::kOutage, until - now_);
}

void Engine::begin_replacing() {
  evict_slow();
  if (vacant_.empty()) return begin_restart();
  fill(0, static_cast<int32_t>(slots_.size()));
  waiting_for_spares_ = !enough();
  if (waiting_for_spares_) ++chronicle_.spares_empty;
  enter(Phase::kReplacing, Account::kReplacement,
        waiting_for_spares_ ? kTimeMax : to_ns(run_.spec.recovery.swap));
}

void Engine::begin_restart() {
  const SavePoint save =
      history_.newest(extent_, stopped_at_, work_most_, run_.spec.kept_checkpoints);
  for (const History::Lost& l : history_.roll_back(save.work)) {
    // Work after a corruption ran on a fault that nobody knew of; work before it is lost with it.
    const double split = std::clamp(work_most_, l.from, l.upto);
    const Account before = corrupted_ ? Account::kCorruption : Account::kLostWork;
    if (split > l.from) chronicle_.lost.push_back({l.segment, l.from, split, before, cause_});
    if (l.upto > split) {
      chronicle_.lost.push_back({l.segment, split, l.upto, Account::kUndetected, cause_});
    }
  }
  for (Corruption& c : corruptions_) c.open = c.open && c.work <= save.work;
  history_.destroy(extent_, stopped_at_);
  state_ = ProgressState{save.work, 0, save.saves, 0, 0, save.saves};
  late_wait_ = false;
  for (size_t r = 0; r < replicas_.size(); ++r) {
    replicas_[r].state = complete(r) ? Replica::State::kUp : Replica::State::kReplacing;
    replicas_[r].cause = cause_;
    ++replicas_[r].generation;
  }
  const bool cold = run_.spec.recovery.policy == RecoveryPolicy::kRequeue;
  Seconds restart = run_.restart_time(run_.spec.gpus, save.tier, cold);
  if (cold) restart += run_.spec.recovery.requeue_wait;
  // A job that is queued again is a new one to nodes that keep nothing.
  const StartUp& up = run_.spec.start;
  const double again = cold && !up.kept ? static_cast<double>(run_.nodes) * (1 - up.prepulled) : 0;
  const double fresh = run_.spec.spares.prepulled ? 0 : static_cast<double>(replaced_);
  restart += run_.image_pull(std::max(again, fresh));
  replaced_ = 0;
  enter(Phase::kRestarting, planned_ ? Account::kMaintenance : Account::kRestart, to_ns(restart));
}

void Engine::begin_stepping() {
  leave();
  phase_begin_ = now_;
  extent_ = Extent::kProcess;
  cause_ = kNoCause;
  work_most_ = kNoLimit;
  corrupted_ = false;
  planned_ = false;
  slowest_ = slowest();
  phase_ = Phase::kStepping;
  ++phase_generation_;
  running_since_ = now_;
  begin_segment();
  if (maintenance_due_) start_maintenance();
}

void Engine::on_maintenance() {
  maintenance_due_ = true;
  if (phase_ == Phase::kStepping) start_maintenance();
}

void Engine::start_maintenance() {
  maintenance_due_ = false;
  end_segment();
  note_interruption(static_cast<int>(run_.cause_maintenance));
  chronicle_.longest_run = std::max(chronicle_.longest_run, now_ - running_since_);
  cause_ = static_cast<int>(run_.cause_maintenance);
  planned_ = true;
  stopped_at_ = now_;
  phase_begin_ = now_;
  phase_ = Phase::kSaving;
  Nanoseconds save = 0;
  if (!run_.schedule.tiers.empty()) {
    const SaveTier& last = run_.schedule.tiers.back();
    save = last.stall + last.persist;
  }
  enter(Phase::kSaving, Account::kCheckpoint, save);
}

void Engine::finish(bool finished) {
  if (phase_ == Phase::kStepping) {
    end_segment();
    chronicle_.longest_run = std::max(chronicle_.longest_run, now_ - running_since_);
  } else {
    leave();
  }
  chronicle_.finished = finished;
  chronicle_.end = now_;
  chronicle_.work = state_.work;
}

// --- stepping ---------------------------------------------------------------------------------

const RunHour& Engine::hour() const {
  static const RunHour kPerfect;
  if (hours_->empty()) return kPerfect;
  const Nanoseconds length = std::max<Nanoseconds>(1, to_ns(run_.spec.site.step));
  return (*hours_)[static_cast<size_t>(now_ / length) % hours_->size()];
}

Excess Engine::excess(const RunHour& h, int64_t active) const {
  Excess e;
  const double clocks = std::max(0.0, run_.clock_factor(h.thermal_clock * h.facility_clock) - 1);
  const double heat = -std::log(h.thermal_clock), cap = -std::log(h.facility_clock);
  const double thermal_share = heat + cap > 0 ? heat / (heat + cap) : 1;
  e.thermal = clocks * thermal_share;
  e.facility = clocks - e.thermal;
  e.jitter = run_.jitter_excess;
  e.straggler = slowest_;
  e.data = run_.data_usual;
  e.replay = run_.spec.corruption.replayed;
  if (active < run_.spec.gpus) {
    const double share = static_cast<double>(active) / static_cast<double>(run_.spec.gpus);
    e.group = std::max(0.0, run_.group_factor(share) - 1);
  }
  return e;
}

void Engine::begin_segment() {
  Segment g;
  g.begin = g.end = now_;
  g.from = state_;
  g.work_end = g.kept = state_.work;
  const RunHour& h = hour();
  g.clock = h.thermal_clock * h.facility_clock;
  g.replacing = gpus_in(Replica::State::kReplacing);
  g.restarting = gpus_in(Replica::State::kRestarting);
  const int64_t up = run_.spec.gpus - g.replacing - g.restarting;
  g.active = std::clamp<int64_t>(std::llround(static_cast<double>(up) * h.powered), 0, up);
  g.curtailed = up - g.active;
  g.excess = excess(h, g.active);
  g.pace =
      (1 + g.excess.total()) * static_cast<double>(run_.spec.gpus) / static_cast<double>(g.active);
  // A smaller group may also need less for the same work: fewer ranks to reduce gradients over.
  if (g.active < run_.spec.gpus) {
    const double share = static_cast<double>(g.active) / static_cast<double>(run_.spec.gpus);
    g.pace *= std::min(1.0, run_.group_factor(share));
  }
  g.late = late_wait_;
  ++segment_generation_;
  if (std::isfinite(late_.next().work)) {
    const double ahead = std::max(0.0, late_.next().work - tried_);
    const Nanoseconds left = time_of_work(run_.schedule, g, state_.work + ahead);
    if (left < kTimeMax) late_at_ = now_ + left;
  }
  if (run_.target_work > 0) {
    const Nanoseconds left = time_of_work(run_.schedule, g, run_.target_work);
    if (left < kTimeMax) push(now_ + left, Kind::kTarget, 0, segment_generation_);
  }
  history_.segments().push_back(g);
}

void Engine::end_segment() {
  Segment& g = history_.segments().back();
  ++segment_generation_;
  const Nanoseconds elapsed = now_ - g.begin;
  state_ = state_at(run_.schedule, g, elapsed);
  tried_ += state_.work - g.from.work;
  late_at_ = kTimeMax;
  late_wait_ = late_wait_ && elapsed < g.from.stall + g.from.starve;
  g.end = now_;
  g.work_end = g.kept = state_.work;
  g.saves_end = state_.saves;
  const SaveTime saving = save_time(run_.schedule, g, state_);
  g.stalled = saving.stalled;
  g.starved = saving.starved;
  ASSERT(g.starved >= 0 && g.starved <= g.stalled && g.stalled <= elapsed);
  if (elapsed == 0) {
    history_.segments().pop_back();
    return;
  }
  for (size_t i = 0; i < replicas_.size(); ++i) {
    const Replica& r = replicas_[i];
    if (r.state == Replica::State::kUp || r.cause < 0) continue;
    chronicle_.by_cause[static_cast<size_t>(r.cause)] += GpuNanoseconds{elapsed} * replica_gpus(i);
  }
}

// Steps wait as they do for input that a save keeps back: a pause of this segment's.
void Engine::on_late() {
  end_segment();
  state_.starve += late_.next().wait;
  late_wait_ = true;
  late_.advance();
  begin_segment();
}

void Engine::change_pace() {
  if (phase_ != Phase::kStepping) return;
  slowest_ = slowest();
  const Segment& g = history_.segments().back();
  const RunHour& h = hour();
  const int64_t up = g.active + g.curtailed;
  const int64_t active =
      std::clamp<int64_t>(std::llround(static_cast<double>(up) * h.powered), 0, up);
  if (g.active == active && g.excess == excess(h, active)) return;
  end_segment();
  begin_segment();
}

double Engine::work_now() const {
  if (phase_ != Phase::kStepping) return state_.work;
  const Segment& g = history_.segments().back();
  return state_at(run_.schedule, g, now_ - g.begin).work;
}

void Engine::note_interruption(int cause) {
  ++chronicle_.interruptions[static_cast<size_t>(cause)];
  if (cause != static_cast<int>(run_.cause_maintenance)) chronicle_.interrupted_at.push_back(now_);
  if (options_.trace) note_moment("job", run_.cause_names[static_cast<size_t>(cause)], -1, 0);
}

void Engine::note_moment(std::string track, std::string name, int64_t machine, double value) {
  if (!options_.trace) return;
  chronicle_.moments.push_back(
      {to_seconds(now_), to_seconds(now_), std::move(track), std::move(name), machine, value});
}

}  // namespace assay
