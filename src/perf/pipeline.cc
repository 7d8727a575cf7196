#include "perf/pipeline.h"

#include <algorithm>

namespace assay {
namespace {

// The layers that nothing is stated of, among the stages that nothing is stated of.
struct Rest {
  int64_t each = 0;  // of every such stage
  int64_t more = 0;  // so many of them hold one more
};

Rest rest_of(const Stages& s) {
  const int64_t stages = s.open_stages();
  if (stages <= 0) return {};
  return {s.open_layers() / stages, s.open_layers() % stages};
}

}  // namespace

bool Stages::possible(int64_t chunks) const {
  const int64_t stages = open_stages();
  return stages == 0 ? open_layers() == 0 : open_layers() >= stages * chunks;
}

bool Stages::even() const { return first == 0 && last == 0 && layers % pp == 0; }

int64_t stage_layers(const Stages& s, int64_t i) {
  const bool last = i == s.pp - 1;
  if (i == 0 && s.first > 0) return s.first;
  if (last && s.last > 0) return s.last;
  const Rest rest = rest_of(s);
  // Order of who takes one more: stages 1, 2, ..., pp-2, then the last, then the first.
  const int64_t behind = s.pp - 1 - (s.last > 0 ? 1 : 0);
  const int64_t rank = i == 0 ? behind : i - 1;
  return rest.each + (rank < rest.more ? 1 : 0);
}

int64_t stage_begin(const Stages& s, int64_t i) {
  if (i == 0) return 0;
  const Rest rest = rest_of(s);
  return stage_layers(s, 0) + (i - 1) * rest.each + std::min(rest.more, i - 1);
}

int64_t equal_stages(const Stages& s, int64_t i) {
  if (i == 0 || i == s.pp - 1) return 1;
  const int64_t longer = std::min(rest_of(s).more, s.pp - 2);  // stages 1 to it have one more
  return (i <= longer ? longer + 1 : s.pp - 1) - i;
}

Seconds bubble_time(Schedule schedule, int64_t pp, int64_t vpp, int64_t microbatches,
                    const PipelinePass& t) {
  const Seconds plain = t.sum - t.slowest;
  const double others = real(pp - 1);
  if (folded(schedule))
    return std::max(Seconds{}, plain - (t.forward + t.weights * 3) * (others / 2));
  if (vpp > 1) return plain / real(vpp);
  if (schedule != Schedule::kZeroBubble) return plain;
  const double filled = real(std::min(microbatches, pp) - 1);
  return std::max(Seconds{}, plain - t.weights * (others + filled));
}

double live_microbatches(Schedule schedule, int64_t pp, int64_t vpp, int64_t microbatches,
                         int64_t i) {
  const double m = real(microbatches);
  if (schedule == Schedule::kGpipe && pp > 1) return m;
  if (vpp == 1) return std::min(m, real(pp - i));
  // Interleaved: chunks of 1/vpp of a stage; warm-up runs (pp - i - 1) x 2 + (vpp - 1) x pp of
  // them.
  const double chunks = real((pp - i - 1) * 2 + (vpp - 1) * pp + 1);
  return std::min(m, chunks / real(vpp));
}

Mirrored live_mirrored(int64_t stages, int64_t microbatches, int64_t i) {
  return {real(std::min(microbatches, stages - i)), real(std::min(microbatches, i + 1))};
}

}  // namespace assay
