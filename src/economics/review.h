// The design review before a cluster goes live: how much the site holds, and the questions that a
// cross-functional review asks, answered from the description, with what is missing named.
#pragma once

#include <optional>

#include "economics/cost.h"
#include "site/density.h"
#include "world/describe.h"

namespace assay {

enum class Verdict { kGood, kPartly, kBad, kUnknown };
const char* verdict_name(Verdict);

struct Fact {
  std::string text;
  char mark = 'c';  // m measured, s stated, c calculated, a assumed
};

struct Answer {
  std::string id;  // `scale`, `observe`, `bill`, `failure`, `data`, `documented`
  std::string question;
  Verdict verdict = Verdict::kUnknown;
  std::string word;  // in place of yes or no, where neither fits the question
  std::vector<Fact> facts;
  std::vector<std::string> missing;  // keys that would answer it: `site.hall.floor_kg_m2`
};

// What happens when one thing fails.
struct FailureCase {
  std::string what;  // `one of 2 feeds`
  std::string consequence;
  double lost = 0;  // share of the cluster that stops
  bool tolerated = true;
};

// What a prediction and a simulated month add, where a workload was given.
struct JobFigures {
  double mfu = 0;
  double days = 0;  // at full speed
  double accelerators = 0;
  Watts power;  // of one accelerator, mean over a step
  std::string name;
  bool fits = true;  // false: no plan does, and there are no figures
  // Simulated; zero runs: it could not be, and nothing is said about them.
  int64_t runs = 0;
  double simulated_days = 0;
  std::string operations;                                 // how it is operated: `usual`
  double goodput = 0, goodput_low = 0, goodput_high = 0;  // mean, 5th and 95th percentile
  double useful_share = 0;                                // of everything paid
  Seconds interrupted_every;                              // infinite: never
  double restart_share = 0;  // of what is paid: from a failure until the job steps again
};

struct Review {
  Density density;
  NodePower node;  // in the job's step where there is a job, else in usual training
  FacilityTotals year;
  Bill bill;
  std::vector<FailureCase> failures;
  std::vector<Answer> answers;
  std::optional<JobFigures> job;
  std::string verdict;  // one sentence
  bool passes = false;  // nothing binds below what is asked, and no answer is no
};

// `origins` tells what was stated; paths as in a description.
Review review(const Site&, const Cluster&, const Origins& origins,
              const std::optional<JobFigures>& job);

// Seconds from the loss of coolant flow at full load until clocks fall and until parts shut down.
struct FlowLoss {
  Seconds throttle, shutdown;
};
FlowLoss loss_of_flow(const GpuThermal&, double supply_c);

}  // namespace assay
