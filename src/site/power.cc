#include "site/power.h"

#include <algorithm>
#include <cmath>

namespace assay {
namespace {

constexpr double kSpeedPerKelvin = 0.0011;       // data/h200: 668.3 -> 665.3 TFLOP/s over 4 K
constexpr double kTrainingOverNameplate = 0.76;  // arXiv:2506.14551; 0.70 to 0.83
constexpr double kIdleOverNameplate = 0.18;      // DGX H100: 1.8 of 10.2 kW, an estimate
constexpr double kTrainingOverLimit = 0.92;  // accelerators: 650 of 700 W in training, data/h200

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

NodePower node_power(const Cluster& c) {
  const Node& n = c.node;
  const auto accelerators = static_cast<double>(n.accelerators);
  NodePower p;
  p.nameplate_stated = n.nameplate.v > 0;
  p.idle_stated = n.idle_power.v > 0;
  p.training = n.host_power + kTrainingOverLimit * accelerators * c.accelerator.tdp;
  p.nameplate = p.nameplate_stated ? n.nameplate : p.training / kTrainingOverNameplate;
  p.training = std::min(p.training, p.nameplate);
  p.idle = p.idle_stated ? n.idle_power : kIdleOverNameplate * p.nameplate;
  return p;
}

}  // namespace assay
