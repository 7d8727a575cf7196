// The log of a trainer, as Megatron-LM, Megatron-DeepSpeed and NeMo print it: one line an
// iteration, and lines about checkpoints, evaluations and starts in between.
//
// Iterations are in the order of the file, so a run that went back to a checkpoint has the same
// number twice. What a line does not say is absent; nothing is guessed. A loss that is not a number
// is kept as `loss_is_nan`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "base/units.h"

namespace assay {

struct TrainingIteration {
  int line = 0;
  int64_t iteration = 0;
  int64_t planned = 0;             // of the whole run; zero: not stated
  std::optional<Seconds> elapsed;  // per iteration, averaged by the trainer over its log interval
  std::optional<double> at_s;      // since 1970
  std::optional<double> samples;   // consumed so far
  std::optional<double> tokens;    // consumed so far
  std::optional<double> batch;     // samples an iteration
  std::optional<double> loss;
  std::optional<double> tflops;  // per GPU, as the trainer counts
  int64_t skipped = 0, nan = 0;  // iterations since the line before
  bool loss_is_nan = false;
};

enum class TrainingEventKind {
  kStart,           // the trainer started (again)
  kTrainingBegins,  // set up, the first step is next
  kCheckpointSaved,
  kCheckpointLoaded,
  kEvaluation,
  kEnd,  // training is done
};

struct TrainingEvent {
  TrainingEventKind kind = TrainingEventKind::kStart;
  int line = 0;
  std::optional<double> at_s;
  std::optional<int64_t> iteration;
  std::optional<Seconds> duration;
};

struct TrainingLog {
  std::string file;
  std::vector<TrainingIteration> iterations;
  std::vector<TrainingEvent> events;  // in the order of the file
  Diagnostics problems;
};

TrainingLog read_training_log(std::string_view text, const std::string& file);

}  // namespace assay
