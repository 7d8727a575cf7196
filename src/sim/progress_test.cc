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

// Waits at once, within the interval, behind later saves, right behind one; two that coincide; one
// so late that the next save of its tier comes first.
std::vector<SaveSchedule> schedules() {
  std::vector<SaveSchedule> all(6, three_tiers());
  all[1].tiers[2].starve_after = 300;
  all[2].tiers[2].starve_after = 2500;
  all[3].tiers[2].starve_after = 3000;
  all[4].tiers[1].starve = 20;
  all[4].tiers[1].starve_after = all[4].tiers[2].starve_after = 700;
  all[5].tiers[0].starve = 5;
  all[5].tiers[0].starve_after = 1800;
  return all;
}

// The naive twin: one nanosecond after another.
struct Walker {
  const SaveSchedule& s;
  double pace;
  ProgressState at;
  Nanoseconds stalled = 0, starved = 0;
  std::vector<std::pair<double, Nanoseconds>> ahead = {};  // waits by the work before them

  void step() {
    const bool idle = at.stall == 0 && at.starve == 0;
    if (idle && s.interval > 0 && at.since >= s.interval - 1e-9) begin_save();
    if (at.stall == 0) begin_waits();
    if (at.stall > 0) {
      ++stalled;
      --at.stall;
    } else if (at.starve > 0) {
      ++stalled;
      ++starved;
      --at.starve;
    } else {
      at.work += 1 / pace;
      at.since += 1 / pace;
    }
  }
  void begin_save() {
    ++at.saves;
    at.since = 0;
    at.stall = s.stalls(at.saves - 1, at.saves);
    plan_waits();
  }
  void plan_waits() {
    for (const SaveTier& t : s.tiers) {
      if (t.starve > 0 && at.saves % t.every == 0)
        ahead.push_back({at.work - at.since + t.starve_after, t.starve});
    }
  }
  void begin_waits() {
    std::erase_if(ahead, [&](const auto& wait) {
      const bool due = wait.first <= at.work + 1e-9;
      if (due) at.starve += wait.second;
      return due;
    });
  }
};

TEST(Progress, StateAgreesWithAWalk) {
  for (const SaveSchedule& s : schedules()) {
    for (const double pace : {1.0, 2.0, 4.0}) {
      Segment g;
      g.pace = pace;
      g.from = {5000, 0, 0, 0};
      Walker walker{s, pace, g.from};
      for (Nanoseconds t = 0; t < 80000; ++t) {
        const ProgressState a = state_at(s, g, t);
        ASSERT_NEAR(a.work, walker.at.work, 1.5) << t;
        const bool idle = walker.at.stall == 0 && walker.at.starve == 0;
        if (walker.at.since > 2 && walker.at.since < 998 && idle) {
          ASSERT_EQ(a.saves, walker.at.saves) << t;
          ASSERT_NEAR(a.since, walker.at.since, 1.5) << t;
        }
        if (walker.at.stall > 1) {
          ASSERT_NEAR(static_cast<double>(a.stall), static_cast<double>(walker.at.stall), 1) << t;
        }
        if (walker.at.starve > 1) {
          ASSERT_NEAR(static_cast<double>(a.starve), static_cast<double>(walker.at.starve), 1) << t;
        }
        const SaveTime saving = save_time(s, g, a);
        ASSERT_LE(std::abs(saving.stalled - walker.stalled), 1) << t;
        ASSERT_LE(std::abs(saving.starved - walker.starved), 1) << t;
        walker.step();
      }
      EXPECT_GT(walker.starved, 0);
    }
  }
}

TEST(Progress, ASaveInProgressGoesOn) {
  const SaveSchedule s = three_tiers();
  Segment g;
  g.from = {5000, 250, 7, 3};
  EXPECT_EQ(state_at(s, g, 2).stall, 1);
  EXPECT_EQ(state_at(s, g, 10).work, 5007);
  g.from = {5000, 250, 12, 0, 20, 0};
  EXPECT_EQ(state_at(s, g, 15).starve, 5);
  EXPECT_EQ(state_at(s, g, 30).work, 5010);
}

// What a job was restored from is complete: nobody waits for its upload again.
TEST(Progress, ARestoredSaveStarvesNobody) {
  const SaveSchedule s = schedules()[1];
  Segment g;
  g.from = {12000, 0, 12, 0, 0, 12};
  EXPECT_EQ(save_time(s, g, state_at(s, g, 900)).starved, 0);
  EXPECT_EQ(waits_within(s, g, 12000).size(), 0u);
  EXPECT_EQ(waits_within(s, g, 13000).size(), 1u);
}

TEST(Progress, WaitsStandWhereTheStateHasThem) {
  for (const SaveSchedule& s : schedules()) {
    Segment g;
    g.pace = 1.5;
    g.from = {0, 400, 3, 0};
    const auto waits = waits_within(s, g, 100'000);
    ASSERT_FALSE(waits.empty());
    for (const auto& [begin, end] : waits) {
      EXPECT_EQ(state_at(s, g, begin - 2).starve, 0) << begin;
      EXPECT_GT(state_at(s, g, begin + 2).starve, 0) << begin;
      EXPECT_GT(state_at(s, g, end - 2).starve, 0) << begin;
    }
  }
}

// Cut anywhere, a segment continues as if it had not been.
TEST(Progress, CutsChangeNothing) {
  for (const SaveSchedule& s : schedules()) {
    Segment whole;
    whole.pace = 1.5;
    Stream luck(1, 2);
    ProgressState at;
    Nanoseconds now = 0, starved = 0;
    for (int i = 0; i < 300; ++i) {
      Segment part;
      part.pace = 1.5;
      part.from = at;
      const Nanoseconds dt = static_cast<Nanoseconds>(luck.bits() % 3000);
      at = state_at(s, part, dt);
      now += dt;
      starved += save_time(s, part, at).starved;
      const ProgressState uncut = state_at(s, whole, now);
      EXPECT_NEAR(at.work, uncut.work, 0.7 * (i + 1)) << i;
      const double by = static_cast<double>(starved - save_time(s, whole, uncut).starved);
      EXPECT_NEAR(by, 0, 70) << i;  // at most one wait that begins a moment earlier or later
    }
  }
}

TEST(Progress, TimeOfWorkInvertsState) {
  for (const SaveSchedule& s : schedules()) {
    Segment g;
    g.pace = 1.25;
    g.from = {0, 100, 2, 5};
    for (double work = 1; work < 50000; work += 777.7) {
      const Nanoseconds t = time_of_work(s, g, work);
      EXPECT_NEAR(state_at(s, g, t).work, work, 1) << work;
      EXPECT_LT(state_at(s, g, t - 3).work, work) << work;
    }
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
  const Nanoseconds t = 25 * 1000 + s.stalls(0, 24) + 2 * 50 - 500;
  const History h = with_segment(s, t);
  EXPECT_EQ(h.newest(Extent::kNode, t, 1e18, 0).work, 24000);
  EXPECT_EQ(h.newest(Extent::kNode, t, 1e18, 0).tier, 0);
  EXPECT_EQ(h.newest(Extent::kDomain, t, 1e18, 0).work, 24000);
  EXPECT_EQ(h.newest(Extent::kDomain, t, 1e18, 0).tier, 1);
  // The third tier takes 900 to be durable: at `t` 550 have passed since the stall of save 24.
  EXPECT_EQ(h.newest(Extent::kSite, t, 1e18, 0).work, 12000);
  EXPECT_EQ(h.newest(Extent::kSite, t + 350, 1e18, 0).work, 24000);
  EXPECT_EQ(h.newest(Extent::kSite, t, 11999, 0).work, 0);
}

TEST(Progress, CorruptionGoesBackAsFarAsSavesAreKept) {
  const SaveSchedule s = three_tiers();
  const Nanoseconds t = 100 * 1000 + s.stalls(0, 99) + 8 * 50;
  const History h = with_segment(s, t);
  EXPECT_EQ(h.newest(Extent::kProcess, t, 50500, 0).work, 48000);  // 12, 24, 36, [48], 60 .. 96
  EXPECT_EQ(h.newest(Extent::kProcess, t, 50500, 5).work, 48000);
  EXPECT_EQ(h.newest(Extent::kProcess, t, 50500, 4).work, 0);
}

TEST(Progress, RollbackIsRememberedAndSoIsDestruction) {
  const SaveSchedule s = three_tiers();
  const Nanoseconds t = 25 * 1000 + s.stalls(0, 24) + 2 * 50 - 100;
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
