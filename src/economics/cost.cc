#include "economics/cost.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace assay {
namespace {

constexpr double kYearHours = 8760;
constexpr double kYearSeconds = kYearHours * kSecondsPerHour;
constexpr double kMinutesPerYear = 525960;  // 365.25 days

DollarRate per_year(Dollars d) { return DollarRate(d.v / kYearSeconds); }

// The rate that a cluster's accelerators are rented at, and who says so.
std::pair<DollarRate, std::string> rental(const Site& site, const Cluster& cluster,
                                          Seconds period) {
  const Offer& o = site.offer;
  if (const std::optional<DollarRate> price = rented_price(o, o.start, period)) {
    const bool mean = *price != *rented_price(o, o.start);
    return {*price, fmt::format("{}, {}{}", o.name.empty() ? "the site's offer" : o.name,
                                enum_names(o.commitment)[static_cast<size_t>(o.commitment)],
                                mean ? ", mean of its dates" : "")};
  }
  if (cluster.price.v > 0) return {cluster.price, "the cluster's price"};
  if (cluster.accelerator.price.v > 0) return {cluster.accelerator.price, "a median, on demand"};
  return {DollarRate(0), ""};
}

// Days since some day long ago; REQUIRES: is_date(date). A date without a day is its first.
double day_of(const std::string& date) {
  const int year = std::stoi(date.substr(0, 4));
  const int month = date.size() >= 7 ? std::stoi(date.substr(5, 2)) : 1;
  const int day = date.size() >= 10 ? std::stoi(date.substr(8, 2)) : 1;
  constexpr int kBefore[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  const int past = year - 1;
  return 365.0 * past + past / 4 - past / 100 + past / 400 + kBefore[month - 1] +
         (leap && month > 2 ? 1 : 0) + day;
}

DollarRate price_of(const PricePoint& p, Commitment c) {
  return c == Commitment::kOnDemand   ? p.on_demand
         : c == Commitment::kReserved ? p.reserved
                                      : p.spot;
}

}  // namespace

double capital_recovery(double rate, double years) {
  if (rate <= 0) return 1 / years;
  return rate / (1 - std::pow(1 + rate, -years));
}

HourCost owned_hour(const Offer& o, Watts power, double utilisation, double pue, EnergyPrice price,
                    int64_t accelerators) {
  HourCost c;
  const double left = o.residual / std::pow(1 + o.cost_of_capital, o.life_years);
  const Dollars capital = o.capex * (1 - left) * capital_recovery(o.cost_of_capital, o.life_years);
  c.hardware = per_year(capital * (1 - o.network_share));
  c.network = per_year(capital * o.network_share);
  c.energy = DollarRate(power.v * utilisation * pue * price.v);
  const double kw = power.v / 1000;
  c.space = DollarRate(o.colocation_usd_per_kw_month * 12 * kw / kYearSeconds);
  c.maintenance = per_year(o.capex * o.maintenance);
  const auto n = static_cast<double>(std::max<int64_t>(1, accelerators));
  c.people = per_year(o.staff_cost * (o.staff / n));
  return c;
}

std::optional<DollarRate> rented_price(const Offer& o, const std::string& date) {
  std::optional<DollarRate> found;
  for (const PricePoint& p : o.prices) {
    if (!date.empty() && p.from > date) break;
    const DollarRate price = price_of(p, o.commitment);
    if (price.v > 0) found = price;
  }
  return found;
}

std::optional<DollarRate> rented_price(const Offer& o, const std::string& date, Seconds period) {
  std::optional<DollarRate> now = rented_price(o, date);
  const bool follows = !date.empty() && period.v > 0 && std::isfinite(period.v);
  if (!now || !follows || o.commitment == Commitment::kReserved) return now;
  const double begin = day_of(date), end = begin + period.v / kSecondsPerDay;
  double at = begin, sum = 0;
  for (const PricePoint& p : o.prices) {
    const DollarRate price = price_of(p, o.commitment);
    const double from = day_of(p.from);
    if (!(price.v > 0) || from <= begin) continue;
    if (from >= end) break;
    sum += now->v * (from - at);
    at = from;
    now = price;
  }
  return DollarRate((sum + now->v * (end - at)) / (end - begin));
}

double usd_per_useful_exaflop(DollarRate rate, FlopRate peak, double mfu, double goodput) {
  const double useful = peak.v * mfu * goodput;
  return useful > 0 ? rate.v / useful * 1e18 : 0;
}

Bill bill(const Site& site, const Cluster& cluster, const SiteSeries& series, Seconds period) {
  Bill b;
  const FacilityTotals t = totals(series);
  const auto hours = static_cast<double>(series.hours.size());
  b.kwh = t.facility_kwh;
  b.carbon_kg = t.carbon_kg;
  b.water_l = t.water_l;
  b.accelerator_hours = hours * static_cast<double>(cluster.accelerators());
  const double seconds = b.accelerator_hours * kSecondsPerHour;
  b.rented = site.offer.tenure == Tenure::kRented;
  if (b.rented) {
    const auto [rate, from] = rental(site, cluster, period);
    b.rent = rate * Seconds(seconds);
    b.price_known = rate.v > 0;
    b.price_from = from;
  } else {
    // Space is rented by what racks may draw, whichever step runs.
    const Watts power =
        node_power(cluster).training / static_cast<double>(cluster.node.accelerators);
    const HourCost c = owned_hour(site.offer, power, 0, 1, EnergyPrice(0), cluster.accelerators());
    b.hardware = c.hardware * Seconds(seconds);
    b.network = c.network * Seconds(seconds);
    b.space = c.space * Seconds(seconds);
    b.maintenance = c.maintenance * Seconds(seconds);
    b.people = c.people * Seconds(seconds);
    b.energy = t.energy_cost;
    const double months = hours / (kYearHours / 12);
    b.energy += Dollars(site.power.tariff.demand_usd_per_kw_month * t.highest.v / 1000 * months);
    b.price_from = site.offer.name.empty() ? "the site's offer" : site.offer.name;
  }
  b.total = b.rent + b.hardware + b.network + b.energy + b.space + b.maintenance + b.people;
  b.per_hour = DollarRate(seconds > 0 ? b.total.v / seconds : 0);
  return b;
}

Dollars energy_per_year(double nodes, Watts busy, Watts idle, double utilisation, double pue,
                        EnergyPrice price) {
  const Watts mean = busy * utilisation + idle * (1 - utilisation);
  return Joules(nodes * mean.v * pue * kYearSeconds) * price;
}

Watts implied_node_power(Dollars per_year, double nodes, double utilisation, double pue,
                         EnergyPrice price) {
  return Watts(per_year.v / (price.v * kYearSeconds * nodes * utilisation * pue));
}

double downtime_minutes(const Tier& t) { return (1 - t.availability) * kMinutesPerYear; }

Dollars downtime_cost(const Tier& t, int64_t accelerators, DollarRate price) {
  return price * Seconds(downtime_minutes(t) * 60 * static_cast<double>(accelerators));
}

ShiftValue shift_value(const std::vector<double>& profile, int hours, double kwh_per_year,
                       DollarRate per_hour, int64_t accelerators) {
  ShiftValue v;
  v.window = best_window(profile, hours);
  v.mean = best_window(profile, 24).mean;
  v.saving = v.mean > 0 ? 1 - v.window.mean / v.mean : 0;
  v.energy_saved = Dollars(kwh_per_year / 1000 * (v.mean - v.window.mean));
  const double more = 24.0 / hours - 1;  // accelerators beyond those that run all day
  v.capital_idle = per_hour * Seconds(kYearSeconds * more * static_cast<double>(accelerators));
  return v;
}

}  // namespace assay
