// Folded pipelines, played pass by pass: DualPipe (arXiv:2412.19437, section 3.2.1), fed from both
// ends, and its folded half (DualPipeV). The closed form of pipeline.h must agree.
#include <algorithm>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "perf/pipeline.h"

namespace assay {
namespace {

// Of a chunk: forward, gradients of inputs (and what is computed again), gradients of weights.
constexpr double kForward = 1, kInputs = 1.5, kWeights = 0.75;

// What a rank does at once. `near` enters the pipeline at the rank's own end, `far` at the other.
enum class Side { kNear, kFar };
struct Work {
  std::optional<Side> forward = {}, backward = {};
  bool weights_later = false;  // of `backward`
  bool weights = false;        // what was put off
};

// The order of a rank `at` ranks from its end, of `half` ranks; `m` micro-batches enter at an end.
std::vector<Work> order_of(int at, int half, int m) {
  const Work near{Side::kNear}, far{Side::kFar}, weights{{}, {}, false, true};
  const auto back = [](Side side, bool later) { return Work{{}, side, later}; };
  const int behind = half - at - 1;  // ranks further from the end
  std::vector<Work> order(static_cast<size_t>(2 * behind), near);
  const auto add = [&](int times, const std::vector<Work>& works) {
    for (int i = 0; i < times; ++i) order.insert(order.end(), works.begin(), works.end());
  };
  add(at + 1, {near, far});
  add(behind, {back(Side::kFar, true), weights, far});
  const Work near_far{Side::kNear, Side::kFar}, far_near{Side::kFar, Side::kNear};
  add(m - 2 * half + at + 1, {near_far, far_near});
  add(behind, {back(Side::kFar, false), far_near});
  // The drain: from half of these on, weights wait until nothing else is there to do.
  for (int i = 0; i < 2 * (at + 1); ++i)
    order.push_back(back(i % 2 == 0 ? Side::kFar : Side::kNear, i >= at + 1));
  add(behind, {weights, back(Side::kNear, true)});
  add(at + 1, {weights});
  return order;
}

struct Played {
  double time = 0;
  std::vector<int> near, far;  // most micro-batches alive, by distance from the end
};

// A pipeline of `ranks` ranks, `m` micro-batches from an end. Folded (`both_ends` false), a
// micro-batch comes back through the same ranks; else it leaves at the other end, and another
// stream comes from there.
class Player {
 public:
  Player(int ranks, int m, bool both_ends)
      : ranks_(ranks),
        m_(m),
        both_ends_(both_ends),
        half_(both_ends ? ranks / 2 : ranks),
        stages_(2 * half_),
        state_(static_cast<size_t>(ranks)) {
    const int streams = both_ends ? 2 : 1;
    forward_.assign(static_cast<size_t>(streams * stages_ * m), -1);
    backward_ = forward_;
    out_.near.assign(static_cast<size_t>(half_), 0), out_.far = out_.near;
    for (int r = 0; r < ranks; ++r) order_.push_back(order_of(from_end(r), half_, m));
  }

  Played play() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int r = 0; r < ranks_; ++r) {
        while (step(r)) moved = true;
      }
    }
    for (int r = 0; r < ranks_; ++r) {
      EXPECT_EQ(state_[r].next, order_[r].size()) << "rank " << r << " waits";
      out_.time = std::max(out_.time, state_[r].clock);
    }
    return out_;
  }

 private:
  struct State {
    size_t next = 0;
    double clock = 0;
    int done[2][2] = {};  // by side: forward, backward
  };

  int from_end(int r) const { return both_ends_ ? std::min(r, ranks_ - 1 - r) : r; }
  size_t cell(int stream, int stage, int i) const {
    return static_cast<size_t>((stream * stages_ + stage) * m_ + i);
  }
  std::pair<int, int> place(int r, Side side) const {  // stream and stage
    if (!both_ends_) return {0, side == Side::kNear ? r : stages_ - 1 - r};
    const bool from_first = (side == Side::kNear) == (r < half_);
    return from_first ? std::pair{0, r} : std::pair{1, stages_ - 1 - r};
  }

  // When what the work needs is there; negative: not yet.
  double ready(int r, const Work& w) const {
    double at = 0;
    if (w.forward) {
      const auto [stream, stage] = place(r, *w.forward);
      const int i = state_[r].done[static_cast<int>(*w.forward)][0];
      if (stage > 0) at = forward_[cell(stream, stage - 1, i)];
    }
    if (w.backward && at >= 0) {
      const auto [stream, stage] = place(r, *w.backward);
      const int i = state_[r].done[static_cast<int>(*w.backward)][1];
      const double from = stage == stages_ - 1 ? forward_[cell(stream, stage, i)]
                                               : backward_[cell(stream, stage + 1, i)];
      at = from < 0 ? from : std::max(at, from);
    }
    return at;
  }

  // Does the rank's next work, if it can.
  bool step(int r) {
    State& now = state_[r];
    if (now.next == order_[r].size()) return false;
    const Work& w = order_[r][now.next];
    const double from = ready(r, w);
    if (from < 0) return false;
    double takes = w.weights ? kWeights : 0;
    if (w.forward) takes += kForward;
    if (w.backward) takes += kInputs + (w.weights_later ? 0 : kWeights);
    now.clock = std::max(now.clock, from) + takes;
    if (w.forward) {
      const auto [stream, stage] = place(r, *w.forward);
      int* done = now.done[static_cast<int>(*w.forward)];
      forward_[cell(stream, stage, done[0]++)] = now.clock;
      int& most = (*w.forward == Side::kNear ? out_.near : out_.far)[from_end(r)];
      most = std::max(most, done[0] - done[1]);
    }
    if (w.backward) {
      const auto [stream, stage] = place(r, *w.backward);
      backward_[cell(stream, stage, now.done[static_cast<int>(*w.backward)][1]++)] = now.clock;
    }
    ++now.next;
    return true;
  }

  int ranks_, m_;
  bool both_ends_;
  int half_, stages_;
  std::vector<std::vector<Work>> order_;
  std::vector<State> state_;
  std::vector<double> forward_, backward_;  // ends of passes by stream, stage and micro-batch
  Played out_;
};

Played play(int ranks, int m, bool both_ends) { return Player(ranks, m, both_ends).play(); }

double closed_form(int half, int m) {
  const Seconds forward(2 * kForward), weights(2 * kWeights);
  const Seconds pair = forward + weights + Seconds(2 * kInputs);
  const PipelinePass pass{pair * half, pair, forward, weights};
  return (pair * m + bubble_time(Schedule::kDualPipe, half, 2, m, pass)).v;
}

TEST(FoldedPipeline, ClosedFormIsTheScheduleFromBothEnds) {
  for (int ranks : {2, 4, 8, 16}) {
    for (int m : {ranks, ranks + 1, 3 * ranks}) {
      const Played twin = play(ranks, m, true);
      EXPECT_NEAR(closed_form(ranks / 2, m), twin.time, 1e-9) << ranks << " ranks, " << m;
    }
  }
}

TEST(FoldedPipeline, ClosedFormIsTheFoldedHalf) {
  for (int ranks : {1, 2, 4, 8}) {
    for (int m : {2 * ranks, 2 * ranks + 1, 6 * ranks}) {
      EXPECT_NEAR(closed_form(ranks, m), play(ranks, m, false).time, 1e-9) << ranks << ' ' << m;
    }
  }
}

TEST(FoldedPipeline, RanksHoldAsManyMicroBatchesAsTheScheduleLeavesAlive) {
  for (int ranks : {2, 4, 8, 16}) {
    const Played twin = play(ranks, 3 * ranks, true);
    for (int i = 0; i < ranks / 2; ++i) {
      const Mirrored live = live_mirrored(ranks, 3 * ranks, i);
      EXPECT_EQ(live.near, twin.near[i]) << ranks << ' ' << i;
      EXPECT_EQ(live.far, twin.far[i]) << ranks << ' ' << i;
      EXPECT_EQ(live.near + live.far, ranks + 1);
    }
  }
}

}  // namespace
}  // namespace assay
