// A cluster: identical nodes, the fabric between them, and what they cost.
#pragma once

#include "world/accelerator.h"

namespace assay {

struct Node {
  std::string name;
  std::string accelerator;   // catalog name
  int64_t accelerators = 8;  // per node
  int64_t numa_nodes = 2;
  int64_t nics = 8;         // for training traffic; zero: a single-node machine
  Bandwidth nic_bandwidth;  // one direction, one NIC
  Bytes host_memory;
  Bandwidth disk_bandwidth;  // local disks, read
  Watts host_power;          // all that is not an accelerator, under load
  double host_speed = 1;     // single-thread speed over a 2023 x86 server: sets launch costs
  Watts nameplate;           // power supplies must carry it; zero: not known
  Watts idle_power;          // the whole node at rest; zero: not known
  int64_t rack_units = 0;    // zero: not known
  double weight_kg = 0;      // zero: not known
};

template <class T, class V>
  requires std::is_same_v<std::remove_const_t<T>, Node>
void fields(T& n, V&& visit) {
  visit("accelerator", n.accelerator, kAny, "accelerator, a catalog name");
  visit("accelerators", n.accelerators, Limits{1, 1024}, "accelerators per node");
  visit("numa_nodes", n.numa_nodes, Limits{1, 64}, "NUMA nodes");
  visit("nics", n.nics, Limits{0, 256}, "network ports for training traffic");
  visit("nic_bandwidth", n.nic_bandwidth, kNotNegative, "one NIC, one direction");
  visit("host_memory", n.host_memory, kNotNegative, "host memory");
  visit("disk_bandwidth", n.disk_bandwidth, kNotNegative, "local disks, read");
  visit("host_power", n.host_power, kNotNegative, "node power beside the accelerators");
  visit("host_speed", n.host_speed, Limits{0.05, 20}, "single-thread speed over a 2023 x86 server");
  visit("nameplate", n.nameplate, kNotNegative, "power that supplies must carry");
  visit("idle_power", n.idle_power, kNotNegative, "the whole node at rest");
  visit("rack_units", n.rack_units, Limits{0, 100}, "height");
  visit("weight_kg", n.weight_kg, Limits{0, 5000}, "weight");
}

enum class FabricKind { kInfiniband, kRoce, kEfa, kTcp, kSlingshot, kOmnipath, kTorus, kNone };
constexpr std::array<std::string_view, 8> enum_names(FabricKind) {
  return {"infiniband", "roce", "efa", "tcp", "slingshot", "omnipath", "torus", "none"};
}

struct Fabric {
  std::string name;
  FabricKind kind = FabricKind::kInfiniband;
  int64_t scaleup_domain = 0;   // accelerators joined by the scale-up link; zero: one node's
  double oversubscription = 1;  // leaf uplinks: 1 is non-blocking, 7 is Meta's aggregation layer
  bool rail_optimised = true;   // NIC i of every node hangs on leaf i
  int64_t nodes_per_leaf = 32;  // nodes whose traffic stays below the oversubscribed layer
  bool in_switch_reduction = false;  // SHARP and the like, in use by the collectives library
  double degraded_links = 0;         // fraction of NIC links that run slow (one is enough to hurt)
  double degraded_speed = 1;         // their speed as a fraction of nominal
  double efficiency = 0;             // achieved over nominal for large messages; zero: by kind
};

template <class T, class V>
  requires std::is_same_v<std::remove_const_t<T>, Fabric>
void fields(T& f, V&& visit) {
  visit("kind", f.kind, kAny, "transport");
  visit("scaleup_domain", f.scaleup_domain, Limits{0, 65536},
        "accelerators joined by scale-up links");
  visit("oversubscription", f.oversubscription, Limits{1, 1000}, "leaf uplink oversubscription");
  visit("rail_optimised", f.rail_optimised, kAny, "NIC i of every node on leaf i");
  visit("nodes_per_leaf", f.nodes_per_leaf, kCount, "nodes below one leaf (or rail group)");
  visit("in_switch_reduction", f.in_switch_reduction, kAny, "in-switch reduction in use");
  visit("degraded_links", f.degraded_links, kFraction,
        "fraction of links that run slow; half a link or more is one");
  visit("degraded_speed", f.degraded_speed, Limits{0.001, 1}, "speed of a slow link over nominal");
  visit("efficiency", f.efficiency, kFraction, "achieved over nominal; zero: by kind");
}

struct Cluster {
  std::string name;
  Node node;
  int64_t nodes = 1;
  Fabric fabric;
  Accelerator accelerator;      // resolved from node.accelerator; a description may override fields
  DollarRate price;             // per accelerator; zero: the accelerator's catalog price
  double pue = 1.25;            // facility power over IT power
  Bandwidth storage_bandwidth;  // shared storage, read, whole cluster; zero: unconstrained
  double inlet_c = 25;          // cooling supply; hotter silicon clocks lower under the same cap

  int64_t accelerators() const { return nodes * node.accelerators; }
  // Whole ones: a share of less than half a link is none.
  int64_t slow_links() const {
    const auto links = static_cast<double>(nodes * (node.nics > 0 ? node.nics : 1));
    return static_cast<int64_t>(fabric.degraded_links * links + 0.5);
  }
  int64_t scaleup_domain() const {
    return fabric.scaleup_domain > 0 ? fabric.scaleup_domain : node.accelerators;
  }
};

template <class T, class V>
  requires std::is_same_v<std::remove_const_t<T>, Cluster>
void fields(T& c, V&& visit) {
  visit("node", c.node, kAny, "the node, a catalog name or a mapping");
  visit("nodes", c.nodes, Limits{1, 1e6}, "number of nodes");
  visit("fabric", c.fabric, kAny, "the fabric, a catalog name or a mapping");
  visit("accelerator", c.accelerator, kAny, "overrides of the node's accelerator");
  visit("price", c.price, kNotNegative, "price per accelerator and hour; left out: its usual one");
  visit("pue", c.pue, Limits{1, 5}, "facility power over IT power");
  visit("storage_bandwidth", c.storage_bandwidth, kNotNegative, "shared storage, read");
  visit("inlet_c", c.inlet_c, Limits{-40, 80}, "coolant or air supply, Celsius");
}

}  // namespace assay
