#include "perf/pipeline.h"

#include <algorithm>

namespace assay {

int64_t stage_layers(int64_t layers, int64_t pp, int64_t i) {
  const int64_t base = layers / pp;
  const int64_t rest = layers % pp;
  if (rest == 0) return base;
  // Order of who takes one more: stages 1, 2, ..., pp-2, then the last, then the first.
  const int64_t rank = i == 0 ? pp - 1 : i - 1;
  return base + (rank < rest ? 1 : 0);
}

int64_t stage_begin(int64_t layers, int64_t pp, int64_t i) {
  const int64_t base = layers / pp;
  const int64_t rest = layers % pp;
  if (i == 0) return 0;
  const int64_t first = stage_layers(layers, pp, 0);
  return first + (i - 1) * base + std::min(rest, i - 1);
}

int64_t equal_stages(int64_t layers, int64_t pp, int64_t i) {
  if (i == 0 || i == pp - 1) return 1;
  const int64_t longer = std::min(layers % pp, pp - 2);  // stages 1 to `longer` have one more
  return (i <= longer ? longer + 1 : pp - 1) - i;
}

Seconds bubble_time(Schedule schedule, int64_t vpp, Seconds sum, Seconds slowest) {
  const Seconds plain = sum - slowest;
  if (vpp > 1) return plain / static_cast<double>(vpp);
  if (schedule == Schedule::kZeroBubble) return plain / 3.0;
  return plain;
}

double live_microbatches(Schedule schedule, int64_t pp, int64_t vpp, int64_t microbatches,
                         int64_t i) {
  const double m = static_cast<double>(microbatches);
  if (schedule == Schedule::kGpipe) return m;
  if (vpp == 1) return std::min(m, static_cast<double>(pp - i));
  // Interleaved: chunks of 1/vpp of a stage; warm-up runs (pp - i - 1) x 2 + (vpp - 1) x pp of
  // them.
  const double chunks = static_cast<double>((pp - i - 1) * 2 + (vpp - 1) * pp + 1);
  return std::min(m, chunks / static_cast<double>(vpp));
}

}  // namespace assay
