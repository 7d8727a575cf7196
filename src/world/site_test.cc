#include <gtest/gtest.h>

#include "config/yaml.h"
#include "world/read.h"
#include "world/site_rules.h"

namespace assay {
namespace {

// Every message of a site section, in the order of the text.
std::vector<std::string> messages(const std::string& text) {
  Sources sources;
  const Source* source = sources.add("site.yaml", text);
  Diagnostics problems;
  Origins origins;
  const std::optional<Value> value = parse_yaml(*source, problems);
  Site site;
  Reader reader(catalog(), problems, origins);
  if (value) reader.read_struct(*value, site, "site");
  if (value) check_site(site, *value, problems);
  sort_by_place(problems);
  std::vector<std::string> out;
  for (const Diagnostic& d : problems) {
    out.push_back(std::to_string(d.at.line) + ": " + d.message);
  }
  return out;
}

TEST(Site, FiveLinesAreValid) {
  EXPECT_TRUE(messages("climate: phoenix\n"
                       "power: {contracted: 24 MW, tariff: us-arizona}\n"
                       "cooling: liquid-dry\n"
                       "tier: tier-iii\n"
                       "hall: {racks: 512, rack_power: 44 kW}\n")
                  .empty());
}

TEST(Site, AllProblemsAreFoundAtOnceWithTheirPlace) {
  const std::vector<std::string> expected = {
      "1: the site has no climate",
      "1: site.power.contracted must be more than zero",
      "2: site.cooling.control cannot be `forcast`",
      "3: site.tier.outages_per_year must not be negative",
      "4: site.schedule.policy cannot be `nightly`",
      "5: site.observed cannot hold `gpu-telemetri`",
      "6: no price is known before 2026-08",
      "6: the date 2026-08 has no price",
      "6: `` is no date",
  };
  EXPECT_EQ(messages("power: {contracted: -3 MW}\n"
                     "cooling: {control: forcast}\n"
                     "tier: {outages_per_year: -2}\n"
                     "schedule: {policy: nightly}\n"
                     "observed: [gpu-telemetri]\n"
                     "offer: {start: 2026-01, prices: [{from: 2026-08}, {on_demand: $3/h}]}\n"),
            expected);
}

TEST(Site, ContradictionsAreRefused) {
  const std::string site = "climate: phoenix\npower: {contracted: 1 MW, ";
  const auto only = [](const std::vector<std::string>& all) {
    return all.size() == 1 ? all[0] : "there are " + std::to_string(all.size());
  };
  EXPECT_EQ(only(messages(site + "cap: 2 MW}")), "2: site.power.cap is above the contracted power");
  EXPECT_EQ(only(messages(site + "tariff: {usd_per_mwh: [1, 2]}}")),
            "2: site.power.tariff.usd_per_mwh has 2 figures");
  EXPECT_EQ(only(messages(site + "curtailment: [{from_hour: 3, to_hour: 3}]}")),
            "2: a curtailment from an hour to the same hour is empty");
  EXPECT_EQ(only(messages(site + "feeds: 1}\ncooling: {supply_c: 50, supply_max_c: 40}")),
            "3: site.cooling.supply_c is above supply_max_c");
  EXPECT_EQ(only(messages(site + "feeds: 1}\ncooling: {control: forecast}")),
            "3: control by forecast needs forecast_lead and forecast_recall");
  EXPECT_EQ(only(messages(site + "feeds: 1}\nstorage: {latency_p50: 2 ms, latency_p99: 1 ms}")),
            "3: site.storage.latency_p99 is below the median");
  EXPECT_EQ(only(messages(site + "feeds: 1}\noffer: {tenure: owned}")),
            "3: an owned cluster needs site.offer.capex");
  EXPECT_EQ(only(messages(site + "feeds: 1}\noffer: {start: 2026-13}")), "3: `2026-13` is no date");
  EXPECT_EQ(only(messages(site + "feeds: 1}\noffer: {start: 2026-08}")),
            "3: a start date, but no prices with dates");
  const std::string prices =
      "prices: [{from: 2026-01, on_demand: $3/h}, {from: 2026-06, reserved: "
      "$2/h}]}";
  EXPECT_EQ(only(messages(site + "feeds: 1}\noffer: {commitment: spot, " + prices)),
            "3: commitment spot, but no date has that price");
  EXPECT_EQ(
      only(messages(site + "feeds: 1}\noffer: {commitment: reserved, start: 2026-02, " + prices)),
      "3: no reserved price is known before 2026-06");
  EXPECT_EQ(
      only(messages(site + "feeds: 1}\noffer: {commitment: reserved, start: 2026-07, " + prices)),
      "there are 0");
  EXPECT_EQ(only(messages(site + "feeds: 1}\nschedule: {policy: cool-hours}")),
            "3: a policy that chooses hours, and all 24 of them");
}

TEST(Site, DatesAreYearsMonthsOrDays) {
  for (const char* good : {"2026", "2026-08", "2026-08-22"}) EXPECT_TRUE(is_date(good)) << good;
  for (const char* bad : {"", "26", "2026-", "2026-13", "2026-00", "2026-08-32", "2026/08",
                          "2026-8", "yesterday", "2026-08-22T"}) {
    EXPECT_FALSE(is_date(bad)) << bad;
  }
}

TEST(Site, TheCatalogsSitesHoldUpToTheRules) {
  ASSERT_GE(catalog().sites.size(), 5u);
  for (const Site& site : catalog().sites) {
    Diagnostics problems;
    check_site(site, Value{}, problems);
    EXPECT_TRUE(problems.empty()) << site.name << "\n" << render(problems);
    EXPECT_FALSE(site.tier.name.empty()) << site.name;
  }
  for (const Offer& offer : catalog().offers) {
    Site site;
    site.climate.mean_c.assign(12, 10);
    site.climate.range_k.assign(12, 10);
    site.power.contracted = Watts(1);
    site.offer = offer;
    Diagnostics problems;
    check_site(site, Value{}, problems);
    EXPECT_TRUE(problems.empty()) << offer.name << "\n" << render(problems);
  }
}

TEST(Site, ASiteWithoutAWordGetsTierPlantAndTariffAndSaysSo) {
  Site site;
  Origins origins;
  std::vector<Assumption> assumed;
  Assumptions assume(assumed, origins);
  complete_site(site, catalog(), assume);
  EXPECT_EQ(site.tier.name, "tier-iii");
  EXPECT_EQ(site.cooling.name, "row-air-chiller");
  EXPECT_GT(site.power.tariff.flat.v, 0);
  EXPECT_EQ(assumed.size(), 4u);
}

}  // namespace
}  // namespace assay
