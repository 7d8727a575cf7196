#include "site/bursts.h"

#include <gtest/gtest.h>

#include "site/facility.h"
#include "world/catalog.h"
#include "world/names.h"

namespace assay {
namespace {

const Accelerator& h200() { return *find_entry<Accelerator>(catalog(), "h200-sxm5-141gb"); }
Cooling plant() { return *find_entry<Cooling>(catalog(), "liquid-dry"); }

TEST(Bursts, ColderWaterAndAFasterPumpAreNeverWorse) {
  double before = 1e9;
  for (const double tau_s : {180.0, 90.0, 30.0, 10.0}) {
    Cooling c = plant();
    c.pump_tau = Seconds(tau_s);
    const BurstTable table(h200(), c, 20, 50);
    double last = 0;
    for (double supply = 20; supply <= 50; supply += 0.5) {
      const double lost = table.lost(supply).v;
      EXPECT_GE(lost, last) << supply;
      EXPECT_GE(table.clock(supply), 0);
      EXPECT_LE(table.clock(supply), 1);
      last = lost;
    }
    for (const double supply : {38.0, 42.0, 45.0}) {
      Cooling slow = plant();
      slow.pump_tau = Seconds(tau_s * 2);
      EXPECT_LE(table.lost(supply).v, BurstTable(h200(), slow, 20, 50).lost(supply).v + 1e-9)
          << supply << " C, " << tau_s << " s";
    }
    EXPECT_LT(table.lost(44).v, before);
    before = table.lost(44).v;
    EXPECT_EQ(table.lost(25).v, 0);
  }
}

TEST(Bursts, ControllersThatForeseeOrCapLoseLess) {
  const auto lost = [](ThermalControl control) {
    Cooling c = plant();
    c.control = control;
    c.forecast_lead = Seconds(120);
    c.forecast_recall = 0.7;
    return BurstTable(h200(), c, 40, 44).lost(42).v;
  };
  const double reactive = lost(ThermalControl::kReactive);
  EXPECT_GT(reactive, 3);  // 246 s a day over 49 steps: 5 s each in the reference
  EXPECT_LT(reactive, 8);
  EXPECT_NEAR(lost(ThermalControl::kForecast) / reactive, 0.3, 0.001);  // what it does not see
  EXPECT_LT(lost(ThermalControl::kPowerCap), reactive);
  EXPECT_LT(lost(ThermalControl::kForecastAndCap), lost(ThermalControl::kForecast));
}

TEST(Bursts, ReachTheHoursOfASite) {
  Site site = *find_entry<Site>(catalog(), "phoenix");
  site.cooling = plant();
  const Cluster& cluster = *find_entry<Cluster>(catalog(), "h100-1024");
  FacilityOptions july;
  july.start_hour = 24 * 181;
  july.hours = 24 * 7;
  const auto mean = [&](double steps, ThermalControl control) {
    Site s = site;
    s.cooling.load_steps_per_day = steps;
    s.cooling.control = control;
    s.cooling.forecast_lead = Seconds(180);
    s.cooling.forecast_recall = 1;
    return totals(facility_series(s, cluster, july)).clock;
  };
  const double none = mean(0, ThermalControl::kReactive);
  const double some = mean(49, ThermalControl::kReactive);
  EXPECT_LT(some, none);
  EXPECT_LT(mean(98, ThermalControl::kReactive), some);
  EXPECT_GT(mean(49, ThermalControl::kForecast), some);
}

TEST(Bursts, AbsurdPumpsAreBounded) {
  Cooling c = plant();
  c.pump_tau = Seconds(1e12);
  c.pump_delay = Seconds(1e12);
  c.control = ThermalControl::kForecastAndCap;
  c.forecast_lead = Seconds(1e12);
  c.forecast_recall = 1;
  c.load_steps_per_day = 10000;
  const BurstTable table(h200(), c, 40, 42);
  for (const double supply : {-1e9, 40.0, 42.0, 1e9}) {
    EXPECT_GT(table.clock(supply), 0);
    EXPECT_LE(table.clock(supply), 1);
  }
}

TEST(Bursts, PlantsWithoutALaggingPumpLoseNothing) {
  Cooling air = *find_entry<Cooling>(catalog(), "row-air-chiller");
  EXPECT_EQ(BurstTable(h200(), air, 20, 50).clock(50), 1);
  Cooling none = plant();
  none.load_steps_per_day = 0;
  EXPECT_EQ(BurstTable(h200(), none, 20, 50).clock(50), 1);
}

}  // namespace
}  // namespace assay
