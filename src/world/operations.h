// How a run is operated: what fails and how often, how that is noticed and mended, how progress is
// saved, how input is fetched. The section `run:` of a description.
//
// Rates are counts over an exposure, as publications print them, so that the figures can be checked
// against their source; docs/models/goodput.md says what is made of them.
#pragma once

#include "world/fields.h"

namespace assay {

// What a failure takes with it: the job's processes, or a node.
enum class FailureExtent { kProcess, kNode };
constexpr std::array<std::string_view, 2> enum_names(FailureExtent) { return {"process", "node"}; }

// One root cause, counted over the exposure of the profile that it belongs to.
struct FailureKind {
  std::string kind;  // `gpu`, `hbm`, `switch-or-cable`
  double count = 0;  // events seen
  FailureExtent extent = FailureExtent::kNode;
  // Until it is noticed: with a watchdog on collectives, and with machines that are inspected.
  Seconds watchdog = Seconds(600);
  Seconds inspected = Seconds(30);
  double replaced = 1;  // share of such failures that send the node to repair
  double shape = 1;     // of the Weibull between two of a machine; below 1 they come in bursts
};

template <class T, class V>
  requires std::is_same_v<std::remove_const_t<T>, FailureKind>
void fields(T& f, V&& visit) {
  visit("kind", f.kind, kAny, "root cause");
  visit("count", f.count, kNotNegative, "events over the profile's exposure");
  visit("extent", f.extent, kAny, "what it takes: the processes or a node");
  visit("watchdog", f.watchdog, kNotNegative, "until noticed by the collectives' watchdog");
  visit("inspected", f.inspected, kNotNegative, "until noticed where machines are inspected");
  visit("replaced", f.replaced, kFraction, "share that sends the node to repair");
  visit("shape", f.shape, Limits{0.1, 10}, "Weibull shape; below 1: bursts");
}

// What fails, as one fleet or run saw it.
struct Reliability {
  std::string name;
  double exposure_gpu_hours = 1;
  std::vector<FailureKind> failures;
  double lemon_shape = 0;        // gamma shape of machines' rates: small is uneven; zero: all alike
  double infant_multiplier = 1;  // of all rates in a new cluster, falling with
  Seconds infant_decay;          // this time constant
  double rack_power_per_year = 0;             // a rack's circuit
  double pdu_per_year = 0;                    // a power distribution unit and the racks it feeds,
  int64_t pdu_racks = 8;                      // so many of them
  double leaf_switch_per_year = 0;            // of one leaf: its nodes, or their ports on a rail
  Seconds domain_outage = Seconds(4 * 3600);  // mean, of rack or leaf
  double corruption_per_gpu_hour = 0;         // silent
  double corruption_shape = 0;                // as lemon_shape: corruption sits on few machines
  double replayed = 0;                        // share of steps computed twice to look for it
  Seconds corruption_noticed = Seconds(6 * 3600);
  Seconds repair_median = Seconds(6 * 3600), repair_mean = Seconds(36 * 3600);
  double slow_nodes = 0;  // share of machines that are slow from the start
  double slow_by = 0.1;   // mean excess of their step
  double fail_slow_per_node_day = 0;
  double fail_slow_by = 0.3;
  // How long a node stays slow, log-uniform between: Falcon (arXiv 2410.12588), seconds to 10 h.
  Seconds fail_slow_least = Seconds(10), fail_slow_most = Seconds(36000);
  // Links with a fast and a slow mode: share of ports that fall into the slow one in a month, how
  // long they stay there, and what is left of their speed.
  double slow_links_per_month = 0;
  Seconds slow_link = Seconds(3600);
  double slow_link_speed = 0.5;
  double jitter = 0;  // coefficient of variation of one rank's step
};

template <class T, class V>
  requires std::is_same_v<std::remove_const_t<T>, Reliability>
void fields(T& r, V&& visit) {
  visit("exposure_gpu_hours", r.exposure_gpu_hours, kPositive, "over which failures were counted");
  visit("failures", r.failures, kAny, "root causes with their counts");
  visit("lemon_shape", r.lemon_shape, Limits{0, 1000}, "unevenness of machines; zero: all alike");
  visit("infant_multiplier", r.infant_multiplier, Limits{1, 100}, "of rates in a new cluster");
  visit("infant_decay", r.infant_decay, kNotNegative, "how fast that falls");
  visit("rack_power_per_year", r.rack_power_per_year, Limits{0, 1000},
        "failures of a rack's power");
  visit("pdu_per_year", r.pdu_per_year, Limits{0, 1000}, "failures of a power distribution unit");
  visit("pdu_racks", r.pdu_racks, Limits{1, 100000}, "racks that one feeds");
  visit("leaf_switch_per_year", r.leaf_switch_per_year, Limits{0, 1000},
        "failures of one leaf switch");
  visit("domain_outage", r.domain_outage, kNotNegative, "mean outage of a rack or leaf");
  visit("corruption_per_gpu_hour", r.corruption_per_gpu_hour, Limits{0, 1}, "silent corruption");
  visit("corruption_shape", r.corruption_shape, Limits{0, 1000},
        "unevenness of corruption between machines; zero: all alike");
  visit("replayed", r.replayed, kFraction, "steps computed twice to look for corruption");
  visit("corruption_noticed", r.corruption_noticed, kNotNegative, "median until somebody knows");
  visit("repair_median", r.repair_median, kNotNegative, "median repair of a node");
  visit("repair_mean", r.repair_mean, kNotNegative, "mean repair of a node, log-normal");
  visit("slow_nodes", r.slow_nodes, kFraction, "machines slow from the start");
  visit("slow_by", r.slow_by, Limits{0, 10}, "mean excess of their step");
  visit("fail_slow_per_node_day", r.fail_slow_per_node_day, Limits{0, 100}, "nodes turning slow");
  visit("fail_slow_by", r.fail_slow_by, Limits{0, 10}, "mean excess of the step meanwhile");
  visit("fail_slow_least", r.fail_slow_least, kPositive, "shortest time that a node stays slow");
  visit("fail_slow_most", r.fail_slow_most, kPositive, "longest");
  visit("slow_links_per_month", r.slow_links_per_month, kFraction, "ports turning slow in a month");
  visit("slow_link", r.slow_link, kPositive, "how long a link stays slow, mean");
  visit("slow_link_speed", r.slow_link_speed, Limits{0.001, 1}, "its speed then, over nominal");
  visit("jitter", r.jitter, Limits{0, 2}, "coefficient of variation of one rank's step");
}

enum class Restart { kRequeue, kWarmStandby, kElastic };
constexpr std::array<std::string_view, 3> enum_names(Restart) {
  return {"requeue", "warm-standby", "elastic"};
}
enum class Detection { kWatchdog, kInspected };
constexpr std::array<std::string_view, 2> enum_names(Detection) {
  return {"watchdog", "inspected"};
}
enum class SaveMode { kBlocking, kAsync };
constexpr std::array<std::string_view, 2> enum_names(SaveMode) { return {"blocking", "async"}; }
enum class SaveRule { kFixed, kYoung, kDaly, kOptimal };
constexpr std::array<std::string_view, 4> enum_names(SaveRule) {
  return {"fixed", "young", "daly", "optimal"};
}

// Who reads a checkpoint when a job starts again: one copy, which the network then spreads, or
// every data-parallel replica for itself.
enum class Load { kOnce, kEvery };
constexpr std::array<std::string_view, 2> enum_names(Load) { return {"once", "every"}; }
// What a step is while replicas are away: the others keep their share of the batch, or take over
// that of the missing.
enum class ElasticBatch { kShrink, kKeep };
constexpr std::array<std::string_view, 2> enum_names(ElasticBatch) { return {"shrink", "keep"}; }

// How progress is saved. Sizes come from the memory model, times from the storage description,
// unless stated here.
struct Checkpointing {
  SaveMode mode = SaveMode::kAsync;
  SaveRule rule = SaveRule::kOptimal;
  Seconds interval;  // with `fixed`
  // With the other rules. Formulas that count only the copy to host memory ask for a save every few
  // seconds; the shortest interval to storage that anybody reports is 5 min (Fire-Flyer, arXiv
  // 2408.14158, from memory), others 15 min to 3 h (docs/models/goodput.md).
  Seconds interval_least = Seconds(300);
  bool peer_memory = false;  // a copy in another node's memory, every few steps
  Seconds peer_interval = Seconds(60);
  bool local_disk = false;                // a copy on the node's own disks
  Bandwidth host_copy = Bandwidth(25e9);  // accelerator to host memory, one accelerator
  Seconds stall;                          // of one save; zero: from sizes
  Seconds restore;                        // by everyone; zero: from sizes
  Load load = Load::kOnce;
  int64_t keep = 0;  // of the last tier, to go back before a corruption; zero: all
};

template <class T, class V>
  requires std::is_same_v<std::remove_const_t<T>, Checkpointing>
void fields(T& c, V&& visit) {
  visit("mode", c.mode, kAny, "training waits for storage, or only for the copy to host memory");
  visit("rule", c.rule, kAny, "how the interval is chosen");
  visit("interval", c.interval, kNotNegative, "between saves, with `rule: fixed`");
  visit("interval_least", c.interval_least, kNotNegative, "the shortest that another rule gives");
  visit("peer_memory", c.peer_memory, kAny, "a copy in another node's memory");
  visit("peer_interval", c.peer_interval, kPositive, "between such copies");
  visit("local_disk", c.local_disk, kAny, "a copy on the node's disks");
  visit("host_copy", c.host_copy, kPositive, "accelerator to host memory, one accelerator");
  visit("stall", c.stall, kNotNegative, "of one save; zero: from sizes and bandwidths");
  visit("restore", c.restore, kNotNegative, "by everyone; zero: from sizes and bandwidths");
  visit("load", c.load, kAny, "one copy is read and broadcast, or every replica reads its own");
  visit("keep", c.keep, kCountOrZero, "checkpoints kept on remote storage; zero: all");
}

struct Operations {
  std::string name;
  Reliability reliability;
  int64_t spares = 0;      // nodes that are paid for and wait
  double spare_share = 0;  // the same as a share of the job's nodes; the larger counts
  Restart recovery = Restart::kRequeue;
  int64_t replicas = 1;        // with `elastic`: data-parallel groups that can come and go
  int64_t replicas_least = 0;  // below it the job waits; zero: half of them
  ElasticBatch elastic_batch = ElasticBatch::kShrink;
  Detection detection = Detection::kWatchdog;
  Seconds noticed_within;  // the longest median until a failure is noticed; zero: as the kind says
  Checkpointing checkpoint;
  Seconds queue_wait;                     // before the job starts, median
  Seconds requeue_wait = Seconds(60);     // after each failure, with `requeue`
  Seconds swap = Seconds(60);             // to bring a spare in
  Seconds allocation;                     // nodes granted and processes started, each time
  Seconds init_base = Seconds(50);        // of a cold start
  Seconds init_per_gpu = Seconds(0.009);  // and for every accelerator
  double standby_share = 0.15;            // of the initialisation still paid by a warm standby
  double whole_job = 0;               // with `elastic`: share of failures that stop every replica
  Seconds leave_stall, rejoin_stall;  // with `elastic`: everyone, for each failure
  Seconds compile, warmup;            // after each start
  Seconds maintenance_every, maintenance;  // planned; zero: never
  bool prepulled = true;                   // images are on the nodes before the job starts
  int64_t prefetch = 2;                    // batches ahead
  int64_t hedges = 0;                      // further requests for a late read
  double hedge_after = 0.95;               // quantile of the latency after which the next is sent
  double hedge_same_path = 0;              // share of them that meet the same slow path
  double input_cached = 0;                 // share of input that storage never sees
  Seconds evict_slow_after;                // zero: never
  Bytes container_memory;                  // limit of a node's container; zero: none
  Bytes memory_demand;                     // daily peak of a node, median; zero: not modelled
  double memory_spread = 0.1;              // of that peak, log-normal
};

template <class T, class V>
  requires std::is_same_v<std::remove_const_t<T>, Operations>
void fields(T& o, V&& visit) {
  visit("reliability", o.reliability, kAny, "what fails, a catalog name or a mapping");
  visit("spares", o.spares, kCountOrZero, "spare nodes beside the job");
  visit("spare_share", o.spare_share, kFraction, "the same as a share of the job's nodes");
  visit("recovery", o.recovery, kAny, "what follows a failure");
  visit("replicas", o.replicas, Limits{1, 100000}, "with `elastic`: groups that come and go");
  visit("replicas_least", o.replicas_least, kCountOrZero,
        "with `elastic`: fewer stop the job; zero: half of them");
  visit("elastic_batch", o.elastic_batch, kAny, "with `elastic`: the batch while some are away");
  visit("detection", o.detection, kAny, "who notices a failure");
  visit("noticed_within", o.noticed_within, kNotNegative,
        "no kind of failure takes longer to notice, in the median; zero: as its kind says");
  visit("checkpoint", o.checkpoint, kAny, "how progress is saved");
  visit("queue_wait", o.queue_wait, kNotNegative, "before the job starts, median");
  visit("requeue_wait", o.requeue_wait, kNotNegative, "after each failure, with `requeue`");
  visit("swap", o.swap, kNotNegative, "to bring a spare in");
  visit("allocation", o.allocation, kNotNegative, "nodes granted, processes started, each time");
  visit("init_base", o.init_base, kNotNegative, "cold initialisation of any job");
  visit("init_per_gpu", o.init_per_gpu, kNotNegative, "and for every accelerator");
  visit("standby_share", o.standby_share, kFraction, "of that, with a warm standby");
  visit("whole_job", o.whole_job, kFraction, "with `elastic`: failures that stop everything");
  visit("leave_stall", o.leave_stall, kNotNegative, "with `elastic`: when a replica leaves");
  visit("rejoin_stall", o.rejoin_stall, kNotNegative, "with `elastic`: when it comes back");
  visit("compile", o.compile, kNotNegative, "after each start");
  visit("warmup", o.warmup, kNotNegative, "after each start");
  visit("maintenance_every", o.maintenance_every, kNotNegative, "planned stops; zero: never");
  visit("maintenance", o.maintenance, kNotNegative, "how long each");
  visit("prepulled", o.prepulled, kAny, "images are on the nodes before the job starts");
  visit("prefetch", o.prefetch, Limits{0, 1e6}, "batches ahead");
  visit("hedges", o.hedges, Limits{0, 8}, "further requests for a late read");
  visit("hedge_after", o.hedge_after, Limits{0.01, 0.9999}, "quantile of latency to hedge after");
  visit("hedge_same_path", o.hedge_same_path, kFraction, "hedges that meet the same slow path");
  visit("input_cached", o.input_cached, kFraction, "input that storage never sees");
  visit("evict_slow_after", o.evict_slow_after, kNotNegative,
        "slow nodes are swapped; zero: never");
  visit("container_memory", o.container_memory, kNotNegative, "limit of a node's container");
  visit("memory_demand", o.memory_demand, kNotNegative, "daily peak of a node; zero: not modelled");
  visit("memory_spread", o.memory_spread, Limits{0.001, 5}, "scatter of that peak, log-normal");
}

}  // namespace assay
