#include "site/facility.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "site/bursts.h"
#include "site/rejection.h"
#include "site/schedule.h"

namespace assay {
namespace {

constexpr double kAirRiseK = 52;  // junction over inlet at the limit: 0.075 K/W x 700 W
// Kinds of weather that runs draw from, and hours of all of them: memory and start-up time.
constexpr int64_t kWeatherMost = 20, kWeatherHours = 100'000;
// Failure rates double every ten kelvin: the usual reading of Arrhenius' law for electronics, from
// memory; the hottest cages of Titan failed 3.3 times as often as the coolest.
constexpr double kDoublesEveryK = 10;

// Kelvin that a junction is above its coolant, per watt.
double rise_k_per_w(const GpuThermal& g, CoolingMethod method) {
  const bool liquid = method == CoolingMethod::kDirectLiquid || method == CoolingMethod::kImmersion;
  return liquid ? g.die_k_per_w + g.plate_k_per_w + 1 / (2 * g.coolant_w_per_k)
                : kAirRiseK / g.tdp.v;
}

bool within(int64_t x, int64_t from, int64_t to) {
  return from < to ? x >= from && x < to : x >= from || x < to;
}

// What is the same in every hour.
class Hours {
 public:
  Hours(const Site& site, const Cluster& cluster, Watts step_power)
      : site_(site),
        cluster_(cluster),
        weather_(site.climate),
        node_(node_power(cluster, step_power)),
        nodes_(static_cast<double>(cluster.nodes)),
        prices_(price_profile(site.power.tariff)),
        carbon_(carbon_profile(site.power.tariff)),
        bursts_(cluster.accelerator, site.cooling, site.cooling.supply_c,
                std::max(site.cooling.supply_c, site.cooling.supply_max_c)) {
    for (int m = 0; m < 12; ++m) windows_[m] = chosen_window(site, m);
    reference_c_ = coolant_like_air(cluster.accelerator, site.cooling.method, cluster.inlet_c);
    full_ = node_.training * nodes_;
    dynamic_ = node_.training - node_.idle;
  }

  SiteHour hour(int64_t at, uint64_t seed) const {
    SiteHour out;
    const WeatherHour w = seed == 0 ? weather_.mean(at) : weather_.sample(at, seed);
    const auto h = static_cast<size_t>(hour_of_day(at));
    out.outside_c = w.dry_c;
    out.scheduled = windows_[month_of(at)].contains(hour_of_day(at));
    out.price = EnergyPrice(prices_[h] / (1000 * kJoulesPerKwh));
    out.carbon_g_per_kwh = carbon_[h];
    out.running = out.scheduled ? 1 : 0;
    const PlantState cool = plant_at(site_.cooling, w, full_, full_);
    out.coolant_c = cool.supply_c;
    out.thermal_clock =
        bursts_.clock(cool.supply_c) *
        clock_at_coolant(cluster_.accelerator, site_.cooling.method, cool.supply_c, reference_c_);
    out.wear = wear_at(cool.supply_c, reference_c_);
    out.running *= cool.heat_share;
    fit_power(out, w, at);
    const PlantState state = settle(out, w);
    out.water_l = state.water_l_per_h;
    return out;
  }

 private:
  Watts it_power(const SiteHour& h) const {
    const double clock = std::pow(h.thermal_clock * h.cap_clock, GpuThermal{}.clock_exponent);
    return (node_.idle + h.running * clock * dynamic_) * nodes_;
  }

  PlantState settle(SiteHour& h, const WeatherHour& w) const {
    h.it_power = it_power(h);
    const PlantState state = plant_at(site_.cooling, w, h.it_power, full_);
    h.facility_power = h.it_power * pue(state, h.it_power, site_.power.ups_loss);
    return state;
  }

  // A cap is kept by clocks; what the grid does not give is kept by nodes at rest.
  void fit_power(SiteHour& h, const WeatherHour& w, int64_t at) const {
    const Watts cap = site_.power.cap;
    Watts limit = site_.power.contracted * power_left(site_.power, at);
    if (cap.v > 0) {
      const double clock = solve(h, w, cap, [](SiteHour& x, double v) { x.cap_clock = v; });
      h.cap_clock = std::max(kLeastClock, clock);
      // What clocks cannot keep, nodes at rest must.
      if (clock < kLeastClock) limit = std::min(limit, cap);
    }
    const double most = h.running;
    const double share = solve(h, w, limit, [&](SiteHour& x, double v) { x.running = most * v; });
    h.running = most * share;
    if (site_.power.distribution.v > 0) {
      const double excess = it_power(h) / site_.power.distribution;
      if (excess > 1) h.running /= excess;
    }
  }

  // The largest value up to 1 at which facility power stays below the limit.
  template <class Set>
  double solve(SiteHour h, const WeatherHour& w, Watts limit, Set&& set) const {
    set(h, 1);
    settle(h, w);
    if (h.facility_power <= limit) return 1;
    double low = 0, high = 1;
    for (int i = 0; i < 30; ++i) {
      const double v = (low + high) / 2;
      set(h, v);
      settle(h, w);
      (h.facility_power > limit ? high : low) = v;
    }
    return low;
  }

  const Site& site_;
  const Cluster& cluster_;
  Weather weather_;
  NodePower node_;
  double nodes_;
  std::vector<double> prices_, carbon_;
  BurstTable bursts_;
  HourWindow windows_[12];
  Watts full_, dynamic_;
  double reference_c_ = 25;  // coolant at which the clocks are those of the step
};

SiteSeries made(const Hours& hours, const FacilityOptions& options, uint64_t seed) {
  SiteSeries series;
  series.start_hour = options.start_hour % kHoursPerYear;
  series.hours.reserve(static_cast<size_t>(options.hours));
  for (int64_t i = 0; i < options.hours; ++i) {
    series.hours.push_back(hours.hour(options.start_hour + i, seed));
  }
  return series;
}

}  // namespace

double power_left(const Power& p, int64_t hour_of_year) {
  double left = 1;
  for (const Curtailment& c : p.curtailment) {
    const bool hours = within(hour_of_day(hour_of_year), c.from_hour, c.to_hour);
    const bool months = within(month_of(hour_of_year) + 1, c.from_month, c.to_month % 12 + 1);
    const bool all_year = c.from_month == c.to_month % 12 + 1;
    if (hours && (months || all_year)) left = std::min(left, c.share);
  }
  return left;
}

double coolant_like_air(const Accelerator& a, CoolingMethod method, double inlet_c) {
  const GpuThermal g = thermal_of(a);
  return inlet_c + kAirRiseK - rise_k_per_w(g, method) * g.tdp.v;
}

double clock_at_coolant(const Accelerator& a, CoolingMethod method, double coolant_c,
                        double reference_c) {
  const GpuThermal g = thermal_of(a);
  const double warm = std::min(1.0, speed_at(std::max(coolant_c, reference_c), reference_c));
  const double rise = rise_k_per_w(g, method);
  // A board holds its power limit, so leakage at the limit is paid by clocks, not by heat.
  const Watts allowed((g.max_c - coolant_c) / rise);
  if (allowed >= g.tdp) return warm;
  return std::min(warm, clock_under_cap(g, 1, allowed, kLeakNeutral));
}

double wear_at(double coolant_c, double reference_c) {
  return std::exp2(std::max(0.0, coolant_c - reference_c) / kDoublesEveryK);
}

SiteSeries facility_series(const Site& site, const Cluster& cluster,
                           const FacilityOptions& options) {
  return made(Hours(site, cluster, options.step_power), options, options.seed);
}

int64_t weather_count(int64_t hours) {
  return std::clamp<int64_t>(kWeatherHours / std::max<int64_t>(1, hours), 1, kWeatherMost);
}

std::vector<SiteSeries> facility_weather(const Site& site, const Cluster& cluster,
                                         const FacilityOptions& options, int64_t count) {
  const Hours hours(site, cluster, options.step_power);
  std::vector<SiteSeries> all;
  for (int64_t k = 0; k < count; ++k) {
    // Zero would be the mean of many years.
    const uint64_t seed =
        Stream(options.seed, cause_id("weather"), static_cast<uint64_t>(k)).bits() | 1;
    all.push_back(made(hours, options, seed));
  }
  return all;
}

FacilityTotals totals(const SiteSeries& s) {
  FacilityTotals t;
  const auto n = static_cast<double>(s.hours.size());
  if (s.hours.empty()) return t;
  double used = 0, clock = 0, running = 0;
  for (const SiteHour& h : s.hours) {
    t.it_kwh += h.it_power.v / 1000;
    t.facility_kwh += h.facility_power.v / 1000;
    t.energy_cost += Joules(h.facility_power.v * kSecondsPerHour) * h.price;
    t.carbon_kg += h.facility_power.v / 1000 * h.carbon_g_per_kwh / 1000;
    t.water_l += h.water_l;
    t.highest = std::max(t.highest, h.facility_power);
    t.hottest_coolant_c = std::max(t.hottest_coolant_c, h.coolant_c);
    if (!h.scheduled) continue;
    used += 1;
    running += h.running;
    clock += h.thermal_clock * h.cap_clock;
  }
  t.scheduled = used / n;
  t.running = used > 0 ? running / used : 0;
  t.clock = used > 0 ? clock / used : 1;
  t.pue = t.it_kwh > 0 ? t.facility_kwh / t.it_kwh : 1;
  return t;
}

}  // namespace assay
