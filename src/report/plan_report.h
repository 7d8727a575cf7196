// The screens and the document of `assay plan`.
#pragma once

#include "plan/compare.h"
#include "plan/study.h"
#include "report/screen.h"
#include "sim/expect.h"

namespace assay {

// What a run of a plan delivers over weeks.
struct Outlook {
  Expectation expected;
  double gpu_hours = 0;         // of the job until the tokens are done
  double usd = 0;               // of the job and of its spares meanwhile; zero: no price known
  int64_t spares = 0;           // nodes
  double spares_usd = 0;        // their part of it
  double usd_per_gpu_hour = 0;  // zero: no price known

  // Whether it ends within what anybody would wait for.
  bool ends() const { return expected.time.v < 100 * kSecondsPerYear; }
};

struct PlanOutlook {
  std::string operations_name;
  bool stated = false;  // the operations; else they are the catalog's usual ones
  std::optional<Outlook> best, runner_up;
  std::string why_not;  // in words, where there is none
};

std::string plan_text(const PlanResult&, const Style&, const Stamp&, const PlanOutlook& = {});
std::string plan_json(const PlanResult&, const Stamp&, const PlanOutlook& = {});

// Lines of their own in the ledger of a step: so many accounts, and none that rounds to nothing.
// The rest is `everything else`.
constexpr size_t kLedgerLinesMost = 12;
constexpr double kLedgerShareLeast = 0.0005;

// The first two lines of several screens: what is trained, and on what.
std::string workload_line(const Setting&);
std::string cluster_line(const Setting&);

// Why some changes are switched together, where any are: a line, or nothing.
std::string together_note(const Attribution&);

// What takes most of a step beside useful work, as the ledger of the screen has it:
// `Compute-bound; next limit: memory-bound kernels (16.9 %).`
std::string limit_sentence(const Prediction&);
// That `name` is promised more of its peak than any published run on such accelerators made, as a
// sentence with a space in front; empty: it is not.
std::string beyond_record(const std::string& name, const Setting&, const Plan&, const Prediction&);

}  // namespace assay
