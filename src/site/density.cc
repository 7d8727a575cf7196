#include "site/density.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "site/rejection.h"
#include "site/weather.h"

namespace assay {
namespace {

constexpr double kPeakOverTraining = 8.4 / 7.75;  // DGX H100, arXiv:2412.08602 and 2506.14551
constexpr double kPeopleKgM2 = 73.2;              // IBM site planning, live load of aisles
constexpr double kRaisedFloorKgM2 = 48.8;
constexpr double kKgPerUnit = 16.3;   // DGX H100: 130.5 kg in 8 U
constexpr int64_t kUnitsPerNode = 8;  // of an eight-accelerator node
constexpr double kRiserM = 6;         // up to the tray and down again
constexpr int64_t kUnlimited = 1'000'000'000;

int64_t whole(double x) {
  return x >= static_cast<double>(kUnlimited) ? kUnlimited
                                              : static_cast<int64_t>(std::floor(x + 1e-9));
}

std::string kw(Watts w) { return fmt::format("{:.3g} kW", w.v / 1000); }

class Series {
 public:
  Series(const Site& site, const Cluster& cluster)
      : site_(site), cluster_(cluster), power_(node_power(cluster)) {
    peak_ = std::min(power_.nameplate, power_.training * kPeakOverTraining);
    out_.asked_nodes = cluster.nodes;
    const Node& n = cluster.node;
    units_ = n.rack_units > 0 ? n.rack_units : kUnitsPerNode;
    weight_ = n.weight_kg > 0 ? n.weight_kg : kKgPerUnit * static_cast<double>(units_);
    out_.rack.weight_assumed = n.weight_kg <= 0;
    // The rack's own shelves, switches and bars take a sixth of the height.
    out_.rack.by_height = std::max<int64_t>(1, site.hall.rack_units * 5 / 6 / units_);
    const int64_t domain = cluster.scaleup_domain() / std::max<int64_t>(1, n.accelerators);
    // Copper and its switches fill one rack; a torus is cabled through as many as it takes.
    out_.rack.fixed = domain > 1 && cluster.fabric.kind != FabricKind::kTorus;
    if (out_.rack.fixed) out_.rack.by_height = domain;
  }

  Density run() {
    positions_ = site_.hall.racks > 0 ? site_.hall.racks * site_.halls : 0;
    const int64_t by_circuit = rack_power(), by_cooling = rack_cooling(), by_floor = rack_floor();
    int64_t per_rack = std::min({out_.rack.by_height, by_circuit, by_cooling, by_floor});
    if (out_.rack.fixed && per_rack < out_.rack.by_height) per_rack = 0;
    out_.rack.nodes = per_rack;
    each_ = out_.rack.fixed ? out_.rack.by_height : std::max<int64_t>(per_rack, 1);
    const auto full = static_cast<double>(out_.rack.fixed ? each_ : per_rack);
    out_.rack.power = power_.nameplate * full;
    out_.rack.weight_kg = site_.hall.rack_kg + weight_ * full;
    out_.rack.floor_kg_m2 = floor_load(site_.hall, out_.rack.weight_kg);
    whole_site();
    per_rack_limits(by_circuit, by_cooling, by_floor);
    floor_space();
    finish();
    return std::move(out_);
  }

 private:
  void add(Limit limit, bool stated, int64_t nodes, std::string why) {
    out_.limits.push_back(
        {limit, stated, std::clamp<int64_t>(nodes, 0, kUnlimited), 0, std::move(why)});
  }

  int64_t rack_power() const {
    if (site_.hall.rack_power.v <= 0) return kUnlimited;
    return nodes_by_power(site_.hall.rack_power, site_.power.breaker, power_.nameplate);
  }
  int64_t rack_cooling() const {
    if (site_.cooling.rack_max.v <= 0) return kUnlimited;
    return nodes_by_power(site_.cooling.rack_max, 1, peak_);
  }
  int64_t rack_floor() const {
    const Hall& h = site_.hall;
    if (h.floor_kg_m2 <= 0) return kUnlimited;
    const double area = h.rack_footprint_m2 + h.rack_clearance_m2;
    const double allowed =
        (h.floor_kg_m2 - kRaisedFloorKgM2) * area - kPeopleKgM2 * h.rack_clearance_m2;
    return std::max<int64_t>(0, whole((allowed - h.rack_kg) / weight_));
  }

  void whole_site() {
    const Weather weather(site_.climate);
    const WeatherHour worst = design_hour(weather);
    const Watts it = peak_ * static_cast<double>(cluster_.nodes);
    const PlantState plant = plant_at(site_.cooling, worst, it, it);
    const double ratio = pue(plant, it, site_.power.ups_loss);
    const Power& p = site_.power;
    add(Limit::kContracted, p.contracted.v > 0, whole(p.contracted.v / (peak_.v * ratio)),
        fmt::format("{:.3g} MW / ({} x PUE {:.2f} when hottest)", p.contracted.v / 1e6, kw(peak_),
                    ratio));
    add(Limit::kDistribution, p.distribution.v > 0, whole(p.distribution.v / peak_.v),
        fmt::format("{:.3g} MW / {}", p.distribution.v / 1e6, kw(peak_)));
    const Watts heat = plant_capacity(site_.cooling, worst, it);
    add(Limit::kCooling, site_.cooling.capacity.v > 0, whole(heat.v / peak_.v),
        fmt::format("{:.3g} MW of heat at {:.1f} C / {}", heat.v / 1e6, worst.dry_c, kw(peak_)));
  }

  void per_rack_limits(int64_t by_circuit, int64_t by_cooling, int64_t by_floor) {
    const auto hold = [&](Limit limit, bool stated, int64_t per_rack, std::string why) {
      int64_t n = std::min(per_rack, out_.rack.by_height);
      if (out_.rack.fixed && n < out_.rack.by_height) n = 0;
      const bool known = stated && positions_ > 0;
      add(limit, known || (stated && n == 0),
          known    ? positions_ * n
          : n == 0 ? 0
                   : kUnlimited,
          std::move(why));
    };
    const auto nodes = [](int64_t n) {
      return fmt::format("{} node{} a rack", n, n == 1 ? "" : "s");
    };
    const Hall& h = site_.hall;
    hold(Limit::kRackPower, h.rack_power.v > 0, by_circuit,
         fmt::format("{} / {} nameplate: {}", kw(h.rack_power * site_.power.breaker),
                     kw(power_.nameplate), nodes(std::min(by_circuit, out_.rack.by_height))));
    hold(Limit::kRackCooling, site_.cooling.rack_max.v > 0, by_cooling,
         fmt::format("{} / {} peak: {}", kw(site_.cooling.rack_max), kw(peak_),
                     nodes(std::min(by_cooling, out_.rack.by_height))));
    hold(Limit::kFloorLoad, h.floor_kg_m2 > 0, by_floor,
         fmt::format("{:.0f} kg/m2, {:.0f} kg a node: {}", h.floor_kg_m2, weight_,
                     nodes(std::min(by_floor, out_.rack.by_height))));
  }

  void floor_space() {
    const Hall& h = site_.hall;
    const double area = h.rack_footprint_m2 + h.rack_clearance_m2;
    int64_t racks = positions_ > 0 ? positions_ : kUnlimited;
    std::string why = fmt::format("{} positions", positions_);
    if (h.area_m2 > 0) {
      const int64_t by_area = whole(h.area_m2 / area) * site_.halls;
      if (by_area < racks) why = fmt::format("{:.0f} m2 at {:.2f} m2 a rack", h.area_m2, area);
      racks = std::min(racks, by_area);
    }
    const bool stated = positions_ > 0 || h.area_m2 > 0;
    add(Limit::kSpace, stated, racks >= kUnlimited ? kUnlimited : racks * each_, why);
    // Racks whose cables, along rows and aisles, are no longer than the reach lie in a diamond.
    const double run = std::max(0.0, h.reach_m - kRiserM);
    add(Limit::kReach, h.reach_m > 0, whole(run * run / 2 / area) * each_,
        fmt::format("cables of {:.0f} m between any two racks", h.reach_m));
  }

  void finish() {
    int64_t least = kUnlimited;
    for (Bottleneck& b : out_.limits) {
      if (!b.stated) continue;
      out_.any_stated = true;
      if (b.nodes < least) {
        least = b.nodes;
        out_.binding = b.limit;
      }
    }
    for (Bottleneck& b : out_.limits) {
      const bool floor = b.limit == Limit::kSpace || b.limit == Limit::kReach;
      const bool in_rack = b.limit == Limit::kRackPower || b.limit == Limit::kRackCooling ||
                           b.limit == Limit::kFloorLoad;
      const int64_t per_rack = floor ? each_ : out_.rack.by_height;
      b.racks = b.nodes >= kUnlimited ? kUnlimited : b.nodes / per_rack;
      if (in_rack) b.racks = b.nodes > 0 ? positions_ : 0;
    }
    out_.nodes = least;
    out_.racks = least >= kUnlimited ? kUnlimited : least / each_;
    out_.asked_racks = (cluster_.nodes + each_ - 1) / each_;
  }

  const Site& site_;
  const Cluster& cluster_;
  NodePower power_;
  Watts peak_;
  int64_t units_ = 8, positions_ = 0;
  int64_t each_ = 1;  // nodes of a rack, where racks are counted
  double weight_ = 0;
  Density out_;
};

}  // namespace

const char* limit_name(Limit limit) {
  switch (limit) {
    case Limit::kContracted:
      return "contracted power";
    case Limit::kDistribution:
      return "distribution";
    case Limit::kCooling:
      return "cooling plant";
    case Limit::kRackPower:
      return "rack power";
    case Limit::kRackCooling:
      return "rack cooling";
    case Limit::kFloorLoad:
      return "floor load";
    case Limit::kSpace:
      return "space";
    case Limit::kReach:
      return "network reach";
  }
  return "";
}

Density density(const Site& site, const Cluster& cluster) { return Series(site, cluster).run(); }

double floor_load(const Hall& h, double rack_kg) {
  const double area = h.rack_footprint_m2 + h.rack_clearance_m2;
  return (rack_kg + kPeopleKgM2 * h.rack_clearance_m2) / area + kRaisedFloorKgM2;
}

int64_t nodes_by_power(Watts rack, double breaker, Watts node) {
  return node.v > 0 ? whole(rack.v * breaker / node.v) : kUnlimited;
}

}  // namespace assay
