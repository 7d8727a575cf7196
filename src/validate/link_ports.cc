#include "validate/link_ports.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/text.h"
#include "validate/links.h"
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

constexpr std::array<std::string_view, 6> kPortNouns = {"hca",  "nic",     "port",
                                                        "rail", "adapter", "supernic"};

// `100 Gb/sec (4X EDR)` is how the driver's tools describe one port: four lanes, not four ports. So
// is `4X FDR`, of a time when nodes had one.
bool one_port(const std::string& segment) {
  const size_t at = segment.find("4X ");
  if (at == std::string::npos) return false;
  const std::string words = plain_words(segment.substr(at + 2));
  if (words.starts_with(" fdr ") || words.starts_with(" qdr ")) return true;
  const bool aside = at > 2 && segment[at - 1] == '(' && first_rate(segment.substr(0, at - 1));
  return aside && says_any(words, {"edr", "hdr", "ndr", "xdr"});
}

// `200 Gb/s HDR x 4`, `HDR100 x2`, `400 Gb/s x8 per node`: behind the port, at the end.
std::optional<int64_t> count_behind(std::string segment) {
  if (says_any(plain_words(segment), {"nodes", "switch", "switches", "spine", "leaf"})) return {};
  for (const std::string_view of : {" per node", "/node", " a node", " each node", " per server",
                                    " per host", " per machine"}) {
    const size_t last = segment.find_last_not_of(" )") + 1;
    if (std::string_view(segment).substr(0, last).ends_with(of)) segment.resize(last - of.size());
  }
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

// What a number in front of it counts: `8 NICs`, `8 NDR ports`.
bool counted_noun(const std::string& word) {
  return std::any_of(kPortNouns.begin(), kPortNouns.end(),
                     [&](std::string_view noun) { return word.starts_with(noun); });
}

// A port by its generation: `8 ConnectX-7`, `4 NDR`.
bool counted_generation(const std::string& word) {
  static constexpr std::array<std::string_view, 13> kNames = {
      "connectx", "cx",  "bluefield", "bf",       "fdr", "edr",  "hdr",
      "ndr",      "xdr", "slingshot", "omnipath", "efa", "ionic"};
  return std::any_of(kNames.begin(), kNames.end(),
                     [&](std::string_view name) { return word.starts_with(name); });
}

// The word as a number of ports; the 7 of `ConnectX-7 NICs` is a name, the 25 of `25 Gb/s NIC` a
// rate.
std::optional<int64_t> ports_at(const std::vector<std::string>& all, size_t k) {
  static constexpr std::array<std::string_view, 12> kNamed = {
      "connectx", "x",        "cx",   "bluefield", "gen", "slingshot",
      "quantum",  "spectrum", "thor", "pcie",      "v",   "nvlink"};
  const std::optional<double> n = cell_number(all[k]);
  const bool whole = n && all[k].find_first_not_of("0123456789") == std::string::npos;
  if (!whole || *n < 1 || *n > 32) return {};
  static constexpr std::array<std::string_view, 8> kRates = {"gb",    "gbps", "gbit", "gbe",
                                                             "gbits", "g",    "tb",   "tbps"};
  const bool rate =
      k + 1 < all.size() && std::find(kRates.begin(), kRates.end(), all[k + 1]) != kRates.end();
  if (rate) return {};
  if (k > 0 && std::find(kNamed.begin(), kNamed.end(), all[k - 1]) != kNamed.end()) return {};
  return static_cast<int64_t>(*n);
}

// `4 HCA per node`, `4 NDR ports`, `NDR: 4 HCAs`, `8 ConnectX-7`, `NDR, 4 per node`.
std::optional<int64_t> count_of_ports(const std::string& words) {
  if (says_any(words, {"nodes", "switch", "switches", "spine", "leaf", "qm9700"})) return {};
  const std::vector<std::string> all = split_any(words, " ");
  for (size_t i = 1; i < all.size(); ++i) {
    if (!counted_noun(all[i])) continue;
    for (size_t k = i; k-- > 0 && i - k <= 4;) {
      if (const std::optional<int64_t> n = ports_at(all, k)) return n;
    }
  }
  for (size_t i = 1; i < all.size(); ++i) {
    if (!counted_generation(all[i])) continue;
    const bool maker = i > 1 && (all[i - 1] == "nvidia" || all[i - 1] == "mellanox");
    if (const std::optional<int64_t> n = ports_at(all, maker ? i - 2 : i - 1)) return n;
  }
  static constexpr std::array<std::string_view, 6> kWhole = {"node", "host",     "server",
                                                             "box",  "instance", "machine"};
  for (size_t i = 0; i + 2 < all.size(); ++i) {
    const bool each = all[i + 1] == "per" || all[i + 1] == "a" || all[i + 1] == "each";
    if (!each || std::find(kWhole.begin(), kWhole.end(), all[i + 2]) == kWhole.end()) continue;
    if (const std::optional<int64_t> n = ports_at(all, i)) return n;
  }
  return {};
}

// What a named generation of port runs at, in Gb/s, where no rate is written. Vendor data sheets;
// of those before EDR what is left of the signalling rate after its coding.
struct Generation {
  std::string_view word;
  double gbit;
};
constexpr std::array kGenerations = {
    Generation{"ndr200", 200},      Generation{"hdr100", 100},     Generation{"ndr400", 400},
    Generation{"hdr200", 200},      Generation{"edr100", 100},     Generation{"fdr", 54.5},
    Generation{"qdr", 32},          Generation{"xdr", 800},        Generation{"ndr", 400},
    Generation{"hdr", 200},         Generation{"edr", 100},        Generation{"connectx 8", 800},
    Generation{"cx8", 800},         Generation{"connectx 7", 400}, Generation{"cx7", 400},
    Generation{"bluefield 3", 400}, Generation{"bf3", 400},        Generation{"connectx 6", 200},
    Generation{"cx6", 200},         Generation{"connectx 5", 100}, Generation{"cx5", 100},
    Generation{"connectx 4", 100},  Generation{"slingshot", 200},  Generation{"slingshot 11", 200},
    Generation{"omni path", 100},   Generation{"omnipath", 100},
};

// Numbers in words as digits, where they stand before a word: `single HDR200 NIC`, `Dual-rail`.
std::string with_digits(const std::string& text) {
  constexpr std::pair<std::string_view, std::string_view> kNumbers[] = {
      {"a single", "1"}, {"single", "1"}, {"one", "1"},  {"two", "2"},
      {"dual", "2"},     {"four", "4"},   {"quad", "4"}, {"eight", "8"}};
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const bool starts = i == 0 || std::string_view(" ,(").find(text[i - 1]) != std::string::npos;
    const auto* known = std::find_if(std::begin(kNumbers), std::end(kNumbers), [&](const auto& n) {
      const size_t end = i + n.first.size();
      return end < text.size() && (text[end] == ' ' || text[end] == '-') &&
             lower(text.substr(i, n.first.size())) == n.first;
    });
    if (starts && known != std::end(kNumbers)) {
      out += std::string(known->second) + " ";
      i += known->first.size() + 1;
    } else {
      out += text[i++];
    }
  }
  return out;
}

}  // namespace

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

// Also `8x`, `8 x `, `8 *`, in front of a port's name or rate.
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

std::optional<double> generation_rate(const std::string& words) {
  for (const Generation& g : kGenerations) {
    if (says(words, g.word)) return g.gbit * kGbit;
  }
  return {};
}

std::optional<double> port_share(const std::string& words, std::optional<int64_t> ports) {
  static constexpr std::array<std::string_view, 6> kEach = {"per",   "every",   "by",
                                                            "among", "between", "for"};
  static constexpr std::array<std::string_view, 5> kMany = {"gpus", "accelerators", "chips", "gcds",
                                                            "npus"};
  const std::vector<std::string> all = split_any(words, " ");
  for (size_t i = 0; i + 1 < all.size(); ++i) {
    const std::optional<int64_t> n = ports_at(all, i);
    if (!n || *n < 2 || std::find(kMany.begin(), kMany.end(), all[i + 1]) == kMany.end()) continue;
    const double many = static_cast<double>(*n);
    if (i > 0 && std::find(kEach.begin(), kEach.end(), all[i - 1]) != kEach.end())
      return static_cast<double>(ports.value_or(1)) / many;
    const std::string behind = i + 2 < all.size() ? all[i + 2] : "";
    const bool each = i + 3 < all.size() && (behind == "per" || behind == "a");
    if (behind == "share" || (each && counted_noun(all[i + 3]))) return 1 / many;
  }
  return {};
}

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
    // A count behind a rate: `400Gx8`, `400G*8`.
    const bool rate = cell[i] == 'G' && i > 0 && digit(i - 1) && digit(i + 2);
    if (rate && (next == 'x' || next == 'X' || next == '*')) {
      out += " x ";
      ++i;
    }
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
                                                                          {"-rail", " rails"},
                                                                          {"dual port", "2 ports"},
                                                                          {"dual-port", "2 ports"}};
  for (const auto& [from, to] : kSpellings) {
    const size_t at = out.find(from);
    if (at == std::string::npos) continue;
    out = out.substr(0, at) + std::string(to) + out.substr(at + from.size());
  }
  return with_digits(out);
}

}  // namespace assay
