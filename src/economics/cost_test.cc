#include "economics/cost.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "economics/review.h"
#include "world/names.h"

namespace assay {
namespace {

constexpr double usd_per_kwh(double x) { return x / kJoulesPerKwh; }
double hourly(DollarRate r) { return r.v * kSecondsPerHour; }

TEST(Cost, AnOwnedH200AsPublished) {
  const Offer& o = *find_entry<Offer>(catalog(), "owned-h200");
  const HourCost c = owned_hour(o, Watts(1300), 0.75, 1.2, EnergyPrice(usd_per_kwh(0.08)), 1024);
  EXPECT_NEAR(hourly(c.capital()), 1.05, 0.0105);
  EXPECT_NEAR(hourly(c.total()), 1.50, 0.015);
  EXPECT_NEAR(hourly(c.space), 0.23, 0.005);
  EXPECT_NEAR(hourly(c.maintenance), 0.12, 0.0012);
}

TEST(Cost, AHundredNodesForSixtyThousandDollars) {
  const EnergyPrice price(usd_per_kwh(0.12));
  EXPECT_NEAR(implied_node_power(Dollars(60000), 100, 0.7, 1, price).v, 815, 8.15);
  EXPECT_NEAR(energy_per_year(100, Watts(10200), Watts(0), 0.7, 1, price).v, 750557, 7506);
  EXPECT_NEAR(energy_per_year(100, Watts(7750), Watts(1800), 0.7, 1.3, price).v, 815153, 8152);
}

TEST(Cost, ATierInMinutesAndDollars) {
  const Tier& three = *find_entry<Tier>(catalog(), "tier-iii");
  const Tier& four = *find_entry<Tier>(catalog(), "tier-iv");
  EXPECT_NEAR(downtime_minutes(four), 26.3, 0.263);
  EXPECT_NEAR(downtime_minutes(three), 94.6, 0.946);
  const DollarRate price(3.29 / kSecondsPerHour);
  const double gain = (downtime_cost(three, 8192, price) - downtime_cost(four, 8192, price)).v;
  EXPECT_NEAR(gain, 31000, 500);
}

TEST(Cost, PricesHaveDates) {
  const Offer& o = *find_entry<Offer>(catalog(), "lambda-h100");
  EXPECT_NEAR(hourly(*rented_price(o, "2026-08")), 3.29, 0.2);
  EXPECT_LT(hourly(*rented_price(o, "2025-06")), 3.0);  // prices rose in spring 2026
  EXPECT_FALSE(rented_price(o, "2019"));
  // What is not reserved follows its dates; 31 days of January and 28 of February.
  Offer dated;
  dated.prices = {{"2026-01", DollarRate(4), DollarRate(3), {}},
                  {"2026-02", DollarRate(2), {}, {}}};
  const Seconds both(59 * kSecondsPerDay);
  const auto price = [&](const char* from, Seconds period) {
    return rented_price(dated, from, period)->v;
  };
  EXPECT_NEAR(price("2026-01", both), (31 * 4 + 28 * 2) / 59.0, 1e-9);
  EXPECT_NEAR(price("2026-01-22", Seconds(20 * kSecondsPerDay)), 3, 1e-9);
  EXPECT_EQ(price("2026-02", both), 2);
  EXPECT_EQ(price("2026-01", Seconds(0)), 4);
  EXPECT_EQ(price("", both), 2);
  EXPECT_FALSE(rented_price(dated, "2025-12-31", both));
  dated.commitment = Commitment::kReserved;
  EXPECT_EQ(price("2026-01", both), 3);
  Offer reserved = o;
  reserved.commitment = Commitment::kReserved;
  EXPECT_FALSE(rented_price(reserved, ""));
  const Offer& contract = *find_entry<Offer>(catalog(), "contract-h100");
  EXPECT_NEAR(hourly(*rented_price(contract, "2025-12")), 1.70, 1e-9);
  EXPECT_NEAR(hourly(*rented_price(contract, "2026-03-15")), 2.35, 1e-9);
  EXPECT_FALSE(rented_price(contract, "2025-09"));
  Offer card = *find_entry<Offer>(catalog(), "hyperstack-h100");
  const double on_demand = hourly(*rented_price(card, ""));
  card.commitment = Commitment::kReserved;
  EXPECT_LT(hourly(*rented_price(card, "")), on_demand);
}

TEST(Cost, ConfigurationBeatsPrice) {
  const DollarRate price(3.29 / kSecondsPerHour);
  const FlopRate peak(989.4e12);
  EXPECT_NEAR(usd_per_useful_exaflop(price, peak, 0.2383, 0.95), 4.08, 0.0408);
  EXPECT_NEAR(usd_per_useful_exaflop(price, peak, 0.5020, 0.95), 1.94, 0.0194);
  EXPECT_EQ(usd_per_useful_exaflop(price, peak, 0, 0.95), 0);
}

TEST(Cost, CapitalRecovery) {
  EXPECT_NEAR(capital_recovery(0.10, 5), 0.2638, 1e-4);
  EXPECT_EQ(capital_recovery(0, 5), 0.2);
}

TEST(Cost, TheBillIsTheSumOfItsParts) {
  Site site = *find_entry<Site>(catalog(), "n-virginia");
  const Cluster cluster = *find_cluster(catalog(), "h100-1024");
  for (const char* offer : {"owned-h100", "lambda-h100"}) {
    site.offer = *find_entry<Offer>(catalog(), offer);
    const SiteSeries week = facility_series(site, cluster, {0, 168, 0, Watts(0)});
    const Bill b = bill(site, cluster, week);
    const Dollars sum =
        b.rent + b.hardware + b.network + b.energy + b.space + b.maintenance + b.people;
    EXPECT_NEAR(b.total.v, sum.v, 1e-6 * b.total.v);
    EXPECT_NEAR(b.per_hour.v * kSecondsPerHour * b.accelerator_hours, b.total.v, 1e-6 * b.total.v);
    EXPECT_EQ(b.accelerator_hours, 168.0 * 1024);
    EXPECT_GT(b.kwh, 0);
    EXPECT_GT(b.carbon_kg, 0);
  }
}

TEST(Cost, ShiftingSavesLittleAndIdlesMuch) {
  const Tariff& pjm = *find_entry<Tariff>(catalog(), "us-mida-pjm");
  const ShiftValue v =
      shift_value(price_profile(pjm), 8, 1e6, DollarRate(3.0 / kSecondsPerHour), 1024);
  EXPECT_NEAR(v.saving, 0.30, 0.003);
  EXPECT_GT(v.capital_idle.v, 100 * v.energy_saved.v);
}

TEST(Review, MissingThingsAreNamedAndAFullSitePasses) {
  Site site = *find_entry<Site>(catalog(), "frankfurt");
  const Cluster cluster = *find_cluster(catalog(), "h100-256");
  const Review bare = review(site, cluster, {}, {});
  const auto answer = [](const Review& r, const std::string& id) {
    for (const Answer& a : r.answers) {
      if (a.id == id) return a;
    }
    ADD_FAILURE() << id;
    return Answer{};
  };
  EXPECT_EQ(answer(bare, "observe").verdict, Verdict::kUnknown);
  EXPECT_EQ(answer(bare, "observe").missing, std::vector<std::string>{"site.observed"});
  EXPECT_EQ(answer(bare, "documented").verdict, Verdict::kUnknown);
  site.observed.assign(kObservable.begin(), kObservable.end());
  site.documented.assign(kDocuments.begin(), kDocuments.end());
  site.data = {"here", {"EU"}, Bytes(1e12), Bandwidth(1e9)};
  const Review full = review(site, cluster, {}, {});
  EXPECT_EQ(answer(full, "observe").verdict, Verdict::kGood);
  EXPECT_EQ(answer(full, "documented").verdict, Verdict::kGood);
  EXPECT_EQ(answer(full, "data").verdict, Verdict::kGood);
  EXPECT_TRUE(full.passes);
  site.data.jurisdictions = {"US"};
  const Review abroad = review(site, cluster, {}, {});
  EXPECT_EQ(answer(abroad, "data").verdict, Verdict::kBad);
  EXPECT_FALSE(abroad.passes);
}

TEST(Review, ATorusHasNoLeafSwitch) {
  const Site site = *find_entry<Site>(catalog(), "phoenix");
  const auto leaves = [&](const char* cluster) {
    const Review r = review(site, *find_cluster(catalog(), cluster), {}, {});
    return std::count_if(r.failures.begin(), r.failures.end(),
                         [](const FailureCase& f) { return f.what == "one leaf switch"; });
  };
  EXPECT_EQ(leaves("tpu-v5p-1024"), 0);
  EXPECT_EQ(leaves("h100-1024"), 1);
}

TEST(Review, LossOfFlowIsSeconds) {
  // Slides say: throttle in 5 to 10 s, shutdown in 10 to 20 s.
  const FlowLoss loss = loss_of_flow(GpuThermal{}, 35);
  EXPECT_GT(loss.throttle.v, 4);
  EXPECT_LT(loss.throttle.v, 12);
  EXPECT_GT(loss.shutdown.v, loss.throttle.v);
  EXPECT_LT(loss.shutdown.v, 20);
}

}  // namespace
}  // namespace assay
