#include "report/catalog_report.h"

#include <algorithm>

#include <fmt/format.h>

#include "config/scalar.h"
#include "perf/predict.h"
#include "plan/leaves.h"
#include "plan/words.h"
#include "report/result_json.h"
#include "world/names.h"

namespace assay {
namespace {

// In the 16-bit format that it is fast in, else in 32 bits.
std::string tera(const Accelerator& a) {
  const auto [rate, name] = a.bf16.v > 0      ? std::pair(a.bf16, "bf16")
                            : a.fp16 > a.fp32 ? std::pair(a.fp16, "fp16")
                                              : std::pair(a.fp32, "fp32");
  return fmt::format("{} TFLOPS {}", significant(rate.v / 1e12), name);
}

std::string summary(const Accelerator& a) {
  return fmt::format("{} {}, {}, {}, {} W", a.vendor, tera(a),
                     format_quantity(a.memory.v, Dimension::kBytes),
                     bandwidth(a.memory_bandwidth.v), significant(a.tdp.v));
}
std::string summary(const Node& n) {
  const std::string ports = n.nics > 0
                                ? fmt::format("{} x {:.0f}G", n.nics, n.nic_bandwidth.v * 8e-9)
                                : "no network ports";
  return fmt::format("{} x {}, {}", n.accelerators, n.accelerator, ports);
}
std::string summary(const Fabric& f) {
  return fmt::format("{}, {:g}:1", enum_names(f.kind)[static_cast<size_t>(f.kind)],
                     f.oversubscription);
}
std::string summary(const Cluster& c) {
  return fmt::format("{} x {} = {} {}", count(c.nodes), c.node.name, count(c.accelerators()),
                     c.accelerator.name);
}
std::string summary(const Model& m) {
  if (m.kind == ModelKind::kDlrm) return fmt::format("recommendation, {} tables", m.tables);
  std::string text = fmt::format("{} parameters, {} layers x {}", scaled(parameters(m)),
                                 m.layers + m.encoder_layers, count(m.hidden));
  if (m.experts > 0) {
    text += fmt::format(", {} of {} experts, {} active", m.experts_per_token, m.experts,
                        scaled(active_parameters(m)));
  }
  return text;
}
std::string summary(const Stack& s) {
  return fmt::format("{} sharding", enum_names(s.sharding)[static_cast<size_t>(s.sharding)]);
}
std::string summary(const Kernels& k) {
  return fmt::format("kernels: memory streams at {} of its data sheet",
                     percent(k.memory_efficiency));
}
std::string summary(const CollectiveParams& p) {
  return fmt::format("collectives: large messages at {} of the link", percent(p.bus_efficiency));
}

std::string summary(const Climate& c) {
  if (c.mean_c.empty()) return "";
  const auto [low, high] = std::minmax_element(c.mean_c.begin(), c.mean_c.end());
  return fmt::format("coldest month {:.1f} C, warmest {:.1f} C", *low, *high);
}
std::string summary(const Tariff& t) {
  std::string text;
  if (t.flat.v > 0) {
    text = format_quantity(t.flat.v, Dimension::kEnergyPrice);
  } else if (!t.usd_per_mwh.empty()) {
    const auto [low, high] = std::minmax_element(t.usd_per_mwh.begin(), t.usd_per_mwh.end());
    text = fmt::format("${:.0f} to {:.0f} per MWh by hour", *low, *high);
  }
  if (!t.carbon_g_per_kwh.empty()) {
    const auto [low, high] =
        std::minmax_element(t.carbon_g_per_kwh.begin(), t.carbon_g_per_kwh.end());
    text += fmt::format(", {:.0f} to {:.0f} g/kWh", *low, *high);
  }
  return text;
}
std::string summary(const Cooling& c) {
  return fmt::format("{}, {}, supply {:g} C", enum_names(c.method)[static_cast<size_t>(c.method)],
                     enum_names(c.rejection)[static_cast<size_t>(c.rejection)], c.supply_c);
}
std::string summary(const Tier& t) {
  return fmt::format("{:.3f} %, {:g} outages a year of {}", t.availability * 100,
                     t.outages_per_year, duration(t.outage_mean.v));
}
std::string summary(const Storage& s) {
  return fmt::format("read {}, write {}, {} at the median", bandwidth(s.read.v),
                     bandwidth(s.write.v), seconds(s.latency_p50.v));
}
std::string summary(const Offer& o) {
  if (o.tenure == Tenure::kOwned) {
    return fmt::format("{}, owned, {} each", o.accelerator, dollars(o.capex.v));
  }
  if (o.prices.empty()) return o.accelerator;
  const PricePoint& last = o.prices.back();
  const bool reserved = o.commitment == Commitment::kReserved;
  return fmt::format(
      "{}, {} {} from {}", o.accelerator,
      format_quantity((reserved ? last.reserved : last.on_demand).v, Dimension::kDollarRate),
      reserved ? "reserved" : "on demand", last.from);
}
std::string summary(const Site& s) {
  return fmt::format("{}, {} contracted, {}", s.climate.name, watts(s.power.contracted.v),
                     s.cooling.name);
}

std::string summary(const Reliability& r) {
  double count = 0;
  for (const FailureKind& f : r.failures) count += f.count;
  return fmt::format("{} failures in a million GPU-hours",
                     significant(count / r.exposure_gpu_hours * 1e6));
}
std::string summary(const Operations& o) {
  const std::string spares =
      o.spare_share > 0 ? percent(o.spare_share) + " of nodes" : fmt::format("{}", o.spares);
  return fmt::format("{}, {} spare, {} checkpoints, {}",
                     enum_names(o.recovery)[static_cast<size_t>(o.recovery)], spares,
                     enum_names(o.checkpoint.mode)[static_cast<size_t>(o.checkpoint.mode)],
                     o.reliability.name);
}

template <class Visit>
void for_each_kind(const Catalog& c, Visit&& visit) {
  visit("accelerators", c.accelerators);
  visit("nodes", c.nodes);
  visit("fabrics", c.fabrics);
  visit("clusters", c.clusters);
  visit("models", c.models);
  visit("stacks", c.stacks);
  visit("kernels", c.kernels);
  visit("collectives", c.collectives);
  visit("climates", c.climates);
  visit("tariffs", c.tariffs);
  visit("cooling", c.cooling);
  visit("tiers", c.tiers);
  visit("storage", c.storage);
  visit("offers", c.offers);
  visit("sites", c.sites);
  visit("reliability", c.reliability);
  visit("operations", c.operations);
}

// The origin of a field, else of the nearest mapping around it.
const Origin* origin_of(const Catalog& c, std::string path) {
  while (!path.empty()) {
    const auto found = c.origins.find(path);
    if (found != c.origins.end()) return &found->second;
    const size_t dot = path.rfind('.');
    path = dot == std::string::npos ? "" : path.substr(0, dot);
  }
  return nullptr;
}

std::string place(const Origin& o) {
  return o.line > 0 ? fmt::format("{}:{}", o.file, o.line) : o.file;
}

// Sources are long and shared: lines carry a number, the texts follow below.
class Sources {
 public:
  std::string number(const std::string& source) {
    for (size_t i = 0; i < texts_.size(); ++i) {
      if (texts_[i] == source) return fmt::format("[{}]", i + 1);
    }
    texts_.push_back(source);
    return fmt::format("[{}]", texts_.size());
  }

  std::string list(const Style& style) const {
    std::string out;
    for (size_t i = 0; i < texts_.size(); ++i) {
      out += wrap(fmt::format("  [{}] {}", i + 1, sanitize(texts_[i], 600)), style.width, 6) + "\n";
    }
    return out;
  }

 private:
  std::vector<std::string> texts_;
};

template <class T>
std::string entry_text(const Catalog& c, const std::string& kind, const T& entry,
                       const Style& style) {
  T copy = entry;
  const std::string prefix = kind + "." + entry.name;
  std::string out = fmt::format("{}  ({})  {}\n", entry.name, kind, summary(entry));
  const size_t key = style.width < 96 ? 26 : 30, value = style.width < 96 ? 16 : 22;
  Sources sources;
  for (const Leaf& leaf : leaves(copy)) {
    const std::string text = leaf.text();
    const Origin* origin = origin_of(c, prefix + "." + leaf.path);
    if (text.empty() || (!origin && !style.verbose)) continue;
    const bool long_path = leaf.path.size() >= key;
    std::string line = std::string(long_path ? key + 2 : 2, ' ') +
                       (long_path ? "" : left(leaf.path, key)) + left(text, value);
    if (text.size() > value) {
      line = wrap(line, style.width, key + 2) + "\n" + std::string(key + value + 2, ' ');
    }
    if (long_path) line = "  " + leaf.path + "\n" + line;
    if (origin)
      line +=
          fmt::format("{}  {} {}", origin->mark, place(*origin), sources.number(origin->source));
    while (line.back() == ' ') line.pop_back();
    out += line + "\n";
  }
  return out + sources.list(style) + "\n";
}

template <class T>
Json entry_json(const Catalog& c, const std::string& kind, const T& entry) {
  Json j = value_json(entry);
  j["kind"] = kind;
  Json origins = Json::object();
  const std::string prefix = kind + "." + entry.name;
  for (auto it = c.origins.lower_bound(prefix); it != c.origins.end(); ++it) {
    if (it->first.compare(0, prefix.size(), prefix) != 0) break;
    origins[it->first] = {{"mark", std::string(1, it->second.mark)},
                          {"source", it->second.source},
                          {"file", it->second.file},
                          {"line", it->second.line}};
  }
  j["origins"] = std::move(origins);
  return j;
}

// Calls visit(kind, entry) for every entry of that name, in any spelling; where there is none, for
// those that go by it as well: the names that any command takes.
template <class Visit>
void for_each_named(const Catalog& c, const CatalogName& wanted, Visit&& visit) {
  bool found = false;
  for (const bool own : {true, false}) {
    for_each_kind(c, [&](const char* kind, const auto& entries) {
      using T = typename std::remove_cvref_t<decltype(entries)>::value_type;
      if (!wanted.kind.empty() && wanted.kind != kind) return;
      const T* entry = own ? find_own_name<T>(c, wanted.name) : find_entry<T>(c, wanted.name);
      if (entry == nullptr) return;
      found = true;
      visit(kind, *entry);
    });
    if (found) return;
  }
}

}  // namespace

const std::vector<std::string>& catalog_kinds() {
  static const std::vector<std::string> kinds{
      "accelerators", "nodes",       "fabrics",  "clusters",    "models",    "stacks",
      "kernels",      "collectives", "climates", "tariffs",     "cooling",   "tiers",
      "storage",      "offers",      "sites",    "reliability", "operations"};
  return kinds;
}

std::vector<std::string> catalog_names(const Catalog& c, const std::string& kind) {
  std::vector<std::string> names;
  for_each_kind(c, [&](const char* of, const auto& entries) {
    if (!kind.empty() && kind != of) return;
    for (const auto& entry : entries) names.push_back(entry.name);
  });
  return names;
}

std::string catalog_list_text(const Catalog& c, const std::string& kind, const Style& style) {
  std::string out;
  for_each_kind(c, [&](const char* name, const auto& entries) {
    if (!kind.empty() && kind != name) return;
    out += fmt::format("{} ({})\n", name, entries.size());
    for (const auto& entry : entries) {
      const size_t column = std::max<size_t>(28, entry.name.size() + 1);
      const std::string line = "  " + left(entry.name, column) + summary(entry);
      out += line.substr(0, static_cast<size_t>(style.width)) + "\n";
    }
    out += "\n";
  });
  return out + fmt::format("Catalog of {}. Sources: assay catalog show NAME\n", c.date);
}

std::string catalog_list_json(const Catalog& c, const std::string& kind, const Stamp& stamp) {
  Json doc = start_document("assay.catalog/1", stamp);
  for_each_kind(c, [&](const char* name, const auto& entries) {
    if (!kind.empty() && kind != name) return;
    Json list = Json::array();
    for (const auto& entry : entries)
      list.push_back({{"name", entry.name}, {"summary", summary(entry)}});
    doc[name] = std::move(list);
  });
  return print(doc);
}

std::string catalog_show_text(const Catalog& c, const CatalogName& name, const Style& style) {
  std::string out;
  for_each_named(c, name, [&](const char* kind, const auto& entry) {
    out += entry_text(c, kind, entry, style);
  });
  if (!out.empty() && !style.quiet) {
    out += "m measured  s vendor spec or stated  c calibrated model  a assumed\n";
  }
  return out;
}

std::string catalog_show_json(const Catalog& c, const CatalogName& name, const Stamp& stamp) {
  Json entries = Json::array();
  for_each_named(c, name, [&](const char* kind, const auto& entry) {
    entries.push_back(entry_json(c, kind, entry));
  });
  if (entries.empty()) return "";
  Json doc = start_document("assay.catalog/1", stamp);
  doc["entries"] = std::move(entries);
  return print(doc);
}

}  // namespace assay
