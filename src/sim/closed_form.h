// What the literature gives in closed form for checkpointed runs: optimal intervals, expected
// effective training time, spares, stragglers. docs/models/goodput.md derives and cites each; the
// golden values of data/ettr_golden.csv hold them.
//
// Names: mtbf (mu) of the job; C the training stall of one save; D detection and replacement,
// during which a further failure changes nothing; R restore and initialisation, which can itself
// fail; a period T is work plus save. "First order" means good only while mtbf is much larger than
// C, D, R.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"

namespace assay {

struct CheckpointCosts {
  Seconds mtbf, save, down, restore;  // mu, C, D, R
};

// Periods: work and save.
Seconds young_period(const CheckpointCosts&);  // sqrt(2 mu C) + C
Seconds daly_period(const CheckpointCosts&);   // sqrt(2 (mu + D + R) C) + C
Seconds rfo_period(const CheckpointCosts&);    // sqrt(2 (mu - D - R) C); zero if mu < D + R
Seconds daly_higher_order_period(
    const CheckpointCosts&);  // work sqrt(2 mu C) (1 + ...) - C, plus C
// NVIDIA's availability-optimal interval, Ts + sqrt(2 (Tf + Tr) Ts + Ts^2), never below the time
// that an error stays unnoticed.
Seconds availability_period(const CheckpointCosts&, Seconds unnoticed = Seconds(0));
// The maximum of exact_ettr, by golden section.
Seconds optimal_period(const CheckpointCosts&);

// Share of time in kept work with exponential failures, exactly:
// (T - C) / ((mu + D) e^(R/mu) (e^(T/mu) - 1)).
double exact_ettr(const CheckpointCosts&, Seconds period);

// 1 - sqrt(2 C / mu): no interval does better, to first order, even with instant recovery.
double overhead_floor(const CheckpointCosts&);

// Meta's E[ETTR] = (1 - N r (u0 + dt/2)) / (1 + w/dt); never below zero. Rates per node and day.
double meta_ettr(double nodes, double per_node_day, Seconds restart, Seconds interval,
                 Seconds save);

// Mean time to failure of a job: 24 h / (gpus / per_node x rate).
Seconds job_mttf(double gpus, double gpus_per_node, double per_node_day);

// FT-HSDP's two: every failure stops all for `stall`; or stalls all for `stall`, then costs one of
// `replicas` for `away`.
double synchronous_ettr(Seconds mtbf, Seconds stall);
double elastic_ettr(Seconds mtbf, Seconds stall, Seconds away, double replicas);

// Smallest k with P(X <= k) >= p: failures within a repair window.
int64_t poisson_quantile(double mean, double p);

// How far each first-order formula is from the exact one at these costs.
struct FormulaError {
  std::string name;        // `young`
  Seconds period;          // what the formula asks for
  double ettr = 0;         // exact, at that period
  double regret = 0;       // best exact ettr minus this one
  double claimed = 0;      // what the first-order waste model promises at that period
  double claim_error = 0;  // claimed minus exact
};
std::vector<FormulaError> formula_errors(const CheckpointCosts&);

}  // namespace assay
