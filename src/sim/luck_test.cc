// Luck: whatever is changed, all that is not changed stays as it was.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "sim/full_spec.h"
#include "sim/many.h"
#include "sim/quiet_spec.h"

namespace assay {
namespace {

std::map<std::string, std::vector<std::pair<int64_t, double>>> arrivals(const RunSpec& s) {
  std::map<std::string, std::vector<std::pair<int64_t, double>>> times;
  for (const RunEvent& e : traced(s, 3).events) {
    if (e.track == "machines") times[e.name].push_back({e.machine, e.begin.v});
  }
  return times;
}

// Whatever is changed, all that is not changed happens to the same machines at the same moments.
TEST(Luck, AChangeInOneCauseLeavesEveryOtherWhereItWas) {
  RunSpec base = everything_on(4096, 30);
  for (FailureProcess& f : base.failures) f.per_gpu_hour *= 4;
  for (ShockProcess& h : base.shocks) h.per_year *= 20;
  base.corruption.per_gpu_hour *= 10;
  base.stragglers.fail_slow_per_node_day *= 10;
  const auto before = arrivals(base);
  for (const char* cause :
       {"gpu", "software", "rack power", "site", "silent corruption", "fail-slow", "slow link"}) {
    ASSERT_TRUE(before.contains(cause)) << cause;
  }
  struct Change {
    const char* concerns;  // whose arrivals may move
    std::function<void(RunSpec&)> apply;
  };
  const Change changes[] = {
      {"gpu", [](RunSpec& s) { s.failures[0].per_gpu_hour *= 2; }},
      {"gpu", [](RunSpec& s) { s.failures.erase(s.failures.begin()); }},
      {"hbm", [](RunSpec& s) { s.failures[1].frailty = 0; }},
      {"software", [](RunSpec& s) { s.failures[10].shape = 0.5; }},
      {"rack power", [](RunSpec& s) { s.shocks[0].per_year *= 2; }},
      {"silent corruption", [](RunSpec& s) { s.corruption.per_gpu_hour *= 2; }},
      {"fail-slow", [](RunSpec& s) { s.stragglers.fail_slow_per_node_day *= 2; }},
      {"slow link", [](RunSpec& s) { s.stragglers.slow_link_per_node_day = 0; }},
      {"out of memory", [](RunSpec& s) { s.memory.limit = Bytes(1.1e12); }},
      {"", [](RunSpec& s) { s.recovery.policy = RecoveryPolicy::kWarmStandby; }},
      {"", [](RunSpec& s) { s.recovery.init_per_gpu = Seconds(0.1); }},
      {"", [](RunSpec& s) { s.checkpoints.pop_back(); }},
      {"", [](RunSpec& s) { s.maintenance.every /= 3; }},
      {"", [](RunSpec& s) { s.repair.median /= 10; }},
      {"", [](RunSpec& s) { s.site = {}; }},
      {"", [](RunSpec& s) { s.site.others.push_back(s.site.hours); }},
      {"", [](RunSpec& s) { s.start.queue_median *= 9; }},
      {"", [](RunSpec& s) { s.stragglers.slow_nodes = 0; }},
      {"", [](RunSpec& s) { s.data.hedges = 0; }}};
  for (const Change& change : changes) {
    RunSpec s = base;
    change.apply(s);
    const auto after = arrivals(s);
    for (const auto& [name, times] : before) {
      if (name == change.concerns) continue;
      ASSERT_TRUE(after.contains(name)) << name;
      EXPECT_EQ(after.at(name), times) << name << " moved with " << change.concerns;
    }
    if (before.contains(change.concerns)) {
      EXPECT_FALSE(after.contains(change.concerns) &&
                   after.at(change.concerns) == before.at(change.concerns))
          << change.concerns;
    }
  }
}

// Two causes that strike one machine are not mended in the same time.
TEST(Luck, CausesHaveTheirOwnRepairs) {
  RunSpec s = quiet(512, 400);
  s.failures = {failure("gpu", 2e-4), failure("hbm", 2e-4)};
  for (FailureProcess& f : s.failures) f.replaced = 1;
  s.checkpoints = {tier("remote", Extent::kSite, 60)};
  s.repair = {Seconds(600), Seconds(1200)};
  s.spares.nodes = 40;
  std::map<int64_t, std::map<std::string, int64_t>> first;  // by machine and cause, ms
  std::map<int64_t, std::pair<std::string, double>> failed;
  for (const RunEvent& e : traced(s, 2).events) {
    if (e.name == "gpu" || e.name == "hbm") failed.try_emplace(e.machine, e.name, e.begin.v);
    if (e.name != "repaired" || !failed.contains(e.machine)) continue;
    const auto [cause, at] = failed[e.machine];
    first[e.machine].try_emplace(cause, std::llround((e.begin.v - at) * 1e3));
    failed.erase(e.machine);
  }
  int both = 0;
  for (const auto& [machine, repairs] : first) {
    if (repairs.size() < 2) continue;
    ++both;
    EXPECT_NE(repairs.at("gpu"), repairs.at("hbm")) << machine;
  }
  EXPECT_GT(both, 50);
}

// Nor do repairs: what is drawn about an arrival belongs to it.
TEST(Luck, RepairsBelongToTheirFailures) {
  RunSpec s = quiet(4096, 60);
  s.failures = {failure("gpu", 1e-5), failure("software", 1e-4, Extent::kProcess)};
  s.failures[0].replaced = 1;
  s.checkpoints = {tier("remote", Extent::kSite, 60)};
  s.recovery.init_base = Seconds(3600);
  s.corruption = {2e-5, 0, Seconds(600), 1, 0};
  s.repair = {Seconds(3600), Seconds(4 * 3600)};
  s.spares.nodes = 60;
  const auto repaired = [](const RunSpec& spec) {
    std::set<int64_t> moments;
    for (const RunEvent& e : traced(spec, 9).events) {
      if (e.name == "repaired") moments.insert(std::llround(e.begin.v * 1e3));
    }
    return moments;
  };
  const std::set<int64_t> before = repaired(s);
  ASSERT_GT(before.size(), 30u);
  // Software that fails less often lets the job step, so that more corruptions count; those that
  // counted before, and all failures, are mended at the same millisecond.
  s.failures[1].per_gpu_hour = 1e-6;
  const std::set<int64_t> after = repaired(s);
  std::vector<int64_t> both;
  std::set_intersection(before.begin(), before.end(), after.begin(), after.end(),
                        std::back_inserter(both));
  EXPECT_GT(static_cast<double>(after.size()), 1.1 * static_cast<double>(before.size()));
  EXPECT_GT(static_cast<double>(both.size()), 0.9 * static_cast<double>(before.size()));
}

// Weather is luck of its own: runs meet each kind about as often, the clocks follow it, and a
// change of something else meets the same weather in every run.
TEST(Luck, WeatherIsDrawnByEachRunAndByNothingElse) {
  RunSpec s = quiet(64, 10);
  s.site.hours.assign(240, RunHour{});
  s.site.others.assign(3, s.site.hours);
  for (RunHour& h : s.site.others[1]) h.thermal_clock = 0.8;  // a hot summer
  RunSpec other = s;
  other.spares.nodes += 4;
  other.checkpoints.clear();
  std::map<size_t, int> met;
  const Simulator runs(s), changed(other);
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    const size_t weather = weather_of(s.site, seed);
    ASSERT_LT(weather, 4u);
    ++met[weather];
    ASSERT_EQ(weather, weather_of(other.site, seed));
    const double clock = runs.run(seed).series[5].clock;
    EXPECT_NEAR(clock, weather == 2 ? 0.8 : 1, 1e-9) << seed;
    EXPECT_NEAR(changed.run(seed).series[5].clock, clock, 1e-9) << seed;
  }
  for (size_t weather = 0; weather < 4; ++weather) EXPECT_NEAR(met[weather], 100, 35) << weather;
  // One hot summer in four is within the fifth percentile and far from the median.
  ManyOptions options;
  options.runs = 100;
  const ManyResult many = simulate_many(s, options);
  EXPECT_LT(many.useful_share.p5, many.useful_share.p50 - 0.1);
  s.site.others.clear();
  const ManyResult one = simulate_many(s, options);
  EXPECT_NEAR(one.useful_share.p5, one.useful_share.p50, 0.01);
}

}  // namespace
}  // namespace assay
