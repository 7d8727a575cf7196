// The machine of a run: the accelerator by any of its names, the reference node that carries it,
// and the network as far as the text says more.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "validate/links.h"
#include "validate/scenario.h"
#include "validate/text.h"

namespace assay {
namespace {

// The accelerator whose longest name is contained in the text: `8x NVIDIA A100-SXM4-80GB (Lambda)`.
const Accelerator* contained(const Catalog& catalog, const std::string& text) {
  const std::string words = plain_words(text);
  const Accelerator* best = nullptr;
  size_t length = 0;
  // A model's number says more than words, however many: `GB300 Grace Blackwell Ultra`.
  constexpr size_t kNumbered = 1000;
  for (const Accelerator& a : catalog.accelerators) {
    std::vector<std::string> names = a.aliases;
    names.push_back(a.name);
    for (const std::string& name : names) {
      const std::string phrase(trimmed_cell(plain_words(name)));
      const bool numbered = phrase.find_first_of("0123456789") != std::string::npos;
      const size_t weight = phrase.size() + (numbered ? kNumbered : 0);
      if (phrase.empty() || weight <= length || !says(words, phrase)) continue;
      // `Gaudi 4` is no Gaudi that is known.
      const std::optional<double> behind = number_after(words, phrase);
      if (!numbered && behind && *behind < 10) continue;
      best = &a;
      length = weight;
    }
  }
  return best;
}

// Whether a list names different accelerators: `A100, V100`, but not `A100-SXM4, 80 GB, NVLink`.
bool names_several(const Catalog& catalog, const std::string& text) {
  const Accelerator* first = nullptr;
  std::string list = text;
  for (const std::string_view word : {" and ", " or ", " vs ", " vs. ", " & ", "\xe2\x86\x92"}) {
    for (size_t at; (at = list.find(word)) != std::string::npos;)
      list.replace(at, word.size(), ", ");
  }
  for (const std::string& part : split_any(list, ",;+/&")) {
    const Accelerator* named = contained(catalog, part);
    // The chip of a superchip is named beside it: `GH200: Grace CPU and H100`.
    const bool whole = first && first->name.starts_with("g");
    // And a chip beside its cores: `trn1.32xlarge/trn1n.32xlarge NeuronCore-v2`.
    const bool core =
        first && named && named->vendor == "AWS" && named->architecture == first->architecture;
    if (first && named && named != first && !whole && !core) return true;
    if (!first) first = named;
  }
  return false;
}

// `8xA100`, `64 x H100`: a count before the name, which has a column of its own.
std::string without_count(std::string gpu) {
  // `H100x8`.
  const size_t last = gpu.find_last_not_of("0123456789");
  if (last != std::string::npos && last > 0 && last + 1 < gpu.size() && gpu[last] == 'x' &&
      is_digit(gpu[last - 1]) && gpu.find_first_not_of("0123456789") != last) {
    gpu.resize(last);
  }
  const size_t digits = gpu.find_first_not_of("0123456789");
  if (digits == 0 || digits == std::string::npos) return gpu;
  const size_t times = gpu.find_first_not_of(' ', digits);
  if (times == std::string::npos || (gpu[times] != 'x' && gpu[times] != '*')) return gpu;
  return gpu.substr(times + 1);
}

// `a100` of `a100-sxm4-80gb`, `max-1550` of `max-1550-tile`.
std::string family_of(const Accelerator& a) {
  size_t end = a.name.find('-');
  const std::string first = a.name.substr(0, end);
  if (end != std::string::npos && first.find_first_of("0123456789") == std::string::npos)
    end = a.name.find('-', end + 1);
  return a.name.substr(0, end);
}

// The card, and not the host's bus: `PCIe A100`, but not `A100-SXM4 (PCIe Gen4)`.
bool names_pcie(const std::string& gpu) {
  const std::string words = plain_words(gpu);
  return affirms(clause_words(gpu), {"pcie"}) && words.find(" sxm") == std::string::npos &&
         !says_any(words, {"nvswitch", "nvlink"});
}

// The same part with another memory or form: `A100 with 40GB`, `PCIe H100`, 39.4 GB as torch prints
// it. The one whose name has most in common.
const Accelerator* variant_of(const Catalog& catalog, const Accelerator& found, double gb,
                              const std::string& gpu) {
  const bool pcie = names_pcie(gpu);
  // A module is no card, whatever its memory: `H100 SXM5 94GB` is not the H100 NVL.
  const std::string words = plain_words(gpu);
  const bool module = words.find(" sxm") != std::string::npos || says(words, "nvlink");
  const auto card = [](const Accelerator& a) { return a.scaleup_link.starts_with("pcie"); };
  const auto form = [](const Accelerator& a) { return a.name.find("pcie") != std::string::npos; };
  const auto apart = [&](const Accelerator& a) { return std::abs(gb * 1e9 / a.memory.v - 1); };
  constexpr double kSame = 0.06;  // of nominal memory
  const bool other_form = pcie && !form(found);
  if (!other_form && (gb <= 0 || apart(found) < kSame)) return &found;
  const Accelerator* best = &found;
  double nearest = other_form ? 1e9 : kSame;
  for (const Accelerator& a : catalog.accelerators) {
    if (family_of(a) != family_of(found) || a.architecture != found.architecture) continue;
    if (module && card(a) && !card(found)) continue;
    const auto titanium = [](const Accelerator& x) { return x.name.ends_with("-ti"); };
    if (form(a) != (pcie || form(found)) || titanium(a) != titanium(found)) {
      continue;
    }
    const double distance = gb > 0 ? apart(a) : std::abs(a.memory.v / found.memory.v - 1);
    if (distance < nearest) best = &a, nearest = distance;
  }
  return best;
}

// Gigabytes that a text names: `A100 with 40GB`, `V100 (16 GB, SXM2)`, `H100 (95 GiB)`; zero: none.
double memory_named(const std::string& words) {
  for (const std::string& word : split_any(words, " ")) {
    const size_t end = word.find_first_not_of("0123456789");
    if (end == 0 || end == std::string::npos || word.substr(end) != "gb") continue;
    return cell_number(word.substr(0, end)).value_or(0);
  }
  // What is sold as 80 GB shows as 79 GiB.
  return number_before(words, "gb").value_or(number_before(words, "gib").value_or(0));
}

// The accelerator of a cloud's shape: `p5.48xlarge`.
const Accelerator* of_shape(const Catalog& catalog, const std::string& gpu) {
  const Node* node = find_node(catalog, gpu);
  return node ? find_accelerator(catalog, node->accelerator) : nullptr;
}

const Node* reference_node(const Catalog& catalog, const Accelerator& a, int64_t per_node,
                           std::string_view prefix = "") {
  const Node* any = nullptr;
  for (const Node& n : catalog.nodes) {
    if (n.accelerator != a.name || n.nics == 0 || !n.name.starts_with(prefix)) continue;
    if (n.accelerators == per_node || per_node == 0) return &n;
    if (!any) any = &n;
  }
  return any;
}

// A part without a node of its own (another memory, another bin) stands in those of its kin: the
// same silicon and link, no package of which it is a die, and the name nearest to its own.
const Node* kin_node(const Catalog& catalog, const Accelerator& a, int64_t per_node) {
  const Node* best = nullptr;
  size_t nearest = 0;
  for (const Node& n : catalog.nodes) {
    const Accelerator* kin = find_accelerator(catalog, n.accelerator);
    if (!kin || n.nics == 0 || kin->vendor != a.vendor || kin->architecture != a.architecture ||
        kin->scaleup_link != a.scaleup_link || kin->compute_units > 3 * a.compute_units / 2 ||
        a.compute_units > 3 * kin->compute_units / 2) {
      continue;
    }
    const auto alike =
        std::mismatch(a.name.begin(), a.name.end(), n.accelerator.begin(), n.accelerator.end());
    const size_t common = static_cast<size_t>(alike.first - a.name.begin());
    const size_t score = 2 * common + (n.accelerators == per_node ? 1 : 0);
    if (score > nearest) {
      best = &n;
      nearest = score;
    }
  }
  return best;
}

// Half of a two-die package, where the row counts dies: the named accelerator is never so many in a
// node, and another with half of its compute units is.
const Accelerator* die_of(const Catalog& catalog, const Accelerator& whole, int64_t per_node) {
  const Node* node = reference_node(catalog, whole, per_node);
  if (node && node->accelerators == per_node) return nullptr;
  for (const Node& n : catalog.nodes) {
    if (n.accelerators != per_node) continue;
    for (const Accelerator& a : catalog.accelerators) {
      if (a.name == n.accelerator && a.architecture == whole.architecture &&
          a.compute_units * 2 == whole.compute_units && a.bf16 * 1.5 < whole.bf16 &&
          a.bf16 * 2.5 > whole.bf16) {
        return &a;
      }
    }
  }
  return nullptr;
}

std::string port_name(Bandwidth b) { return fmt::format("{:.0f}", b.v / kGbit); }

// The catalog fabric of a kind for ports of a speed; a bare fabric of that kind where none is
// listed.
Fabric fabric_of(const Catalog& catalog, FabricKind kind, Bandwidth port, int64_t ports = 8) {
  const double gbit = port.v / kGbit;
  std::string name;
  switch (kind) {
    case FabricKind::kInfiniband:
      name = gbit > 500   ? "xdr-800"
             : gbit > 300 ? "ndr-400-rail"
             : gbit > 150 ? "hdr-200"
                          : "edr-100";
      break;
    case FabricKind::kRoce:
      name = gbit > 500   ? "roce-800"
             : gbit > 300 ? "roce-400"
             : gbit > 150 ? "roce-200"
                          : "roce-100";
      break;
    case FabricKind::kEfa:
      name = gbit > 300 ? "efa-v4" : gbit > 150 ? "efa-v3" : ports > 8 ? "efa-v2" : "efa-v1";
      break;
    case FabricKind::kTcp:
      name = gbit > 300  ? "ethernet-400g"
             : gbit > 50 ? "ethernet-100g"
             : gbit > 15 ? "ethernet-25g"
                         : "ethernet-10g";
      break;
    case FabricKind::kSlingshot:
      name = "slingshot-11";
      break;
    case FabricKind::kOmnipath:
      name = "omnipath-100";
      break;
    case FabricKind::kTorus:
      name = "tpu-torus-3d";
      break;
    case FabricKind::kNone:
      name = "single-node";
      break;
  }
  if (const Fabric* f = find_fabric(catalog, name)) return *f;
  Fabric bare;
  bare.name = name;
  bare.kind = kind;
  return bare;
}

// The transport that machines with this accelerator usually have.
FabricKind usual_kind(const Accelerator& a, const Node& node) {
  const std::string vendor = squeezed(a.vendor);
  if (vendor == "aws" || vendor == "amazon" || node.name.starts_with("aws-p4") ||
      node.name.starts_with("aws-p5") || node.name.starts_with("aws-p6"))
    return FabricKind::kEfa;
  if (node.name.starts_with("gcp-a2") || node.name == "gcp-a3-high" || node.name == "gcp-a3-mega")
    return FabricKind::kTcp;
  if (node.name.starts_with("jean-zay")) return FabricKind::kOmnipath;
  if (vendor == "amd" || vendor == "intel" || vendor == "habana") return FabricKind::kRoce;
  if (node.nic_bandwidth.v * static_cast<double>(node.nics) < 60 * kGbit) return FabricKind::kTcp;
  return FabricKind::kInfiniband;
}

// Chips that form their own network, whatever the hosts have: a torus of one slice.
Fabric torus_of(const Catalog& catalog, const Accelerator& a) {
  for (const Fabric& f : catalog.fabrics) {
    if (f.kind == FabricKind::kTorus && f.name.starts_with(a.name)) return f;
  }
  const bool flat = a.wiring == Wiring::kTorus2d;
  if (const Fabric* f = find_fabric(catalog, flat ? "tpu-torus-2d" : "tpu-torus-3d")) return *f;
  return fabric_of(catalog, FabricKind::kTorus, Bandwidth(0));
}

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

// Whether the stated link is a management port: far below anything that trains on this accelerator.
bool too_slow_to_be_meant(Bandwidth stated, const Node& reference) {
  constexpr double kLeastShare = 1.0 / 50;
  return stated.v < kLeastShare * reference.nic_bandwidth.v * static_cast<double>(reference.nics);
}

void apply_link(const Run& run, const Accelerator& a, const Catalog& catalog, bool many_nodes,
                Cluster& cluster, std::vector<std::string>& assumed) {
  const Node reference = cluster.node;
  const LinkCell link = read_link(run.inter_link);
  FabricKind kind = link.kind.value_or(usual_kind(a, reference));
  std::optional<Bandwidth> total = node_bandwidth(link, cluster.node.accelerators);
  std::optional<int64_t> ports = link.ports;
  if (link.per == LinkCell::Per::kAccelerator) ports = cluster.node.accelerators;
  if (link.per == LinkCell::Per::kAccelerator && !link.stated_per && link.rate &&
      std::abs(*link.rate / reference.nic_bandwidth - 1) < 0.01) {
    ports = reference.nics;  // the usual ports of such a node
    total = reference.nic_bandwidth * static_cast<double>(reference.nics);
  }
  bool stated = total.has_value() && !link.management;
  if (stated && too_slow_to_be_meant(*total, reference)) {
    stated = false;
    kind = usual_kind(a, reference);
  }
  if (stated) {
    set_ports(cluster.node, *total, ports, reference.nic_bandwidth);
  }
  cluster.fabric = fabric_of(catalog, kind, cluster.node.nic_bandwidth, cluster.node.nics);
  apply_rack(catalog, reference, run.accelerators.value_or(1), cluster.fabric);
  if (link.oversubscription > 1) cluster.fabric.oversubscription = link.oversubscription;
  if (many_nodes && !stated) {
    assumed.push_back(fmt::format("network {} x {} Gb/s {}", cluster.node.nics,
                                  port_name(cluster.node.nic_bandwidth), cluster.fabric.name));
  }
}

// `4 links/GPU`: fewer scale-up links than the accelerator has. One NVLink carries 25 GB/s one way
// up to its fourth generation and 50 GB/s in the fifth (vendor data sheets). Two cards that talk
// over PCIe may have a bridge.
void apply_scaleup(const Run& run, Accelerator& a) {
  const bool pair = run.accelerators.value_or(1) == 2 && run.per_node.value_or(2) != 1;
  if (pair && a.bridge_bandwidth.v > 0 && affirms(clause_words(run.intra_link), {"nvlink"})) {
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
  const bool only = pcie_only(run.intra_link);
  if (only && !a.scaleup_link.starts_with("pcie")) {
    a.scaleup_link = "pcie4";
    a.scaleup_bandwidth = a.pcie_bandwidth;
    a.wiring = Wiring::kSwitch;
  }
  const std::optional<PcieCell> stated = only ? read_pcie(run.intra_link) : std::nullopt;
  if (!stated) return;
  // A part's bandwidth is the nominal one, of which a library gets a share: what was measured is
  // it.
  const CollectiveParams* library = find_collectives(catalog, a.scaleup_link, true);
  const Bandwidth whole = stated->rate / (library ? library->bus_efficiency : 1);
  a.scaleup_bandwidth = stated->measured ? whole : std::min(a.scaleup_bandwidth, stated->rate);
}

// The architecture of parts whose kernels nobody measured.
constexpr std::string_view kUnmeasured = "generic";
const std::vector<std::string_view> kSeveral = {"hetero", "heterogeneous", "mixed"};

// `A100-40G` has 40 GB; `v4-128` is a slice of TPUs.
std::string as_named(std::string gpu) {
  for (size_t i = 1; i < gpu.size(); ++i) {
    const bool last =
        i + 1 == gpu.size() || std::string_view(" ),/").find(gpu[i + 1]) != std::string_view::npos;
    if ((gpu[i] == 'G' || gpu[i] == 'g') && is_digit(gpu[i - 1]) && last) gpu.insert(i + 1, "B");
  }
  const bool slice = gpu.size() > 3 && gpu[0] == 'v' && is_digit(gpu[1]) && !is_digit(gpu[2]) &&
                     is_digit(gpu.back()) && gpu.find('-') != std::string::npos;
  if (slice) return "TPU " + gpu.substr(0, gpu.find('-'));
  // `Cloud TPU pod v3-32`
  const std::string words = lower(gpu);
  if (!words.starts_with("tpu v") && words.find("tpu ") != std::string::npos) {
    for (const char* generation : {"v2", "v3", "v4", "v5p", "v5e", "v6e"}) {
      if (words.find(std::string(" ") + generation + "-") != std::string::npos) {
        return std::string("TPU ") + generation;
      }
    }
  }
  return gpu;
}

// Cores that the name of a slice of TPUs counts, `v3-128`, where frameworks see each as a device;
// later generations show a chip as one.
int64_t slice_cores(const std::string& gpu) {
  const std::string words = lower(gpu);
  for (const std::string generation : {"v2-", "v3-"}) {
    const size_t at = words.find(generation);
    if (at == std::string::npos) continue;
    const std::string rest = words.substr(at + generation.size());
    const size_t end = rest.find_first_not_of("0123456789");
    const std::optional<double> cores = cell_number(rest.substr(0, end));
    if (cores && *cores <= 1e6) return std::llround(*cores);
  }
  return 0;
}

// The part that the row counts: `8` of a node that holds four packages are their dies, 128 of a
// TPU v3-128 its cores.
const Accelerator* as_counted(const Run& run, const Accelerator* found, const Catalog& catalog) {
  if (run.accelerators && slice_cores(run.gpu) == *run.accelerators) {
    const Accelerator* core = find_accelerator(catalog, found->name + "-core");
    const double memory = run.gpu_mem_gb.value_or(0) * 1e9;
    if (core && memory < 1.5 * core->memory.v) return core;
  }
  const Accelerator* die = run.per_node ? die_of(catalog, *found, *run.per_node) : nullptr;
  return die ? die : found;
}

// A word of a part's cell that makes it another part than the one it was found as: the A3 of
// `Ascend910 (A3 node)`, the 3000 or the laptop of `RTX PRO 3000 Laptop`. Sizes, forms and shapes
// of clouds are read elsewhere.
void tell_unread_part(const Accelerator& a, const std::string& gpu,
                      std::vector<std::string>& assumed) {
  std::string known = plain_words(a.name + " ; " + a.architecture);
  for (const std::string& alias : a.aliases) known += plain_words(alias).substr(1);
  const std::vector<std::string> words = split_any(plain_words(without_count(gpu)), " ");
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (known.find(word) != std::string::npos) continue;
    const bool digits = word.find_first_not_of("0123456789") == std::string::npos;
    const bool model = digits && word.size() == 4 && word[0] != '1' && word[0] != '2';  // no year
    const bool kind = word == "laptop" || word == "mobile" || word == "ada" || word == "super";
    // One letter and one digit, but no version or shape of a cloud (`a3-highgpu-8g`,
    // `p6-b300.48xlarge`).
    const bool short_name =
        word.size() == 2 && word[0] != 'v' && !is_digit(word[0]) && is_digit(word[1]);
    const bool shape = gpu.find("xlarge") != std::string::npos ||
                       (i + 1 < words.size() && words[i + 1].ends_with("gpu"));
    if (!model && !kind && (!short_name || shape)) continue;
    assumed.push_back(fmt::format("accelerator {}, by a part of its name: {} is not known", a.name,
                                  sanitize(word, 20)));
    return;
  }
}

// A limit that is told without its watts: those that are told are 500 of 700 W on an H100 and 750
// of 1,000 on a B200.
constexpr double kUsualLimit = 0.75;

// The node that a row names: by a cloud's fabric or shape, or, where nothing is said of the
// network, by a machine of the catalog that its notes name (`Jean-Zay`, `Google A3`).
const Node* named_node(const Run& run, const Accelerator& accelerator, const Catalog& catalog) {
  if (read_link(run.inter_link).kind == FabricKind::kEfa) {
    const int64_t wanted = run.per_node.value_or(0);
    if (const Node* aws = reference_node(catalog, accelerator, wanted, "aws")) return aws;
  }
  const auto suits = [&](const Node* n) {
    return n && n->accelerator == accelerator.name && n->nics > 0;
  };
  for (const std::string& shape : {run.gpu, run.inter_link}) {
    const Node* named = shape.empty() ? nullptr : find_node(catalog, shape);
    if (suits(named)) return named;
  }
  if (!run.inter_link.empty()) return nullptr;
  for (const std::string& clause : clauses_of(clause_words(run.notes))) {
    const std::vector<std::string> words = split_any(clause, " ");
    for (size_t k = 0; k + 1 < words.size(); ++k) {
      const auto known = catalog.aliases.find("nodes." + words[k] + words[k + 1]);
      if (known == catalog.aliases.end()) continue;
      const Node* named = find_node(catalog, known->second);
      if (suits(named) && claims(clause, words[k] + " " + words[k + 1]) == true) return named;
    }
  }
  return nullptr;
}

}  // namespace

const Accelerator* choose_accelerator(const Run& run, const Catalog& catalog) {
  if (run.gpu.empty()) return nullptr;
  const std::string written = without_count(run.gpu), gpu = as_named(written);
  const std::string words = plain_words(gpu);
  if (says_any(words, kSeveral) || affirms(clause_words(gpu), {"mig"}) ||
      names_several(catalog, gpu))
    return nullptr;
  const Accelerator* found = find_accelerator(catalog, written);
  if (!found) found = of_shape(catalog, written);
  if (found && !run.gpu_mem_gb) return as_counted(run, found, catalog);
  found = nullptr;
  if (run.gpu_mem_gb) {
    found = find_accelerator(catalog, fmt::format("{}-{:.0f}GB", gpu, *run.gpu_mem_gb));
  }
  if (!found) found = find_accelerator(catalog, gpu);
  if (!found) found = contained(catalog, gpu);
  if (!found) found = contained(catalog, written);  // the G of `A10G` is no gigabyte
  if (!found) found = of_shape(catalog, gpu);
  if (!found) return nullptr;
  const double memory = run.gpu_mem_gb.value_or(memory_named(words));
  return as_counted(run, variant_of(catalog, *found, memory, gpu), catalog);
}

// `NVIDIA Hopper, 80 GB`: the part of a named architecture with that memory, or else the one that
// draws most, which is the one that clusters are built of. A part that one system was given draws a
// tenth more than its kind; another form draws at least half as much again.
const Accelerator* usual_accelerator(const Run& run, const Catalog& catalog) {
  const std::string words = plain_words(run.gpu);
  if (says_any(words, kSeveral)) return nullptr;
  constexpr double kOtherForm = 1.2;
  const Accelerator* best = nullptr;
  const double stated = run.gpu_mem_gb.value_or(memory_named(words));
  const auto distance = [&](const Accelerator& a) {
    return stated > 0 ? std::abs(a.memory.v / 1e9 - stated) : 0.0;
  };
  for (const Accelerator& a : catalog.accelerators) {
    if (a.architecture == kUnmeasured) continue;  // a word, not a name
    if (!says(words, trimmed_cell(plain_words(a.architecture)))) continue;
    if (best && best->architecture != a.architecture) return nullptr;  // names two
    if (!best || distance(a) < distance(*best) - 1 ||
        (distance(a) < distance(*best) + 1 && a.tdp > best->tdp * kOtherForm)) {
      best = &a;
    }
  }
  return best;
}

Cluster choose_cluster(const Run& run, const Accelerator& accelerator, const Catalog& catalog,
                       std::vector<std::string>& assumed) {
  Cluster cluster;
  tell_unread_part(accelerator, run.gpu, assumed);
  const int64_t ranks = run.accelerators.value_or(1);
  const int64_t wanted = run.per_node.value_or(0);
  const Node* reference = named_node(run, accelerator, catalog);
  if (!reference) reference = reference_node(catalog, accelerator, wanted);
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
  if (link == "ici") {
    cluster.fabric = torus_of(catalog, accelerator);
  } else if (link.find("roce") != std::string::npos || link.find("ethernet") != std::string::npos) {
    // The accelerator brings its own ports; what is listed as a link is the host's.
    const Fabric* own = find_fabric(catalog, "gaudi-scaleout");
    cluster.fabric = own ? *own : fabric_of(catalog, FabricKind::kRoce, cluster.node.nic_bandwidth);
  } else {
    apply_link(run, accelerator, catalog, many, cluster, assumed);
  }
  cluster.name = fmt::format("{} x {}", cluster.nodes, cluster.node.name);
  return cluster;
}

}  // namespace assay
