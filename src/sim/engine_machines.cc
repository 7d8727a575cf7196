// What strikes, and the machines it strikes: failures, shocks, corruption, slowness, repair,
// spares.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/engine.h"

namespace assay {

void Engine::on_arrival(const Arrival& a) {
  switch (a.kind) {
    case ArrivalKind::kFailure:
      note_moment("machines", run_.processes[a.cause].spec.name, a.entity, 0);
      return on_failure(a);
    case ArrivalKind::kShock:
      note_moment("machines", run_.spec.shocks[a.cause].name, a.entity, 0);
      return on_shock(a);
    case ArrivalKind::kCorruption:
      note_moment("machines", "silent corruption", a.entity, 0);
      return on_corruption(a);
    case ArrivalKind::kFailSlow:
      note_moment("machines", "fail-slow", a.entity, 0);
      return on_slow(a);
    case ArrivalKind::kSlowLink:
      note_moment("machines", "slow link", a.entity, 0);
      return on_slow(a);
  }
}

void Engine::on_failure(const Arrival& a) {
  const PreparedProcess& p = run_.processes[a.cause];
  Stream luck = attributes(seed_, p.id, a);
  const double detection =
      lognormal_quantile(luck.uniform(), p.spec.detection.v, p.spec.detection_sigma);
  const bool replace = luck.uniform() < p.spec.replaced;
  const double repair_luck = luck.uniform();
  const double where = luck.uniform();
  const bool whole = luck.uniform() < run_.spec.recovery.whole_job;
  Blow blow{static_cast<int>(a.cause), p.spec.extent, to_ns(Seconds(detection)), whole};
  if (p.whole_job) {
    blow.slots.push_back(static_cast<int32_t>(where * static_cast<double>(slots_.size())));
    return interrupt(blow);
  }
  const Machine& m = machines_[static_cast<size_t>(a.entity)];
  if (m.repaired_at >= 0) return;
  blow.slots.push_back(m.slot);
  if (m.slot < 0) {
    if (replace) repair(a.entity, repair_time(repair_luck));
    return;
  }
  if (replace) {
    vacate(a.entity);
    repair(a.entity, repair_time(repair_luck));
  }
  interrupt(blow);
}

void Engine::on_shock(const Arrival& a) {
  const ShockProcess& s = run_.spec.shocks[a.cause];
  const int cause = static_cast<int>(run_.processes.size() + a.cause);
  Stream luck = attributes(seed_, cause_id(s.name), a);
  // A log-normal with that mean.
  const double median = s.duration_mean.v * std::exp(-0.5 * s.duration_sigma * s.duration_sigma);
  const Nanoseconds duration =
      to_ns(Seconds(lognormal_quantile(luck.uniform(), median, s.duration_sigma)));
  if (s.nodes == 0) return outage(cause, now_ + duration);
  Blow blow{cause, s.takes_nodes ? Extent::kDomain : Extent::kProcess, to_ns(s.detection)};
  const int64_t first = a.entity * s.nodes;
  const int64_t end = std::min(first + s.nodes, run_.machines);
  for (int32_t m = static_cast<int32_t>(first); m < static_cast<int32_t>(end); ++m) {
    const int32_t slot = machines_[static_cast<size_t>(m)].slot;
    if (slot >= 0) blow.slots.push_back(slot);
    if (!s.takes_nodes) {
      slow_.push_back({m, s.slow_by, now_, now_ + duration});
      continue;
    }
    vacate(m);
    repair(m, duration);
  }
  if (!s.takes_nodes) {
    push(now_ + duration, Kind::kSlowEnd, static_cast<int32_t>(first));
    change_pace();
  }
  if (!blow.slots.empty()) interrupt(blow);
}

void Engine::on_corruption(const Arrival& a) {
  const bool stepping = phase_ == Phase::kStepping;
  if (!stepping || machines_[static_cast<size_t>(a.entity)].slot < 0) return;
  Stream luck = attributes(seed_, cause_id("silent corruption"), a);
  const SilentCorruption& c = run_.spec.corruption;
  const Nanoseconds lag =
      to_ns(Seconds(lognormal_quantile(luck.uniform(), c.detection_median.v, c.detection_sigma)));
  corruptions_.push_back({work_now(), a.entity, luck.uniform(), true});
  push(now_ + lag, Kind::kFound, static_cast<int32_t>(corruptions_.size()) - 1);
}

void Engine::on_found(int32_t index) {
  const Corruption& c = corruptions_[static_cast<size_t>(index)];
  if (!c.open) return;
  const Machine& m = machines_[static_cast<size_t>(c.machine)];
  if (m.repaired_at < 0) {
    vacate(c.machine);
    repair(c.machine, repair_time(c.repair_luck));
  }
  interrupt({static_cast<int>(run_.cause_corruption), Extent::kProcess, 0, true});
  corrupted_ = true;
  work_most_ = std::min(work_most_, c.work);
}

void Engine::on_slow(const Arrival& a) {
  const Stragglers& s = run_.spec.stragglers;
  const bool link = a.kind == ArrivalKind::kSlowLink;
  Stream luck = attributes(seed_, cause_id(link ? "slow link" : "fail-slow"), a);
  const double span = luck.uniform(), size = luck.uniform();
  const double duration = link
                              ? exponential_quantile(span, s.slow_link_mean.v)
                              : log_uniform_quantile(span, s.fail_slow_least.v, s.fail_slow_most.v);
  const double by = link ? s.slow_link_by : exponential_quantile(size, s.fail_slow_by);
  const Nanoseconds until = now_ + to_ns(Seconds(duration));
  slow_.push_back({a.entity, by, now_, until});
  push(until, Kind::kSlowEnd, a.entity);
  change_pace();
}

double Engine::slowest() const {
  double most = 0;
  for (const Slow& s : slow_) {
    if (s.by > most && machines_[static_cast<size_t>(s.machine)].slot >= 0) most = s.by;
  }
  return most;
}

void Engine::evict_slow() {
  const Nanoseconds after = to_ns(run_.spec.stragglers.evicted_after);
  if (after <= 0) return;
  for (const Slow& s : slow_) {
    if (now_ - s.since < after || s.until <= now_) continue;
    if (pool_.size() <= vacant_.size()) return;  // none to spare
    if (!vacate(s.machine)) continue;
    Stream luck(seed_, cause_id("eviction"), static_cast<uint64_t>(s.machine));
    repair(s.machine, repair_time(luck.uniform()));
  }
  // What was repaired is slow no more.
  std::erase_if(slow_, [&](const Slow& s) {
    return s.until == kTimeMax && machines_[static_cast<size_t>(s.machine)].repaired_at >= 0;
  });
}

// --- machines ---------------------------------------------------------------------------------

void Engine::place(int32_t machine, int32_t slot) {
  machines_[static_cast<size_t>(machine)].slot = slot;
  slots_[static_cast<size_t>(slot)] = machine;
}

bool Engine::vacate(int32_t machine) {
  Machine& m = machines_[static_cast<size_t>(machine)];
  if (m.slot < 0) return false;
  slots_[static_cast<size_t>(m.slot)] = -1;
  vacant_.insert(m.slot);
  m.slot = -1;
  return true;
}

Nanoseconds Engine::repair_time(double u) const {
  return to_ns(Seconds(lognormal_quantile(u, run_.spec.repair.median.v, run_.repair_sigma)));
}

void Engine::repair(int32_t machine, Nanoseconds duration) {
  Machine& m = machines_[static_cast<size_t>(machine)];
  const Nanoseconds until = now_ + duration;
  if (m.repaired_at >= until) return;  // it will be away longer than that
  pool_.erase(machine);
  m.repaired_at = until;
  push(until, Kind::kRepaired, machine);
}

void Engine::on_repaired(int32_t machine) {
  Machine& m = machines_[static_cast<size_t>(machine)];
  if (m.repaired_at != now_) return;
  m.repaired_at = -1;
  pool_.insert(machine);
  note_moment("spares", "repaired", machine, static_cast<double>(pool_.size()));
  if (phase_ == Phase::kReplacing && waiting_for_spares_) {
    fill(0, static_cast<int32_t>(slots_.size()));
    waiting_for_spares_ = !enough();
    if (!waiting_for_spares_) {
      enter(Phase::kReplacing, Account::kReplacement, to_ns(run_.spec.recovery.swap));
    }
    return;
  }
  if (!elastic() || !running()) return;
  for (size_t r = 0; r < replicas_.size() && !pool_.empty(); ++r) {
    if (replicas_[r].state == Replica::State::kReplacing) recover_replica(r);
  }
}

bool Engine::fill(int32_t first_slot, int32_t slots) {
  for (auto s = vacant_.lower_bound(first_slot); s != vacant_.end() && *s < first_slot + slots;) {
    if (pool_.empty()) return false;
    place(*pool_.begin(), *s);
    pool_.erase(pool_.begin());
    s = vacant_.erase(s);
    ++replaced_;
  }
  return true;
}

void Engine::on_site() {
  const std::vector<RunHour>& hours = *hours_;
  const Nanoseconds length = std::max<Nanoseconds>(1, to_ns(run_.spec.site.step));
  const Nanoseconds index = now_ / length;
  const RunHour& h = hour();
  const auto at = [&](Nanoseconds i) -> const RunHour& {
    return hours[static_cast<size_t>(i) % hours.size()];
  };
  const auto same = [&](const RunHour& o) {
    return o.thermal_clock == h.thermal_clock && o.facility_clock == h.facility_clock &&
           o.powered == h.powered && o.outage == h.outage;
  };
  // The next hour that differs; the whole series alike needs no further event.
  const Nanoseconds all = static_cast<Nanoseconds>(hours.size());
  Nanoseconds next = index + 1;
  while (next <= index + all && same(at(next))) ++next;
  if (next <= index + all) push(next * length, Kind::kSite, 0);
  if (h.outage) {
    const Nanoseconds end = next <= index + all ? next * length : run_.horizon;
    return outage(static_cast<int>(run_.cause_site), end);
  }
  change_pace();
}

}  // namespace assay
