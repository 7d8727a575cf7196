// A job of hundreds of accelerators has a part at the hot end of the spread on every loop, so one
// accelerator with that resistance stands for the group: its loss is the job's.
//
// One load step is played from rest until the flow has long settled. A forecast sees a share of the
// steps: what it does not see costs what it would without it, what it sees is played at five
// quantiles of its timing. So nothing is drawn, and a figure differs only where its cause does.
//
// Where full flow cannot hold the load, clocks are held down all the time: that is a steady loss,
// which clock_at_coolant() (site/facility.h) has. Beyond that point a step costs what it did there.
#include "site/bursts.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "site/power.h"

namespace assay {
namespace {

constexpr double kHottestPart = 1.03;  // resistance over the mean; HeatSetup::spread
constexpr double kHottestC = 80;       // of a supply that is looked at
constexpr double kSettleLags = 8;      // a first-order lag is over after so many
constexpr double kLongestS = 20000;    // that a step is followed: slower pumps never settle
constexpr double kSettleS = 600;       // plates and controller
// The tenths of a normal distribution in the middle of each fifth.
constexpr double kFifths[] = {-1.2816, -0.5244, 0, 0.5244, 1.2816};

// Seconds lost at one step from rest.
double one_step(HeatSetup s) {
  const double settle = std::min(kLongestS, kSettleLags * s.loop.pump_tau.v + kSettleS);
  s.control.lead = std::clamp(s.control.lead, Seconds(0), Seconds(kLongestS));
  s.load.sigma_ln = 0;
  s.load.low_median = Seconds(settle) + s.control.lead;
  s.load.busy_median = Seconds(settle);
  s.control.noise = Seconds(0);
  const double days = (s.load.low_median + s.load.busy_median).v / kSecondsPerDay;
  return simulate_heat(s, days, 1).lost_slowest.v;
}

double mean_step(const HeatSetup& s) {
  const ThermalControl policy = s.control.policy;
  HeatSetup unseen = s;
  if (policy == ThermalControl::kForecast) unseen.control.policy = ThermalControl::kReactive;
  if (policy == ThermalControl::kForecastAndCap) unseen.control.policy = ThermalControl::kPowerCap;
  const double without = one_step(unseen);
  if (unseen.control.policy == policy) return without;
  HeatSetup seen = s;
  seen.control.recall = 1;
  double with = 0;
  for (const double z : kFifths) {
    seen.control.lead = s.control.lead + z * s.control.noise;
    with += one_step(seen) / static_cast<double>(std::size(kFifths));
  }
  return (1 - s.control.recall) * without + s.control.recall * std::min(with, without);
}

}  // namespace

HeatSetup loop_of(const Accelerator& a, const Cooling& c, double supply_c) {
  HeatSetup s;
  s.gpu = thermal_of(a);
  s.gpu.die_k_per_w *= kHottestPart;
  s.gpu.plate_k_per_w *= kHottestPart;
  s.accelerators = 1;
  s.spread = 0;
  s.loop.supply_c = supply_c;
  s.loop.swing_k = 0;  // the hours of the series have it
  s.loop.pump_tau = c.pump_tau;
  s.loop.pump_delay = c.pump_delay;
  s.loop.flow_min = c.flow_min;
  s.control.policy = c.control;
  s.control.lead = c.forecast_lead;
  s.control.recall = c.forecast_recall;
  return s;
}

BurstTable::BurstTable(const Accelerator& a, const Cooling& c, double coldest_c, double hottest_c)
    : coldest_c_(std::floor(coldest_c)) {
  const bool pumped = c.method == CoolingMethod::kDirectLiquid && c.pump_tau.v > 0;
  if (!pumped || c.load_steps_per_day <= 0 || !(hottest_c >= coldest_c)) return;
  steps_per_day_ = c.load_steps_per_day;
  const double last = std::min(kHottestC, std::ceil(hottest_c));
  double most = 0;
  for (double supply = coldest_c_; supply <= last; supply += 1) {
    const HeatSetup s = loop_of(a, c, supply);
    // Nothing happens where the flow at rest is enough, and no more where full flow is not.
    const double flow = critical_flow(s.gpu, s.loop);
    if (flow > c.flow_min && flow < 1) most = std::max(most, mean_step(s));
    lost_s_.push_back(most);
  }
}

Seconds BurstTable::lost(double supply_c) const {
  if (lost_s_.empty()) return Seconds(0);
  const double most = static_cast<double>(lost_s_.size() - 1);
  const double at = std::clamp(supply_c - coldest_c_, 0.0, most);
  const auto low = static_cast<size_t>(at);
  const size_t high = std::min(low + 1, lost_s_.size() - 1);
  const double part = at - static_cast<double>(low);
  return Seconds(lost_s_[low] + part * (lost_s_[high] - lost_s_[low]));
}

double BurstTable::clock(double supply_c) const {
  return std::max(kLeastClock, 1 - steps_per_day_ * lost(supply_c).v / kSecondsPerDay);
}

}  // namespace assay
