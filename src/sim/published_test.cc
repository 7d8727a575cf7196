// Published runs, simulated from their published inputs. Rates come from catalog/reliability.yaml
// as counted; every input that the publication does not give is listed in `assumed`. Bands were set
// before the first run: 0.03 where the publication describes its recovery, 0.05 where it was done
// by hand.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "sim/many.h"
#include "world/catalog.h"

namespace assay {
namespace {

constexpr double kMinute = 60, kHour = 3600;

struct Published {
  const char* name;
  double goodput;
  double band;
  RunSpec spec;
  const char* assumed;
};

const Reliability& reliability(const std::string& name) {
  for (const Reliability& r : catalog().reliability) {
    if (r.name == name) return r;
  }
  ADD_FAILURE() << "no reliability entry " << name;
  return catalog().reliability.front();
}

// 16,384 GPUs for 54 days, as printed, whether the job stepped or not: machines' clocks run in
// calendar time here, too.
constexpr double kLlama3GpuHours = 21233664;

RunSpec base(int64_t gpus, double days, const std::string& profile, bool inspected) {
  const Reliability& r = reliability(profile);
  const bool llama3 = profile == "llama3-16k";
  const double exposure = llama3 ? kLlama3GpuHours : r.exposure_gpu_hours;
  RunSpec s;
  s.gpus = gpus;
  s.period = Seconds(days * kSecondsPerDay);
  s.step.step = Seconds(10);
  for (const FailureKind& f : r.failures) {
    FailureProcess p;
    p.name = f.kind;
    p.per_gpu_hour = f.count / exposure;
    p.extent = f.extent == FailureExtent::kProcess ? Extent::kProcess : Extent::kNode;
    p.detection = inspected ? f.inspected : f.watchdog;
    p.replaced = f.replaced;
    if (p.extent == Extent::kNode) p.frailty = r.lemon_shape;
    s.failures.push_back(p);
  }
  s.corruption = {llama3 ? 6 / exposure : r.corruption_per_gpu_hour, 0, r.corruption_noticed, 1, 0};
  s.repair = {r.repair_median, r.repair_mean};
  return s;
}

CheckpointTier remote(double interval, double stall, double restore) {
  return {"remote",       Extent::kSite, IntervalRule::kFixed, Seconds(interval),
          Seconds(stall), Seconds(0),    Seconds(restore)};
}

RunSpec llama3() {
  RunSpec s = base(16384, 54, "llama3-16k", true);
  s.spares.nodes = 64;
  CheckpointTier t = remote(0, 10, 30);
  t.rule = IntervalRule::kOptimal;
  s.checkpoints = {t};
  s.recovery.requeue_wait = Seconds(60);
  s.recovery.swap = Seconds(60);
  s.maintenance = {Seconds(54 * kSecondsPerDay / 47.5), Seconds(10 * kMinute)};
  s.corruption.detection_median = Seconds(30 * kMinute);
  return s;
}

RunSpec bloom() {
  RunSpec s = base(384, 108, "bloom-2022", false);
  for (FailureProcess& f : s.failures) {
    if (f.name == "gpu") f.per_gpu_hour = 1.5 / (7 * 24 * 384.0);
  }
  s.spares.nodes = 4;
  // 12 min of evaluation every 1,000 iterations of 105 s, with the saves.
  const double evaluation = 12 * kMinute * 3 * kHour / (1000 * 105.0);
  s.checkpoints = {remote(3 * kHour, 40 + evaluation, 120)};
  s.recovery.requeue_wait = Seconds(10 * kMinute);
  s.recovery.warmup = Seconds(5 * kMinute);
  return s;
}

RunSpec opt() {
  RunSpec s = base(992, 56, "opt-2021", false);
  // "About two machines go down every day"; the 90 restarts were counted over calendar time, during
  // much of which the job was down.
  for (FailureProcess& f : s.failures) f.per_gpu_hour = 2.0 / (24 * 992);
  s.spares.nodes = 12;
  s.checkpoints = {remote(3 * kHour, 60, 10 * kMinute)};
  s.recovery.requeue_wait = Seconds(2 * kHour);
  s.recovery.swap = Seconds(2 * kHour);
  return s;
}

RunSpec rsc1() {
  RunSpec s = base(1024, 30, "rsc-1", true);
  for (FailureProcess& f : s.failures) f.detection = Seconds(0);
  s.spares.nodes = 8;
  s.checkpoints = {remote(kHour, 5 * kMinute, 0)};
  s.recovery.init_base = Seconds(10 * kMinute);
  s.recovery.init_per_gpu = Seconds(0);
  return s;
}

RunSpec byterobust() {
  RunSpec s = base(9600, 90, "llama3-16k", true);
  s.spares.nodes = 5;
  // Four standbys for 1,024 machines at the 99th percentile: the pool is full again within the time
  // in which one in a thousand machines fails, 6.5 h at these rates.
  s.repair = {Seconds(4 * kHour), Seconds(6.5 * kHour)};
  s.checkpoints = {{"peer memory", Extent::kNode, IntervalRule::kFixed, Seconds(10), Seconds(0.09),
                    Seconds(1), Seconds(5)},
                   remote(30 * kMinute, 1, 60)};
  s.recovery.policy = RecoveryPolicy::kWarmStandby;
  s.recovery.standby_share = 0.3;
  s.recovery.swap = Seconds(30);
  s.recovery.warmup = Seconds(60);
  s.corruption.detection_median = Seconds(kHour);
  return s;
}

RunSpec ft_hsdp_synchronous() {
  RunSpec s = base(98304, 10, "rsc-1", true);
  for (FailureProcess& f : s.failures) f.detection = Seconds(60);
  s.spares.nodes = 1000;
  CheckpointTier t = remote(0, 20, 0);
  t.rule = IntervalRule::kOptimal;
  s.checkpoints = {t};
  s.recovery.init_base = Seconds(600);
  s.recovery.init_per_gpu = Seconds(0);
  return s;
}

RunSpec ft_hsdp_elastic() {
  RunSpec s = ft_hsdp_synchronous();
  s.checkpoints.clear();
  s.recovery.policy = RecoveryPolicy::kElastic;
  s.recovery.replicas = 12;
  s.recovery.leave_stall = Seconds(180);
  s.recovery.init_base = Seconds(420);
  return s;
}

std::vector<Published> published() {
  return {
      {"Llama 3 405B, 16,384 H100, 54 days", 0.92, 0.03, llama3(),
       "64 spare nodes; save 10 s, restore 30 s (5.29 TB at 0.5 TB/s of the 2 TB/s); requeue and "
       "swap "
       "60 s each; planned stops 10 min; the published bound is > 0.90, taken as 0.90 to 0.95"},
      {"BLOOM-176B, 384 A100, 108 days", 0.925, 0.03, bloom(),
       "1.5 crashes a week (one by the chronicles, one to two by the paper); requeue 10 min, start "
       "5 min; the cluster's own maintenance is left out"},
      {"OPT-175B, 992 A100, 56 days", 0.59, 0.05, opt(),
       "save every 3 h, 60 s; 2 h until somebody acts and 2 h to replace a host by hand"},
      {"Meta RSC-1, 1,024 GPUs", 0.90, 0.03, rsc1(),
       "the paper's own assumptions: restart 10 min, save 5 min every hour"},
      {"ByteRobust, 9,600 GPUs, 3 months", 0.97, 0.03, byterobust(),
       "Llama 3's rates; corruption noticed in 1 h; standby pays 30 % of the initialisation, swap "
       "30 s, warm-up 1 min"},
      {"FT-HSDP, 98,304 GPUs, synchronous", 0.44, 0.03, ft_hsdp_synchronous(),
       "RSC-1's rate (18 min between failures); save 20 s; detection 1 min, restart 10 min"},
      {"FT-HSDP, 98,304 GPUs, 12 replicas", 0.80, 0.03, ft_hsdp_elastic(),
       "the same rate; stall 3 min and 7 min away as published; enough spares"},
  };
}

TEST(Published, RunsAreReproduced) {
  for (const Published& p : published()) {
    ASSERT_TRUE(check(p.spec).empty()) << p.name << ": " << check(p.spec)[0].path;
    EXPECT_GT(std::string(p.assumed).size(), 10u);
    ManyOptions o;
    o.runs = 20;
    o.seed = 1;
    o.threads = 2;
    const ManyResult r = simulate_many(p.spec, o);
    fmt::print("{:<40}{:.3f} published, {:.3f} simulated ({:.3f} to {:.3f})\n", p.name, p.goodput,
               r.goodput.mean, r.goodput.p5, r.goodput.p95);
    EXPECT_NEAR(r.goodput.mean, p.goodput, p.band) << p.name << ", assumed: " << p.assumed;
  }
}

TEST(Published, Llama3IsInterruptedAsOften) {
  ManyOptions o;
  o.runs = 40;
  const ManyResult r = simulate_many(llama3(), o);
  // 419 counted; failures while the job is down already interrupt nothing.
  EXPECT_NEAR(r.interruptions.mean / 419, 1, 0.05);
  const auto counted = [&](const std::string& name) {
    for (const CauseBand& c : r.causes) {
      if (c.name == name) return c.interruptions.mean;
    }
    return 0.0;
  };
  EXPECT_NEAR(counted("gpu") / 148, 1, 0.1);
  EXPECT_NEAR(counted("hbm") / 72, 1, 0.1);
  EXPECT_NEAR(counted("maintenance"), 47, 1);
}

}  // namespace
}  // namespace assay
