// For tests: one described job, to be changed before its spec is made.
#pragma once

#include "base/assert.h"
#include "sim/many.h"
#include "sim/spec.h"

namespace assay {

inline Description describe_run(const std::vector<std::string>& inputs,
                                std::vector<std::string> sets) {
  Request r;
  r.inputs = inputs;
  for (const char* plan : {"plan.tp=4", "plan.pp=4", "plan.micro_batch=1", "plan.recompute=full"})
    r.sets.push_back(plan);
  for (std::string& set : sets) r.sets.push_back(std::move(set));
  r.needs_operations = true;
  tl::expected<Description, Diagnostics> d = describe(r, catalog());
  ASSERT(d && "a test describes what can be");
  return std::move(*d);
}

// One job with everything that the adapter needs, to be changed before `spec()`.
struct Case {
  explicit Case(std::vector<std::string> sets = {}, const char* site = "phoenix")
      : description(describe_run({"llama-3.1-70b", "h100-128", site}, std::move(sets))) {
    prediction = Predictor(description.setting).predict(description.plan);
  }

  SpecResult make() const { return make_spec(input()); }
  SpecInput input() const {
    SpecInput in;
    in.setting = &description.setting;
    in.plan = &description.plan;
    in.prediction = &prediction;
    in.operations = &description.operations;
    in.site = has_site ? &description.site : nullptr;
    in.series = series.hours.empty() ? nullptr : &series;
    in.period = period;
    return in;
  }
  Operations& run() { return description.operations; }

  Description description;
  Prediction prediction;
  bool has_site = true;
  SiteSeries series;
  Seconds period{20 * kSecondsPerDay};
};

// Failures often enough that a few runs see what a change is worth.
inline void make_stormy(Operations& run) {
  run.reliability.exposure_gpu_hours /= 100;
  run.reliability.repair_median = Seconds(3600);
  run.reliability.repair_mean = Seconds(6 * 3600);
}

// The mean with the seeds that every other call uses.
inline ManyResult many(const RunSpec& spec) {
  ASSERT(check(spec).empty());
  ManyOptions o;
  o.runs = 40;
  return simulate_many(spec, o);
}

}  // namespace assay
