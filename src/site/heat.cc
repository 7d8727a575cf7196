// The network of one accelerator i, with flow q shared by the group:
//
//     P_i  = idle + u (tdp - idle) f_i^g + leak (e^(k (T_i - 60)) - 1)
//     T_i  = B_i + r_i R_c P_i                            junction; follows power within 0.3 s
//     B_i' = (P_i - (B_i - F_i) / R_i) / C                plate;  R_i = r_i R_v q^-0.8
//     F_i  = S + P_i / (2 q G)                            mean coolant over the plate
//     q'   = clip((q_command(t - delay) - q) / tau, slew) pump
//
// The firmware looks once a second: hot -> one step down, cool -> half a step up, very hot -> half
// clock. So a second is the natural step near the limit, and there the plate is advanced exactly
// for constant power (it is linear in B): no stability limit, no sub-steps. Far from the limit,
// with all clocks up and the flow settled, nothing happens for minutes: steps grow to what the pump
// and the plates allow, and stop at the next change of load or of the forecast. A day costs a few
// milliseconds; the test steps it naively every 100 ms and compares.
#include "site/heat.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/assert.h"
#include "base/random.h"
#include "site/power.h"

namespace assay {
namespace {

constexpr double kGuardK = 0.5;      // nearer to the limit than this, every second counts
constexpr double kMovingK = 1;       // plates this far from where they are headed are moving
constexpr double kHottest = 150;     // leakage is not followed beyond: parts are off by then
constexpr double kLongestStep = 20;  // s

// Load steps and the forecast's announcements, each in order of time.
struct Change {
  double at = 0;
  double load = 0;       // from then on
  double announced = 0;  // when the forecast told the pump; infinity: it did not
};

std::vector<Change> draw_changes(const HeatSetup& s, double end, uint64_t seed) {
  Stream load(seed, cause_id("heat load")), seen(seed, cause_id("heat forecast")),
      noise(seed, cause_id("heat forecast noise"));
  std::vector<Change> all;
  double t = 0;
  bool busy = false;
  while (t < end) {
    const double median = busy ? s.load.busy_median.v : s.load.low_median.v;
    t += lognormal_quantile(load.uniform(), median, s.load.sigma_ln);
    busy = !busy;
    Change c{t, busy ? 1.0 : s.load.low, std::numeric_limits<double>::infinity()};
    if (busy) {
      const bool told = seen.uniform() < s.control.recall;
      const double shift = s.control.noise.v * normal_quantile(noise.uniform());
      if (told) c.announced = t - s.control.lead.v - shift;
    }
    all.push_back(c);
  }
  return all;
}

class Group {
 public:
  Group(const HeatSetup& s, double days, uint64_t seed)
      : s_(s), end_(days * kSecondsPerDay), changes_(draw_changes(s, end_, seed)) {
    Stream parts(seed, cause_id("heat parts"));
    const auto n = static_cast<size_t>(s.accelerators);
    resistance_.resize(n);
    for (double& r : resistance_) r = 1 + s.spread / 3 * normal_quantile(parts.uniform());
    clock_.assign(n, 1);
    off_.assign(n, false);
    junction_.assign(n, 0);
    flow_ = command_ = wanted_ = s.loop.flow_min;
    load_ = s.load.low;
    plate_.assign(n, supply());
    for (int i = 0; i < 50; ++i) advance_plates(60);  // at rest when the day begins
    capped_ = s.control.policy == ThermalControl::kPowerCap ||
              s.control.policy == ThermalControl::kForecastAndCap;
    forecast_ = s.control.policy == ThermalControl::kForecast ||
                s.control.policy == ThermalControl::kForecastAndCap;
  }

  HeatResult run() {
    while (now_ < end_) {
      take_changes();
      const double dt = step_length();
      control_flow(dt);
      if (capped_) cap_power();
      advance_plates(dt);
      advance_flow(dt);
      now_ += dt;
      account(dt);
      firmware(dt);
      ++out_.steps;
    }
    out_.days = end_ / kSecondsPerDay;
    return out_;
  }

 private:
  double supply() const {
    return s_.loop.supply_c +
           s_.loop.swing_k * std::sin(2 * std::numbers::pi * now_ / kSecondsPerDay);
  }

  void take_changes() {
    while (next_ < changes_.size() && changes_[next_].at <= now_) {
      load_ = changes_[next_].load;
      cool_ = false;
      out_.load_steps += load_ == 1 ? 1 : 0;
      ++next_;
    }
  }

  // The announcement in force: of the next step to busy, or of the busy phase that runs.
  bool announced() const {
    if (!forecast_) return false;
    if (load_ == 1 && next_ > 0 && changes_[next_ - 1].announced <= now_) return true;
    return load_ != 1 && next_ < changes_.size() && changes_[next_].announced <= now_;
  }

  // A second where clocks may move; else as far as nothing changes: an eighth of the pump's lag
  // while flow moves, and never past the next load step, announcement or the pump's dead time.
  double step_length() const {
    if (!cool_ || pending_ || capped_near_) return 1;
    if (announced() && wanted_ < 1) return 1;  // the pump is about to be told
    if (std::abs(headed_ - hottest_) > kMovingK) return 1;
    const double settle = std::abs(command_ - flow_);
    // A controller between its ends closes a loop around the plates, which long steps would shake.
    const auto inside = [&](double q) { return q > s_.loop.flow_min && q < 1; };
    if (inside(command_) || inside(wanted_)) return settle > 0.005 ? 1 : 5;
    double dt =
        settle > 1e-3 ? std::clamp(s_.loop.pump_tau.v / 8, 1.0, kLongestStep) : kLongestStep;
    if (next_ < changes_.size()) {
      const Change& c = changes_[next_];
      dt = std::min(dt, c.at - now_);
      if (forecast_ && c.announced > now_) dt = std::min(dt, c.announced - now_);
    }
    return std::max(1.0, std::floor(dt));
  }

  // PI on the hottest junction; the forecast overrides it. The command reaches the pump after the
  // dead time, kept as the moment at which the last change of the command will arrive.
  void control_flow(double dt) {
    const double error = hottest_ - s_.control.target_c;
    double wanted = s_.loop.flow_min + s_.control.gain * error + integral_;
    // The integral rests while the command is at either end: no wind-up.
    if (wanted > s_.loop.flow_min && wanted < 1) {
      integral_ += s_.control.integral_gain * error * dt;
    }
    if (announced()) wanted = 1;
    wanted = std::clamp(wanted, s_.loop.flow_min, 1.0);
    wanted_ = wanted;
    delayed_.push_back({now_ + s_.loop.pump_delay.v, wanted});
    while (first_ < delayed_.size() && delayed_[first_].at <= now_)
      command_ = delayed_[first_++].flow;
    pending_ = first_ < delayed_.size() && std::abs(delayed_.back().flow - command_) > 0.02;
    if (first_ > 4096) {
      delayed_.erase(delayed_.begin(), delayed_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
  }

  void advance_flow(double dt) {
    const double target =
        command_ + (flow_ - command_) * std::exp(-dt / std::max(1e-3, s_.loop.pump_tau.v));
    const double most = s_.loop.slew_per_s * dt;
    flow_ = std::clamp(target, flow_ - most, flow_ + most);
  }

  double power(size_t i, double clock) const {
    const GpuThermal& g = s_.gpu;
    if (off_[i]) return 0;
    const double scale = clock >= 1 ? 1 : std::pow(clock, g.clock_exponent);
    return g.idle.v + load_ * (g.tdp - g.idle).v * scale +
           leakage(g, std::min(junction_[i], kHottest));
  }

  void advance_plates(double dt) {
    const GpuThermal& g = s_.gpu;
    const double film = g.plate_k_per_w * std::pow(flow_, -kFlowExponent);
    const double half_rise = 1 / (2 * flow_ * g.coolant_w_per_k);
    const double in = supply();
    hottest_ = headed_ = -1e9;
    double hbm = -1e9;
    for (size_t i = 0; i < plate_.size(); ++i) {
      // Leakage follows the junction; two rounds settle it to a hundredth of a kelvin.
      double p = power(i, clock_[i]);
      junction_[i] = plate_[i] + resistance_[i] * g.die_k_per_w * p;
      p = power(i, clock_[i]);
      const double r = resistance_[i] * film;
      const double settled = in + p * (half_rise + r);
      headed_ = std::max(headed_, settled + resistance_[i] * g.die_k_per_w * p);
      plate_[i] = settled + (plate_[i] - settled) * std::exp(-dt / (r * g.plate_j_per_k));
      junction_[i] = plate_[i] + resistance_[i] * g.die_k_per_w * p;
      hottest_ = std::max(hottest_, junction_[i]);
      hbm = std::max(hbm, plate_[i] + g.hbm_offset_k + g.hbm_k_per_w * p);
    }
    hottest_hbm_ = hbm;
    out_.hottest_hbm_c = std::max(out_.hottest_hbm_c, hbm);
    out_.hottest_c = std::max(out_.hottest_c, hottest_);
  }

  // Clocks at which the junction, `horizon` ahead and with the flow as it is, stays below the
  // limit.
  void cap_power() {
    const GpuThermal& g = s_.gpu;
    capped_near_ = false;
    const double film = g.plate_k_per_w * std::pow(flow_, -kFlowExponent);
    const double half_rise = 1 / (2 * flow_ * g.coolant_w_per_k);
    const double limit = g.max_c - s_.control.cap_margin_k;
    for (size_t i = 0; i < plate_.size(); ++i) {
      const double r = resistance_[i] * film;
      const double kept = std::exp(-s_.control.cap_horizon.v / (r * g.plate_j_per_k));
      const double slope = resistance_[i] * g.die_k_per_w + (1 - kept) * (half_rise + r);
      const double base = kept * plate_[i] + (1 - kept) * supply();
      const double now = (limit - plate_[i]) / (resistance_[i] * g.die_k_per_w);
      const double allowed = std::min(now, (limit - base) / slope);
      const double dynamic = (allowed - g.idle.v - leakage(g, std::min(limit, kHottest))) /
                             (load_ * (g.tdp - g.idle).v);
      clock_[i] = dynamic >= 1 ? 1 : std::pow(std::max(dynamic, 0.05), 1 / g.clock_exponent);
      if (dynamic < 1.02) capped_near_ = true;
    }
  }

  void account(double dt) {
    double slowest = 1, sum = 0;
    for (size_t i = 0; i < clock_.size(); ++i) {
      const double held = load_ == 1 ? (off_[i] ? 0 : clock_[i]) : 1;
      slowest = std::min(slowest, held);
      sum += 1 - held;
      if (held < 1) out_.throttled += Seconds(dt);
    }
    out_.lost_slowest += Seconds((1 - slowest) * dt);
    out_.lost_mean += Seconds(sum * dt / static_cast<double>(clock_.size()));
    out_.pump_power += flow_ * flow_ * flow_ * dt / end_;
  }

  void firmware(double dt) {
    const GpuThermal& g = s_.gpu;
    cool_ = true;
    bool any = false;
    for (size_t i = 0; i < clock_.size(); ++i) {
      if (off_[i]) continue;
      const double memory = plate_[i] + g.hbm_offset_k + g.hbm_k_per_w * power(i, clock_[i]);
      const bool hot = junction_[i] >= g.max_c || memory >= g.hbm_max_c;
      if (junction_[i] >= g.shutdown_c) {
        off_[i] = true;
        ++out_.shutdowns;
      } else if (hot) {
        clock_[i] -= g.step_down * dt;
      } else if (!capped_ && junction_[i] < g.max_c - g.hysteresis_k) {
        clock_[i] = std::min(1.0, clock_[i] + g.step_up * dt);
      }
      if (junction_[i] >= g.slowdown_c) {
        out_.slowdowns += clock_[i] > g.hardware_clock ? 1 : 0;
        clock_[i] = std::min(clock_[i], g.hardware_clock);
      }
      clock_[i] = std::max(clock_[i], 0.1);
      any = any || hot;
      if (clock_[i] < 1) cool_ = false;
    }
    if (any) {
      if (now_ - last_hot_ > s_.quiet.v) out_.events += 1;
      last_hot_ = now_;
    }
    // Where the plates are headed counts, too: a load step heats them within ten seconds. Flow that
    // falls under load moves that point, so then every second counts.
    const double bound = std::max(hottest_, headed_) + kGuardK;
    const bool falling = load_ == 1 && flow_ > command_ + 0.01;
    if (bound > g.max_c || falling || hottest_hbm_ + kGuardK > g.hbm_max_c) cool_ = false;
  }

  struct Delayed {
    double at, flow;
  };

  const HeatSetup& s_;
  double end_;
  std::vector<Change> changes_;
  std::vector<double> resistance_, clock_, plate_, junction_;
  std::vector<char> off_;
  std::vector<Delayed> delayed_;
  size_t next_ = 0, first_ = 0;
  double now_ = 0, load_ = 0, flow_ = 1, command_ = 0, wanted_ = 0, integral_ = 0;
  double hottest_ = 0, headed_ = 0, hottest_hbm_ = 0, last_hot_ = -1e18;
  bool capped_ = false, capped_near_ = false, forecast_ = false, cool_ = true, pending_ = false;
  HeatResult out_;
};

}  // namespace

HeatResult simulate_heat(const HeatSetup& setup, double days, uint64_t seed) {
  ASSERT(setup.accelerators > 0 && days > 0);
  return Group(setup, days, seed).run();
}

HeatResult simulate_heat_runs(const HeatSetup& setup, double days_each, int runs, uint64_t first) {
  HeatResult sum;
  for (int i = 0; i < runs; ++i) {
    const HeatResult r = simulate_heat(setup, days_each, first + static_cast<uint64_t>(i));
    sum.days += r.days;
    sum.load_steps += r.load_steps;
    sum.events += r.events;
    sum.throttled += r.throttled;
    sum.lost_mean += r.lost_mean;
    sum.lost_slowest += r.lost_slowest;
    sum.pump_power += r.pump_power / runs;
    sum.hottest_c = std::max(sum.hottest_c, r.hottest_c);
    sum.hottest_hbm_c = std::max(sum.hottest_hbm_c, r.hottest_hbm_c);
    sum.slowdowns += r.slowdowns;
    sum.shutdowns += r.shutdowns;
    sum.steps += r.steps;
  }
  return sum;
}

}  // namespace assay
