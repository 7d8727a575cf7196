#include "sim/closed_form.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/assert.h"
#include "base/random.h"

namespace assay {
namespace {

// Golden-section search for the maximum of a unimodal function.
template <class F>
double maximise(F&& f, double low, double high) {
  const double ratio = (std::sqrt(5.0) - 1) / 2;
  double a = high - ratio * (high - low), b = low + ratio * (high - low);
  double fa = f(a), fb = f(b);
  while (high - low > 1e-9 * high) {
    if (fa < fb) {
      low = a;
      a = b;
      fa = fb;
      b = low + ratio * (high - low);
      fb = f(b);
    } else {
      high = b;
      b = a;
      fb = fa;
      a = high - ratio * (high - low);
      fa = f(a);
    }
  }
  return 0.5 * (low + high);
}

// Smallest k with cumulative probability at least p; `next(k)` is P(k + 1) / P(k).
template <class Ratio>
int64_t quantile_by_sum(double log_first, double p, int64_t most, Ratio&& next) {
  double log_term = log_first, sum = 0;
  for (int64_t k = 0;; ++k) {
    sum += std::exp(log_term);
    if (sum >= p || k >= most) return k;
    log_term += std::log(next(k));
  }
}

}  // namespace

Seconds young_period(const CheckpointCosts& c) {
  return Seconds(std::sqrt(2 * c.mtbf.v * c.save.v)) + c.save;
}

Seconds daly_period(const CheckpointCosts& c) {
  return Seconds(std::sqrt(2 * (c.mtbf + c.down + c.restore).v * c.save.v)) + c.save;
}

Seconds rfo_period(const CheckpointCosts& c) {
  return Seconds(std::sqrt(2 * std::max(0.0, (c.mtbf - c.down - c.restore).v) * c.save.v));
}

// Daly 2006, equation 37: work between saves; for C >= 2 mu it is mu.
Seconds daly_higher_order_period(const CheckpointCosts& c) {
  if (c.save.v >= 2 * c.mtbf.v) return c.mtbf + c.save;
  const double ratio = c.save.v / (2 * c.mtbf.v);
  return Seconds(std::sqrt(2 * c.mtbf.v * c.save.v) * (1 + std::sqrt(ratio) / 3 + ratio / 9));
}

Seconds availability_period(const CheckpointCosts& c, Seconds unnoticed) {
  const double ts = c.save.v;
  const double best = ts + std::sqrt(2 * (c.mtbf + c.restore).v * ts + ts * ts);
  return Seconds(std::max(best, unnoticed.v));
}

double exact_ettr(const CheckpointCosts& c, Seconds period) {
  const double mu = c.mtbf.v;
  if (!(period > c.save)) return 0;
  return (period - c.save).v /
         ((mu + c.down.v) * std::exp(c.restore.v / mu) * std::expm1(period.v / mu));
}

// The logarithm of exact_ettr is concave in the period, and its maximum solves
// (1 - (T - C) / mu) e^(T/mu) = 1; it lies below C + mu.
Seconds optimal_period(const CheckpointCosts& c) {
  const auto merit = [&](double t) {
    const double x = t / c.mtbf.v;
    // ln(e^x - 1) without overflow
    const double log_waste = x > 30 ? x : std::log(std::expm1(x));
    return std::log(t - c.save.v) - log_waste;
  };
  const double low = c.save.v * (1 + 1e-12) + 1e-12 * c.mtbf.v;
  return Seconds(maximise(merit, low, c.save.v + c.mtbf.v));
}

double overhead_floor(const CheckpointCosts& c) {
  return std::max(0.0, 1 - std::sqrt(2 * c.save.v / c.mtbf.v));
}

double meta_ettr(double nodes, double per_node_day, Seconds restart, Seconds interval,
                 Seconds save) {
  const double failures_per_s = nodes * per_node_day / kSecondsPerDay;
  const double lost = failures_per_s * (restart.v + interval.v / 2);
  return std::max(0.0, 1 - lost) / (1 + save / interval);
}

Seconds job_mttf(double gpus, double gpus_per_node, double per_node_day) {
  return Seconds(kSecondsPerDay / (gpus / gpus_per_node * per_node_day));
}

double synchronous_ettr(Seconds mtbf, Seconds stall) {
  return std::max(0.0, (mtbf - stall) / mtbf);
}

double elastic_ettr(Seconds mtbf, Seconds stall, Seconds away, double replicas) {
  return std::max(0.0, 1 - stall / mtbf - (away / mtbf) / replicas);
}

int64_t poisson_quantile(double mean, double p) {
  ASSERT(mean >= 0 && p < 1);
  if (mean == 0) return 0;
  const int64_t most = static_cast<int64_t>(mean + 40 * std::sqrt(mean) + 100);
  return quantile_by_sum(-mean, p, most,
                         [&](int64_t k) { return mean / static_cast<double>(k + 1); });
}

std::vector<FormulaError> formula_errors(const CheckpointCosts& c) {
  const double best = exact_ettr(c, optimal_period(c));
  // Waste to first order: a save each period, half a period and the recovery each failure.
  const auto first_order = [&](Seconds t) {
    return std::max(0.0, (1 - c.save / t) * (1 - (t.v / 2 + (c.down + c.restore).v) / c.mtbf.v));
  };
  std::vector<FormulaError> errors;
  const auto add = [&](const char* name, Seconds period) {
    FormulaError e;
    e.name = name;
    e.period = period;
    e.ettr = exact_ettr(c, period);
    e.regret = best - e.ettr;
    e.claimed = period > c.save ? first_order(period) : 0;
    e.claim_error = e.claimed - e.ettr;
    errors.push_back(e);
  };
  add("young", young_period(c));
  add("daly", daly_period(c));
  add("rfo", rfo_period(c));
  add("daly higher order", daly_higher_order_period(c));
  add("availability", availability_period(c));
  add("optimal", optimal_period(c));
  return errors;
}

}  // namespace assay
