#include "plan/levers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "config/scalar.h"
#include "perf/memory.h"
#include "plan/cost.h"
#include "plan/words.h"
#include "world/rules.h"

namespace assay {
namespace {

constexpr size_t kLeversMost = 5;
constexpr double kGainLeast = 0.005;  // below this a lever is not worth a line
// Another width is another model: only for a gain beyond doubt. Rows of 64 elements are 128 bytes
// of 16 bits, which every load path and tile divides.
constexpr double kPaddingGainLeast = 0.03;
constexpr int64_t kPaddedTo = 64;
constexpr double kPaddingMost = 0.05;  // of the width
constexpr int64_t kFewerMost = 16;     // layers that a head may be worth

// One attempt: a change of the setting or the plan. With `search`, the best plan under the changed
// setting counts (with `stated` kept), otherwise the same plan. The search is the one that the
// printed command makes, so that whoever follows it gets what was promised.
struct Attempt {
  std::string label, command;
  Setting setting;
  Plan plan;
  std::set<std::string> stated;
  bool search = false;
};

std::optional<WhatIf> carry_out(const Attempt& a,
                                const std::function<void(double)>& progress = {}) {
  Predictor predictor(a.setting);
  if (!a.search) {
    if (predictor.impossible(a.plan)) return std::nullopt;
    const Prediction p = predictor.predict(a.plan);
    if (!p.memory.fits() || !host_holds(a.setting, a.plan, p.memory.parked)) return std::nullopt;
    return WhatIf{a.label, a.command, a.plan, p, false, 0};
  }
  SearchOptions options;
  options.keep = 1;
  options.progress = progress;
  const SearchResult found = search(predictor, a.plan, a.stated, options);
  if (!found.found()) return std::nullopt;
  const Candidate& best = found.top[0];
  if (!host_holds(a.setting, best.plan, best.prediction.memory.parked)) return std::nullopt;
  return WhatIf{a.label, a.command, found.top[0].plan, found.top[0].prediction, true, 0};
}

class LeverList {
 public:
  LeverList(const Setting& setting, const Candidate& now) : setting_(setting), now_(now) {}

  template <class Change>
  void plan(const std::string& label, const std::string& command, Change&& change) {
    Attempt a{label, command, setting_, now_.plan, {}, false};
    change(a.plan);
    attempts.push_back(std::move(a));
  }

  template <class Change>
  void setting(const std::string& label, const std::string& command, Change&& change) {
    Attempt a{label, command, setting_, now_.plan, {}, false};
    change(a.setting);
    attempts.push_back(std::move(a));
  }

  std::vector<Attempt> attempts;

 private:
  const Setting& setting_;
  const Candidate& now_;
};

void add_precision(LeverList& list, const Setting& s, const Plan& p) {
  const Accelerator& a = s.cluster.accelerator;
  const bool sixteen = p.precision == Precision::kBf16 || p.precision == Precision::kFp16;
  if (single_precision(p.precision)) {
    const bool brain = supports(a, Precision::kBf16);
    if (brain || supports(a, Precision::kFp16)) {
      const Precision half = brain ? Precision::kBf16 : Precision::kFp16;
      list.plan(brain ? "BF16 matrix math" : "FP16 matrix math",
                brain ? "--set plan.precision=bf16" : "--set plan.precision=fp16",
                [half](Plan& q) { q.precision = half; });
    }
    return;
  }
  if (sixteen && supports(a, Precision::kFp8)) {
    list.plan("FP8 matrix math", "--set plan.precision=fp8",
              [](Plan& q) { q.precision = Precision::kFp8; });
  }
  if (p.precision == Precision::kNvfp4 || p.precision == Precision::kMxfp4) return;
  if (supports(a, Precision::kNvfp4)) {
    list.plan("NVFP4 matrix math", "--set plan.precision=nvfp4",
              [](Plan& q) { q.precision = Precision::kNvfp4; });
  } else if (supports(a, Precision::kMxfp4)) {
    list.plan("MXFP4 matrix math", "--set plan.precision=mxfp4",
              [](Plan& q) { q.precision = Precision::kMxfp4; });
  }
}

void add_software(LeverList& list, const Plan& p) {
  struct Switch {
    const char* label;
    const char* key;
    bool Plan::*flag;
    bool wanted;
  };
  const Switch switches[] = {
      {"graph compiler", "compiled", &Plan::compiled, true},
      {"captured graphs", "cuda_graphs", &Plan::cuda_graphs, true},
      {"fused attention", "flash_attention", &Plan::flash_attention, true},
      {"overlapped gradient reduction", "overlap_grad", &Plan::overlap_grad, true},
      {"overlapped parameter gather", "overlap_param", &Plan::overlap_param, true},
      {"overlapped tensor traffic", "overlap_tp", &Plan::overlap_tp, p.tp > 1},
      {"overlapped expert traffic", "overlap_expert", &Plan::overlap_expert, p.ep > 1},
  };
  for (const Switch& s : switches) {
    if (p.*s.flag || !s.wanted) continue;
    list.plan(s.label, fmt::format("--set plan.{}=true", s.key),
              [&s](Plan& q) { q.*s.flag = true; });
  }
  if (p.pp > 1 && p.schedule != Schedule::kZeroBubble && !folded(p.schedule)) {
    list.plan("zero-bubble pipeline schedule", "--set plan.schedule=zero-bubble --set plan.vpp=1",
              [](Plan& q) { q.schedule = Schedule::kZeroBubble, q.vpp = 1; });
  }
}

// The last stage also computes the head: with fewer layers it need not set the pace. What it gives
// up falls to the others, so every number is tried.
void add_split(LeverList& list, const Setting& s, const Plan& p) {
  const bool stated = p.first_layers > 0 || p.last_layers > 0;
  if (p.pp < 2 || p.vpp > 1 || folded(p.schedule) || stated) return;
  const int64_t now = stage_layers(stages_of(s.workload.model, p), p.pp - 1);
  Predictor predictor(s);
  Plan best = p;
  Seconds least(std::numeric_limits<double>::infinity());
  for (int64_t layers = std::max<int64_t>(1, now - kFewerMost); layers < now; ++layers) {
    Plan fewer = p;
    fewer.last_layers = layers;
    if (predictor.impossible(fewer)) continue;
    const Prediction r = predictor.predict(fewer);
    if (!(r.step < least) || r.memory.reserved > r.memory.capacity) continue;
    least = r.step;
    best = fewer;
  }
  if (best.last_layers == 0) return;
  list.plan(fmt::format("{} {} on the last stage, not {}", best.last_layers,
                        best.last_layers == 1 ? "layer" : "layers", now),
            fmt::format("--set plan.last_layers={}", best.last_layers),
            [&best](Plan& q) { q.last_layers = best.last_layers; });
}

void add_hardware(LeverList& list, const Setting& s) {
  if (const Bandwidth twice = s.cluster.storage_bandwidth * 2.0; twice.v > 0) {
    list.setting("storage twice as fast",
                 fmt::format("--set 'cluster.storage_bandwidth={:g} GB/s'", twice.v / 1e9),
                 [twice](Setting& t) { t.cluster.storage_bandwidth = twice; });
  }
  if (s.cluster.node.nics > 0 && s.cluster.node.nic_bandwidth.v > 0) {
    const Bandwidth twice = s.cluster.node.nic_bandwidth * 2.0;
    list.setting(fmt::format("{:.0f}G fabric (each NIC twice as fast)", twice.v * 8e-9),
                 fmt::format("--set 'cluster.node.nic_bandwidth={:g} GB/s'", twice.v / 1e9),
                 [twice](Setting& t) { t.cluster.node.nic_bandwidth = twice; });
  }
  if (s.cluster.fabric.oversubscription > 1) {
    list.setting("non-blocking fabric", "--set cluster.fabric.oversubscription=1",
                 [](Setting& t) { t.cluster.fabric.oversubscription = 1; });
  }
  if (s.cluster.slow_links() > 0) {
    list.setting("slow links repaired", "--set cluster.fabric.degraded_links=0",
                 [](Setting& t) { t.cluster.fabric.degraded_links = 0; });
  }
  if (s.cluster.inlet_c > 20) {
    list.setting("cooling supply at 20 C", "--set cluster.inlet_c=20",
                 [](Setting& t) { t.cluster.inlet_c = 20; });
  }
}

// Single changes of a plan that a person stated: the best of a searched plan's neighbours is
// itself.
void add_neighbours(LeverList& list, const Plan& p, bool schedule_stated) {
  struct Degree {
    const char* label;
    const char* key;
    int64_t Plan::*value;
  };
  const Degree degrees[] = {{"TP", "tp", &Plan::tp},
                            {"PP", "pp", &Plan::pp},
                            {"CP", "cp", &Plan::cp},
                            {"micro-batch", "micro_batch", &Plan::micro_batch},
                            {"pipeline chunks", "vpp", &Plan::vpp}};
  for (const Degree& d : degrees) {
    for (int64_t next : {p.*d.value / 2, p.*d.value * 2}) {
      if (next < 1 || next == p.*d.value) continue;
      Plan changed = p;
      changed.*d.value = next;
      changed.dp = 0;
      if (changed.vpp > 1 && changed.pp > 1)
        changed.schedule = Schedule::kInterleaved;
      else if (changed.schedule == Schedule::kInterleaved)
        changed.schedule = Schedule::kOneFOneB;
      std::string command = fmt::format("--set plan.{}={}", d.key, next);
      // Beside a schedule that was stated, other chunks alone would be refused.
      if (schedule_stated && changed.schedule != p.schedule) {
        command += fmt::format(" --set plan.schedule={}",
                               enum_names(Schedule{})[static_cast<size_t>(changed.schedule)]);
      }
      list.plan(fmt::format("{} {} -> {}", d.label, p.*d.value, next), command,
                [&changed](Plan& q) { q = changed; });
    }
  }
  for (Recompute kind : {Recompute::kNone, Recompute::kSelective}) {
    if (kind == p.recompute) continue;
    const std::string name(enum_names(kind)[static_cast<size_t>(kind)]);
    list.plan(fmt::format("recompute: {}", name), "--set plan.recompute=" + name, [kind](Plan& q) {
      q.recompute = kind;
      q.recompute_layers = 1;
    });
  }
}

void add_searches(LeverList& list, const Setting& s, const Candidate& now,
                  const std::set<std::string>& stated) {
  std::set<std::string> kept = stated;
  if (!stated.empty()) {
    list.attempts.push_back(
        {"the best plan", "", s, open_plan(s, now.plan), {}, true});
  }
  const bool search = !fully_stated(s, now.plan, stated);
  Attempt memory{"", "", s, now.plan, kept, search};
  memory.setting.cluster.accelerator.memory *= 2.0;
  memory.label = "twice the memory";
  memory.command = fmt::format("--set 'cluster.accelerator.memory={:g} GB'",
                               memory.setting.cluster.accelerator.memory.v / 1e9);
  list.attempts.push_back(std::move(memory));
  if (now.plan.recompute != Recompute::kNone && now.plan.offload_activations == 0) {
    Attempt parked{"activations parked on the host",
                   "--set plan.offload_activations=1",
                   s,
                   now.plan,
                   kept,
                   search};
    parked.plan.offload_activations = 1;
    parked.stated.insert("offload_activations");
    list.attempts.push_back(std::move(parked));
  }
  const auto batch_of = [&](int64_t n, std::string label) {
    Attempt batch{std::move(label),
                  fmt::format("--set workload.global_batch={}", n),
                  s,
                  now.plan,
                  kept,
                  search};
    batch.setting.workload.global_batch = n;
    list.attempts.push_back(std::move(batch));
  };
  const int64_t batch = std::max<int64_t>(s.workload.global_batch, 1);
  batch_of(2 * batch, "twice the batch (per token)");
  // One whose parts are equal where this one forces the degrees.
  const int64_t used = accelerators_used(s);
  const int64_t equal = divisible_batch(batch, {used});
  if (equal != batch)
    batch_of(equal,
             fmt::format("batch {} -> {}, in equal parts (per token)", count(batch), count(equal)));
}

struct Width {
  const char* key;
  int64_t Model::*value;
};

// Widths that are no multiple of what kernels load at once, padded where that alone is faster; all
// of them are one lever. Nothing where it would not be worth another model.
std::optional<Attempt> padded_widths(const Setting& s, const Candidate& now) {
  const auto faster = [&now](const Attempt& a) {
    const std::optional<WhatIf> found = carry_out(a);
    return found ? 1 - found->prediction.step / now.prediction.step : 0.0;
  };
  Attempt all{"", "", s, now.plan, {}, false};
  for (const Width w : {Width{"hidden", &Model::hidden}, Width{"ffn", &Model::ffn},
                        Width{"expert_ffn", &Model::expert_ffn}, Width{"vocab", &Model::vocab}}) {
    const Model& m = s.workload.model;
    if (m.*w.value == 0) continue;
    int64_t step = kPaddedTo * now.plan.tp;
    if (w.value == &Model::hidden && m.head_dim == 0 && m.heads > 0) step = std::lcm(step, m.heads);
    const int64_t width = m.*w.value, padded = (width + step - 1) / step * step;
    if (static_cast<double>(padded - width) > kPaddingMost * static_cast<double>(width)) continue;
    Attempt one{"", "", s, now.plan, {}, false};
    one.setting.workload.model.*w.value = padded;
    if (padded == width || faster(one) < kGainLeast) continue;
    all.setting.workload.model.*w.value = padded;
    all.label += fmt::format("{}{} {} -> {}", all.label.empty() ? "" : ", ", w.key, count(width),
                             count(padded));
    all.command +=
        fmt::format("{}--set workload.model.{}={}", all.command.empty() ? "" : " ", w.key, padded);
  }
  if (all.label.empty() || faster(all) < kPaddingGainLeast) return std::nullopt;
  all.label += ", padded";
  return all;
}

// The same change with all else that was searched searched again, as its command will do.
Attempt searched(Attempt a, std::set<std::string> stated) {
  constexpr std::string_view kSet = "--set plan.";
  for (size_t at = a.command.find(kSet); at != std::string::npos; at = a.command.find(kSet, at)) {
    at += kSet.size();
    stated.insert(a.command.substr(at, a.command.find('=', at) - at));
  }
  a.stated = std::move(stated);
  a.search = true;
  return a;
}

// The change of time per token: a lever may change the batch.
double time_change(const Attempt& a, const Prediction& p, const Setting& s, const Prediction& now) {
  const double per_token =
      p.step.v / static_cast<double>(std::max<int64_t>(a.setting.workload.global_batch, 1));
  const double before =
      now.step.v / static_cast<double>(std::max<int64_t>(s.workload.global_batch, 1));
  return per_token / before - 1;
}

class FixList {
 public:
  FixList(const Setting& s, const Plan& base, const std::set<std::string>& stated,
          const std::function<void(double)>& progress)
      : setting_(s),
        base_(base),
        stated_(stated),
        search_(!fully_stated(s, base, stated)),
        progress_(progress) {}

  // A plan that leaves nothing to choose is predicted, as it will be when the command is followed.
  Attempt start(std::string label, std::string command) const {
    return {std::move(label), std::move(command), setting_, base_, stated_, search_};
  }

  bool searches() const { return search_; }

  // Whether it fits; then it is kept.
  bool attempt(const Attempt& a) {
    std::optional<WhatIf> found =
        carry_out(a, progress_ ? [this](double f) { show(f); } : std::function<void(double)>());
    show(1);
    done_ += (1 - done_) / 2;
    if (!found) return false;
    list.push_back(std::move(*found));
    return true;
  }

  // Four kinds of fixes, each a quarter of the way. How many attempts a kind takes is not known, so
  // that each goes half of what is left of it.
  void begin_kind(int index) {
    kind_ = index;
    done_ = 0;
    show(0);
  }
  static constexpr int kKinds = 4;

  std::vector<WhatIf> list;

 private:
  void show(double f) const {
    if (progress_) progress_((kind_ + done_ + f * (1 - done_) / 2) / kKinds);
  }

  const Setting& setting_;
  const Plan& base_;
  const std::set<std::string>& stated_;
  bool search_;
  const std::function<void(double)>& progress_;
  int kind_ = 0;
  double done_ = 0;
};

void try_plan_fixes(FixList& fixes, const std::set<std::string>& stated, const Stack& stack) {
  if (!stated.empty()) {
    Attempt open = fixes.start("another plan: leave yours out", "");
    open.stated.clear();
    open.plan = open_plan(open.setting, open.plan);
    open.search = true;
    fixes.attempt(open);
  }
  const bool whole = !fixes.searches();
  if (whole || stated.count("recompute") > 0) {
    Attempt full = fixes.start("full recompute", "--set plan.recompute=full");
    full.plan.recompute = Recompute::kFull;
    full.plan.recompute_layers = 1;
    fixes.attempt(full);
  }
  if (whole) {
    Attempt smaller = fixes.start("", "");
    while ((smaller.plan.micro_batch /= 2) >= 1) {
      smaller.command = fmt::format("--set plan.micro_batch={}", smaller.plan.micro_batch);
      if (fixes.attempt(smaller)) break;
    }
  }
  if (whole || stated.count("cp") > 0) {
    for (int64_t cp : {2, 4, 8}) {
      Attempt context = fixes.start("", fmt::format("--set plan.cp={}", cp));
      context.plan.cp = cp;
      if (fixes.attempt(context)) break;
    }
  }
  if (has_pipelines(stack) || stated.count("zero") > 0) {
    Attempt zero = fixes.start("weights sharded too", "--set plan.zero=3");
    zero.plan.zero = 3;
    zero.stated.insert("zero");
    fixes.attempt(zero);
  }
  Attempt offload = fixes.start("optimizer on the host", "--set plan.offload_optimizer=1");
  offload.plan.offload_optimizer = 1;
  if (!host_holds(offload.setting, offload.plan)) return;
  if (!fixes.attempt(offload)) {
    offload.label = "optimizer and activations on the host";
    offload.command += " --set plan.offload_activations=1";
    offload.plan.offload_activations = 1;
    fixes.attempt(offload);
  }
}

// Software that shards weights, on the same collectives: the first of the catalog. Only where the
// search is free, since a stated plan is of its stack.
void try_stack_fix(FixList& fixes, const std::set<std::string>& stated, const Stack& stack,
                   const Catalog& known) {
  if (!has_pipelines(stack) || !stated.empty()) return;
  for (const Stack& other : known.stacks) {
    if (other.sharding != Sharding::kFsdp || other.library != stack.library) continue;
    Attempt attempt = fixes.start("weights sharded by another stack", "--set stack=" + other.name);
    attempt.setting.stack = other;
    attempt.plan = open_plan(attempt.setting, attempt.plan);
    fixes.attempt(attempt);
    return;
  }
}

// Shorter sequences, as many tokens a step.
void try_workload_fixes(FixList& fixes, const Setting& s) {
  int64_t batch = std::max<int64_t>(s.workload.global_batch, 1);
  for (int64_t seq = s.workload.seq / 2; seq >= 512; seq /= 2) {
    batch *= 2;
    Attempt shorter = fixes.start(
        "", fmt::format("--set workload.seq={} --set workload.global_batch={}", seq, batch));
    shorter.setting.workload.seq = seq;
    shorter.setting.workload.global_batch = batch;
    if (fixes.attempt(shorter)) break;
  }
}

// More accelerators are tried up to so many times as many, and up to the size of the largest runs.
constexpr int kDoublings = 8;
constexpr int64_t kLargestRuns = 16384;

// Where only a part of the cluster is used, the number of accelerators is asked for by itself.
std::string more_command(const Setting& now, const Cluster& grown, int64_t gpus) {
  std::string command;
  if (grown.nodes > now.cluster.nodes) command = fmt::format("--set cluster.nodes={}", grown.nodes);
  if (accelerators_used(now) == now.cluster.accelerators()) return command;
  return fmt::format("{}{}--gpus {}", command, command.empty() ? "" : " ", gpus);
}

void try_more_nodes(FixList& fixes, const Setting& s, const Catalog& known) {
  int64_t gpus = accelerators_used(s);
  for (int i = 0; i < kDoublings || gpus < kLargestRuns; ++i) {
    gpus *= 2;
    Attempt more = fixes.start(fmt::format("{} GPUs", count(gpus)), "");
    if (!grow_cluster(more.setting.cluster, gpus, known)) return;
    more.command = more_command(s, more.setting.cluster, gpus);
    more.setting.accelerators = gpus;
    resolve(more.setting, known);
    if (fixes.attempt(more)) break;
  }
}

// Accelerators of the same maker with enough memory, smallest first and of each size the fastest.
// More memory behind less than half of the arithmetic (H20 for H100) fits and helps nobody.
void try_accelerators(FixList& fixes, const Setting& s, const Plan& base, const Miss& miss,
                      const Catalog& known) {
  const Accelerator& now = s.cluster.accelerator;
  const auto rate = [&base](const Accelerator& a) { return peak(a, base.precision).v; };
  std::vector<const Accelerator*> larger;
  for (const Accelerator& a : known.accelerators) {
    if (a.vendor != now.vendor || a.memory < miss.memory.reserved) continue;
    if (!supports(a, base.precision) || rate(a) < rate(now) / 2) continue;
    larger.push_back(&a);
  }
  std::stable_sort(larger.begin(), larger.end(), [&](const Accelerator* a, const Accelerator* b) {
    return a->memory != b->memory ? a->memory < b->memory : rate(*a) > rate(*b);
  });
  int kept = 0;
  Bytes size;
  for (const Accelerator* a : larger) {
    if (a->memory == size) continue;
    Attempt other = fixes.start(format_quantity(a->memory.v, Dimension::kBytes) + " each",
                                "--set cluster.node.accelerator=" + a->name);
    other.setting.cluster.accelerator = *a;
    other.setting.cluster.node.accelerator = a->name;
    resolve(other.setting, known);
    if (!fixes.attempt(other)) continue;
    size = a->memory;
    if (++kept == 3) return;
  }
}

}  // namespace

std::vector<WhatIf> levers(const Setting& setting, const Candidate& now,
                           const std::set<std::string>& stated,
                           const std::function<void(double)>& progress) {
  LeverList list(setting, now);
  add_precision(list, setting, now.plan);
  add_software(list, now.plan);
  add_split(list, setting, now.plan);
  add_hardware(list, setting);
  if (!stated.empty()) add_neighbours(list, now.plan, stated.count("schedule") > 0);
  add_searches(list, setting, now, stated);
  if (std::optional<Attempt> padded = padded_widths(setting, now))
    list.attempts.push_back(std::move(*padded));
  // What helps the plan as it is, if the plan was searched, helps by what the next search finds.
  std::vector<Attempt> promising;
  for (Attempt& a : list.attempts) {
    const std::optional<WhatIf> same = a.search ? std::nullopt : carry_out(a);
    const bool helps =
        same && time_change(a, same->prediction, setting, now.prediction) < -kGainLeast;
    if (!a.search && !helps) continue;
    const bool as_is = a.search || fully_stated(setting, now.plan, stated);
    promising.push_back(as_is ? std::move(a) : searched(std::move(a), stated));
  }
  double before = 0;
  const std::function<void(double)> show = [&](double f) {
    progress((before + f) / static_cast<double>(promising.size()));
  };
  std::vector<WhatIf> helpful;
  for (const Attempt& a : promising) {
    std::optional<WhatIf> found = carry_out(a, progress ? show : nullptr);
    before += 1;
    if (!found) continue;
    found->other_plan = a.search && layout(found->plan, found->prediction.dp) !=
                                        layout(now.plan, now.prediction.dp);
    found->step_change = time_change(a, found->prediction, setting, now.prediction);
    if (found->step_change < -kGainLeast) helpful.push_back(std::move(*found));
  }
  std::stable_sort(helpful.begin(), helpful.end(),
                   [](const WhatIf& a, const WhatIf& b) { return a.step_change < b.step_change; });
  if (helpful.size() > kLeversMost) helpful.resize(kLeversMost);
  return helpful;
}

std::vector<WhatIf> fixes(const Setting& setting, const Plan& base,
                          const std::set<std::string>& stated, const Miss& miss,
                          const Catalog& known, const std::function<void(double)>& progress) {
  FixList list(setting, base, stated, progress);
  try_plan_fixes(list, stated, setting.stack);
  try_stack_fix(list, stated, setting.stack, known);
  list.begin_kind(1);
  try_workload_fixes(list, setting);
  list.begin_kind(2);
  try_more_nodes(list, setting, known);
  list.begin_kind(3);
  try_accelerators(list, setting, base, miss, known);
  return std::move(list.list);
}

}  // namespace assay
