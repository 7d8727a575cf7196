// The network of a node from what people write about it: `8x ConnectX-7 InfiniBand NDR 400Gb/s`,
// `400 Gbps/node`, `400 Gb/s RDMA per GPU`, `Storage: 2x ..., Compute: 8x ...`, `Slingshot`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/units.h"
#include "world/cluster.h"
#include "world/usual_fabric.h"

namespace assay {

struct LinkCell {
  std::optional<FabricKind> kind;    // the transport that is named
  std::optional<Bandwidth> rate;     // of one port, or of the whole node; one direction
  std::optional<int64_t> ports;      // per node, where counted
  std::optional<double> port_share;  // ports over accelerators: `1 NIC per 2 GPUs`
  enum class Per { kPort, kAccelerator, kNode } per = Per::kPort;
  double oversubscription = 1;  // `2:1` is 2
  int64_t each = 1;             // ports of every accelerator: `2x200G per GPU`
  bool stated_per = false;      // `per GPU` is written; else `per` is how such links usually are
  bool management = false;      // it only names a management or storage network
  bool lists_adapters = false;  // a host's adapters by their makers' names
  bool plain_ethernet = false;  // of which nothing says that it carries RDMA
};
LinkCell read_link(const std::string& cell);

// Total bandwidth of a node's training network, where the text says enough.
std::optional<Bandwidth> node_bandwidth(const LinkCell&, int64_t accelerators);

// Ports of a node with that many accelerators, where the text counts them.
std::optional<int64_t> ports_of_node(const LinkCell&, int64_t accelerators);

// Settings of the collectives' library that people note: the network without RDMA, and a node
// whose accelerators reach each other through the host's memory alone.
bool no_verbs(const std::string& text);
bool no_peer_access(const std::string& text);

// `NVLink`, `NV4`, and neither denied.
bool says_nvlink(const std::string& text);
// `NVLink disabled` in free notes; `no NVLink SHARP` denies the SHARP.
bool denies_nvlink(const std::string& notes);

// What free notes tell of the network between nodes: a piece of them that names a link and its
// rate, `25GbE interconnect`. Empty: nothing.
std::string link_in_notes(const std::string& notes);

// Whether accelerators of a node are said to talk over PCIe only (no NVLink, XGMI, bridges).
bool pcie_only(const std::string& intra_link);

// What a cell says of PCIe, one way: `PCIe 4.0 x8`, `PCIe Gen3`, `6 GB/s measured`.
struct PcieCell {
  Bandwidth rate;
  bool measured = false;
};
std::optional<PcieCell> read_pcie(const std::string& intra_link);

// Scale-up links that one accelerator is said to have: `NVLink (4 links/GPU)`.
std::optional<int64_t> scaleup_links(const std::string& intra_link);

}  // namespace assay
