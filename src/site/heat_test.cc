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

// scenarios.yaml, throttle90, every figure: counts within 15 %, since another simulation of the
// same equations made them; times, which its 20 runs leave as uncertain, within the same.
TEST(Heat, PumpThatLagsNinetySeconds) {
  constexpr double kTolerance = 0.15;
  const auto near = [](double value, double expected) {
    EXPECT_NEAR(value, expected, kTolerance * expected);
  };
  const HeatResult reactive = reproduce(with(ThermalControl::kReactive));
  near(per_day(reactive.events, reactive), 49.05);
  near(per_day(reactive.lost_slowest.v, reactive), 245.6);
  const HeatResult forecast = reproduce(with(ThermalControl::kForecast));
  near(per_day(forecast.events, forecast), 13.8);
  near(per_day(forecast.lost_slowest.v, forecast), 68.8);
  EXPECT_NEAR(1 - forecast.events / reactive.events, 0.719, 0.03);
  near(per_day((reactive.lost_slowest - forecast.lost_slowest).v, reactive), 177);
  const HeatResult cap = reproduce(with(ThermalControl::kPowerCap));
  EXPECT_EQ(cap.events, 0);
  near(per_day(cap.lost_slowest.v, cap), 195.5);
  const HeatResult both = reproduce(with(ThermalControl::kForecastAndCap));
  EXPECT_EQ(both.events, 0);
  near(per_day(both.lost_slowest.v, both), 55.1);
}

// Research table of the same scenario: events a day by the share of load steps that is foreseen.
TEST(Heat, WhatTheForecastSeesIsWhatItSaves) {
  struct Row {
    double recall, events, lost_s;
  };
  for (const Row& row : {Row{0.6, 20.6, 102}, Row{0.8, 9.9, 50}}) {
    HeatSetup s = with(ThermalControl::kForecast);
    s.control.recall = row.recall;
    const HeatResult r = reproduce(s);
    EXPECT_NEAR(per_day(r.events, r), row.events, 0.15 * row.events) << row.recall;
    EXPECT_NEAR(per_day(r.lost_slowest.v, r), row.lost_s, 0.15 * row.lost_s) << row.recall;
  }
  HeatSetup all = with(ThermalControl::kForecast);
  all.control.recall = 1;
  EXPECT_LT(reproduce(all).events, 3);  // 0.15 a day: one in 160 hours
}

// The variants were taken from the sweep, which does not say by how much its loop swings: 1.7 K
// gives all its rows. Its firmware steps clocks but never halves them, nor stops a part: at 100 J/K
// its junctions reach 98 C and lose no more time than at 400 J/K, where they stay at 89 C.
HeatSetup of_the_sweep(ThermalControl policy, double supply_c) {
  HeatSetup s = with(policy, supply_c);
  s.loop.swing_k = 1.7;
  s.gpu.hardware_clock = 1;
  s.gpu.shutdown_c = 1000;
  return s;
}

TEST(Heat, AColdLoopNeverThrottlesAndAHotOneCannotBeHelped) {
  EXPECT_EQ(reproduce(of_the_sweep(ThermalControl::kReactive, 30)).events, 0);
  const HeatResult reactive = reproduce(of_the_sweep(ThermalControl::kReactive, 48), 8);
  const HeatResult forecast = reproduce(of_the_sweep(ThermalControl::kForecast, 48), 8);
  EXPECT_NEAR(per_day(reactive.events, reactive), 47.7, 47.7 * 0.15);
  EXPECT_NEAR(forecast.events / reactive.events, 1, 0.01);
}

// throttle_sweep.csv, sweep C: by supply, the reactive controller and the cap. Counts and times
// within 15 %; a day's times below half a minute are a few events and are left out.
TEST(Heat, SupplyTemperatureAsInTheSweep) {
  struct Row {
    double supply_c, events, lost_s, cap_lost_s;
  };
  for (const Row& row :
       {Row{38, 45.9, 61.7, 51.0}, Row{40, 47.1, 116.1, 94.7}, Row{42, 47.7, 198.4, 159.7},
        Row{44, 47.7, 337.6, 261.4}, Row{45, 47.7, 463.4, 337.5}, Row{46, 47.7, 1094.5, 454.8},
        Row{48, 47.7, 2831.8, 1758.3}, Row{50, 47.7, 4658, 3506.8}}) {
    const HeatResult r = reproduce(of_the_sweep(ThermalControl::kReactive, row.supply_c), 10);
    EXPECT_NEAR(per_day(r.events, r), row.events, 0.15 * row.events) << row.supply_c;
    EXPECT_NEAR(per_day(r.lost_slowest.v, r), row.lost_s, 0.15 * row.lost_s) << row.supply_c;
    const HeatResult cap = reproduce(of_the_sweep(ThermalControl::kPowerCap, row.supply_c), 10);
    EXPECT_EQ(cap.events, 0) << row.supply_c;
    EXPECT_NEAR(per_day(cap.lost_slowest.v, cap), row.cap_lost_s, 0.15 * row.cap_lost_s)
        << row.supply_c;
  }
}

// The same file, sweeps A, C, D and E: events that are left, by lead, timing noise, supply and flow
// at rest. The reference has 159 load steps: a count k of them is known to sqrt(k (1 - k / 159)),
// which is added to the 15 %.
TEST(Heat, EventsThatAForecastLeavesAsInTheSweep) {
  struct Row {
    double supply_c, lead_s, recall, noise_s, events;
  };
  for (const Row& row :
       {Row{45, 30, 1, 15, 47.7}, Row{45, 60, 1, 15, 42.6}, Row{45, 90, 1, 15, 26.1},
        Row{45, 90, 1, 0, 27.0}, Row{45, 90, 1, 60, 26.4}, Row{45, 120, 1, 60, 15.3},
        Row{45, 120, 1, 15, 3.9}, Row{45, 180, 1, 15, 0}, Row{45, 120, 0.85, 15, 9.9},
        Row{46, 120, 0.85, 15, 30.9}, Row{42, 120, 0.85, 15, 6.3}}) {
    HeatSetup s = of_the_sweep(ThermalControl::kForecast, row.supply_c);
    s.control.lead = Seconds(row.lead_s);
    s.control.recall = row.recall;
    s.control.noise = Seconds(row.noise_s);
    const HeatResult r = reproduce(s);
    constexpr double kStepsPerDay = 47.7, kDays = 80.0 / 24;
    const double luck = std::sqrt(row.events * (1 - row.events / kStepsPerDay) / kDays);
    EXPECT_NEAR(per_day(r.events, r), row.events, 0.15 * row.events + luck)
        << row.supply_c << " C, " << row.lead_s << " s, " << row.recall << ", " << row.noise_s;
  }
}

TEST(Heat, FlowAtRestAsInTheSweep) {
  struct Row {
    double flow_min, events, lost_s;
  };
  for (const Row& row : {Row{0.25, 47.7, 607.1}, Row{0.75, 33.6, 0}, Row{0.9, 0, 0}}) {
    HeatSetup s = of_the_sweep(ThermalControl::kReactive, 45);
    s.loop.flow_min = row.flow_min;
    const HeatResult r = reproduce(s);
    EXPECT_NEAR(per_day(r.events, r), row.events, 0.15 * row.events) << row.flow_min;
    if (row.lost_s > 0) {
      EXPECT_NEAR(per_day(r.lost_slowest.v, r), row.lost_s, 0.15 * row.lost_s) << row.flow_min;
    }
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
      resistance_.push_back(1 + s.spread / 3 * normal_quantile(parts.uniform()));
    }
    Stream load(seed, cause_id("heat load")), seen(seed, cause_id("heat forecast")),
        noise(seed, cause_id("heat forecast noise"));
    bool busy = false;
    for (double t = 0; t < end;) {
      const double median = busy ? s.load.busy_median.v : s.load.low_median.v;
      t += lognormal_quantile(load.uniform(), median, s.load.sigma_ln);
      busy = !busy;
      changes_.push_back(t);
      if (!busy || s.control.policy != ThermalControl::kForecast) continue;
      const bool told = seen.uniform() < s.control.recall;
      const double shift = s.control.noise.v * normal_quantile(noise.uniform());
      if (told) full_flow_.push_back({t - s.control.lead.v - shift, changes_.size()});
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
          s_.loop.swing_k * std::sin(2 * M_PI * std::max(0.0, t) / kSecondsPerDay);
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
      // Full flow from the announcement until the busy phase that it announced is over.
      for (const auto& [from, change] : full_flow_) {
        if (t >= from && next <= change) wanted = 1;
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
  std::vector<std::pair<double, size_t>> full_flow_;
};

TEST(Heat, AgreesWithNaiveSteps) {
  HeatSetup foreseen = with(ThermalControl::kForecast, 44);
  foreseen.control.lead = Seconds(90);  // near the critical one: a pump told late is seen
  foreseen.control.recall = 1;
  for (const HeatSetup& s :
       {with(ThermalControl::kReactive, 40), with(ThermalControl::kReactive, 44), foreseen}) {
    const double supply = s.loop.supply_c;
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
