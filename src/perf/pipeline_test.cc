#include "perf/pipeline.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

namespace assay {
namespace {

// One pass of one micro-batch through one chunk of a stage; gradients of weights that were put off
// wait for nothing but their stage.
enum class Pass { kForward, kBackward, kWeights };
struct Op {
  Pass pass;
  int chunk, microbatch;
};

// The naive twin: stages as queues of work, one event after another. A forward needs the forward of
// the stage before (or the last stage's of the chunk before), a backward the backward of the stage
// after. `forward` and `backward`: of a chunk, by stage; `weights` of any.
double run_queues(const std::vector<std::vector<Op>>& order, const std::vector<double>& forward,
                  const std::vector<double>& backward, int chunks, int m, double weights = 0) {
  const int pp = static_cast<int>(forward.size());
  const auto grid = [&] { return std::vector<double>(static_cast<size_t>(pp * chunks * m), -1); };
  std::vector<double> f_end = grid(), b_end = grid();
  const auto at = [&](int stage, const Op& op) {
    return static_cast<size_t>((op.chunk * pp + stage) * m + op.microbatch);
  };
  std::vector<size_t> next(static_cast<size_t>(pp), 0);
  std::vector<double> clock(static_cast<size_t>(pp), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (int s = 0; s < pp; ++s) {
      while (next[s] < order[s].size()) {
        const Op& op = order[s][next[s]];
        if (op.pass == Pass::kWeights) {
          clock[s] += weights;
          ++next[s];
          moved = true;
          continue;
        }
        const bool ahead = op.pass == Pass::kForward;
        const size_t here = at(s, op);
        double ready = 0;
        const size_t hop = static_cast<size_t>(m);  // one stage on, chunk after chunk
        if (ahead && here >= hop) ready = f_end[here - hop];
        if (!ahead) ready = here + hop >= b_end.size() ? f_end[here] : b_end[here + hop];
        if (ready < 0) break;
        clock[s] = std::max(clock[s], ready) + (ahead ? forward[s] : backward[s]);
        (ahead ? f_end : b_end)[here] = clock[s];
        ++next[s];
        moved = true;
      }
    }
  }
  for (int s = 0; s < pp; ++s) EXPECT_EQ(next[s], order[s].size()) << "stage " << s << " waits";
  return *std::max_element(clock.begin(), clock.end());
}

// Stage s runs `pp - s` forward passes to warm up, then alternates.
double simulate_1f1b(const std::vector<double>& forward, const std::vector<double>& backward,
                     int m) {
  const int pp = static_cast<int>(forward.size());
  std::vector<std::vector<Op>> order(static_cast<size_t>(pp));
  for (int s = 0; s < pp; ++s) {
    const int warm = std::min(m, pp - s);
    int f = 0, b = 0;
    for (; f < warm; ++f) order[s].push_back({Pass::kForward, 0, f});
    while (b < m) {
      order[s].push_back({Pass::kBackward, 0, b++});
      if (f < m) order[s].push_back({Pass::kForward, 0, f++});
    }
  }
  return run_queues(order, forward, backward, 1, m);
}

// ZB-H1: as 1F1B, but gradients of weights are put off, by as many micro-batches as stages stand
// before, and fill the drain.
double simulate_zero_bubble(int pp, int m, double forward, double inputs, double weights) {
  const std::vector<double> fs(static_cast<size_t>(pp), forward);
  const std::vector<double> bs(static_cast<size_t>(pp), inputs);
  std::vector<std::vector<Op>> order(static_cast<size_t>(pp));
  for (int s = 0; s < pp; ++s) {
    int f = 0, w = 0;
    for (; f < std::min(m, pp - s); ++f) order[s].push_back({Pass::kForward, 0, f});
    for (int b = 0; b < m; ++b) {
      order[s].push_back({Pass::kBackward, 0, b});
      if (b - w >= s) order[s].push_back({Pass::kWeights, 0, w++});
      if (f < m) order[s].push_back({Pass::kForward, 0, f++});
    }
    while (w < m) order[s].push_back({Pass::kWeights, 0, w++});
  }
  return run_queues(order, fs, bs, 1, m, weights);
}

// Chunks in rounds of pp micro-batches, as Megatron-LM runs them: the same chunk of all of a round,
// then the next chunk; (pp - s - 1) x 2 + (chunks - 1) x pp passes to warm up.
double simulate_interleaved(int pp, int chunks, int m, double forward, double backward) {
  std::vector<Op> passes;
  for (int round = 0; round < m; round += pp) {
    for (int c = 0; c < chunks; ++c) {
      for (int i = round; i < std::min(m, round + pp); ++i)
        passes.push_back({Pass::kForward, c, i});
    }
  }
  std::vector<std::vector<Op>> order(static_cast<size_t>(pp));
  const size_t all = passes.size();
  const auto back = [&](size_t i) {  // the same order, last chunk first
    return Op{Pass::kBackward, chunks - 1 - passes[i].chunk, passes[i].microbatch};
  };
  for (int s = 0; s < pp; ++s) {
    const size_t warm = static_cast<size_t>((pp - s - 1) * 2 + (chunks - 1) * pp);
    const size_t first = m == pp ? all : std::min(all, warm);  // one round: all forward first
    size_t f = 0, b = 0;
    for (; f < first; ++f) order[s].push_back(passes[f]);
    while (b < all) {
      if (f < all) order[s].push_back(passes[f++]);
      order[s].push_back(back(b++));
    }
  }
  const std::vector<double> fs(static_cast<size_t>(pp), forward / chunks),
      bs(static_cast<size_t>(pp), backward / chunks);
  return run_queues(order, fs, bs, chunks, m);
}

double closed_form(const std::vector<double>& f, const std::vector<double>& b, int m) {
  double sum = 0, slowest = 0;
  for (size_t i = 0; i < f.size(); ++i) {
    sum += f[i] + b[i];
    slowest = std::max(slowest, f[i] + b[i]);
  }
  const int64_t pp = static_cast<int64_t>(f.size());
  const PipelinePass pass{Seconds(sum), Seconds(slowest), {}, {}};
  return m * slowest + bubble_time(Schedule::kOneFOneB, pp, 1, m, pass).v;
}

TEST(Pipeline, EqualStagesMatchTheSimulationExactly) {
  for (int pp : {1, 2, 4, 8, 16}) {
    for (int m : {1, 2, 4, 8, 32, 100}) {
      const std::vector<double> f(pp, 1.0), b(pp, 2.0);
      EXPECT_NEAR(closed_form(f, b, m), simulate_1f1b(f, b, m), 1e-9) << pp << " " << m;
    }
  }
}

TEST(Pipeline, UnequalStagesStayWithinFivePercentOfTheSimulation) {
  for (int pp : {2, 4, 8}) {
    for (int m : {8, 16, 64}) {
      std::vector<double> f(pp, 1.0), b(pp, 2.0);
      f.back() = 1.3, b.back() = 2.5;  // the head
      f.front() = 1.05;                // the embedding
      const double twin = simulate_1f1b(f, b, m);
      EXPECT_NEAR(closed_form(f, b, m) / twin, 1.0, 0.05) << pp << " " << m;
    }
  }
}

TEST(Pipeline, LayersAreAllPlacedOnce) {
  for (int64_t layers : {1, 5, 12, 61, 80, 94, 126}) {
    for (int64_t pp = 1; pp <= layers && pp <= 64; ++pp) {
      int64_t sum = 0;
      for (int64_t i = 0; i < pp; ++i) {
        EXPECT_EQ(stage_begin({layers, pp}, i), sum) << layers << " " << pp << " " << i;
        sum += stage_layers({layers, pp}, i);
      }
      EXPECT_EQ(sum, layers);
    }
  }
}

// The same with ends that are stated, against a split that deals layers out one by one: to the
// stages between, then to the ends that nothing is stated of.
TEST(Pipeline, StatedEndsAreKeptAndTheRestIsDealtOut) {
  for (int64_t layers = 2; layers <= 30; ++layers) {
    for (int64_t pp = 2; pp <= std::min<int64_t>(layers, 7); ++pp) {
      for (int64_t first = 0; first <= 4; ++first) {
        for (int64_t last = 0; last <= 4; ++last) {
          const int64_t left = layers - first - last;
          const int64_t open = pp - (first > 0 ? 1 : 0) - (last > 0 ? 1 : 0);
          if (left < open || (open == 0 && left > 0)) continue;
          std::vector<int64_t> dealt(static_cast<size_t>(pp), 0), order;
          for (int64_t i = 1; i < pp - 1; ++i) order.push_back(i);
          if (last == 0) order.push_back(pp - 1);
          if (first == 0) order.push_back(0);
          for (int64_t n = 0; n < left; ++n) ++dealt[order[n % open]];
          if (first > 0) dealt.front() = first;
          if (last > 0) dealt.back() = last;
          const Stages s{layers, pp, first, last};
          int64_t sum = 0;
          for (int64_t i = 0; i < pp; ++i) {
            EXPECT_EQ(stage_layers(s, i), dealt[i]) << layers << ' ' << pp << ' ' << i;
            EXPECT_EQ(stage_begin(s, i), sum);
            int64_t alike = 1;  // inner stages in a row with as many layers
            while (i > 0 && i + alike < pp - 1 && dealt[i + alike] == dealt[i]) ++alike;
            EXPECT_EQ(equal_stages(s, i), alike) << layers << ' ' << pp << ' ' << i;
            sum += dealt[i];
          }
          EXPECT_EQ(sum, layers);
        }
      }
    }
  }
}

TEST(Pipeline, InterleavedMatchesTheSimulation) {
  for (int pp : {2, 4, 8}) {
    for (int vpp : {2, 3, 5}) {
      for (int m = pp; m <= 4 * pp; m += pp) {
        const PipelinePass pass{Seconds(3.0 * pp), Seconds(3), {}, {}};
        const double bubble = bubble_time(Schedule::kInterleaved, pp, vpp, m, pass).v;
        EXPECT_NEAR(3.0 * m + bubble, simulate_interleaved(pp, vpp, m, 1, 2), 1e-9)
            << pp << " stages, " << vpp << " chunks, " << m;
      }
    }
  }
}

TEST(Pipeline, ZeroBubbleMatchesTheSimulation) {
  struct Parts {
    double forward, inputs, weights;
  };
  for (const Parts x : {Parts{1, 1, 1}, {1, 1.3, 0.7}, {1, 2.2, 0.5}, {1.2, 1, 0.4}}) {
    const double all = x.forward + x.inputs + x.weights;
    for (int pp : {1, 2, 4, 8, 16}) {
      const PipelinePass pass{Seconds(all * pp), Seconds(all), Seconds(x.forward),
                              Seconds(x.weights)};
      for (int m : {1, 2, 3, 4, 8, 9, 32}) {
        const double bubble = bubble_time(Schedule::kZeroBubble, pp, 1, m, pass).v;
        const double twin = simulate_zero_bubble(pp, m, x.forward, x.inputs, x.weights);
        EXPECT_NEAR(all * m + bubble, twin, 1e-9) << pp << ' ' << m << ' ' << x.weights;
      }
    }
  }
}

TEST(Pipeline, InterleavingShrinksTheBubbleAndKeepsMoreAlive) {
  const PipelinePass pass{Seconds(30), Seconds(3), Seconds(1), Seconds(0.8)};
  EXPECT_EQ(bubble_time(Schedule::kInterleaved, 10, 3, 20, pass).v, 9);
  EXPECT_LT(bubble_time(Schedule::kZeroBubble, 10, 1, 20, pass),
            bubble_time(Schedule::kOneFOneB, 10, 1, 20, pass));
  EXPECT_EQ(live_microbatches(Schedule::kOneFOneB, 8, 1, 64, 0), 8);
  EXPECT_EQ(live_microbatches(Schedule::kOneFOneB, 8, 1, 64, 7), 1);
  EXPECT_GT(live_microbatches(Schedule::kInterleaved, 8, 2, 64, 0), 8);
  EXPECT_EQ(live_microbatches(Schedule::kGpipe, 8, 1, 64, 3), 64);
  EXPECT_EQ(live_microbatches(Schedule::kGpipe, 1, 1, 64, 0), 1);
}

}  // namespace
}  // namespace assay
