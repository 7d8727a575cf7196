// The closed forms against the simulation of the same spec, one cause at a time and together.
#include "sim/expect.h"

#include <gtest/gtest.h>

#include <cmath>

#include <fmt/format.h>

#include "sim/full_spec.h"
#include "sim/quiet_spec.h"
#include "sim/spec_case.h"

namespace assay {
namespace {

constexpr double kPoint = 0.01;

// A job of the catalog as `plan` and `simulate` would run it.
RunSpec described(const char* run, const char* cluster, int64_t gpus, double target_days) {
  Request r;
  r.inputs = {"llama-3.1-70b", cluster, run};
  r.sets = {"plan.tp=8", "plan.pp=4", "plan.micro_batch=1", "plan.recompute=full",
            "workload.global_batch=4096"};
  r.needs_operations = true;
  r.gpus = gpus;
  const tl::expected<Description, Diagnostics> d = describe(r, catalog());
  ASSERT(d && "a test describes what can be");
  const Prediction p = Predictor(d->setting).predict(d->plan);
  SpecInput in;
  in.setting = &d->setting;
  in.plan = &d->plan;
  in.prediction = &p;
  in.operations = &d->operations;
  in.period = Seconds((target_days > 0 ? 100 : 30) * kSecondsPerDay);
  in.tokens = p.tokens_per_s * target_days * kSecondsPerDay;
  return make_spec(in).spec;
}

void expect_agreement(const std::string& name, const RunSpec& spec, double within = kPoint) {
  const Expectation e = expect_run(spec);
  const ManyResult m = many(spec);
  EXPECT_NEAR(e.goodput, m.goodput.mean, within) << name;
  EXPECT_NEAR(e.goodput, e.places * e.machines * e.planned * e.hours * e.input * e.start, 1e-12)
      << name;
  if (spec.target_tokens > 0) {
    EXPECT_NEAR(e.time / Seconds(m.period.mean), 1, kPoint) << name;
  } else {  // tokens say how fast its steps are
    const double tokens = e.time.v * e.goodput / e.slowdown / spec.step.step.v * spec.step.tokens;
    EXPECT_NEAR(tokens / m.tokens.mean, 1, 2 * within / e.goodput) << name;
  }
}

TEST(Expect, AgreesWithTheSimulationOfEveryCataloguedOperation) {
  for (const Operations& o : catalog().operations)
    expect_agreement(o.name, described(o.name.c_str(), "h100-1024", 0, 0));
}

TEST(Expect, WaitsForLateBatchesCount) {
  RunSpec spec = described("usual", "h100-1024", 0, 0);
  spec.data.latency_median = Seconds(0.2);
  spec.data.latency_p99 = Seconds(8);
  spec.data.prefetch = 2;
  EXPECT_LT(expect_run(spec).input, 0.995);
  expect_agreement("late batches", spec);
}

TEST(Expect, AgreesOnTheTimeToATarget) {
  for (const char* run : {"usual", "best-known", "naive", "ft-hsdp-elastic"})
    expect_agreement(run, described(run, "h100-1024", 0, 10));
}

TEST(Expect, AgreesAtScale) {
  for (const char* run : {"usual", "best-known", "meta-llama3", "ft-hsdp-elastic"})
    expect_agreement(run, described(run, "h100-24k-meta", 24576, 0));
  expect_agreement("everything", everything_on(8192, 30));
}

TEST(Expect, WithoutFailuresOnlyTheStartIsLost) {
  RunSpec s = quiet(1024, 10);
  s.recovery.init_base = Seconds(864);
  const Expectation e = expect_run(s);
  EXPECT_NEAR(e.goodput, 1 - 0.001, 1e-12);
  EXPECT_EQ(e.slowdown, 1);
  EXPECT_TRUE(std::isinf(e.mtbf.v));
}

TEST(Expect, IsTheExactFormWhereThatIsAllThereIs) {
  RunSpec s = quiet(16384, 60);
  s.failures = {failure("gpu", 2e-5)};
  s.recovery.init_base = Seconds(300);
  CheckpointTier remote = tier("remote", Extent::kSite, 0);
  remote.rule = IntervalRule::kOptimal;
  remote.stall = Seconds(20);
  s.checkpoints = {remote};
  const CheckpointCosts costs{Seconds(3600 / (2e-5 * 16384)), Seconds(20), Seconds(0),
                              Seconds(300)};
  const double start = 1 - 300 / s.period.v;
  EXPECT_NEAR(expect_run(s).goodput / start, exact_ettr(costs, optimal_period(costs)), 1e-9);
}

TEST(Expect, TheSitesHoursCount) {
  RunSpec s = quiet(1024, 10);
  s.step.tokens = 1;
  s.site.hours.resize(24);
  for (int h = 0; h < 6; ++h) s.site.hours[static_cast<size_t>(h)].powered = 0;
  for (int h = 6; h < 12; ++h) s.site.hours[static_cast<size_t>(h)].thermal_clock = 0.8;
  const Expectation e = expect_run(s);
  EXPECT_NEAR(e.goodput, 0.75, 1e-12);
  EXPECT_NEAR(e.slowdown, 18 / (12 + 6 * 0.8), 1e-12);
  expect_agreement("hours", s, 1e-3);
}

TEST(Expect, APoolThatIsEmptyHoldsTheJobUp) {
  for (const int64_t spares : {0, 1, 2, 4}) {
    RunSpec s = quiet(1024, 60);
    s.step.tokens = 1;
    s.failures = {failure("gpu", 2e-5)};
    s.failures[0].replaced = 1;
    s.repair = {Seconds(12 * 3600), Seconds(48 * 3600)};
    s.spares.nodes = spares;
    s.checkpoints = {tier("remote", Extent::kSite, 600)};
    expect_agreement(fmt::format("{} spares", spares), s, 1.5 * kPoint);
  }
}

TEST(Expect, AJobThatCannotEndSaysSo) {
  RunSpec s = quiet(16384, 1000);
  s.failures = {failure("gpu", 2e-3)};
  s.recovery.init_base = Seconds(36000);
  s.target_tokens = 1e15, s.step.tokens = 1;
  const Expectation e = expect_run(s);
  EXPECT_TRUE(e.goodput >= 0 && e.goodput < 1e-9);
  EXPECT_GT(e.time.v, 1000 * kSecondsPerYear);
  EXPECT_FALSE(std::isnan(e.time.v));
}

}  // namespace
}  // namespace assay
