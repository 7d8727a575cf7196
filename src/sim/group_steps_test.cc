// Groups and links: a job that is smaller or slower than it was planned.
#include "sim/group_steps.h"

#include <gtest/gtest.h>

#include "sim/spec_case.h"

namespace assay {
namespace {

TEST(GroupSteps, ReplicasNeedNotDivideTheNodes) {
  for (const int64_t replicas : {2, 3, 4}) {  // of 16 nodes, two for one copy of the model
    Case c;
    make_stormy(c.run());
    c.run().recovery = Restart::kElastic;
    c.run().replicas = replicas;
    const SpecResult r = c.make();
    ASSERT_TRUE(spec_problems(r).empty()) << render(spec_problems(r));
    Case requeue = c;
    requeue.run().recovery = Restart::kRequeue;
    EXPECT_GT(many(r.spec).goodput.mean, many(requeue.make().spec).goodput.mean) << replicas;
  }
  Case c;
  c.run().recovery = Restart::kElastic;
  // Five and more are too small to hold the optimizer, too.
  for (const int64_t replicas : {5, 7, 8}) {
    c.run().replicas = replicas;
    const Diagnostics memory = spec_problems(c.make());
    ASSERT_EQ(memory.size(), 1u) << replicas;
    EXPECT_NE(memory[0].message.find("whole copy of the optimizer, needs 103 of 84.9 GB"),
              std::string::npos)
        << memory[0].message;
  }
  c.run().replicas = 9;
  const Diagnostics problems = spec_problems(c.make());
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].message,
            "run.replicas: 16 nodes cannot be 9 replicas; one that holds the whole model has 2 "
            "nodes");
  EXPECT_EQ(problems[0].help, "elastic recovery needs replicas of whole nodes: 2 to 8");
  // It points to where the number was stated.
  Origins origins;
  origins["run.replicas"] = {'s', "", "job.yaml", 7};
  EXPECT_EQ(spec_problems(c.make(), origins)[0].at.line, 7);
  // An optimizer that is sharded over more ranks than a replica has dies with it.
  c.run().replicas = 4;
  EXPECT_TRUE(spec_problems(c.make()).empty());
  c.description.plan.sharding_group = 4;
  ASSERT_EQ(spec_problems(c.make()).size(), 1u);
  EXPECT_NE(render(spec_problems(c.make())).find("plan.sharding_group"), std::string::npos);
  c.description.plan.sharding_group = 2;
  EXPECT_TRUE(spec_problems(c.make()).empty());
}

// The step of every group size is that of a job of this size, predicted for itself.
TEST(GroupSteps, SmallerGroupsArePredicted) {
  for (const ElasticBatch policy : {ElasticBatch::kShrink, ElasticBatch::kKeep}) {
    Case c;
    c.run().recovery = Restart::kElastic;
    c.run().replicas = 4;  // two of eight ranks each
    c.run().elastic_batch = policy;
    const std::vector<GroupPoint> points = c.make().spec.step.by_group;
    ASSERT_EQ(points.size(), 3u);
    for (size_t i = 0; i < points.size(); ++i) {
      const int64_t ranks = 4 + 2 * static_cast<int64_t>(i);
      EXPECT_NEAR(points[i].share, static_cast<double>(ranks) / 8, 1e-12);
      Setting s = c.description.setting;
      Plan plan = c.description.plan;
      plan.dp = 0;
      plan.sharding_group = 2;  // a replica's own
      const Prediction whole = Predictor(s).predict(plan);
      const int64_t batch = s.workload.global_batch;
      s.accelerators = 16 * ranks;
      const bool keep = policy == ElasticBatch::kKeep;
      s.workload.global_batch = keep ? (batch + ranks - 1) / ranks * ranks : batch * ranks / 8;
      const Prediction p = Predictor(s).predict(plan);
      // Accelerator time of a token that counts; what is rounded up counts for nothing.
      const double counted = std::min<double>(static_cast<double>(batch),
                                              static_cast<double>(s.workload.global_batch));
      const double time = p.step.v * static_cast<double>(ranks) / counted;
      EXPECT_NEAR(points[i].factor, time / (whole.step.v * 8 / static_cast<double>(batch)), 1e-9);
    }
    EXPECT_NE(points[0].factor, 1);
    EXPECT_EQ(points.back().factor, 1);
  }
}

// What is predicted is what happens: a replica away for good leaves tokens as the table says.
TEST(GroupSteps, TokensOfASmallerGroupFollowItsStep) {
  RunSpec s;
  s.gpus = 64;
  s.period = Seconds(10 * kSecondsPerDay);
  s.recovery.init_base = s.recovery.init_per_gpu = Seconds(0);
  s.step.tokens = 1e6;
  s.site.hours = {RunHour{1, 1, 0.5, false}};
  const double even = Simulator(s).run(1).tokens;
  EXPECT_NEAR(even, 1e6 * s.period.v / 2, 1e-6 * even);
  for (const double factor : {0.9, 1.0, 1.25}) {
    s.step.by_group = {{0.25, 2}, {0.5, factor}, {1, 1}};
    const RunResult r = Simulator(s).run(1);
    EXPECT_NEAR(r.tokens, even / factor, 1e-6 * even) << factor;
    EXPECT_NEAR(r.ledger[Account::kFragmentation] / r.paid, 0.5 * std::max(0.0, 1 - 1 / factor),
                1e-9);
  }
}

TEST(GroupSteps, ASlowLinkComesFromThePrediction) {
  Case c;
  const RunSpec spec = c.make().spec;
  EXPECT_GT(spec.stragglers.slow_link_by, 0);
  // Eight ports of which 0.057 % a month.
  EXPECT_NEAR(spec.stragglers.slow_link_per_node_day, 8 * 0.00057 / 30.4, 2e-6);
  Setting sick = c.description.setting;
  sick.cluster.fabric.degraded_links = 0.01;
  sick.cluster.fabric.degraded_speed = 0.5;
  const double step = Predictor(sick).predict(c.description.plan).step / c.prediction.step;
  EXPECT_NEAR(spec.stragglers.slow_link_by, step - 1, 1e-9);

  RunSpec often = spec, never = spec;
  often.stragglers.slow_link_per_node_day = 1;
  never.stragglers.slow_link_per_node_day = 0;
  EXPECT_LT(many(often).useful_share.mean, many(never).useful_share.mean);

  // A link that keeps all of its speed costs nothing.
  c.run().reliability.slow_link_speed = 1;
  EXPECT_EQ(c.make().spec.stragglers.slow_link_by, 0);
  // A profile that counts failures only has none; nor has a fabric that is slow all the time.
  c.run().reliability.slow_links_per_month = 0;
  EXPECT_EQ(c.make().spec.stragglers.slow_link_per_node_day, 0);
  Case always({"cluster.fabric.degraded_links=0.01", "cluster.fabric.degraded_speed=0.5"});
  EXPECT_EQ(always.make().spec.stragglers.slow_link_per_node_day, 0);
}

}  // namespace
}  // namespace assay
