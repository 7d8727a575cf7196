// A site: where a cluster stands. Climate, power, cooling, the halls, what may be done there, and
// on which terms. docs/models/{heat,power-and-cooling,economics}.md say what is made of it.
//
// Temperatures are degrees Celsius (`_c`), temperature differences kelvin (`_k`), hours are local
// hours of the day from 0 to 23, months 1 to 12, dates `2026-08` or `2026-08-22`.
#pragma once

#include "world/fields.h"

namespace assay {

// What the air does at a place: twelve months, each with its mean, its mean daily range and the
// temperature that 99.6 % of its hours stay below.
struct Climate {
  std::string name;
  double latitude = 0, longitude = 0;
  std::vector<double> mean_c, range_k, extreme_c;  // dry-bulb, by month
  std::vector<double> wet_mean_c, wet_extreme_c;   // wet-bulb, by month; empty: not known
  double warmest_hour = 15;                        // of the day
};

template <class T, class V>
  requires std::is_same_v<std::remove_const_t<T>, Climate>
void fields(T& c, V&& visit) {
  constexpr Limits kAir{-60, 60};
  visit("latitude", c.latitude, Limits{-90, 90}, "degrees north");
  visit("longitude", c.longitude, Limits{-180, 180}, "degrees east");
  visit("mean_c", c.mean_c, kAir, "mean dry-bulb temperature of each month, Celsius");
  visit("range_k", c.range_k, Limits{0, 40}, "mean daily range of each month, kelvin");
  visit("extreme_c", c.extreme_c, kAir, "dry-bulb that 99.6 % of a month's hours stay below");
  visit("wet_mean_c", c.wet_mean_c, kAir, "mean wet-bulb temperature of each month, Celsius");
  visit("wet_extreme_c", c.wet_extreme_c, kAir, "wet-bulb that 99.6 % of hours stay below");
  visit("warmest_hour", c.warmest_hour, Limits{0, 23}, "local hour of the daily maximum");
}

// What a kilowatt-hour costs and emits, by hour of the day. The price is `flat`, or the hourly
// list; `delivery` is added to either (grid charges, taxes).
struct Tariff {
  std::string name;
  EnergyPrice flat;                 // zero: the hourly list
  std::vector<double> usd_per_mwh;  // 24, wholesale
  EnergyPrice delivery;
  double demand_usd_per_kw_month = 0;    // on the highest power of the month
  std::vector<double> carbon_g_per_kwh;  // 24, or one for all hours
};

template <class T, class V>
  requires std::is_same_v<std::remove_const_t<T>, Tariff>
void fields(T& t, V&& visit) {
  visit("flat", t.flat, kNotNegative, "one price for all hours");
  visit("usd_per_mwh", t.usd_per_mwh, Limits{-1000, 20000}, "price of each hour of the day");
  visit("delivery", t.delivery, kNotNegative, "grid charges on top");
  visit("demand_usd_per_kw_month", t.demand_usd_per_kw_month, Limits{0, 1000},
        "charge on the month's highest power");
  visit("carbon_g_per_kwh", t.carbon_g_per_kwh, Limits{0, 2000},
        "carbon of each hour of the day, or one figure");
}

// Hours in which the grid takes power back. Hours wrap around midnight, months around the year.
struct Curtailment {
  int64_t from_hour = 0, to_hour = 24;
  int64_t from_month = 1, to_month = 12;
  double share = 0;  // of the contracted power that is left
};

template <class T, class V>
  requires std::is_same_v<std::remove_const_t<T>, Curtailment>
void fields(T& c, V&& visit) {
  visit("from_hour", c.from_hour, Limits{0, 23}, "first hour, local");
  visit("to_hour", c.to_hour, Limits{0, 24}, "hour at which it ends");
  visit("from_month", c.from_month, Limits{1, 12}, "first month");
  visit("to_month", c.to_month, Limits{1, 12}, "last month");
  visit("share", c.share, kFraction, "share of the contracted power that is left");
}

struct Power {
  Watts contracted;    // at the meter
  int64_t feeds = 1;   // independent; each carries `contracted`
  Watts distribution;  // what transformers, UPS and busbars bring to the racks; zero: not limiting
  Watts cap;           // a limit on facility power kept by throttling; zero: none
  double ups_loss = 0.05;  // of IT power, in UPS and transformers
  double breaker = 1;      // share of a rack's rating that may be drawn for hours (0.8 in the US)
  std::vector<Curtailment> curtailment;
  Tariff tariff;
};

template <class T, class V>
  requires std::is_same_v<std::remove_const_t<T>, Power>
void fields(T& p, V&& visit) {
  visit("contracted", p.contracted, kPositive, "power at the meter");
  visit("feeds", p.feeds, Limits{1, 16}, "independent feeds");
  visit("distribution", p.distribution, kNotNegative, "what reaches the racks; zero: all");
  visit("cap", p.cap, kNotNegative, "limit kept by throttling; zero: none");
  visit("ups_loss", p.ups_loss, Limits{0, 0.5}, "lost in UPS and transformers, of IT power");
  visit("breaker", p.breaker, Limits{0.1, 1}, "share of a rack's rating for continuous load");
  visit("curtailment", p.curtailment, kAny, "hours in which the grid takes power back");
  visit("tariff", p.tariff, kAny, "price and carbon, a catalog name or a mapping");
}

enum class CoolingMethod { kRoomAir, kRowAir, kRearDoor, kDirectLiquid, kImmersion };
constexpr std::array<std::string_view, 5> enum_names(CoolingMethod) {
  return {"room-air", "row-air", "rear-door", "direct-liquid", "immersion"};
}
enum class HeatRejection { kDryCooler, kWetTower, kAdiabatic, kChiller };
constexpr std::array<std::string_view, 4> enum_names(HeatRejection) {
  return {"dry-cooler", "wet-tower", "adiabatic", "chiller"};
}
enum class ThermalControl { kReactive, kForecast, kPowerCap, kForecastAndCap };
constexpr std::array<std::string_view, 4> enum_names(ThermalControl) {
  return {"reactive", "forecast", "power-cap", "forecast-and-cap"};
}

struct Cooling {
  std::string name;
  CoolingMethod method = CoolingMethod::kRowAir;
  HeatRejection rejection = HeatRejection::kChiller;
  bool trim_chiller = false;   // helps where the rejection alone cannot hold the setpoint
  Watts capacity;              // heat that can be rejected at design weather; zero: not limiting
  double design_c = 35;        // dry-bulb (wet-bulb for towers) at which `capacity` is stated
  double supply_c = 25;        // setpoint of air or coolant at the accelerators
  double supply_max_c = 45;    // above it the load is shed
  double approach_k = 6;       // of the rejection to the air at full heat
  double exchanger_k = 4;      // from facility water to the accelerators' loop (CDU, coil)
  double liquid_share = 0;     // of the heat that goes to liquid
  double fan_share = 0.03;     // power of fans at full heat, of heat
  double pump_share = 0.02;    // power of pumps at full flow, of heat
  double cop = 5;              // of a chiller at 25 C outside
  Seconds pump_tau;            // first-order lag of the flow
  Seconds pump_delay;          // before the pump moves at all
  double flow_min = 0.35;      // of full flow, at rest
  Watts rack_max;              // what the method can take from one rack; zero: not limiting
  double water_l_per_kwh = 0;  // evaporated per kWh of heat when water is used
  ThermalControl control = ThermalControl::kReactive;
  Seconds forecast_lead;       // how long ahead a load step is announced
  double forecast_recall = 0;  // share of load steps that are announced
  // Steps from rest to full load that the loop sees: restarts of jobs, above all. Llama 3 on 16,384
  // accelerators was interrupted 466 times in 54 days.
  double load_steps_per_day = 9;
};

template <class T, class V>
  requires std::is_same_v<std::remove_const_t<T>, Cooling>
void fields(T& c, V&& visit) {
  visit("method", c.method, kAny, "how heat leaves the racks");
  visit("rejection", c.rejection, kAny, "how heat leaves the site");
  visit("trim_chiller", c.trim_chiller, kAny, "a chiller helps on hot hours");
  visit("capacity", c.capacity, kNotNegative, "heat that can be rejected; zero: not limiting");
  visit("design_c", c.design_c, Limits{-20, 60}, "outside temperature of that capacity");
  visit("supply_c", c.supply_c, Limits{0, 60}, "setpoint of air or coolant at the accelerators");
  visit("supply_max_c", c.supply_max_c, Limits{0, 70}, "hottest supply before load is shed");
  visit("approach_k", c.approach_k, Limits{0, 40}, "rejection above outside air at full heat");
  visit("exchanger_k", c.exchanger_k, Limits{0, 40}, "facility water to the accelerators' loop");
  visit("liquid_share", c.liquid_share, kFraction, "heat that goes to liquid");
  visit("fan_share", c.fan_share, kFraction, "fan power at full heat, of heat");
  visit("pump_share", c.pump_share, kFraction, "pump power at full flow, of heat");
  visit("cop", c.cop, Limits{1, 20}, "chiller's coefficient of performance at 25 C");
  visit("pump_tau", c.pump_tau, kNotNegative, "first-order lag of the flow");
  visit("pump_delay", c.pump_delay, kNotNegative, "dead time of the flow");
  visit("flow_min", c.flow_min, Limits{0.05, 1}, "flow at rest, of full flow");
  visit("rack_max", c.rack_max, kNotNegative, "heat of one rack that it can take; zero: any");
  visit("water_l_per_kwh", c.water_l_per_kwh, Limits{0, 20}, "water evaporated per kWh of heat");
  visit("control", c.control, kAny, "who reacts to heat, and when");
  visit("forecast_lead", c.forecast_lead, kNotNegative, "how long ahead a load step is announced");
  visit("forecast_recall", c.forecast_recall, kFraction, "share of load steps announced");
  visit("load_steps_per_day", c.load_steps_per_day, Limits{0, 10000},
        "steps from rest to full load that the loop sees");
}

// How often the whole site fails. Durations are log-normal around their mean.
struct Tier {
  std::string name;
  double availability = 0;  // as the tier promises it
  double outages_per_year = 0;
  Seconds outage_mean;
  bool maintainable = false;  // any component can be taken out under load
  bool fault_tolerant = false;
};

template <class T, class V>
  requires std::is_same_v<std::remove_const_t<T>, Tier>
void fields(T& t, V&& visit) {
  visit("availability", t.availability, kFraction, "promised availability");
  visit("outages_per_year", t.outages_per_year, Limits{0, 1000}, "outages of the whole site");
  visit("outage_mean", t.outage_mean, kNotNegative, "mean duration of one");
  visit("maintainable", t.maintainable, kAny, "maintenance without interruption");
  visit("fault_tolerant", t.fault_tolerant, kAny, "one fault without interruption");
}

// One room with rows of racks. Zero: not stated, and the review says so.
struct Hall {
  int64_t racks = 0;                // positions
  Watts rack_power;                 // rating of one position's circuit
  int64_t rack_units = 48;          // height of one rack
  double rack_footprint_m2 = 0.72;  // 600 x 1200 mm
  double rack_clearance_m2 = 0.72;  // half of 1.2 m in front and behind
  double rack_kg = 200;             // an empty rack
  double floor_kg_m2 = 0;           // what the floor carries, distributed
  double area_m2 = 0;
  double reach_m = 0;  // longest cable run between two racks of the fabric
};

template <class T, class V>
  requires std::is_same_v<std::remove_const_t<T>, Hall>
void fields(T& h, V&& visit) {
  visit("racks", h.racks, kCountOrZero, "rack positions");
  visit("rack_power", h.rack_power, kNotNegative, "rating of one position's circuits");
  visit("rack_units", h.rack_units, Limits{1, 100}, "height of one rack");
  visit("rack_footprint_m2", h.rack_footprint_m2, Limits{0.1, 20}, "a rack's footprint");
  visit("rack_clearance_m2", h.rack_clearance_m2, Limits{0, 20}, "aisle that belongs to a rack");
  visit("rack_kg", h.rack_kg, Limits{0, 5000}, "an empty rack");
  visit("floor_kg_m2", h.floor_kg_m2, Limits{0, 20000}, "distributed load the floor carries");
  visit("area_m2", h.area_m2, Limits{0, 1e6}, "area for racks and aisles");
  visit("reach_m", h.reach_m, Limits{0, 10000}, "longest cable run of the fabric");
}

// Shared storage, seen by one reader and by all of them. Latency is log-normal.
struct Storage {
  std::string name;
  Bandwidth read, write;  // all clients together
  Bandwidth per_stream;   // one stream; zero: not limiting
  Seconds latency_p50, latency_p99;
  double requests_per_s = 0;  // zero: not limiting
  Bytes capacity;             // zero: not limiting
  double usd_per_tb_month = 0;
};

template <class T, class V>
  requires std::is_same_v<std::remove_const_t<T>, Storage>
void fields(T& s, V&& visit) {
  visit("read", s.read, kNotNegative, "read bandwidth of all clients");
  visit("write", s.write, kNotNegative, "write bandwidth of all clients");
  visit("per_stream", s.per_stream, kNotNegative, "one stream; zero: not limiting");
  visit("latency_p50", s.latency_p50, kNotNegative, "median latency of a read");
  visit("latency_p99", s.latency_p99, kNotNegative, "99th percentile of the latency");
  visit("requests_per_s", s.requests_per_s, kNotNegative, "requests per second; zero: any");
  visit("capacity", s.capacity, kNotNegative, "space; zero: not limiting");
  visit("usd_per_tb_month", s.usd_per_tb_month, Limits{0, 10000}, "price of space");
}

// Where container images come from.
struct Registry {
  Bandwidth total;                        // of the registry or the link to it; zero: not limiting
  Bandwidth per_node = Bandwidth(0.3e9);  // unpacking included
  bool cached = false;                    // nodes keep images between jobs
  Bytes image = Bytes(15e9);
};

template <class T, class V>
  requires std::is_same_v<std::remove_const_t<T>, Registry>
void fields(T& r, V&& visit) {
  visit("total", r.total, kNotNegative, "registry or the link to it; zero: not limiting");
  visit("per_node", r.per_node, kPositive, "one node, unpacking included");
  visit("cached", r.cached, kAny, "nodes keep images between jobs");
  visit("image", r.image, kNotNegative, "size of an image");
}

// A price from a date on, per accelerator and hour. Zero: not offered.
struct PricePoint {
  std::string from;
  DollarRate on_demand, reserved, spot;
};

template <class T, class V>
  requires std::is_same_v<std::remove_const_t<T>, PricePoint>
void fields(T& p, V&& visit) {
  visit("from", p.from, kAny, "date from which it holds");
  visit("on_demand", p.on_demand, kNotNegative, "on-demand price");
  visit("reserved", p.reserved, kNotNegative, "price with a commitment");
  visit("spot", p.spot, kNotNegative, "interruptible price");
}

enum class Tenure { kRented, kOwned };
constexpr std::array<std::string_view, 2> enum_names(Tenure) { return {"rented", "owned"}; }
enum class Commitment { kOnDemand, kReserved, kSpot };
constexpr std::array<std::string_view, 3> enum_names(Commitment) {
  return {"on-demand", "reserved", "spot"};
}

// On which terms accelerators are had.
struct Offer {
  std::string name;
  Tenure tenure = Tenure::kRented;
  std::string accelerator;  // catalog name; empty: any
  std::string start;        // of the run; empty: the latest price
  // Rented.
  Commitment commitment = Commitment::kOnDemand;
  std::vector<PricePoint> prices;
  // Owned, per accelerator, with its share of server and network.
  Dollars capex;
  double network_share = 0.13;  // of capex
  double life_years = 5;
  double cost_of_capital = 0.10;  // per year
  double residual = 0;            // of capex at the end of life
  double colocation_usd_per_kw_month = 0;
  double maintenance = 0.03;            // of capex per year
  double staff = 0;                     // people
  Dollars staff_cost = Dollars(150e3);  // a person and year
};

template <class T, class V>
  requires std::is_same_v<std::remove_const_t<T>, Offer>
void fields(T& o, V&& visit) {
  visit("tenure", o.tenure, kAny, "rented or owned");
  visit("accelerator", o.accelerator, kAny, "what the prices are for");
  visit("start", o.start, kAny, "date at which the run starts");
  visit("commitment", o.commitment, kAny, "which of the prices is paid");
  visit("prices", o.prices, kAny, "prices per accelerator and hour, with dates");
  visit("capex", o.capex, kNotNegative, "per accelerator with its share of server and network");
  visit("network_share", o.network_share, kFraction, "network's share of capex");
  visit("life_years", o.life_years, Limits{0.5, 30}, "depreciation");
  visit("cost_of_capital", o.cost_of_capital, Limits{0, 1}, "interest per year");
  visit("residual", o.residual, kFraction, "value left at the end, of capex");
  visit("colocation_usd_per_kw_month", o.colocation_usd_per_kw_month, Limits{0, 10000},
        "space and cooling, per kW of IT");
  visit("maintenance", o.maintenance, kFraction, "per year, of capex");
  visit("staff", o.staff, Limits{0, 1e5}, "people who run it");
  visit("staff_cost", o.staff_cost, kNotNegative, "a person and year");
}

// Where the data are and whether they may come here.
struct DataPlace {
  std::string at;                          // a place, or `here`
  std::vector<std::string> jurisdictions;  // in which they may be; empty: not stated
  Bytes size;
  Bandwidth link;  // to here
};

template <class T, class V>
  requires std::is_same_v<std::remove_const_t<T>, DataPlace>
void fields(T& d, V&& visit) {
  visit("at", d.at, kAny, "where the data are, or `here`");
  visit("jurisdictions", d.jurisdictions, kAny, "where they may be kept");
  visit("size", d.size, kNotNegative, "how much there is");
  visit("link", d.link, kNotNegative, "bandwidth from there to here");
}

// When the job runs. `share` of the day's hours are chosen, best first.
enum class HourPolicy { kAlways, kCheapHours, kCleanHours, kCoolHours };
constexpr std::array<std::string_view, 4> enum_names(HourPolicy) {
  return {"always", "cheap-hours", "clean-hours", "cool-hours"};
}
struct RunHours {
  HourPolicy policy = HourPolicy::kAlways;
  int64_t hours = 24;  // of a day, in one window
};

template <class T, class V>
  requires std::is_same_v<std::remove_const_t<T>, RunHours>
void fields(T& s, V&& visit) {
  visit("policy", s.policy, kAny, "which hours are used");
  visit("hours", s.hours, Limits{1, 24}, "hours of a day that are used");
}

struct Site {
  std::string name;
  Climate climate;
  Power power;
  Cooling cooling;
  Tier tier;
  Hall hall;
  int64_t halls = 1;
  Storage storage;
  Registry registry;
  Offer offer;
  DataPlace data;
  RunHours schedule;
  std::string country;                  // of the site, ISO 3166 letters
  std::string jurisdiction;             // whose law holds, as `EU`
  std::vector<std::string> certified;   // `iso-27001`, `c5`, ...
  std::string scheduler;                // `slurm`, `kubernetes`; empty: not stated
  bool shared = false;                  // other tenants' jobs on the same fabric
  std::vector<std::string> observed;    // what is measured and kept: kObservable
  std::vector<std::string> documented;  // what is written down: kDocuments
};

// What a review asks for; other words are an input error.
constexpr std::array<std::string_view, 9> kObservable = {
    "gpu-telemetry",   "node-power",     "rack-power",  "coolant", "fabric-counters",
    "storage-latency", "job-accounting", "kernel-logs", "alarms"};
constexpr std::array<std::string_view, 7> kDocuments = {
    "topology", "rack-layout",    "power-path",      "cooling-path",
    "runbooks", "failure-drills", "acceptance-tests"};

template <class T, class V>
  requires std::is_same_v<std::remove_const_t<T>, Site>
void fields(T& s, V&& visit) {
  visit("climate", s.climate, kAny, "a catalog name or a mapping");
  visit("power", s.power, kAny, "feeds, limits and tariff");
  visit("cooling", s.cooling, kAny, "the plant, a catalog name or a mapping");
  visit("tier", s.tier, kAny, "how often the site fails, a catalog name or a mapping");
  visit("hall", s.hall, kAny, "one room");
  visit("halls", s.halls, Limits{1, 1000}, "such rooms");
  visit("storage", s.storage, kAny, "shared storage, a catalog name or a mapping");
  visit("registry", s.registry, kAny, "container images");
  visit("offer", s.offer, kAny, "price and terms, a catalog name or a mapping");
  visit("data", s.data, kAny, "where the data are");
  visit("schedule", s.schedule, kAny, "hours that are used");
  visit("country", s.country, kAny, "country, two letters");
  visit("jurisdiction", s.jurisdiction, kAny, "whose law holds");
  visit("certified", s.certified, kAny, "certificates");
  visit("scheduler", s.scheduler, kAny, "slurm, kubernetes, ...");
  visit("shared", s.shared, kAny, "other tenants on the same fabric");
  visit("observed", s.observed, kAny, "what is measured and kept");
  visit("documented", s.documented, kAny, "what is written down");
}

}  // namespace assay
