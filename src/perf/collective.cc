// The collectives model. docs/models/collectives.md derives it; in short:
//
//   time = start + steps x latency of a step + stream time + pipeline fill
//
// A message crosses up to two tiers, the scale-up link and the fabric, in one pipeline: their step
// latencies add, the slower of their streams counts. The library chooses among algorithms (ring,
// tree, in-switch reduction, direct) and protocols (LL, LL128, Simple); we take the fastest, as its
// tuner tries to. Every term grows with bytes and shrinks with bandwidth, and a minimum of such
// terms does too: that is why the whole is monotone.
//
// Example, 8 x H100, all-reduce of 1 GB: ring 2 x 7/8 GB at 450 GB/s x 0.81 = 4.8 ms; in the switch
// 1 GB at 450 GB/s x 0.61 = 3.6 ms plus 0.13 ms of fill and start; nccl-tests measures 3.75 ms.
#include "perf/collective.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/assert.h"

namespace assay {
namespace {

// What one tier does in one algorithm.
struct Tier {
  const CollectiveParams& params;
  double bandwidth;     // nominal, of one ring member: an accelerator, or a domain's share of NICs
  double steps = 0;     // hops in sequence
  double wire = 0;      // bytes through each member's link
  double local = 0;     // bytes each member copies for itself
  double slowdown = 1;  // of the stream, by others on the same links
};

int64_t ceil_log2(int64_t n) {
  return static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(n - 1)));
}

double positive_or_floor(Bandwidth b) { return b.v > 0 ? b.v : kFloorNics.v; }

// Chunks grow with the message up to the size of the library's buffers; until the first has passed
// every stage nothing flows. Saturates at `longest`; half of it at a stream time of `scale`.
double fill(double stream, double longest, double scale) {
  return longest * stream / (stream + scale);
}

// Time to move a tier's bytes at the pace of the Simple protocol.
double stream(const Tier& t) {
  return t.wire <= 0 ? 0 : t.wire / (t.bandwidth * t.params.bus_efficiency) * t.slowdown;
}

// The same with what Simple adds: the local copy and the fill of its pipeline.
double simple_stream(const Tier& t, double bare) {
  if (t.wire <= 0) return 0;
  return bare + t.params.copy_cost * t.local / t.bandwidth +
         fill(bare, t.params.fill_latency.v, t.params.fill_scale.v);
}

// Both tiers in one pipeline with the best of the three protocols. Without the start.
double pipeline(const Tier& scaleup, const Tier& fabric) {
  const CollectiveParams& s = scaleup.params;
  const CollectiveParams& f = fabric.params;
  const double near = stream(scaleup);
  const double far = stream(fabric);
  const double ll = scaleup.steps * s.ll_step.v + fabric.steps * f.ll_step.v +
                    std::max(near * s.ll_cost, far * f.ll_cost);
  const double ll128 = scaleup.steps * s.ll128_step.v + fabric.steps * f.ll128_step.v +
                       std::max(near * s.ll128_cost, far * f.ll128_cost);
  const double simple = scaleup.steps * s.simple_step.v + fabric.steps * f.simple_step.v +
                        std::max(simple_stream(scaleup, near), simple_stream(fabric, far));
  return std::min({ll, ll128, simple});
}

// A tree's chain inside the node sends both ways through the same channels; on 2 x 8 A100 with 200
// GB/s of NICs the library keeps to the ring (OCI BM.GPU.B4.8, 189.6 GB/s of bus bandwidth), so the
// chain's stream takes at least this much longer than its bytes over the ring's bandwidth.
constexpr double kTreeChainCost = 1.4;
// Between two domains a tree moves the message once each way, but the two trees do not overlap
// fully: 83.6 % of line rate on AWS p4de (large messages), 82.6 % with one 400G NIC a node (nccl
// issue 1357), where rings reach 95 %.
constexpr double kTwoDomainPasses = 1.14;
// A tree over domains that reduce in their switches runs 6 % below the switches' own pace: 255 to
// 260 GB/s of message on 2 x 8 H100 or H200 (AWS p5, Dell, run:ai) where one node alone gives 274.
constexpr double kTreeSwitchCost = 1.06;
// With more domains each one is a leaf in one of the two trees and serves two children in the
// other.
constexpr double kTreePasses = 2;

// Chips in a cube of a TPU's torus, 4 along each side. A slice in three dimensions is cut from them
// and optical switches join their faces, so it is a torus itself (TPU v4 and later); a smaller one,
// and one in two dimensions, has only the links of its place.
constexpr int64_t kTorusCube = 64;

// How the accelerators' links serve a group of `ranks` in one domain.
struct ScaleUp {
  double ring;    // bandwidth of one member in a ring or tree
  double direct;  // the same in an all-to-all
  double pair;    // between two accelerators
  double slowdown;
  double hops = 0;  // in sequence for one turn of a torus; zero: a ring through every rank
};

// A slice of a torus, as near to a cube as its number of accelerators allows: its prime factors,
// largest first, each to the axis that is shortest (8 in a plane: 2 x 4; 32: 4 x 8).
struct Slice {
  std::array<double, 3> length{1, 1, 1};  // shortest first
  double side = 1;                        // of the whole torus
  bool cubes = false;                     // optical switches close every axis
};

Slice slice_of(const Links& links, int axes) {
  const double domain = real(links.scaleup_domain);
  Slice s;
  s.side = std::max(2.0, std::round(std::pow(domain, 1.0 / axes)));
  const int64_t ranks = links.slice > 0 ? links.slice : links.scaleup_domain;
  s.cubes = axes == 3 && ranks >= kTorusCube;
  if (ranks >= links.scaleup_domain) {
    std::fill_n(s.length.begin(), axes, s.side);
    return s;
  }
  std::array<int64_t, 64> factors{};
  int count = 0;
  int64_t left = ranks;
  for (int64_t f = 2; f * f <= left; ++f)
    for (; left % f == 0; left /= f) factors[static_cast<size_t>(count++)] = f;
  if (left > 1) factors[static_cast<size_t>(count++)] = left;
  while (count-- > 0) {
    *std::min_element(s.length.begin(), s.length.begin() + axes) *=
        real(factors[static_cast<size_t>(count)]);
  }
  std::sort(s.length.begin(), s.length.begin() + axes);
  return s;
}

// The group fills the slice's axes, the shortest first, or the one that it fills exactly. An axis
// offers two links, one per direction; where it is shorter than the torus, and no optical switch
// closes it, or the group shorter than the axis, it has no wrap-around and half of that.
// All-to-all: the mean distance along a ring of length L is L/4 hops, so each axis carries L/4
// times the message on its two links. Both directions at once reach the farthest rank of a closed
// axis in L/2 hops.
void torus(ScaleUp& s, const Links& links, int64_t ranks, int axes, double total) {
  Slice slice = slice_of(links, axes);
  const auto end = slice.length.begin() + axes;
  const auto exact = std::find(slice.length.begin(), end, real(ranks));
  if (exact != end) std::rotate(slice.length.begin(), exact, exact + 1);
  double length = 1, closed = 0, slowest = 0;
  int used = 0;
  while (used < axes && length < real(ranks)) {
    const double axis = slice.length[static_cast<size_t>(used++)];
    if (axis <= 1) continue;
    const double left = std::ceil(real(ranks) / length);
    const bool wraps = left >= axis && (slice.cubes || axis == slice.side);
    const double ring = std::min(axis, left);
    closed += wraps ? 1 : 0.5;
    slowest = std::max(slowest, std::max(1.0, ring / 4) / (wraps ? 1 : 0.5));
    s.hops += wraps ? ring / 2 : ring - 1;
    length *= axis;
  }
  s.ring = total * closed / axes;
  s.pair = total / (2 * axes);
  s.direct = total / axes / slowest;
}

ScaleUp scale_up(const Links& links, int64_t ranks) {
  const double total = positive_or_floor(links.scaleup);
  ScaleUp s{total, total, total, 1};
  const double peers = real(std::max<int64_t>(links.scaleup_domain, 2) - 1);
  switch (links.wiring) {
    case Wiring::kSwitch:
      break;
    case Wiring::kNone:
      break;
    case Wiring::kMesh:  // a link to each peer; a group uses those between its members
      s.pair = total / peers;
      s.ring = s.direct = total * std::min(1.0, real(ranks - 1) / peers);
      break;
    case Wiring::kTorus2d:
      torus(s, links, ranks, 2, total);
      break;
    case Wiring::kTorus3d:
      torus(s, links, ranks, 3, total);
      break;
    case Wiring::kRing:
      torus(s, links, ranks, 1, total);
      break;
  }
  s.slowdown = 1 + links.scaleup_params.group_slowdown * (1 - 2.0 / real(ranks));
  return s;
}

// The group as the equations see it.
struct Shape {
  double n;  // ranks
  double p;  // ranks in one domain
  double k;  // domains
  int64_t ranks, per_domain, domains;
  double nics;             // bandwidth of one domain's NICs for this group, slow links included
  double crossing;         // slowdown of rings, trees and neighbours by an oversubscribed layer
  double crossing_direct;  // of all-to-all
};

Shape shape_of(const Group& g, const Links& links) {
  Shape s{};
  s.ranks = g.ranks;
  s.per_domain = g.per_domain;
  s.domains = (g.ranks + g.per_domain - 1) / g.per_domain;
  s.n = real(g.ranks);
  s.p = real(g.per_domain);
  s.k = real(s.domains);

  const double per_node = real(std::max<int64_t>(links.node_accelerators, 1));
  const double node_nics = positive_or_floor(links.node_nics);
  const double sharing = real(g.sharing);
  // The `sharing` groups interleave on the node, so this one has per_node / sharing ranks on each.
  const double domain_nodes = std::max(1.0, real(links.scaleup_domain) / per_node);
  const double nodes = std::clamp(std::ceil(s.p * sharing / per_node), 1.0, domain_nodes);
  // A rank alone drives the NIC next to it, not all of the node's.
  const double own = std::max(links.nic.v, node_nics / per_node);
  s.nics = std::min(nodes * node_nics / sharing, s.p * own) * links.slowest_link;

  // Nodes from the group's members in one domain to those in the next.
  const double apart = std::max(nodes, s.p * real(g.stride) / per_node);
  const double spanned = s.k * apart;
  const double leaf = real(std::max<int64_t>(links.nodes_per_leaf, 1));
  s.crossing = s.crossing_direct = 1;
  if (spanned > leaf) {
    // Ranks are placed in order, so of a ring's hops, which all run at once, one in as many as a
    // leaf has domains of it leaves the leaf and has the uplinks to itself; an all-to-all, peer
    // after peer, sends all but its leaf's share across.
    s.crossing = std::max(1.0, links.oversubscription / std::max(1.0, leaf / apart));
    s.crossing_direct = 1 + (links.oversubscription - 1) * (spanned - leaf) / spanned;
  }
  return s;
}

// Reduction inside the scale-up switch: bytes in at one port, reduced result out.
double in_switch(const CollectiveParams& p, double bytes, double bandwidth) {
  const double flow = bytes / (bandwidth * p.in_switch_efficiency);
  return flow + fill(flow, p.in_switch_fill.v, p.fill_scale.v);
}

bool reduces_in_scaleup(const Links& links, int64_t ranks) {
  const int64_t least = links.scaleup_params.in_switch_ranks;
  return links.wiring == Wiring::kSwitch && least > 0 && ranks >= least;
}

double ring_time(double bytes, double turns, const Shape& s, const ScaleUp& up,
                 const Links& links) {
  const CollectiveParams& sp = links.scaleup_params;
  const CollectiveParams& fp = links.fabric_params;
  const double wire = turns * bytes * (s.n - 1) / s.n;
  const bool inside = s.per_domain > 1;
  const double steps = !inside ? 0 : up.hops > 0 ? up.hops : s.n - s.k;
  Tier scaleup{sp, up.ring, turns * steps, inside ? wire : 0, bytes / s.n, up.slowdown};
  Tier fabric{fp, s.nics, turns * (s.k - 1), s.domains > 1 ? wire : 0, 0, s.crossing};
  const double start = sp.base_latency.v + (s.domains > 1 ? fp.base_latency.v : 0);
  return start + pipeline(scaleup, fabric);
}

// All-reduce over a double binary tree of domains, a chain or the switch inside each; with
// reduction in the fabric's switches one hop up and one down.
double tree_time(double bytes, const Shape& s, const ScaleUp& up, const Links& links) {
  const CollectiveParams& sp = links.scaleup_params;
  const CollectiveParams& fp = links.fabric_params;
  const double levels = real(ceil_log2(s.domains));
  const bool sharp = links.in_switch_reduction;
  const double passes = sharp ? 1 : s.domains == 2 ? kTwoDomainPasses : kTreePasses;
  const double hops = sharp ? 2 : 2 * levels;
  Tier fabric{fp, s.nics, hops, passes * bytes, 0, s.crossing};
  const double start = sp.base_latency.v + fp.base_latency.v;
  const double chain = up.hops > 0 && s.p > 1 ? up.hops : s.p - 1;
  const double wire = 2 * bytes * (s.p - 1) / s.p;
  Tier scaleup{sp, up.ring, 2 * chain, wire, 0, up.slowdown * kTreeChainCost};
  double best = pipeline(scaleup, fabric);
  if (reduces_in_scaleup(links, s.per_domain)) {
    const double latency = hops * fp.simple_step.v + sp.in_switch_latency.v;
    best = std::min(best, latency + std::max(in_switch(sp, bytes * kTreeSwitchCost, up.ring),
                                             simple_stream(fabric, stream(fabric))));
  }
  return start + best;
}

double all_reduce(double bytes, const Shape& s, const ScaleUp& up, const Links& links) {
  double best = ring_time(bytes, 2, s, up, links);
  const bool tree = s.domains > 2 || (s.domains == 2 && (links.pair_tree || s.per_domain == 1));
  if (tree) return std::min(best, tree_time(bytes, s, up, links));
  if (s.domains > 1) return best;
  if (reduces_in_scaleup(links, s.ranks)) {
    const CollectiveParams& p = links.scaleup_params;
    best = std::min(best, p.base_latency.v + p.in_switch_latency.v + in_switch(p, bytes, up.ring));
  }
  return best;
}

// Each rank sends `near` bytes to peers of its domain and the domain sends `far` through its NICs.
struct Direct {
  double near, near_peers, near_bandwidth, near_slowdown;
  double far, far_peers, far_slowdown;
  double local;  // bytes a rank keeps for itself and copies
};

double direct_time(const Direct& d, const Shape& s, const Links& links) {
  const CollectiveParams& sp = links.scaleup_params;
  const CollectiveParams& fp = links.fabric_params;
  double start = sp.direct_latency.v + std::max(0.0, d.near_peers - 1) * sp.direct_step.v;
  double simple_start = sp.direct_simple.v;
  const double near = d.near / (d.near_bandwidth * sp.direct_efficiency) * d.near_slowdown;
  const double far = d.far / (s.nics * fp.direct_efficiency) * d.far_slowdown;
  if (d.far_peers > 0) {
    start += fp.direct_latency.v + (d.far_peers - 1) * fp.direct_step.v;
    simple_start += fp.direct_simple.v;
  }
  const double ll = std::max(near * sp.ll_cost, far * fp.ll_cost);
  const double near_simple = near + sp.copy_cost * d.local / d.near_bandwidth +
                             fill(near, sp.fill_latency.v, sp.fill_scale.v);
  const double far_simple = far + fill(far, fp.fill_latency.v, fp.fill_scale.v);
  return start + std::min(ll, simple_start + std::max(near_simple, far_simple));
}

double all_to_all(double bytes, const Shape& s, const ScaleUp& up, const Links& links) {
  const double each = bytes / s.n;
  return direct_time({.near = each * (s.p - 1),
                      .near_peers = s.p - 1,
                      .near_bandwidth = up.direct,
                      .near_slowdown = up.slowdown,
                      .far = s.p * each * (s.n - s.p),
                      .far_peers = s.n - s.p,
                      .far_slowdown = s.crossing_direct,
                      .local = each},
                     s, links);
}

// Round a ring each member sends to the next one: of a domain's members the last one's message
// leaves it. REQUIRES: a shape of one member per domain where there are several domains.
double send_receive(double bytes, const Shape& s, const ScaleUp& up, const Links& links) {
  const bool inside = s.domains == 1;
  return direct_time({.near = inside ? bytes : 0,
                      .near_peers = inside ? 1.0 : 0.0,
                      .near_bandwidth = up.pair,
                      .near_slowdown = 1,
                      .far = inside ? 0 : bytes,
                      .far_peers = inside ? 0.0 : 1.0,
                      .far_slowdown = s.crossing,
                      .local = 0},
                     s, links);
}

}  // namespace

Links resolve_links(const Cluster& cluster, const CollectiveParams& scaleup,
                    const CollectiveParams& fabric) {
  const Accelerator& a = cluster.accelerator;
  const Fabric& f = cluster.fabric;
  Links links;
  links.scaleup = a.scaleup_bandwidth.v > 0 ? a.scaleup_bandwidth : a.pcie_bandwidth;
  links.wiring = a.scaleup_bandwidth.v > 0 ? a.wiring : Wiring::kNone;
  links.scaleup_domain = cluster.scaleup_domain();
  links.node_accelerators = cluster.node.accelerators;
  links.nic = cluster.node.nic_bandwidth;
  links.node_nics = links.nic * real(cluster.node.nics);
  if (f.kind == FabricKind::kNone || links.node_nics.v <= 0) {
    links.node_nics = links.nic = kFloorNics;
  }
  links.oversubscription = f.oversubscription;
  links.nodes_per_leaf = f.nodes_per_leaf;
  links.in_switch_reduction = f.in_switch_reduction;
  links.slowest_link = cluster.slow_links() > 0 ? f.degraded_speed : 1;
  links.scaleup_params = scaleup;
  links.fabric_params = fabric;
  if (f.efficiency > 0) {
    links.fabric_params.direct_efficiency *= f.efficiency / fabric.bus_efficiency;
    links.fabric_params.bus_efficiency = f.efficiency;
  }
  return links;
}

double bus_factor(Collective kind, int64_t ranks) {
  ASSERT(ranks >= 1);
  if (kind == Collective::kSendRecv) return 1;
  const double n = real(ranks);
  const double moved = (n - 1) / n;
  return kind == Collective::kAllReduce ? 2 * moved : moved;
}

Seconds collective_time(Collective kind, Bytes bytes, const Group& group, const Links& links) {
  ASSERT(bytes.v >= 0);
  ASSERT(group.per_domain >= 1 && group.sharing >= 1);
  if (group.ranks <= 1 || bytes.v == 0) return Seconds(0);
  ASSERT(group.per_domain <= group.ranks);
  Group seen = group;
  if (kind == Collective::kSendRecv && group.ranks > group.per_domain) seen.per_domain = 1;
  const Shape s = shape_of(seen, links);
  const ScaleUp up = scale_up(links, std::max<int64_t>(group.per_domain, 2));
  switch (kind) {
    case Collective::kAllReduce:
      return Seconds(all_reduce(bytes.v, s, up, links));
    case Collective::kAllGather:
    case Collective::kReduceScatter:
      return Seconds(ring_time(bytes.v, 1, s, up, links));
    case Collective::kAllToAll:
      return Seconds(all_to_all(bytes.v, s, up, links));
    case Collective::kSendRecv:
      return Seconds(send_receive(bytes.v, s, up, links));
  }
  return Seconds(0);
}

}  // namespace assay
