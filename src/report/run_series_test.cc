#include "report/run_series.h"

#include <gtest/gtest.h>

#include "world/describe.h"

namespace assay {
namespace {

// A week of a small job at a hot site; the money of a site that draws what its series says.
SimulateResult week() {
  Request request;
  request.inputs = {"llama-3.1-8b", "h100-64", "phoenix"};
  request.sets = {"site.cooling=liquid-dry"};
  request.needs_operations = true;
  tl::expected<Description, Diagnostics> d = describe(request, catalog());
  EXPECT_TRUE(d) << render(d ? Diagnostics{} : d.error());
  SimulateResult r;
  const Operations operations = d->operations;
  const Site site = d->site;
  StudyOptions options;
  options.what_ifs = false;
  r.plan = study(std::move(*d), catalog(), options);
  FacilityOptions facility;
  facility.start_hour = 24 * 181;
  facility.hours = 24 * 7;
  facility.seed = 1;
  r.site = facility_series(site, r.plan.description.setting.cluster, facility);
  SpecInput input;
  input.setting = &r.plan.description.setting;
  input.plan = &r.plan.plan;
  input.prediction = &r.plan.prediction;
  input.operations = &operations;
  input.site = &site;
  input.series = &*r.site;
  input.period = Seconds(7 * kSecondsPerDay);
  r.spec = make_spec(input);
  ManyOptions many;
  many.runs = 10;
  r.many = simulate_many(r.spec.spec, many);
  r.money.kwh_per_gpu_hour = totals(*r.site).facility_kwh / (7 * 24 * 64);
  return r;
}

TEST(RunSeries, DaysHaveTheRunsEnergyAndTheSitesWeather) {
  const SimulateResult r = week();
  const std::vector<DayPoint> days = day_series(r);
  ASSERT_EQ(days.size(), 7u);
  double kwh = 0;
  for (const DayPoint& d : days) {
    kwh += d.power.v * 24 / 1000;
    EXPECT_GE(d.coolant_max_c, d.coolant_c);
    EXPECT_GT(d.coolant_c, d.outside_c);  // dry coolers
    EXPECT_LE(d.coolant_max_c, r.site->hours.size() > 0 ? 48.0 : 0);
    EXPECT_GT(d.clock.mean, 0.9);
    EXPECT_LE(d.clock.mean, 1);
    EXPECT_GE(d.goodput.mean, 0);
    EXPECT_LE(d.goodput.mean, 1);
  }
  // Two ways to the same energy: by days of the series, and by accounts of the ledger. The accounts
  // have the spares, too, at rest.
  EXPECT_NEAR(kwh / run_energy(r).kwh, 1, 0.05);
}

TEST(RunSeries, AFlatShareIsShownBetweenNothingAndAll) {
  SimulateResult r = week();
  for (const double flat : {0.0, 1.0}) {
    for (SeriesBand& b : r.many.series) b.goodput = {flat, flat, flat, flat};
    const std::string text = series_text(r, Style{});
    const std::string plot = text.substr(0, text.find("Facility"));
    EXPECT_EQ(plot.find("-0."), std::string::npos) << plot;
    EXPECT_EQ(plot.find("100."), std::string::npos) << plot;
    EXPECT_NE(plot.find(flat > 0 ? "99.9" : "0.1"), std::string::npos) << plot;
  }
}

TEST(RunSeries, PlotsFitTheScreenAndCountersTheRun) {
  const SimulateResult r = week();
  for (const int width : {80, 100, 140}) {
    Style style;
    style.width = width;
    const std::string text = series_text(r, style);
    for (const char* title : {"Goodput by day", "Coolant supply", "Facility power", "Clocks"})
      EXPECT_NE(text.find(title), std::string::npos) << title;
    size_t longest = 0, begin = 0;
    for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
      longest = std::max(longest, end - begin);
      begin = end + 1;
    }
    EXPECT_LE(longest, static_cast<size_t>(width));
  }
  RunOptions options;
  options.bucket = trace_bucket(r.spec.spec.period);
  const RunResult run = Simulator(r.spec.spec).run(1, options);
  const std::vector<TraceCounter> counters = run_counters(r, run, options.bucket);
  ASSERT_EQ(counters.size(), 5u);
  for (const TraceCounter& c : counters) {
    EXPECT_EQ(c.values.size(), 7u * 24) << c.name;
    for (const auto& [at, value] : c.values) EXPECT_TRUE(std::isfinite(value)) << c.name;
  }
}

}  // namespace
}  // namespace assay
