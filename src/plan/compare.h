// What differs between descriptions, and what each difference is worth.
//
// Attribution by switching one setting at a time: the gain of a setting is the mean of switching it
// first (all else as before) and last (all else as after). What is left of the whole difference is
// named `interaction`. A setting that can be switched neither first nor last (TP 8 alone would not
// divide the batch) has no gain of its own; its part is in the interaction.
//
// What cannot run has no gain to give: where a setting switched alone, first or last, does not fit
// in memory although both sides do (the best plan of a larger accelerator), it is switched together
// with the one that makes it fit, and the gain is of both.
#pragma once

#include "plan/cost.h"
#include "plan/search.h"

namespace assay {

struct Side {
  std::string name;  // `before.yaml`
  Setting setting;
  Plan plan;  // complete
  bool searched = false;
  Prediction prediction;
  RunFigures run;
  std::vector<Assumption> assumed;  // where it was described, for whoever asks later
  Origins origins;
  size_t given = 0;  // its place among the sides as they were given
};

struct Switched {
  std::string path;           // `plan.tp`, or a whole section: `cluster.accelerator`
  std::string before, after;  // in words
};

struct Change : Switched {
  std::optional<double> mfu;  // gain, as a fraction: +0.061
  // Change of the time for the tokens of the first side's step; negative is faster.
  std::optional<double> step_s;
  std::optional<double> first_s, last_s;  // those whose mean step_s is
  std::vector<Switched> with;  // switched together with it: neither fits without the other
};

// The whole difference between two sides, by its parts.
struct Attribution {
  std::vector<Change> changes;                         // largest gain first
  double interaction_mfu = 0, interaction_step_s = 0;  // what the changes leave of it
};

struct Comparison {
  // Two: as given. More: what does not fit, then slowest per token first, so that the best is last.
  std::vector<Side> sides;
  Attribution difference;     // of two sides; empty with more, and where a search found no plan
  Interval speedup{1, 1, 1};  // of the last side over the first
  // The 90 % range of the ratio does not hold 1, and both fit: what cannot run is not faster.
  bool significant = false;
};

// REQUIRES: at least two sides, each with its prediction.
Comparison compare(std::vector<Side> sides);

// As the head of this file says; used by `scale` too.
Attribution attribute(const Side& before, const Side& after);

// Time per token before over after, with its 90 % range: above 1, `after` is faster.
Interval speedup(const Side& before, const Side& after);

// Whether that range does not hold 1 at the two decimals that screens have, so that what is said of
// a ratio is what can be read from it.
bool differ(const Side&, const Side&);

bool fits(const Side&);  // in memory

// Nothing was found that fits: the side is only what comes closest.
bool closest_miss(const Side&);

// Seconds per token of the whole job.
Interval time_per_token(const Side&);

}  // namespace assay
