// What a data loader's tail costs ranks in lock-step.
//
// Rank r's fetch for step n is asked for when step n - D was consumed and takes L; all ranks wait
// for the slowest: c_n = max(c_{n-1} + T, c_{n-D} + max_r L). The maximum of N independent fetches
// is one draw from the N-th power of the distribution, so the cost does not grow with N. Hedging
// sends the request again after a quantile of the latency, up to `hedges` times; the first answer
// wins. Stall times for a log-normal latency agree with an independent simulation (test).
//
// Waits of fetches that come many times an hour are a share of every step; those of rarer ones
// stand where they are (late_batches.h).
#pragma once

#include "sim/run.h"

namespace assay {

// Latency of the slowest of many ranks.
class SlowestFetch {
 public:
  SlowestFetch(const DataPath&, double ranks);
  Seconds quantile(double u) const;
  // What is exceeded so many times a step: the quantile e^-rate. REQUIRES: rate > 0.
  Seconds exceeded_at(double rate) const;

 private:
  double ranks_;
  std::vector<double> log_time_;        // ascending
  std::vector<double> minus_log_tail_;  // of one rank: -ln P(L > t), ascending
};

// Mean step time over `step`, minus 1, by what is waited for: fetches that are exceeded less than
// `rare_rate` times a step, and all others. Always the same luck, so that two settings compare.
struct DataStall {
  double rare = 0, usual = 0;
  double total() const { return rare + usual; }
};
DataStall data_stall(const DataPath&, double ranks, Seconds step, double rare_rate);

// How long steps wait for each save of a tier that takes the store's bandwidth from the input while
// it is persisted: storage then delivers s = 1 / (1 + starves) batches a step. What was fetched
// ahead, B batches, lasts for B T / (1 - s); only then the steps wait, for 1 - s of the time that
// is left. Between saves the rest of the bandwidth, 1 / demand - 1 batches a step, fills it again,
// up to the prefetch depth. Nothing is ahead where the input takes all of the store anyway.
// `interval` is of work. Agrees with a simulation of every fetch (test).
struct Starvation {
  Seconds wait;  // in all, by steps of the nominal pace
  Seconds
      after;  // work between the save's stall and the wait: what was fetched ahead lasts so long
};
Starvation save_starvation(const DataPath&, const CheckpointTier&, Seconds interval, Seconds step);

}  // namespace assay
