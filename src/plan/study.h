// Everything that `assay plan` says about one description: the best (or the stated) plan, what it
// costs, where its time goes, what would move it, why the next best lost; or, where nothing fits,
// the closest miss and what would make it fit.
#pragma once

#include "plan/cost.h"
#include "plan/levers.h"
#include "world/describe.h"

namespace assay {

struct LedgerLine {
  Account account = Account::kUseful;
  double seconds = 0;
  double share = 0;
  char mark = 'c';
};

// A run of just this plan that somebody measured.
struct MeasuredRun {
  std::string id, file;
  int line = 0;
  double step_s = 0;     // zero: not stated
  double memory_gb = 0;  // peak of one device, as its table counts it; zero: not stated
  double predicted_memory_gb = 0;
};

struct PlanResult {
  Description description;
  std::optional<MeasuredRun> measured;
  bool searched = false;  // false: the plan was stated and is only predicted
  SearchResult search;    // counts, the best plans; empty where the plan was stated
  bool fits = false;
  std::optional<Impossible>
      impossible;  // no plan obeys the software's rules, or the stated does not

  // The plan. Where it does not fit: the closest miss, and `prediction` holds only its memory.
  Plan plan;
  Prediction prediction;
  RunFigures run;
  std::vector<LedgerLine> ledger;  // largest first, useful on top; they sum up to the step
  std::optional<Candidate> runner_up;
  std::string why_lost;
  std::vector<WhatIf> levers;
  std::optional<Miss> miss;
  std::vector<WhatIf> fixes;
  bool what_ifs = false;         // levers or fixes were looked for
  bool kernels_assumed = false;  // no kernel of the accelerator was measured
  double elapsed_s = 0;          // wall clock; never printed where bytes must repeat
};

struct StudyOptions {
  bool what_ifs = true;  // levers and fixes
  bool ran = false;      // somebody ran the stated plan: it fits, whatever is predicted
  std::function<void(double)> progress;
};

PlanResult study(Description, const Catalog&, const StudyOptions& = {});

// The figure's derivation, run-level figures included, with the origin of every setting in it and,
// where it is known, its range.
// REQUIRES: `figure` is one of figure_names().
Derivation explain_figure(const PlanResult&, const std::string& figure, const Catalog&);
std::vector<std::string> figure_names();
bool is_figure(const std::string&);

}  // namespace assay
