// What accelerators cost: rented by the hour, or owned with everything that owning brings.
// docs/models/economics.md has the equations and their check against published figures.
#pragma once

#include <optional>
#include <string>

#include "site/facility.h"
#include "site/schedule.h"

namespace assay {

// Parts of the cost of one accelerator-hour. Rent holds everything; else the others do.
struct HourCost {
  DollarRate rent;
  DollarRate hardware;  // capital of servers and accelerators
  DollarRate network;   // capital of the fabric
  DollarRate energy;
  DollarRate space;  // colocation
  DollarRate maintenance;
  DollarRate people;
  DollarRate total() const {
    return rent + hardware + network + energy + space + maintenance + people;
  }
  DollarRate capital() const { return hardware + network; }
};

// Yearly share of a loan that pays it back over `years`.
double capital_recovery(double rate, double years);

// Owned. `power` is per accelerator with its share of the node, at the rack, at full load;
// `utilisation` the share of that which is drawn on average; `accelerators` share the staff.
HourCost owned_hour(const Offer&, Watts power, double utilisation, double pue, EnergyPrice price,
                    int64_t accelerators);

// The price of the offer's commitment on a date (empty: the latest). Nothing where the offer has no
// such price then.
std::optional<DollarRate> rented_price(const Offer&, const std::string& date);
// The mean of it over a period that begins on that date: what is not reserved follows the prices as
// their dates come.
std::optional<DollarRate> rented_price(const Offer&, const std::string& date, Seconds period);

// Dollars per 1e18 useful floating-point operations.
double usd_per_useful_exaflop(DollarRate per_accelerator, FlopRate peak, double mfu,
                              double goodput);

// A cluster at a site over a period, priced. Energy is paid apart from rent only where it is owned.
struct Bill {
  Dollars rent, hardware, network, energy, space, maintenance, people;
  Dollars total;
  double kwh = 0, carbon_kg = 0, water_l = 0;
  double accelerator_hours = 0;
  bool rented = true;
  bool price_known = true;  // false: neither offer nor cluster nor accelerator has a price
  std::string price_from;   // where the rate comes from
  DollarRate per_hour;      // of one accelerator, all parts
  double share(Dollars part) const { return total.v > 0 ? part.v / total.v : 0; }
};
// The series may be of other hours than those that are paid for, `period` from the offer's start
// on; zero: at the prices of its start.
Bill bill(const Site&, const Cluster&, const SiteSeries&, Seconds period = Seconds(0));

// Energy of nodes that are busy for a share of the time, for a year.
Dollars energy_per_year(double nodes, Watts busy, Watts idle, double utilisation, double pue,
                        EnergyPrice price);
// The draw of one node at load that a yearly bill implies.
Watts implied_node_power(Dollars per_year, double nodes, double utilisation, double pue,
                         EnergyPrice price);

// Idle time that a tier's promise leaves in a year, and what it costs a cluster.
double downtime_minutes(const Tier&);
Dollars downtime_cost(const Tier&, int64_t accelerators, DollarRate price);

// What running only some hours saves in energy, and what the idle hours cost.
struct ShiftValue {
  HourWindow window;
  double mean = 0;       // of the whole day, in the profile's unit
  double saving = 0;     // of the energy bill per unit of work
  Dollars energy_saved;  // a year, for the same work on 24 / hours as many accelerators
  Dollars capital_idle;  // a year, of accelerators that wait for their hours
};
ShiftValue shift_value(const std::vector<double>& profile, int hours, double kwh_per_year,
                       DollarRate per_hour, int64_t accelerators);

}  // namespace assay
