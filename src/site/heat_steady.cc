#include <algorithm>
#include <cmath>
#include <limits>

#include "base/random.h"
#include "site/heat.h"
#include "site/power.h"

namespace assay {
namespace {

constexpr double kRunaway = 1000;

}  // namespace

double steady_junction(const GpuThermal& g, double supply_c, double flow) {
  const double r = g.die_k_per_w + g.plate_k_per_w * std::pow(flow, -kFlowExponent) +
                   1 / (2 * flow * g.coolant_w_per_k);
  double t = supply_c + g.tdp.v * r;
  for (int i = 0; i < 200; ++i) {
    const double next = supply_c + (g.tdp.v + leakage(g, t)) * r;
    if (!(next < kRunaway)) return kRunaway;
    if (std::abs(next - t) < 1e-9) return next;
    t = next;
  }
  return t;
}

double critical_flow(const GpuThermal& g, const CoolingLoop& loop) {
  if (steady_junction(g, loop.supply_c, 1) > g.max_c)
    return std::numeric_limits<double>::infinity();
  double low = 0.01, high = 1;
  for (int i = 0; i < 60; ++i) {
    const double q = (low + high) / 2;
    (steady_junction(g, loop.supply_c, q) > g.max_c ? low : high) = q;
  }
  return high;
}

Seconds critical_lead(const GpuThermal& g, const CoolingLoop& loop) {
  const double q = critical_flow(g, loop);
  if (q <= loop.flow_min) return Seconds(0);
  if (q >= 1) return Seconds(std::numeric_limits<double>::infinity());
  return Seconds(loop.pump_tau.v * std::log((1 - loop.flow_min) / (1 - q)) + loop.pump_delay.v);
}

double forecast_reduction(const GpuThermal& g, const CoolingLoop& loop, const HeatControl& c) {
  const double need = critical_lead(g, loop).v;
  if (!std::isfinite(need)) return 0;
  const double spare = c.lead.v - need;
  if (c.noise.v <= 0) return spare >= 0 ? c.recall : 0;
  return c.recall * normal_cdf(spare / c.noise.v);
}

}  // namespace assay
