// The same training on more and more accelerators: what doubling buys, and where it stops paying.
//
// The batch stays as it is (strong scaling): a bigger cluster has less to do per accelerator, and
// the parts that do not shrink show. At each size either the best plan is searched, or (`fix_plan`)
// one plan is kept and only data parallelism grows; then the best plan at each size stands beside
// it, and the difference at the last size is attributed to the plan's settings: the wrong choice by
// name.
//
// Break-even: the first doubling that gives less than 1.5x the tokens per second, so that a token
// costs more than 4/3 of what it cost before.
#pragma once

#include "plan/compare.h"

namespace assay {

constexpr double kDoublingPays = 1.5;

struct ScalePoint {
  int64_t accelerators = 0;
  bool fits = false;
  bool possible = false;  // some plan obeys the rules of the software; it may still not fit
  std::string why_not;    // where it does not: in words
  Plan plan;
  Prediction prediction;
  double speedup = 0;     // over the first size that fits
  double efficiency = 0;  // speed-up over growth in accelerators
  double marginal = 0;    // tokens per second over the previous size's; zero: no previous
  Account binds = Account::kMatmul;  // the largest account beside useful work
  double binds_share = 0;            // of the step
  Account grew = Account::kMatmul;   // the account whose share grew most since the first size
  double growth = 0;                 // that growth, as a share of the step
  double usd_per_mtoken = 0;         // zero: no price known
};

struct ScaleOptions {
  std::vector<int64_t> sizes;
  bool fix_plan = false;
  std::function<void(double)> progress;
};

struct ScaleResult {
  std::vector<ScalePoint> best;       // the best plan at each size
  std::vector<ScalePoint> fixed;      // with fix_plan: one plan at each size
  std::optional<int64_t> break_even;  // of `fixed` where there is one, else of `best`
  bool beyond_cluster = false;        // some size is more than the cluster has
  bool whole_plan = false;            // nothing was searched: `best` holds the stated plan
  Attribution wrong_choice;           // with fix_plan: fixed -> best at the last size
};

// `base` and `stated` as in search(). With fix_plan and no stated plan, the best plan of the first
// size is the one that is kept.
ScaleResult scale(const Setting&, const Plan& base, const std::set<std::string>& stated,
                  const ScaleOptions&);

// The same on so many accelerators; the cluster grows where it has fewer.
Setting sized(const Setting&, int64_t accelerators);

// Null where none fits.
const ScalePoint* first_fitting(const std::vector<ScalePoint>&);

// `16..8192` (doubling, the end included), `16,64,128` or `64`; empty when it is none of them.
std::vector<int64_t> parse_sizes(const std::string& text);

// Where nobody says: 16..8192, or the like in whole nodes where a node has six.
std::string usual_sizes(const Cluster&);

}  // namespace assay
