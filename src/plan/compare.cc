#include "plan/compare.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/assert.h"
#include "plan/leaves.h"

namespace assay {
namespace {

// Leaves that are switched together because they have one name: another accelerator changes its
// peaks, memory and kernels at once.
struct Bundle : Switched {
  std::vector<size_t> members;  // indices into leaves()
};

// A network comes with the second node: neither can be switched without the other.
bool network_is_new(const Side& a, const Side& b) {
  const auto alone = [](const Side& s) {
    return s.setting.cluster.fabric.kind == FabricKind::kNone;
  };
  return alone(a) != alone(b) && accelerators_used(a.setting) != accelerators_used(b.setting);
}

// The name of the bundle a differing leaf belongs to.
std::string bundle_of(const std::string& path, const Side& a, const Side& b) {
  const bool other_gpu = a.setting.cluster.accelerator.name != b.setting.cluster.accelerator.name;
  if (path == "cluster.node.accelerator" ||
      (other_gpu && path.starts_with("cluster.accelerator."))) {
    return "cluster.accelerator";
  }
  if (path.starts_with("cluster.node.") &&
      a.setting.cluster.node.name != b.setting.cluster.node.name) {
    return "cluster.node";
  }
  if (path.starts_with("cluster.fabric.") && network_is_new(a, b)) return "cluster.nodes";
  if (path.starts_with("cluster.fabric.") &&
      a.setting.cluster.fabric.name != b.setting.cluster.fabric.name) {
    return "cluster.fabric";
  }
  if (path.starts_with("workload.model.") &&
      a.setting.workload.model.name != b.setting.workload.model.name) {
    return "workload.model";
  }
  if (path.starts_with("stack.") && a.setting.stack.name != b.setting.stack.name) return "stack";
  if (path.starts_with("plan.") && a.searched && b.searched) return "plan";
  // Chunks of a stage are the interleaved schedule: neither changes without the other.
  const bool interleaved =
      a.plan.schedule == Schedule::kInterleaved || b.plan.schedule == Schedule::kInterleaved;
  if (path == "plan.schedule" && interleaved && a.plan.vpp != b.plan.vpp) return "plan.vpp";
  // Nodes under a leaf follow from the rails.
  if (path == "cluster.fabric.nodes_per_leaf" &&
      a.setting.cluster.fabric.rail_optimised != b.setting.cluster.fabric.rail_optimised) {
    return "cluster.fabric.rail_optimised";
  }
  if (path == "cluster.nodes" || path == "accelerators") return "cluster.nodes";
  return path;
}

// Differences that no step time depends on: other spellings of names.
bool irrelevant(const std::string& path) {
  return path == "cluster.accelerator.aliases" || path == "stack.aliases" || path == "plan.dp" ||
         path == "workload.tokens";
}

// A name says little where a description changed what the entry holds: then its ports, too.
std::string node_text(const Node& n, const Node& other) {
  const bool same = n.nics == other.nics && n.nic_bandwidth.v == other.nic_bandwidth.v;
  if (same) return n.name;
  return fmt::format("{} {}x{:.0f}G", n.name, n.nics, n.nic_bandwidth.v * 8e-9);
}

std::string fabric_text(const Fabric& f, const Fabric& other) {
  const std::string name =
      f.name.empty() ? std::string(enum_names(f.kind)[static_cast<size_t>(f.kind)]) : f.name;
  return f.oversubscription == other.oversubscription
             ? name
             : fmt::format("{} {:g}:1", name, f.oversubscription);
}

std::string bundle_text(const std::string& path, const Side& s, const Side& other) {
  const Cluster& c = s.setting.cluster;
  if (path == "cluster.accelerator") return c.accelerator.name;
  if (path == "cluster.node") return node_text(c.node, other.setting.cluster.node);
  if (path == "cluster.fabric") return fabric_text(c.fabric, other.setting.cluster.fabric);
  if (path == "workload.model") return s.setting.workload.model.name;
  if (path == "stack") return s.setting.stack.name;
  if (path == "cluster.nodes") {
    const std::string gpus = count(accelerators_used(s.setting)) + " GPUs";
    return network_is_new(s, other) ? fmt::format("{}, {}", gpus, c.fabric.name) : gpus;
  }
  ASSERT(path == "plan");
  return s.searched ? "the best for each" : "";
}

// A copy of one side that leaves can be switched on.
struct Mix {
  Setting setting;
  Plan plan;
  std::vector<Leaf> all;

  explicit Mix(const Side& s) : setting(s.setting), plan(s.plan) {
    plan.dp = 0;  // follows from the others
    setting.accelerators = accelerators_used(s.setting);
    all = leaves(setting, plan);
  }
  Mix(const Mix&) = delete;
  Mix& operator=(const Mix&) = delete;
};

std::vector<Bundle> differences(const Side& a, const Side& b) {
  const Mix one(a), two(b);
  std::vector<Bundle> bundles;
  for (size_t i = 0; i < one.all.size(); ++i) {
    if (one.all[i].same(two.all[i]) || irrelevant(one.all[i].path)) continue;
    const std::string path = bundle_of(one.all[i].path, a, b);
    auto known = std::find_if(bundles.begin(), bundles.end(),
                              [&path](const Bundle& x) { return x.path == path; });
    if (known != bundles.end()) {
      known->members.push_back(i);
      continue;
    }
    Bundle fresh{{path, one.all[i].text(), two.all[i].text()}, {i}};
    const bool whole = path != one.all[i].path || path == "cluster.nodes";
    if (whole) fresh.before = bundle_text(path, a, b), fresh.after = bundle_text(path, b, a);
    bundles.push_back(std::move(fresh));
  }
  // A larger cluster of which the job uses the same number is no difference, nor is what would join
  // more than one node.
  const auto alone = [](const Side& s) {
    return accelerators_used(s.setting) <= s.setting.cluster.node.accelerators;
  };
  const bool one_node = alone(a) && alone(b);
  std::erase_if(bundles, [&](const Bundle& x) {
    return (x.path == "cluster.nodes" && x.before == x.after) ||
           (one_node && x.path.starts_with("cluster.fabric"));
  });
  return bundles;
}

struct Metric {
  double mfu, step_s;
  double full;  // reserved memory over what there is: above 1 it cannot run
};

// The time of a prediction for the tokens of another setting's step, so that batches compare.
double time_for(const Setting& tokens_of, const Setting& s, const Prediction& p) {
  return p.step.v * tokens_per_step(tokens_of.workload) / tokens_per_step(s.workload);
}

// What follows from a leaf is switched with it.
void copy_derived(const std::string& leaf, const Setting& from, Setting& to) {
  if (leaf == "cluster.accelerator.architecture") to.kernels = from.kernels;
  if (leaf == "cluster.accelerator.scaleup_link") to.scaleup_params = from.scaleup_params;
  if (leaf == "cluster.fabric.kind") to.fabric_params = from.fabric_params;
}

// `from` with the bundles of `to` switched on for which `take` says so.
template <class Take>
std::optional<Metric> evaluate(const Side& from, const Side& to, const std::vector<Bundle>& bundles,
                               Take&& take) {
  Mix mix(from);
  const Mix other(to);
  for (size_t i = 0; i < bundles.size(); ++i) {
    if (!take(i)) continue;
    for (size_t m : bundles[i].members) {
      mix.all[m].copy_from(other.all[m]);
      copy_derived(mix.all[m].path, to.setting, mix.setting);
    }
  }
  Predictor predictor(mix.setting);
  if (predictor.impossible(mix.plan)) return std::nullopt;
  const Prediction p = predictor.predict(mix.plan);
  return Metric{p.mfu, time_for(from.setting, mix.setting, p),
                p.memory.reserved / p.memory.capacity};
}

// Bundles that are switched as one; the first gives the change its name.
using Together = std::vector<size_t>;

bool holds(const Together& unit, size_t bundle) {
  return std::find(unit.begin(), unit.end(), bundle) != unit.end();
}

// `unit` alone switched first (all else as before), or last (all else as after).
std::optional<Metric> switched(const Side& before, const Side& after,
                               const std::vector<Bundle>& bundles, const Together& unit,
                               bool first) {
  return evaluate(before, after, bundles, [&](size_t i) { return holds(unit, i) == first; });
}

// The unit that leaves most room when it is switched together with units[i]; units.size() where
// none leaves more than `full`.
size_t partner(const Side& before, const Side& after, const std::vector<Bundle>& bundles,
               const std::vector<Together>& units, size_t i, bool first, double full) {
  size_t best = units.size();
  for (size_t j = 0; j < units.size(); ++j) {
    if (j == i) continue;
    Together both = units[j];
    both.insert(both.end(), units[i].begin(), units[i].end());
    const std::optional<Metric> m = switched(before, after, bundles, both, first);
    if (m && m->full < full) full = m->full, best = j;
  }
  return best;
}

// Joins one unit that does not fit when it is switched alone with the one that helps it most.
bool join_misfit(const Side& before, const Side& after, const std::vector<Bundle>& bundles,
                 std::vector<Together>& units) {
  for (size_t i = 0; i < units.size(); ++i) {
    for (const bool first : {true, false}) {
      const std::optional<Metric> alone = switched(before, after, bundles, units[i], first);
      if (!alone || alone->full <= 1) continue;
      const size_t j = partner(before, after, bundles, units, i, first, alone->full);
      if (j == units.size()) continue;
      units[j].insert(units[j].end(), units[i].begin(), units[i].end());
      std::sort(units[j].begin(), units[j].end());  // hardware before the plan that it allows
      units.erase(units.begin() + static_cast<std::ptrdiff_t>(i));
      return true;
    }
  }
  return false;
}

// Machines of two makers have no parts in common: chips of one on the other's network are nothing
// that anybody can buy.
bool of_the_machine(const std::string& path) {
  return path.starts_with("cluster.") || path == "stack";
}

std::vector<Together> units_of(const Side& before, const Side& after,
                               const std::vector<Bundle>& bundles) {
  std::vector<Together> units;
  const bool makers =
      before.setting.cluster.accelerator.vendor != after.setting.cluster.accelerator.vendor;
  size_t machine = bundles.size() + 1;
  for (size_t i = 0; i < bundles.size(); ++i) {
    const bool part = makers && of_the_machine(bundles[i].path);
    if (part && machine < units.size()) {
      units[machine].push_back(i);
      continue;
    }
    if (part) machine = units.size();
    units.push_back({i});
  }
  // Where a side does not fit itself, what lies between says no more than it does.
  if (!fits(before) || !fits(after)) return units;
  while (join_misfit(before, after, bundles, units)) {
  }
  return units;
}

void sort_by_gain(std::vector<Change>& changes) {
  std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return std::abs(a.step_s.value_or(0)) > std::abs(b.step_s.value_or(0));
  });
}

// Half of a 90 % range, on a log scale.
double log_half_width(const Interval& r) { return std::log(r.high / r.low) / 2; }

// Two runs that somebody measures on one kind of machine with one stack are missed the same way:
// of the variance of log errors, so much is common to the runs of one source, accelerator and
// framework (1,817 runs of data/blind_runs.csv: 0.323 overall, 0.212 within).
constexpr double kSharedVariance = 0.57;

constexpr double kRounding = 1e-9;

constexpr double kShownAsOne = 1.005;  // the largest ratio that two decimals show as 1.00

void find_interaction(Attribution& whole, const Side& before, const Side& after) {
  const double step = before.prediction.step.v;
  double mfu = after.prediction.mfu - before.prediction.mfu;
  double step_s = time_for(before.setting, after.setting, after.prediction) - step;
  for (const Change& change : whole.changes) {
    mfu -= change.mfu.value_or(0);
    step_s -= change.step_s.value_or(0);
  }
  // What rounding leaves of a difference is none.
  if (std::abs(step_s) < kRounding * step) return;
  whole.interaction_mfu = mfu, whole.interaction_step_s = step_s;
}

double ratio_half_width(const Side& a, const Side& b) {
  const bool alike = a.setting.cluster.accelerator.name == b.setting.cluster.accelerator.name &&
                     a.setting.stack.name == b.setting.stack.name;
  return std::hypot(log_half_width(time_per_token(a)), log_half_width(time_per_token(b))) *
         std::sqrt(alike ? 1 - kSharedVariance : 1);
}

}  // namespace

bool fits(const Side& s) { return s.prediction.memory.fits(); }

bool closest_miss(const Side& s) { return s.searched && !fits(s); }

Interval time_per_token(const Side& s) {
  const double tokens = tokens_per_step(s.setting.workload);
  return {s.prediction.step.v / tokens, s.prediction.low.v / tokens, s.prediction.high.v / tokens};
}

Attribution attribute(const Side& before, const Side& after) {
  const std::vector<Bundle> bundles = differences(before, after);
  Attribution whole;
  const bool must_fit = fits(before) && fits(after);
  const std::optional<Metric> none = switched(before, after, bundles, {}, true);
  const std::optional<Metric> all = switched(before, after, bundles, {}, false);
  for (const Together& unit : units_of(before, after, bundles)) {
    Change change;
    static_cast<Switched&>(change) = bundles[unit[0]];
    for (size_t i = 1; i < unit.size(); ++i) change.with.push_back(bundles[unit[i]]);
    const auto first = switched(before, after, bundles, unit, true);
    const auto last = switched(before, after, bundles, unit, false);
    const auto runs = [must_fit](const std::optional<Metric>& m) {
      return m && (m->full <= 1 || !must_fit);
    };
    double mfu = 0;
    if (runs(first) && none)
      mfu += first->mfu - none->mfu, change.first_s = first->step_s - none->step_s;
    if (runs(last) && all) mfu += all->mfu - last->mfu, change.last_s = all->step_s - last->step_s;
    const int parts = (change.first_s ? 1 : 0) + (change.last_s ? 1 : 0);
    if (parts > 0) {
      change.mfu = mfu / parts;
      change.step_s = (change.first_s.value_or(0) + change.last_s.value_or(0)) / parts;
    }
    whole.changes.push_back(std::move(change));
  }
  sort_by_gain(whole.changes);
  find_interaction(whole, before, after);
  return whole;
}

Interval speedup(const Side& before, const Side& after) {
  const double ratio = time_per_token(before).value / time_per_token(after).value;
  const double factor = std::exp(ratio_half_width(before, after));
  return {ratio, ratio / factor, ratio * factor};
}

bool differ(const Side& a, const Side& b) {
  const Interval ratio = speedup(a, b);
  return ratio.low > kShownAsOne || 1 / ratio.high > kShownAsOne;
}

Comparison compare(std::vector<Side> sides) {
  ASSERT(sides.size() >= 2);
  Comparison c;
  if (sides.size() > 2) {
    std::stable_sort(sides.begin(), sides.end(), [](const Side& a, const Side& b) {
      if (fits(a) != fits(b)) return fits(b);
      return time_per_token(a).value > time_per_token(b).value;
    });
  }
  const Side& first = sides.front();
  const Side& last = sides.back();
  if (sides.size() == 2 && !closest_miss(first) && !closest_miss(last))
    c.difference = attribute(first, last);
  c.speedup = speedup(first, last);
  c.significant = fits(first) && fits(last) && differ(first, last);
  c.sides = std::move(sides);
  return c;
}

}  // namespace assay
