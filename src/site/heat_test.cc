#include "site/heat.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <deque>

#include "base/random.h"

namespace assay {
namespace {

// 160 hours as twenty runs of eight, from the hour at which the day's swing passes its mean: how
// the reference figures were made. Seeds were fixed before the first comparison.
HeatResult reproduce(const HeatSetup& s, int runs = 20) {
  return simulate_heat_runs(s, 8.0 / 24, runs, 1);
}
double per_day(double sum, const HeatResult& r) { return sum / r.days; }

HeatSetup with(ThermalControl policy, double supply_c = 42) {
  HeatSetup s;
  s.control.policy = policy;
  s.loop.supply_c = supply_c;
  return s;
}

TEST(Heat, PumpThatLagsNinetySeconds) {
  constexpr double kTolerance = 0.15;  // another simulation of the same equations
  const HeatResult reactive = reproduce(with(ThermalControl::kReactive));
  EXPECT_NEAR(per_day(reactive.events, reactive), 49.05, 49.05 * kTolerance);
  EXPECT_NEAR(per_day(reactive.lost_slowest.v, reactive), 245.6, 245.6 * kTolerance);
  const HeatResult forecast = reproduce(with(ThermalControl::kForecast));
  EXPECT_NEAR(per_day(forecast.events, forecast), 13.8, 13.8 * kTolerance);
  EXPECT_NEAR(per_day(forecast.lost_slowest.v, forecast), 68.8, 68.8 * kTolerance);
  const HeatResult cap = reproduce(with(ThermalControl::kPowerCap));
  EXPECT_EQ(cap.events, 0);
  EXPECT_NEAR(per_day(cap.lost_slowest.v, cap), 195.5, 195.5 * kTolerance);
  const HeatResult both = reproduce(with(ThermalControl::kForecastAndCap));
  EXPECT_EQ(both.events, 0);
  EXPECT_NEAR(per_day(both.lost_slowest.v, both), 55.1, 55.1 * kTolerance);
  EXPECT_NEAR(1 - forecast.events / reactive.events, 0.719, 0.05);
}

TEST(Heat, AColdLoopNeverThrottlesAndAHotOneCannotBeHelped) {
  EXPECT_EQ(reproduce(with(ThermalControl::kReactive, 30)).events, 0);
  const HeatResult reactive = reproduce(with(ThermalControl::kReactive, 48), 8);
  const HeatResult forecast = reproduce(with(ThermalControl::kForecast, 48), 8);
  EXPECT_NEAR(per_day(reactive.events, reactive), 47.7, 47.7 * 0.15);
  EXPECT_NEAR(forecast.events / reactive.events, 1, 0.15);
}

// throttle_sweep.csv, sweep C: events a day and lost seconds a day of the reactive controller.
TEST(Heat, SupplyTemperatureAsInTheSweep) {
  struct Row {
    double supply_c, events, lost_s;
  };
  for (const Row& row : {Row{35, 33.9, 14.6}, Row{40, 47.1, 116.1}, Row{42, 47.7, 198.4},
                         Row{44, 47.7, 337.6}, Row{46, 47.7, 1094.5}}) {
    const HeatResult r = reproduce(with(ThermalControl::kReactive, row.supply_c));
    EXPECT_NEAR(per_day(r.events, r), row.events, 0.15 * row.events) << row.supply_c;
    EXPECT_NEAR(per_day(r.lost_slowest.v, r), row.lost_s, 0.15 * row.lost_s) << row.supply_c;
  }
}

// The same file, sweep A: what a forecast of every step is worth at 45 C, by its lead.
TEST(Heat, LeadTimeAsInTheSweep) {
  const HeatResult reactive = reproduce(with(ThermalControl::kReactive, 45));
  const std::pair<double, double> removed[] = {{60, 0.107}, {90, 0.45}, {120, 0.92}, {180, 1.0}};
  for (const auto& [lead_s, share] : removed) {
    HeatSetup s = with(ThermalControl::kForecast, 45);
    s.control.lead = Seconds(lead_s);
    s.control.recall = 1;
    EXPECT_NEAR(1 - reproduce(s).events / reactive.events, share, 0.10) << lead_s;
  }
}

TEST(Heat, CriticalFlowAndLead) {
  const HeatSetup s;
  EXPECT_NEAR(critical_flow(s.gpu, s.loop), 0.592, 0.002);
  EXPECT_NEAR(critical_lead(s.gpu, s.loop).v, 46.9, 0.3);
  CoolingLoop cold = s.loop, hot = s.loop;
  cold.supply_c = 20;
  hot.supply_c = 52;
  EXPECT_EQ(critical_lead(s.gpu, cold).v, 0);
  EXPECT_TRUE(std::isinf(critical_lead(s.gpu, hot).v));
  EXPECT_NEAR(forecast_reduction(s.gpu, s.loop, s.control), 0.70, 0.001);
  EXPECT_EQ(forecast_reduction(s.gpu, hot, s.control), 0);
}

// The same group with steps of 100 ms, explicit Euler, and the junction's own lag.
class Naive {
 public:
  Naive(const HeatSetup& s, double end, uint64_t seed) : s_(s), end_(end) {
    Stream parts(seed, cause_id("heat parts"));
    for (int i = 0; i < s.accelerators; ++i) {
      resistance_.push_back(1 + s.spread * (2 * parts.uniform() - 1));
    }
    Stream load(seed, cause_id("heat load"));
    bool busy = false;
    for (double t = 0; t < end;) {
      const double median = busy ? s.load.busy_median.v : s.load.low_median.v;
      t += lognormal_quantile(load.uniform(), median, s.load.sigma_ln);
      busy = !busy;
      changes_.push_back(t);
    }
  }

  HeatResult run() {
    const size_t n = resistance_.size();
    std::vector<double> plate(n, s_.loop.supply_c), junction(n, s_.loop.supply_c), clock(n, 1);
    double flow = s_.loop.flow_min, integral = 0, last_hot = -1e18;
    std::deque<double> delayed(static_cast<size_t>(s_.loop.pump_delay.v / kDt), flow);
    size_t next = 0;
    double load = s_.load.low;
    HeatResult out;
    out.days = end_ / kSecondsPerDay;
    const double settle = 3000;  // at rest before the day begins
    for (int64_t k = -static_cast<int64_t>(settle / kDt); static_cast<double>(k) * kDt < end_;
         ++k) {
      const double t = static_cast<double>(k) * kDt;
      while (next < changes_.size() && changes_[next] <= t) {
        load = load == 1 ? s_.load.low : 1;
        ++next;
      }
      const double supply =
          s_.loop.supply_c +
          s_.loop.swing_k / 2 * std::sin(2 * M_PI * std::max(0.0, t) / kSecondsPerDay);
      double hottest = -1e9, slowest = 1;
      for (size_t i = 0; i < n; ++i) {
        advance(i, load, supply, flow, clock[i], plate[i], junction[i]);
        hottest = std::max(hottest, junction[i]);
        if (load == 1) slowest = std::min(slowest, clock[i]);
      }
      if (t >= 0) out.lost_slowest += Seconds((1 - slowest) * kDt);
      const double error = hottest - s_.control.target_c;
      double wanted = s_.loop.flow_min + s_.control.gain * error + integral;
      if (wanted > s_.loop.flow_min && wanted < 1) {
        integral += s_.control.integral_gain * error * kDt;
      }
      delayed.push_back(std::clamp(wanted, s_.loop.flow_min, 1.0));
      flow += kDt * (delayed.front() - flow) / s_.loop.pump_tau.v;
      delayed.pop_front();
      if (k % static_cast<int64_t>(1 / kDt) != 0) continue;
      if (firmware(junction, clock) && t - last_hot > s_.quiet.v) out.events += 1;
      if (hottest >= s_.gpu.max_c) last_hot = t;
    }
    return out;
  }

 private:
  static constexpr double kDt = 0.1;

  void advance(size_t i, double load, double supply, double flow, double clock, double& plate,
               double& junction) const {
    const GpuThermal& g = s_.gpu;
    const double p = g.idle.v + load * (g.tdp - g.idle).v * std::pow(clock, g.clock_exponent) +
                     g.leak.v * (std::exp(g.leak_per_k * (junction - 60)) - 1);
    const double film = resistance_[i] * g.plate_k_per_w * std::pow(flow, -0.8);
    const double coolant = supply + p / (2 * flow * g.coolant_w_per_k);
    plate += kDt * (p - (plate - coolant) / film) / g.plate_j_per_k;
    junction += kDt / 0.27 * (plate + resistance_[i] * g.die_k_per_w * p - junction);
  }

  bool firmware(const std::vector<double>& junction, std::vector<double>& clock) const {
    const GpuThermal& g = s_.gpu;
    bool any = false;
    for (size_t i = 0; i < clock.size(); ++i) {
      const bool hot = junction[i] >= g.max_c;
      any = any || hot;
      if (hot) {
        clock[i] -= g.step_down;
      } else if (junction[i] < g.max_c - g.hysteresis_k) {
        clock[i] = std::min(1.0, clock[i] + g.step_up);
      }
      if (junction[i] >= g.slowdown_c) clock[i] = std::min(clock[i], g.hardware_clock);
    }
    return any;
  }

  const HeatSetup& s_;
  double end_;
  std::vector<double> resistance_, changes_;
};

TEST(Heat, AgreesWithNaiveSteps) {
  for (const double supply : {40.0, 44.0}) {
    const HeatSetup s = with(ThermalControl::kReactive, supply);
    HeatResult naive, fast;
    for (uint64_t seed = 5; seed < 7; ++seed) {
      const HeatResult n = Naive(s, kSecondsPerDay / 4, seed).run();
      const HeatResult f = simulate_heat(s, 0.25, seed);
      naive.events += n.events;
      naive.lost_slowest += n.lost_slowest;
      fast.events += f.events;
      fast.lost_slowest += f.lost_slowest;
    }
    EXPECT_NEAR(fast.events, naive.events, 2) << supply;
    EXPECT_NEAR(fast.lost_slowest.v, naive.lost_slowest.v, 0.1 * naive.lost_slowest.v) << supply;
  }
}

TEST(Heat, TheSameSeedGivesTheSameDayAndColderWaterNeverHurts) {
  const HeatSetup s = with(ThermalControl::kReactive);
  const HeatResult a = simulate_heat(s, 1, 7), b = simulate_heat(s, 1, 7);
  EXPECT_EQ(a.lost_slowest.v, b.lost_slowest.v);
  EXPECT_EQ(a.events, b.events);
  double last = 1e18;
  for (const double supply : {46.0, 42.0, 38.0, 34.0, 28.0}) {
    const HeatResult r = simulate_heat(with(ThermalControl::kReactive, supply), 1, 7);
    EXPECT_LE(r.lost_slowest.v, last) << supply;
    EXPECT_EQ(r.load_steps, a.load_steps);
    last = r.lost_slowest.v;
  }
}

TEST(Heat, ADryPumpShutsDown) {
  HeatSetup s = with(ThermalControl::kReactive, 60);
  s.loop.flow_min = 0.05;
  s.loop.slew_per_s = 0;  // the pump does not answer
  const HeatResult r = simulate_heat(s, 0.1, 1);
  EXPECT_GT(r.shutdowns, 0);
  EXPECT_TRUE(std::isfinite(r.lost_slowest.v));
}

TEST(Heat, ADayCostsMilliseconds) {
  const HeatSetup s = with(ThermalControl::kReactive);
  const HeatResult r = simulate_heat(s, 1, 3);
  // Seconds would be 86,400; the clock of a shared machine is no measure.
  EXPECT_LT(r.steps, 20000);
}

}  // namespace
}  // namespace assay
