#include "perf/pipeline.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

namespace assay {
namespace {

// The naive twin: stages as queues of work, one event after another. Stage s runs `pp - s` forward
// passes to warm up, then alternates; a forward needs the previous stage's forward, a backward the
// next stage's backward.
double simulate_1f1b(const std::vector<double>& forward, const std::vector<double>& backward,
                     int m) {
  const int pp = static_cast<int>(forward.size());
  std::vector<std::vector<double>> f_end(pp, std::vector<double>(m, -1)), b_end = f_end;
  std::vector<std::vector<int>> order(pp);  // positive: forward i+1, negative: backward
  for (int s = 0; s < pp; ++s) {
    const int warm = std::min(m, pp - s);
    int f = 0, b = 0;
    for (; f < warm; ++f) order[s].push_back(f + 1);
    while (b < m) {
      order[s].push_back(-(b++ + 1));
      if (f < m) order[s].push_back(++f);
    }
  }
  std::vector<size_t> next(pp, 0);
  std::vector<double> clock(pp, 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (int s = 0; s < pp; ++s) {
      while (next[s] < order[s].size()) {
        const int op = order[s][next[s]];
        const int i = std::abs(op) - 1;
        double ready = 0;
        if (op > 0 && s > 0) ready = f_end[s - 1][i];
        if (op < 0) ready = s == pp - 1 ? f_end[s][i] : b_end[s + 1][i];
        if (ready < 0) break;
        clock[s] = std::max(clock[s], ready) + (op > 0 ? forward[s] : backward[s]);
        (op > 0 ? f_end : b_end)[s][i] = clock[s];
        ++next[s];
        moved = true;
      }
    }
  }
  return *std::max_element(clock.begin(), clock.end());
}

double closed_form(const std::vector<double>& f, const std::vector<double>& b, int m) {
  double sum = 0, slowest = 0;
  for (size_t i = 0; i < f.size(); ++i) {
    sum += f[i] + b[i];
    slowest = std::max(slowest, f[i] + b[i]);
  }
  return m * slowest + bubble_time(Schedule::kOneFOneB, 1, Seconds(sum), Seconds(slowest)).v;
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

TEST(Pipeline, InterleavingShrinksTheBubbleAndKeepsMoreAlive) {
  const Seconds sum(30), slowest(3);
  EXPECT_EQ(bubble_time(Schedule::kInterleaved, 3, sum, slowest).v, 9);
  EXPECT_LT(bubble_time(Schedule::kZeroBubble, 1, sum, slowest),
            bubble_time(Schedule::kOneFOneB, 1, sum, slowest));
  EXPECT_EQ(live_microbatches(Schedule::kOneFOneB, 8, 1, 64, 0), 8);
  EXPECT_EQ(live_microbatches(Schedule::kOneFOneB, 8, 1, 64, 7), 1);
  EXPECT_GT(live_microbatches(Schedule::kInterleaved, 8, 2, 64, 0), 8);
  EXPECT_EQ(live_microbatches(Schedule::kGpipe, 8, 1, 64, 3), 64);
}

}  // namespace
}  // namespace assay
