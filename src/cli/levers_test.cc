// Advice must survive being followed: every lever of `assay simulate` is applied by the very
// options that it prints, with the same seeds, and gives the same bytes.
#include <gtest/gtest.h>

#include <set>

#include "cli/commands.h"
#include "cli/simulation.h"

namespace assay {
namespace {

constexpr int64_t kRuns = 6;

SimulateResult simulated(const std::vector<std::string>& words) {
  UsageErrors wrong;
  const Arguments args = parse(simulate_command(), words, wrong);
  const Context context = make_context(args, wrong);
  EXPECT_TRUE(wrong.empty());
  const SimulationAsk ask = read_simulation_ask(context, args, wrong);
  EXPECT_TRUE(wrong.empty());
  auto description = describe_run(args, args.operands);
  EXPECT_TRUE(description);
  const auto ready = ready_run(context, std::move(*description), ask);
  EXPECT_TRUE(ready);
  return run_it(context, **ready, ask);
}

bool same(const Band& a, const Band& b) {
  return a.p5 == b.p5 && a.p50 == b.p50 && a.p95 == b.p95 && a.mean == b.mean;
}

// The names of the levers that were followed.
std::set<std::string> follow_all(std::vector<std::string> words) {
  for (const char* more : {"--days", "20", "--set", "plan.recompute=full", "--set", "plan.tp=4",
                           "--set", "plan.pp=4", "--set", "plan.micro_batch=1"})
    words.push_back(more);
  words.insert(words.end(), {"--runs", std::to_string(kRuns)});
  const SimulateResult now = simulated(words);
  std::set<std::string> names;
  for (const LeverResult& lever : now.levers) {
    SCOPED_TRACE(lever.name + ": " + lever.change);
    std::vector<std::string> then = words;
    then.push_back("--no-what-ifs");
    EXPECT_FALSE(lever.settings.empty());
    for (const std::string& s : lever.settings) then.insert(then.end(), {"--set", s});
    const SimulateResult followed = simulated(then);
    ManyOptions options;
    options.runs = kRuns;
    const LeverResult pair =
        measure_levers(now.spec.spec, {{"", "", {}, followed.spec.spec}}, options).front();
    EXPECT_TRUE(same(pair.goodput, lever.goodput));
    EXPECT_TRUE(same(pair.useful_share, lever.useful_share));
    EXPECT_TRUE(same(pair.period, lever.period));
    names.insert(lever.name);
  }
  return names;
}

TEST(Levers, GiveWhatTheyPromiseWhenPasted) {
  std::set<std::string> followed;
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"llama-3.1-70b", "h100-128", "phoenix", "naive", "--start", "2026-07", "--set",
            "site.power.contracted=100kW", "--set", "site.storage.read=1GB/s", "--set",
            "site.storage.write=1GB/s", "--set", "site.storage.latency_p50=2s", "--set",
            "site.storage.latency_p99=60s"},
           {"llama-3.1-70b", "h100-128", "meta-llama3", "--set", "run.spares=30"},
           {"llama-3.1-70b", "h100-128", "--set", "run.recovery=elastic", "--set", "run.replicas=2",
            "--set", "run.standby_share=1", "--set", "run.spare_share=0", "--set",
            "run.reliability.repair_mean=60d"}}) {
    followed.merge(follow_all(words));
  }
  const std::set<std::string> all{"spares",
                                  "fewer spares",
                                  "detection",
                                  "warm standby",
                                  "elastic replicas",
                                  "initialisation",
                                  "checkpoint interval",
                                  "asynchronous save",
                                  "faster restore",
                                  "storage bandwidth",
                                  "peer-memory tier",
                                  "local-disk tier",
                                  "best recovery",
                                  "no slow nodes",
                                  "jitter",
                                  "prefetch",
                                  "hedged reads",
                                  "trim chiller",
                                  "pump control",
                                  "contracted power"};
  for (const std::string& name : all) EXPECT_TRUE(followed.contains(name)) << name;
  for (const std::string& name : followed) EXPECT_TRUE(all.contains(name)) << name;
}

}  // namespace
}  // namespace assay
