// The network of a node from what people write about it: `8x ConnectX-7 InfiniBand NDR 400Gb/s`,
// `400 Gbps/node`, `400 Gb/s RDMA per GPU`, `Storage: 2x ..., Compute: 8x ...`, `Slingshot`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/units.h"
#include "world/cluster.h"

namespace assay {

inline constexpr double kGbit = 1e9 / 8;  // bytes per second of one Gb/s

struct LinkCell {
  std::optional<FabricKind> kind;  // the transport that is named
  std::optional<Bandwidth> rate;   // of one port, or of the whole node; one direction
  std::optional<int64_t> ports;    // per node, where counted
  enum class Per { kPort, kAccelerator, kNode } per = Per::kPort;
  double oversubscription = 1;  // `2:1` is 2
  bool stated_per = false;      // `per GPU` is written; else `per` is how such links usually are
  bool management = false;      // it only names a management or storage network
};
LinkCell read_link(const std::string& cell);

// Total bandwidth of a node's training network, where the text says enough.
std::optional<Bandwidth> node_bandwidth(const LinkCell&, int64_t accelerators);

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
