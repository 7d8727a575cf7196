// Where the accelerator time of one run went. The engine writes down what the job did, stretch by
// stretch; `settle` makes the ledger, the series and the causes of it.
#pragma once

#include "sim/prepare.h"

namespace assay {

// Exact: 131,072 accelerators for a year are 4e21 ns.
__extension__ typedef __int128 GpuNanoseconds;

constexpr int kNoCause = -1;

// A stretch in which some accelerators of the job did one thing other than stepping.
struct Slice {
  Nanoseconds begin = 0, end = 0;
  Account account = Account::kRestart;
  int64_t gpus = 0;
  int cause = kNoCause;
};

// Steps that were taken and do not count.
struct LostWork {
  size_t segment = 0;
  double from = 0, upto = 0;  // work
  Account account = Account::kLostWork;
  int cause = kNoCause;
};

struct Chronicle {
  std::vector<Slice> slices;
  std::vector<LostWork> lost;
  std::vector<GpuNanoseconds> by_cause;  // beside slices and lost work: replicas that were away
  std::vector<int64_t> interruptions;    // by cause
  std::vector<Nanoseconds> interrupted_at;
  std::vector<RunEvent> moments;  // only when traced
  Nanoseconds end = 0;
  bool finished = false;
  double work = 0;
  int64_t spares_empty = 0;
  Nanoseconds longest_run = 0;
};

// Asserts that the leaves sum to what was paid.
RunResult settle(const PreparedRun&, const Chronicle&, const std::vector<Segment>&,
                 const RunOptions&);

}  // namespace assay
