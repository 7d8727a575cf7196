// For tests: a job in which nothing happens, and what is added to it.
#pragma once

#include "sim/run.h"

namespace assay {

// A job in which nothing happens, to which one thing is added.
inline RunSpec quiet(int64_t gpus = 1024, double days = 10) {
  RunSpec s;
  s.gpus = gpus;
  s.period = Seconds(days * kSecondsPerDay);
  s.recovery.init_base = s.recovery.init_per_gpu = Seconds(0);
  s.step.step = Seconds(5);
  return s;
}

inline FailureProcess failure(const char* name, double per_gpu_hour,
                              Extent extent = Extent::kNode) {
  FailureProcess f;
  f.name = name;
  f.per_gpu_hour = per_gpu_hour;
  f.extent = extent;
  f.detection = Seconds(0);
  f.replaced = 0;
  return f;
}

inline CheckpointTier tier(const char* name, Extent survives, double interval) {
  CheckpointTier t;
  t.name = name;
  t.survives = survives;
  t.interval = Seconds(interval);
  return t;
}

inline RunResult traced(const RunSpec& s, uint64_t seed) {
  return Simulator(s).run(seed, {true, Seconds(kSecondsPerDay)});
}

}  // namespace assay
