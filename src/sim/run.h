// One training run over weeks: failures, checkpoints, recovery, stragglers, data stalls, the site's
// hours; where every accelerator-second that was paid for went.
//
// `RunSpec` is plain numbers: an adapter fills it from the world, the prediction and the site; this
// module looks nothing up. `Simulator` checks nothing (`check` does) and prepares what all runs of
// a spec share; `run` costs milliseconds because work advances analytically between events and is
// const, so that threads may share one Simulator.
//
// Time inside is integer nanoseconds; accelerator time is integer accelerator-nanoseconds, so the
// leaves of the ledger sum exactly to (job + spares) x period, which is asserted in every run.
//
// Luck: every cause draws from its own streams, named by the cause and the machine. A spec that
// differs in one cause, in the number of spares or in a policy meets the others' events at exactly
// the same times under the same seed (paired what-ifs). docs/models/goodput.md has the equations.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "ledger/ledger.h"
#include "sim/closed_form.h"

namespace assay {

// What a failure takes with it, hence which checkpoints survive it. Ordered.
enum class Extent { kProcess, kNode, kDomain, kSite };
std::string_view to_string(Extent);

// --- what one step is -------------------------------------------------------------------------

struct ClockPoint {
  double clock = 1;   // relative to the clock of `StepModel::step`
  double factor = 1;  // step time over `StepModel::step`
};

// What a group of fewer accelerators makes of its time.
struct GroupPoint {
  double share = 1;   // of the job's accelerators that step
  double factor = 1;  // accelerator time of the same work, over that of the whole job
};

struct StepModel {
  Seconds step{1};         // one optimizer step without anything below
  Ledger ledger;           // of that step, per accelerator; paid() == step. Empty: all `useful`
  double tokens = 0;       // per step; zero: the run counts days only
  Seconds fetched{0};      // step time that the data loader hides behind; zero: `step`
  double clock_bound = 1;  // share of the step that stretches as 1 / clock
  std::vector<ClockPoint> by_clock;  // measured or predicted; replaces clock_bound; clock ascending
  std::vector<GroupPoint> by_group;  // predicted; share ascending. Empty: 1 for every share
};

// --- what fails -------------------------------------------------------------------------------

// A Poisson (shape 1) or Weibull renewal process per machine or, for `kProcess`, for the job.
struct FailureProcess {
  std::string name;               // `gpu_memory`; names the stream: the same name has the same luck
  double per_gpu_hour = 0;        // mean rate of a machine in service, divided by its accelerators
  Extent extent = Extent::kNode;  // kProcess or kNode; larger ones are shocks
  Seconds detection{60};          // median until it is noticed
  double detection_sigma = 0;     // log-normal; zero: always the median
  double replaced = 1;            // probability that the node must go to repair
  double shape = 1;               // Weibull; below 1 failures come in bursts
  double frailty = 0;  // shape of the gamma that machines' rates scatter by; zero: all alike.
                       // Small is uneven: 0.5 gives the worst tenth half of all failures
};

// Something that takes several machines at once, or a part of each of them.
struct ShockProcess {
  std::string name;     // `rack_power`
  int64_t nodes = 0;    // of one domain, consecutive machines; zero: the whole site
  double per_year = 0;  // of one domain
  Seconds duration_mean{0};
  double duration_sigma = 1;  // log-normal
  Seconds detection{60};
  // False: the machines stay (a leaf switch took one port of each), the job restarts on them, and
  // its steps take `slow_by` longer until that is mended.
  bool takes_nodes = true;
  double slow_by = 0;
};

struct SilentCorruption {
  double per_gpu_hour = 0;
  double frailty = 0;           // as above
  Seconds detection_median{0};  // from the corruption until somebody knows
  double detection_sigma = 1;
  double replayed = 0;  // share of steps computed twice to look for it
};

struct Maintenance {
  Seconds every{0};     // zero: never. Planned: a checkpoint is saved first, no work is lost
  Seconds duration{0};  // before the job may start again
};

// How failure rates fall in the first weeks: rate(t) = rate (1 + (multiplier - 1) e^(-t / decay)).
struct InfantMortality {
  double multiplier = 1;
  Seconds decay{0};
};

// Host memory of one node: demand's daily peak is log-normal. A limit below it kills the container;
// a limit above the node's own memory lets the node crash instead.
struct HostMemory {
  Bytes demand_median{0};  // zero: not modelled
  double demand_sigma = 0.1;
  Bytes limit{0};  // of the container; zero: none
  Bytes node{0};   // what the node has
  Seconds kill_detection{10};
  Seconds crash_detection{300};
};

// --- how it recovers --------------------------------------------------------------------------

struct Repair {
  Seconds median{0};  // zero with mean zero: instantly
  Seconds mean{0};    // at least the median; the log-normal's sigma is sqrt(2 ln(mean / median))
};

enum class RecoveryPolicy { kRequeue, kWarmStandby, kElastic };
std::string_view to_string(RecoveryPolicy);

struct Recovery {
  RecoveryPolicy policy = RecoveryPolicy::kRequeue;
  Seconds requeue_wait{0};  // kRequeue: the scheduler, each time
  Seconds swap{0};          // bring a spare in for a node that must be replaced
  Seconds allocation{0};    // start processes
  Seconds init_base{50};    // communicators, framework: FT-HSDP's cold restarts
  Seconds init_per_gpu{0.009};
  double standby_share = 1;  // kWarmStandby, kElastic: share of the initialisation still paid
  Seconds compile{0};
  Seconds warmup{0};
  // kElastic: `replicas` of whole units, sizes differ by one at most; one that loses a node leaves
  // and comes back with a copy of another's state.
  int64_t replicas = 1;
  int64_t replica_nodes = 1;   // of one unit: what holds a whole copy of the model
  Seconds heal{0};             // that copy
  int64_t replicas_least = 1;  // below it the job stops and waits
  Seconds leave_stall{0};      // everyone, when a replica is lost (instead of detection)
  Seconds rejoin_stall{0};     // everyone, when it comes back
  double whole_job = 0;        // share of failures that take every replica down
};

enum class IntervalRule { kFixed, kYoung, kDaly, kOptimal };
std::string_view to_string(IntervalRule);

// One place where checkpoints are kept. The first of `RunSpec::checkpoints` is the most frequent;
// intervals are rounded up to whole multiples of the one before, and are never shorter than
// `persist` (a save waits for the one before).
struct CheckpointTier {
  std::string name;                 // `peer memory`, `local disk`, `remote`
  Extent survives = Extent::kSite;  // the largest failure after which it can be read
  IntervalRule rule = IntervalRule::kFixed;
  Seconds interval{0};  // kFixed: work between saves, without the stall
  Seconds stall{0};     // training waits
  Seconds persist{0};   // then written in the background; only after it may it be rolled back to
  Seconds restore{0};   // read back by everyone
  double starves = 0;   // excess of a step while it is persisted: input comes from there, too
  Seconds least{0};     // rules other than kFixed ask for no shorter interval
};

// A copy of the job's state in another node's memory, as it would cost: one accelerator's part of
// the state, its way to host memory and its share of the node's ports. Zero: not known.
struct PeerCopy {
  Bytes part;
  Bandwidth host_copy, port;
  Seconds spread{0};  // after it was read back: what every accelerator lacks comes from others
};
// The tier that follows. REQUIRES: part and bandwidths are above zero.
CheckpointTier peer_tier(const PeerCopy&, Seconds interval);

struct Spares {
  int64_t nodes = 0;
  bool prepulled = true;  // the image is on them
};

// --- what slows it ----------------------------------------------------------------------------

struct Stragglers {
  double jitter = 0;      // coefficient of variation of one rank's step
  int64_t ranks = 0;      // that wait for each other; zero: all accelerators
  double slow_nodes = 0;  // share of machines that are slow from the start
  double slow_by = 0;     // mean excess of their step time; exponential
  double fail_slow_per_node_day = 0;
  Seconds fail_slow_least{10}, fail_slow_most{36000};  // duration, log-uniform
  double fail_slow_by = 0;                             // mean excess; exponential
  double slow_link_per_node_day = 0;
  Seconds slow_link_mean{3600};  // exponential
  double slow_link_by = 0;       // excess of the step with one node's link in its slow mode
  Seconds evicted_after{0};      // a slow machine is swapped at the first restart after this long;
                                 // zero: never
};

// Input fetched from storage by ranks in lock-step. docs/models/goodput.md, data stalls.
struct DataPath {
  Seconds latency_median{0};  // of one fetch; zero: not modelled
  Seconds latency_p99{0};
  int64_t ranks = 0;             // that fetch; zero: all accelerators
  int64_t prefetch = 2;          // batches ahead
  int64_t hedges = 0;            // further requests for a late one
  double hedge_quantile = 0.95;  // of the latency after which the next is sent
  double hedge_same_path = 0;    // share of hedges that meet the same slow path
  double cached = 0;             // share of fetches that storage never sees
  double starved = 0;            // excess of a step by the store's bandwidth, whatever the depth
  double demand = 0;             // of the store's read bandwidth; below 1 it refills what is ahead
                                 // after a save starved it. Zero: not known, nothing is ahead
};

struct StartUp {
  Seconds queue_median{0};
  double queue_sigma = 0;
  Bytes image{0};
  Bandwidth registry{0};   // whole; zero: unlimited
  Bandwidth node_pull{0};  // one node: network, decompression; zero: unlimited
  double prepulled = 0;    // share of nodes that have the image
  bool kept = true;        // nodes keep it between jobs; else a requeued job pulls again
};

// --- the site's hours -------------------------------------------------------------------------

struct RunHour {
  double thermal_clock = 1;   // clocks over those of the step, held down by heat
  double facility_clock = 1;  // and by the facility's power cap; both multiply
  double powered = 1;         // share of the job's accelerators that may run
  bool outage = false;        // nothing runs
};

// Repeats when the run is longer. Empty: a perfect site.
struct HourSeries {
  Seconds step{3600};
  std::vector<RunHour> hours;
  // The same hours in other weather, each as long. A run draws its weather from a stream of its
  // own, so that it reshuffles nothing else and a change of the site meets the same weather.
  std::vector<std::vector<RunHour>> others;
};

// Which weather the run of a seed meets: 0 is `hours`, k is `others[k - 1]`.
size_t weather_of(const HourSeries&, uint64_t seed);

// --- the run ----------------------------------------------------------------------------------

struct RunSpec {
  int64_t gpus = 8;
  int64_t gpus_per_node = 8;
  Seconds period{86400};     // paid for; with a token target, the longest that is waited for
  double target_tokens = 0;  // zero: run the whole period; else stop when reached
  StepModel step;
  std::vector<FailureProcess> failures;
  std::vector<ShockProcess> shocks;
  SilentCorruption corruption;
  Maintenance maintenance;
  InfantMortality infant;
  HostMemory memory;
  Repair repair;
  Spares spares;
  Recovery recovery;
  std::vector<CheckpointTier> checkpoints;
  int64_t kept_checkpoints = 0;  // of the last tier, to go back before a corruption; zero: all
  PeerCopy peer;                 // what a tier in peers' memory would cost, whether there is one
  Stragglers stragglers;
  DataPath data;
  StartUp start;
  HourSeries site;
};

// What is impossible or contradictory, all of it. `path` is a member's path, for the adapter to
// place (`spares.nodes`, `checkpoints[1].interval`).
struct SpecProblem {
  std::string path, message, fix;
};
std::vector<SpecProblem> check(const RunSpec&);

struct RunOptions {
  bool trace = false;     // keep the list of events
  Seconds bucket{86400};  // of the time series
};

// The cause of planned stops, which are no interruptions.
constexpr std::string_view kPlannedStop = "maintenance";

struct CauseCount {
  std::string name;           // of a FailureProcess or ShockProcess, or `silent corruption`,
                              // `maintenance`, `out of memory`, `site series`
  int64_t interruptions = 0;  // of the job, or of one replica
  Seconds lost;  // accelerator-seconds from the failure until the job steps again, with
                 // the work that was lost
};

struct SeriesPoint {
  double goodput = 0;   // of the bucket, see RunResult::goodput
  double busy = 0;      // accelerators of the job that step, kept or not, averaged
  double clock = 1;     // averaged over the bucket
  double slowdown = 1;  // step time over nominal, averaged over stepping time; 1 when none
  int64_t interruptions = 0;
};

// A span of the job's life (`begin < end`) or a moment (`begin == end`).
struct RunEvent {
  Seconds begin, end;
  std::string track;  // `job`, `replica 3`, `spares`, `machines`
  std::string name;   // `step`, `lost work`, `detection`, `gpu_memory`
  int64_t machine = -1;
  double value = 0;  // accelerators concerned, or healthy spares
};

struct RunResult {
  Seconds period;           // paid for
  bool finished = false;    // reached its token target
  Ledger ledger;            // accelerator-seconds of job and spares over the period
  Seconds paid;             // ledger.paid()
  double goodput = 0;       // accelerator time in kept steps / the job's accelerator time (ETTR)
  double useful_share = 0;  // the same steps at their nominal time / paid, spares included
  double tokens = 0;
  int64_t interruptions = 0;       // without planned maintenance
  std::vector<CauseCount> causes;  // in the order of the spec; then the built-in ones
  std::vector<SeriesPoint> series;
  std::vector<RunEvent> events;  // only with RunOptions::trace, by begin
  int64_t spares_empty = 0;      // times that a replacement had to wait
  Seconds longest_run;           // longest time between interruptions
};

class Simulator {
 public:
  // REQUIRES: check(spec) is empty.
  explicit Simulator(RunSpec spec);
  ~Simulator();
  Simulator(Simulator&&) noexcept;

  RunResult run(uint64_t seed, const RunOptions& = {}) const;

  const RunSpec& spec() const;
  // Work between saves of each tier as it is used, whatever the rule.
  const std::vector<Seconds>& intervals() const;
  // How far the first-order formulas are off for the tier that survives most; empty without
  // failures.
  std::vector<FormulaError> formulas() const;
  // Mean time between failures of the job, shocks and corruption included; infinite when none.
  Seconds mtbf() const;
  // Excess step time of data stalls, constant over a run.
  double data_excess() const;

 private:
  struct Prepared;
  std::unique_ptr<const Prepared> prepared_;
};

}  // namespace assay
