// Calibrates catalog/collectives.yaml on measured collectives and prints what error remains.
//
//   fit_collectives TABLE.csv CATALOG.yaml [--write | --report]
//
// TABLE.csv holds published measurements, most of them of NVIDIA's aiconfigurator; it is not part
// of this repository. Each entry that has rows is fitted by pattern search on log parameters; the
// loss is the mean absolute log ratio of predicted to measured time.
// Scale-up entries first, then the fabrics with those held. Without --write nothing is changed;
// --report judges the catalog as it is. The search is deterministic: same table, same values.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <sstream>

#include "base/file.h"
#include "tools/collective_rows.h"

namespace assay {
namespace {

// ---- The catalog's own simple YAML: `name:` at the margin, `  key: value` below. ----

double parse_value(const std::string& text) {
  char* rest = nullptr;
  const double v = std::strtod(text.c_str(), &rest);
  while (*rest == ' ') ++rest;
  if (std::string_view(rest).starts_with("us")) return v * 1e-6;
  if (std::string_view(rest).starts_with("ms")) return v * 1e-3;
  return v;
}

struct Assign {
  std::string_view key;
  double value;
  template <class M>
  void operator()(const char* name, M& member, const Limits&, const char*) const {
    if (key != name) return;
    if constexpr (std::is_same_v<M, Seconds>)
      member = Seconds(value);
    else if constexpr (std::is_same_v<M, int64_t>)
      member = static_cast<int64_t>(value);
    else
      member = value;
  }
};

std::vector<CollectiveParams> read_entries(const std::string& yaml) {
  std::vector<CollectiveParams> entries;
  std::istringstream lines(yaml);
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(':');
    if (line.empty() || line[0] == '#' || colon == std::string::npos) continue;
    if (line[0] != ' ') {
      entries.emplace_back().name = line.substr(0, colon);
      continue;
    }
    const std::string key = line.substr(2, colon - 2);
    const std::string value = colon + 2 <= line.size() ? line.substr(colon + 2) : "";
    if (key == "base") {
      const std::string name = entries.back().name;
      for (size_t i = 0; i + 1 < entries.size(); ++i) {
        if (entries[i].name == value) entries.back() = entries[i];
      }
      entries.back().name = name;
    } else {
      fields(entries.back(), Assign{key, parse_value(value)});
    }
  }
  return entries;
}

// Replaces or adds the keys of one entry.
std::string with_entry(const std::string& yaml, const CollectiveParams& p) {
  std::map<std::string, std::string> values;
  std::vector<std::string> order;
  fields(p, [&](const char* key, const auto& member, const Limits&, const char*) {
    using M = std::decay_t<decltype(member)>;
    if constexpr (std::is_same_v<M, Seconds>)
      values[key] = fmt::format("{:.3g} us", member.v * 1e6);
    else if constexpr (std::is_same_v<M, int64_t>)
      values[key] = fmt::format("{}", member);
    else
      values[key] = fmt::format("{:.3g}", member);
    order.push_back(key);
  });
  std::string out;
  bool inside = false;
  const auto flush = [&] {
    for (const std::string& key : order) {
      if (values.contains(key)) out += fmt::format("  {}: {}\n", key, values[key]);
    }
    values.clear();
  };
  std::istringstream lines(yaml);
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(':');
    if (inside && (line.empty() || line[0] != ' ')) flush(), inside = false;
    if (!line.empty() && line[0] != ' ' && colon != std::string::npos) {
      inside = line.substr(0, colon) == p.name;
    }
    const std::string key = inside && line[0] == ' ' ? line.substr(2, colon - 2) : "";
    if (!values.contains(key)) out += line + "\n";  // keys of the model come back in flush()
  }
  if (inside) flush();
  return out;
}

// ---- Fit ----

struct Knob {
  std::string name;
  std::function<double&(CollectiveParams&)> at;
  double min, max;
};

// Every parameter that a fit may move, with the range that keeps it physical: LL spends half of
// each store on the flag, LL128 an eighth of each line at most; a step inside a node is
// microseconds, one through NICs and proxies tens.
std::vector<Knob> knobs(bool fabric) {
  using P = CollectiveParams;
  const double us = 1e-6;
  const double slow = fabric ? 10 : 1;
  return {
      {"bus_efficiency", [](P& p) -> double& { return p.bus_efficiency; }, 0.2, 1.0},
      {"base_latency", [](P& p) -> double& { return p.base_latency.v; }, us, 15 * us* slow},
      {"ll_step", [](P& p) -> double& { return p.ll_step.v; }, 0.2 * us, 2 * us* slow},
      {"ll_cost", [](P& p) -> double& { return p.ll_cost; }, 2, 60},
      {"ll128_step", [](P& p) -> double& { return p.ll128_step.v; }, 0.2 * us, 3 * us* slow},
      {"ll128_cost", [](P& p) -> double& { return p.ll128_cost; }, 1.07, 20},
      {"simple_step", [](P& p) -> double& { return p.simple_step.v; }, 0.2 * us, 4 * us* slow},
      {"copy_cost", [](P& p) -> double& { return p.copy_cost; }, 0.01, 1},
      {"fill_latency", [](P& p) -> double& { return p.fill_latency.v; }, us, 150 * us* slow},
      {"fill_scale", [](P& p) -> double& { return p.fill_scale.v; }, 5 * us* slow, 300 * us* slow},
      {"group_slowdown", [](P& p) -> double& { return p.group_slowdown; }, 0.01, 5},
      {"direct_latency", [](P& p) -> double& { return p.direct_latency.v; }, us, 15 * us* slow},
      {"direct_step", [](P& p) -> double& { return p.direct_step.v; }, 0.01 * us, us* slow},
      {"direct_simple", [](P& p) -> double& { return p.direct_simple.v; }, 0.1 * us, 15 * us* slow},
      {"direct_efficiency", [](P& p) -> double& { return p.direct_efficiency; }, 0.1, 1.0},
      {"in_switch_latency", [](P& p) -> double& { return p.in_switch_latency.v; }, us, 50 * us},
      {"in_switch_fill", [](P& p) -> double& { return p.in_switch_fill.v; }, us, 400 * us},
      {"in_switch_efficiency", [](P& p) -> double& { return p.in_switch_efficiency; }, 0.2, 1.2},
  };
}

// The protocols are ordered: the quicker a step, the slower the stream.
bool ordered(const CollectiveParams& p) {
  return p.ll_step <= p.ll128_step && p.ll128_step <= p.simple_step && p.ll_cost >= p.ll128_cost;
}

struct Case {
  const CollectiveRow* row;
  Links links;
  double weight;
};

double loss(const std::vector<Case>& cases) {
  double sum = 0, weight = 0;
  for (const Case& c : cases) {
    const double t = collective_time(c.row->kind, c.row->bytes, c.row->group, c.links).v;
    sum += c.weight * std::abs(std::log(t / c.row->measured.v));
    weight += c.weight;
  }
  return sum / weight;
}

// Multiplicative pattern search, one parameter at a time, steps halving from 1.5x to 1 %.
CollectiveParams fit(CollectiveParams start, std::vector<Case>& cases, bool fabric) {
  const auto try_params = [&](const CollectiveParams& p) {
    for (Case& c : cases) (fabric ? c.links.fabric_params : c.links.scaleup_params) = p;
    return loss(cases);
  };
  const std::vector<Knob> moves = knobs(fabric);
  CollectiveParams best = start;
  double best_loss = try_params(best);
  for (int round = 0; round < 3; ++round) {
    for (double step = 0.5; step > 0.005; step *= 0.7) {
      for (bool improved = true; improved;) {
        improved = false;
        for (const Knob& k : moves) {
          for (const double factor : {1 + step, 1 / (1 + step)}) {
            CollectiveParams p = best;
            double& v = k.at(p);
            if (v <= 0) continue;  // zero: the entry does without this term
            // The rows of pcie4 beyond a pair are one sick box's; its value follows pcie5.
            if (p.name == "pcie4" && k.name == "group_slowdown") continue;
            v = std::clamp(v * factor, k.min, k.max);
            if (!ordered(p)) continue;
            const double l = try_params(p);
            if (l < best_loss - 1e-7) best = p, best_loss = l, improved = true;
          }
        }
      }
    }
  }
  try_params(best);
  return best;
}

// ---- Report ----

struct Errors {
  std::vector<double> all, big;  // absolute relative errors; big: 1 MB and more
  double signed_sum = 0;
};

double median(std::vector<double> v) {
  if (v.empty()) return std::nan("");
  const auto middle = v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2);
  std::nth_element(v.begin(), middle, v.end());
  return *middle;
}

void print(const std::string& name, const Errors& e) {
  fmt::print("{:<52} {:>5} {:>7.1f} {:>5} {:>7.1f} {:>+7.1f}\n", name, e.all.size(),
             100 * median(e.all), e.big.size(), 100 * median(e.big),
             100 * e.signed_sum / static_cast<double>(e.all.size()));
}

void report(const std::vector<CollectiveRow>& rows, const std::vector<CollectiveParams>& entries) {
  std::map<std::string, Errors> table;
  for (const CollectiveRow& r : rows) {
    const double t = collective_time(r.kind, r.bytes, r.group, links_of(r, entries)).v;
    const double error = t / r.measured.v - 1;
    const std::string kind(enum_names(Collective{})[static_cast<size_t>(r.kind)]);
    const std::string where = r.fabric.empty() ? "1 one node" : "1 many nodes";
    const std::string cls = r.bytes.v < 32768  ? "a <32K"
                            : r.bytes.v < 1e6  ? "b <1M"
                            : r.bytes.v < 33e6 ? "c <32M"
                                               : "d >=32M";
    for (const std::string& key : {where, "2 " + r.system, fmt::format("3 {} {}", r.system, kind),
                                   fmt::format("4 {} {} {}", r.system, kind, r.group.ranks),
                                   fmt::format("5 {} {}", r.system, cls)}) {
      Errors& e = table[key];
      e.all.push_back(std::abs(error));
      if (r.bytes.v >= 1e6) e.big.push_back(std::abs(error));
      e.signed_sum += error;
    }
  }
  fmt::print("{:<52} {:>5} {:>7} {:>5} {:>7} {:>7}\n", "median absolute error, %", "rows", "all",
             "rows", ">=1MB", "bias");
  for (const auto& [name, e] : table) print(name, e);
}

// InfiniBand and RoCE are the same verbs and the same library code; each alone has too few rows, so
// one fit serves both and catalog/collectives.yaml derives `roce` from `infiniband`.
bool teaches(const CollectiveRow& r, const std::string& entry, bool fabric) {
  if (fabric && entry == "infiniband" && r.fabric == "roce") return true;
  if (fabric && entry == "roce") return false;
  return entry == (fabric ? r.fabric : r.scaleup);
}

int run(const std::string& csv, const std::string& yaml_file, bool fits, bool write) {
  const Result<CsvTable> table = read_csv(csv);
  const Result<std::string> text = read_file(yaml_file);
  if (!table || !text) {
    fmt::print(stderr, "fit_collectives: cannot read {} or {}\n", csv, yaml_file);
    return 1;
  }
  std::string yaml = *text;
  std::vector<CollectiveParams> entries = read_entries(yaml);
  CollectiveRows data = collective_rows(*table);
  const size_t table_rows = data.rows.size();
  for (const CollectiveRow& r : anchor_rows()) data.rows.push_back(r);
  fmt::print("{} rows; {} of unknown machines, {} failed measurements left out\n", data.rows.size(),
             data.unknown_machine, data.failed);
  for (const bool fabric : {false, true}) {
    if (!fits) break;
    for (CollectiveParams& entry : entries) {
      std::vector<Case> cases;
      for (size_t i = 0; i < data.rows.size(); ++i) {
        const CollectiveRow& r = data.rows[i];
        if (!r.calibrates || r.fabric.empty() == fabric) continue;
        if (!teaches(r, entry.name, fabric)) continue;
        const double weight = i < table_rows ? (r.bytes.v >= 1e6 ? 2 : 1) : fabric ? 6 : 40;
        cases.push_back({&r, links_of(r, entries), weight});
      }
      if (cases.size() < 10) continue;  // a handful of rows cannot carry a fit
      const double before = loss(cases);
      entry = fit(entry, cases, fabric);
      fmt::print("{:<14} {:>5} rows, mean |log error| {:.4f} -> {:.4f}\n", entry.name, cases.size(),
                 before, loss(cases));
      yaml = with_entry(yaml, entry);
    }
  }
  report(data.rows, read_entries(yaml));
  if (write) {
    std::FILE* f = std::fopen(yaml_file.c_str(), "w");
    if (f == nullptr) return 1;
    std::fwrite(yaml.data(), 1, yaml.size(), f);
    std::fclose(f);
  }
  return 0;
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: fit_collectives TABLE.csv CATALOG.yaml [--write | --report]\n");
    return 2;
  }
  const std::string mode = argc > 3 ? argv[3] : "";
  return assay::run(argv[1], argv[2], mode != "--report", mode == "--write");
}
