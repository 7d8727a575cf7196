// What would this job's step take if nobody straggled? A pipelined job is replayed from its
// operation trace as a graph of dependencies, with the measured durations and with ideal ones.
//
// Method: what-if analysis as in "Understanding Stragglers in Large Model Training Using What-if
// Analysis" (OSDI'25, arXiv 2505.05713), derived from the paper's definitions and its published
// results. docs/models/what-if.md has the equations and the measured error.
//
//   time of its own   of a computation: its duration. Of a transfer or a collective: what is left
//                     of it after the last member of its group has begun, so that waiting for
//                     others is not counted as the operation's own.
//   ideal             of a type of computation: the mean over all ranks, steps and microbatches
//                     (the work is the same, evenly spread); of a type of communication: the median
//                     (a slow transfer is a disturbance, not work that somebody must do).
//   original          the replay with every operation's own time.
//   slowdown          original / ideal, both averaged over steps.
//
// All times are integer nanoseconds until they are averaged. Cost: O(n log n) to build and O(n) a
// scenario; the number of scenarios is bounded (kWhatIfWorkers), whatever the number of ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/units.h"
#include "ingest/straggler_csv.h"

namespace assay {

// One stage, data-parallel rank, worker or type of operation.
struct WhatIfSlice {
  int32_t id = 0;       // stage, dp rank, rank; of a type: index into WhatIf::kinds
  Seconds alone;        // only this slice keeps its own times, the others are ideal
  Seconds without;      // only this slice is ideal
  double slowdown = 1;  // alone / ideal
  double explains = 0;  // (original - without) / (original - ideal): 1 means all of it
};

struct WhatIfStep {
  int64_t step = 0;
  Seconds measured, original, ideal;
};

// Where the slowdown comes from, as a chain of replays that evens out one thing more each time; so
// the three sum exactly to original - ideal.
struct WhatIfSplit {
  Seconds variation;  // a rank's own operations differ from each other: uneven microbatches, jitter
  Seconds ranks;      // ranks of the same stage differ from each other: slow machines
  Seconds stages;     // stages differ from each other: uneven partition
};

struct WhatIf {
  Seconds measured;  // mean over steps of last end - first start
  Seconds original, ideal;
  double slowdown = 1;
  WhatIfSplit split;
  std::vector<std::string> kinds;  // types of operations; the two ends of a transfer are one kind
  std::vector<Seconds> ideal_of;   // by kind
  std::vector<WhatIfStep> steps;
  std::vector<WhatIfSlice> stages, dp_ranks, workers, types;  // the weightiest first
  // The slowest 3 % of the workers (at least one) together.
  std::vector<int32_t> worst;
  WhatIfSlice worst_together;

  // Forward and backward of the same microbatch are slow together: its correlation over all
  // microbatches, each stage against its own mean. Near one: the data is uneven (long sequences).
  double forward_backward_correlation = 0;
  int stage_count = 0, rank_count = 0;
  int64_t microbatches = 0;       // of one rank in one step
  size_t unmatched = 0;           // transfers whose other end is not in the file
  size_t unreplayable_steps = 0;  // their order contradicts itself
  bool usable = false;            // at least one step was replayed
};

// Stages, dp ranks, workers and types simulated one by one: the slowest of each. Fewer for a huge
// job, so that all scenarios together stay within a few seconds.
constexpr size_t kWhatIfWorkers = 128;

WhatIf what_if(const OperationTrace&);

// One step as a graph, ready to be replayed; public so that a naive twin can check it.
//
// Operations are numbered such that a group (the ends of a transfer, the members of a collective,
// or one computation) is contiguous and groups come in an order of dependency.
struct Replay {
  int64_t step = 0;
  int64_t measured_ns = 0;
  std::vector<uint32_t> operation;     // index into OperationTrace::operations
  std::vector<int64_t> own_ns;         // time of its own
  std::vector<int64_t> not_before_ns;  // for ends whose peer is missing: when it ended
  std::vector<uint32_t> group_first;   // of each group its first operation; one more at the end
  std::vector<uint32_t> before_first;  // of each group its first entry in `before`; one more
  std::vector<uint32_t> before;        // operations that must have ended
  size_t unmatched = 0;
  bool contradictory = false;
};

// One replay a step, in order of steps.
std::vector<Replay> replays(const OperationTrace&);

}  // namespace assay
