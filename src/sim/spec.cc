#include "sim/spec.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "world/model_size.h"

namespace assay {
namespace {

// Bytes per parameter of a complete checkpoint: 2 of weights, 4 each of master weights and Adam's
// two moments. MLPerf Storage's table 2 has 13 (8B, 70B and 405B).
constexpr double kWeightBytes = 2, kOptimizerBytes = 12;
// Shared storage of a node's share where nothing is said: NVIDIA's SuperPOD guidance for large
// models, 125 GB/s read and 62 GB/s write for 32 nodes (from memory).
constexpr double kNodeRead = 3.9e9, kNodeWrite = 1.9e9;
// Racks hold about four eight-way nodes (40 kW); a power feed of one takes them all.
constexpr int64_t kNodesPerRack = 4;
// Clocks at which the step is predicted again.
constexpr double kClocks[] = {0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0};
// A link in its slow mode runs at half its rate: one of two lanes, or the slower of two modes.
constexpr double kSlowLink = 0.5;
// Links between a node's port and its leaf that fail in a month: Alibaba HPN (SIGCOMM 2024). As
// many again are taken to slow down without failing, which nobody publishes.
constexpr double kLinkFailuresPerMonth = 0.00057;
constexpr double kDaysPerMonth = 365.25 / 12;

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
  void failures();
  void recovery();
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

void Maker::failures() {
  const Reliability& r = run_.reliability;
  const bool inspected = run_.detection == Detection::kInspected;
  for (const FailureKind& f : r.failures) {
    if (f.count <= 0) continue;
    FailureProcess process;
    process.name = f.kind;
    process.per_gpu_hour = f.count / r.exposure_gpu_hours;
    process.extent = f.extent == FailureExtent::kProcess ? Extent::kProcess : Extent::kNode;
    process.detection = inspected ? f.inspected : f.watchdog;
    process.detection_sigma = 0.5;
    process.replaced = f.replaced;
    process.frailty = f.extent == FailureExtent::kNode ? r.lemon_shape : 0;
    spec_.failures.push_back(process);
  }
  const auto shock = [this](const char* name, int64_t nodes, double per_year, Seconds mean) {
    if (per_year <= 0) return;
    ShockProcess s;
    s.name = name;
    s.nodes = nodes;
    s.per_year = per_year;
    s.duration_mean = mean;
    spec_.shocks.push_back(s);
  };
  shock("rack power", kNodesPerRack, r.rack_power_per_year, r.domain_outage);
  shock("leaf switch", setting_.cluster.fabric.nodes_per_leaf, r.leaf_switch_per_year,
        r.domain_outage);
  if (in_.site != nullptr)
    shock("site", 0, in_.site->tier.outages_per_year, in_.site->tier.outage_mean);
  spec_.corruption.per_gpu_hour = r.corruption_per_gpu_hour;
  spec_.corruption.detection_median = r.corruption_noticed;
  spec_.infant = {r.infant_multiplier, r.infant_decay};
  spec_.maintenance = {run_.maintenance_every, run_.maintenance};
  spec_.repair = {r.repair_median, r.repair_mean};
  spec_.memory.demand_median = run_.memory_demand;
  spec_.memory.limit = run_.container_memory;
  spec_.memory.node = setting_.cluster.node.host_memory;
}

void Maker::recovery() {
  Recovery& to = spec_.recovery;
  to.policy = run_.recovery == Restart::kElastic       ? RecoveryPolicy::kElastic
              : run_.recovery == Restart::kWarmStandby ? RecoveryPolicy::kWarmStandby
                                                       : RecoveryPolicy::kRequeue;
  to.requeue_wait = run_.requeue_wait;
  to.swap = run_.swap;
  to.init_base = run_.init_base;
  to.init_per_gpu = run_.init_per_gpu;
  to.standby_share = run_.standby_share;
  to.compile = run_.compile;
  to.warmup = run_.warmup;
  to.replicas = std::max<int64_t>(1, run_.replicas);
  to.replicas_least = std::max<int64_t>(1, to.replicas / 2);
  to.whole_job = run_.whole_job;
  to.leave_stall = run_.leave_stall;
  to.rejoin_stall = run_.rejoin_stall;
  const double share = std::ceil(run_.spare_share * nodes() - 1e-9);
  spec_.spares = {std::max(run_.spares, static_cast<int64_t>(share)), run_.prepulled};
  spec_.start.queue_median = run_.queue_wait;
  spec_.start.queue_sigma = run_.queue_wait.v > 0 ? 1 : 0;
  spec_.start.prepulled = run_.prepulled ? 1 : 0;
  if (in_.site == nullptr) return;
  const Registry& registry = in_.site->registry;
  spec_.start.image = registry.image;
  spec_.start.registry = registry.total;
  spec_.start.node_pull = registry.per_node;
  if (registry.cached) spec_.start.prepulled = 1;
}

void Maker::storage() {
  const Cluster& c = setting_.cluster;
  Bandwidth write, read;
  if (in_.site != nullptr) out_.storage_capacity = in_.site->storage.capacity;
  if (in_.site != nullptr && in_.site->storage.write.v > 0) {
    write = in_.site->storage.write;
    read = in_.site->storage.read.v > 0 ? in_.site->storage.read : write;
  } else if (c.storage_bandwidth.v > 0) {
    write = read = c.storage_bandwidth;
  } else {
    write = Bandwidth(kNodeWrite * nodes());
    read = Bandwidth(kNodeRead * nodes());
    assume("site.storage", fmt::format("{:.3g} GB/s write", write.v / 1e9),
           "1.9 GB/s a node, as large clusters are built");
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

void Maker::checkpoints() {
  storage();
  const Checkpointing& c = run_.checkpoint;
  out_.checkpoint = checkpoint_bytes(setting_);
  const Bytes share = out_.checkpoint / static_cast<double>(spec_.gpus);
  const Seconds copy = share / c.host_copy;
  const Seconds persist = out_.checkpoint / out_.storage_write;
  CheckpointTier remote;
  remote.name = "remote";
  remote.survives = Extent::kSite;
  remote.rule = static_cast<IntervalRule>(c.rule);
  remote.interval = c.interval;
  remote.stall = c.stall.v > 0 ? c.stall : c.mode == SaveMode::kAsync ? copy : persist;
  remote.persist = c.mode == SaveMode::kAsync ? persist : Seconds(0);
  remote.restore = c.restore.v > 0 ? c.restore : out_.checkpoint / out_.storage_read;
  if (c.peer_memory) {
    CheckpointTier peer;
    peer.name = "peer memory";
    peer.survives = Extent::kNode;
    peer.interval = c.peer_interval;
    peer.stall = copy;
    const double port = std::max(1e9, setting_.cluster.node.nic_bandwidth.v);
    peer.persist = share / Bandwidth(port);
    peer.restore = share / Bandwidth(port);
    spec_.checkpoints.push_back(peer);
  }
  // A peer has all that a local disk has, and survives the node.
  if (c.local_disk && !c.peer_memory && setting_.cluster.node.disk_bandwidth.v > 0) {
    CheckpointTier local;
    local.name = "local disk";
    local.survives = Extent::kProcess;
    local.interval = Seconds(5 * std::max(60.0, c.peer_interval.v));
    local.stall = copy;
    const Bytes node_share = share * static_cast<double>(spec_.gpus_per_node);
    local.persist = node_share / setting_.cluster.node.disk_bandwidth;
    local.restore = local.persist;
    spec_.checkpoints.push_back(local);
  }
  spec_.checkpoints.push_back(remote);
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
  const Fabric& fabric = setting_.cluster.fabric;
  if (fabric.degraded_links > 0 || nodes() <= 1) return;
  Setting degraded = setting_;
  degraded.cluster.fabric.degraded_links = 1 / nodes();
  degraded.cluster.fabric.degraded_speed = kSlowLink;
  s.slow_link_by = std::max(0.0, predicted(degraded) / predicted(setting_) - 1);
  // A profile that counts only what stops a job says nothing about what slows it.
  if (r.fail_slow_per_node_day <= 0) return;
  const double links = static_cast<double>(setting_.cluster.node.nics);
  s.slow_link_per_node_day = links * kLinkFailuresPerMonth / kDaysPerMonth;
  assume("run.reliability",
         fmt::format("{:.2g} slow links a node and day", s.slow_link_per_node_day),
         "0.057 % of ports a month, as often as they fail (HPN); an hour at half speed");
}

void Maker::data() {
  if (in_.site == nullptr || in_.site->storage.latency_p50.v <= 0) return;
  spec_.data.latency_median = in_.site->storage.latency_p50;
  spec_.data.latency_p99 = in_.site->storage.latency_p99;
  spec_.data.prefetch = run_.prefetch;
  spec_.data.hedges = run_.hedges;
  // One fetch a step for each data-parallel rank; the others receive it from their neighbours.
  spec_.data.ranks = std::max<int64_t>(1, in_.prediction->dp);
}

void Maker::site() {
  if (in_.series == nullptr) return;
  for (const SiteHour& hour : in_.series->hours) {
    RunHour h;
    h.thermal_clock = std::clamp(hour.thermal_clock, 0.05, 1.0);
    h.facility_clock = std::clamp(hour.cap_clock, 0.05, 1.0);
    h.powered = hour.scheduled ? std::clamp(hour.running, 0.0, 1.0) : 0;
    spec_.site.hours.push_back(h);
  }
}

}  // namespace

Bytes checkpoint_bytes(const Setting& setting) {
  const Workload& w = setting.workload;
  if (w.task == Task::kLora) {
    // Adapters are below a hundredth of the model; the frozen weights are not saved again.
    return Bytes(0.01 * parameters(w.model) * (kWeightBytes + kOptimizerBytes));
  }
  return Bytes(parameters(w.model) * (kWeightBytes + kOptimizerBytes));
}

SpecResult make_spec(const SpecInput& in) { return Maker(in).make(); }

Diagnostics spec_problems(const SpecResult& r) {
  Diagnostics problems;
  const int64_t kept_count = std::max<int64_t>(1, r.spec.kept_checkpoints);
  const Bytes kept = r.checkpoint * static_cast<double>(kept_count);
  if (r.storage_capacity.v > 0 && kept > r.storage_capacity) {
    Diagnostic d;
    d.message = fmt::format("{} checkpoint(s) of {:.3g} TB do not fit into storage of {:.3g} TB",
                            kept_count, r.checkpoint.v / 1e12, r.storage_capacity.v / 1e12);
    d.help = "state a larger `site.storage.capacity`";
    problems.push_back(std::move(d));
  }
  for (const SpecProblem& p : check(r.spec)) {
    Diagnostic d;
    d.message = fmt::format("run.{}: {}", p.path, p.message);
    d.help = p.fix;
    problems.push_back(std::move(d));
  }
  return problems;
}

}  // namespace assay
