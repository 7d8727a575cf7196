// calibrate: fits the named constants of catalog/stacks.yaml and catalog/kernels.yaml to measured
// runs.
//
//   calibrate RUNS.csv PARAMS [--loo] [--rows] [--write] [--restart] [--only PART]...
//             [--sweeps N] [--hops N]
//
// PARAMS lists what may move: `stacks.megatron-core.launch  low high`, one a line, in base units,
// with limits and a start; `stacks.a+b.launch` is one constant that two entries share. A constant
// belongs to a stack or an architecture and acts on every run that uses it; nothing here can
// address a row or a source. The loss is the mean over sources (each weighing the same, however
// many rows it has) of the mean absolute log error, plus a part of its worst tenth and of its bias;
// a weak pull towards the starts keeps constants that no run informs where physics put them.
// Pattern search in log space: deterministic, no gradients, only the rows that a constant touches
// are predicted again.
//
// --loo   refits without each source in turn, its runs with blanks included, and predicts all of
// it:
//         the error that the README headlines
// --hops  shakes all constants so many times and fits again, with --loo for each source too
// --rows  lists every run with its error (held out, after --loo) and ledger
// --write puts the fitted values into the catalog files
//
// A fit goes on from the catalog's values; --restart begins at the starts. --only moves the
// constants whose name holds PART (`megatron-deepspeed`) and leaves the others.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "base/csv.h"
#include "base/file.h"
#include "perf/layer.h"
#include "perf/range.h"
#include "perf/step.h"
#include "validate/scenario.h"
#include "world/catalog.h"

namespace assay {
namespace {

// Finds one numeric field of a struct by its key and calls `use(double&)`.
struct FieldFinder {
  std::string key;
  double* found = nullptr;
  bool seconds = false;
  template <class M, class L>
  void operator()(const char* name, M& member, const L&, const char*) {
    if constexpr (std::is_same_v<M, double>) {
      if (key == name) found = &member;
    } else if constexpr (requires { member.v; }) {
      if (key != name) return;
      found = &member.v;
      seconds = std::is_same_v<M, Seconds>;
    } else if constexpr (requires { fields(member, *this); }) {
      const std::string prefix = std::string(name) + ".";
      if (key.rfind(prefix, 0) == 0) {
        FieldFinder inner{key.substr(prefix.size())};
        fields(member, inner);
        if (inner.found) found = inner.found;
        seconds = inner.seconds;
      }
    }
  }
};

template <class T>
double* numeric_field(T& t, const std::string& key, bool& seconds) {
  FieldFinder f{key};
  fields(t, f);
  seconds = f.seconds;
  return f.found;
}

struct Parameter {
  std::string kind, entry, key;  // stacks / megatron-core+megatron-core-r26 / launch
  double low = 0, high = 0, value = 0, prior = 0;
  bool seconds = false;          // how the catalog writes it
  std::vector<size_t> rows;      // indices of the fitted runs it touches
  std::vector<double*> cells;    // where the constant lives in each of them
  std::set<std::string> shared;  // the entries named, and those that inherit the constant from them
  std::string path() const { return kind + "." + entry + "." + key; }
  std::vector<std::string> entries() const {
    std::vector<std::string> out;
    std::istringstream in(entry);
    for (std::string name; std::getline(in, name, '+');) out.push_back(name);
    return out;
  }
  bool names(const std::string& name) const { return shared.count(name) > 0; }
};

// What a catalog file says about inheritance: each entry's base, and the keys that it states
// itself.
struct Stated {
  std::string base;
  std::set<std::string> keys;  // `launch`, `matmul.efficiency`
};

std::map<std::string, Stated> read_stated(const std::string& kind) {
  std::map<std::string, Stated> out;
  std::ifstream in(fmt::format("catalog/{}.yaml", kind));
  std::string entry, parent;
  for (std::string line; std::getline(in, line);) {
    const size_t from = line.find_first_not_of(' ');
    const size_t colon = line.find(':');
    if (from == std::string::npos || line[from] == '#' || colon == std::string::npos) continue;
    const std::string key = line.substr(from, colon - from);
    if (from == 0) {
      entry = key;
    } else if (from == 2) {
      parent = key;
      out[entry].keys.insert(key);
      if (key == "base") out[entry].base = line.substr(line.find_first_not_of(' ', colon + 1));
    } else {
      out[entry].keys.insert(parent + "." + key);
    }
    out[entry];
  }
  return out;
}

// The entries that take `key` from one of `roots`: themselves, and all whose base leads to one
// before it leads to an entry that states its own.
std::set<std::string> sharing(const std::vector<std::string>& roots, const std::string& key,
                              const std::map<std::string, Stated>& stated) {
  std::set<std::string> out(roots.begin(), roots.end());
  for (const auto& [name, own] : stated) {
    const std::string* at = &name;
    while (out.count(*at) == 0) {
      const auto found = stated.find(*at);
      if (found == stated.end() || found->second.keys.count(key) > 0) break;
      at = &found->second.base;
    }
    if (out.count(*at) > 0) out.insert(name);
  }
  return out;
}

struct Row {
  Setting setting;
  Plan plan;
  size_t source = 0;
  bool fits = true;  // has a say in the fit; the others of a large source are only judged
  double measured = 0;
  double error = 0;  // log(predicted / measured)
  std::string label;
};

struct Problem {
  std::vector<Row> rows;
  std::vector<std::string> sources;
  std::vector<Parameter> parameters;
  std::vector<bool> active;  // sources that count
};

double predict_row(const Row& r) {
  const Layout l = make_layout(r.setting, r.plan);
  const Links links = links_of(r.setting);
  const MicrobatchCost c = microbatch_cost(r.setting, r.plan, l, links);
  return assemble_step(r.setting, r.plan, l, links, c).ledger.paid().v;
}

// Whether the measured time lies in the 90 % range of the prediction.
bool inside(const Row& r) {
  const Layout l = make_layout(r.setting, r.plan);
  const Links links = links_of(r.setting);
  const MicrobatchCost c = microbatch_cost(r.setting, r.plan, l, links);
  const Ledger g = assemble_step(r.setting, r.plan, l, links, c).ledger;
  const Range range = prediction_range(r.setting, r.plan, l, g);
  const double ratio = r.measured / g.paid().v;
  return range.low <= ratio && ratio <= range.high;
}

double* target(Row& r, Parameter& p) {
  if (p.kind == "stacks" && p.names(r.setting.stack.name))
    return numeric_field(r.setting.stack, p.key, p.seconds);
  if (p.kind == "kernels" && p.names(r.setting.kernels.name)) {
    return numeric_field(r.setting.kernels, p.key, p.seconds);
  }
  if (p.kind == "collectives" && p.names(r.setting.scaleup_params.name)) {
    return numeric_field(r.setting.scaleup_params, p.key, p.seconds);
  }
  if (p.kind == "collectives" && p.names(r.setting.fabric_params.name)) {
    return numeric_field(r.setting.fabric_params, p.key, p.seconds);
  }
  return nullptr;
}

void evaluate(Problem& b, const std::vector<size_t>& rows) {
  for (size_t i : rows) b.rows[i].error = std::log(predict_row(b.rows[i]) / b.rows[i].measured);
}

// A run further off than this has a cause that no constant here describes; it must not bend them.
constexpr double kFar = 0.35;

double source_loss(std::vector<double>& e) {
  double sum = 0, signed_sum = 0;
  for (double& x : e) {
    signed_sum += std::clamp(x, -kFar, kFar);
    x = std::min(std::abs(x), kFar);
    sum += x;
  }
  const size_t tenth =
      std::min(e.size() - 1, static_cast<size_t>(0.9 * static_cast<double>(e.size())));
  std::nth_element(e.begin(), e.begin() + static_cast<long>(tenth), e.end());
  const double n = static_cast<double>(e.size());
  return sum / n + 0.3 * e[tenth] + 0.3 * std::abs(signed_sum) / n;
}

// At most so many runs of a source are fitted to, evenly spread, since each source weighs the same
// anyway; all of them are judged.
constexpr size_t kPerSource = 160;
constexpr const char* kPartly = " (partly stated)";

bool partly(const std::string& source) { return source.ends_with(kPartly); }

// Five times as much helps what one source alone informs and harms the rest: held out 7.2 %
// for 7.6, blind sources 16.5 for 16.3. Limits that were measured do better
// (tools/calibrate.params).
constexpr double kPull = 0.0002;

double loss(const Problem& b) {
  std::vector<std::vector<double>> per(b.sources.size());
  for (const Row& r : b.rows) {
    if (r.fits && b.active[r.source]) per[r.source].push_back(r.error);
  }
  double sum = 0, weight = 0;
  for (size_t i = 0; i < per.size(); ++i) {
    std::vector<double>& e = per[i];
    if (e.empty()) continue;
    const double w = e.size() >= 5 && !partly(b.sources[i]) ? 1.0 : 0.3;
    sum += w * source_loss(e);
    weight += w;
  }
  double pull = 0;
  for (const Parameter& p : b.parameters) {
    const double d = std::log((p.value + 1e-9) / (p.prior + 1e-9));
    pull += kPull * d * d;
  }
  return sum / weight + pull;
}

void set_value(Problem& b, Parameter& p, double value) {
  p.value = value;
  for (double* cell : p.cells) *cell = value;
  evaluate(b, p.rows);
}

// Back to the guesses from before any fit, so that a source that is held back has had no say.
void restart(Problem& b) {
  for (Parameter& p : b.parameters) set_value(b, p, p.prior);
}

constexpr int kCycle = 20;

void fit(Problem& b, int sweeps, bool verbose) {
  double best = loss(b);
  std::vector<double> step(b.parameters.size(), 0.35);
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    // Large steps again now and then: constants that trade against each other leave a local
    // optimum.
    if (sweep > 0 && sweep % kCycle == 0) std::fill(step.begin(), step.end(), 0.25);
    for (size_t i = 0; i < b.parameters.size(); ++i) {
      Parameter& p = b.parameters[i];
      if (p.rows.empty() || step[i] < 0.004) continue;
      const double old = p.value;
      bool improved = false;
      for (double direction : {1.0, -1.0}) {
        const double moved =
            std::clamp(std::max(old, 1e-9) * std::exp(direction * step[i]), p.low, p.high);
        if (moved == old) continue;
        set_value(b, p, moved);
        const double now = loss(b);
        if (now < best - 1e-7) {
          best = now;
          improved = true;
          break;
        }
        set_value(b, p, old);
      }
      step[i] *= improved ? 1.3 : 0.6;
    }
    if (verbose && sweep % 5 == 4) fmt::print(stderr, "sweep {:3}  loss {:.5f}\n", sweep + 1, best);
  }
}

// Constants trade against each other, so the search along axes stops on ridges: shake all of them a
// little, fit again, keep what is better. The same shakes every time.
void hop(Problem& b, int hops, int sweeps) {
  std::mt19937 random(1);
  std::vector<double> best;
  for (const Parameter& p : b.parameters) best.push_back(p.value);
  double best_loss = loss(b);
  for (int i = 0; i < hops; ++i) {
    for (Parameter& p : b.parameters) {
      const double u = static_cast<double>(random()) / static_cast<double>(std::mt19937::max());
      set_value(b, p, std::clamp(p.value * std::exp(0.3 * (u - 0.5)), p.low, p.high));
    }
    fit(b, sweeps, false);
    const double now = loss(b);
    const bool better = now < best_loss;
    if (better) best_loss = now;
    for (size_t k = 0; k < best.size(); ++k) {
      if (better) {
        best[k] = b.parameters[k].value;
      } else {
        set_value(b, b.parameters[k], best[k]);
      }
    }
    fmt::print(stderr, "hop {:3}  loss {:.5f}\n", i + 1, best_loss);
  }
}

struct Stats {
  double median = 0, p90 = 0, bias = 0, cover = 0;
  size_t n = 0;
};

Stats stats(const Problem& b, size_t source) {
  std::vector<double> e, a;
  double covered = 0;
  for (const Row& r : b.rows) {
    if (r.source != source) continue;
    const double x = (r.fits ? std::exp(r.error) : predict_row(r) / r.measured) - 1;
    e.push_back(x);
    a.push_back(std::abs(x));
    covered += inside(r) ? 1 : 0;
  }
  std::sort(e.begin(), e.end());
  std::sort(a.begin(), a.end());
  Stats s;
  s.n = e.size();
  if (e.empty()) return s;
  s.median = a[a.size() / 2];
  s.p90 = a[std::min(a.size() - 1, static_cast<size_t>(0.9 * static_cast<double>(a.size())))];
  s.bias = e[e.size() / 2];
  s.cover = covered / static_cast<double>(e.size());
  return s;
}

void print_stats(const std::vector<Stats>& all, const std::vector<std::string>& names,
                 const char* title) {
  fmt::print("{}\n", title);
  const auto line = [](const std::string& name, const char* of, size_t n, const Stats& s) {
    fmt::print("  {:40} {} {:5}  median {:.3f}  p90 {:.3f}  bias {:+.3f}  cover {:.2f}\n", name, of,
               n, s.median, s.p90, s.bias, s.cover);
  };
  Stats mean;
  for (size_t i = 0; i < all.size(); ++i) {
    line(names[i], "n", all[i].n, all[i]);
    if (all[i].n < 5 || partly(names[i])) continue;
    mean.median += all[i].median;
    mean.p90 += all[i].p90;
    mean.bias += all[i].bias;
    mean.cover += all[i].cover;
    ++mean.n;
  }
  const double n = static_cast<double>(mean.n);
  line("equal weight per source", "sources", mean.n,
       {mean.median / n, mean.p90 / n, mean.bias / n, mean.cover / n, mean.n});
}

bool load_rows(const char* path, const Catalog& known, Problem& b) {
  const auto table = read_csv(path);
  if (!table) {
    fmt::print(stderr, "calibrate: {}\n", table.error().message);
    return false;
  }
  std::map<std::string, std::vector<Row>> per;
  for (const Run& run : read_runs(*table)) {
    const auto scenario = to_scenario(run, known);
    if (!scenario || !run.measured_s()) continue;
    const bool checked = run.check == "ok" || run.check == "single_metric";
    const bool stated = run.quality == "A" || run.quality == "B" || run.quality == "C";
    if (!checked || !stated) continue;
    Row r;
    r.setting = scenario->setting;
    r.plan = scenario->plan;
    r.measured = *run.measured_s();
    r.label = run.id + " " + run.model_name + " " + run.gpu;
    // Runs that leave a blank that the scoring asks for inform accelerators that no full run
    // covers.
    per[run.usable() ? run.source : run.source + kPartly].push_back(std::move(r));
  }
  for (auto& [source, rows] : per) {
    const size_t stride = (rows.size() + kPerSource - 1) / kPerSource;
    for (size_t i = 0; i < rows.size(); ++i) {
      rows[i].source = b.sources.size();
      rows[i].fits = i % stride == 0;
      b.rows.push_back(std::move(rows[i]));
    }
    b.sources.push_back(source);
  }
  return true;
}

// One line a run: what it is, its error, and the ledger's larger accounts in percent.
void print_rows(const Problem& b) {
  for (const Row& r : b.rows) {
    const Plan& p = r.plan;
    const Layout l = make_layout(r.setting, p);
    const Links links = links_of(r.setting);
    const Step s = assemble_step(r.setting, p, l, links, microbatch_cost(r.setting, p, l, links));
    std::string parts;
    for (int i = 0; i < kAccounts; ++i) {
      const double share = s.ledger.leaf[static_cast<size_t>(i)] / s.ledger.paid() * 100;
      if (share >= 0.7)
        parts += fmt::format(" {}={:.0f}", info(static_cast<Account>(i)).key, share);
    }
    fmt::print(
        "{:+6.1f}% {} n{} {} L{} h{} s{} {} tp{} pp{}x{} cp{} ep{} dp{} z{}/{} mbs{} m{} "
        "rc{}{:.2g}{} {:.4g}s clk{:.2f} |{}\n",
        (std::exp(r.error) - 1) * 100, r.label, l.ranks, r.setting.stack.name,
        r.setting.workload.model.layers, r.setting.workload.model.hidden, r.setting.workload.seq,
        enum_names(p.precision)[static_cast<size_t>(p.precision)], l.tp, l.pp, l.vpp, l.cp, l.ep,
        l.dp, p.zero, l.shard, l.micro_batch, l.microbatches, static_cast<int>(p.recompute),
        p.recompute_layers, p.compiled ? "C" : "", r.measured, s.clock, parts);
  }
}

bool read_parameters(const std::string& path, Problem& b) {
  std::ifstream in(path);
  if (!in) return false;
  std::map<std::string, std::map<std::string, Stated>> stated;
  for (const char* kind : {"stacks", "kernels", "collectives"}) stated[kind] = read_stated(kind);
  std::string line;
  while (std::getline(in, line)) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string name;
    Parameter p;
    if (!(words >> name >> p.low >> p.high >> p.prior)) continue;
    const size_t a = name.find('.'), c = name.find('.', a + 1);
    p.kind = name.substr(0, a);
    p.entry = name.substr(a + 1, c - a - 1);
    p.key = name.substr(c + 1);
    p.shared = sharing(p.entries(), p.key, stated[p.kind]);
    for (size_t i = 0; i < b.rows.size(); ++i) {
      if (double* v = target(b.rows[i], p)) {
        if (b.rows[i].fits) p.rows.push_back(i);
        p.cells.push_back(v);
        p.value = *v;
      }
    }
    if (p.rows.empty()) fmt::print(stderr, "calibrate: {} touches no run\n", p.path());
    b.parameters.push_back(std::move(p));
  }
  return true;
}

// `key: value` inside `entry:` of a catalog file, replaced or added, with the unit the field wants.
void write_value(const Parameter& p, const std::string& entry, const std::string& folder) {
  const std::string path = fmt::format("{}/{}.yaml", folder, p.kind);
  std::ifstream in(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  in.close();
  const std::string text =
      p.seconds ? fmt::format("{:.4g} us", p.value * 1e6) : fmt::format("{:.4g}", p.value);
  size_t begin = lines.size(), end = lines.size();
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].rfind(entry + ":", 0) == 0)
      begin = i;
    else if (begin < i && !lines[i].empty() && lines[i][0] != ' ' && lines[i][0] != '#') {
      end = i;
      break;
    }
  }
  if (begin == lines.size()) return;
  const size_t dot = p.key.find('.');
  if (dot != std::string::npos) {  // `matmul.efficiency`: inside the nested mapping
    const std::string parent = "  " + p.key.substr(0, dot) + ":";
    size_t at = begin + 1;
    while (at < end && lines[at] != parent) ++at;
    if (at == end) lines.insert(lines.begin() + static_cast<long>(end++), parent);
    begin = at;
    for (end = begin + 1; end < lines.size() && lines[end].rfind("    ", 0) == 0;) ++end;
  }
  const std::string indent = dot == std::string::npos ? "  " : "    ";
  const std::string head = indent + p.key.substr(dot == std::string::npos ? 0 : dot + 1) + ": ";
  bool replaced = false;
  for (size_t i = begin + 1; i < end && !replaced; ++i) {
    if (lines[i].rfind(head, 0) != 0) continue;
    lines[i] = head + text;
    replaced = true;
  }
  if (!replaced) {
    while (end > begin + 1 && lines[end - 1].empty()) --end;
    lines.insert(lines.begin() + static_cast<long>(end), head + text);
  }
  std::ofstream out(path);
  for (const std::string& line : lines) out << line << '\n';
}

// Refits without each source in turn, from the starts, and predicts it. Leaves the fitted values in
// place and the held-out errors in the rows.
void leave_one_out(Problem& b, int sweeps, int hops) {
  std::vector<double> fitted;
  for (const Parameter& p : b.parameters) fitted.push_back(p.value);
  std::vector<Stats> held;
  std::vector<double> held_error(b.rows.size());
  for (size_t s = 0; s < b.sources.size(); ++s) {
    if (partly(b.sources[s])) {
      held.push_back(Stats{});
      continue;
    }
    // Its runs with blanks, which inform the fit beside it, are its own, too.
    const auto set_active = [&](bool active) {
      for (size_t k = 0; k < b.sources.size(); ++k) {
        if (k == s || b.sources[k] == b.sources[s] + kPartly) b.active[k] = active;
      }
    };
    restart(b);
    set_active(false);
    fit(b, sweeps, false);
    hop(b, hops, kCycle);
    held.push_back(stats(b, s));
    for (size_t i = 0; i < b.rows.size(); ++i) {
      if (b.rows[i].source == s)
        held_error[i] = std::log(predict_row(b.rows[i]) / b.rows[i].measured);
    }
    set_active(true);
    fmt::print(stderr, "without {:40} median {:.3f}\n", b.sources[s], held.back().median);
  }
  for (size_t i = 0; i < b.parameters.size(); ++i) set_value(b, b.parameters[i], fitted[i]);
  print_stats(held, b.sources, "leave one source out");
  for (size_t i = 0; i < b.rows.size(); ++i) b.rows[i].error = held_error[i];
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  using namespace assay;
  if (argc < 3) {
    fmt::print(stderr,
               "usage: calibrate RUNS.csv PARAMS [--loo] [--rows] [--write] [--restart]\n"
               "                 [--only PART]... [--sweeps N] [--hops N]\n");
    return 2;
  }
  bool loo = false, write = false, list = false, again = false;
  std::vector<std::string> only;
  int sweeps = 40, hops = 0;
  const std::map<std::string, bool*> flags{
      {"--loo", &loo}, {"--write", &write}, {"--rows", &list}, {"--restart", &again}};
  const std::map<std::string, int*> numbers{{"--sweeps", &sweeps}, {"--hops", &hops}};
  for (int i = 3; i < argc; ++i) {
    const std::string word = argv[i];
    const bool more = i + 1 < argc;
    if (const auto flag = flags.find(word); flag != flags.end()) {
      *flag->second = true;
    } else if (const auto number = numbers.find(word); number != numbers.end() && more) {
      *number->second = std::atoi(argv[++i]);
    } else if (word == "--only" && more) {
      only.push_back(argv[++i]);
    } else {
      fmt::print(stderr, "calibrate: {}: not an option, or its value is missing\n", word);
      return 2;
    }
  }
  const auto known = load_catalog("catalog");
  if (!known) {
    fmt::print(stderr, "{}", render(known.error()));
    return 2;
  }
  Problem b;
  if (!load_rows(argv[1], *known, b) || !read_parameters(argv[2], b)) return 3;
  std::erase_if(b.parameters, [&](const Parameter& p) {
    return !only.empty() && std::none_of(only.begin(), only.end(), [&](const std::string& part) {
      return p.path().find(part) != std::string::npos;
    });
  });
  b.active.assign(b.sources.size(), true);
  for (size_t i = 0; i < b.rows.size(); ++i) evaluate(b, {i});
  std::vector<Stats> before, after;
  for (size_t i = 0; i < b.sources.size(); ++i) before.push_back(stats(b, i));
  print_stats(before, b.sources, "catalog as it is");
  if (again) restart(b);
  if (sweeps > 0) fit(b, sweeps, true);
  if (hops > 0) hop(b, hops, kCycle);
  for (size_t i = 0; i < b.sources.size(); ++i) after.push_back(stats(b, i));
  print_stats(after, b.sources, "in sample");
  for (const Parameter& p : b.parameters) {
    fmt::print("{:44} {:10.4g}  was {:10.4g}{}\n", p.path(), p.value, p.prior,
               p.value <= p.low * 1.001 || p.value >= p.high * 0.999 ? "  at its limit" : "");
  }
  if (loo) leave_one_out(b, sweeps, hops);
  if (list) print_rows(b);
  if (write) {
    for (const Parameter& p : b.parameters) {
      if (p.rows.empty()) continue;
      for (const std::string& entry : p.entries()) write_value(p, entry, "catalog");
    }
  }
  return 0;
}
