// The life of one job, event by event.
//
// The job is always in one phase; a phase ends by its timer or by an event. Failures, shocks,
// repairs and the site's hours arrive in calendar time (arrivals.h); stepping itself has no events
// (see progress.h). With elastic recovery the job keeps stepping while replicas are away;
// engine_elastic.cc has that part.
#pragma once

#include <set>

#include "sim/account.h"
#include "sim/arrivals.h"

namespace assay {

class Engine {
 public:
  Engine(const PreparedRun&, uint64_t seed, const RunOptions&);
  RunResult run();

 private:
  // In the order in which they are handled at the same nanosecond.
  enum class Kind : uint8_t {
    kSite,      // what the site allows is known before anything happens in that hour
    kRepaired,  // a repaired machine can serve a failure of the same moment
    kSlowEnd,
    kArrival,
    kFound,    // a corruption is noticed
    kReplica,  // a replica has recovered
    kPhase,    // the phase's timer; after failures, so that a failure at its end still counts
    kMaintenance,
    kTarget,  // the last token
    kLate,    // a batch is late; of the step after the last token nobody asks
  };
  struct Event {
    Kind kind = Kind::kPhase;
    int32_t index = 0;
    uint32_t generation = 0;
  };
  enum class Phase {
    kStarting,
    kStepping,
    kStalled,  // elastic: everyone waits while a replica leaves or comes back
    kPaused,   // elastic: too few replicas
    kDetecting,
    kReplacing,
    kRestarting,
    kOutage,
    kSaving,  // before maintenance
    kMaintaining,
  };
  struct Machine {
    int32_t slot = -1;             // of the job; -1: spare or in repair
    Nanoseconds repaired_at = -1;  // -1: healthy
  };
  struct Slow {
    int32_t machine;
    double by;
    Nanoseconds since, until;
  };
  struct Corruption {
    double work;
    int32_t machine;
    double repair_luck;
    bool open = true;  // still in the job's state
  };
  struct Replica {
    enum class State { kUp, kReplacing, kRestarting } state = State::kUp;
    uint32_t generation = 0;
    int cause = kNoCause;
  };
  // What a failure does to the job.
  struct Blow {
    int cause;
    Extent extent;
    Nanoseconds detection;
    bool whole_job = false;           // also with elastic recovery
    std::vector<int32_t> slots = {};  // concerned, for elastic recovery
  };

  void begin();
  bool next(Event&);  // the next event, or false at the end of the period
  void dispatch(const Event&);
  void push(Nanoseconds time, Kind, int32_t index, uint32_t generation = 0);

  // Arrivals.
  void on_arrival(const Arrival&);
  void on_failure(const Arrival&);
  void on_shock(const Arrival&);
  void on_corruption(const Arrival&);
  void on_found(int32_t corruption);
  void on_slow(const Arrival&);
  void on_repaired(int32_t machine);
  void on_site();
  void on_maintenance();

  // Machines.
  bool vacate(int32_t machine);  // true when it had a slot
  void repair(int32_t machine, Nanoseconds duration);
  Nanoseconds repair_time(double u) const;
  bool fill(int32_t first_slot,
            int32_t slots);  // vacant slots of a range; true when all are filled
  void place(int32_t machine, int32_t slot);
  void evict_slow();
  double slowest() const;

  // Phases.
  void enter(Phase, Account, Nanoseconds duration);  // kTimeMax: until an event
  void leave();                                      // writes down what the phase was
  void on_phase_end();
  void interrupt(const Blow&);
  void outage(int cause, Nanoseconds until);
  bool running() const;  // it would step, if nothing stood in the way
  void stop(int cause);  // ends what the job did
  void begin_replacing();
  void begin_restart();
  void begin_stepping();
  void start_maintenance();
  void next_start_step();
  void finish(bool finished);

  // Stepping.
  void begin_segment();
  void end_segment();
  void on_late();
  void change_pace();  // ends and begins a segment when something that matters changed
  double work_now() const;
  const RunHour& hour() const;
  // Of a step of `active` accelerators.
  Excess excess(const RunHour&, int64_t active) const;

  // Elastic recovery.
  bool elastic() const { return replicas_.size() > 1; }
  // Replica r has the slots [first_slot(r), first_slot(r + 1)): sizes differ by one unit at most.
  int32_t first_slot(size_t replica) const;
  size_t replica_of(int32_t slot) const;
  int64_t replica_gpus(size_t replica) const;
  int64_t replicas_in(Replica::State) const;
  int64_t gpus_in(Replica::State) const;  // of such replicas
  bool complete(size_t replica) const;
  bool enough() const;
  void lose_replicas(const Blow&);
  void recover_replica(size_t replica);
  void on_replica(size_t replica, uint32_t generation);
  void stall(Account, Seconds duration);  // everyone; never ends one that goes on longer
  void resume_elastic();
  void note_moment(std::string track, std::string name, int64_t machine, double value);
  void note_interruption(int cause);

  const PreparedRun& run_;
  const uint64_t seed_;
  const RunOptions& options_;
  Nanoseconds now_ = 0;
  EventQueue<Event> queue_;
  std::vector<Arrival> arrivals_;  // by time, beside the queue: they are known from the start
  size_t next_arrival_ = 0;

  const std::vector<RunHour>* hours_ = nullptr;  // of the weather that this run meets
  std::vector<Machine> machines_;
  std::vector<int32_t> slots_;  // machine of each slot; -1: vacant
  std::set<int32_t> vacant_;    // slots without a machine
  std::set<int32_t> pool_;      // healthy spares
  std::vector<Slow> slow_;
  double slowest_ = 0;
  std::vector<Corruption> corruptions_;
  std::vector<Replica> replicas_;

  Phase phase_ = Phase::kStarting;
  Account phase_account_ = Account::kQueue;
  Nanoseconds phase_begin_ = 0;
  uint32_t phase_generation_ = 0;
  Nanoseconds stalled_until_ = 0;
  bool waiting_for_spares_ = false;
  int64_t replaced_ = 0;  // machines brought in since the last restart
  std::vector<std::pair<Account, Nanoseconds>> start_steps_;
  size_t start_step_ = 0;

  // The recovery in progress.
  Extent extent_ = Extent::kProcess;
  int cause_ = kNoCause;
  double work_most_ = 0;  // a corruption: saves beyond are spoiled
  bool corrupted_ = false;
  Nanoseconds stopped_at_ = 0;  // when the job last stepped
  Nanoseconds outage_until_ = 0;
  bool maintenance_due_ = false;
  bool planned_ = false;  // the stop was maintenance

  ProgressState state_;
  History history_;
  uint32_t segment_generation_ = 0;
  LateBatches late_;
  double tried_ = 0;                // work before this segment, with what was lost
  Nanoseconds late_at_ = kTimeMax;  // the next late batch, if nothing else changes
  bool late_wait_ = false;          // the wait in progress is for one
  Nanoseconds running_since_ = 0;
  Chronicle chronicle_;
};

}  // namespace assay
