#include "sim/progress.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace assay {
namespace {

SaveSchedule three_tiers() {
  SaveSchedule s;
  s.interval = 1000;
  s.tiers = {{1, 10, 0, 0, Extent::kNode},
             {4, 50, 0, 30, Extent::kDomain},
             {12, 150, 50, 900, Extent::kSite}};
  return s;
}

// The naive twin: one nanosecond after another.
struct Walker {
  const SaveSchedule& s;
  double pace;
  ProgressState at;
  Nanoseconds stalled = 0, starved = 0;
  void step() {
    if (at.stall == 0 && s.interval > 0 && at.since >= s.interval - 1e-9) begin_save();
    if (at.stall > 0) {
      ++stalled;
      if (at.stall <= s.starves(at.saves - 1, at.saves)) ++starved;
      --at.stall;
      return;
    }
    at.work += 1 / pace;
    at.since += 1 / pace;
  }
  void begin_save() {
    ++at.saves;
    at.since = 0;
    at.stall = s.stalls(at.saves - 1, at.saves);
  }
};

TEST(Progress, StateAgreesWithAWalk) {
  const SaveSchedule s = three_tiers();
  for (const double pace : {1.0, 2.0, 4.0}) {
    Segment g;
    g.pace = pace;
    g.from = {5000, 250, 7, 3};
    Walker walker{s, pace, g.from};
    for (Nanoseconds t = 0; t < 60000; ++t) {
      const ProgressState a = state_at(s, g, t);
      ASSERT_NEAR(a.work, walker.at.work, 1.5) << t;
      if (walker.at.since > 2 && walker.at.since < 998 && walker.at.stall == 0) {
        ASSERT_EQ(a.saves, walker.at.saves) << t;
        ASSERT_NEAR(a.since, walker.at.since, 1.5) << t;
      }
      if (walker.at.stall > 1) {
        ASSERT_NEAR(static_cast<double>(a.stall), static_cast<double>(walker.at.stall), 1) << t;
      }
      const SaveTime saving = save_time(s, g, a);
      ASSERT_LE(std::abs(saving.stalled - walker.stalled), 1) << t;
      ASSERT_LE(std::abs(saving.starved - walker.starved), 1) << t;
      walker.step();
    }
  }
}

// Cut anywhere, a segment continues as if it had not been.
TEST(Progress, CutsChangeNothing) {
  const SaveSchedule s = three_tiers();
  Segment whole;
  whole.pace = 1.5;
  Stream luck(1, 2);
  ProgressState at;
  Nanoseconds now = 0;
  for (int i = 0; i < 300; ++i) {
    Segment part;
    part.pace = 1.5;
    part.from = at;
    const Nanoseconds dt = static_cast<Nanoseconds>(luck.bits() % 3000);
    at = state_at(s, part, dt);
    now += dt;
    EXPECT_NEAR(at.work, state_at(s, whole, now).work, 0.7 * (i + 1)) << i;
  }
}

TEST(Progress, TimeOfWorkInvertsState) {
  const SaveSchedule s = three_tiers();
  Segment g;
  g.pace = 1.25;
  g.from = {0, 100, 2, 5};
  for (double work = 1; work < 50000; work += 777.7) {
    const Nanoseconds t = time_of_work(s, g, work);
    EXPECT_NEAR(state_at(s, g, t).work, work, 1) << work;
  }
}

History with_segment(const SaveSchedule& s, Nanoseconds length) {
  History h(s);
  Segment start;
  start.forced = true;
  h.segments().push_back(start);
  Segment g;
  g.end = length;
  g.kept = g.work_end = state_at(s, g, length).work;
  h.segments().push_back(g);
  return h;
}

TEST(Progress, FailureChoosesTheTierThatSurvives) {
  const SaveSchedule s = three_tiers();
  // 25 intervals of work; saves 1..24, of the second tier 4, 8, .. 24, of the third 12 and 24.
  const Nanoseconds t = 25 * 1000 + s.stalls(0, 24) - 500;
  const History h = with_segment(s, t);
  EXPECT_EQ(h.newest(Extent::kNode, t, 1e18, 0).work, 24000);
  EXPECT_EQ(h.newest(Extent::kNode, t, 1e18, 0).tier, 0);
  EXPECT_EQ(h.newest(Extent::kDomain, t, 1e18, 0).work, 24000);
  EXPECT_EQ(h.newest(Extent::kDomain, t, 1e18, 0).tier, 1);
  // The third tier takes 900 to be durable: at `t` only 500 have passed since save 24.
  EXPECT_EQ(h.newest(Extent::kSite, t, 1e18, 0).work, 12000);
  EXPECT_EQ(h.newest(Extent::kSite, t + 400, 1e18, 0).work, 24000);
  EXPECT_EQ(h.newest(Extent::kSite, t, 11999, 0).work, 0);
}

TEST(Progress, CorruptionGoesBackAsFarAsSavesAreKept) {
  const SaveSchedule s = three_tiers();
  const Nanoseconds t = 100 * 1000 + s.stalls(0, 99);
  const History h = with_segment(s, t);
  EXPECT_EQ(h.newest(Extent::kProcess, t, 50500, 0).work, 48000);  // 12, 24, 36, [48], 60 .. 96
  EXPECT_EQ(h.newest(Extent::kProcess, t, 50500, 5).work, 48000);
  EXPECT_EQ(h.newest(Extent::kProcess, t, 50500, 4).work, 0);
}

TEST(Progress, RollbackIsRememberedAndSoIsDestruction) {
  const SaveSchedule s = three_tiers();
  const Nanoseconds t = 25 * 1000 + s.stalls(0, 24) - 100;
  History h = with_segment(s, t);
  const auto lost = h.roll_back(24000);
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_NEAR(lost[0].upto - lost[0].from, 900, 1);
  EXPECT_TRUE(h.roll_back(24000).empty());
  h.destroy(Extent::kDomain, t);
  EXPECT_EQ(h.newest(Extent::kNode, t + 5000, 1e18, 0).tier, 1);
  EXPECT_EQ(h.roll_back(12000).size(), 1u);
  EXPECT_EQ(h.newest(Extent::kNode, t + 5000, 1e18, 0).work, 12000);
}

}  // namespace
}  // namespace assay
