#include "site/power.h"

#include <algorithm>
#include <cmath>

namespace assay {
namespace {

// 668.3 -> 665.3 TFLOP/s over 4 K (test/data/telemetry/h200_thermal_marks.txt).
constexpr double kSpeedPerKelvin = 0.0011;

}  // namespace

double leakage(const GpuThermal& g, double junction_c) {
  constexpr double kReference = 60;  // C
  return g.leak.v * (std::exp(g.leak_per_k * (junction_c - kReference)) - 1);
}

Watts gpu_power(const GpuThermal& g, double load, double clock, double junction_c) {
  const double dynamic = load * (g.tdp - g.idle).v * std::pow(clock, g.clock_exponent);
  return Watts(std::max(0.0, g.idle.v + dynamic + leakage(g, junction_c)));
}

double clock_under_cap(const GpuThermal& g, double load, Watts limit, double junction_c) {
  const double full = load * (g.tdp - g.idle).v;
  const double left = limit.v - g.idle.v - leakage(g, junction_c);
  if (full <= 0 || left >= full) return 1;
  if (left <= 0) return kLeastClock;
  return std::max(kLeastClock, std::pow(left / full, 1 / g.clock_exponent));
}

GpuThermal thermal_of(const Accelerator& a) {
  GpuThermal g;
  if (a.tdp.v <= 0) return g;
  const double scale = g.tdp.v / a.tdp.v;
  g.die_k_per_w *= scale;
  g.plate_k_per_w *= scale;
  g.hbm_k_per_w *= scale;
  g.coolant_w_per_k /= scale;
  g.plate_j_per_k /= scale;
  g.leak /= scale;
  g.tdp = a.tdp;
  g.idle = a.idle.v > 0 ? a.idle : Watts(0.15 * a.tdp.v);
  return g;
}

double speed_at(double coolant_c, double reference_c) {
  return 1 - kSpeedPerKelvin * (coolant_c - reference_c);
}

}  // namespace assay
