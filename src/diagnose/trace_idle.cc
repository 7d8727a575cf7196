#include "diagnose/trace_idle.h"

#include <algorithm>

#include "ingest/breakdown.h"

namespace assay {
namespace {

// From a launch to the start of its work on an idle device: 7 to 15 us on every device seen, copies
// of pageable memory up to 4 ms where the driver has to stage them.
constexpr int64_t kPickUpMost = 5'000'000;
constexpr int64_t kSectionLeast = 500'000;  // of launching between two holds

struct Piece {
  int64_t start_ns, end_ns;
  Cause cause;  // kLaunchBound also for what the second look may give to a hold
  bool pace;    // at the launching host's pace: subject to the second look
};

// What the host did, in order of time, without holes.
struct HostPiece {
  int64_t start_ns, end_ns;
  Cause cause;
  bool holds;  // the host was held: its queue is empty afterwards
};

void add_between(const HostMarks& marks, int64_t from, int64_t to, std::vector<HostPiece>& out) {
  if (to <= from) return;
  const Intervals between = {{from, to}};
  std::vector<HostPiece> pieces;
  const Intervals data = intersect(between, marks.data);
  const Intervals pins = intersect(between, marks.pins);
  const Intervals reads = intersect(between, marks.reads);
  const Intervals pauses = intersect(between, marks.pauses);
  for (const Interval64& i : data) {
    pieces.push_back({i.start_ns, i.end_ns, Cause::kDataStarved, true});
  }
  for (const Interval64& i : pins) {
    pieces.push_back({i.start_ns, i.end_ns, Cause::kDataStarved, true});
  }
  for (const Interval64& i : reads) {
    pieces.push_back({i.start_ns, i.end_ns, Cause::kHostSync, true});
  }
  for (const Interval64& i : pauses) {
    pieces.push_back({i.start_ns, i.end_ns, Cause::kGarbageCollection, true});
  }
  const Intervals rest = subtract(subtract(subtract(subtract(between, data), pins), reads), pauses);
  for (const Interval64& i : rest) {
    pieces.push_back({i.start_ns, i.end_ns, Cause::kLaunchBound, false});
  }
  std::sort(pieces.begin(), pieces.end(),
            [](const HostPiece& a, const HostPiece& b) { return a.start_ns < b.start_ns; });
  out.insert(out.end(), pieces.begin(), pieces.end());
}

std::vector<HostPiece> host_pieces(const Trace& t, const StepView& view, const StepGraph& g,
                                   const HostMarks& marks) {
  std::vector<HostPiece> out;
  int64_t frontier = view.from_ns;
  for (const HostCall& call : g.calls) {
    if (call.runtime < 0) break;
    const RuntimeEvent& e = t.runtime[static_cast<size_t>(call.runtime)];
    add_between(marks, frontier, e.start_ns, out);
    const int64_t start = std::max(frontier, e.start_ns);
    const int64_t end = std::max(frontier, e.start_ns + std::max<int64_t>(e.duration_ns, 0));
    const Cause cause = cause_of(call);
    const bool holds =
        cause != Cause::kLaunchBound && (call.waited_ns > 0 || call.kind == CallKind::kAllocate);
    if (end > start) out.push_back({start, end, cause, holds});
    frontier = end;
  }
  add_between(marks, frontier, view.to_ns, out);
  return out;
}

// Idle stretches of the window, each with the event that ends it.
std::vector<IdleGap> gaps_of(const Trace& t, const StepView& view) {
  std::vector<IdleGap> gaps;
  int64_t frontier = view.from_ns;
  for (size_t i = 0; i < t.device.size() && frontier < view.to_ns; ++i) {
    const DeviceEvent& e = t.device[i];
    if (e.duration_ns <= 0) continue;
    const int64_t end = e.start_ns + e.duration_ns;
    if (end <= frontier) continue;
    if (e.start_ns > frontier) {
      gaps.push_back(
          {frontier, std::min(e.start_ns, view.to_ns), Cause::kHealthy, static_cast<int32_t>(i)});
    }
    frontier = std::max(frontier, end);
  }
  if (frontier < view.to_ns) gaps.push_back({frontier, view.to_ns, Cause::kHealthy, -1});
  return gaps;
}

// Gives [from, to) of a gap to what the host did meanwhile. `at` only moves forward.
void split_by_host(const std::vector<HostPiece>& host, size_t& at, int64_t from, int64_t to,
                   std::vector<Piece>& out) {
  while (at < host.size() && host[at].end_ns <= from) ++at;
  for (size_t i = at; i < host.size() && host[i].start_ns < to && from < to; ++i) {
    const int64_t end = std::min(host[i].end_ns, to);
    if (end <= from) continue;
    out.push_back({from, end, host[i].cause, host[i].cause == Cause::kLaunchBound});
    from = end;
  }
  // After the last call of the window the host goes on launching the next step.
  if (from < to) out.push_back({from, to, Cause::kLaunchBound, true});
}

Cause largest(const std::vector<Piece>& pieces, size_t first) {
  std::array<int64_t, kCauses> sum{};
  for (size_t i = first; i < pieces.size(); ++i) {
    sum[static_cast<size_t>(pieces[i].cause)] += pieces[i].end_ns - pieces[i].start_ns;
  }
  return static_cast<Cause>(std::max_element(sum.begin(), sum.end()) - sum.begin());
}

// A section of the step between two holds.
struct Section {
  int64_t start_ns;
  Cause hold;  // what came before it
  int64_t held_ns = 0;
  int64_t host_ns = 0, device_ns = 0, idle_ns = 0;
};

std::vector<Section> sections_of(const std::vector<HostPiece>& host, int64_t from) {
  Cause last = Cause::kLaunchBound;  // in a steady run the step before ended as this one does
  for (const HostPiece& p : host) {
    if (p.holds) last = p.cause;
  }
  std::vector<Section> sections = {{from, last}};
  for (const HostPiece& p : host) {
    const int64_t length = p.end_ns - p.start_ns;
    Section& now = sections.back();
    if (!p.holds) {
      now.host_ns += length;
    } else if (now.host_ns < kSectionLeast) {
      // Nothing much was launched since the hold before: the longer of the two emptied the queue.
      if (length >= now.held_ns) now.hold = p.cause;
      now.held_ns = std::max(now.held_ns, length);
    } else {
      sections.push_back({p.end_ns, p.cause, length});
    }
  }
  return sections;
}

Section& section_at(std::vector<Section>& sections, int64_t at) {
  auto it = std::upper_bound(sections.begin(), sections.end(), at,
                             [](int64_t when, const Section& s) { return when < s.start_ns; });
  return it == sections.begin() ? sections.front() : *std::prev(it);
}

// The second look: idle time at the host's pace is the hold's but for what launching itself needs.
void settle_pace(const Trace& t, const StepGraph& g, const std::vector<HostPiece>& host,
                 const std::vector<Piece>& pieces, int64_t from, IdleSplit& split) {
  std::vector<Section> sections = sections_of(host, from);
  for (const HostCall& call : g.calls) {
    if (call.runtime < 0 || call.ops == 0) continue;
    Section& s = section_at(sections, t.runtime[static_cast<size_t>(call.runtime)].start_ns);
    for (int32_t i = 0; i < call.ops; ++i) {
      s.device_ns += g.ops[static_cast<size_t>(call.first_op + i)].busy_ns;
    }
  }
  for (const Piece& p : pieces) {
    if (p.pace) section_at(sections, p.start_ns).idle_ns += p.end_ns - p.start_ns;
  }
  for (const Section& s : sections) {
    const int64_t own =
        std::clamp<int64_t>(s.host_ns - s.device_ns, 0, std::max<int64_t>(s.idle_ns, 0));
    split.by_cause[static_cast<size_t>(Cause::kLaunchBound)] += own;
    split.by_cause[static_cast<size_t>(s.hold)] += s.idle_ns - own;
  }
}

void keep_longest(std::vector<IdleGap>& gaps) {
  const size_t kept = std::min(gaps.size(), kEvidenceRows);
  std::partial_sort(gaps.begin(), gaps.begin() + static_cast<std::ptrdiff_t>(kept), gaps.end(),
                    [](const IdleGap& a, const IdleGap& b) {
                      return a.end_ns - a.start_ns > b.end_ns - b.start_ns;
                    });
  gaps.resize(kept);
}

}  // namespace

Cause cause_of(const HostCall& call) {
  switch (call.kind) {
    case CallKind::kSync:
      return call.after_copy ? Cause::kPageableCopies : Cause::kHostSync;
    case CallKind::kCopy:
      return call.small_copy ? Cause::kHostSync : Cause::kPageableCopies;
    case CallKind::kAllocate:
      return Cause::kAllocator;
    default:
      return Cause::kLaunchBound;
  }
}

IdleSplit idle_split(const Trace& t, const StepView& view, const StepGraph& g,
                     const HostMarks& marks) {
  IdleSplit split;
  const std::vector<HostPiece> host = host_pieces(t, view, g, marks);
  split.gaps = gaps_of(t, view);
  std::vector<Piece> pieces;
  size_t at = 0;
  for (IdleGap& gap : split.gaps) {
    const DeviceEvent* next = gap.next >= 0 ? &t.device[static_cast<size_t>(gap.next)] : nullptr;
    if (next != nullptr && next->launch < 0) {
      split.unexplained_ns += gap.end_ns - gap.start_ns;
      continue;
    }
    const int64_t launched =
        next == nullptr ? gap.end_ns : t.runtime[static_cast<size_t>(next->launch)].start_ns;
    const int64_t taken_up = std::clamp(launched, gap.start_ns, gap.end_ns);
    const size_t first = pieces.size();
    split_by_host(host, at, gap.start_ns, taken_up, pieces);
    // A queue that is not empty and yet does not run waits for something the file does not show.
    const int64_t picked = std::min(gap.end_ns, taken_up + kPickUpMost);
    if (taken_up < picked) pieces.push_back({taken_up, picked, Cause::kLaunchBound, false});
    split.unexplained_ns += gap.end_ns - picked;
    gap.cause = largest(pieces, first);
  }
  for (const Piece& p : pieces) {
    if (!p.pace) split.by_cause[static_cast<size_t>(p.cause)] += p.end_ns - p.start_ns;
  }
  settle_pace(t, g, host, pieces, view.from_ns, split);
  if (!g.pauses_told) {
    // In a file that is not a training loop, silence may be a server without requests.
    int64_t& pauses = split.by_cause[static_cast<size_t>(Cause::kGarbageCollection)];
    split.unexplained_ns += pauses;
    pauses = 0;
  }
  keep_longest(split.gaps);
  return split;
}

void add(const IdleSplit& step, IdleSplit& sum) {
  for (size_t c = 0; c < sum.by_cause.size(); ++c) sum.by_cause[c] += step.by_cause[c];
  sum.unexplained_ns += step.unexplained_ns;
  sum.gaps.insert(sum.gaps.end(), step.gaps.begin(), step.gaps.end());
  keep_longest(sum.gaps);
}

IdleSplit mean(IdleSplit sum, int64_t steps) {
  int64_t whole = sum.unexplained_ns;
  for (int64_t ns : sum.by_cause) whole += ns;
  sum.unexplained_ns /= steps;
  int64_t left = whole / steps - sum.unexplained_ns;
  for (int64_t& ns : sum.by_cause) {
    ns /= steps;
    left -= ns;
  }
  int64_t& largest = *std::max_element(sum.by_cause.begin(), sum.by_cause.end());
  (largest > sum.unexplained_ns ? largest : sum.unexplained_ns) += left;
  return sum;
}

}  // namespace assay
