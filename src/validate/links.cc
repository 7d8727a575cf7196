#include "validate/links.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/text.h"
#include "validate/text.h"

namespace assay {
namespace {

// A rate with its unit at `at`: `400Gb/s`, `400 Gbps`, `3.2 Tbps`, `50 GB/s`, `100GbE`, `10G`.
struct Unit {
  std::string_view text;  // compared without case except the b of bits and the B of bytes
  double bytes_per_s;
};
constexpr std::array kUnits = {
    Unit{"Tbps", 1000 * kGbit}, Unit{"Tb/s", 1000 * kGbit}, Unit{"TB/s", 1e12},
    Unit{"Gbps", kGbit},        Unit{"Gbit", kGbit},        Unit{"Gb/", kGbit},
    Unit{"Gbe", kGbit},         Unit{"GbE", kGbit},         Unit{"GBE", kGbit},
    Unit{"GB/", 1e9},           Unit{"GBps", 1e9},          Unit{"Gb ", kGbit},
    Unit{"GBASE", kGbit},       Unit{"Gig", kGbit},         Unit{"G ", kGbit},
    Unit{"T ", 1000 * kGbit},   Unit{"G/", kGbit},          Unit{"gbps", kGbit},
    Unit{"gbit", kGbit},        Unit{"gbe", kGbit},         Unit{"GiB/", 1.073741824e9},
};

std::optional<double> rate_at(const std::string& text, size_t at, size_t* end) {
  size_t i = at;
  while (i < text.size() && (is_digit(text[i]) || text[i] == '.')) ++i;
  const std::optional<double> value = cell_number(std::string_view(text).substr(at, i - at));
  while (i < text.size() && text[i] == ' ') ++i;
  if (!value || *value <= 0 || *value > 1e6) return {};
  for (const Unit& unit : kUnits) {
    if (text.compare(i, unit.text.size(), unit.text) == 0) {
      *end = i + unit.text.size();
      return *value * unit.bytes_per_s;
    }
  }
  return {};
}

// `I350` and `CX7` are names, but `8x200Gb/s` holds a rate.
bool inside_a_word(char before) {
  const bool letter = (before >= 'a' && before <= 'z') || (before >= 'A' && before <= 'Z');
  return is_digit(before) || before == '.' || (letter && before != 'x' && before != 'X');
}

// The first rate of a segment; of `10Gb/25Gb/.../200Gb` the last.
std::optional<double> first_rate(const std::string& segment) {
  const std::string text = segment + " ";
  for (size_t i = 0; i < text.size(); ++i) {
    if (!is_digit(text[i]) || (i > 0 && inside_a_word(text[i - 1]))) continue;
    size_t end = 0;
    std::optional<double> rate = rate_at(text, i, &end);
    while (rate) {
      const std::optional<double> next =
          end < text.size() && is_digit(text[end]) ? rate_at(text, end, &end) : std::nullopt;
      if (!next) return rate;
      rate = next;
    }
  }
  return {};
}

// `100 Gb/sec (4X EDR)` is how the driver's tools describe one port: four lanes, not four ports.
bool one_port(const std::string& segment) {
  const size_t at = segment.find("(4X ");
  if (at == std::string::npos || at < 2 || !first_rate(segment.substr(0, at))) return false;
  const std::string words = plain_words(segment.substr(at + 4));
  return says_any(words, {"qdr", "fdr", "edr", "hdr", "ndr", "xdr"});
}

// `200 Gb/s HDR x 4`, `HDR100 x2`: behind the port, at the end.
std::optional<int64_t> count_behind(const std::string& segment) {
  if (says_any(plain_words(segment), {"nodes", "switch", "switches", "spine", "leaf"})) return {};
  size_t end = segment.find_last_not_of(" )");
  end = end == std::string::npos ? 0 : end + 1;
  size_t first = end;
  while (first > 0 && is_digit(segment[first - 1])) --first;
  size_t sign = first;
  while (sign > 0 && segment[sign - 1] == ' ') --sign;
  if (first == end || end - first > 2 || sign < 2) return {};
  if (segment[sign - 1] != 'x' || segment[sign - 2] != ' ') return {};
  const int64_t n = std::stoll(segment.substr(first, end - first));
  return n >= 1 && n <= 32 ? std::optional(n) : std::nullopt;
}

// `4 HCA per node`, `4 NDR ports`, `NDR: 4 HCAs`; the 7 of `ConnectX-7 NICs` is a name.
std::optional<int64_t> count_of_ports(const std::string& words) {
  if (says_any(words, {"nodes", "switch", "switches", "spine", "leaf", "qm9700"})) return {};
  const std::vector<std::string> all = split_any(words, " ");
  for (size_t i = 1; i < all.size(); ++i) {
    const bool noun = all[i].starts_with("hca") || all[i].starts_with("nic") ||
                      all[i].starts_with("port") || all[i].starts_with("rail") ||
                      all[i].starts_with("adapter") || all[i].starts_with("supernic");
    if (!noun) continue;
    for (size_t k = i; k-- > 0 && i - k <= 4;) {
      const std::optional<double> n = cell_number(all[k]);
      const bool whole = n && all[k].find_first_not_of("0123456789") == std::string::npos;
      if (!whole || *n < 1 || *n > 32 || std::floor(*n) != *n) continue;
      const std::string before = k > 0 ? all[k - 1] : "";
      static constexpr std::array<std::string_view, 11> kNamed = {
          "connectx", "x",        "cx",   "bluefield", "gen", "slingshot",
          "quantum",  "spectrum", "thor", "pcie",      "v"};
      if (std::find(kNamed.begin(), kNamed.end(), before) != kNamed.end()) continue;
      return static_cast<int64_t>(*n);
    }
  }
  return {};
}

// `8x`, `8 x `, `8 *`, in front of a port's name or rate.
std::optional<int64_t> port_count(const std::string& written) {
  if (one_port(written)) return 1;
  std::string segment = written;
  std::replace(segment.begin(), segment.end(), '*', 'x');
  for (size_t at; (at = segment.find("\xc3\x97")) != std::string::npos;)
    segment.replace(at, 2, "x");
  for (size_t i = 1; i < segment.size(); ++i) {
    if (segment[i] != 'x' && segment[i] != 'X') continue;
    size_t end = i;
    while (end > 0 && segment[end - 1] == ' ') --end;
    size_t first = end;
    while (first > 0 && is_digit(segment[first - 1])) --first;
    if (first == end || end - first > 4) continue;
    if (first > 0 && segment.find_first_of(" :(", first - 1) != first - 1) continue;
    const int64_t n = std::stoll(segment.substr(first, end - first));
    if (n >= 1 && n <= 256) return n;
  }
  if (const std::optional<int64_t> n = count_behind(segment)) return n;
  if (says(plain_words(segment), "dual rail")) return 2;
  return count_of_ports(plain_words(segment));
}

// What a named generation of port runs at, in Gb/s, where no rate is written. Vendor data sheets.
struct Generation {
  std::string_view word;
  double gbit;
};
constexpr std::array kGenerations = {
    Generation{"ndr200", 200},     Generation{"hdr100", 100},       Generation{"ndr400", 400},
    Generation{"xdr", 800},        Generation{"ndr", 400},          Generation{"hdr", 200},
    Generation{"edr", 100},        Generation{"connectx 8", 800},   Generation{"cx8", 800},
    Generation{"connectx 7", 400}, Generation{"cx7", 400},          Generation{"bluefield 3", 400},
    Generation{"bf3", 400},        Generation{"connectx 6", 200},   Generation{"cx6", 200},
    Generation{"slingshot", 200},  Generation{"slingshot 11", 200}, Generation{"omni path", 100},
    Generation{"omnipath", 100},
};

// `clauses`: the same text by clauses, for what it denies.
std::optional<FabricKind> named_kind(const std::string& words, const std::string& clauses = "") {
  if (says_any(words, {"slingshot"})) return FabricKind::kSlingshot;
  if (says_any(words, {"omni path", "omnipath", "opa"})) return FabricKind::kOmnipath;
  if (says_any(words, {"efa", "efav2", "efav3", "efav4", "elastic fabric adapter"}))
    return FabricKind::kEfa;
  if (says_any(words, {"tcpx", "tcpxo"})) return FabricKind::kTcp;
  if (says_any(words, {"ici", "torus", "ocs"})) return FabricKind::kTorus;
  if (says_any(words, {"no infiniband", "no ib"})) {
    return says_any(words, {"roce", "rdma", "rocev2", "roce2"}) ? FabricKind::kRoce
                                                                : FabricKind::kTcp;
  }
  if (says_any(words, {"infiniband", "ib", "hdr", "ndr", "xdr", "edr", "quantum", "ndr200",
                       "hdr100", "ndr400"})) {
    return FabricKind::kInfiniband;
  }
  if (claims(clauses, "rdma") == false || claims(clauses, "roce") == false) return FabricKind::kTcp;
  if (says_any(words, {"roce", "rocev2", "roce2", "roce v2", "rdma", "spectrum", "gpudirect"})) {
    return FabricKind::kRoce;
  }
  if (says_any(words, {"tcp", "tcpx", "tcpxo", "gvnic", "sockets", "ena"})) return FabricKind::kTcp;
  if (says_any(words, {"ethernet", "100gbe", "200gbe", "400gbe"})) return FabricKind::kRoce;
  return {};
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
    int score = 0;
    if (says_any(words, {"compute", "ew"})) score += 8;
    if (named_kind(words) && !says(words, "ethernet")) score += 4;
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
  const bool plain_ethernet =
      (says(words, "ethernet") || words.find("gbe ") != std::string::npos) &&
      !says_any(words, {"rdma", "roce", "rocev2", "spectrum", "infiniband", "ib"});
  const bool rdma = link.kind == FabricKind::kInfiniband || link.kind == FabricKind::kSlingshot ||
                    link.kind == FabricKind::kOmnipath || link.kind == FabricKind::kRoce;
  return rdma && !plain_ethernet ? LinkCell::Per::kAccelerator : LinkCell::Per::kPort;
}

// Spellings that mean the same: `3,200 Gbps`, `4xHDR200`, `CX-7`, `HDR-100`, `two 200GbE ports`.
std::string spelled_alike(const std::string& cell) {
  std::string out;
  for (size_t i = 0; i < cell.size(); ++i) {
    const auto digit = [&](size_t k) { return k < cell.size() && is_digit(cell[k]); };
    const bool thousands = cell[i] == ',' && i > 0 && digit(i - 1) && digit(i + 1) &&
                           digit(i + 2) && digit(i + 3) && !digit(i + 4);
    if (thousands) continue;
    out += cell[i];
    // A count joined to a name: `4xHDR`.
    const bool times = (cell[i] == 'x' || cell[i] == 'X') && i > 0 && digit(i - 1);
    const char next = i + 1 < cell.size() ? cell[i + 1] : ' ';
    if (times && next >= 'A' && next <= 'Z') out += ' ';
  }
  constexpr std::pair<std::string_view, std::string_view> kSpellings[] = {{"CX-", "CX"},
                                                                          {"HDR-1", "HDR1"},
                                                                          {"NDR-2", "NDR2"},
                                                                          {"HDR200", "HDR 200Gb/s"},
                                                                          {"NDR400", "NDR"},
                                                                          {"EDR100", "EDR"},
                                                                          {"-Gbps", " Gbps"},
                                                                          {"-gigabit", " Gbit"},
                                                                          {" gigabit", " Gbit"},
                                                                          {"GByte/s", "GB/s"},
                                                                          {"G/GPU", "Gb/s per GPU"},
                                                                          {"G)", "Gb/s)"},
                                                                          {"one ", "1 "},
                                                                          {"two ", "2 "},
                                                                          {"four ", "4 "},
                                                                          {"eight ", "8 "},
                                                                          {"single-rail", "1 rail"},
                                                                          {"dual-rail", "2 rails"},
                                                                          {"quad-rail", "4 rails"},
                                                                          {"-rail", " rails"},
                                                                          {"a single ", "1 "},
                                                                          {"dual port", "2 ports"},
                                                                          {"dual-port", "2 ports"}};
  for (const auto& [from, to] : kSpellings) {
    const size_t at = out.find(from);
    if (at == std::string::npos) continue;
    // A number's word stands alone: not in `none `.
    const bool word = from.back() == ' ' && from.front() != ' ';
    if (word && at > 0 && out[at - 1] != ' ' && out[at - 1] != ',' && out[at - 1] != '(') continue;
    out = out.substr(0, at) + std::string(to) + out.substr(at + from.size());
  }
  return out;
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

}  // namespace

LinkCell read_link(const std::string& cell) {
  LinkCell out;
  const std::string whole = without_asides(spelled_alike(cell.substr(0, 1024)));
  const std::string all_words = plain_words(whole);
  if (says_any(all_words, {"none", "n a"}) || all_words == " ") return out;
  std::string segment = training_segment(whole, &out.management);
  segment = without_explanation(segment);
  const std::string words = plain_words(segment);
  out.kind = named_kind(words, clause_words(segment));
  if (out.management || segment.empty()) return out;
  if (const std::optional<double> rate = first_rate(segment)) out.rate = Bandwidth(*rate);
  out.ports = port_count(segment);
  // `total 3200 Gbps over 8 NICs`, but `8x 400Gb/s (3.2 Tb/s total)`.
  const bool times = segment.find_first_of("xX*") != std::string::npos;
  if (says_any(words, {"total", "aggregate"}) && !times) out.ports.reset();
  for (const Generation& g : kGenerations) {
    if (!out.rate && says(words, g.word)) out.rate = Bandwidth(g.gbit * kGbit);
  }
  if (says_any(words, {"per gpu", "gpu", "per accelerator", "per chip", "per gcd"}) &&
      !says(words, "shared by")) {
    out.per = LinkCell::Per::kAccelerator;
    out.stated_per = true;
  } else if (!out.ports) {
    out.per = uncounted(words, out);
  }
  out.oversubscription = oversubscription(whole);
  return out;
}

std::optional<Bandwidth> node_bandwidth(const LinkCell& link, int64_t accelerators) {
  if (!link.rate) return {};
  switch (link.per) {
    case LinkCell::Per::kNode:
      return *link.rate;
    case LinkCell::Per::kAccelerator:
      return *link.rate * static_cast<double>(accelerators);
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
  return affirms(words, {"pcie", "pci", "pcie4", "pcie5"}) &&
         !affirms(words, {"nvlink", "xgmi", "bridge", "infinity fabric", "nvswitch"});
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
