// The best plan by trying them all.
//
// Every plan of the space (space.h) is either predicted or known not to fit: memory grows with the
// micro-batch and with less recompute, so one misfit settles all that need more. Nothing is
// sampled, nothing is random, no memory is taken per plan.
//
// Ranking is cautious, because a search finds the place where a model is most wrong: a plan counts
// half-way from its median to the slow end of its 90 % range, and a plan outside what was ever
// measured, or that leaves no more memory than predictions of it miss by, counts at the slow end
// itself. Of a promise above the best share of the peak that anybody measured half is believed.
// What stretches only the slow end (experts that may wait for the host) hits all plans of a model
// alike and does not count. Equal plans: the first in the order of the space, which is the one with
// smaller degrees.
#pragma once

#include <array>
#include <functional>
#include <optional>

#include "plan/space.h"

namespace assay {

struct Candidate {
  Plan plan;
  Prediction prediction;
};

// The value plans are ranked by; smaller is better.
Seconds cautious(const Prediction&);

// A plan that does not fit, with what it needs.
struct Miss {
  Plan plan;
  MemoryUse memory;
  int64_t dp = 1;
  Bytes over() const { return memory.reserved - memory.capacity; }
};

struct SearchOptions {
  size_t keep = 10;
  std::function<void(double)> progress;  // fraction done, now and then; may be empty
};

struct SearchResult {
  std::vector<Candidate> top;         // best first, at most `keep`
  std::vector<Candidate> neighbours;  // the best of each (tp, pp, cp, ep, sharding), best first
  int64_t possible = 0;               // plans of the space that obey the rules of the software
  int64_t fitting = 0;                // of these, fit in memory
  int64_t tried = 0;                 // of these, predicted; the others follow from one that misfits
  std::optional<Miss> nearest_miss;  // where nothing fits: the one that is closest
  std::optional<Impossible> impossible;  // where nothing is possible: why the first was not

  bool found() const { return !top.empty(); }
  // The best plan of another neighbourhood than the winner's; null when there is none.
  const Candidate* runner_up() const { return neighbours.size() > 1 ? &neighbours[1] : nullptr; }
};

// `stated` are the keys of `base` that must stay as they are (Description::plan_keys).
SearchResult search(Predictor&, const Plan& base, const std::set<std::string>& stated,
                    const SearchOptions& = {});

// What a search starts from when a stated plan is dropped: the stack's defaults, at its precision.
Plan open_plan(const Setting&, const Plan& stated);

// Whether the stated keys leave nothing of weight to choose: then the plan is predicted as it is.
// That is: tp, pp and micro_batch where the stack has them, or tp, dp and micro_batch where the
// degrees multiply up to all accelerators.
bool fully_stated(const Setting&, const Plan&, const std::set<std::string>& stated);

}  // namespace assay
