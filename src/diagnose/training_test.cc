#include "diagnose/training.h"

#include <filesystem>
#include <functional>

#include <gtest/gtest.h>

#include "ingest/text_file.h"

namespace assay {
namespace {

const std::string kPublic = std::string(ASSAY_ROOT) + "/../shared/data/public/";

// A log of `n` iterations whose step is given; the clock runs along.
TrainingLog log_of(int64_t n, const std::function<double(int64_t)>& step) {
  TrainingLog log;
  log.file = "train.log";
  double at_s = 1e9;
  for (int64_t i = 1; i <= n; ++i) {
    TrainingIteration it;
    it.line = static_cast<int>(10 * i);
    it.iteration = i;
    it.elapsed = Seconds(step(i));
    it.batch = 1024;
    at_s += step(i);
    it.at_s = at_s;
    log.iterations.push_back(it);
  }
  return log;
}

// A little scatter, always the same.
double noisy(int64_t i) { return 10 + 0.05 * static_cast<double>((i * 7919) % 11 - 5); }

Seconds sum(const TrainingPeriod& p) {
  return p.steps + p.slow_steps + p.warm_up + p.lost_work + p.checkpoint + p.evaluation +
         p.start_up + p.gaps + p.other;
}

TEST(Training, ASteadyRunIsHealthy) {
  const TrainingDiagnosis d = diagnose_training_log(log_of(200, noisy));
  EXPECT_TRUE(d.analysis.findings.empty());
  EXPECT_EQ(d.period.iterations, 200);
  EXPECT_NEAR(d.period.usual_step.v, 10, 0.1);
  EXPECT_NEAR(sum(d.period).v, d.period.wall.v, 1e-6);
}

TEST(Training, BatchesThatGrowAreNotASlowDown) {
  TrainingLog log = log_of(100, noisy);
  for (size_t i = 0; i < 100; ++i) {
    log.iterations[i].batch = i < 40 ? 512 : 1024;
    log.iterations[i].elapsed = Seconds(i < 40 ? 5.0 : noisy(static_cast<int64_t>(i)));
  }
  EXPECT_TRUE(diagnose_training_log(log).analysis.findings.empty());
}

TEST(Training, ALastingSlowDown) {
  const TrainingDiagnosis d = diagnose_training_log(
      log_of(120, [](int64_t i) { return noisy(i) * (i > 60 ? 1.064 : 1.0); }));
  ASSERT_EQ(d.analysis.findings.size(), 1u);
  const Finding& f = d.analysis.findings[0];
  EXPECT_EQ(f.cause, Cause::kStraggler);
  EXPECT_NE(f.title.find("iteration 61"), std::string::npos) << f.title;
  EXPECT_NEAR(f.share, 1 - 1 / 1.064, 0.002);
  EXPECT_NEAR(f.gain.v, 0.64, 0.02) << "of one step";
  EXPECT_NEAR(f.step_after->v, 10, 0.1);
}

TEST(Training, PeriodicSpikes) {
  const auto spiky = [](int64_t i) { return noisy(i) + (i % 10 == 0 ? 8 : 0); };
  TrainingLog log = log_of(200, spiky);
  const TrainingDiagnosis d = diagnose_training_log(log);
  ASSERT_EQ(d.analysis.findings.size(), 1u);
  EXPECT_EQ(d.analysis.findings[0].cause, Cause::kGarbageCollection);
  EXPECT_NE(d.analysis.findings[0].title.find("every 10 iterations"), std::string::npos);
  EXPECT_NEAR(d.analysis.findings[0].share, 0.8 / 10.8, 0.005);
  // At checkpoints they are what checkpoints cost, not garbage.
  for (int i = 10; i <= 200; i += 10) {
    log.events.push_back({TrainingEventKind::kCheckpointSaved, 10 * i - 1, {}, i, {}});
  }
  EXPECT_TRUE(diagnose_training_log(log).analysis.findings.empty());
}

TEST(Training, RestartsLoseWork) {
  TrainingLog log = log_of(100, noisy);
  TrainingLog second = log_of(60, noisy);
  for (TrainingIteration& it : second.iterations) {
    it.iteration += 80;  // back to the checkpoint of iteration 80
    it.line += 2000;
    *it.at_s += 100 * 10 + 600;
    log.iterations.push_back(it);
  }
  const TrainingDiagnosis d = diagnose_training_log(log);
  EXPECT_EQ(d.period.restarts, 1);
  EXPECT_EQ(d.period.repeated, 20);
  EXPECT_NEAR(d.period.lost_work.v, 200, 5);
  EXPECT_EQ(d.period.iterations, 140);
  EXPECT_NEAR(d.period.start_up.v, 600, 20);
  EXPECT_NEAR(sum(d.period).v, d.period.wall.v, 1e-6);
  EXPECT_EQ(d.analysis.open.size(), 1u);
}

TEST(Training, AWholeLog) {
  const std::string path = std::string(ASSAY_ROOT) + "/test/data/logs/train.log";
  const TrainingDiagnosis d = diagnose_training_log(read_training_log(*read_text(path), path));
  ASSERT_EQ(d.analysis.findings.size(), 1u);
  EXPECT_EQ(d.analysis.findings[0].cause, Cause::kStraggler);
  EXPECT_NE(d.analysis.findings[0].title.find("iteration 51"), std::string::npos);
  EXPECT_EQ(d.period.restarts, 1);
  EXPECT_EQ(d.period.repeated, 10);
  EXPECT_NEAR(d.period.start_up.v, 90 + 200 + 60, 5);
  EXPECT_NEAR(d.period.checkpoint.v, 3 * 20, 5) << "the fourth is the last line";
  EXPECT_NEAR(d.period.warm_up.v, 4 + 3, 0.5);
  EXPECT_NEAR(sum(d.period).v, d.period.wall.v, 1e-6);
}

TEST(Training, AStandstillIsAHang) {
  TrainingLog log = log_of(100, noisy);
  for (size_t i = 50; i < 100; ++i) *log.iterations[i].at_s += 3600;
  const TrainingDiagnosis d = diagnose_training_log(log);
  ASSERT_EQ(d.analysis.findings.size(), 1u);
  EXPECT_EQ(d.analysis.findings[0].cause, Cause::kHang);
  EXPECT_NEAR(d.analysis.findings[0].gain.v, 3600, 1);
  EXPECT_NEAR(d.period.gaps.v, 3600, 20);
}

TEST(Training, PublishedLogs) {
  if (!std::filesystem::exists(kPublic)) GTEST_SKIP() << "SKIPPED: " << kPublic << " is absent";
  const auto read = [](const std::string& name) {
    return diagnose_training_log(read_training_log(*read_text(kPublic + name), name));
  };
  const TrainingDiagnosis jean = read("jobs/llm_run_logs/jeanzay_megatron_deepspeed_n16.out");
  EXPECT_TRUE(jean.analysis.findings.empty()) << jean.analysis.findings[0].title;
  EXPECT_EQ(jean.period.iterations, 49);
  EXPECT_EQ(jean.period.restarts, 0);
  EXPECT_NEAR(jean.period.usual_step.v, 138, 2);
  EXPECT_GT(jean.period.warm_up.v, 15) << "the first step took 160 s";
  const TrainingDiagnosis bloom =
      read("jobs/llm_run_logs/bloom176b_megatron_iterations_excerpt.log");
  EXPECT_EQ(bloom.period.iterations, 18);
  EXPECT_GT(bloom.period.unlogged, 30000) << "it is an excerpt";
  const TrainingDiagnosis superbench = read("telemetry/superbench/megatron_deepspeed.log");
  EXPECT_TRUE(superbench.analysis.findings.empty());
  EXPECT_NEAR(superbench.period.start_up.v, 17, 0.5);
  EXPECT_NEAR(superbench.period.wall.v, 393, 1);
  for (const TrainingDiagnosis* d : {&jean, &bloom, &superbench}) {
    EXPECT_NEAR(sum(d->period).v, d->period.wall.v, 1e-6);
  }
}

TEST(Training, ALossThatIsNoNumberIsAFinding) {
  TrainingLog log = log_of(60, noisy);
  log.iterations[20].loss_is_nan = true;  // one that was skipped
  for (const Finding& f : diagnose_training_log(log).analysis.findings)
    EXPECT_NE(f.cause, Cause::kDiverged);
  for (size_t i = 45; i < 60; ++i) log.iterations[i].loss_is_nan = true;
  const TrainingDiagnosis d = diagnose_training_log(log);
  ASSERT_EQ(d.analysis.findings.size(), 1u);
  const Finding& f = d.analysis.findings.front();
  EXPECT_EQ(f.cause, Cause::kDiverged);
  EXPECT_TRUE(f.urgent);
  EXPECT_NEAR(f.share, 0.25, 0.03);
  EXPECT_EQ(f.evidence.front().rows.size(), 15u);
}

TEST(Training, OddLogs) {
  EXPECT_TRUE(diagnose_training_log({}).analysis.findings.empty());
  TrainingLog one = log_of(1, noisy);
  EXPECT_EQ(diagnose_training_log(one).period.iterations, 1);
  TrainingLog bare = log_of(30, noisy);
  for (TrainingIteration& it : bare.iterations) {
    it.elapsed.reset();
    it.at_s.reset();
    it.loss_is_nan = true;
  }
  const TrainingDiagnosis d = diagnose_training_log(bare);
  EXPECT_EQ(d.period.nan_losses, 30);
  EXPECT_DOUBLE_EQ(d.period.wall.v, 0);
  TrainingLog backwards = log_of(30, noisy);
  std::reverse(backwards.iterations.begin(), backwards.iterations.end());
  EXPECT_EQ(diagnose_training_log(backwards).period.restarts, 29);
}

}  // namespace
}  // namespace assay
