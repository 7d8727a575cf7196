#include "sim/progress.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace assay {
namespace {

Nanoseconds scaled(double work, double pace) {
  const double wall = work * pace;
  if (!(wall < static_cast<double>(kTimeMax))) return kTimeMax;
  return static_cast<Nanoseconds>(wall + 0.5);
}

// Work between the segment's begin and its n-th save.
double work_before(const SaveSchedule& s, const Segment& g, int64_t n) {
  return std::max(0.0, static_cast<double>(n) * s.interval - g.from.since);
}

// Where a tier's wait is: so many saves of the first tier after its own save, and then work.
struct WaitPlace {
  int64_t saves;
  double since;
};

WaitPlace place_of(const SaveSchedule& s, const SaveTier& t) {
  if (s.interval <= 0) return {0, 0};
  const double saves = std::floor(t.starve_after / s.interval);
  const double since = t.starve_after - saves * s.interval;
  if (since >= s.interval) return {static_cast<int64_t>(saves) + 1, 0};
  return {static_cast<int64_t>(saves), std::max(0.0, since)};
}

// All waits that have begun `since` after a save, of saves after `restored`; below zero: that save
// has not ended.
Nanoseconds waits_begun(const SaveSchedule& s, int64_t saves, double since, int64_t restored) {
  Nanoseconds sum = 0;
  for (const SaveTier& t : s.tiers) {
    if (t.starve <= 0) continue;
    const WaitPlace place = place_of(s, t);
    const int64_t upto = saves - place.saves - (since >= place.since ? 0 : 1);
    if (upto > restored) sum += (upto / t.every - restored / t.every) * t.starve;
  }
  return sum;
}

Nanoseconds waits_begun(const SaveSchedule& s, const ProgressState& p) {
  return waits_begun(s, p.saves, p.stall > 0 ? -1 : p.since, p.restored);
}

struct NextWait {
  double since;        // of the next save where there is none
  Nanoseconds starve;  // zero: none before the next save
};

// `fresh`: the save has just ended, so that a wait without work before it is ahead, too.
NextWait next_wait(const SaveSchedule& s, const ProgressState& at, bool fresh) {
  NextWait next{s.interval > 0 ? s.interval : std::numeric_limits<double>::infinity(), 0};
  for (const SaveTier& t : s.tiers) {
    if (t.starve <= 0) continue;
    const WaitPlace place = place_of(s, t);
    const int64_t save = at.saves - place.saves;
    if (save <= at.restored || save % t.every != 0) continue;
    if (place.since < at.since || (place.since == at.since && !fresh)) continue;
    if (place.since < next.since) {
      next = {place.since, t.starve};
    } else if (next.starve > 0 && place.since == next.since) {
      next.starve += t.starve;
    }
  }
  return next;
}

// Steps and waits on, for `left`, from a state between two saves. A state never stands at the
// begin of a wait without having begun it.
void walk(const SaveSchedule& s, double pace, Nanoseconds left, bool fresh, ProgressState& at) {
  const Nanoseconds waited = std::min(left, at.starve);
  at.starve -= waited;
  left -= waited;
  while (at.starve == 0) {
    const NextWait next = next_wait(s, at, fresh);
    const double ahead = next.since - at.since;
    const Nanoseconds until = ahead > 0 ? scaled(ahead, pace) : 0;
    if (next.starve == 0 || left < until) {
      const double done = std::min(static_cast<double>(left) / pace, ahead);
      at.work += done;
      at.since += done;
      if (next.starve > 0) at.since = std::min(at.since, std::nextafter(next.since, 0.0));
      return;
    }
    at.work += ahead;
    at.since = next.since;
    left -= until;
    fresh = false;
    at.starve = next.starve - std::min(left, next.starve);
    left -= next.starve - at.starve;
  }
}

Nanoseconds save_end(const SaveSchedule& s, const Segment& g, int64_t n) {
  if (n == 0) return g.from.stall;
  return save_begin(s, g, n) + s.stalls(g.from.saves + n - 1, g.from.saves + n);
}

// The largest n >= 0 for which `reached(n)`, which is monotone: near what the mean period says, off
// by no more than one stall of each tier.
template <class Reached>
int64_t last_n(const SaveSchedule& s, const Segment& g, Nanoseconds elapsed, Reached&& reached) {
  if (s.interval <= 0 || !(g.pace < 1e300)) return 0;
  double mean = 0, once = 0;
  for (const SaveTier& t : s.tiers) {
    const double each = static_cast<double>(t.stall + t.starve);
    mean += each / static_cast<double>(t.every);
    // A wait lags behind its save.
    const double lag = t.starve > 0 ? static_cast<double>(place_of(s, t).saves + 1) : 0;
    once += each * (1 + lag / static_cast<double>(t.every));
  }
  const double work = s.interval * g.pace;
  const double guess =
      (static_cast<double>(elapsed - g.from.stall - g.from.starve) + g.from.since * g.pace) /
      (work + mean);
  const double off = 2 + once / (work + mean);
  int64_t low = std::max<int64_t>(0, static_cast<int64_t>(guess - off));
  int64_t high = std::max<int64_t>(low, static_cast<int64_t>(guess + off)) + 1;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (reached(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace

Nanoseconds save_begin(const SaveSchedule& s, const Segment& g, int64_t n) {
  if (n == 0) return 0;
  const int64_t before = g.from.saves + n - 1;
  return g.from.stall + g.from.starve + scaled(work_before(s, g, n), g.pace) +
         s.stalls(g.from.saves, before) + waits_begun(s, before, s.interval, g.from.restored) -
         waits_begun(s, g.from);
}

Nanoseconds SaveSchedule::stalls(int64_t after, int64_t upto) const {
  Nanoseconds sum = 0;
  for (const SaveTier& t : tiers) {
    const int64_t saves = t.every == 1 ? upto - after : upto / t.every - after / t.every;
    sum += saves * t.stall;
  }
  return sum;
}

SaveTime save_time(const SaveSchedule& s, const Segment& g, const ProgressState& at) {
  // Begun, less what is still to go of the last.
  const Nanoseconds starved =
      g.from.starve + waits_begun(s, at) - waits_begun(s, g.from) - at.starve;
  return {g.from.stall + s.stalls(g.from.saves, at.saves) - at.stall + starved, starved};
}

ProgressState state_at(const SaveSchedule& s, const Segment& g, Nanoseconds elapsed) {
  ProgressState at = g.from;
  if (elapsed < g.from.stall) {
    at.stall -= elapsed;
    return at;
  }
  const int64_t n =
      last_n(s, g, elapsed, [&](int64_t k) { return save_begin(s, g, k) <= elapsed; });
  const Nanoseconds left = elapsed - save_end(s, g, n);
  at.saves += n;
  if (n > 0) {
    at.work += work_before(s, g, n);
    at.since = 0;
    at.starve = 0;
  }
  at.stall = std::max<Nanoseconds>(0, -left);
  if (at.stall == 0) walk(s, g.pace, left, n > 0 || g.from.stall > 0, at);
  return at;
}

Nanoseconds time_of_work(const SaveSchedule& s, const Segment& g, double work) {
  const double ahead = std::max(0.0, work - g.from.work);
  int64_t n = 0;
  if (s.interval > 0) {
    // A save that is due exactly there comes after.
    n = std::max<int64_t>(0,
                          static_cast<int64_t>(std::ceil((ahead + g.from.since) / s.interval)) - 1);
  }
  const Nanoseconds stepped = scaled(ahead, g.pace);
  if (stepped >= kTimeMax) return kTimeMax;
  // So does a wait.
  const double since = n > 0 ? ahead - work_before(s, g, n) : g.from.since + ahead;
  const Nanoseconds waits =
      waits_begun(s, g.from.saves + n, std::nextafter(since, -1.0), g.from.restored) -
      waits_begun(s, g.from);
  return g.from.stall + g.from.starve + stepped + s.stalls(g.from.saves, g.from.saves + n) +
         std::max<Nanoseconds>(0, waits);
}

std::vector<std::pair<Nanoseconds, Nanoseconds>> waits_within(const SaveSchedule& s,
                                                              const Segment& g,
                                                              Nanoseconds length) {
  std::vector<std::pair<Nanoseconds, Nanoseconds>> waits;
  if (g.from.starve > 0) waits.push_back({g.from.stall, g.from.stall + g.from.starve});
  for (const SaveTier& t : s.tiers) {
    if (t.starve <= 0 || s.interval <= 0) continue;
    const WaitPlace place = place_of(s, t);
    const double since = g.from.stall > 0 ? -1 : g.from.since;
    const int64_t begun = g.from.saves - place.saves - (since >= place.since ? 0 : 1);
    const int64_t done = std::max(begun, g.from.restored);
    for (int64_t save = (done / t.every + 1) * t.every;; save += t.every) {
      const int64_t after = save + place.saves;
      const double ahead =
          static_cast<double>(after - g.from.saves) * s.interval + place.since - g.from.since;
      const Nanoseconds stepped = scaled(std::max(0.0, ahead), g.pace);
      if (stepped >= length) break;
      const Nanoseconds earlier =
          waits_begun(s, after, std::nextafter(place.since, -1.0), g.from.restored) -
          waits_begun(s, g.from);
      const Nanoseconds begin = g.from.stall + g.from.starve + stepped +
                                s.stalls(g.from.saves, after) + std::max<Nanoseconds>(0, earlier);
      if (begin >= length) break;
      waits.push_back({begin, begin + t.starve});
    }
  }
  return waits;
}

bool History::find(size_t tier, Nanoseconds time, double work_least, double work_most,
                   Found& found) const {
  const SaveTier& t = schedule_.tiers[tier];
  const bool last = tier + 1 == schedule_.tiers.size();
  int64_t newer = 0;
  for (size_t i = segments_.size(); i-- > 0;) {
    const Segment& g = segments_[i];
    if (g.forced) {
      if (!last || g.begin > time || g.kept < g.from.work) continue;
      if (g.begin <= lost_at_[tier] || g.from.work <= work_least) return false;
      if (g.from.work <= work_most) {
        found = {g.from.work, g.from.saves, newer};
        return true;
      }
      ++newer;
      continue;
    }
    // What counts is one chain of rising work: older segments hold less.
    if (g.kept <= work_least) return false;
    if (schedule_.interval <= 0) continue;
    const Nanoseconds upto = std::min(g.end, time - t.persist) - g.begin;
    if (upto < 0) continue;
    // Most segments hold no save of a coarse tier.
    if (g.saves_end / t.every == (g.from.saves - (g.from.stall > 0 ? 1 : 0)) / t.every) continue;
    // Saves of this tier that ended in this segment: indices of the job above `first`, up to `n`.
    const int64_t n =
        last_n(schedule_, g, upto, [&](int64_t k) { return save_end(schedule_, g, k) <= upto; });
    const bool in_progress = g.from.stall > 0 && g.from.stall <= upto;
    const int64_t first = g.from.saves - (in_progress ? 1 : 0);
    int64_t index = (g.from.saves + n) / t.every * t.every;
    for (; index > first && index > 0; index -= t.every) {
      const int64_t k = index - g.from.saves;
      const double work = g.from.work + (k > 0 ? work_before(schedule_, g, k) : 0);
      if (work > g.kept) continue;  // abandoned
      if (g.begin + save_end(schedule_, g, k) <= lost_at_[tier]) return false;
      if (work <= work_most) {
        found = {work, index, newer};
        return true;
      }
      ++newer;
    }
  }
  return false;
}

SavePoint History::newest(Extent extent, Nanoseconds time, double work_most, int64_t kept) const {
  SavePoint best{0, 0, std::max(0, static_cast<int>(schedule_.tiers.size()) - 1)};
  for (size_t j = 0; j < schedule_.tiers.size(); ++j) {
    if (schedule_.tiers[j].survives < extent) continue;
    const bool last = j + 1 == schedule_.tiers.size();
    const int64_t keeps = last ? kept : 1;
    Found found{};
    if (!find(j, time, best.work, work_most, found)) continue;
    if (keeps > 0 && found.newer >= keeps) continue;
    if (found.work > best.work) best = {found.work, found.saves, static_cast<int>(j)};
  }
  return best;
}

void History::destroy(Extent extent, Nanoseconds time) {
  for (size_t j = 0; j < schedule_.tiers.size(); ++j) {
    if (schedule_.tiers[j].survives < extent) lost_at_[j] = time;
  }
}

std::vector<History::Lost> History::roll_back(double work) {
  std::vector<Lost> lost;
  for (size_t i = segments_.size(); i-- > 0;) {
    Segment& g = segments_[i];
    if (g.forced) {
      if (g.from.work > work) g.kept = -1;
      continue;
    }
    if (g.from.work <= work && g.kept <= work) {
      // What counts is one chain of rising work: older links of it hold less.
      if (g.kept > g.from.work || g.kept == g.work_end) break;
      continue;
    }
    if (g.kept <= work || g.kept <= g.from.work) continue;
    const double from = std::max(work, g.from.work);
    lost.push_back({i, from, g.kept});
    g.kept = from;
  }
  return lost;
}

}  // namespace assay
