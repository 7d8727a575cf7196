#include "site/rejection.h"

#include <algorithm>
#include <cmath>

namespace assay {
namespace {

constexpr double kCopPerKelvin = 0.1;  // sustain-cluster dc_config.json
constexpr double kCopReference = 25;   // C
constexpr double kLeastCop = 1.5;
constexpr double kDerate = 0.0125;      // of a chiller per kelvin above 35 C, from memory
constexpr double kDerateFrom = 35;      // C
constexpr double kHousekeeping = 0.02;  // lights, offices, controls; of IT power

bool uses_wet_bulb(HeatRejection r) {
  return r == HeatRejection::kWetTower || r == HeatRejection::kAdiabatic;
}

double cop_at(const Cooling& c, double outside_c) {
  return std::max(kLeastCop, c.cop - kCopPerKelvin * (outside_c - kCopReference));
}

double outside(const Cooling& c, const WeatherHour& w) {
  return uses_wet_bulb(c.rejection) ? w.wet_c : w.dry_c;
}

bool has_chiller(const Cooling& c) {
  return c.rejection == HeatRejection::kChiller || c.trim_chiller;
}

}  // namespace

Watts plant_capacity(const Cooling& c, const WeatherHour& w, Watts rated) {
  const Watts stated = c.capacity.v > 0 ? c.capacity : rated;
  if (has_chiller(c)) {
    if (c.capacity.v <= 0) return stated;
    const double over = std::max(0.0, w.dry_c - std::max(kDerateFrom, c.design_c));
    return stated * std::max(0.1, 1 - kDerate * over);
  }
  // Heat of a cooler without a compressor grows with the temperature difference it may use.
  const double use = c.supply_max_c - c.exchanger_k - outside(c, w);
  if (c.capacity.v <= 0) return stated * std::clamp(use / std::max(0.1, c.approach_k), 0.0, 1.0);
  const double design = c.supply_max_c - c.exchanger_k - c.design_c;
  return stated * std::clamp(use / std::max(0.1, design), 0.0, 1.5);
}

PlantState plant_at(const Cooling& c, const WeatherHour& w, Watts heat, Watts rated) {
  PlantState s;
  const Watts most = plant_capacity(c, w, std::max(rated, Watts(1)));
  const double asked = std::max(heat.v, 0.0);
  s.heat_share = asked > most.v ? most.v / asked : 1;
  const double q = asked * s.heat_share;
  const double part = std::min(1.0, q / std::max(rated.v, 1.0));
  const double reached = outside(c, w) + c.approach_k * part + c.exchanger_k;
  s.free_cooling = reached <= c.supply_c;
  const bool chill = !s.free_cooling && has_chiller(c);
  s.supply_c = s.free_cooling || chill ? c.supply_c : std::min(reached, c.supply_max_c);
  // Fans follow the cube of the share of their range that is needed; below the setpoint they slow.
  const double spare = std::max(0.0, c.supply_c - reached);
  const double speed = std::clamp(part * (1 - spare / 20), 0.25, 1.0);
  s.fans = Watts(c.fan_share * rated.v * std::pow(speed, 3));
  const double flow = std::max(c.flow_min, part);
  s.pumps = Watts(c.pump_share * rated.v * std::pow(flow, 3));
  if (chill) {
    // The chiller lifts only what free cooling leaves of the approach to the setpoint.
    const double lift = std::clamp((reached - c.supply_c) / 10, 0.0, 1.0);
    s.chiller = Watts(q * lift / cop_at(c, w.dry_c));
  }
  const bool sprays = c.rejection == HeatRejection::kWetTower ||
                      (c.rejection == HeatRejection::kAdiabatic &&
                       w.dry_c + c.approach_k * part + c.exchanger_k > c.supply_c);
  if (sprays) s.water_l_per_h = c.water_l_per_kwh * q / 1000;
  return s;
}

double pue(const PlantState& s, Watts it, double ups_loss) {
  if (it.v <= 0) return 1;
  return 1 + s.power().v / it.v + ups_loss + kHousekeeping;
}

}  // namespace assay
