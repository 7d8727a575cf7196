// How the parts of a node are joined: nvidia-smi topo -m, nvlink -s and -e, NCCL's topology XML,
// hwloc's XML, all as one list of devices and of links between them.
//
// XML is read without entities and with a bounded depth. What a source does not say stays empty:
// topo -m knows no PCIe speeds, NCCL's file no distances between GPUs behind a switch.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "base/units.h"

namespace assay {

enum class TopoKind { kGpu, kNic };

// Counters of one link since the driver was loaded.
struct NvlinkErrors {
  int link = 0;
  int64_t replays = 0, recoveries = 0, crc = 0;
};

struct TopoDevice {
  TopoKind kind = TopoKind::kGpu;
  std::string name;   // `GPU0`, `NIC3`, `nvml0`, `mlx5_0`; may be empty in XML
  std::string pci;    // bus id; empty: not stated
  std::string model;  // or empty
  int numa = -1;      // -1: not stated
  Bandwidth pcie;     // one way, raw, of the device's own link; zero: not stated
  // That leave it: by NCCL's file, the sum over the row of a matrix, or those of nvlink -s that run
  // at the highest rate of the file.
  int nvlinks = 0;
  std::vector<NvlinkErrors> errors;  // of nvlink -e, by link; empty: not stated
};

struct TopoLink {
  int from = 0, to = 0;  // indices of devices, from < to
  std::string path;      // `NV18`, `PIX`, `SYS`, ...; `NVLink` where only a bandwidth is known
  int nvlinks = 0;       // the number after NV
  Bandwidth bandwidth;   // hwloc's NVLinkBandwidth; zero: not stated
};

struct Topology {
  std::string file;
  std::vector<TopoDevice> devices;
  std::vector<TopoLink> links;
  int sockets = 0, numa_nodes = 0, cores = 0;  // zero: not stated
  Diagnostics problems;

  int count(TopoKind) const;
};

Topology read_topo_matrix(std::string_view text, const std::string& file);
Topology read_nvlink_status(std::string_view text, const std::string& file);  // -s and -e
Topology read_nccl_xml(std::string_view text, const std::string& file);
Topology read_hwloc_xml(std::string_view text, const std::string& file);

}  // namespace assay
