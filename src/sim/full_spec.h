// For tests and benchmarks: a run with everything on. Not a description of any cluster.
#pragma once

#include <cmath>

#include "sim/run.h"

namespace assay {

inline HourSeries hot_afternoons() {
  HourSeries s;
  for (int h = 0; h < 24; ++h) {
    RunHour hour;
    hour.thermal_clock = 1 - 0.02 * std::max(0.0, std::sin((h - 9) * M_PI / 12));
    hour.facility_clock = h >= 16 && h < 20 ? 0.97 : 1.0;
    hour.powered = h == 18 ? 0.95 : 1.0;
    s.hours.push_back(hour);
  }
  return s;
}

inline RunSpec everything_on(int64_t gpus, double days) {
  RunSpec s;
  s.gpus = gpus;
  s.period = Seconds(days * kSecondsPerDay);
  s.step.step = Seconds(5);
  s.step.tokens = 16e6;
  s.step.ledger[Account::kUseful] = Seconds(2);
  s.step.ledger[Account::kMatmul] = Seconds(2.5);
  s.step.ledger[Account::kCommGrad] = Seconds(0.5);
  const char* nodes[] = {"gpu",  "hbm", "sram", "nic",  "cpu",
                         "dram", "ssd", "psu",  "pcie", "nvlink"};
  for (const char* name : nodes) {
    FailureProcess f;
    f.name = name;
    f.per_gpu_hour = 1.5e-6;
    f.detection = Seconds(30);
    f.detection_sigma = 0.5;
    f.replaced = 0.7;
    f.frailty = 0.5;
    s.failures.push_back(f);
  }
  FailureProcess software{"software", 2.5e-6, Extent::kProcess, Seconds(60), 1.0, 0, 1, 0};
  FailureProcess hang{"hang", 3e-7, Extent::kProcess, Seconds(600), 0, 0, 0.7, 0};
  s.failures.push_back(software);
  s.failures.push_back(hang);
  s.shocks = {{"rack power", 8, 0.2, Seconds(7200), 1, Seconds(30)},
              {"leaf switch", 32, 0.1, Seconds(3600), 1, Seconds(60)},
              {"site", 0, 0.4, Seconds(14400), 1, Seconds(0)}};
  s.corruption = {2.8e-7, 0.1, Seconds(7200), 1, 0.0025};
  s.maintenance = {Seconds(7 * kSecondsPerDay), Seconds(3600)};
  s.infant = {3, Seconds(14 * kSecondsPerDay)};
  s.memory = {Bytes(1e12), 0.1, Bytes(1.6e12), Bytes(2e12), Seconds(10), Seconds(300)};
  s.repair = {Seconds(3240), Seconds(21300)};
  s.spares = {std::max<int64_t>(4, gpus / 8 / 64), true};
  s.recovery.requeue_wait = Seconds(60);
  s.recovery.swap = Seconds(60);
  s.recovery.compile = Seconds(30);
  s.recovery.warmup = Seconds(20);
  CheckpointTier peer{"peer memory", Extent::kNode, IntervalRule::kFixed, Seconds(30), Seconds(0.2),
                      Seconds(1),    Seconds(5)};
  CheckpointTier disk{"local disk", Extent::kDomain, IntervalRule::kFixed, Seconds(300),
                      Seconds(1),   Seconds(20),     Seconds(20)};
  CheckpointTier remote{"remote",    Extent::kSite, IntervalRule::kOptimal, Seconds(0), Seconds(3),
                        Seconds(60), Seconds(60)};
  s.checkpoints = {peer, disk, remote};
  s.stragglers = {0.01,           0,   0.005, 0.05,         0.001, Seconds(10),
                  Seconds(36000), 0.2, 0.002, Seconds(600), 0.1,   Seconds(86400)};
  s.data = {Seconds(0.1), Seconds(2), 0, 2, 1, 0.95, 0.02, 0.5};
  s.start = {Seconds(600), 1, Bytes(20e9), Bandwidth(100e9), Bandwidth(0.3e9), 0.5};
  s.site = hot_afternoons();
  return s;
}

}  // namespace assay
