// What all runs of one spec share: rates in the simulator's units, the schedule of saves, constant
// slow-downs, restart times. Built once, read by every thread.
#pragma once

#include <map>
#include <optional>

#include "base/random.h"
#include "sim/late_batches.h"
#include "sim/progress.h"

namespace assay {

// How machines' rates scatter: a gamma with mean 1, read at a machine's quality in (0, 1).
struct Frailty {
  explicit Frailty(double shape);
  double factor(double quality) const;

  // The same from above, by cells of the quality: a look-up instead of two functions.
  static constexpr size_t kCells = 1024;
  static uint16_t cell(double quality) { return static_cast<uint16_t>(quality * kCells); }
  std::vector<double> most;

 private:
  GammaTable table_;
};

// One source of failures of single machines, or (`whole_job`) of the job as a program.
struct PreparedProcess {
  FailureProcess spec;
  uint64_t id = 0;
  bool whole_job = false;
  double per_second = 0;             // of one machine, or of the job
  const Frailty* frailty = nullptr;  // null: all alike
};

struct PreparedRun {
  explicit PreparedRun(RunSpec);
  PreparedRun(const PreparedRun&) = delete;

  RunSpec spec;
  int64_t nodes = 1;     // of the job
  int64_t machines = 1;  // with spares
  int64_t node_gpus = 8;
  Nanoseconds horizon = 0;
  double target_work = 0;  // zero: none

  std::map<double, Frailty> frailties;  // by shape
  std::vector<PreparedProcess> processes;
  // Causes by index: processes, then shocks, then these.
  size_t cause_corruption = 0, cause_maintenance = 0, cause_site = 0;
  std::vector<std::string> cause_names;

  SaveSchedule schedule;
  std::vector<Seconds> intervals;  // work between saves, by tier
  Seconds mtbf;                    // infinite: nothing fails
  double jitter_excess = 0;
  double data_excess = 0;  // all of it; of that, in every step:
  double data_usual = 0;
  std::optional<LateFetches> late;  // always there; the rest of it
  double repair_sigma = 0;

  // Failures per second of the job that reach at most an extent, and those of them after which
  // work is lost.
  double rate_upto(Extent) const;
  double rollbacks_upto(Extent) const;
  double corruption_rate() const;

  // Processes, initialisation and the restore of a tier (-1: none), for a group of accelerators.
  Seconds restart_time(int64_t gpus, int tier, bool cold) const;
  Seconds image_pull(double nodes) const;
  // Step time over nominal at a clock.
  double clock_factor(double clock) const;
  // Accelerator time of the same work over nominal, where this share of the job steps.
  double group_factor(double share) const;

  // What the closed forms need to know of a tier: the failures that it and no more frequent one
  // survives. None where there are no such failures.
  std::optional<CheckpointCosts> tier_costs(size_t index) const;

 private:
  void prepare_failures();
  void prepare_schedule();
  CheckpointTier tier_with_interval(size_t index, Seconds before) const;
};

}  // namespace assay
