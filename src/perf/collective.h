// Time of one collective operation as the communication libraries run it: ring, tree and in-switch
// algorithms; protocol by message size; inside a scale-up domain and across the fabric.
// docs/models/collectives.md has the equations, the parameters, their sources and the measured
// error.
#pragma once

#include "world/cluster.h"
#include "world/collective_params.h"

namespace assay {

enum class Collective { kAllReduce, kAllGather, kReduceScatter, kAllToAll, kSendRecv };
constexpr std::array<std::string_view, 5> enum_names(Collective) {
  return {"all_reduce", "all_gather", "reduce_scatter", "alltoall", "sendrecv"};
}

// Who takes part. `ranks` = `per_domain` x number of scale-up domains touched. While this group
// works, `sharing` groups (this one included) use the NICs of the same node at once, so each gets
// 1/sharing of the node's NIC bandwidth: with tensor parallel 8 inside the node, the 8
// data-parallel groups share. Members sit `stride` ranks apart, which says how many of them share a
// leaf switch.
struct Group {
  int64_t ranks = 1;
  int64_t per_domain = 1;
  int64_t sharing = 1;
  int64_t stride = 1;
};

// The links as a collective sees them, resolved once per cluster.
struct Links {
  Bandwidth scaleup;  // nominal, one direction, one accelerator
  Wiring wiring = Wiring::kSwitch;
  int64_t scaleup_domain = 8;
  int64_t slice = 0;  // accelerators of the job, where it has a part of a torus; zero: all of it
  int64_t node_accelerators = 8;
  Bandwidth node_nics;  // nominal, one direction, all NICs of one node; zero: kFloorNics is used
  Bandwidth nic;        // nominal, one NIC; zero: node_nics / node_accelerators
  double oversubscription = 1;
  int64_t nodes_per_leaf = 32;
  bool in_switch_reduction = false;
  bool pair_tree = true;            // the library's tuner tries trees between two domains
  double slowest_link = 1;          // speed of the slowest NIC link over nominal (1: all healthy)
  CollectiveParams scaleup_params;  // library behaviour on the scale-up link
  CollectiveParams fabric_params;   // library behaviour across nodes
};

// Nodes without training NICs still have a management port: a group that spans them is slow, not
// impossible. 10 Gbit/s, the commonest on-board port.
constexpr Bandwidth kFloorNics{1.25e9};

// The cluster's links. An accelerator without a scale-up link talks over PCIe; `fabric.efficiency`,
// where stated, replaces the fabric entry's bus_efficiency (all-to-all keeps its ratio to it); one
// degraded link slows every ring that passes it, so a share of them that is a link counts as all.
Links resolve_links(const Cluster&, const CollectiveParams& scaleup,
                    const CollectiveParams& fabric);

// `bytes` is the message size as nccl-tests prints it: the whole buffer of an all-reduce, the
// gathered output of an all-gather, the input of a reduce-scatter, one rank's send buffer of an
// all-to-all, the message of a send. One rank: zero. More bandwidth is never slower; more bytes are
// never faster.
// REQUIRES: bytes >= 0; 1 <= per_domain <= ranks; sharing >= 1. Zero or missing bandwidths count as
// kFloorNics, so the result is finite. Does not allocate.
Seconds collective_time(Collective, Bytes bytes, const Group&, const Links&);

// Bus bandwidth factor: busbw = algbw x factor (2(n-1)/n for all-reduce, 1 for send/receive,
// (n-1)/n for the others).
double bus_factor(Collective, int64_t ranks);

}  // namespace assay
