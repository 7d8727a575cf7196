// Many runs of one spec, and what a change of the spec is worth when both meet the same luck.
//
// Run k uses the seed mixed from (seed, k); results are put together in the order of k, so they are
// the same bytes for any number of threads. A cancelled call returns the runs that were complete.
#pragma once

#include <atomic>
#include <functional>

#include "sim/run.h"

namespace assay {

struct Band {
  double p5 = 0, p50 = 0, p95 = 0, mean = 0;
};

struct ManyOptions {
  int64_t runs = 100;
  uint64_t seed = 1;
  int threads = 0;                             // zero: all cores
  const std::atomic<bool>* cancel = nullptr;   // set from anywhere, also from a signal handler
  std::function<void(int64_t done)> progress;  // one thread at a time, in no promised order
};

struct CauseBand {
  std::string name;
  Band interruptions;
  Band lost;  // accelerator-seconds
};

struct SeriesBand {
  Band goodput, busy, clock;
};

struct ManyResult {
  int64_t requested = 0, done = 0;
  bool partial() const { return done < requested; }
  // By account. Percentiles are taken account by account and need not sum to anything; the means
  // sum to the mean of `paid`.
  std::array<Band, kAccounts> ledger;
  Ledger mean;  // accelerator-seconds
  Band paid, period, goodput, useful_share, tokens, interruptions;
  Band spares_empty, longest_run;   // times; seconds
  double finished = 0;              // share of runs that reached the token target
  std::vector<double> finished_at;  // when they did, seconds, ascending
  // Share of runs that were not done by then.
  double later_than(Seconds) const;
  std::vector<CauseBand> causes;
  // By day (longer runs: in 400 parts), as far as the shortest run goes.
  std::vector<SeriesBand> series;
  Seconds bucket{kSecondsPerDay};  // of the series
};

ManyResult simulate_many(const RunSpec&, const ManyOptions&);

// The same spec with one thing changed.
struct Lever {
  std::string name;                   // `spares`
  std::string change;                 // `16 -> 32 nodes`
  std::vector<std::string> settings;  // of the description that say so: `run.spares=32`
  RunSpec spec;
};

struct LeverResult {
  std::string name, change;
  std::vector<std::string> settings;
  int64_t pairs = 0;
  Band useful_share;  // paired difference, lever minus base: of what was paid, spares included
  Band goodput;       // paired difference
  Band period;        // paired difference, seconds
};

// In the order of `levers`; each with the seeds of `options`.
std::vector<LeverResult> measure_levers(const RunSpec& base, const std::vector<Lever>& levers,
                                        const ManyOptions& options);

}  // namespace assay
