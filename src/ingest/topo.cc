#include "ingest/topo.h"

#include <algorithm>
#include <unordered_map>

#include <pugixml.hpp>

#include "ingest/text.h"

namespace assay {
namespace {

constexpr size_t kDevicesMax = 1024;
constexpr int kDepthMax = 256;
constexpr size_t kXmlBytesMax = size_t{64} << 20;

bool is_device_name(std::string_view word) {
  for (const std::string_view prefix : {"GPU", "NIC"}) {
    if (word.starts_with(prefix) && unsigned_number(word.substr(3))) return true;
  }
  // Before driver 515 NICs had their own names: mlx5_0, bnxt_re1.
  return word.starts_with("mlx") || word.starts_with("bnxt_re") || word.starts_with("rdma");
}

int nvlinks_of(std::string_view path) {
  if (!path.starts_with("NV")) return 0;
  const std::optional<uint64_t> n = unsigned_number(path.substr(2));
  return n && *n < 1000 ? static_cast<int>(*n) : 0;
}

// The header of the matrix: device names, then `CPU Affinity` and others.
std::vector<std::string_view> header_names(std::string_view line) {
  std::vector<std::string_view> names;
  for (const std::string_view word : words(line, kDevicesMax)) {
    if (!is_device_name(word)) break;
    names.push_back(word);
  }
  return names;
}

void add_matrix_row(Topology& out, const std::vector<std::string_view>& cells, size_t row) {
  const size_t columns = out.devices.size();
  for (size_t column = 0; column < columns; ++column) {
    const std::string_view path = cells[column + 1];
    const int count = nvlinks_of(path);
    out.devices[row].nvlinks += column == row ? 0 : count;
    if (column <= row) continue;
    TopoLink link;
    link.from = static_cast<int>(row);
    link.to = static_cast<int>(column);
    link.path = sanitize(std::string(path), 16);
    link.nvlinks = count;
    out.links.push_back(std::move(link));
  }
  // `0-55,112-167   0   N/A`: processors, then the NUMA node.
  if (cells.size() > columns + 2) {
    const std::optional<uint64_t> numa = unsigned_number(cells[columns + 2]);
    if (numa && *numa < 4096) out.devices[row].numa = static_cast<int>(*numa);
  }
}

// --- XML --------------------------------------------------------------------------------------

// Bytes a second of a lane at each rate, after the line code: 8b/10b to 5 GT/s, then 128b/130b.
Bandwidth pcie_bandwidth(double giga_transfers, double lanes) {
  if (!(giga_transfers > 0) || !(lanes > 0) || giga_transfers > 1000 || lanes > 64) return {};
  const double code = giga_transfers <= 5.1 ? 0.8 : 128.0 / 130.0;
  return Bandwidth(giga_transfers * 1e9 / 8 * code * lanes);
}

bool load(pugi::xml_document& document, std::string_view text, Topology& out) {
  if (text.size() > kXmlBytesMax) {
    out.problems.push_back(problem(Severity::kError, "more than 64 MB of XML", out.file));
    return false;
  }
  // Elements and attributes only: no entities beyond the standard ones exist in pugixml, and
  // document types, comments and instructions are skipped.
  const pugi::xml_parse_result result =
      document.load_buffer(text.data(), text.size(), pugi::parse_minimal | pugi::parse_escapes);
  if (result) return true;
  const auto end = text.begin() + std::min<std::ptrdiff_t>(
                                      result.offset, static_cast<std::ptrdiff_t>(text.size()));
  const int line = 1 + static_cast<int>(std::count(text.begin(), end, '\n'));
  out.problems.push_back(problem(Severity::kError,
                                 std::string("not well-formed XML: ") + result.description(),
                                 out.file, line));
  return false;
}

std::string attribute(const pugi::xml_node& node, const char* name) {
  return sanitize(std::string(node.attribute(name).as_string()).substr(0, 256), 128);
}

// A walk over all elements without recursion; depth is bounded by what is looked at.
template <class Visit>
void walk(const pugi::xml_node& root, Visit visit) {
  struct Step {
    pugi::xml_node node;
    int depth, numa, device;
  };
  std::vector<Step> stack = {{root, 0, -1, -1}};
  while (!stack.empty()) {
    const Step step = stack.back();
    stack.pop_back();
    int numa = step.numa, device = step.device;
    visit(step.node, numa, device);
    if (step.depth >= kDepthMax) continue;
    std::vector<Step> children;
    for (const pugi::xml_node& child : step.node.children()) {
      children.push_back({child, step.depth + 1, numa, device});
    }
    stack.insert(stack.end(), children.rbegin(), children.rend());
  }
}

int add_device(Topology& out, TopoKind kind, const std::string& pci, int numa, Bandwidth pcie) {
  if (out.devices.size() >= kDevicesMax) return -1;
  TopoDevice device;
  device.kind = kind;
  device.pci = pci;
  device.numa = numa;
  device.pcie = pcie;
  out.devices.push_back(std::move(device));
  return static_cast<int>(out.devices.size()) - 1;
}

void visit_nccl(Topology& out, const pugi::xml_node& node, int& numa, int& device) {
  const std::string_view name = node.name();
  if (name == "cpu") {
    ++out.sockets;
    numa = node.attribute("numaid").as_int(-1);
  } else if (name == "pci") {
    device = -1;
    const std::string kind = attribute(node, "class");
    const bool gpu = kind.starts_with("0x0302") || kind.starts_with("0x0300");
    const bool nic = kind.starts_with("0x02");
    const bool leaf = kind.empty() && !node.child("pci");  // a file that leaves the class out
    if (!gpu && !nic && !leaf) return;
    const double rate = leading_number(attribute(node, "link_speed")).value_or(0);
    const double lanes = leading_number(attribute(node, "link_width")).value_or(0);
    device = add_device(out, gpu ? TopoKind::kGpu : TopoKind::kNic, attribute(node, "busid"), numa,
                        pcie_bandwidth(rate, lanes));
  } else if (device >= 0 && name == "gpu") {
    out.devices[static_cast<size_t>(device)].name = "GPU" + attribute(node, "dev");
  } else if (device >= 0 && name == "nvlink") {
    out.devices[static_cast<size_t>(device)].nvlinks +=
        std::clamp(node.attribute("count").as_int(0), 0, 1000);
  } else if (device >= 0 && name == "net") {
    out.devices[static_cast<size_t>(device)].name = attribute(node, "name");
  }
}

// hwloc's classes of PCI devices (`0302 [10de:1db8] ...`) and of their systems' names.
void visit_hwloc(Topology& out, const pugi::xml_node& node, int& device,
                 std::unordered_map<std::string, int>& by_gp_index) {
  if (std::string_view(node.name()) != "object") return;
  const std::string type = attribute(node, "type");
  if (type == "Package") ++out.sockets;
  if (type == "NUMANode") ++out.numa_nodes;
  if (type == "Core") ++out.cores;
  if (type == "PCIDev") {
    device = -1;
    const std::string kind = attribute(node, "pci_type");
    const bool gpu = kind.starts_with("0302") || kind.starts_with("0300");
    const bool nic = kind.starts_with("0200") || kind.starts_with("0207");
    if (!gpu && !nic) return;
    const double gigabytes = node.attribute("pci_link_speed").as_double(0);
    const bool sane = gigabytes > 0 && gigabytes < 1e4;
    device = add_device(out, gpu ? TopoKind::kGpu : TopoKind::kNic, attribute(node, "pci_busid"),
                        -1, sane ? Bandwidth(gigabytes * 1e9) : Bandwidth());
  } else if (type == "OSDev" && device >= 0) {
    TopoDevice& owner = out.devices[static_cast<size_t>(device)];
    const std::string name = attribute(node, "name");
    if (owner.name.empty() || name.starts_with("mlx") || name.starts_with("nvml")) {
      owner.name = name;
    }
    by_gp_index[attribute(node, "gp_index")] = device;
  }
}

std::vector<std::string> list_of(const pugi::xml_node& node, const char* child, size_t max) {
  std::vector<std::string> out;
  for (const pugi::xml_node& part : node.children(child)) {
    for (const std::string_view word : words(part.child_value(), max)) {
      if (out.size() < max) out.emplace_back(word);
    }
  }
  return out;
}

// `NVLinkBandwidth` in MB/s between OS devices, by their gp_index.
void read_distances(Topology& out, const pugi::xml_node& root,
                    const std::unordered_map<std::string, int>& by_gp_index) {
  for (const pugi::xml_node& node : root.children()) {
    if (attribute(node, "name") != "NVLinkBandwidth") continue;
    const std::vector<std::string> names = list_of(node, "indexes", kDevicesMax);
    const std::vector<std::string> values = list_of(node, "u64values", kDevicesMax * kDevicesMax);
    if (values.size() != names.size() * names.size()) {
      out.problems.push_back(
          problem(Severity::kWarning, "NVLinkBandwidth is not a square matrix", out.file));
      continue;
    }
    std::vector<int> device(names.size(), -1);
    for (size_t i = 0; i < names.size(); ++i) {
      const auto found = by_gp_index.find(names[i].substr(names[i].find(':') + 1));
      const bool os_device =
          names[i].find(':') == std::string::npos || names[i].starts_with("OSDev");
      if (os_device && found != by_gp_index.end()) device[i] = found->second;
    }
    for (size_t i = 0; i < names.size(); ++i) {
      for (size_t k = 0; k < names.size(); ++k) {
        const double megabytes = whole_number(values[i * names.size() + k]).value_or(0);
        if (device[i] < 0 || device[k] <= device[i] || megabytes <= 0) continue;
        out.links.push_back({device[i], device[k], "NVLink", 0, Bandwidth(megabytes * 1e6)});
      }
    }
  }
}

}  // namespace

int Topology::count(TopoKind kind) const {
  return static_cast<int>(std::count_if(devices.begin(), devices.end(),
                                        [&](const TopoDevice& d) { return d.kind == kind; }));
}

Topology read_topo_matrix(std::string_view text, const std::string& file) {
  Topology out;
  out.file = file;
  const std::string plain = without_escapes(text);
  std::string_view rest = plain, line;
  int number = 0;
  size_t row = 0;
  while (next_line(rest, line)) {
    ++number;
    if (out.devices.empty()) {
      // A row starts with a device too, but only a header has nothing but devices before its words.
      const std::vector<std::string_view> names = header_names(line);
      if (names.empty() || (!contains(line, "Affinity") && names.size() < 2)) continue;
      for (const std::string_view name : names) {
        TopoDevice device;
        device.kind = name.starts_with("GPU") ? TopoKind::kGpu : TopoKind::kNic;
        device.name = sanitize(std::string(name), 32);
        out.devices.push_back(std::move(device));
      }
      continue;
    }
    const std::vector<std::string_view> cells = words(line, kDevicesMax + 8);
    if (row == out.devices.size() || cells.empty()) {
      if (row > 0 && cells.empty()) break;
      continue;
    }
    if (!is_device_name(cells[0]) || cells[0] != out.devices[row].name ||
        cells.size() < out.devices.size() + 1) {
      out.problems.push_back(
          problem(Severity::kWarning, "a row of the matrix is missing or cut short", file, number));
      break;
    }
    add_matrix_row(out, cells, row++);
  }
  if (out.devices.empty()) {
    out.problems.push_back(problem(Severity::kError, "no matrix of nvidia-smi topo -m", file));
  } else if (row < out.devices.size()) {
    out.problems.push_back(
        problem(Severity::kWarning, "the matrix ends before its last row", file));
  }
  return out;
}

namespace {

constexpr int kLinksMax = 64;  // of one GPU; 18 today

// `Link 3: Replay Errors: 0`. Other counters of newer drivers are read over.
bool read_link_errors(std::string_view bare, size_t colon, TopoDevice& device) {
  const std::optional<uint64_t> link = unsigned_number(bare.substr(5, colon - 5));
  const std::string_view rest = trimmed(bare.substr(colon + 1));
  const size_t mark = rest.rfind(':');
  if (!link || *link >= kLinksMax || mark == std::string_view::npos) return false;
  if (!contains(rest, "Errors") && !contains(rest, "BER") && !contains(rest, "vents")) return false;
  const std::optional<uint64_t> value = unsigned_number(trimmed(rest.substr(mark + 1)));
  const auto same = [&](const NvlinkErrors& e) { return e.link == static_cast<int>(*link); };
  auto it = std::find_if(device.errors.begin(), device.errors.end(), same);
  if (it == device.errors.end()) {
    device.errors.push_back({static_cast<int>(*link), 0, 0, 0});
    it = std::prev(device.errors.end());
  }
  constexpr uint64_t kMost = uint64_t{1} << 40;  // enough to judge, and sums stay small
  const int64_t count = static_cast<int64_t>(std::min(value.value_or(0), kMost));
  if (rest.starts_with("Replay")) it->replays += count;
  if (rest.starts_with("Recovery") || rest.starts_with("Link recovery")) it->recoveries += count;
  if (rest.starts_with("CRC")) it->crc += count;
  return true;
}

}  // namespace

// `GPU 0: NVIDIA H200 (UUID: GPU-...)`, then a line `Link 3: 26.562 GB/s` or `Link 3: <inactive>`
// each, or lines of counters.
Topology read_nvlink_status(std::string_view text, const std::string& file) {
  Topology out;
  out.file = file;
  std::vector<std::pair<size_t, double>> rates;  // device, GB/s
  std::string_view line;
  int number = 0;
  while (next_line(text, line)) {
    ++number;
    const std::string_view bare = trimmed(line);
    const size_t colon = bare.find(':');
    if (bare.starts_with("GPU ") && colon != std::string_view::npos) {
      const std::optional<uint64_t> index = unsigned_number(bare.substr(4, colon - 4));
      if (!index || out.devices.size() >= kDevicesMax) continue;
      TopoDevice device;
      device.name = "GPU" + std::to_string(*index);
      const std::string_view model = trimmed(bare.substr(colon + 1));
      device.model = sanitize(std::string(model.substr(0, model.find(" (UUID"))), 64);
      out.devices.push_back(std::move(device));
    } else if (bare.starts_with("Link ") && colon != std::string_view::npos) {
      const std::optional<double> rate = leading_number(bare.substr(colon + 1));
      if (!out.devices.empty() && read_link_errors(bare, colon, out.devices.back())) continue;
      if (out.devices.empty() || (!rate && !contains(bare, "inactive"))) {
        out.problems.push_back(
            problem(Severity::kWarning, "not the state of a link; left out", file, number));
        if (out.problems.size() > 20) break;
        continue;
      }
      if (rate && *rate > 0) rates.emplace_back(out.devices.size() - 1, *rate);
    }
  }
  double highest = 0;
  for (const auto& [device, rate] : rates) highest = std::max(highest, rate);
  for (const auto& [device, rate] : rates) {
    if (rate >= highest) out.devices[device].nvlinks += out.devices[device].nvlinks < 1000 ? 1 : 0;
  }
  if (out.devices.empty()) {
    out.problems.push_back(problem(Severity::kError, "no GPU in this output of nvlink -s", file));
  }
  return out;
}

Topology read_nccl_xml(std::string_view text, const std::string& file) {
  Topology out;
  out.file = file;
  pugi::xml_document document;
  if (!load(document, text, out)) return out;
  const pugi::xml_node root = document.child("system");
  if (!root) {
    out.problems.push_back(problem(Severity::kError, "no <system> in this NCCL topology", file));
    return out;
  }
  walk(root, [&](const pugi::xml_node& node, int& numa, int& device) {
    visit_nccl(out, node, numa, device);
  });
  out.numa_nodes = out.sockets;
  return out;
}

Topology read_hwloc_xml(std::string_view text, const std::string& file) {
  Topology out;
  out.file = file;
  pugi::xml_document document;
  if (!load(document, text, out)) return out;
  const pugi::xml_node root = document.child("topology");
  if (!root) {
    out.problems.push_back(problem(Severity::kError, "no <topology> in this hwloc file", file));
    return out;
  }
  std::unordered_map<std::string, int> by_gp_index;
  walk(root, [&](const pugi::xml_node& node, int&, int& device) {
    visit_hwloc(out, node, device, by_gp_index);
  });
  read_distances(out, root, by_gp_index);
  return out;
}

}  // namespace assay
