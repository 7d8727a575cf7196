// Every mechanism of a run alone, against arithmetic: each test fails when its mechanism is broken.
// docs/models/goodput.md lists them with the fields that reach them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/random.h"
#include "sim/closed_form.h"
#include "sim/expect.h"
#include "sim/full_spec.h"
#include "sim/quiet_spec.h"

namespace assay {
namespace {

// Events of a cause by machine.
std::map<int64_t, int> by_machine(const RunResult& r, const std::string& cause) {
  std::map<int64_t, int> counts;
  for (const RunEvent& e : r.events) {
    if (e.track == "machines" && e.name == cause) ++counts[e.machine];
  }
  return counts;
}

// Means over seeds.
struct Means {
  double goodput = 0, useful = 0, interruptions = 0;
  Ledger ledger;  // over paid
};
Means means(const RunSpec& s, int seeds) {
  EXPECT_TRUE(check(s).empty()) << check(s)[0].path << ": " << check(s)[0].message;
  const Simulator simulator(s);
  Means m;
  for (int k = 1; k <= seeds; ++k) {
    const RunResult r = simulator.run(static_cast<uint64_t>(k));
    m.goodput += r.goodput / seeds;
    m.useful += r.useful_share / seeds;
    m.interruptions += static_cast<double>(r.interruptions) / seeds;
    for (size_t a = 0; a < r.ledger.leaf.size(); ++a) {
      m.ledger.leaf[a] += r.ledger.leaf[a] / r.paid.v / seeds;
    }
  }
  return m;
}

// Mean of x / (1 + x), x exponential: what slow steps lose of their time.
double mean_lost_share(double mean) {
  double sum = 0;
  constexpr int kParts = 100000;
  for (int i = 0; i < kParts; ++i) {
    const double x = -std::log((i + 0.5) / kParts) * mean;
    sum += x / (1 + x) / kParts;
  }
  return sum;
}

// --- failures ---------------------------------------------------------------------------------

// Share of a cause's events on the tenth of machines with the most of another's.
double on_worst_tenth(const RunResult& r, const std::string& cause, const std::string& worst_by,
                      int64_t nodes) {
  std::vector<std::pair<int, int64_t>> worst;
  for (const auto& [machine, count] : by_machine(r, worst_by)) worst.push_back({count, machine});
  std::sort(worst.rbegin(), worst.rend());
  worst.resize(std::min<size_t>(worst.size(), static_cast<size_t>(nodes / 10)));
  std::map<int64_t, int> counts = by_machine(r, cause);
  double here = 0, all = 0;
  for (const auto& [machine, count] : counts) all += count;
  for (const auto& [count, machine] : worst) here += counts[machine];
  return here / all;
}

TEST(Mechanism, LemonsTakeHalfOfAllFailuresForEveryCause) {
  RunSpec s = quiet(8192, 54);
  s.failures = {failure("gpu", 1e-3), failure("hbm", 1e-3)};
  s.checkpoints = {tier("remote", Extent::kSite, 60)};
  // Ten of each on every machine: chance alone gives the worst tenth a sixth.
  EXPECT_NEAR(on_worst_tenth(traced(s, 1), "gpu", "gpu", 1024), 0.16, 0.02);
  EXPECT_NEAR(on_worst_tenth(traced(s, 1), "hbm", "gpu", 1024), 0.1, 0.01);
  for (FailureProcess& f : s.failures) f.frailty = 0.5;
  EXPECT_NEAR(on_worst_tenth(traced(s, 1), "gpu", "gpu", 1024), 0.47, 0.04);
  EXPECT_NEAR(on_worst_tenth(traced(s, 1), "hbm", "gpu", 1024), 0.46, 0.04);
}

TEST(Mechanism, CorruptionSitsOnFewMachines) {
  RunSpec s = quiet(32768, 54);  // FT-HSDP: 37 events on 7 of 4,096 hosts
  s.corruption.per_gpu_hour = 37.0 / (32768 * 54 * 24);
  double alike = 0, uneven = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    s.corruption.frailty = 0;
    alike += static_cast<double>(by_machine(traced(s, seed), "silent corruption").size()) / 10;
    s.corruption.frailty = 0.01;
    uneven += static_cast<double>(by_machine(traced(s, seed), "silent corruption").size()) / 10;
  }
  EXPECT_NEAR(alike, 37, 5);
  EXPECT_LT(uneven, 0.8 * alike);
}

// How uneven gaps are: variance over squared mean is 1 for Poisson and above it for bursts.
TEST(Mechanism, BurstsAreBursts) {
  RunSpec s = quiet(8, 20000);
  s.failures = {failure("software", 1e-2, Extent::kProcess)};
  s.checkpoints = {tier("remote", Extent::kSite, 60)};
  for (const double shape : {1.0, 0.6}) {
    s.failures[0].shape = shape;
    std::vector<double> at;
    for (const RunEvent& e : traced(s, 4).events) {
      if (e.track == "machines") at.push_back(e.begin.v);
    }
    double mean = 0, square = 0;
    for (size_t i = 1; i < at.size(); ++i) {
      const double gap = at[i] - at[i - 1];
      mean += gap / static_cast<double>(at.size() - 1);
      square += gap * gap / static_cast<double>(at.size() - 1);
    }
    const double unevenness = square / (mean * mean) - 1;
    const double g1 = std::tgamma(1 + 1 / shape), g2 = std::tgamma(1 + 2 / shape);
    EXPECT_NEAR(unevenness, g2 / (g1 * g1) - 1, 0.15) << shape;
  }
}

TEST(Mechanism, ASiteIsDarkForAsLongAsItsTierSays) {
  RunSpec s = quiet(64, 3000);
  s.shocks = {{"site", 0, 5, Seconds(6 * 3600), 1, Seconds(0)}};
  const Means m = means(s, 10);
  EXPECT_NEAR(m.ledger[Account::kOutage].v, 5 * 6 / (365.25 * 24), 0.0005);
  EXPECT_NEAR(m.interruptions, 5 * 3000 / 365.25, 3);
}

// A larger domain takes more machines at once: spares for one are not enough for the other.
TEST(Mechanism, DomainsTakeTheirMachines) {
  for (const int64_t nodes : {4, 32}) {
    RunSpec s = quiet(1024, 1000);
    s.shocks = {{"power", nodes, 0.05 * static_cast<double>(nodes), Seconds(7200), 0, Seconds(0)}};
    s.spares.nodes = nodes;
    EXPECT_EQ(Simulator(s).run(1).spares_empty, 0);
    s.spares.nodes = nodes - 1;
    const RunResult r = Simulator(s).run(1);
    EXPECT_GT(r.interruptions, 5);
    EXPECT_GT(r.spares_empty, r.interruptions / 2);
  }
}

// A leaf switch of a rail takes a port of each node: no node leaves, no spare comes; the job starts
// again and is slower until it is mended. The closed form says the same.
TEST(Mechanism, ARailTakesBandwidthAndNoNodes) {
  RunSpec s = quiet(1024, 1000);
  s.step.tokens = 1;
  ShockProcess leaf{"leaf switch", 32, 3, Seconds(36000), 0, Seconds(0)};
  leaf.takes_nodes = false;
  leaf.slow_by = 0.25;
  s.shocks = {leaf};
  s.recovery.init_base = Seconds(100);
  s.checkpoints = {tier("local disk", Extent::kProcess, 600)};  // the nodes keep what they have
  const RunResult r = Simulator(s).run(1);
  EXPECT_EQ(r.spares_empty, 0);
  EXPECT_EQ(r.ledger[Account::kReplacement].v, 0);
  const Means m = means(s, 40);
  const double often = 4 * 3 / 365.25;  // a day, of four groups of 32 nodes
  EXPECT_NEAR(m.interruptions, often * 1000, 2.5);
  const double slow = often * 36000 / 86400;  // at once
  EXPECT_NEAR(m.ledger[Account::kStraggler].v, -std::expm1(-slow) * 0.2, 1e-4);
  const Expectation e = expect_run(s);
  EXPECT_NEAR(e.goodput, m.goodput, 3e-4);
  EXPECT_NEAR(e.goodput / e.slowdown, m.useful, 3e-4);
  EXPECT_NEAR(e.mtbf.v, 86400 / often, 1);
}

TEST(Mechanism, ReplayedStepsAreBooked) {
  RunSpec s = quiet();
  s.corruption.replayed = 0.0025;
  EXPECT_NEAR(means(s, 1).ledger[Account::kCorruption].v, 0.0025 / 1.0025, 1e-9);
}

// Going back before a corruption needs a save from before it.
TEST(Mechanism, TooFewKeptCheckpointsLoseEverything) {
  RunSpec s = quiet(8000, 60);
  s.checkpoints = {tier("remote", Extent::kSite, 3600)};
  s.corruption = {2e-7, 0, Seconds(3 * 3600), 0, 0};
  s.spares.nodes = 10;
  const double all = means(s, 10).goodput;
  s.kept_checkpoints = 5;  // one of them is four hours old
  EXPECT_NEAR(means(s, 10).goodput, all, 1e-12);
  s.kept_checkpoints = 2;
  EXPECT_LT(means(s, 10).goodput, all - 0.1);
}

// --- detection, repair, restart ---------------------------------------------------------------

TEST(Mechanism, RepairIsLogNormalWithItsMean) {
  RunSpec s = quiet(800, 4000);
  s.failures = {failure("gpu", 1e-6)};
  s.failures[0].replaced = 1;
  s.repair = {Seconds(3600), Seconds(4 * 3600)};
  const Simulator simulator(s);
  double waited = 0, count = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const RunResult r = simulator.run(seed);
    waited += r.ledger[Account::kReplacement].v / 800;
    count += static_cast<double>(r.interruptions);
  }
  ASSERT_GT(count, 1000);
  EXPECT_NEAR(waited / count / (4 * 3600), 1, 0.15);
}

TEST(Mechanism, ARestartGrowsWithTheJobPartByPart) {
  for (const int64_t gpus : {800, 16000}) {
    RunSpec s = quiet(gpus, 1000);
    s.failures = {failure("software", 0.05 / 24 / static_cast<double>(gpus), Extent::kProcess)};
    s.checkpoints = {tier("remote", Extent::kSite, 600)};
    s.checkpoints[0].restore = Seconds(40);
    s.recovery.requeue_wait = Seconds(60);
    s.recovery.allocation = Seconds(15);
    s.recovery.init_base = Seconds(50);
    s.recovery.init_per_gpu = Seconds(0.009);
    s.recovery.compile = Seconds(20);
    s.recovery.warmup = Seconds(10);
    const double init = 50 + 0.009 * static_cast<double>(gpus);
    const auto each = [&](const RunSpec& spec) {
      const RunResult r = Simulator(spec).run(3);
      EXPECT_GT(r.interruptions, 30);
      return r.ledger[Account::kRestart].v / static_cast<double>(gpus * r.interruptions);
    };
    EXPECT_NEAR(each(s), 60 + 15 + init + 40 + 20 + 10, 2) << gpus;
    RunSpec standby = s;
    standby.recovery.policy = RecoveryPolicy::kWarmStandby;
    standby.recovery.standby_share = 0.1;
    EXPECT_NEAR(each(standby), 0.1 * init + 40 + 20 + 10, 2) << gpus;
    // Nodes that keep no image pull it again, all at once.
    s.start.image = Bytes(20e9);
    s.start.registry = Bandwidth(10e9);
    EXPECT_NEAR(each(s), 145 + init, 2) << gpus;
    s.start.kept = false;
    const double pull = 2 * static_cast<double>(gpus / 8);
    EXPECT_NEAR(each(s), 145 + init + pull, 0.01 * pull) << gpus;
    s.start.prepulled = 1;
    EXPECT_NEAR(each(s), 145 + init, 2) << gpus;
  }
}

TEST(Mechanism, QueueWaitsScatterAroundTheirMedian) {
  RunSpec s = quiet(64, 30);
  s.start.queue_median = Seconds(3600);
  s.start.queue_sigma = 1;
  const Simulator simulator(s);
  std::vector<double> waits;
  for (uint64_t seed = 1; seed <= 201; ++seed)
    waits.push_back(simulator.run(seed).ledger[Account::kQueue].v / 64);
  std::sort(waits.begin(), waits.end());
  EXPECT_NEAR(waits[100] / 3600, 1, 0.2);
  EXPECT_NEAR(std::log(waits[168] / waits[32]) / 2, 1, 0.2);  // a sigma to either side
}

// What a container's limit meets: killed, the node's own copies survive; a node that crashes takes
// them with it and is noticed late.
TEST(Mechanism, MemoryLimitsKillTheContainerOrTheNode) {
  RunSpec s = quiet(8192, 30);
  s.checkpoints = {tier("local disk", Extent::kProcess, 60), tier("remote", Extent::kSite, 7200)};
  s.memory = {Bytes(1e12), 0.1, Bytes(1.25e12), Bytes(2e12), Seconds(10), Seconds(300)};
  const double per_node_day = normal_cdf(-std::log(1.25) / 0.1);
  const double expected = per_node_day * 1024 * 30;
  const Means killed = means(s, 5);
  EXPECT_NEAR(killed.interruptions / expected, 1, 0.1);
  EXPECT_NEAR(killed.ledger[Account::kDetection].v, killed.interruptions * 10 / s.period.v, 1e-5);
  EXPECT_LT(killed.ledger[Account::kLostWork].v, 1.1 * killed.interruptions * 30 / s.period.v);
  s.memory.limit = Bytes(4e12);  // more than there is
  s.memory.node = Bytes(1.25e12);
  const Means crashed = means(s, 5);
  EXPECT_NEAR(crashed.interruptions / expected, 1, 0.15);
  EXPECT_GT(crashed.ledger[Account::kLostWork].v, 10 * killed.ledger[Account::kLostWork].v);
  EXPECT_GT(crashed.ledger[Account::kDetection].v, 20 * killed.ledger[Account::kDetection].v);
  s.memory.node = s.memory.limit = Bytes(2e12);
  EXPECT_EQ(means(s, 3).interruptions, 0);
}

// The rule that says optimal is: neither a third nor three times its interval does better.
TEST(Mechanism, TheBestIntervalIsTheBest) {
  RunSpec s = quiet(16384, 20);
  s.failures = {failure("gpu", 2e-5)};
  s.failures[0].detection = Seconds(60);
  s.recovery.init_base = Seconds(200);
  s.checkpoints = {tier("remote", Extent::kSite, 0)};
  s.checkpoints[0].stall = Seconds(30);
  s.checkpoints[0].rule = IntervalRule::kOptimal;
  const double best = means(s, 40).goodput;
  const Seconds interval = Simulator(s).intervals()[0];
  for (const IntervalRule rule : {IntervalRule::kYoung, IntervalRule::kDaly}) {
    s.checkpoints[0].rule = rule;
    EXPECT_NEAR(means(s, 40).goodput, best, 0.003);
    EXPECT_NEAR(Simulator(s).intervals()[0] / interval, 1, 0.2);
  }
  s.checkpoints[0].rule = IntervalRule::kFixed;
  for (const double factor : {0.33, 3.0}) {
    s.checkpoints[0].interval = interval * factor;
    EXPECT_LT(means(s, 40).goodput, best - 0.01) << factor;
  }
}

// --- elastic recovery -------------------------------------------------------------------------

RunSpec elastic(int64_t gpus = 768, double days = 60) {
  RunSpec s = quiet(gpus, days);
  s.failures = {failure("gpu", 1.0 / 6 / static_cast<double>(gpus))};  // four a day
  s.checkpoints = {tier("remote", Extent::kSite, 3600)};
  s.recovery.policy = RecoveryPolicy::kElastic;
  s.recovery.replicas = 12;
  return s;
}

TEST(Mechanism, AReplicaIsAwayForItsRestartAndItsCopy) {
  RunSpec s = elastic();
  s.recovery.init_base = Seconds(100);
  s.recovery.heal = Seconds(260);
  const Means m = means(s, 10);
  EXPECT_NEAR(m.ledger[Account::kRestart].v, m.interruptions * 360 / 12 / s.period.v, 2e-5);
  EXPECT_EQ(m.ledger[Account::kLostWork].v, 0);
  s.recovery.leave_stall = Seconds(30);
  s.recovery.rejoin_stall = Seconds(20);
  const Means stalled = means(s, 10);
  // Eleven of twelve wait; the one that left is on its way back.
  EXPECT_NEAR(stalled.ledger[Account::kDetection].v, m.interruptions * 30 * 11 / 12 / s.period.v,
              2e-5);
  const double rejoined = stalled.ledger[Account::kRestart].v - m.ledger[Account::kRestart].v;
  EXPECT_NEAR(rejoined, m.interruptions * (20 + 30.0 / 12) / s.period.v, 3e-5);
  // Failures that take every replica go back to a save.
  s.recovery.whole_job = 0.25;
  const Means some = means(s, 10);
  EXPECT_NEAR(some.ledger[Account::kLostWork].v, 0.25 * m.interruptions * 1800 / s.period.v, 0.002);
}

// A job that needs all of its replicas waits for each that is away; one that needs few does not.
TEST(Mechanism, TooFewReplicasWait) {
  RunSpec s = elastic();
  s.recovery.init_base = Seconds(600);
  s.recovery.replicas_least = 11;
  const Means going = means(s, 5);
  s.recovery.replicas_least = 12;
  const Means waiting = means(s, 5);
  EXPECT_GT(going.goodput - waiting.goodput,
            0.9 * going.interruptions * 600 * 11 / 12 / s.period.v);
  EXPECT_NEAR(waiting.ledger[Account::kReplacement].v,
              waiting.interruptions * 600 * 11 / 12 / s.period.v, 0.002);
}

// The same where all of it starts again and a node is still being mended.
TEST(Mechanism, ARestartWaitsForTheLeastReplicas) {
  RunSpec s = elastic();
  s.recovery.whole_job = 1;
  s.failures[0].per_gpu_hour /= 8;
  s.failures[0].replaced = 1;
  s.repair = {Seconds(6 * 3600), Seconds(6 * 3600)};
  s.recovery.replicas_least = 8;
  const Means going = means(s, 5);
  s.recovery.replicas_least = 12;
  const Means waiting = means(s, 5);
  EXPECT_NEAR(waiting.ledger[Account::kReplacement].v,
              waiting.interruptions * 6 * 3600 / s.period.v, 0.01);
  EXPECT_LT(going.ledger[Account::kReplacement].v, 0.2 * waiting.ledger[Account::kReplacement].v);
}

// Replicas are whole units: one that is larger is missed more.
TEST(Mechanism, ReplicasAreWholeUnits) {
  RunSpec s = elastic(15 * 8);  // fifteen nodes, units of two: the last replica has three
  s.recovery.replicas = 7;
  s.recovery.replica_nodes = 2;
  s.recovery.init_base = Seconds(600);
  ASSERT_TRUE(check(s).empty());
  const Simulator simulator(s);
  std::set<double> sizes;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    for (const RunEvent& e : simulator.run(seed, {true, Seconds(kSecondsPerDay)}).events) {
      if (e.name == "step, degraded") sizes.insert(static_cast<double>(s.gpus) - e.value);
    }
  }
  EXPECT_TRUE(sizes.contains(16));
  EXPECT_TRUE(sizes.contains(24));
  EXPECT_FALSE(sizes.contains(8));
  s.recovery.replicas = 8;
  ASSERT_EQ(check(s).size(), 1u);
  EXPECT_EQ(check(s)[0].path, "recovery.replicas");
}

// An elastic job saves for what takes all of it, not for every replica that leaves.
TEST(Mechanism, ElasticJobsSaveRarely) {
  RunSpec s = elastic();
  s.checkpoints[0].rule = IntervalRule::kOptimal;
  s.checkpoints[0].stall = Seconds(10);
  const Seconds never = Simulator(s).intervals()[0];
  s.recovery.whole_job = 0.25;
  const Seconds quarter = Simulator(s).intervals()[0];
  s.recovery.policy = RecoveryPolicy::kRequeue;
  const Seconds always = Simulator(s).intervals()[0];
  EXPECT_NEAR(quarter / always, 2, 0.05);
  EXPECT_GT(never, s.period);
}

// --- slowness ---------------------------------------------------------------------------------

TEST(Mechanism, JitterIsTheSlowestOfAllRanks) {
  double last = 0;
  for (const int64_t ranks : {64, 1024, 16384}) {
    RunSpec s = quiet(16384, 2);
    s.stragglers.jitter = 0.02;
    s.stragglers.ranks = ranks;
    const double excess = 0.02 * expected_max_normal(static_cast<double>(ranks));
    const double lost = means(s, 1).ledger[Account::kStraggler].v;
    EXPECT_NEAR(lost, excess / (1 + excess), 1e-6);
    EXPECT_GT(lost, last);
    last = lost;
  }
}

TEST(Mechanism, FailSlowLastsAndCostsAsSaid) {
  RunSpec s = quiet(1024, 200);
  s.stragglers.fail_slow_per_node_day = 0.001;
  s.stragglers.fail_slow_by = 0.3;
  s.stragglers.fail_slow_least = Seconds(100);
  s.stragglers.fail_slow_most = Seconds(36000);
  // One in eight days, so they hardly overlap; a log-uniform lasts (most - least) / ln(most/least).
  const double lasts = (36000 - 100) / std::log(360.0);
  const double slow = 0.001 * 128 * lasts / kSecondsPerDay;
  const Means m = means(s, 60);
  EXPECT_NEAR(m.ledger[Account::kStraggler].v / (slow * mean_lost_share(0.3)), 1, 0.1);
  s.stragglers.fail_slow_most = Seconds(100);
  const Means brief = means(s, 60);
  EXPECT_NEAR(brief.ledger[Account::kStraggler].v / m.ledger[Account::kStraggler].v, 100 / lasts,
              0.2 * 100 / lasts);
}

// The step at a clock comes from its table; below the table it stretches as the clock.
TEST(Mechanism, ClocksFollowTheirTable) {
  RunSpec s = quiet();
  s.step.by_clock = {{0.4, 1.8}, {0.8, 1.1}, {1, 1}};
  const std::pair<double, double> rows[] = {
      {1, 1}, {0.8, 1.1}, {0.6, 1.45}, {0.4, 1.8}, {0.2, 3.6}};
  for (const auto& [clock, factor] : rows) {
    s.site.hours = {RunHour{clock, 1, 1, false}};
    EXPECT_NEAR(means(s, 1).ledger[Account::kThermal].v, 1 - 1 / factor, 1e-6) << clock;
  }
}

TEST(Mechanism, SavesThatShareStorageStarveTheInput) {
  RunSpec s = quiet();
  s.data.starved = 0.1;
  EXPECT_NEAR(means(s, 1).ledger[Account::kStorage].v, 0.1 / 1.1, 1e-6);
  s.checkpoints = {tier("remote", Extent::kSite, 900)};
  s.checkpoints[0].stall = Seconds(100);
  s.checkpoints[0].persist = Seconds(400);
  s.checkpoints[0].starves = 0.5;
  // Steps of 1.6 instead of 1.1 leave 0.5 / 1.6 of the 400 s undone, every 900 s of work.
  EXPECT_NEAR(Simulator(s).data_excess(), 0.1 + 0.5 / 1.6 * 400 / 900, 1e-9);
  const double waited = 0.5 / 1.6 * 400, cycle = 900 * 1.1 + 100 + waited;
  EXPECT_NEAR(means(s, 1).ledger[Account::kStorage].v, (900 * 0.1 + waited) / cycle, 1e-3);
  EXPECT_NEAR(means(s, 1).ledger[Account::kCheckpoint].v, 100 / cycle, 1e-3);
  s.checkpoints[0].starves = 0;
  EXPECT_NEAR(Simulator(s).data_excess(), 0.1, 1e-9);
}

// A save a day that keeps input back for hours: those hours are slow, the others are not.
TEST(Mechanism, StarvingIsWhereTheSaveIs) {
  RunSpec s = quiet();
  s.period = Seconds(4 * kSecondsPerDay);
  s.checkpoints = {tier("remote", Extent::kSite, kSecondsPerDay)};
  s.checkpoints[0].persist = Seconds(4 * 3600);
  s.checkpoints[0].starves = 1;  // half of these hours is waited for
  const RunResult r = Simulator(s).run(1, {true, Seconds(3600)});
  ASSERT_EQ(r.series.size(), 96u);
  for (size_t h = 0; h < r.series.size(); ++h) {
    const bool waits = h % 26 == 24 || h % 26 == 25;
    EXPECT_NEAR(r.series[h].busy, waits ? 0 : 1, 1e-6) << h;
    EXPECT_NEAR(r.series[h].goodput, r.series[h].busy, 1e-6) << h;
  }
  EXPECT_NEAR(r.ledger[Account::kStorage].v, 6.0 / 96 * r.paid.v, 1e-3);
  std::vector<double> begins_h;
  for (const RunEvent& e : r.events) {
    if (e.track != "input") continue;
    begins_h.push_back(e.begin.v / 3600);
    EXPECT_NEAR((e.end - e.begin).v, 7200, 1e-3);
  }
  EXPECT_EQ(begins_h, (std::vector<double>{24, 50, 76}));
}

// What was fetched ahead is used up first: the wait begins then, and is as long as it was.
TEST(Mechanism, StarvingBeginsWhenThePrefetchIsUsedUp) {
  RunSpec s = quiet();
  s.period = Seconds(4 * kSecondsPerDay);
  s.step.step = Seconds(1);
  s.checkpoints = {tier("remote", Extent::kSite, kSecondsPerDay)};
  s.checkpoints[0].persist = Seconds(4 * 3600);
  s.checkpoints[0].starves = 1;
  s.data.demand = 0.5;
  s.data.prefetch = 3601;  // two hours of half a batch a step; then half of the other two
  const RunResult r = Simulator(s).run(1, {true, Seconds(3600)});
  std::vector<double> begins_h;
  for (const RunEvent& e : r.events) {
    if (e.track != "input") continue;
    begins_h.push_back(e.begin.v / 3600);
    EXPECT_NEAR((e.end - e.begin).v, 3600, 1e-3);
  }
  EXPECT_EQ(begins_h, (std::vector<double>{26, 51, 76}));
  for (size_t h = 0; h < r.series.size(); ++h) {
    EXPECT_NEAR(r.series[h].busy, h == 26 || h == 51 || h == 76 ? 0 : 1, 1e-6) << h;
  }
  EXPECT_NEAR(r.ledger[Account::kStorage].v, 3.0 / 96 * r.paid.v, 1e-3);
}

// --- never worse in expectation ---------------------------------------------------------------

TEST(Mechanism, MoreSparesAndFasterDetectionHelpUnderEveryPolicy) {
  for (const RecoveryPolicy policy :
       {RecoveryPolicy::kRequeue, RecoveryPolicy::kWarmStandby, RecoveryPolicy::kElastic}) {
    RunSpec s = everything_on(2048, 20);
    s.recovery.policy = policy;
    s.recovery.replicas = 8;
    s.recovery.replicas_least = 4;
    s.recovery.leave_stall = Seconds(30);
    s.recovery.whole_job = 0.3;
    s.repair = {Seconds(12 * 3600), Seconds(48 * 3600)};
    for (FailureProcess& f : s.failures) f.per_gpu_hour *= 3;
    double last = 0;
    for (const int64_t spares : {0, 2, 6, 40}) {
      s.spares.nodes = spares;
      const double goodput = means(s, 15).goodput;
      EXPECT_GE(goodput, last - 1e-4) << to_string(policy) << " " << spares;
      last = goodput;
    }
    RunSpec none = s;
    none.spares.nodes = 0;
    EXPECT_GT(last, means(none, 15).goodput + 0.02) << to_string(policy);
    double slower = 2;
    for (const double factor : {0.0, 1.0, 10.0, 40.0}) {
      RunSpec changed = s;
      for (FailureProcess& f : changed.failures) f.detection *= factor;
      const double goodput = means(changed, 15).goodput;
      EXPECT_LE(goodput, slower + 1e-4) << to_string(policy) << " " << factor;
      slower = goodput;
    }
  }
}

}  // namespace
}  // namespace assay
