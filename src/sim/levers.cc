#include "sim/levers.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "config/scalar.h"
#include "sim/closed_form.h"

namespace assay {
namespace {

// What inspection of nodes instead of a collective's time-out gives: ByteRobust Table 3, 2 to 60 s.
constexpr Seconds kInspection{10};
// Cold restart against warm standby: FT-HSDP at 98,304 GPUs 900 s and 600 s; ByteRobust 10.87 times
// for the whole recovery. The cautious end.
constexpr double kStandbyShare = 0.33;
// P99 of what fails within a repair.
constexpr double kSpareQuantile = 0.99;
// Between saves to a peer's memory: ByteRobust copies every step; every half minute loses no more
// than 15 s of work on average.
constexpr Seconds kPeerInterval{30};
// FT-HSDP (arXiv 2602.00277) at about 100,000 GPUs: everyone waits this long when a replica leaves.
// Smaller jobs wait less; nobody has published how much.
constexpr Seconds kLeaveStall{180};
// An interval is worth changing where the best one differs by more than a tenth (of its logarithm):
// the loss is flat around its least, by (0.1)^2 / 2 = 0.5 % of what saves and lost work cost.
constexpr double kIntervalOff = 0.1;
// A stall that an asynchronous save could shorten: seconds every half hour or so. Below it the gain
// drowns in the luck of forty pairs of runs.
constexpr Seconds kStallFelt{1};
// A restore that faster storage could shorten: below it, restarts take minutes for other reasons.
constexpr Seconds kRestoreFelt{10};
// Share of the step that deeper prefetch or hedged reads could give back.
constexpr double kInputWaitFelt = 1e-4;
// Deeper prefetch that is tried: what is ahead covers tails four times as long.
constexpr int64_t kPrefetchTimes = 4;
// Replicas that are tried: FT-HSDP has 12. More of them lose less with each failure and need more
// memory.
constexpr int64_t kReplicas[] = {4, 8, 12, 16, 32, 64};
constexpr size_t kReplicasTried = 3;

std::string duration(Seconds s) {
  if (s.v < 0.1) return fmt::format("{:.2g} ms", s.v * 1e3);
  if (s.v < 120) return fmt::format("{:.3g} s", s.v);
  if (s.v < 2 * kSecondsPerHour) return fmt::format("{:.3g} min", s.v / 60);
  return fmt::format("{:.3g} h", s.v / kSecondsPerHour);
}

// `run.swap=30s`: without a space, so that a shell needs no quotes.
template <class Tag>
std::string setting(std::string_view path, Quantity<Tag> value) {
  std::string text = format_quantity(value.v, DimensionOf<Quantity<Tag>>::kIs);
  std::erase(text, ' ');
  return fmt::format("{}={}", path, text);
}
std::string setting(std::string_view path, double value) {
  return fmt::format("{}={:.6g}", path, value);
}

std::string_view name_of(Restart r) {
  return r == Restart::kElastic       ? "elastic"
         : r == Restart::kWarmStandby ? "warm standby"
                                      : "requeue";
}

// Failures a day that take a node out.
double replacements_per_day(const RunSpec& s) {
  double rate = 0;
  for (const FailureProcess& f : s.failures) {
    if (f.extent == Extent::kNode) rate += f.per_gpu_hour * f.replaced;
  }
  return rate * static_cast<double>(s.gpus) * 24;
}

class Levers {
 public:
  explicit Levers(const SpecInput& input)
      : input_(input), run_(*input.operations), now_(make_spec(input).spec) {}

  void spares();
  void detection();
  void standby();
  void elastic();
  void initialisation();
  void interval();
  void asynchronous();
  void storage();
  void tiers();
  void best_recovery();
  void slowness();
  void input();

  std::vector<Lever> list;

 private:
  using Settings = std::vector<std::string>;
  std::optional<RunSpec> with(const Settings& s) const { return spec_with(input_, s); }
  bool add(std::string name, std::string change, Settings settings) {
    std::optional<RunSpec> then = with(settings);
    if (then) list.push_back({std::move(name), std::move(change), std::move(settings), *then});
    return then.has_value();
  }

  const SpecInput& input_;
  const Operations& run_;
  const RunSpec now_;
};

void Levers::spares() {
  const double within = replacements_per_day(now_) * now_.repair.mean.v / kSecondsPerDay;
  const int64_t wanted = poisson_quantile(within, kSpareQuantile), have = now_.spares.nodes;
  Settings settings{fmt::format("run.spares={}", wanted)};
  const std::string change = fmt::format("{} -> {} nodes", have, wanted);
  if (wanted > have) {
    add("spares", change, std::move(settings));
  } else if (have > std::max<int64_t>(1, 2 * wanted)) {
    if (run_.spare_share > 0) settings.push_back("run.spare_share=0");  // the larger counts
    add("fewer spares", change, std::move(settings));
  }
}

void Levers::detection() {
  Seconds slowest(0);
  for (const FailureProcess& f : now_.failures) slowest = std::max(slowest, f.detection);
  if (slowest <= kInspection) return;
  add("detection", fmt::format("up to {} -> {}", duration(slowest), duration(kInspection)),
      {setting("run.noticed_within", kInspection)});
}

void Levers::standby() {
  if (run_.recovery == Restart::kWarmStandby) return;
  Settings settings{"run.recovery=warm-standby"};
  if (run_.standby_share > kStandbyShare)
    settings.push_back(setting("run.standby_share", kStandbyShare));
  add("warm standby", fmt::format("{} -> warm standby", name_of(run_.recovery)),
      std::move(settings));
}

void Levers::elastic() {
  const int64_t dp = std::max<int64_t>(1, input_.prediction->dp);
  const bool already = run_.recovery == Restart::kElastic;
  const std::string before =
      already ? fmt::format("{}", run_.replicas) : std::string(name_of(run_.recovery));
  size_t tried = 0;
  // Most first: where they fit, fewer are only tried beside them.
  for (auto r = std::rbegin(kReplicas); r != std::rend(kReplicas) && tried < kReplicasTried; ++r) {
    if (dp % *r != 0 || dp < *r || (already && *r == run_.replicas)) continue;
    Settings settings{"run.recovery=elastic", fmt::format("run.replicas={}", *r)};
    if (run_.replicas_least > 0) settings.push_back("run.replicas_least=0");
    if (!already) {
      settings.push_back(setting("run.leave_stall", kLeaveStall));
      settings.push_back("run.standby_share=1");  // the replica that left starts cold
    }
    tried += add("elastic replicas", fmt::format("{} -> {} that come and go", before, *r),
                 std::move(settings));
  }
}

void Levers::initialisation() {
  const Recovery& r = now_.recovery;
  const Seconds init = r.init_base + r.init_per_gpu * static_cast<double>(now_.gpus);
  if (init.v <= 0) return;
  Settings settings;
  if (r.init_base.v > 0) settings.push_back(setting("run.init_base", r.init_base / 2));
  if (r.init_per_gpu.v > 0) settings.push_back(setting("run.init_per_gpu", r.init_per_gpu / 2));
  add("initialisation", fmt::format("{} -> {}", duration(init), duration(init / 2)),
      std::move(settings));
}

void Levers::interval() {
  const Settings settings{"run.checkpoint.rule=optimal"};
  const std::optional<RunSpec> then = with(settings);
  if (run_.checkpoint.rule == SaveRule::kOptimal || !then) return;
  const Simulator optimal(*then);
  const Seconds before = Simulator(now_).intervals().back(), best = optimal.intervals().back();
  if (!std::isfinite(optimal.mtbf().v) || std::abs(std::log(best / before)) <= kIntervalOff) return;
  add("checkpoint interval", fmt::format("{} -> {}", duration(before), duration(best)), settings);
}

// Training waits for the copy to host memory alone, as long as its bytes take.
void Levers::asynchronous() {
  const Checkpointing& c = run_.checkpoint;
  Settings settings;
  if (c.mode != SaveMode::kAsync) settings.push_back("run.checkpoint.mode=async");
  if (c.stall.v > 0) settings.push_back("run.checkpoint.stall=0");
  const Seconds stall = now_.checkpoints.back().stall;
  const std::optional<RunSpec> then = with(settings);
  if (settings.empty() || stall <= kStallFelt || !then || then->checkpoints.back().stall >= stall)
    return;
  add("asynchronous save",
      fmt::format("stall {} -> {}", duration(stall), duration(then->checkpoints.back().stall)),
      std::move(settings));
}

// Where the site says how fast its storage is, twice that; else what is known is the restore.
void Levers::storage() {
  const Seconds restore = now_.checkpoints.back().restore;
  if (restore <= kRestoreFelt) return;
  Settings settings;
  const bool stated = input_.site != nullptr && input_.site->storage.write.v > 0;
  if (stated) {
    const Storage& s = input_.site->storage;
    settings.push_back(setting("site.storage.write", s.write * 2));
    if (s.read.v > 0) settings.push_back(setting("site.storage.read", s.read * 2));
    if (s.per_stream.v > 0)
      settings.push_back(setting("site.storage.per_stream", s.per_stream * 2));
    if (s.requests_per_s > 0)
      settings.push_back(setting("site.storage.requests_per_s", s.requests_per_s * 2));
  }
  if (!stated || run_.checkpoint.restore.v > 0)
    settings.push_back(setting("run.checkpoint.restore", restore / 2));
  const std::optional<RunSpec> then = with(settings);
  if (!then) return;
  const std::string shorter =
      fmt::format("{} -> {}", duration(restore), duration(then->checkpoints.back().restore));
  add(stated ? "storage bandwidth" : "faster restore",
      stated ? fmt::format("twice, restore {}", shorter) : shorter, std::move(settings));
}

void Levers::tiers() {
  const Checkpointing& c = run_.checkpoint;
  // What it costs follows from sizes and ports; where they are not known, there is no such tier.
  const Settings peer{"run.checkpoint.peer_memory=true",
                      setting("run.checkpoint.peer_interval", kPeerInterval)};
  const std::optional<RunSpec> then = c.peer_memory ? std::nullopt : with(peer);
  if (then && then->checkpoints.front().survives == Extent::kNode) {
    add("peer-memory tier",
        fmt::format("none -> every {}, stall {}", duration(kPeerInterval),
                    duration(then->checkpoints.front().stall)),
        peer);
  }
  if (!c.local_disk && !c.peer_memory && input_.setting->cluster.node.disk_bandwidth.v > 0)
    add("local-disk tier", "none -> beside the remote one", {"run.checkpoint.local_disk=true"});
}

void Levers::best_recovery() {
  const Checkpointing& c = run_.checkpoint;
  Settings settings;
  if (run_.detection != Detection::kInspected) settings.push_back("run.detection=inspected");
  if (run_.recovery == Restart::kRequeue) settings.push_back("run.recovery=warm-standby");
  if (c.mode != SaveMode::kAsync) settings.push_back("run.checkpoint.mode=async");
  if (!c.peer_memory) settings.push_back("run.checkpoint.peer_memory=true");
  if (settings.size() < 2) return;  // one of them alone is a lever already
  settings.push_back(setting("run.checkpoint.peer_interval", kPeerInterval));
  if (c.rule != SaveRule::kOptimal) settings.push_back("run.checkpoint.rule=optimal");
  if (c.stall.v > 0) settings.push_back("run.checkpoint.stall=0");  // what the mode makes of it
  const bool elastic = run_.recovery == Restart::kElastic;
  add("best recovery",
      fmt::format("inspected, {}, async, peer saves", elastic ? "elastic" : "standby"),
      std::move(settings));
}

void Levers::slowness() {
  const Stragglers& g = now_.stragglers;
  if (g.slow_nodes > 0 && g.slow_by > 0) {
    add("no slow nodes", fmt::format("{:.2g} % of nodes -> none", 100 * g.slow_nodes),
        {"run.reliability.slow_nodes=0"});
  }
  if (g.jitter > 0) {
    add("jitter", fmt::format("{:.2g} % -> {:.2g} %", 100 * g.jitter, 50 * g.jitter),
        {setting("run.reliability.jitter", g.jitter / 2)});
  }
}

void Levers::input() {
  const DataPath& d = now_.data;
  if (d.latency_median.v <= 0 || Simulator(now_).data_excess() - d.starved < kInputWaitFelt) return;
  const int64_t deeper = kPrefetchTimes * std::max<int64_t>(1, d.prefetch);
  add("prefetch", fmt::format("{} -> {} batches", d.prefetch, deeper),
      {fmt::format("run.prefetch={}", deeper)});
  if (d.hedges == 0) add("hedged reads", "none -> 1, on another path", {"run.hedges=1"});
}

}  // namespace

std::optional<RunSpec> spec_with(const SpecInput& input, const std::vector<std::string>& settings) {
  Operations run = *input.operations;
  Site site = input.site != nullptr ? *input.site : Site{};
  if (!lay_over(settings, catalog(), run, site).empty()) return {};
  SpecInput other = input;
  other.operations = &run;
  if (input.site != nullptr) other.site = &site;
  SpecResult made = make_spec(other);
  if (!made.problems.empty() || !check(made.spec).empty()) return {};
  return std::move(made.spec);
}

std::vector<Lever> run_levers(const SpecInput& input) {
  Levers levers(input);
  levers.spares();
  levers.detection();
  levers.standby();
  levers.elastic();
  levers.initialisation();
  levers.interval();
  levers.asynchronous();
  levers.storage();
  levers.tiers();
  levers.best_recovery();
  levers.slowness();
  levers.input();
  return std::move(levers.list);
}

void keep_best(std::vector<LeverResult>& levers) {
  std::stable_sort(levers.begin(), levers.end(), [](const LeverResult& a, const LeverResult& b) {
    return a.useful_share.mean > b.useful_share.mean;
  });
  std::set<std::string> seen;
  std::erase_if(levers, [&](const LeverResult& l) { return !seen.insert(l.name).second; });
}

}  // namespace assay
