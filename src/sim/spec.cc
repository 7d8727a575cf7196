#include "sim/spec.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "sim/group_steps.h"
#include "sim/state_path.h"
#include "site/density.h"
#include "world/checkpoint.h"
#include "world/model_size.h"
#include "world/place.h"

namespace assay {
namespace {

// Shared storage of a node's share where nothing is said: NVIDIA's SuperPOD guidance for large
// models, 125 GB/s read and 62 GB/s write for 32 nodes (from memory).
constexpr double kNodeRead = 3.9e9, kNodeWrite = 1.9e9;
// Racks hold about four eight-way nodes (40 kW); a power feed of one takes them all.
constexpr int64_t kNodesPerRack = 4;
// Clocks at which the step is predicted again.
constexpr double kClocks[] = {0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0};
constexpr double kDaysPerMonth = 365.25 / 12;
// From so many nodes on one spare for all of them pays: n nodes fail 0.0038 n times a day (Llama 3)
// and are away for 1.5 days, so that n^2 x 0.0057 waits are worth the spare from n = 13; ten,
// because a wait stops people, too.
constexpr double kNodesForASpare = 10;
// How detection of one kind of failure scatters, log-normal: three hangs of BLOOM took 6, 11 and
// 18 hours.
constexpr double kDetectionSigma = 0.5;
// One request of a client that reads or writes a checkpoint: the part size of S3's own clients.
constexpr double kRequestBytes = 8 * 1024 * 1024;

class Maker {
 public:
  explicit Maker(const SpecInput& in)
      : in_(in), setting_(*in.setting), run_(*in.operations), spec_(out_.spec) {}

  SpecResult make() {
    spec_.gpus =
        setting_.accelerators > 0 ? setting_.accelerators : setting_.cluster.accelerators();
    spec_.gpus_per_node = std::min(setting_.cluster.node.accelerators, spec_.gpus);
    spec_.period = in_.period;
    spec_.target_tokens = in_.tokens;
    step();
    failures();
    recovery();
    checkpoints();
    stragglers();
    data();
    site();
    groups();
    return std::move(out_);
  }

 private:
  double nodes() const {
    return static_cast<double>(spec_.gpus) / static_cast<double>(spec_.gpus_per_node);
  }
  void assume(std::string path, std::string value, std::string why) {
    out_.assumed.push_back({std::move(path), std::move(value), std::move(why)});
  }

  void step();
  void groups();
  double wear() const;
  void failures();
  void shocks();
  void leaf_switches();
  void recovery();
  StatePath state_path() const;
  void replica_memory(const Plan&, int64_t dp);
  void checkpoints();
  void storage();
  void stragglers();
  void data();
  void site();
  double predicted(const Setting&) const;

  const SpecInput& in_;
  const Setting& setting_;
  const Operations& run_;
  SpecResult out_;
  RunSpec& spec_;
};

double Maker::predicted(const Setting& setting) const {
  Predictor predictor(setting);
  if (predictor.impossible(*in_.plan)) return in_.prediction->step.v;
  return predictor.predict(*in_.plan).step.v;
}

void Maker::step() {
  const Prediction& p = *in_.prediction;
  spec_.step.step = p.step;
  spec_.step.ledger = p.ledger;
  spec_.step.tokens = p.tokens_per_s * p.step.v;
  const double base = predicted(setting_);
  for (const double clock : kClocks) {
    Setting slower = setting_;
    Accelerator& a = slower.cluster.accelerator;
    for (FlopRate* peak : {&a.fp32, &a.tf32, &a.fp16, &a.bf16, &a.fp8, &a.fp4, &a.int8})
      *peak *= clock;
    const double factor = predicted(slower) / base;
    spec_.step.by_clock.push_back({clock, std::max(1.0, factor)});
  }
}

// Mean over the hours of all weather; 1 without a site, or where the coolant is never above the
// reference.
double Maker::wear() const {
  if (in_.series == nullptr || in_.series->hours.empty()) return 1;
  double sum = 0, count = 0;
  const auto add = [&](const SiteSeries& s) {
    for (const SiteHour& h : s.hours) sum += h.wear;
    count += static_cast<double>(s.hours.size());
  };
  add(*in_.series);
  if (in_.other_weather != nullptr) {
    for (const SiteSeries& s : *in_.other_weather) add(s);
  }
  return sum / count;
}

void Maker::failures() {
  const Reliability& r = run_.reliability;
  const double hot = wear();
  if (hot > 1.005) {
    assume("run.reliability", fmt::format("parts fail {:.2f} times as often", hot),
           "coolant above that of the published rates; twice as often every 10 K (rule of thumb)");
  }
  const bool inspected = run_.detection == Detection::kInspected;
  for (const FailureKind& f : r.failures) {
    if (f.count <= 0) continue;
    FailureProcess process;
    process.name = f.kind;
    const bool part = f.extent == FailureExtent::kNode;
    process.per_gpu_hour = f.count / r.exposure_gpu_hours * (part ? hot : 1);
    process.extent = f.extent == FailureExtent::kProcess ? Extent::kProcess : Extent::kNode;
    process.detection = inspected ? f.inspected : f.watchdog;
    if (run_.noticed_within.v > 0)
      process.detection = std::min(process.detection, run_.noticed_within);
    process.detection_sigma = kDetectionSigma;
    process.replaced = f.replaced;
    process.shape = f.shape;
    process.frailty = part ? r.lemon_shape : 0;
    spec_.failures.push_back(process);
  }
  shocks();
  spec_.corruption.per_gpu_hour = r.corruption_per_gpu_hour;
  spec_.corruption.frailty = r.corruption_shape;
  spec_.corruption.replayed = r.replayed;
  spec_.corruption.detection_median = r.corruption_noticed;
  spec_.infant = {r.infant_multiplier, r.infant_decay};
  spec_.maintenance = {run_.maintenance_every, run_.maintenance};
  spec_.repair = {r.repair_median, r.repair_mean};
  spec_.memory.demand_median = run_.memory_demand;
  spec_.memory.demand_sigma = run_.memory_spread;
  spec_.memory.limit = run_.container_memory;
  spec_.memory.node = setting_.cluster.node.host_memory;
}

void Maker::shocks() {
  const Reliability& r = run_.reliability;
  const auto shock = [this](const char* name, int64_t nodes, double per_year, Seconds mean) {
    if (per_year <= 0) return;
    ShockProcess s;
    s.name = name;
    s.nodes = nodes;
    s.per_year = per_year;
    s.duration_mean = mean;
    spec_.shocks.push_back(s);
  };
  int64_t rack = in_.site != nullptr ? density(*in_.site, setting_.cluster).rack.nodes : 0;
  if (rack < 1) rack = kNodesPerRack;
  shock("rack power", rack, r.rack_power_per_year, r.domain_outage);
  shock("power distribution", rack * r.pdu_racks, r.pdu_per_year, r.domain_outage);
  leaf_switches();
  if (in_.site != nullptr)
    shock("site", 0, in_.site->tier.outages_per_year, in_.site->tier.outage_mean);
}

// On a rail-optimised fabric nodes hang on as many leaves as they have ports. One that fails takes
// one port of each: the job stops, starts again on what is left, and is slower until it is mended.
// That the libraries can is assumed; NCCL takes the ports that are up when it starts.
void Maker::leaf_switches() {
  const Reliability& r = run_.reliability;
  const Cluster& c = setting_.cluster;
  const auto rails = static_cast<double>(c.node.nics);
  const bool by_rail = c.fabric.rail_optimised && c.node.nics > 1;
  const bool switched = c.fabric.kind != FabricKind::kTorus && c.fabric.kind != FabricKind::kNone;
  if (r.leaf_switch_per_year <= 0 || !switched || (by_rail && nodes() <= 1)) return;
  ShockProcess s;
  s.name = "leaf switch";
  s.nodes = c.fabric.nodes_per_leaf;
  s.per_year = r.leaf_switch_per_year;
  s.duration_mean = r.domain_outage;
  if (by_rail) {
    // Tensor ranks have groups of their own, each with its share of the node's ports: those of one
    // that lost a port share what it has left, at worst two share one.
    const double ports = rails / static_cast<double>(std::max<int64_t>(1, in_.plan->tp));
    Setting less = setting_;
    less.cluster.fabric.degraded_links = 1 / nodes();
    less.cluster.fabric.degraded_speed =
        std::min(c.slow_links() > 0 ? c.fabric.degraded_speed : 1.0, std::max(0.5, 1 - 1 / ports));
    s.takes_nodes = false;
    s.per_year *= rails;
    s.slow_by = std::max(0.0, predicted(less) / predicted(setting_) - 1);
  }
  spec_.shocks.push_back(s);
}

void Maker::recovery() {
  Recovery& to = spec_.recovery;
  to.policy = run_.recovery == Restart::kElastic       ? RecoveryPolicy::kElastic
              : run_.recovery == Restart::kWarmStandby ? RecoveryPolicy::kWarmStandby
                                                       : RecoveryPolicy::kRequeue;
  to.requeue_wait = run_.requeue_wait;
  to.swap = run_.swap;
  to.allocation = run_.allocation;
  to.init_base = run_.init_base;
  to.init_per_gpu = run_.init_per_gpu;
  to.standby_share = run_.standby_share;
  to.compile = run_.compile;
  to.warmup = run_.warmup;
  to.replicas = std::max<int64_t>(1, run_.replicas);
  to.replicas_least =
      run_.replicas_least > 0 ? run_.replicas_least : std::max<int64_t>(1, to.replicas / 2);
  to.whole_job = run_.whole_job;
  to.leave_stall = run_.leave_stall;
  to.rejoin_stall = run_.rejoin_stall;
  // By share, a job of few nodes keeps none: one would cost more than the waits that it saves.
  const double share = nodes() < kNodesForASpare ? 0 : std::ceil(run_.spare_share * nodes() - 1e-9);
  spec_.spares = {std::max(run_.spares, static_cast<int64_t>(share)), run_.prepulled};
  spec_.start.queue_median = run_.queue_wait;
  spec_.start.queue_sigma = run_.queue_wait.v > 0 ? 1 : 0;
  spec_.start.prepulled = run_.prepulled ? 1 : 0;
  if (in_.site == nullptr) return;
  const Registry& registry = in_.site->registry;
  spec_.start.image = registry.image;
  spec_.start.registry = registry.total;
  spec_.start.node_pull = registry.per_node;
  spec_.start.kept = registry.cached;
  if (registry.cached) spec_.start.prepulled = 1;
}

void Maker::storage() {
  const Cluster& c = setting_.cluster;
  Bandwidth write, read;
  if (in_.site != nullptr) out_.storage_capacity = in_.site->storage.capacity;
  if (in_.site != nullptr && in_.site->storage.write.v > 0) {
    write = in_.site->storage.write;
    read = write;
  } else if (c.storage_bandwidth.v > 0) {
    write = read = c.storage_bandwidth;
  } else {
    write = Bandwidth(kNodeWrite * nodes());
    read = Bandwidth(kNodeRead * nodes());
    assume("site.storage",
           write.v < 1e12 ? fmt::format("{:.3g} GB/s write", write.v / 1e9)
                          : fmt::format("{:.3g} TB/s write", write.v / 1e12),
           "1.9 GB/s a node, as large clusters are built");
  }
  if (in_.site != nullptr && in_.site->storage.read.v > 0) read = in_.site->storage.read;
  if (in_.site != nullptr && in_.site->storage.requests_per_s > 0) {
    const Bandwidth requests(in_.site->storage.requests_per_s * kRequestBytes);
    write = std::min(write, requests);
    read = std::min(read, requests);
  }
  // The nodes' own ports; a single node without ports writes to its disks.
  const double ports = nodes() * static_cast<double>(c.node.nics) * c.node.nic_bandwidth.v;
  if (ports > 0) {
    write = std::min(write, Bandwidth(ports));
    read = std::min(read, Bandwidth(ports));
  }
  out_.storage_write = write;
  out_.storage_read = read;
}

// Copies of the state among the accelerators, and every limit on its way.
StatePath Maker::state_path() const {
  const Cluster& c = setting_.cluster;
  const Plan& plan = *in_.plan;
  const Model& m = setting_.workload.model;
  StatePath p;
  p.nodes = nodes();
  p.accelerators = static_cast<double>(spec_.gpus_per_node);
  const double state = out_.checkpoint.v / (kWeightBytesSaved + kOptimizerBytesSaved);
  p.weights = Bytes(state * kWeightBytesSaved);
  p.optimizer = Bytes(state * kOptimizerBytesSaved);
  const double data = static_cast<double>(std::max<int64_t>(1, in_.prediction->dp) * plan.cp);
  const double shard = plan.zero == 0            ? 1
                       : plan.sharding_group > 0 ? static_cast<double>(plan.sharding_group)
                                                 : data;
  const double copies = std::max(1.0, data / shard);
  // Experts are spread over more ranks than the rest of the model.
  const double expert = static_cast<double>(moe_layers(m) * m.experts) *
                        static_cast<double>(expert_width(m) * m.expert_ffn) * (m.gated_mlp ? 3 : 2);
  const double experts = std::min(1.0, expert / std::max(1.0, parameters(m)));
  const double spread =
      static_cast<double>(plan.ep * std::max<int64_t>(1, plan.etp)) / static_cast<double>(plan.tp);
  const double whole = 1 - experts + experts / std::max(1.0, spread);
  p.weight_copies = plan.zero == 3 ? copies : std::max(1.0, data * whole);
  p.optimizer_copies = copies;
  p.read = out_.storage_read;
  p.write = out_.storage_write;
  p.ports = c.node.nic_bandwidth * static_cast<double>(c.node.nics);
  p.node = p.ports;
  if (in_.site != nullptr && in_.site->storage.per_stream.v > 0) {
    const Bandwidth streams = in_.site->storage.per_stream * p.accelerators;
    p.node = p.node.v > 0 ? std::min(p.node, streams) : streams;
  }
  p.host_copy = run_.checkpoint.host_copy;
  const Workload& w = setting_.workload;
  p.input = Bandwidth(input_bytes(w).v * static_cast<double>(w.global_batch) / spec_.step.step.v *
                      (1 - run_.input_cached));
  p.every_replica_reads = run_.checkpoint.load == Load::kEvery;
  return p;
}

void Maker::checkpoints() {
  storage();
  const Checkpointing& c = run_.checkpoint;
  out_.checkpoint = checkpoint_bytes(setting_);
  const StatePath path = state_path();
  const StateTimes t = state_times(path);
  out_.restored = t.read;
  const bool async = c.mode == SaveMode::kAsync;
  CheckpointTier remote;
  remote.name = "remote";
  remote.survives = Extent::kSite;
  remote.rule = static_cast<IntervalRule>(c.rule);
  remote.interval = c.interval;
  remote.least = c.interval_least;
  remote.stall = c.stall.v > 0 ? c.stall : async ? t.copy : t.persist_alone;
  remote.persist = async ? t.persist : Seconds(0);
  remote.restore = c.restore.v > 0 ? c.restore : t.restore;
  remote.starves = async ? t.starves : 0;
  const Bytes part = out_.checkpoint / static_cast<double>(spec_.gpus);
  spec_.kept_checkpoints = c.keep;
  spec_.recovery.heal = t.heal;
  spec_.data.starved = t.starved;
  spec_.data.demand = t.demand;
  if (path.ports.v > 0) {
    const Bandwidth port = path.ports / path.accelerators;
    const Seconds spread = t.peer_restore - part / port - part / c.host_copy;
    spec_.peer = {part, c.host_copy, port, std::max(Seconds(0), spread)};
  }
  const bool peer = c.peer_memory && nodes() > 1 && spec_.peer.port.v > 0 && part.v > 0;
  if (c.peer_memory && !peer)
    assume("run.checkpoint.peer_memory", "not used",
           nodes() > 1 ? "the nodes have no ports" : "one node has no peers");
  if (c.local_disk && !peer && setting_.cluster.node.disk_bandwidth.v <= 0)
    assume("run.checkpoint.local_disk", "not used", "`cluster.node.disk_bandwidth` is not stated");
  if (peer) spec_.checkpoints.push_back(peer_tier(spec_.peer, c.peer_interval));
  // A peer has all that a local disk has, and survives the node.
  if (c.local_disk && !peer && setting_.cluster.node.disk_bandwidth.v > 0) {
    CheckpointTier local;
    local.name = "local disk";
    local.survives = Extent::kProcess;
    local.interval = Seconds(5 * std::max(60.0, c.peer_interval.v));
    local.stall = t.copy;
    const Bytes node_part = part * static_cast<double>(spec_.gpus_per_node);
    local.persist = node_part / setting_.cluster.node.disk_bandwidth;
    local.restore = local.persist;
    spec_.checkpoints.push_back(local);
  }
  spec_.checkpoints.push_back(remote);
}

// The step of every size that the job may have: of elastic replicas, or of what the site powers.
void Maker::groups() {
  const int64_t dp = std::max<int64_t>(1, in_.prediction->dp);
  Recovery& r = spec_.recovery;
  if (r.policy == RecoveryPolicy::kElastic) {
    r.replica_nodes = replica_nodes(*in_.plan, spec_.gpus_per_node);
    const Plan plan = elastic_plan(*in_.plan, dp, r.replicas);
    if (plan.sharding_group != in_.plan->sharding_group) {
      assume("plan.sharding_group", fmt::format("{}", plan.sharding_group),
             "every elastic replica holds a whole copy of the optimizer");
    }
    replica_memory(plan, dp);
    const double stride = static_cast<double>(dp) / static_cast<double>(r.replicas);
    const int64_t least = std::llround(stride * static_cast<double>(r.replicas_least));
    spec_.step.by_group =
        group_steps(setting_, plan, dp, least, std::max(1.0, stride), run_.elastic_batch);
    return;
  }
  double powered = 1;
  const auto least_of = [&](const std::vector<RunHour>& hours) {
    for (const RunHour& h : hours) {
      if (h.powered > 0) powered = std::min(powered, h.powered);
    }
  };
  least_of(spec_.site.hours);
  for (const std::vector<RunHour>& hours : spec_.site.others) least_of(hours);
  if (powered >= 1) return;
  const int64_t least = static_cast<int64_t>(std::floor(powered * static_cast<double>(dp)));
  spec_.step.by_group = group_steps(setting_, *in_.plan, dp, least, 1, ElasticBatch::kShrink);
}

// A replica that cannot hold the state cannot live alone.
void Maker::replica_memory(const Plan& plan, int64_t dp) {
  const int64_t ranks = dp * plan.cp;
  const int64_t each = ranks / std::max<int64_t>(1, spec_.recovery.replicas);
  if (plan.zero > 0 && plan.sharding_group > each) {
    out_.problems.push_back(
        {"replicas",
         fmt::format("the plan shards the optimizer over {} ranks, a replica has {}: no replica "
                     "holds all of it",
                     plan.sharding_group, each),
         fmt::format("set `plan.sharding_group` to at most {}", each)});
    return;
  }
  Predictor predictor(setting_);
  if (predictor.impossible(*in_.plan)) return;
  const MemoryUse use = predictor.memory(plan);
  if (use.fits()) return;
  out_.problems.push_back(
      {"replicas",
       fmt::format("an accelerator of {} replicas, each with a whole copy of the optimizer, needs "
                   "{:.3g} of {:.3g} GB",
                   spec_.recovery.replicas, use.reserved.v / 1e9, use.capacity.v / 1e9),
       "use fewer replicas, or a plan with more tensor or pipeline ranks"});
}

void Maker::stragglers() {
  const Reliability& r = run_.reliability;
  Stragglers& s = spec_.stragglers;
  s.jitter = r.jitter;
  s.slow_nodes = r.slow_nodes;
  s.slow_by = r.slow_by;
  s.fail_slow_per_node_day = r.fail_slow_per_node_day;
  s.fail_slow_by = r.fail_slow_by;
  s.evicted_after = run_.evict_slow_after;
  s.fail_slow_least = r.fail_slow_least;
  s.fail_slow_most = r.fail_slow_most;
  // A fabric that is slow all the time has that in its step already.
  if (setting_.cluster.slow_links() > 0 || nodes() <= 1 || r.slow_links_per_month <= 0) return;
  Setting degraded = setting_;
  degraded.cluster.fabric.degraded_links = 1 / nodes();
  degraded.cluster.fabric.degraded_speed = r.slow_link_speed;
  s.slow_link_by = std::max(0.0, predicted(degraded) / predicted(setting_) - 1);
  s.slow_link_mean = r.slow_link;
  const double links = static_cast<double>(setting_.cluster.node.nics);
  s.slow_link_per_node_day = links * r.slow_links_per_month / kDaysPerMonth;
}

void Maker::data() {
  if (in_.site == nullptr || in_.site->storage.latency_p50.v <= 0) return;
  spec_.data.latency_median = in_.site->storage.latency_p50;
  spec_.data.latency_p99 = in_.site->storage.latency_p99;
  spec_.data.prefetch = run_.prefetch;
  spec_.data.hedges = run_.hedges;
  spec_.data.hedge_quantile = run_.hedge_after;
  spec_.data.hedge_same_path = run_.hedge_same_path;
  spec_.data.cached = run_.input_cached;
  // One fetch a step for each data-parallel rank; the others receive it from their neighbours.
  spec_.data.ranks = std::max<int64_t>(1, in_.prediction->dp);
}

std::vector<RunHour> run_hours(const SiteSeries& series) {
  std::vector<RunHour> hours;
  hours.reserve(series.hours.size());
  for (const SiteHour& hour : series.hours) {
    RunHour h;
    h.thermal_clock = std::clamp(hour.thermal_clock, 0.05, 1.0);
    h.facility_clock = std::clamp(hour.cap_clock, 0.05, 1.0);
    h.powered = hour.scheduled ? std::clamp(hour.running, 0.0, 1.0) : 0;
    hours.push_back(h);
  }
  return hours;
}

void Maker::site() {
  if (in_.series == nullptr) return;
  spec_.site.hours = run_hours(*in_.series);
  if (in_.other_weather == nullptr) return;
  for (const SiteSeries& s : *in_.other_weather) spec_.site.others.push_back(run_hours(s));
}

// The field of `run:` that a member of the spec comes from.
std::string described(const std::string& path) {
  constexpr std::pair<std::string_view, std::string_view> kFields[] = {
      {"recovery.replicas_least", "replicas_least"},
      {"recovery.replica_nodes", "replicas"},
      {"recovery.replicas", "replicas"},
      {"spares.nodes", "spares"},
      {"kept_checkpoints", "checkpoint.keep"},
      {"maintenance.every", "maintenance_every"},
      {"maintenance.duration", "maintenance"},
      {"checkpoints", "checkpoint"},
      {"failures", "reliability.failures"},
      {"stragglers", "reliability"},
      {"corruption", "reliability"},
      {"infant", "reliability"},
      {"repair", "reliability"},
      {"recovery.", ""},
      {"data.prefetch", "prefetch"},
      {"data.hedges", "hedges"},
      {"data.latency", "site.storage.latency"}};
  for (const auto& [member, field] : kFields) {
    if (path.starts_with(member)) return std::string(field) + path.substr(member.size());
  }
  return path;
}

// The figure of the site's storage behind what was derived from it, or nothing.
std::string_view storage_behind(const std::string& path) {
  if (path.ends_with(".persist")) return "site.storage.write";
  const bool read = path.ends_with(".restore") || path.ends_with(".starves") ||
                    path == "data.starved" || path == "data.demand";
  return read ? "site.storage.read" : "";
}

}  // namespace

Bytes checkpoint_bytes(const Setting& setting) { return checkpoint_bytes(setting.workload); }

SpecResult make_spec(const SpecInput& in) { return Maker(in).make(); }

Diagnostics spec_problems(const SpecResult& r, const Origins& origins) {
  Diagnostics problems;
  const int64_t kept_count = std::max<int64_t>(1, r.spec.kept_checkpoints);
  const Bytes kept = r.checkpoint * static_cast<double>(kept_count);
  const auto add = [&](std::string message, std::string help, const std::string& path) {
    problems.push_back(problem_of(origins, path, std::move(message), std::move(help)));
  };
  if (r.storage_capacity.v > 0 && kept > r.storage_capacity) {
    add(fmt::format("{} checkpoint(s) of {:.3g} TB do not fit into storage of {:.3g} TB",
                    kept_count, r.checkpoint.v / 1e12, r.storage_capacity.v / 1e12),
        "state a larger `site.storage.capacity`", "site.storage.capacity");
  }
  std::vector<SpecProblem> found = check(r.spec);
  for (SpecProblem& p : found) p.path = described(p.path);
  for (const SpecProblem& p : r.problems) {
    const bool said = std::any_of(found.begin(), found.end(),
                                  [&](const SpecProblem& f) { return f.path == p.path; });
    if (!said) found.push_back(p);
  }
  // What follows from the site's storage is said of the storage, once for each way.
  std::set<std::string> told;
  std::erase_if(found, [&](const SpecProblem& p) {
    const std::string_view storage = storage_behind(p.path);
    const Origins::const_iterator stated = origins.find(std::string(storage));
    if (storage.empty() || stated == origins.end()) return false;
    const std::string& file = stated->second.file;  // the catalog's storage is possible
    if (file.empty() || file.starts_with("catalog/")) return false;
    if (told.insert(stated->first).second) {
      add(fmt::format("{} is too little: run.{}: {}", storage, p.path, p.message), "raise it",
          stated->first);
    }
    return true;
  });
  // Input that the assumed storage cannot deliver is said of the input, once.
  const auto hungry = [](const SpecProblem& p) {
    return p.path.ends_with(".starves") || p.path == "data.starved" || p.path == "data.demand";
  };
  if (std::erase_if(found, hungry) > 0) {
    add("workload.sample_bytes: the input wants a million times what storage can read",
        "lower it, cache it (`run.input_cached`), or state a faster `site.storage.read`",
        "workload.sample_bytes");
  }
  for (const SpecProblem& p : found) {
    if (p.path == "gpus") {
      add(fmt::format("a run needs whole nodes: {}", p.message), p.fix, "cluster.gpus");
      continue;
    }
    const bool site = p.path.starts_with("site.");
    const std::string path = site ? p.path : "run." + p.path;
    add(fmt::format("{}: {}", path, p.message), p.fix, path);
  }
  return problems;
}

}  // namespace assay
