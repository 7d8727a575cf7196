#include "validate/links.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/text.h"
#include "validate/link_ports.h"
#include "validate/text.h"

namespace assay {
namespace {

// `25gbe`: Ethernet by its rate.
bool says_gbe(const std::string& words) {
  const size_t at = words.find("gbe ");
  return at != std::string::npos && at > 0 && (is_digit(words[at - 1]) || words[at - 1] == ' ');
}

bool says_ipoib(const std::string& words) {
  return says_any(
      words, {"ipoib", "ip over ib", "ip over infiniband", "tcp over ib", "tcp over infiniband"});
}

std::optional<FabricKind> named_kind(const std::string& words) {
  if (says_any(words, {"slingshot"})) return FabricKind::kSlingshot;
  if (says_any(words, {"omni path", "omnipath", "opa"})) return FabricKind::kOmnipath;
  if (says_any(words, {"efa", "efav2", "efav3", "efav4", "elastic fabric adapter"}))
    return FabricKind::kEfa;
  if (says_any(words, {"tcpx", "tcpxo"}) || says_ipoib(words)) return FabricKind::kTcp;
  if (says_any(words, {"ici", "torus", "ocs"})) return FabricKind::kTorus;
  if (says_any(words, {"infiniband", "ib", "hdr", "ndr", "xdr", "edr", "fdr", "qdr", "quantum",
                       "ndr200", "hdr100", "ndr400"})) {
    return FabricKind::kInfiniband;
  }
  if (says_any(words, {"roce", "rocev2", "roce2", "roce v2", "rdma", "spectrum", "gpudirect"})) {
    return FabricKind::kRoce;
  }
  if (says_any(words, {"tcp", "gvnic", "sockets", "ena"})) return FabricKind::kTcp;
  if (says(words, "ethernet") || says_gbe(words)) return FabricKind::kRoce;
  return {};
}

// Ethernet of which nothing is said that would make it carry RDMA.
bool plain_ethernet(const std::string& words) {
  return (says(words, "ethernet") || says_gbe(words)) &&
         !says_any(words, {"rdma", "roce", "rocev2", "roce2", "spectrum", "gpudirect", "infiniband",
                           "ib"});
}

// What a cell denies: `100GbE (no RDMA)`, `InfiniBand disabled`, NCCL_IB_DISABLE=1. GPUDirect is
// the way from the port to the accelerator: without it the port still has its verbs.
struct Denied {
  bool rdma = false, infiniband = false, roce = false;
};
Denied denials(const std::string& cell) {
  std::string clauses = clause_words(cell);
  for (const std::string_view direct : {" gpudirect rdma ", " gpu direct rdma "}) {
    for (size_t at; (at = clauses.find(direct)) != std::string::npos;)
      clauses.replace(at, direct.size(), " gdr ");
  }
  Denied out;
  out.rdma = claims(clauses, "rdma") == false || no_verbs(cell);
  out.infiniband = claims_any(clauses, {"infiniband", "ib"}) == false;
  out.roce = claims(clauses, "roce") == false;
  return out;
}

// The transport after what is denied of it. Those of one vendor (EFA, Slingshot) are never meant.
std::optional<FabricKind> after_denials(std::optional<FabricKind> kind, const std::string& cell) {
  const Denied denied = denials(cell);
  const bool verbs = !kind || kind == FabricKind::kInfiniband || kind == FabricKind::kRoce;
  if (!verbs) return kind;
  const std::string clauses = clause_words(cell);
  if (denied.rdma && !affirms(clauses, {"roce"})) return FabricKind::kTcp;
  if (denied.infiniband)
    return affirms(clauses, {"roce", "rocev2", "rdma"}) ? FabricKind::kRoce : FabricKind::kTcp;
  return denied.roce && kind != FabricKind::kInfiniband ? FabricKind::kTcp : kind;
}

// `no RDMA` of `Ethernet 100G, no RDMA`: nothing but what is not there.
bool only_denies(const std::string& segment) {
  if (first_rate(segment) || port_count(segment)) return false;
  const std::string clauses = clause_words(segment);
  bool denied = false;
  for (const std::string_view what : {"rdma", "roce", "infiniband", "ib", "gpudirect", "efa"}) {
    const std::optional<bool> said = claims(clauses, what);
    if (said == true) return false;
    denied = denied || said == false;
  }
  return denied;
}

// What lists a host's adapters by their makers' names, as descriptions of systems do: a slow one
// among them is the port for management.
bool lists_adapters(const std::string& words) {
  return says_any(words, {"controller", "network connection", "netxtreme", "family", "10gbase",
                          "inc", "x710", "x550", "x550t", "i350", "bcm57508"});
}

bool about_management(const std::string& words) {
  if (says(words, "per host")) return false;
  return says_any(words, {"management", "storage", "host", "oob", "bmc", "ns", "frontend"}) &&
         !says_any(words, {"compute", "ew"});
}

bool about_pcie(const std::string& words) { return says_any(words, {"pcie", "pci"}); }

// The segment that describes the training network, and whether any was left out as management.
std::string training_segment(const std::string& cell, bool* only_management) {
  // `EFA 800 Gbps (trn1) / 1600 Gbps (trn1n)` gives alternatives: the first one counts.
  std::vector<std::string> segments;
  std::string text = cell;
  for (size_t at; (at = text.find(" / ")) != std::string::npos;) text.resize(at);
  for (size_t at; (at = text.find(" and ")) != std::string::npos;) text.replace(at, 5, ",    ");
  for (const std::string& part : split_any(text, ",;+")) segments.push_back(part);

  std::string best;
  int best_score = -1;
  *only_management = !segments.empty();
  for (const std::string& segment : segments) {
    const std::string words = plain_words(segment);
    if (about_pcie(words)) continue;
    if (about_management(words)) continue;
    *only_management = false;
    if (only_denies(segment)) continue;
    int score = 0;
    if (says_any(words, {"compute", "ew"})) score += 8;
    if (named_kind(words) && !plain_ethernet(words)) score += 4;
    if (first_rate(segment)) score += 2;
    if (port_count(segment)) score += 1;
    if (score > best_score) {
      best_score = score;
      best = segment;
    }
  }
  // `InfiniBand, 200Gb/s`: a rate or a number alone is that of the ports named beside it.
  for (const std::string& segment : segments) {
    const std::string words = plain_words(segment);
    // `Ethernet, one 25 Gb/s NIC`: what kind of port the rate is of.
    const bool kind = !about_management(words) && named_kind(words) && !first_rate(segment) &&
                      !port_count(segment) && !only_denies(segment);
    if (kind && first_rate(best) && !named_kind(plain_words(best))) best = segment + " " + best;
    const bool other = about_management(words) || about_pcie(words) || named_kind(words) ||
                       says_any(words, {"nvlink", "nvswitch", "xgmi", "intra"});
    if (other || best.empty() || segment == best) continue;
    const bool rate = first_rate(segment) && !first_rate(best);
    const bool ports = port_count(segment) && !port_count(best);
    if (ports) {
      best = segment + " " + best;
    } else if (rate) {
      best += " " + segment;
    }
  }
  return best;
}

// What a rate without a number of ports is a rate of. Machines that name an RDMA fabric have, as a
// rule, a port for each accelerator; plain Ethernet has one for the node.
LinkCell::Per uncounted(const std::string& words, const LinkCell& link) {
  constexpr double kFastestPort = 900 * kGbit;
  // `inter-node` is where the link is, not what the rate is of.
  std::string rest = words;
  for (const std::string_view place :
       {" inter node ", " intra node ", " multi node ", " cross node ", " between nodes "}) {
    const size_t at = rest.find(place);
    if (at != std::string::npos) rest.erase(at, place.size() - 1);
  }
  if (says_any(rest, {"node", "instance", "efa", "host", "per server", "per machine", "per vm",
                      "per box", "total", "aggregate", "shared by"})) {
    return LinkCell::Per::kNode;
  }
  if (link.rate && link.rate->v > kFastestPort) return LinkCell::Per::kNode;
  // Ports older than EDR are those of nodes that had one for all their accelerators.
  if (says_any(words, {"fdr", "qdr"})) return LinkCell::Per::kPort;
  const bool rdma = link.kind == FabricKind::kInfiniband || link.kind == FabricKind::kSlingshot ||
                    link.kind == FabricKind::kOmnipath || link.kind == FabricKind::kRoce ||
                    (!link.kind && generation_rate(words));
  return rdma && !link.plain_ethernet ? LinkCell::Per::kAccelerator : LinkCell::Per::kPort;
}

// A text without its figures.
std::string words_only(const std::string& text) {
  std::string out;
  for (const char c : text) out += is_digit(c) ? ' ' : c;
  return out;
}

// Parts of brackets about storage, management or PCIe are about something else.
std::string without_asides(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t open = std::min(text.find('(', at), text.size());
    const size_t close = text.find(')', open);
    out += text.substr(at, open - at);
    if (close == std::string::npos) return out + text.substr(open);
    std::string kept;
    for (const std::string& part : split_any(text.substr(open + 1, close - open - 1), ",;")) {
      const std::string words = plain_words(part);
      if (about_pcie(words) || says_any(words, {"storage", "management"})) continue;
      kept += (kept.empty() ? "" : ", ") + part;
    }
    if (!kept.empty()) out += "(" + kept + ")";
    at = close + 1;
  }
  return out;
}

// A sum with its parts: `3.2 Tb/s (8 x 400 Gb/s)` is its bracket, `800 Gb/s per node (2x CX-7)`
// what stands before it.
std::string without_explanation(const std::string& segment) {
  const size_t open = segment.find('(');
  if (open == std::string::npos) return segment;
  const std::string head = segment.substr(0, open), bracket = segment.substr(open);
  const std::optional<double> sum = first_rate(head), part = first_rate(bracket);
  if (!sum || port_count(head)) return segment;
  const std::optional<int64_t> ports = port_count(bracket);
  if (ports && part && std::abs(*sum / (*part * static_cast<double>(*ports)) - 1) < 0.15)
    return bracket.substr(1) + " " + words_only(head);
  const bool whole = says_any(plain_words(head), {"per node", "total", "aggregate"});
  const bool counts = ports && !part && says_any(plain_words(bracket), {"nic", "nics", "adapters"});
  return whole || (ports && *sum > 900 * kGbit) || counts ? head + " per node" : segment;
}

// `2:1 oversubscribed`, `oversubscription 3:1`; `1:1 (non-oversubscribed)` is 1.
double oversubscription(const std::string& cell) {
  const std::string words = plain_words(cell);
  const size_t at = std::min(words.find(" oversubscri"), words.find(" blocking factor"));
  if (at == std::string::npos) return 1;
  for (const std::string_view no : {" no", " non", " not", " without"}) {
    if (std::string_view(words).substr(0, at).ends_with(no)) return 1;
  }
  if (const auto n = number_before(words, "to 1"); n && *n > 1 && *n <= 64) return *n;
  if (const auto n = number_after(words, "ratio 1"); n && *n > 1 && *n <= 64) return *n;
  for (size_t colon = cell.find(":1"); colon != std::string::npos;
       colon = cell.find(":1", colon + 1)) {
    size_t first = colon;
    while (first > 0 && (is_digit(cell[first - 1]) || cell[first - 1] == '.')) --first;
    const std::optional<double> n =
        cell_number(std::string_view(cell).substr(first, colon - first));
    if (n && *n > 1 && *n <= 64) return *n;
  }
  return 1;
}

// `2x200G per GPU`; of `8x400G, one per GPU` the eight are the node's.
int64_t ports_of_each(const std::string& words) {
  const std::vector<std::string> all = split_any(words, " ");
  for (size_t i = 0; i + 2 < all.size(); ++i) {
    const std::string& w = all[i];
    const bool times = w.size() > 2 && w[0] >= '2' && w[0] <= '4' && w[1] == 'x' && is_digit(w[2]);
    const size_t per = i + (all[i + 1] == "per" ? 1 : 2);
    if (times && per + 1 < all.size() && all[per] == "per" &&
        (all[per + 1] == "gpu" || all[per + 1] == "accelerator" || all[per + 1] == "chip") &&
        (per + 2 == all.size() || all[per + 2] != "pair")) {
      return w[0] - '0';
    }
  }
  return 1;
}

}  // namespace

LinkCell read_link(const std::string& cell) {
  LinkCell out;
  const std::string whole = without_asides(spelled_alike(cell.substr(0, 1024)));
  const std::string all_words = plain_words(whole);
  if (says_any(all_words, {"none", "n a"}) || all_words == " ") return out;
  std::string segment = training_segment(whole, &out.management);
  segment = without_explanation(segment);
  const std::string words = plain_words(segment);
  out.kind = after_denials(named_kind(words), whole);
  out.lists_adapters = lists_adapters(all_words);
  if (out.management || segment.empty()) return out;
  out.plain_ethernet = out.kind == FabricKind::kRoce && plain_ethernet(words);
  if (const std::optional<double> rate = first_rate(segment)) out.rate = Bandwidth(*rate);
  out.ports = port_count(segment);
  // `total 3200 Gbps over 8 NICs`, but `8x 400Gb/s (3.2 Tb/s total)`.
  const bool times = segment.find_first_of("xX*") != std::string::npos;
  if (says_any(words, {"total", "aggregate"}) && !times) out.ports.reset();
  const std::optional<double> generation = generation_rate(words);
  if (!out.rate && generation) out.rate = Bandwidth(*generation);
  out.port_share = port_share(words, out.ports);
  if (says_any(words, {"per gpu", "gpu", "per accelerator", "per chip", "per gcd"}) &&
      !says(words, "shared by")) {
    out.per = LinkCell::Per::kAccelerator;
    out.stated_per = true;
    out.each = ports_of_each(words);
  } else if (!out.ports) {
    out.per = uncounted(words, out);
  }
  out.oversubscription = oversubscription(whole);
  return out;
}

bool no_verbs(const std::string& text) {
  const std::string words = plain_words(text);
  return says_any(words, {"nccl ib disable 1", "nccl ib disable true", "nccl net socket"});
}

bool no_peer_access(const std::string& text) {
  const std::string words = plain_words(text);
  return says_any(words, {"nccl p2p disable 1", "nccl p2p disable true"});
}

std::optional<int64_t> ports_of_node(const LinkCell& link, int64_t accelerators) {
  if (!link.port_share) return link.ports;
  const double ports = std::round(*link.port_share * static_cast<double>(accelerators));
  return std::clamp<int64_t>(static_cast<int64_t>(ports), 1, 256);
}

std::optional<Bandwidth> node_bandwidth(const LinkCell& link, int64_t accelerators) {
  if (!link.rate) return {};
  if (link.port_share)
    return *link.rate * static_cast<double>(ports_of_node(link, accelerators).value_or(1));
  switch (link.per) {
    case LinkCell::Per::kNode:
      return *link.rate;
    case LinkCell::Per::kAccelerator:
      return *link.rate * static_cast<double>(accelerators * link.each);
    case LinkCell::Per::kPort:
      break;
  }
  return *link.rate * static_cast<double>(link.ports.value_or(1));
}

bool pcie_only(const std::string& intra_link) {
  const std::string words = clause_words(intra_link);
  if (claims(words, "nvlink") == false) {
    const bool switched = affirms(words, {"nvswitch"}) && !says(words, "nvlink nvswitch");
    return !switched && !affirms(words, {"xgmi", "infinity fabric", "ici"});
  }
  return affirms(words, {"pcie", "pci", "pcie4", "pcie5"}) && !says_nvlink(intra_link) &&
         !affirms(words, {"xgmi", "bridge", "infinity fabric", "nvswitch"});
}

bool says_nvlink(const std::string& text) {
  const std::string words = clause_words(text);
  if (affirms(words, {"nvlink", "nvlink bridge"})) return true;
  // `NV4`, as nvidia-smi prints a bridge of four links.
  for (int links = 1; links <= 18; ++links) {
    if (affirms(words, {"nv" + std::to_string(links)})) return true;
  }
  return false;
}

bool denies_nvlink(const std::string& notes) {
  std::string words = clause_words(notes);
  for (const std::string_view other : {" nvlink sharp", " nvlink c2c", " nvlink switch"}) {
    for (size_t at; (at = words.find(other)) != std::string::npos;)
      words.replace(at, other.size(), " other");
  }
  return claims(words, "nvlink") == false;
}

std::string link_in_notes(const std::string& notes) {
  std::string denial;
  for (const std::string& piece : split_any(notes.substr(0, 4096), ";\n,")) {
    const std::string words = plain_words(piece);
    const bool named = says_any(words, {"interconnect", "network", "internode", "inter node"}) ||
                       named_kind(words) == FabricKind::kInfiniband;
    const bool other = about_management(words) || about_pcie(words) ||
                       says_any(words, {"nvlink", "nvswitch", "xgmi", "measured", "busbw", "intra",
                                        "storage", "if", "would"});
    if (other) continue;
    const bool denies = only_denies(piece) && says_any(words, {"infiniband", "ib", "rdma"});
    if (denies && !says(words, "gpudirect")) denial = piece;
    const bool figure = first_rate(piece) || generation_rate(words);
    if (named && figure && !says_any(words, {"not", "no"})) return piece;
  }
  return denial;
}

std::optional<PcieCell> read_pcie(const std::string& intra_link) {
  const std::string cell = intra_link.substr(0, 1024), words = plain_words(cell);
  if (words.find(" pcie") == std::string::npos) return {};
  const bool bytes = cell.find("GB/s") != std::string::npos || cell.find("GiB/s") < cell.size();
  if (const std::optional<double> rate = first_rate(cell); rate && bytes) {
    return PcieCell{Bandwidth(*rate), says(words, "measured")};
  }
  // A lane of the third generation carries 1 GB/s one way, and each later one twice as much.
  constexpr double kThird = 1e9;
  double generation = 0, lanes = 16;
  for (const std::string& word : split_any(words, " ")) {
    for (int g = 3; g <= 6; ++g) {
      const std::string n = std::to_string(g);
      if (word == "pcie" + n || word == "gen" + n) generation = g;
      if (says(words, "pcie " + n) || says(words, "gen " + n)) generation = g;
    }
    if (word == "x4" || word == "x8" || word == "x16") lanes = std::stod(word.substr(1));
  }
  if (generation == 0) return {};
  return PcieCell{Bandwidth(kThird * lanes * std::exp2(generation - 3)), false};
}

std::optional<int64_t> scaleup_links(const std::string& intra_link) {
  const size_t at = intra_link.find(" links");
  if (at == std::string::npos || at == 0) return {};
  size_t first = at;
  while (first > 0 && intra_link[first - 1] >= '0' && intra_link[first - 1] <= '9') --first;
  if (first == at || at - first > 3) return {};
  const int64_t n = std::stoll(intra_link.substr(first, at - first));
  return n > 0 ? std::optional(n) : std::nullopt;
}

}  // namespace assay
