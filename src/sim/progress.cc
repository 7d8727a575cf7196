#include "sim/progress.h"

#include <algorithm>
#include <cmath>

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
    once += each;
  }
  const double work = s.interval * g.pace;
  const double guess =
      (static_cast<double>(elapsed - g.from.stall) + g.from.since * g.pace) / (work + mean);
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
  return g.from.stall + scaled(work_before(s, g, n), g.pace) +
         s.stalls(g.from.saves, g.from.saves + n - 1);
}

Nanoseconds SaveSchedule::stalls(int64_t after, int64_t upto) const {
  Nanoseconds sum = 0;
  for (const SaveTier& t : tiers) {
    const int64_t saves = t.every == 1 ? upto - after : upto / t.every - after / t.every;
    sum += saves * (t.stall + t.starve);
  }
  return sum;
}

Nanoseconds SaveSchedule::starves(int64_t after, int64_t upto) const {
  Nanoseconds sum = 0;
  for (const SaveTier& t : tiers) {
    if (t.starve > 0) sum += (upto / t.every - after / t.every) * t.starve;
  }
  return sum;
}

SaveTime save_time(const SaveSchedule& s, const Segment& g, const ProgressState& at) {
  // Begun, less what is still to go of the last; a save ends with its starving.
  const auto starving_left = [&](const ProgressState& p) {
    return p.stall > 0 ? std::min(p.stall, s.starves(p.saves - 1, p.saves)) : 0;
  };
  return {g.from.stall + s.stalls(g.from.saves, at.saves) - at.stall,
          starving_left(g.from) + s.starves(g.from.saves, at.saves) - starving_left(at)};
}

ProgressState state_at(const SaveSchedule& s, const Segment& g, Nanoseconds elapsed) {
  ProgressState at = g.from;
  if (elapsed < g.from.stall) {
    at.stall -= elapsed;
    return at;
  }
  const int64_t n =
      last_n(s, g, elapsed, [&](int64_t k) { return save_begin(s, g, k) <= elapsed; });
  const Nanoseconds end = save_end(s, g, n);
  at.saves += n;
  if (n > 0) {
    at.work += work_before(s, g, n);
    at.since = 0;
  }
  at.stall = std::max<Nanoseconds>(0, end - elapsed);
  if (at.stall == 0) {
    double done = static_cast<double>(elapsed - end) / g.pace;
    if (s.interval > 0) done = std::min(done, s.interval - at.since);
    at.work += done;
    at.since += done;
  }
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
  const Nanoseconds walk = scaled(ahead, g.pace);
  return walk >= kTimeMax ? kTimeMax
                          : g.from.stall + walk + s.stalls(g.from.saves, g.from.saves + n);
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
