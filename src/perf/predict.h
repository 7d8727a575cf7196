// One training step of a described workload on a described cluster: its time, its ledger, its
// memory.
//
// `Predictor` is bound to everything but the plan; `predict` costs microseconds because kernel
// times depend only on a few of the plan's settings and are kept. Pure: same input, same output, no
// I/O. Not thread-safe: one Predictor per thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ledger/ledger.h"
#include "perf/collective.h"
#include "perf/matmul.h"
#include "world/model_size.h"
#include "world/setting.h"

namespace assay {

// What the terms of a MemoryUse hold, for `explain`: every term is the sum of its parts.
struct MemoryParts {
  enum class Moment { kLoss, kBackward, kBackwardEnd, kOptimizer };
  Moment moment = Moment::kBackward;
  Bytes whole_weights;                                     // weights: whole 16-bit ones of shards
  Bytes whole_gradients;                                   // gradients: added up before sharding
  Bytes adapters;                                          // optimizer: LoRA's weights and states
  Bytes working;                                           // activations: of the layer that runs
  Bytes gathered, placeholders, copies, reduced, scratch;  // buffers
};

// Memory of the worst rank. `allocated` is what a framework's peak-allocated counter shows; fit is
// judged on `reserved`.
struct MemoryUse {
  Bytes weights, gradients, optimizer, activations, buffers, framework;
  Bytes allocated, reserved, capacity;
  Bytes most_allocated;  // at any moment; `allocated` is that of the largest `reserved`
  Bytes parked;          // on the host, of the rank that parks most
  int64_t stage = 0;     // the pipeline stage that needs most
  MemoryParts parts;
  bool fits() const { return reserved <= capacity; }
  // Less is left than half of the measured peaks are missed by (docs/models/memory.md).
  static constexpr double kMedianError = 0.029;
  // Nine of ten of the 126 measured peaks are missed by less, predicted over measured less 1
  // (`memory_p90_error` of `assay validate data/training_runs.csv --json`).
  static constexpr double kError90 = 0.124;
  bool tight() const { return reserved > capacity * (1 - kMedianError); }
};

// One step, how sure of it we are, and what it needs.
struct Prediction {
  Seconds step;       // median
  Seconds low, high;  // 90 % range
  double spread = 0;  // half-width of its logarithm, without what stretches one end alone
  Ledger ledger;      // of one step, per accelerator; paid() == step
  MemoryUse memory;
  Flops model_flops;  // of the whole step, all accelerators: the `useful` convention
  double mfu = 0;
  double tokens_per_s = 0;
  int64_t dp = 1;
  int64_t microbatches = 1;   // per pipeline and step
  Watts power;                // mean, one accelerator
  bool extrapolated = false;  // outside what was ever measured
  bool experts_wait = false;  // `high` is that of expert layers that wait for the host
};

// Why a plan is impossible, in words a person can act on, and the setting to change.
struct Impossible {
  std::string setting;  // `plan.tp`
  std::string reason;   // `tp 3 does not divide 64 heads`
  std::string fix;      // `use 1, 2, 4, 8, 16, 32 or 64`
};

// One line of a derivation, for `explain`: a figure, how it follows from its inputs, and its mark.
struct Derivation {
  std::string name;  // `matmul`, `tensor all-reduce`
  double value = 0;
  std::string unit;
  std::string equation;  // `flops / (peak x efficiency)`, with the figures put in
  char mark = 'c';       // m measured, s spec, c calibrated, a assumed
  std::string source;
  std::vector<Derivation> inputs;
  std::string path;          // of a setting, `stack.jitter`: its origin is mark and source
  double low = 0, high = 0;  // 90 % range in `unit`; both zero: none is known
};

class Predictor {
 public:
  explicit Predictor(const Setting&);
  ~Predictor();
  Predictor(Predictor&&) noexcept;

  const Setting& setting() const;
  // The same as a plan finds it: a stack that trains in 32 bits holds and sends other bytes.
  const Setting& setting_for(const Plan&) const;
  const Links& links() const;

  // Nothing when the plan is possible; it may still not fit in memory.
  std::optional<Impossible> impossible(const Plan&) const;
  // Everything that stands in its way; impossible() is the first of it.
  std::vector<Impossible> all_impossible(const Plan&) const;

  // REQUIRES: !impossible(plan).
  Prediction predict(const Plan&);
  MemoryUse memory(const Plan&);

  // The same figures, derived again with a recorder. `figure` is one of figures().
  Derivation explain(const Plan&, const std::string& figure);
  static std::vector<std::string> figures();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace assay
