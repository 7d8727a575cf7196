// How many racks a site really holds: a series of limits, each of which would allow so much alone.
// The smallest binds. docs/guides/review.md.
#pragma once

#include <string>
#include <vector>

#include "site/power.h"
#include "world/site.h"

namespace assay {

enum class Limit {
  kContracted,
  kDistribution,
  kCooling,
  kRackPower,
  kRackCooling,
  kFloorLoad,
  kSpace,
  kReach
};
const char* limit_name(Limit);

struct Bottleneck {
  Limit limit = Limit::kContracted;
  bool stated = false;  // else it cannot bind, and the review asks for it
  int64_t nodes = 0;    // that it would allow alone
  int64_t racks = 0;    // for those nodes, packed as tightly as this limit allows
  std::string why;      // `24.0 MW / (8.40 kW x PUE 1.32)`
};

struct RackPlan {
  int64_t nodes = 0;  // per rack, as all per-rack limits leave it
  int64_t by_height = 0;
  bool fixed = false;  // a scale-up domain that fills a rack: all of it or nothing
  // Of a full rack; of a scale-up domain also where the site's racks cannot hold it.
  Watts power;  // nameplate
  double weight_kg = 0;
  double floor_kg_m2 = 0;  // distributed load it makes
  bool weight_assumed = false;
};

struct Density {
  std::vector<Bottleneck> limits;  // in the order of Limit
  RackPlan rack;
  Limit binding = Limit::kContracted;
  bool any_stated = false;
  int64_t nodes = 0;  // that the site holds
  int64_t racks = 0;
  int64_t asked_nodes = 0;
  int64_t asked_racks = 0;
  bool fits() const { return nodes >= asked_nodes; }
};

Density density(const Site&, const Cluster&);

// Load on the floor under a rack of that weight with its aisle: weight, 73.2 kg/m2 of people on
// half of the aisle and 48.8 kg/m2 of raised floor (IBM's site planning formula).
double floor_load(const Hall&, double rack_kg);

// Nodes that fit a rack's circuits at that draw.
int64_t nodes_by_power(Watts rack, double breaker, Watts node);

}  // namespace assay
