#include "report/run_series.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "plan/words.h"
#include "site/power.h"

namespace assay {
namespace {

constexpr int kPlotRows = 5;
constexpr size_t kLabel = 8;       // `  92.1 |`
constexpr size_t kGap = 3;         // between two plots
constexpr size_t kNarrowest = 36;  // of a plot whose title fits
constexpr double kMoves = 0.0005;  // clocks that stay within this are not plotted

// Sums over the site's hours from `from` on, which repeat.
struct HoursMean {
  double power = 0, running = 0, coolant = 0, coolant_max = -1e9, outside = 0;
};
HoursMean over_hours(const SiteSeries& site, double from_s, double to_s) {
  const auto first = static_cast<size_t>(from_s / kSecondsPerHour);
  const size_t last = std::max(first + 1, static_cast<size_t>(std::ceil(to_s / kSecondsPerHour)));
  HoursMean m;
  for (size_t i = first; i < last; ++i) {
    const SiteHour& h = site.hours[i % site.hours.size()];
    m.power += h.facility_power.v;
    m.running += h.running;
    m.coolant += h.coolant_c;
    m.coolant_max = std::max(m.coolant_max, h.coolant_c);
    m.outside += h.outside_c;
  }
  const auto n = static_cast<double>(last - first);
  m.power /= n, m.running /= n, m.coolant /= n, m.outside /= n;
  return m;
}

// The mean of all weather that runs draw from, and its hottest hour.
HoursMean over_weather(const SimulateResult& r, double from, double to) {
  HoursMean m = over_hours(*r.site, from, to);
  for (const SiteSeries& s : r.other_weather) {
    const HoursMean other = over_hours(s, from, to);
    m.power += other.power, m.running += other.running;
    m.coolant += other.coolant, m.outside += other.outside;
    m.coolant_max = std::max(m.coolant_max, other.coolant_max);
  }
  const auto n = static_cast<double>(r.other_weather.size() + 1);
  m.power /= n, m.running /= n, m.coolant /= n, m.outside /= n;
  return m;
}

bool has_hours(const SimulateResult& r) { return r.site && !r.site->hours.empty(); }

// Power of accelerators of which the site lets `running` run and `busy` step; `power` is what those
// that may run draw when all of them do.
double with_rest(double power, double running, double busy, double rest) {
  const double stepping = busy / std::max(running, 1e-9);
  return power * (rest + (1 - rest) * std::clamp(stepping, 0.0, 1.0));
}

struct Curve {
  std::string title;
  int decimals = 1;
  double least_range = 0;               // a flat curve is shown in a range of this
  std::vector<double> low, mean, high;  // of each day
  double least = -1e18, most = 1e18;    // what it can be
};

// Days into columns, each the mean of its own, with the extremes of the band.
Curve squeezed(const Curve& c, size_t columns) {
  const size_t n = c.mean.size();
  if (n <= columns) return c;
  Curve out = c;
  out.low.assign(columns, 1e18), out.high.assign(columns, -1e18), out.mean.assign(columns, 0);
  std::vector<double> days(columns, 0);
  for (size_t i = 0; i < n; ++i) {
    const size_t at = i * columns / n;
    out.low[at] = std::min(out.low[at], c.low[i]);
    out.high[at] = std::max(out.high[at], c.high[i]);
    out.mean[at] += c.mean[i];
    days[at] += 1;
  }
  for (size_t i = 0; i < columns; ++i) out.mean[i] /= days[i];
  return out;
}

std::vector<std::string> plot(const Curve& whole, size_t columns, double last_day) {
  const Curve c = squeezed(whole, columns);
  double low = *std::min_element(c.low.begin(), c.low.end());
  double high = *std::max_element(c.high.begin(), c.high.end());
  if (high - low < c.least_range) {
    const double middle = (high + low) / 2;
    low = middle - c.least_range / 2, high = middle + c.least_range / 2;
    // A share has no room beyond all and nothing.
    const double shift = low < c.least ? c.least - low : high > c.most ? c.most - high : 0;
    low += shift, high += shift;
  }
  std::vector<std::string> lines{whole.title};
  for (int row = kPlotRows - 1; row >= 0; --row) {
    const double from = low + (high - low) * row / kPlotRows;
    const double to = low + (high - low) * (row + 1) / kPlotRows;
    const auto inside = [&](double v) {
      return (v >= from || row == 0) && (v < to || row == kPlotRows - 1);
    };
    std::string line =
        right(fmt::format("{:.{}f}", (from + to) / 2, c.decimals), kLabel - 2) + " |";
    for (size_t i = 0; i < c.mean.size(); ++i) {
      line += inside(c.mean[i]) ? '*' : c.low[i] < to && c.high[i] >= from ? ':' : ' ';
    }
    lines.push_back(std::move(line));
  }
  lines.push_back(std::string(kLabel - 1, ' ') + "+" + std::string(c.mean.size(), '-'));
  lines.push_back(std::string(kLabel, ' ') + fmt::format("day 1 to {:.0f}", last_day));
  return lines;
}

std::vector<Curve> curves(const SimulateResult& r, const std::vector<DayPoint>& days) {
  const double bucket = r.many.bucket.v / kSecondsPerDay;
  const std::string by = bucket > 1 ? fmt::format(" by {} days", significant(bucket)) : " by day";
  Curve goodput{"Goodput" + by + ", %  (* mean, : p5 to p95)", 1, 1, {}, {}, {}, 0, 100};
  Curve clock{"Clocks, % of the step's", 2, 0.5, {}, {}, {}, 0, 100};
  Curve coolant{"Coolant supply, C  (* mean, : hottest hour)", 1, 2, {}, {}, {}};
  Curve power{"Facility power, MW", 2, 0, {}, {}, {}};
  double slowest = 1, fastest = 0;
  for (const DayPoint& d : days) {
    goodput.low.push_back(100 * d.goodput.p5);
    goodput.mean.push_back(100 * d.goodput.mean);
    goodput.high.push_back(100 * d.goodput.p95);
    clock.mean.push_back(100 * d.clock.mean);
    coolant.low.push_back(d.coolant_c);
    coolant.mean.push_back(d.coolant_c);
    coolant.high.push_back(d.coolant_max_c);
    power.mean.push_back(d.power.v / 1e6);
    slowest = std::min(slowest, d.clock.mean);
    fastest = std::max(fastest, d.clock.mean);
  }
  clock.low = clock.high = clock.mean;
  power.low = power.high = power.mean;
  const double most = *std::max_element(power.mean.begin(), power.mean.end());
  power.least_range = 0.05 * most;
  power.decimals = most < 1 ? 3 : 2;
  if (!has_hours(r)) return {goodput};
  std::vector<Curve> all{goodput, coolant, power};
  if (slowest < 1 - kMoves || fastest - slowest > kMoves) all.push_back(clock);
  return all;
}

}  // namespace

double rest_share(const SimulateResult& r) {
  const NodePower p = node_power(r.plan.description.setting.cluster, r.plan.prediction.power);
  return p.training.v > 0 ? p.idle.v / p.training.v : 1;
}

std::vector<DayPoint> day_series(const SimulateResult& r) {
  const double bucket = r.many.bucket.v;
  const double rest = rest_share(r);
  std::vector<DayPoint> days;
  for (size_t i = 0; i < r.many.series.size(); ++i) {
    const SeriesBand& s = r.many.series[i];
    const double from = static_cast<double>(i) * bucket;
    DayPoint d;
    d.day = from / kSecondsPerDay;
    d.goodput = s.goodput;
    d.clock = s.clock;
    double power = r.plan.run.power_w, running = 1;
    if (has_hours(r)) {
      const HoursMean m = over_weather(r, from, from + bucket);
      power = m.power;
      running = m.running;
      d.coolant_c = m.coolant;
      d.coolant_max_c = m.coolant_max;
      d.outside_c = m.outside;
    }
    d.power = Watts(with_rest(power, running, s.busy.mean, rest));
    days.push_back(d);
  }
  return days;
}

std::string series_text(const SimulateResult& r, const Style& style) {
  const std::vector<DayPoint> days = day_series(r);
  if (days.size() < 2) return "";
  const auto width = static_cast<size_t>(style.width);
  const std::vector<Curve> all = curves(r, days);
  const bool pairs = all.size() > 1 && (width - kGap) / 2 >= kLabel + kNarrowest;
  const size_t each = pairs ? (width - kGap) / 2 : width - 4;
  const double last = static_cast<double>(days.size()) * r.many.bucket.v / kSecondsPerDay;
  std::string out;
  for (size_t i = 0; i < all.size(); i += pairs ? 2 : 1) {
    const std::vector<std::string> a = plot(all[i], each - kLabel, last);
    std::vector<std::string> b;
    if (pairs && i + 1 < all.size()) b = plot(all[i + 1], each - kLabel, last);
    if (i > 0) out += "\n";
    for (size_t line = 0; line < a.size(); ++line) {
      out += b.empty() ? a[line] : left(a[line], each + kGap) + b[line];
      out += "\n";
    }
  }
  return out;
}

std::vector<TraceCounter> run_counters(const SimulateResult& r, const RunResult& run,
                                       Seconds bucket) {
  TraceCounter goodput{"goodput, %", {}}, clock{"clock, % of the step's", {}},
      power{"facility power, MW", {}}, coolant{"coolant supply, C", {}}, outside{"outside, C", {}};
  const double rest = rest_share(r);
  for (size_t i = 0; i < run.series.size(); ++i) {
    const SeriesPoint& s = run.series[i];
    const Seconds at = bucket * static_cast<double>(i);
    double watts = r.plan.run.power_w, running = 1;
    if (has_hours(r)) {
      const HoursMean m = over_hours(*r.site, at.v, (at + bucket).v);
      watts = m.power;
      running = m.running;
      coolant.values.emplace_back(at, m.coolant);
      outside.values.emplace_back(at, m.outside);
    }
    goodput.values.emplace_back(at, 100 * s.goodput);
    clock.values.emplace_back(at, 100 * s.clock);
    power.values.emplace_back(at, with_rest(watts, running, s.busy, rest) / 1e6);
  }
  std::vector<TraceCounter> all{goodput, clock, power};
  if (!coolant.values.empty()) all.insert(all.end(), {coolant, outside});
  return all;
}

}  // namespace assay
