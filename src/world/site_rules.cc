#include "world/site_rules.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "world/names.h"

namespace assay {
namespace {

constexpr size_t kMonths = 12;
constexpr size_t kHours = 24;

// The mean of US industrial prices in 2023 (EIA Electric Power Annual) and of the world's grids in
// 2023 (Ember, from memory): for a site that says nothing of its tariff.
constexpr EnergyPrice kUsualPrice{0.08 / kJoulesPerKwh};
constexpr double kUsualCarbon = 480;

class SiteCheck {
 public:
  SiteCheck(const Value& value, Diagnostics& problems) : value_(value), problems_(problems) {}

  // Whether the text says it (perhaps wrongly: the reader has told), or names what it starts from.
  bool written(const std::string& path) const {
    const Value* at = &value_;
    for (size_t begin = 0; begin <= path.size();) {
      const size_t dot = std::min(path.find('.', begin), path.size());
      const Entry* entry = at->find(path.substr(begin, dot - begin));
      if (entry == nullptr) return at->find("base") != nullptr;
      at = &entry->value;
      if (!at->is_map()) return true;
      begin = dot + 1;
    }
    return true;
  }
  void problem(const std::string& path, std::string message, std::string help = "") {
    problems_.push_back(problem_at(place(path), std::move(message), std::move(help)));
  }
  void length(const std::vector<double>& list, std::vector<size_t> allowed,
              const std::string& path) {
    if (list.empty() || std::find(allowed.begin(), allowed.end(), list.size()) != allowed.end()) {
      return;
    }
    problem(path, fmt::format("site.{} has {} figures", path, list.size()),
            fmt::format("write {}", fmt::join(allowed, " or ")));
  }
  template <size_t N>
  void words(const std::vector<std::string>& list, const std::array<std::string_view, N>& known,
             const std::string& path) {
    const std::vector<std::string> names(known.begin(), known.end());
    for (const std::string& word : list) {
      if (std::find(names.begin(), names.end(), word) != names.end()) continue;
      const std::string near = nearest(word, names);
      problem(path, fmt::format("site.{} cannot hold `{}`", path, sanitize(word, 40)),
              near.empty() ? fmt::format("known are {}", fmt::join(names, ", "))
                           : fmt::format("did you mean `{}`?", near));
    }
  }

  void climate(const Climate& c);
  void power(const Power& p);
  void cooling(const Cooling& c);
  void storage(const Storage& s);
  void offer(const Offer& o);
  void commitment(const Offer& o);
  void schedule(const RunHours& s);

 private:
  // The innermost value on the way along `path` that stands in the text.
  Mark place(const std::string& path) const {
    const Value* at = &value_;
    Mark mark = at->at;
    size_t begin = 0;
    while (begin <= path.size() && at->is_map()) {
      const size_t dot = std::min(path.find('.', begin), path.size());
      const Entry* entry = at->find(path.substr(begin, dot - begin));
      if (entry == nullptr) break;
      mark = entry->value.at;
      at = &entry->value;
      begin = dot + 1;
    }
    return mark;
  }

  const Value& value_;
  Diagnostics& problems_;
};

void SiteCheck::climate(const Climate& c) {
  if (c.mean_c.empty()) {
    if (written("climate")) return;
    problem("climate", "the site has no climate",
            "name one, as in `climate: phoenix`; `assay catalog list climates` shows them");
    return;
  }
  length(c.mean_c, {kMonths}, "climate.mean_c");
  length(c.range_k, {kMonths}, "climate.range_k");
  length(c.extreme_c, {kMonths}, "climate.extreme_c");
  length(c.wet_mean_c, {kMonths}, "climate.wet_mean_c");
  length(c.wet_extreme_c, {kMonths}, "climate.wet_extreme_c");
  if (c.range_k.empty()) {
    problem("climate", "site.climate has mean_c but no range_k", "add the mean daily ranges");
  }
}

void SiteCheck::power(const Power& p) {
  if (p.contracted.v <= 0 && !written("power.contracted")) {
    problem("power", "site.power.contracted is not stated",
            "write the power at the meter, as in `power: {contracted: 24 MW}`");
  }
  // The largest campuses that are planned have some 5 to 10 GW.
  constexpr Watts kContractedMost{100e9};
  if (p.contracted > kContractedMost) {
    problem("power.contracted", "site.power.contracted is more than any site has",
            "write at most 100 GW; is the unit right?");
  }
  if (p.cap.v > 0 && p.contracted.v > 0 && p.cap > p.contracted) {
    problem("power.cap", "site.power.cap is above the contracted power",
            "a cap only does something below it");
  }
  length(p.tariff.usd_per_mwh, {kHours}, "power.tariff.usd_per_mwh");
  length(p.tariff.carbon_g_per_kwh, {1, kHours}, "power.tariff.carbon_g_per_kwh");
  for (const Curtailment& c : p.curtailment) {
    if (c.from_hour == c.to_hour) {
      problem("power.curtailment", "a curtailment from an hour to the same hour is empty",
              "write `to_hour: 24` for the rest of the day");
    }
  }
}

void SiteCheck::cooling(const Cooling& c) {
  if (c.supply_c > c.supply_max_c) {
    problem("cooling.supply_c", "site.cooling.supply_c is above supply_max_c",
            "the setpoint must be below the temperature at which load is shed");
  }
  const bool forecast =
      c.control == ThermalControl::kForecast || c.control == ThermalControl::kForecastAndCap;
  if (forecast && (c.forecast_recall <= 0 || c.forecast_lead.v <= 0)) {
    problem("cooling.control", "control by forecast needs forecast_lead and forecast_recall",
            "as in `forecast_lead: 120 s, forecast_recall: 0.7`");
  }
}

void SiteCheck::storage(const Storage& s) {
  if (s.latency_p99.v > 0 && s.latency_p99 < s.latency_p50) {
    problem("storage.latency_p99", "site.storage.latency_p99 is below the median",
            "state a 99th percentile of at least `latency_p50`");
  }
}

void SiteCheck::schedule(const RunHours& s) {
  if (s.policy == HourPolicy::kAlways || s.hours < 24) return;
  problem("schedule.policy", "a policy that chooses hours, and all 24 of them",
          "state how many, as in `schedule: {policy: cool-hours, hours: 12}`");
}

// A commitment that no date has a price for would be priced as something else.
void SiteCheck::commitment(const Offer& o) {
  if (o.tenure != Tenure::kRented || (o.prices.empty() && o.commitment == Commitment::kOnDemand))
    return;
  const bool reserved = o.commitment == Commitment::kReserved;
  const std::string key = reserved                            ? "reserved"
                          : o.commitment == Commitment::kSpot ? "spot"
                                                              : "on_demand";
  std::string first;
  for (const PricePoint& p : o.prices) {
    const DollarRate price = reserved                            ? p.reserved
                             : o.commitment == Commitment::kSpot ? p.spot
                                                                 : p.on_demand;
    if (price.v > 0 && first.empty()) first = p.from;
  }
  const std::string_view word = enum_names(o.commitment)[static_cast<size_t>(o.commitment)];
  if (first.empty()) {
    problem("offer.commitment", fmt::format("commitment {}, but no date has that price", word),
            fmt::format("add `prices: [{{from: 2026-08, {}: $2.72/h}}]`, or choose another", key));
  } else if (is_date(o.start) && o.start < first && o.start >= o.prices.front().from) {
    problem("offer.start", fmt::format("no {} price is known before {}", word, first),
            "start later, add an earlier price, or choose another commitment");
  }
}

void SiteCheck::offer(const Offer& o) {
  std::string last;
  bool priced = true;  // every date has a price
  for (const PricePoint& p : o.prices) {
    if (!is_date(p.from)) {
      priced = false;
      problem("offer.prices", fmt::format("`{}` is no date", sanitize(p.from, 30)),
              "write `from: 2026-08` with each price");
      continue;
    }
    if (p.on_demand.v <= 0 && p.reserved.v <= 0 && p.spot.v <= 0) {
      priced = false;
      problem("offer.prices", fmt::format("the date {} has no price", p.from),
              "add `on_demand: $3.29/h`, `reserved:` or `spot:`");
    }
    if (!last.empty() && p.from <= last) {
      problem("offer.prices", fmt::format("{} comes after {}", p.from, last),
              "list prices in the order of their dates");
    }
    last = p.from;
  }
  if (!o.start.empty() && !is_date(o.start)) {
    problem("offer.start", fmt::format("`{}` is no date", sanitize(o.start, 30)),
            "write it like 2026-08-22");
  } else if (!o.start.empty() && o.tenure == Tenure::kRented) {
    if (o.prices.empty()) {
      problem("offer.start", "a start date, but no prices with dates",
              "add `prices: [{from: 2026-08, on_demand: $3.29/h}]`");
    } else if (o.start < o.prices.front().from) {
      problem("offer.start", fmt::format("no price is known before {}", o.prices.front().from),
              "start later, or add an earlier price");
    }
  }
  if (priced) commitment(o);
  if (o.tenure == Tenure::kOwned && o.capex.v <= 0) {
    problem("offer", "an owned cluster needs site.offer.capex",
            "per accelerator with its share of server and network, as in `capex: $35k`");
  }
}

}  // namespace

bool is_date(const std::string& text) {
  const auto digits = [&](size_t from, size_t n) {
    return std::all_of(text.begin() + static_cast<std::ptrdiff_t>(from),
                       text.begin() + static_cast<std::ptrdiff_t>(from + n),
                       [](char c) { return c >= '0' && c <= '9'; });
  };
  const auto within = [&](size_t from, int most) {
    const int n = (text[from] - '0') * 10 + (text[from + 1] - '0');
    return n >= 1 && n <= most;
  };
  const bool year = (text.size() == 4 || text.size() == 7 || text.size() == 10) && digits(0, 4);
  if (!year || text.size() == 4) return year;
  const bool month = text[4] == '-' && digits(5, 2) && within(5, 12);
  if (!month || text.size() == 7) return month;
  // 29 February in any year: prices and weather have no calendar of their own.
  constexpr int kDays[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const int number = (text[5] - '0') * 10 + (text[6] - '0');
  return text[7] == '-' && digits(8, 2) && within(8, kDays[number - 1]);
}

void check_site(const Site& site, const Value& value, Diagnostics& problems) {
  SiteCheck check(value, problems);
  check.climate(site.climate);
  check.power(site.power);
  check.cooling(site.cooling);
  check.storage(site.storage);
  check.offer(site.offer);
  check.schedule(site.schedule);
  check.words(site.observed, kObservable, "observed");
  check.words(site.documented, kDocuments, "documented");
}

void complete_site(Site& site, const Catalog& catalog, Assumptions& assume) {
  Tariff& tariff = site.power.tariff;
  if (tariff.flat.v <= 0 && tariff.usd_per_mwh.empty()) {
    tariff.flat = kUsualPrice;
    assume.add("site.power.tariff.flat", "$0.08/kWh", "mean of US industry, 2023");
  }
  if (tariff.carbon_g_per_kwh.empty()) {
    tariff.carbon_g_per_kwh = {kUsualCarbon};
    assume.add("site.power.tariff.carbon_g_per_kwh", "480", "mean of the world's grids");
  }
  if (site.tier.outages_per_year <= 0 && site.tier.name.empty() && site.tier.availability <= 0) {
    if (const Tier* usual = find_entry<Tier>(catalog, "tier-iii")) {
      site.tier = *usual;
      assume.add("site.tier", usual->name, "usual for a colocation hall");
    }
  }
  if (site.cooling.name.empty() && !assume.stated("site.cooling.method")) {
    if (const Cooling* usual = find_entry<Cooling>(catalog, "row-air-chiller")) {
      site.cooling = *usual;
      assume.add("site.cooling", usual->name, "usual where nothing is said");
    }
  }
}

}  // namespace assay
