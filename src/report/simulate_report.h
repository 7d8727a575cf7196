// The screen, the document and the trace of `assay simulate`.
#pragma once

#include "plan/study.h"
#include "report/screen.h"
#include "sim/many.h"
#include "sim/spec.h"
#include "site/facility.h"

namespace assay {

// What a run costs besides time: one price and one power for the whole of it.
struct RunMoney {
  double usd_per_gpu_hour = 0;                               // zero: not known
  double kwh_per_gpu_hour = 0;                               // at the meter, job running
  double kg_co2_per_gpu_hour = 0, water_l_per_gpu_hour = 0;  // zero: not known
  bool rented = true;
  bool people_unknown = false;  // owned, and nobody said how many
  double energy_in_rent = 0;    // what the energy would cost, of the rent that holds it
  std::vector<std::pair<std::string, double>> shares;  // of the cost; empty without a site
};

struct SimulateResult {
  PlanResult plan;
  SpecResult spec;
  ManyResult many;
  std::vector<LeverResult> levers;
  bool levers_cut = false;              // Ctrl-C came while they were measured: some are missing
  std::vector<Seconds> intervals;       // of the checkpoint tiers, as used
  std::vector<Seconds> best_intervals;  // that lose least at this failure rate
  std::vector<FormulaError> formulas;   // the literature's, for the last tier
  Seconds mtbf;
  RunMoney money;
  std::optional<SiteSeries> site;         // hour by hour, where a site was given
  std::vector<SiteSeries> other_weather;  // the same hours with other luck
  std::string site_name, operations_name;
};

// What the runs draw and emit, mean: accelerators that wait are at rest.
struct RunEnergy {
  double kwh = 0, carbon_kg = 0, water_l = 0;
};
RunEnergy run_energy(const SimulateResult&);

std::string simulate_text(const SimulateResult&, const Style&, const Stamp&);
std::string simulate_json(const SimulateResult&, const Stamp&);

// How finely a traced run is followed: by the hour, and in at most 4,000 parts.
Seconds trace_bucket(Seconds period);

// One run, made with that bucket, as a trace that ui.perfetto.dev opens: tracks of the job, its
// replicas and the spares, counters of goodput, clocks, power and coolant.
std::string run_trace_json(const SimulateResult&, const RunResult&, Seconds bucket,
                           const std::string& title);

}  // namespace assay
