#include "sim/run.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "base/random.h"
#include "sim/full_spec.h"

namespace assay {
namespace {

RunSpec quiet(int64_t gpus = 1024, double days = 10) {
  RunSpec s;
  s.gpus = gpus;
  s.period = Seconds(days * kSecondsPerDay);
  s.recovery.init_base = s.recovery.init_per_gpu = Seconds(0);
  s.step.step = Seconds(5);
  s.step.ledger[Account::kUseful] = Seconds(2);
  s.step.ledger[Account::kMatmul] = Seconds(3);
  return s;
}

RunSpec failing(int64_t gpus = 4096, double days = 20) {
  RunSpec s = everything_on(gpus, days);
  s.site = {};
  return s;
}

double mean_goodput(const RunSpec& spec, int seeds = 20) {
  const Simulator simulator(spec);
  double sum = 0;
  for (int k = 1; k <= seeds; ++k) sum += simulator.run(static_cast<uint64_t>(k)).goodput;
  return sum / seeds;
}

void expect_sound(const RunResult& r, const RunSpec& s) {
  const double machines = static_cast<double>(s.gpus + s.spares.nodes * s.gpus_per_node);
  EXPECT_NEAR(r.paid.v / (machines * r.period.v), 1, 1e-12);
  for (const Seconds leaf : r.ledger.leaf) {
    EXPECT_TRUE(std::isfinite(leaf.v));
    EXPECT_GE(leaf.v, 0);
    EXPECT_LE(leaf.v, r.paid.v * (1 + 1e-12));
  }
  EXPECT_GE(r.goodput, 0);
  EXPECT_LE(r.goodput, 1);
  EXPECT_GE(r.useful_share, 0);
  EXPECT_LE(r.useful_share, 1);
  for (const SeriesPoint& p : r.series) {
    EXPECT_TRUE(p.goodput >= 0 && p.goodput <= 1 && p.busy >= p.goodput - 1e-9 && p.busy <= 1);
    EXPECT_TRUE(p.clock > 0 && p.clock <= 1 && p.slowdown >= 1);
  }
}

TEST(Run, NothingWrongIsTheStepsOwnEfficiency) {
  const RunSpec s = quiet();
  const RunResult r = Simulator(s).run(1);
  EXPECT_EQ(r.goodput, 1);
  EXPECT_EQ(r.useful_share, 1);
  EXPECT_EQ(r.interruptions, 0);
  EXPECT_NEAR(r.ledger[Account::kUseful] / r.paid, 0.4, 1e-12);
  EXPECT_NEAR(r.ledger[Account::kMatmul] / r.paid, 0.6, 1e-12);
  EXPECT_EQ(r.paid.v, 1024 * 10 * kSecondsPerDay);
}

TEST(Run, OnlyCheckpointsCostTheirStalls) {
  RunSpec s = quiet();
  s.checkpoints = {{"remote", Extent::kSite, IntervalRule::kFixed, Seconds(95), Seconds(5),
                    Seconds(20), Seconds(0)}};
  const RunResult r = Simulator(s).run(1);
  EXPECT_NEAR(r.ledger[Account::kCheckpoint] / r.paid, 0.05, 1e-4);
  EXPECT_NEAR(r.goodput, 0.95, 1e-4);
}

// The formulas are asked about the interval that the run itself would choose as the best.
TEST(Run, FormulasAreJudgedAtTheRunsOwnCosts) {
  EXPECT_TRUE(Simulator(quiet()).formulas().empty());  // nothing fails
  RunSpec s = failing();
  s.checkpoints = {s.checkpoints.back()};
  s.checkpoints[0].rule = IntervalRule::kOptimal;
  const Simulator simulator(s);
  const std::vector<FormulaError> formulas = simulator.formulas();
  ASSERT_FALSE(formulas.empty());
  const FormulaError& best = formulas.back();
  EXPECT_EQ(best.name, "optimal");
  const Seconds work = best.period - s.checkpoints[0].stall;
  EXPECT_NEAR(simulator.intervals()[0] / std::max(work, s.checkpoints[0].persist), 1, 1e-9);
  for (const FormulaError& f : formulas) EXPECT_GE(f.regret, -1e-9) << f.name;
}

TEST(Run, EverythingOnIsSoundForEverySeed) {
  for (const int64_t gpus : {8, 1024, 8192}) {
    for (const RecoveryPolicy policy :
         {RecoveryPolicy::kRequeue, RecoveryPolicy::kWarmStandby, RecoveryPolicy::kElastic}) {
      RunSpec s = everything_on(gpus, 15);
      if (gpus == 8 && policy == RecoveryPolicy::kElastic) continue;
      s.recovery.policy = policy;
      s.recovery.replicas = 8;
      s.recovery.replicas_least = 5;
      s.recovery.leave_stall = Seconds(60);
      s.recovery.rejoin_stall = Seconds(20);
      s.recovery.whole_job = 0.1;
      s.recovery.standby_share = 0.3;
      ASSERT_TRUE(check(s).empty()) << check(s)[0].path << check(s)[0].message;
      const Simulator simulator(s);
      for (uint64_t seed = 1; seed <= 8; ++seed) expect_sound(simulator.run(seed), s);
    }
  }
}

// Rates a hundred times what anybody saw, no spares, slow repair: still sound.
TEST(Run, StormsAreSound) {
  for (const RecoveryPolicy policy : {RecoveryPolicy::kRequeue, RecoveryPolicy::kElastic}) {
    RunSpec s = everything_on(512, 20);
    for (FailureProcess& f : s.failures) f.per_gpu_hour *= 200;
    for (ShockProcess& h : s.shocks) h.per_year *= 500;
    s.corruption.per_gpu_hour *= 1000;
    s.spares.nodes = 1;
    s.recovery.policy = policy;
    s.recovery.replicas = 13;  // of four and of five nodes
    s.recovery.leave_stall = Seconds(30);
    s.site.hours[3].outage = true;
    s.site.hours[4].powered = 0;
    const Simulator simulator(s);
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      const RunResult r = simulator.run(seed);
      expect_sound(r, s);
      EXPECT_LT(r.goodput, 0.8);
      EXPECT_GT(r.interruptions, 20);
    }
  }
}

TEST(Run, SameSeedSameBytes) {
  const RunSpec s = everything_on(2048, 10);
  const RunResult a = Simulator(s).run(7, {true, Seconds(3600)});
  const RunResult b = Simulator(s).run(7, {true, Seconds(3600)});
  EXPECT_EQ(a.ledger.leaf, b.ledger.leaf);
  ASSERT_EQ(a.events.size(), b.events.size());
  for (size_t i = 0; i < a.events.size(); ++i) EXPECT_EQ(a.events[i].begin, b.events[i].begin);
  EXPECT_NE(a.goodput, Simulator(s).run(8).goodput);
}

std::map<std::string, std::vector<double>> arrivals(const RunSpec& s, uint64_t seed) {
  std::map<std::string, std::vector<double>> times;
  for (const RunEvent& e : Simulator(s).run(seed, {true, Seconds(86400)}).events) {
    if (e.track == "machines" && e.machine < s.gpus / s.gpus_per_node) {
      times[e.name].push_back(e.begin.v);
    }
  }
  return times;
}

TEST(Run, OneCauseDoesNotReshuffleAnother) {
  const RunSpec base = everything_on(4096, 20);
  const auto before = arrivals(base, 3);
  ASSERT_GT(before.size(), 8u);
  RunSpec changed = base;
  changed.failures[0].per_gpu_hour *= 3;
  changed.failures.erase(changed.failures.begin() + 1);
  changed.spares.nodes += 5;
  changed.recovery.policy = RecoveryPolicy::kWarmStandby;
  changed.checkpoints.pop_back();
  changed.corruption.detection_median = Seconds(60);
  const auto after = arrivals(changed, 3);
  for (const auto& [name, times] : before) {
    if (name == base.failures[1].name) {
      EXPECT_FALSE(after.contains(name));
    } else if (name == base.failures[0].name) {
      EXPECT_NE(after.at(name), times);
    } else if (name != "rack power" && name != "leaf switch") {  // one more domain of spares
      EXPECT_EQ(after.at(name), times) << name;
    }
  }
}

TEST(Run, RatesAreMet) {
  RunSpec s = quiet(8192, 54);
  FailureProcess f;
  f.name = "gpu";
  f.per_gpu_hour = 2e-5;
  f.detection = Seconds(1);
  s.failures = {f};
  const double expected = 2e-5 * 8192 * 54 * 24;
  for (const double frailty : {0.0, 0.5}) {
    s.failures[0].frailty = frailty;
    const Simulator simulator(s);
    double count = 0;
    for (uint64_t seed = 1; seed <= 40; ++seed) {
      count += static_cast<double>(simulator.run(seed).interruptions) / 40;
    }
    EXPECT_NEAR(count / expected, 1, 0.03) << frailty;
  }
  EXPECT_NEAR(Simulator(s).mtbf().v, kSecondsPerHour / (2e-5 * 8192), 1e-6);
}

// In the first weeks rates are three times as high, at the end as described.
TEST(Run, InfantMortalityFades) {
  RunSpec s = quiet(8192, 56);
  FailureProcess f;
  f.name = "gpu";
  f.per_gpu_hour = 2e-5;
  f.detection = Seconds(1);
  s.failures = {f};
  s.infant = {3, Seconds(7 * kSecondsPerDay)};
  const Simulator simulator(s);
  double first = 0, last = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const RunResult r = simulator.run(seed);
    for (size_t d = 0; d < 7; ++d) first += static_cast<double>(r.series[d].interruptions);
    for (size_t d = 49; d < 56; ++d) last += static_cast<double>(r.series[d].interruptions);
  }
  // Mean multiplier of the first week: 1 + 2 (1 - 1/e).
  EXPECT_NEAR(first / last, 1 + 2 * (1 - std::exp(-1.0)), 0.15);
}

// --- never worse in expectation, with the same luck ------------------------------------------

TEST(Run, MoreSparesAreNeverWorse) {
  RunSpec s = failing();
  s.repair = {Seconds(12 * 3600), Seconds(48 * 3600)};
  double last = 0;
  for (const int64_t spares : {0, 1, 2, 4, 8, 32}) {
    s.spares.nodes = spares;
    const double goodput = mean_goodput(s);
    EXPECT_GE(goodput, last - 1e-4) << spares;
    last = goodput;
  }
}

TEST(Run, FasterDetectionIsNeverWorse) {
  RunSpec s = failing();
  double last = 0;
  for (const double factor : {20.0, 5.0, 1.0, 0.2, 0.0}) {
    RunSpec changed = s;
    for (FailureProcess& f : changed.failures) f.detection *= factor;
    const double goodput = mean_goodput(changed);
    EXPECT_GE(goodput, last) << factor;
    last = goodput;
  }
}

TEST(Run, DeeperPrefetchIsNeverWorse) {
  RunSpec s = failing(1024, 10);
  s.step.fetched = Seconds(0.25);
  double last = 0;
  for (const int64_t depth : {1, 2, 8, 32}) {
    s.data.prefetch = depth;
    const Simulator simulator(s);
    double useful = 0;
    for (uint64_t seed = 1; seed <= 5; ++seed) useful += simulator.run(seed).useful_share;
    EXPECT_GE(useful, last) << depth;
    last = useful;
  }
}

TEST(Run, PolicyTiersAndStandbyHelp) {
  RunSpec s = failing(16384, 10);
  s.checkpoints.erase(s.checkpoints.begin(), s.checkpoints.begin() + 2);
  const double requeue = mean_goodput(s, 5);
  RunSpec standby = s;
  standby.recovery.policy = RecoveryPolicy::kWarmStandby;
  standby.recovery.standby_share = 0.1;
  EXPECT_GT(mean_goodput(standby, 5), requeue);
  RunSpec tiered = s;
  tiered.checkpoints = everything_on(16384, 10).checkpoints;
  EXPECT_GT(mean_goodput(tiered, 5), requeue);
}

// --- the site --------------------------------------------------------------------------------

TEST(Run, SiteHoursAreAccounted) {
  RunSpec s = quiet(800, 10);
  s.site.hours.assign(24, RunHour{});
  for (int h = 12; h < 18; ++h) s.site.hours[static_cast<size_t>(h)].thermal_clock = 0.8;
  s.site.hours[20].powered = 0.5;
  const RunResult r = Simulator(s).run(1);
  expect_sound(r, s);
  // A quarter of the time at 0.8 of the clock: a fifth of that is lost to heat.
  EXPECT_NEAR(r.ledger[Account::kThermal] / r.paid, 0.25 * 0.2, 1e-6);
  EXPECT_NEAR(r.ledger[Account::kCurtailment] / r.paid, 0.5 / 24, 1e-6);
  EXPECT_NEAR(r.series[3].clock, (18 + 6 * 0.8) / 24, 1e-6);
  s.site.hours[2].outage = true;
  const RunResult dark = Simulator(s).run(1);
  EXPECT_NEAR(dark.ledger[Account::kOutage] / dark.paid, 1.0 / 24, 1e-6);
  EXPECT_EQ(dark.causes.back().interruptions, 10);
}

TEST(Run, MaintenanceLosesNoWork) {
  RunSpec s = quiet(80, 30);
  s.checkpoints = {{"remote", Extent::kSite, IntervalRule::kFixed, Seconds(36000), Seconds(5),
                    Seconds(20), Seconds(30)}};
  s.maintenance = {Seconds(2 * kSecondsPerDay), Seconds(3600)};
  const RunResult r = Simulator(s).run(1);
  EXPECT_EQ(r.ledger[Account::kLostWork].v, 0);
  EXPECT_EQ(r.interruptions, 0);
  // 14 stops within 30 days: an hour and the restore each.
  EXPECT_NEAR(r.ledger[Account::kMaintenance].v / 80, 14 * 3630, 1e-3);
}

TEST(Run, TargetStopsTheRun) {
  RunSpec s = quiet(80, 300);
  s.step.tokens = 1e6;
  s.target_tokens = 1e6 * 17280 * 3;  // three days of 5 s steps
  const RunResult r = Simulator(s).run(1);
  EXPECT_TRUE(r.finished);
  EXPECT_NEAR(r.period.v, 3 * kSecondsPerDay, 1e-3);
  EXPECT_NEAR(r.tokens / s.target_tokens, 1, 1e-9);
}

// --- single mechanisms against arithmetic -----------------------------------------------------

TEST(Run, CorruptionIsSplitAtTheMomentItHappened) {
  RunSpec s = quiet(8000, 100);
  s.checkpoints = {{"remote", Extent::kSite, IntervalRule::kFixed, Seconds(3600), Seconds(0),
                    Seconds(0), Seconds(0)}};
  s.corruption = {1e-7, 0, Seconds(7200), 0, 0};
  s.repair = {Seconds(60), Seconds(60)};
  s.spares.nodes = 10;
  const Simulator simulator(s);
  double found = 0, undetected = 0, corruption = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const RunResult r = simulator.run(seed);
    found += static_cast<double>(r.interruptions);
    undetected += r.ledger[Account::kUndetected].v;
    corruption += r.ledger[Account::kCorruption].v;
  }
  ASSERT_GT(found, 300);
  EXPECT_NEAR(undetected / (found * 8000 * 7200), 1, 0.01);  // the lag
  EXPECT_NEAR(corruption / (found * 8000 * 1800), 1, 0.1);   // half an interval
}

TEST(Run, EmptyPoolWaitsForRepair) {
  RunSpec s = quiet(800, 100);
  FailureProcess f;
  f.name = "gpu";
  f.per_gpu_hour = 1e-5;
  f.detection = Seconds(0);
  s.failures = {f};
  s.repair = {Seconds(7200), Seconds(7200)};
  const RunResult r = Simulator(s).run(2);
  ASSERT_GT(r.interruptions, 5);
  EXPECT_EQ(r.spares_empty, r.interruptions);
  EXPECT_NEAR(r.ledger[Account::kReplacement].v / (800 * 7200.0 * double(r.interruptions)), 1, 0.1);
  s.spares.nodes = 5;
  EXPECT_EQ(Simulator(s).run(2).spares_empty, 0);
}

TEST(Run, ElasticFollowsItsClosedForm) {
  // FT-HSDP: 18 min between failures, 3 min stall, 7 min with 11 of 12 replicas.
  RunSpec s = quiet(96 * 8, 60);
  FailureProcess f;
  f.name = "gpu";
  f.per_gpu_hour = 1 / 0.3 / 768;
  f.replaced = 0;
  s.failures = {f};
  s.recovery.policy = RecoveryPolicy::kElastic;
  s.recovery.replicas = 12;
  s.recovery.leave_stall = Seconds(180);
  s.recovery.init_base = Seconds(420);
  // The closed form lets failures wait for each other; arrivals here overlap, so a stall is shared.
  EXPECT_NEAR(mean_goodput(s, 5), 0.80, 0.03);
}

TEST(Run, MemoryLimitsTooTightAndTooLoose) {
  RunSpec s = quiet(8192, 10);
  s.checkpoints = {{"remote", Extent::kSite, IntervalRule::kFixed, Seconds(600), Seconds(1),
                    Seconds(10), Seconds(10)}};
  s.memory = {Bytes(1e12), 0.1, Bytes(1.6e12), Bytes(2e12), Seconds(10), Seconds(300)};
  const double right = mean_goodput(s, 3);
  s.memory.limit = Bytes(1.25e12);
  const double tight = mean_goodput(s, 3);
  s.memory.limit = Bytes(4e12);
  s.memory.node = Bytes(1.25e12);
  const double loose = mean_goodput(s, 3);
  EXPECT_LT(tight, right);
  EXPECT_LT(loose, tight);
}

TEST(Run, StartUpIsAccountedOnce) {
  RunSpec s = quiet(800, 2);
  s.start = {Seconds(1200), 0, Bytes(20e9), Bandwidth(10e9), Bandwidth(0.5e9), 0.2};
  s.recovery.init_base = Seconds(50);
  s.recovery.init_per_gpu = Seconds(0.009);
  s.recovery.compile = Seconds(40);
  s.recovery.warmup = Seconds(30);
  const RunResult r = Simulator(s).run(1);
  EXPECT_NEAR(r.ledger[Account::kQueue].v / 800, 1200, 1e-6);
  // 80 nodes share 10 GB/s: 160 s; each alone would take 40 s.
  EXPECT_NEAR(r.ledger[Account::kImagePull].v / 800, 160, 1e-6);
  EXPECT_NEAR(r.ledger[Account::kInit].v / 800, 57.2, 1e-6);
  EXPECT_NEAR(r.ledger[Account::kCompile].v / 800, 40, 1e-6);
  EXPECT_NEAR(r.ledger[Account::kWarmup].v / 800, 30, 1e-6);
  EXPECT_NEAR(r.goodput, 1 - (1200 + 160 + 57.2 + 70) / (2 * kSecondsPerDay), 1e-9);
}

TEST(Run, SlowNodesSlowEveryStepUntilTheyAreEvicted) {
  RunSpec s = quiet(1024, 20);
  s.stragglers.slow_nodes = 0.02;
  s.stragglers.slow_by = 0.1;
  s.checkpoints = {{"remote", Extent::kSite, IntervalRule::kFixed, Seconds(60), Seconds(0),
                    Seconds(0), Seconds(0)}};
  const RunResult slow = Simulator(s).run(3);
  EXPECT_GT(slow.ledger[Account::kStraggler] / slow.paid, 0.05);
  FailureProcess f;
  f.name = "software";
  f.per_gpu_hour = 1.0 / 24 / 1024;
  f.extent = Extent::kProcess;
  s.failures = {f};
  s.spares.nodes = 20;
  s.repair = {Seconds(3600), Seconds(3600)};
  const RunResult kept = Simulator(s).run(3);  // restarts alone do not help
  EXPECT_GT(kept.ledger[Account::kStraggler], 0.9 * slow.ledger[Account::kStraggler]);
  s.stragglers.evicted_after = Seconds(3600);
  const RunResult evicted = Simulator(s).run(3);
  EXPECT_LT(evicted.ledger[Account::kStraggler], 0.3 * slow.ledger[Account::kStraggler]);
}

TEST(Run, FailSlowAndSlowLinksComeAndGo) {
  RunSpec s = quiet(1024, 50);
  s.stragglers.slow_link_per_node_day = 0.01;  // 1.28 a day for the job
  s.stragglers.slow_link_mean = Seconds(3600);
  s.stragglers.slow_link_by = 0.2;
  const Simulator simulator(s);
  double share = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const RunResult r = simulator.run(seed);
    share += r.ledger[Account::kStraggler] / r.paid / 20;
  }
  // Some link is slow for 1 - e^-(1.28/24) of the time; a sixth of that is lost.
  EXPECT_NEAR(share, -std::expm1(-1.28 / 24) * 0.2 / 1.2, 0.001);
}

TEST(Run, ShocksTakeWholeDomains) {
  RunSpec s = quiet(512, 200);
  s.shocks = {{"rack", 8, 1, Seconds(7200), 0, Seconds(0)}};
  s.spares.nodes = 8;
  const RunResult enough = Simulator(s).run(5);
  ASSERT_GT(enough.interruptions, 2);
  EXPECT_EQ(enough.spares_empty, 0);
  s.spares.nodes = 7;
  const RunResult short_of_one = Simulator(s).run(5);
  EXPECT_EQ(short_of_one.spares_empty, short_of_one.interruptions);
  EXPECT_NEAR(short_of_one.ledger[Account::kReplacement].v / 512,
              7200.0 * static_cast<double>(short_of_one.interruptions), 100);
}

// Rates are means whatever the shape: bursts change when, not how often, in the long run.
TEST(Run, BurstsKeepTheMeanRate) {
  RunSpec s = quiet(64, 3000);
  FailureProcess f;
  f.name = "burst";
  f.per_gpu_hour = 1e-4;
  f.extent = Extent::kProcess;
  f.detection = Seconds(0);
  f.shape = 0.7;
  s.failures = {f};
  const Simulator simulator(s);
  double count = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    count += static_cast<double>(simulator.run(seed).interruptions) / 20;
  }
  EXPECT_NEAR(count / (1e-4 * 64 * 3000 * 24), 1, 0.05);
}

TEST(Run, CheckFindsEverythingAtOnce) {
  EXPECT_TRUE(check(everything_on(8192, 54)).empty());
  RunSpec s = everything_on(8192, 54);
  s.failures[0].per_gpu_hour = -1;
  s.spares.nodes = -3;
  s.gpus = 8193;
  s.checkpoints[1].survives = Extent::kProcess;
  s.period = Seconds(NAN);
  s.site.hours[5].thermal_clock = 0;
  s.recovery.policy = RecoveryPolicy::kElastic;
  s.recovery.replicas = 1025;
  const std::vector<SpecProblem> problems = check(s);
  std::map<std::string, int> paths;
  for (const SpecProblem& p : problems) ++paths[p.path];
  for (const char* path :
       {"failures[0].per_gpu_hour", "spares.nodes", "gpus", "period", "checkpoints[1].survives",
        "site.hours[5].thermal_clock", "recovery.replicas"}) {
    EXPECT_EQ(paths[path], 1) << path;
  }
  EXPECT_EQ(problems.size(), 7u);
}

}  // namespace
}  // namespace assay
