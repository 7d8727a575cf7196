// The machine of a run: the reference node that carries its accelerator, and the network as far as
// the text says more.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "validate/links.h"
#include "validate/machines.h"
#include "validate/scenario.h"
#include "validate/text.h"
#include "world/usual_fabric.h"

namespace assay {
namespace {

std::string port_name(Bandwidth b) { return fmt::format("{:.0f}", b.v / kGbit); }

// Racks whose scale-up link joins more than one node. A job that does not fill racks of 72 is
// placed on 16 of the 18 trays of each, so that its groups stay powers of two.
void apply_rack(const Catalog& catalog, const Node& node, int64_t ranks, Fabric& fabric) {
  if (node.name.find("nvl72") == std::string::npos) return;
  const Fabric* rack =
      find_fabric(catalog, node.nic_bandwidth.v > 500 * kGbit ? "nvl72-xdr" : "nvl72");
  const FabricKind kind = fabric.kind;
  if (rack) fabric = *rack;
  fabric.kind = kind;
  if (fabric.scaleup_domain == 0) fabric.scaleup_domain = 72;
  if (ranks > fabric.scaleup_domain && ranks % fabric.scaleup_domain != 0 && ranks % 64 == 0) {
    fabric.scaleup_domain = 64;
  }
}

// A node's total split into ports of the reference node's speed, or as many as there are.
void set_ports(Node& node, Bandwidth total, std::optional<int64_t> counted, Bandwidth usual_port) {
  int64_t ports = counted.value_or(0);
  if (ports == 0 && usual_port.v > 0) ports = static_cast<int64_t>(std::round(total / usual_port));
  node.nics = std::clamp<int64_t>(ports, 1, 256);
  node.nic_bandwidth = total / static_cast<double>(node.nics);
}

// Whether a listed adapter is a management port: far below anything that trains on this
// accelerator.
bool too_slow_to_be_meant(Bandwidth stated, const Node& reference) {
  constexpr double kLeastShare = 1.0 / 50;
  return stated.v < kLeastShare * reference.nic_bandwidth.v * static_cast<double>(reference.nics);
}

// What a row says of its network: the cell of its own, else a remark that names a link with a rate;
// and that the library was kept from RDMA.
std::string network_text(const Run& run) {
  const std::string remarks = run.notes + " ; " + run.overlap_notes;
  const std::string text = run.inter_link.empty() ? link_in_notes(run.notes) : run.inter_link;
  return no_verbs(remarks) ? text + "; NCCL_IB_DISABLE=1" : text;
}

// The same of the links within a node.
std::string scaleup_text(const Run& run) {
  std::string text = run.intra_link;
  const bool off = text.empty() && denies_nvlink(run.notes);
  if (off) text = "no NVLink";
  if (claims_any(clause_words(text), {"p2p", "peer to peer", "peer access"}) == false)
    text += "; NCCL_P2P_DISABLE=1";
  return no_peer_access(run.notes + " ; " + run.overlap_notes) ? text + "; NCCL_P2P_DISABLE=1"
                                                               : text;
}

// Google's A3 of the first two kinds carry a TCP of their own past the host's memory.
void apply_gcp(const Catalog& catalog, const Node& reference, Fabric& fabric) {
  const bool high = reference.name == "gcp-a3-high";
  if (fabric.kind != FabricKind::kTcp || (!high && reference.name != "gcp-a3-mega")) return;
  if (const Fabric* own = find_fabric(catalog, high ? "tcpx" : "tcpxo")) fabric = *own;
}

struct StatedPorts {
  std::optional<Bandwidth> total;
  std::optional<int64_t> ports;
};

StatedPorts stated_ports(const LinkCell& link, const Node& reference, int64_t accelerators) {
  if (link.management) return {};
  StatedPorts out{node_bandwidth(link, accelerators), ports_of_node(link, accelerators)};
  if (link.per == LinkCell::Per::kAccelerator && !link.port_share)
    out.ports = accelerators * link.each;
  if (link.per == LinkCell::Per::kAccelerator && !link.stated_per && !link.port_share &&
      link.rate && std::abs(*link.rate / reference.nic_bandwidth - 1) < 0.01) {
    out.ports = reference.nics;  // the usual ports of such a node
    out.total = reference.nic_bandwidth * static_cast<double>(reference.nics);
  }
  const bool other =
      link.lists_adapters && out.total && too_slow_to_be_meant(*out.total, reference);
  return other ? StatedPorts{} : out;
}

void apply_link(const Run& run, const Accelerator& a, const Catalog& catalog, bool many_nodes,
                Cluster& cluster, std::vector<std::string>& assumed) {
  const Node reference = cluster.node;
  const LinkCell link = read_link(network_text(run));
  const FabricKind usual = usual_fabric_kind(a, reference);
  const StatedPorts stated = stated_ports(link, reference, cluster.node.accelerators);
  FabricKind kind = link.kind.value_or(usual);
  if (stated.total) {
    set_ports(cluster.node, *stated.total, stated.ports, reference.nic_bandwidth);
    if (link.plain_ethernet && *stated.total < kLeastRdma) kind = FabricKind::kTcp;
  } else if (link.lists_adapters && link.plain_ethernet) {
    kind = usual;
  } else if (kind == FabricKind::kTcp && usual != FabricKind::kTcp) {
    // Ports of RDMA that are not used as such: what is left is the host's own, of usual speed.
    set_ports(cluster.node, Bandwidth(100 * kGbit), 1, reference.nic_bandwidth);
  }
  cluster.fabric = fabric_of_kind(catalog, kind, cluster.node.nic_bandwidth, cluster.node.nics);
  apply_gcp(catalog, reference, cluster.fabric);
  apply_rack(catalog, reference, run.accelerators.value_or(1), cluster.fabric);
  if (link.oversubscription > 1) cluster.fabric.oversubscription = link.oversubscription;
  if (many_nodes && !stated.total) {
    assumed.push_back(fmt::format("network {} x {} Gb/s {}", cluster.node.nics,
                                  port_name(cluster.node.nic_bandwidth), cluster.fabric.name));
  }
}

// `4 links/GPU`: fewer scale-up links than the accelerator has. One NVLink carries 25 GB/s one way
// up to its fourth generation and 50 GB/s in the fifth (vendor data sheets). Two cards that talk
// over PCIe may have a bridge.
void apply_scaleup(const Run& run, Accelerator& a) {
  const bool pair =
      run.per_node.value_or(run.accelerators.value_or(1)) == 2 && run.accelerators.value_or(1) >= 2;
  const bool two = pair || (run.accelerators.value_or(1) == 2 && run.per_node.value_or(2) != 1);
  if (two && a.bridge_bandwidth.v > 0 && says_nvlink(run.intra_link + " ; " + run.gpu)) {
    a.scaleup_link = "nvlink3";
    a.scaleup_bandwidth = a.bridge_bandwidth;
    return;
  }
  const std::optional<int64_t> links = scaleup_links(run.intra_link);
  if (!links || !a.scaleup_link.starts_with("nvlink")) return;
  const Bandwidth one(a.scaleup_link == "nvlink5" ? 50e9 : 25e9);
  a.scaleup_bandwidth = std::min(a.scaleup_bandwidth, one * static_cast<double>(*links));
}

// Accelerators that talk over PCIe alone, and what is said of it: a slower generation or fewer
// lanes than the part's own, or what was measured.
void apply_pcie(const Run& run, const Catalog& catalog, Accelerator& a) {
  const std::string told = scaleup_text(run);
  const bool no_peers = no_peer_access(told), only = no_peers || pcie_only(told);
  if (only && !a.scaleup_link.starts_with("pcie")) {
    a.scaleup_link = "pcie4";
    a.scaleup_bandwidth = a.pcie_bandwidth;
    a.wiring = Wiring::kSwitch;
  }
  // Through the host's memory everything crosses the bus twice.
  if (no_peers) a.scaleup_bandwidth = std::min(a.scaleup_bandwidth, a.pcie_bandwidth / 2);
  const std::optional<PcieCell> stated = only ? read_pcie(told) : std::nullopt;
  if (!stated) return;
  // A part's bandwidth is the nominal one, of which a library gets a share: what was measured is
  // it.
  const CollectiveParams* library = find_collectives(catalog, a.scaleup_link, true);
  const Bandwidth whole = stated->rate / (library ? library->bus_efficiency : 1);
  a.scaleup_bandwidth = stated->measured ? whole : std::min(a.scaleup_bandwidth, stated->rate);
}

// A limit that is told without its watts: those that are told are 500 of 700 W on an H100 and 750
// of 1,000 on a B200.
constexpr double kUsualLimit = 0.75;

// The node that a row names: by a cloud's fabric or shape, or, where nothing is said of the
// network, by a machine of the catalog that its notes name (`Jean-Zay`, `Google A3`).
const Node* named_node(const Run& run, const Accelerator& accelerator, const Catalog& catalog) {
  const auto suits = [&](const Node* n) {
    return n && n->accelerator == accelerator.name && n->nics > 0;
  };
  for (const std::string& shape : {run.gpu, run.inter_link}) {
    const Node* named = shape.empty() ? nullptr : find_node(catalog, shape);
    if (suits(named)) return named;
  }
  for (const std::string& text : {run.gpu, run.inter_link, run.intra_link}) {
    for (const Node* named : nodes_named_in(catalog, text)) {
      if (suits(named)) return named;
    }
  }
  if (read_link(run.inter_link).kind == FabricKind::kEfa) {
    const int64_t wanted = run.per_node.value_or(0);
    if (const Node* aws = reference_node(catalog, accelerator, wanted, "aws")) return aws;
  }
  if (!run.inter_link.empty()) return nullptr;
  for (const Node* named : nodes_named_in(catalog, run.notes, true)) {
    if (suits(named)) return named;
  }
  return nullptr;
}

}  // namespace

Cluster choose_cluster(const Run& run, const Accelerator& accelerator, const Catalog& catalog,
                       std::vector<std::string>& assumed) {
  Cluster cluster;
  tell_unread_part(accelerator, run.gpu, assumed);
  const int64_t ranks = run.accelerators.value_or(1);
  const int64_t wanted = run.per_node.value_or(0);
  const Node* reference = named_node(run, accelerator, catalog);
  if (!reference) {
    reference = reference_node(catalog, accelerator, wanted);
    // Eight A10G of which no more is said are one node of eight, not two of the usual four.
    const bool several = reference && !run.per_node && ranks > reference->accelerators;
    if (several && carries(catalog, accelerator, ranks))
      reference = reference_node(catalog, accelerator, ranks);
  }
  if (!reference) reference = kin_node(catalog, accelerator, wanted);
  if (reference) cluster.node = *reference;
  if (!reference) {
    cluster.node.nic_bandwidth = Bandwidth(100 * kGbit);
    cluster.node.nics = 1;
  }
  const int64_t usual = reference ? reference->accelerators : 8;
  int64_t per_node = std::min(run.per_node.value_or(usual), ranks);
  if (per_node < 1 || per_node > 1024) per_node = std::min<int64_t>(usual, ranks);
  if (!run.per_node && ranks > 1) {
    assumed.push_back(fmt::format("{} accelerators per node", per_node));
  }
  if (reference && per_node < reference->accelerators && ranks > per_node) {
    cluster.node.nics = std::max<int64_t>(1, reference->nics * per_node / reference->accelerators);
  }
  // A rack counted as one node has the ports of all its trays.
  if (reference && per_node > reference->accelerators && per_node % reference->accelerators == 0) {
    cluster.node.nics = reference->nics * (per_node / reference->accelerators);
  }
  cluster.node.accelerator = accelerator.name;
  cluster.node.accelerators = per_node;
  cluster.accelerator = accelerator;
  apply_scaleup(run, cluster.accelerator);
  const std::string remarks = run.gpu + " ; " + run.notes;
  const bool limited = claims_any(clause_words(remarks), {"power limited", "power capped"}) == true;
  if (limited && !read_remarks(remarks).power_cap_w) {
    cluster.accelerator.tdp = accelerator.tdp * kUsualLimit;
    assumed.push_back(fmt::format("power limited to {:.0f} W", cluster.accelerator.tdp.v));
  }
  if (run.gpu_mem_gb && std::abs(*run.gpu_mem_gb * 1e9 / accelerator.memory.v - 1) > 0.12) {
    cluster.accelerator.memory = Bytes(*run.gpu_mem_gb * 1e9);
  }
  apply_pcie(run, catalog, cluster.accelerator);
  cluster.nodes = (ranks + per_node - 1) / per_node;
  const bool many = cluster.nodes > 1;
  const std::string link = squeezed(accelerator.scaleup_link);
  if (wired_as_torus(accelerator)) {
    cluster.fabric = torus_of(catalog, accelerator);
  } else if (link.find("roce") != std::string::npos || link.find("ethernet") != std::string::npos) {
    // The accelerator brings its own ports; what is listed as a link is the host's.
    const Fabric* own = find_fabric(catalog, "gaudi-scaleout");
    cluster.fabric =
        own ? *own : fabric_of_kind(catalog, FabricKind::kRoce, cluster.node.nic_bandwidth);
  } else {
    apply_link(run, accelerator, catalog, many, cluster, assumed);
  }
  cluster.name = fmt::format("{} x {}", cluster.nodes, cluster.node.name);
  return cluster;
}

}  // namespace assay
