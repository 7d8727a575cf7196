#include "site/facility.h"

#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "base/csv.h"
#include "site/rejection.h"
#include "site/schedule.h"
#include "world/catalog.h"
#include "world/names.h"

namespace assay {
namespace {

const Climate& climate(const std::string& name) { return *find_entry<Climate>(catalog(), name); }

TEST(Weather, FreeCoolingHoursAsCountedOnHourlyYears) {
  const Result<CsvTable> table = read_csv(ASSAY_ROOT "/test/data/figures/free_cooling_hours.csv");
  ASSERT_TRUE(table);
  const std::map<std::string, std::string> names = {
      {"N. Virginia (Leesburg)", "n-virginia"}, {"Dallas TX (Open-Meteo)", "dallas-open-meteo"}};
  double sum_dry = 0, sum_wet = 0, worst = 0;
  for (const CsvRow& row : table->rows) {
    std::string site(table->cell(row, "site"));
    const auto known = names.find(site);
    if (known != names.end()) {
      site = known->second;
    } else if (site.size() > 3 && site[site.size() - 3] == ' ') {
      site.resize(site.size() - 3);
    }
    const Climate* c = find_entry<Climate>(catalog(), site);
    ASSERT_NE(c, nullptr) << site;
    const Weather weather(*c);
    const auto number = [&](const char* key) {
      return std::stod(std::string(table->cell(row, key)));
    };
    const double water = number("facility_water_supply_c");
    const double dry = 100 * weather.share_below(water - number("dry_cooler_approach_k"), false) -
                       number("pct_hours_dry_cooler_alone");
    const double wet = 100 * weather.share_below(water - number("wet_tower_approach_k"), true) -
                       number("pct_hours_wet_tower_alone");
    sum_dry += std::abs(dry);
    sum_wet += std::abs(wet);
    worst = std::max({worst, std::abs(dry), std::abs(wet)});
  }
  const auto n = static_cast<double>(table->rows.size());
  ASSERT_GT(n, 100);
  EXPECT_LT(sum_dry / n, 0.8);  // points of a year
  EXPECT_LT(sum_wet / n, 0.5);
  EXPECT_LT(worst, 5.5);
}

TEST(Weather, ASampledYearHasTheMeanAndTheExtremesOfItsClimate) {
  const Weather weather(climate("phoenix"));
  double sum = 0, mean = 0;
  int64_t below = 0, hours = 0;
  constexpr int kYears = 5;
  for (int64_t h = 0; h < kYears * kHoursPerYear; h += 3) {
    const double t = weather.sample(h, 4).dry_c;
    sum += t;
    mean += weather.mean(h).dry_c;
    below += t <= 24 ? 1 : 0;
    ++hours;
  }
  EXPECT_NEAR(sum / static_cast<double>(hours), mean / static_cast<double>(hours), 0.5);
  const double share = static_cast<double>(below) / static_cast<double>(hours);
  EXPECT_NEAR(share, weather.share_below(24, false), 0.03);
  EXPECT_EQ(weather.sample(100, 4).dry_c, weather.sample(100, 4).dry_c);
  EXPECT_NE(weather.sample(100, 4).dry_c, weather.sample(100, 5).dry_c);
}

// Summers differ from year to year by more than their days' luck alone would make them, and a month
// keeps its variance.
TEST(Weather, SummersDifferBetweenYears) {
  const Weather weather(climate("phoenix"));
  const int64_t july = 181 * 24;
  std::vector<double> summers;
  double square = 0, count = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    double sum = 0;
    for (int64_t h = july; h < july + 60 * 24; h += 6) {
      const double anomaly = weather.sample(h, seed).dry_c - weather.mean(h).dry_c;
      sum += anomaly / 240;
      square += anomaly * anomaly;
      ++count;
    }
    summers.push_back(sum);
  }
  double variance = 0;
  for (const double s : summers) variance += s * s / 200;
  EXPECT_GT(std::sqrt(variance), 0.8);  // days alone, correlated over a week: 0.7 K
  EXPECT_LT(std::sqrt(variance), 1.6);
  const double month = weather.sigma(july, false);
  EXPECT_NEAR(std::sqrt(square / count), month, 0.15 * month);
}

TEST(Facility, EveryKindOfWeatherIsTheSameForEveryPlant) {
  Site site = *find_entry<Site>(catalog(), "phoenix");
  const Cluster& cluster = *find_entry<Cluster>(catalog(), "h100-1024");
  FacilityOptions options;
  options.hours = 48;
  options.seed = 3;
  const std::vector<SiteSeries> all = facility_weather(site, cluster, options, 5);
  site.cooling.trim_chiller = !site.cooling.trim_chiller;
  const std::vector<SiteSeries> other = facility_weather(site, cluster, options, 5);
  ASSERT_EQ(all.size(), 5u);
  for (size_t k = 0; k < 5; ++k) {
    ASSERT_EQ(all[k].hours.size(), 48u);
    for (size_t h = 0; h < 48; ++h)
      EXPECT_EQ(all[k].hours[h].outside_c, other[k].hours[h].outside_c);
    if (k > 0) {
      EXPECT_NE(all[k].hours[0].outside_c, all[0].hours[0].outside_c);
    }
  }
  EXPECT_EQ(weather_count(1296), 20);
  EXPECT_EQ(weather_count(kHoursPerYear), 11);
  EXPECT_EQ(weather_count(10 * kHoursPerYear), 1);
}

TEST(Weather, DesignConditionsAreAshraes) {
  // climate_design.csv: 0.4 % dry-bulb, 0.4 % wet-bulb.
  const std::tuple<const char*, double, double> published[] = {{"dallas", 38.6, 25.9},
                                                               {"n-virginia", 35.0, 26.3},
                                                               {"seattle", 30.0, 19.3},
                                                               {"frankfurt", 32.0, 21.5}};
  for (const auto& [place, dry, wet] : published) {
    const Weather weather(climate(place));
    EXPECT_NEAR(weather.quantile(0.996, false), dry, 2) << place;
    EXPECT_NEAR(weather.quantile(0.996, true), wet, 2) << place;
  }
}

TEST(Rejection, HotterAirNeverMakesColderWaterOrLessPower) {
  for (const Cooling& c : catalog().cooling) {
    double last_supply = -100, last_power = 0;
    for (double t = -10; t <= 45; t += 1) {
      const PlantState s = plant_at(c, {t, t - 5}, Watts(1e6), Watts(1e6));
      EXPECT_GE(s.supply_c, last_supply) << c.name << " " << t;
      // A plant that sheds load draws less, of course.
      if (s.heat_share == 1) {
        EXPECT_GE(s.power().v, last_power - 1e-6) << c.name << " " << t;
      }
      EXPECT_GE(s.supply_c, c.supply_c) << c.name;
      EXPECT_LE(s.supply_c, c.supply_max_c) << c.name;
      EXPECT_GE(s.heat_share, 0) << c.name;
      EXPECT_LE(s.heat_share, 1) << c.name;
      last_supply = s.supply_c;
      last_power = s.power().v;
    }
  }
}

TEST(Rejection, PueLiesWhereSurveysPutTheMethods) {
  const auto mean_pue = [](const char* cooling, const char* place) {
    Site site;
    site.climate = climate(place);
    site.cooling = *find_entry<Cooling>(catalog(), cooling);
    site.power.contracted = Watts(50e6);
    site.power.tariff = *find_entry<Tariff>(catalog(), "us-industrial");
    const Cluster cluster = *find_cluster(catalog(), "h100-1024");
    return totals(facility_series(site, cluster, {})).pue;
  };
  // cooling_methods.csv: room 1.4-1.8, row 1.3-1.5, liquid with dry coolers 1.05-1.25.
  EXPECT_GT(mean_pue("room-air-chiller", "n-virginia"), 1.25);
  EXPECT_LT(mean_pue("room-air-chiller", "phoenix"), 1.8);
  EXPECT_GT(mean_pue("row-air-chiller", "n-virginia"), 1.2);
  EXPECT_LT(mean_pue("row-air-chiller", "phoenix"), 1.5);
  EXPECT_GT(mean_pue("liquid-dry", "frankfurt"), 1.05);
  EXPECT_LT(mean_pue("liquid-dry", "phoenix"), 1.25);
}

TEST(Power, TheClockUnderACapDrawsExactlyTheCap) {
  const GpuThermal g;
  for (const double cap : {300.0, 450.0, 600.0, 690.0}) {
    const double clock = clock_under_cap(g, 1, Watts(cap), 70);
    EXPECT_NEAR(gpu_power(g, 1, clock, 70).v, cap, 1e-6) << cap;
  }
  EXPECT_EQ(clock_under_cap(g, 1, Watts(2000), 70), 1);
  EXPECT_EQ(clock_under_cap(g, 1, Watts(50), 70), kLeastClock);
  // Measured on the H200: -1.73 MHz/K of 1460 under the cap, 55 to 59 C.
  const double slope =
      (clock_under_cap(g, 1.3, Watts(700), 59) - clock_under_cap(g, 1.3, Watts(700), 55)) / 4 /
      clock_under_cap(g, 1.3, Watts(700), 57);
  EXPECT_NEAR(slope, -0.0012, 0.0003);
}

TEST(Power, OfNodes) {
  const Cluster c = *find_cluster(catalog(), "h100-8");
  const NodePower p = node_power(c);
  EXPECT_NEAR(p.training.v, 7750, 150);  // measured: 76 % of 10.2 kW
  EXPECT_EQ(p.nameplate.v, 10200);
  // Of a step that is known it is that step's; nameplate and rest are the node's own.
  const NodePower step = node_power(c, Watts(500));
  EXPECT_NEAR(step.training.v, c.node.host_power.v + 8 * 500, 1e-6);
  EXPECT_EQ(step.idle.v, p.idle.v);
  EXPECT_EQ(node_power(c, Watts(5000)).training.v, 10200);
}

TEST(Power, MiddayIsSlowerByTheDaysRange) {
  const auto swing = [](const char* place, size_t month) {
    return 100 * (1 - speed_at(climate(place).range_k[month], 0));
  };
  EXPECT_NEAR(100 * (1 - speed_at(11.4, 0)), 1.25, 0.0125);
  EXPECT_NEAR(100 * (1 - speed_at(11.5, 0)), 1.27, 0.0127);
  EXPECT_NEAR(100 * (1 - speed_at(3.7, 0)), 0.41, 0.0041);
  EXPECT_NEAR(swing("phoenix", 6), 1.25, 0.15);  // the catalog's July has 10.8 K
}

Site phoenix() { return *find_entry<Site>(catalog(), "phoenix"); }

TEST(Facility, LimitsAreKept) {
  Site site = phoenix();
  const Cluster cluster = *find_cluster(catalog(), "h100-8192");
  const FacilityTotals free = totals(facility_series(site, cluster, {}));
  EXPECT_LE(free.running, 1);
  site.power.cap = Watts(0.8 * free.highest.v);
  const FacilityTotals capped = totals(facility_series(site, cluster, {}));
  EXPECT_LE(capped.highest.v, site.power.cap.v * 1.001);
  EXPECT_LT(capped.clock, free.clock);
  site.power.cap = Watts(0);
  site.power.curtailment = {{16, 20, 6, 9, 0.3}};
  const SiteSeries curtailed = facility_series(site, cluster, {});
  for (size_t i = 0; i < curtailed.hours.size(); ++i) {
    const double left = power_left(site.power, static_cast<int64_t>(i));
    EXPECT_LE(curtailed.hours[i].facility_power.v, left * site.power.contracted.v * 1.001);
  }
  EXPECT_LT(totals(curtailed).running, free.running);
}

TEST(Facility, ACapThatClocksCannotKeepStopsNodes) {
  Site site = phoenix();
  const Cluster& cluster = *find_entry<Cluster>(catalog(), "h100-1024");
  site.power.cap = Watts(1);
  FacilityOptions day;
  day.hours = 24;
  const FacilityTotals none = totals(facility_series(site, cluster, day));
  EXPECT_LT(none.running, 0.001);
  site.power.cap = site.power.contracted;
  const FacilityTotals all = totals(facility_series(site, cluster, day));
  EXPECT_EQ(all.running, 1);
}

TEST(Facility, CurtailmentWindowsWrap) {
  Power p;
  p.curtailment = {{22, 6, 11, 2, 0.5}};
  const int64_t january = 0, july = 24 * 190;
  EXPECT_EQ(power_left(p, january + 23), 0.5);
  EXPECT_EQ(power_left(p, january + 3), 0.5);
  EXPECT_EQ(power_left(p, january + 12), 1);
  EXPECT_EQ(power_left(p, july + 23), 1);
  p.curtailment = {{0, 24, 1, 12, 0.25}};
  EXPECT_EQ(power_left(p, july + 5), 0.25);
}

TEST(Facility, WarmWaterCostsClocksAndColdWaterNever) {
  const Accelerator& h200 = *find_accelerator(catalog(), "h200");
  double last = 1;
  for (double t = 20; t < 70; t += 1) {
    const double clock = clock_at_coolant(h200, CoolingMethod::kDirectLiquid, t, 30);
    EXPECT_LE(clock, last) << t;
    EXPECT_GE(clock, kLeastClock);
    last = clock;
  }
  EXPECT_EQ(clock_at_coolant(h200, CoolingMethod::kDirectLiquid, 25, 30), 1);
  EXPECT_LT(clock_at_coolant(h200, CoolingMethod::kRowAir, 45, 25),
            clock_at_coolant(h200, CoolingMethod::kDirectLiquid, 45, 25));
}

TEST(Schedule, BestWindowsAsPublished) {
  const Result<CsvTable> table = read_csv(ASSAY_ROOT "/test/data/figures/offpeak_value.csv");
  ASSERT_TRUE(table);
  int compared = 0;
  for (const CsvRow& row : table->rows) {
    std::string zone(table->cell(row, "zone"));
    if (zone == "GB_incompleted") zone = "GB";
    const Tariff* t = find_entry<Tariff>(catalog(), zone);
    const bool price = table->cell(row, "kind").starts_with("price");
    if (t == nullptr || zone.starts_with("US-EIA")) continue;
    const std::vector<double> profile = price ? price_profile(*t) : carbon_profile(*t);
    const HourWindow best = best_window(profile, 8), all = best_window(profile, 24);
    const auto number = [&](const char* key) {
      return std::stod(std::string(table->cell(row, key)));
    };
    EXPECT_NEAR(best.mean, number("best_8h_mean"), 0.01 * number("best_8h_mean")) << zone;
    EXPECT_NEAR(100 * (1 - best.mean / all.mean), number("saving_vs_flat_pct"), 0.3) << zone;
    EXPECT_EQ(best.start, std::stoi(std::string(table->cell(row, "best_8h_window_local")))) << zone;
    ++compared;
  }
  EXPECT_GT(compared, 35);
}

TEST(Schedule, CoolHoursAreAtNightAndIdleTheRest) {
  Site site = phoenix();
  site.schedule = {HourPolicy::kCoolHours, 8};
  const HourWindow w = chosen_window(site, 6);
  EXPECT_TRUE(w.contains(5));
  EXPECT_FALSE(w.contains(15));
  const Cluster cluster = *find_cluster(catalog(), "h100-1024");
  const FacilityTotals t = totals(facility_series(site, cluster, {}));
  EXPECT_NEAR(t.scheduled, 8.0 / 24, 1e-9);
}

TEST(Tiers, RatesMultiplyToThePromise) {
  const std::map<std::string, double> minutes = {{"tier-iii", 94.6}, {"tier-iv", 26.3}};
  for (const auto& [name, expected] : minutes) {
    const Tier& t = *find_entry<Tier>(catalog(), name);
    EXPECT_NEAR((1 - t.availability) * 525960, expected, 0.01 * expected) << name;
    const double down = t.outages_per_year * t.outage_mean.v / kSecondsPerYear;
    EXPECT_NEAR(1 - down, t.availability, 2e-5) << name;
  }
}

}  // namespace
}  // namespace assay
