#include "tools/collective_rows.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>

#include "base/assert.h"

namespace assay {
namespace {

// What the table does not say of a machine: nominal link rates by data sheet and instance type.
struct Machine {
  std::string_view system;  // prefix of the table's name
  std::string_view scaleup;
  double scaleup_gb_s;
  Wiring wiring;
  int64_t domain, node;
  std::string_view fabric = "";
  double nics_gb_s = 0, nic_gb_s = 0;
  bool calibrates = true;
};

constexpr Wiring kSwitch = Wiring::kSwitch;
constexpr std::array kMachines = {
    Machine{"aiconfigurator:a100_sxm", "nvlink3", 300, kSwitch, 8, 8},
    Machine{"aiconfigurator:h100_sxm", "nvlink4", 450, kSwitch, 8, 8},
    Machine{"DGX Cloud H100 node", "nvlink4", 450, kSwitch, 8, 8},
    Machine{"8xH100 node", "nvlink4", 450, kSwitch, 8, 8},
    Machine{"aiconfigurator:b200_sxm", "nvlink5", 900, kSwitch, 8, 8},
    Machine{"aiconfigurator:gb200", "nvlink5", 900, kSwitch, 72, 4},
    Machine{"Azure ND GB300/GB200 rack", "nvlink5", 900, kSwitch, 72, 4},
    Machine{"aiconfigurator:l40s", "pcie4", 32, kSwitch, 8, 8},
    Machine{"aiconfigurator:rtx_pro_6000_server", "pcie5", 64, kSwitch, 8, 8},
    Machine{"aiconfigurator:b60", "pcie5-oneccl", 32, kSwitch, 8, 8},  // PCIe 5.0 x8
    // Four GH200, six NVLink4 between each two. Timed in Python with list-of-tensor collectives,
    // which adds copies and launches that are not the library's: for judging only.
    Machine{"Alps/Clariden GH200 node", "nvlink4", 450, Wiring::kMesh, 4, 4, "", 0, 0, false},
    Machine{"8xMI355X node", "xgmi4", 535.5, Wiring::kMesh, 8, 8},
    Machine{"AWS p4de.24xlarge", "nvlink3", 300, kSwitch, 8, 8, "efa", 50, 12.5},
    Machine{"AWS p5.48xlarge", "nvlink4", 450, kSwitch, 8, 8, "efa", 400, 12.5},
    Machine{"p6-b200", "nvlink5", 900, kSwitch, 8, 8, "efa", 400, 50},
    Machine{"H200 node", "nvlink4", 450, kSwitch, 8, 8},
    Machine{"H800 node", "nvlink4", 200, kSwitch, 8, 8},
    Machine{"A100 node", "nvlink3", 300, kSwitch, 8, 8},
    Machine{"MI300X node", "xgmi4", 448, Wiring::kMesh, 8, 8},
    Machine{"248 x 8 H200", "nvlink4", 450, kSwitch, 8, 8, "infiniband", 400, 50},
    Machine{"OCI BM.GPU.B4.8", "nvlink3", 300, kSwitch, 8, 8, "roce", 200, 12.5},
    Machine{"2x8 H200 Dell", "nvlink4", 450, kSwitch, 8, 8, "roce", 400, 50},
    Machine{"2x8 H200", "nvlink4", 450, kSwitch, 8, 8, "infiniband", 400, 50},
};

const Machine* find_machine(std::string_view system) {
  for (const Machine& m : kMachines) {
    if (system.starts_with(m.system)) return &m;
  }
  return nullptr;
}

std::optional<Collective> kind_of(std::string_view name) {
  const auto names = enum_names(Collective{});
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<Collective>(i);
  }
  return std::nullopt;
}

double number(std::string_view text) { return std::strtod(std::string(text).c_str(), nullptr); }

// Some harnesses state one rank's input of an all-gather. Intel's rows show it: only as such do
// they give the same bus bandwidth as the same machine's all-reduce at 2 and at 4 ranks (19.0
// and 18.3 GB/s); Alps' rows likewise (all-gather time hardly depends on the number of ranks of a
// mesh).
bool states_input_of_gather(std::string_view system) {
  return system.starts_with("aiconfigurator:b60") || system.starts_with("Alps/Clariden");
}

CollectiveRow row_of(std::string_view system, const Machine& m, Collective kind, int64_t ranks,
                     double bytes, double us) {
  CollectiveRow row;
  row.system = std::string(system);
  row.scaleup = std::string(m.scaleup);
  row.kind = kind;
  row.bytes = Bytes(bytes);
  row.group = {ranks, std::min(ranks, m.domain), 1};
  if (row.group.ranks > row.group.per_domain) row.fabric = std::string(m.fabric);
  row.links.scaleup = Bandwidth(m.scaleup_gb_s * 1e9);
  row.links.wiring = m.wiring;
  row.links.scaleup_domain = m.domain;
  row.links.node_accelerators = m.node;
  row.links.node_nics = Bandwidth(m.nics_gb_s * 1e9);
  row.links.nic = Bandwidth(m.nic_gb_s * 1e9);
  row.measured = Seconds(us * 1e-6);
  row.calibrates = m.calibrates;
  return row;
}

}  // namespace

CollectiveRows collective_rows(const CsvTable& table) {
  CollectiveRows out;
  for (const CsvRow& line : table.rows) {
    const std::string_view system = table.cell(line, "system");
    const Machine* machine = find_machine(system);
    const std::optional<Collective> kind = kind_of(table.cell(line, "collective"));
    const int64_t ranks = static_cast<int64_t>(number(table.cell(line, "n_gpus")));
    double bytes = number(table.cell(line, "bytes"));
    if (machine == nullptr || !kind || ranks < 2 || bytes <= 0) {
      ++out.unknown_machine;
      continue;
    }
    double us = number(table.cell(line, "time_us"));
    const double busbw = number(table.cell(line, "busbw_GBps"));
    if (us <= 0 && busbw > 0) us = bytes * bus_factor(*kind, ranks) / busbw * 1e-3;
    if (us <= 0 || us > 1e11) {  // 1e12 marks out of memory
      ++out.failed;
      continue;
    }
    if (*kind == Collective::kAllGather && states_input_of_gather(system)) {
      bytes *= static_cast<double>(ranks);
    }
    CollectiveRow row = row_of(system, *machine, *kind, ranks, bytes, us);
    // The one L40S box collapses beyond a pair (1.2 GB/s of bus bandwidth on 8; others: 4 x RTX
    // 4090 25.8, 8 x RTX 5090 28), so only its pairs and its latencies stand for PCIe 4.
    if (row.scaleup == "pcie4" && ranks > 2 && bytes > 8192) row.calibrates = false;
    // First-generation EFA starts 2.4 times slower than its successors (161 against 65 us on two
    // nodes); an entry `efa` should stand for the latter.
    if (system.starts_with("AWS p4de") && bytes < 1e6) row.calibrates = false;
    out.rows.push_back(row);
  }
  return out;
}

std::vector<CollectiveRow> anchor_rows() {
  struct Anchor {
    std::string_view system;
    int64_t ranks;
    double bytes, busbw_gb_s;
  };
  constexpr double kGiB16 = 17179869184.0;
  // stas00/ml-engineering network/README.md (2026-08) unless stated.
  constexpr std::array kAnchors = {
      Anchor{"A100 node", 8, kGiB16, 234.9},
      Anchor{"H200 node", 8, kGiB16, 482.3},
      Anchor{"p6-b200 node", 8, kGiB16, 845.7},
      Anchor{"p6-b200 x4", 32, kGiB16, 381.8},
      Anchor{"p6-b200 x4", 32, 16777216, 64.4},
      Anchor{"MI300X node", 8, kGiB16 / 4, 312.9},
      Anchor{"MI300X node", 2, kGiB16 / 4, 47.7},
      Anchor{"H800 node", 8, kGiB16, 215},           // github.com/NVIDIA/nccl issue 1374
      Anchor{"248 x 8 H200", 1984, 536870912, 350},  // github.com/NVIDIA/nccl-tests issue 283
  };
  std::vector<CollectiveRow> rows;
  for (const Anchor& a : kAnchors) {
    const Machine* m = find_machine(a.system);
    ASSERT(m != nullptr);
    const double us = a.bytes * bus_factor(Collective::kAllReduce, a.ranks) / a.busbw_gb_s * 1e-3;
    rows.push_back(row_of(a.system, *m, Collective::kAllReduce, a.ranks, a.bytes, us));
  }
  return rows;
}

Links links_of(const CollectiveRow& row, const std::vector<CollectiveParams>& entries) {
  Links links = row.links;
  bool scaleup = false;
  bool fabric = row.fabric.empty();
  for (const CollectiveParams& e : entries) {
    if (e.name == row.scaleup) links.scaleup_params = e, scaleup = true;
    if (e.name == row.fabric) links.fabric_params = e, fabric = true;
  }
  ASSERT(scaleup && fabric);
  return links;
}

}  // namespace assay
