// Elastic recovery: a replica that loses a node leaves, the others go on, and it comes back with a
// copy of a healthy replica's state. Nothing is rolled back as long as one replica lives. What the
// others make of their time was predicted for every size of the group (StepModel::by_group).
#include <algorithm>

#include "sim/engine.h"

namespace assay {

int32_t Engine::first_slot(size_t replica) const {
  // Whole units of nodes; a rest that is none belongs to the last replica.
  const size_t unit = static_cast<size_t>(run_.spec.recovery.replica_nodes);
  if (replica == replicas_.size()) return static_cast<int32_t>(slots_.size());
  return static_cast<int32_t>(replica * (slots_.size() / unit) / replicas_.size() * unit);
}

size_t Engine::replica_of(int32_t slot) const {
  // The largest r with r U / R <= unit of the slot, where U units are shared by R replicas.
  const size_t unit = static_cast<size_t>(run_.spec.recovery.replica_nodes);
  const size_t units = slots_.size() / unit;
  const size_t at = std::min(static_cast<size_t>(slot) / unit, units - 1);
  return ((at + 1) * replicas_.size() - 1) / units;
}

int64_t Engine::replica_gpus(size_t replica) const {
  return (first_slot(replica + 1) - first_slot(replica)) * run_.node_gpus;
}

int64_t Engine::gpus_in(Replica::State state) const {
  int64_t gpus = 0;
  for (size_t r = 0; r < replicas_.size(); ++r) {
    if (replicas_[r].state == state) gpus += replica_gpus(r);
  }
  return gpus;
}

int64_t Engine::replicas_in(Replica::State state) const {
  return std::count_if(replicas_.begin(), replicas_.end(),
                       [&](const Replica& r) { return r.state == state; });
}

bool Engine::complete(size_t replica) const {
  const auto vacant = vacant_.lower_bound(first_slot(replica));
  return vacant == vacant_.end() || *vacant >= first_slot(replica + 1);
}

// Whether the job can start with the nodes it has.
bool Engine::enough() const {
  if (vacant_.empty() || !elastic()) return vacant_.empty();
  int64_t whole = 0;
  for (size_t r = 0; r < replicas_.size(); ++r) whole += complete(r) ? 1 : 0;
  return whole >= std::max<int64_t>(1, run_.spec.recovery.replicas_least);
}

void Engine::lose_replicas(const Blow& blow) {
  std::vector<size_t> hit;
  for (const int32_t slot : blow.slots) {
    const size_t r = replica_of(slot);
    if (hit.empty() || hit.back() != r) hit.push_back(r);
  }
  std::sort(hit.begin(), hit.end());
  hit.erase(std::unique(hit.begin(), hit.end()), hit.end());
  const int64_t up_hit = std::count_if(
      hit.begin(), hit.end(), [&](size_t r) { return replicas_[r].state == Replica::State::kUp; });
  if (up_hit == replicas_in(Replica::State::kUp)) {  // nobody is left who knows the state
    Blow all = blow;
    all.whole_job = true;
    return interrupt(all);
  }
  note_interruption(blow.cause);
  if (up_hit == 0) {  // a replica that was away starts over
    for (const size_t r : hit) {
      replicas_[r].cause = blow.cause;
      recover_replica(r);
    }
    return change_pace();
  }
  if (phase_ == Phase::kStepping) {
    end_segment();
    phase_begin_ = now_;
    chronicle_.longest_run = std::max(chronicle_.longest_run, now_ - running_since_);
  } else {
    leave();
    phase_begin_ = now_;
  }
  phase_ = Phase::kStalled;
  cause_ = blow.cause;
  for (const size_t r : hit) {
    replicas_[r].cause = blow.cause;
    recover_replica(r);
  }
  stall(Account::kDetection, run_.spec.recovery.leave_stall);
}

// Fills the replica's vacant nodes if it can, and sets it on its way back. Its way begins when the
// stall that it caused is over.
void Engine::recover_replica(size_t index) {
  Replica& r = replicas_[index];
  const Replica::State before = r.state;
  const size_t vacant_before = vacant_.size();
  ++r.generation;
  const int32_t first = first_slot(index);
  const bool whole = fill(first, first_slot(index + 1) - first);
  const Replica::State after = whole ? Replica::State::kRestarting : Replica::State::kReplacing;
  if (after != before) {  // what it did until now is written down as that
    const bool stepping = phase_ == Phase::kStepping;
    if (stepping) end_segment();
    leave();
    phase_begin_ = now_;
    r.state = after;
    if (stepping) begin_segment();
  }
  const bool waited = before == Replica::State::kReplacing;
  if (!whole) {
    if (!waited) ++chronicle_.spares_empty;
    return;
  }
  Seconds away = run_.restart_time(replica_gpus(index), -1, false) + run_.spec.recovery.heal;
  if (waited || vacant_before != vacant_.size()) away += run_.spec.recovery.swap;
  if (before == Replica::State::kUp) away += run_.spec.recovery.leave_stall;
  push(now_ + to_ns(away), Kind::kReplica, static_cast<int32_t>(index), r.generation);
}

void Engine::on_replica(size_t index, uint32_t generation) {
  Replica& r = replicas_[index];
  if (r.generation != generation || r.state != Replica::State::kRestarting || !running()) return;
  if (phase_ == Phase::kStepping) {
    end_segment();
  } else {
    leave();
  }
  phase_begin_ = now_;
  r.state = Replica::State::kUp;
  phase_ = Phase::kStalled;
  cause_ = r.cause;
  stall(Account::kRestart, run_.spec.recovery.rejoin_stall);
}

void Engine::stall(Account account, Seconds duration) {
  stalled_until_ = std::max(stalled_until_, now_ + to_ns(duration));
  enter(Phase::kStalled, account, stalled_until_ - now_);
}

// After a stall: go on, or wait for more replicas.
void Engine::resume_elastic() {
  if (replicas_in(Replica::State::kUp) < run_.spec.recovery.replicas_least) {
    return enter(Phase::kPaused, Account::kReplacement, kTimeMax);
  }
  begin_stepping();
}

}  // namespace assay
