// A cluster's week from Slurm's accounting alone: where the GPU-hours of a period went, the largest
// losses, and the nodes on which jobs die again and again.
//
// The ledger is exhaustive: its accounts sum to capacity times period. An allocation belongs to the
// account of how it ended, from its start to its end. What nobody held is split by why:
//   drained      the node was drained or down
//   fragmented   free GPUs of partly used nodes that no job in the queue could use, by its shape
//   waiting      other free GPUs while jobs were queued (limits, priorities, larger jobs)
//   idle         nobody wanted them
// Being allocated is not being at work: telemetry, not accounting, tells how well GPUs were used.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/finding.h"
#include "ingest/slurm.h"

namespace assay {

enum class WeekAccount {
  kCompleted,
  kRunning,  // still running at the end, or its end is not known
  kFailed,   // also out of memory
  kCancelled,
  kTimeout,
  kNodeFail,
  kRequeued,  // also preempted
  kDrained,
  kFragmented,
  kWaiting,
  kIdle,
};
constexpr size_t kWeekAccounts = static_cast<size_t>(WeekAccount::kIdle) + 1;
std::string_view week_account_name(WeekAccount);  // `node-fail`

struct WeekPeriod {
  int64_t from_s = 0, to_s = 0;  // seconds since 1970, as the accounting prints them
};

// One of the largest losses: allocations that came to nothing, by user and name, or GPUs unused.
struct WeekLoss {
  WeekAccount account = WeekAccount::kIdle;
  std::string what;  // `ann: pretrain-70b (3 jobs)`, `node n17: bad cable`
  double gpu_seconds = 0;
};

// A node on which more jobs died than its jobs' own rates elsewhere let expect.
struct SickNode {
  std::string name;
  size_t jobs = 0, died = 0;
  double expected = 0;
  double p = 1;            // chance of as many deaths, before the correction for many nodes
  double gpu_seconds = 0;  // of the allocations that died there
  std::vector<std::string>
      companions;  // nodes that were in exactly the same jobs: one of them it is
};

struct WeekReport {
  WeekPeriod period;
  bool period_assumed = false;  // from the first start to the last end seen
  double capacity_gpus = 0;
  bool capacity_assumed = false;  // the most that were ever in use at once
  std::array<double, kWeekAccounts> gpu_seconds{};
  double queued_gpu_seconds = 0;  // GPUs asked for times waiting: demand, not part of the ledger
  std::optional<double> queue_wait_median_s;
  double shapes_known = 0;       // share of the period in which fragmentation could be computed
  size_t jobs = 0;               // with GPUs, in the period
  std::vector<WeekLoss> losses;  // at most ten, the largest first
  std::vector<SickNode> sick;    // the surest first
  Analysis analysis;

  double operator[](WeekAccount a) const { return gpu_seconds[static_cast<size_t>(a)]; }
  double paid() const;  // capacity times period
};

WeekReport diagnose_week(const SlurmReading&, std::optional<WeekPeriod> = {});

// The upper tail of a Poisson distribution: the chance of `count` or more where `mean` is expected.
double poisson_tail(size_t count, double mean);

}  // namespace assay
