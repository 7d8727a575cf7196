#include "sim/account.h"

#include <algorithm>
#include <cmath>

#include "base/assert.h"

namespace assay {
namespace {

// Accelerator time by account, whole nanoseconds.
class Books {
 public:
  GpuNanoseconds& operator[](Account a) { return leaf_[static_cast<size_t>(a)]; }

  // Splits `amount` by weights; what rounding leaves goes to `rest`, so nothing is lost.
  template <size_t N>
  void split(GpuNanoseconds amount, const std::array<std::pair<Account, double>, N>& weights,
             Account rest) {
    GpuNanoseconds left = amount;
    for (const auto& [account, weight] : weights) {
      const GpuNanoseconds part =
          std::min(left, static_cast<GpuNanoseconds>(static_cast<double>(amount) * weight));
      (*this)[account] += part;
      left -= part;
    }
    (*this)[rest] += left;
  }

  GpuNanoseconds sum() const {
    GpuNanoseconds total = 0;
    for (const GpuNanoseconds g : leaf_) total += g;
    return total;
  }
  const std::array<GpuNanoseconds, kAccounts>& leaves() const { return leaf_; }

 private:
  std::array<GpuNanoseconds, kAccounts> leaf_{};
};

double seconds(GpuNanoseconds g) { return static_cast<double>(g) / kNanosecondsPerSecond; }

// Share of a segment's steps that count.
double kept_share(const Segment& g) {
  const double all = g.work_end - g.from.work;
  return all > 0 ? std::clamp((g.kept - g.from.work) / all, 0.0, 1.0) : 1.0;
}

class Settlement {
 public:
  Settlement(const PreparedRun& run, const Chronicle& c, const std::vector<Segment>& segments)
      : run_(run), chronicle_(c), segments_(segments) {
    lost_by_cause_ = c.by_cause;
  }

  void settle_slices() {
    for (const Slice& s : chronicle_.slices) {
      const GpuNanoseconds time = GpuNanoseconds{s.end - s.begin} * s.gpus;
      books_[s.account] += time;
      charge(s.cause, time);
    }
  }

  void settle_segments() {
    std::vector<LostWork> lost = chronicle_.lost;
    std::stable_sort(lost.begin(), lost.end(),
                     [](const LostWork& a, const LostWork& b) { return a.segment < b.segment; });
    auto piece = lost.begin();
    for (size_t i = 0; i < segments_.size(); ++i) {
      const Segment& g = segments_[i];
      const auto first = piece;
      while (piece != lost.end() && piece->segment == i) ++piece;
      if (g.forced) continue;
      const GpuNanoseconds length = g.end - g.begin;
      books_[Account::kCheckpoint] += GpuNanoseconds{g.stalled - g.starved} * g.active;
      books_[Account::kStorage] += GpuNanoseconds{g.starved} * g.active;
      books_[Account::kCurtailment] += length * g.curtailed;
      books_[Account::kReplacement] += length * g.replacing;
      books_[Account::kRestart] += length * g.restarting;
      const GpuNanoseconds stepped = (length - g.stalled) * g.active;
      const double share = first == piece ? 1.0 : kept_share(g);
      const GpuNanoseconds kept =
          share >= 1 ? stepped : static_cast<GpuNanoseconds>(static_cast<double>(stepped) * share);
      settle_kept(g, kept);
      settle_lost(std::vector<LostWork>(first, piece), stepped - kept);
    }
  }

  // The step's own ledger for the time that steps would have taken at their nominal pace.
  void settle_nominal() {
    const Ledger& step = run_.spec.step.ledger;
    const double paid = step.paid().v;
    GpuNanoseconds left = nominal_;
    for (int a = 1; a < kAccounts; ++a) {
      const Account account = static_cast<Account>(a);
      const GpuNanoseconds part = std::min(
          left,
          static_cast<GpuNanoseconds>(static_cast<double>(nominal_) * step[account].v / paid));
      books_[account] += part;
      left -= part;
    }
    books_[Account::kUseful] += left;
    books_[Account::kSpare] += GpuNanoseconds{chronicle_.end} * spare_gpus();
  }

  void finish(RunResult& r) {
    const GpuNanoseconds job = GpuNanoseconds{chronicle_.end} * run_.spec.gpus;
    const GpuNanoseconds paid = job + GpuNanoseconds{chronicle_.end} * spare_gpus();
    ASSERT(books_.sum() == paid);
    for (size_t a = 0; a < static_cast<size_t>(kAccounts); ++a) {
      ASSERT(books_.leaves()[a] >= 0);
      r.ledger.leaf[a] = Seconds(seconds(books_.leaves()[a]));
    }
    r.paid = r.ledger.paid();
    r.goodput = job > 0 ? static_cast<double>(kept_) / static_cast<double>(job) : 0;
    r.useful_share = paid > 0 ? static_cast<double>(nominal_) / static_cast<double>(paid) : 0;
    for (size_t i = 0; i < run_.cause_names.size(); ++i) {
      r.causes.push_back(
          {run_.cause_names[i], chronicle_.interruptions[i], Seconds(seconds(lost_by_cause_[i]))});
    }
    r.interruptions = static_cast<int64_t>(chronicle_.interrupted_at.size());
  }

 private:
  int64_t spare_gpus() const { return run_.spec.spares.nodes * run_.node_gpus; }

  void charge(int cause, GpuNanoseconds time) {
    if (cause >= 0) lost_by_cause_[static_cast<size_t>(cause)] += time;
  }

  void settle_kept(const Segment& g, GpuNanoseconds kept) {
    const Excess& e = g.excess;
    const double all = 1 + e.total();
    const std::array<std::pair<Account, double>, 6> parts{
        {{Account::kThermal, e.thermal / all},
         {Account::kFacilityCap, e.facility / all},
         {Account::kStraggler, (e.jitter + e.straggler) / all},
         {Account::kStorage, e.data / all},
         {Account::kCorruption, e.replay / all},
         {Account::kFragmentation, e.group / all}}};
    // `useful` holds the nominal part for a moment; settle_nominal spreads it.
    const GpuNanoseconds before = books_[Account::kUseful];
    books_.split(kept, parts, Account::kUseful);
    nominal_ += books_[Account::kUseful] - before;
    books_[Account::kUseful] = before;
    kept_ += kept;
  }

  void settle_lost(const std::vector<LostWork>& pieces, GpuNanoseconds lost) {
    double work = 0;
    for (const LostWork& p : pieces) work += p.upto - p.from;
    GpuNanoseconds left = lost;
    for (size_t i = 0; i < pieces.size(); ++i) {
      const double share = work > 0 ? (pieces[i].upto - pieces[i].from) / work : 0;
      const bool last = i + 1 == pieces.size();
      const GpuNanoseconds part =
          last ? left
               : std::min(left, static_cast<GpuNanoseconds>(static_cast<double>(lost) * share));
      books_[pieces[i].account] += part;
      charge(pieces[i].cause, part);
      left -= part;
    }
    ASSERT(left == 0);
  }

  const PreparedRun& run_;
  const Chronicle& chronicle_;
  const std::vector<Segment>& segments_;
  Books books_;
  GpuNanoseconds kept_ = 0, nominal_ = 0;
  std::vector<GpuNanoseconds> lost_by_cause_;
};

// --- the series -------------------------------------------------------------------------------

struct Bucket {
  double kept = 0, stepped = 0;          // accelerator-nanoseconds
  double slow = 0, clock = 0, wall = 0;  // weighted by stepping wall time
};

// What of [begin, end) lies in bucket i.
double overlap(double begin, double end, double length, size_t i) {
  const double from = static_cast<double>(i) * length;
  return std::max(0.0, std::min(end, from + length) - std::max(begin, from));
}

// Time of a segment in which it stepped, until `elapsed` after its begin: saves stand where they
// are.
double stepped_until(const SaveSchedule& s, const Segment& g, double elapsed) {
  const Nanoseconds at = static_cast<Nanoseconds>(elapsed);
  if (at <= 0) return 0;
  const Nanoseconds length = g.end - g.begin;
  if (at >= length) return static_cast<double>(length - g.stalled);
  return static_cast<double>(at - save_time(s, g, state_at(s, g, at)).stalled);
}

std::vector<SeriesPoint> series(const PreparedRun& run, const Chronicle& c,
                                const std::vector<Segment>& segments, Seconds bucket) {
  const double length = static_cast<double>(std::max<Nanoseconds>(1, to_ns(bucket)));
  const double end = static_cast<double>(c.end);
  std::vector<Bucket> buckets(static_cast<size_t>(std::ceil(end / length)));
  for (const Segment& g : segments) {
    if (g.forced || g.end <= g.begin) continue;
    const double from = static_cast<double>(g.begin), upto = static_cast<double>(g.end);
    const double kept = kept_share(g) * static_cast<double>(g.end - g.begin - g.stalled);
    const size_t last = std::min(buckets.size() - 1, static_cast<size_t>(upto / length));
    double before = 0;  // stepped until this bucket
    for (size_t i = static_cast<size_t>(from / length); i <= last; ++i) {
      const double edge = static_cast<double>(i + 1) * length;
      const double after = stepped_until(run.schedule, g, edge - from);
      const double wall = after - before;
      const double gpus = static_cast<double>(g.active);
      buckets[i].kept += std::max(0.0, std::min(kept, after) - before) * gpus;
      before = after;
      buckets[i].stepped += wall * gpus;
      buckets[i].slow += wall * (1 + g.excess.total());
      buckets[i].clock += wall * g.clock;
      buckets[i].wall += wall;
    }
  }
  std::vector<SeriesPoint> points(buckets.size());
  for (size_t i = 0; i < buckets.size(); ++i) {
    const Bucket& b = buckets[i];
    const double job = overlap(0, end, length, i) * static_cast<double>(run.spec.gpus);
    if (job > 0) points[i].goodput = std::min(1.0, b.kept / job);
    if (job > 0) points[i].busy = std::min(1.0, b.stepped / job);
    if (b.wall > 0) points[i].slowdown = b.slow / b.wall;
    if (b.wall > 0) points[i].clock = b.clock / b.wall;
  }
  for (const Nanoseconds t : c.interrupted_at) {
    const size_t i = static_cast<size_t>(static_cast<double>(t) / length);
    if (i < points.size()) ++points[i].interruptions;
  }
  return points;
}

// --- the trace --------------------------------------------------------------------------------

// Waits for input, each where it is.
void trace_waits(const SaveSchedule& s, const Segment& g, std::vector<RunEvent>& events) {
  for (const auto& [begin, end] : waits_within(s, g, g.end - g.begin)) {
    const bool late = g.late && begin == g.from.stall;
    events.push_back({to_seconds(g.begin + begin), to_seconds(std::min(g.end, g.begin + end)),
                      "input", late ? "late batch" : "starved by a save", -1,
                      static_cast<double>(g.active)});
  }
}

std::vector<RunEvent> trace(const PreparedRun& run, const Chronicle& c,
                            const std::vector<Segment>& segments) {
  std::vector<RunEvent> events = c.moments;
  const auto span = [&](double begin, double end, std::string name, int64_t gpus) {
    if (!(end > begin)) return;
    events.push_back({Seconds(begin / kNanosecondsPerSecond), Seconds(end / kNanosecondsPerSecond),
                      "job", std::move(name), -1, static_cast<double>(gpus)});
  };
  for (const Slice& s : c.slices) {
    const AccountInfo& a = info(s.account);
    span(static_cast<double>(s.begin), static_cast<double>(s.end),
         std::string(a.name.empty() ? a.group : a.name), s.gpus);
  }
  for (const Segment& g : segments) {
    if (g.forced) continue;
    const double from = static_cast<double>(g.begin), upto = static_cast<double>(g.end);
    const double kept_until = from + (upto - from) * kept_share(g);
    span(from, kept_until, g.active < run.spec.gpus ? "step, degraded" : "step", g.active);
    span(kept_until, upto, "step, lost", g.active);
    trace_waits(run.schedule, g, events);
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const RunEvent& a, const RunEvent& b) { return a.begin < b.begin; });
  return events;
}

}  // namespace

RunResult settle(const PreparedRun& run, const Chronicle& c, const std::vector<Segment>& segments,
                 const RunOptions& options) {
  RunResult r;
  r.period = to_seconds(c.end);
  r.finished = c.finished;
  Settlement s(run, c, segments);
  s.settle_slices();
  s.settle_segments();
  s.settle_nominal();
  s.finish(r);
  r.tokens = c.work / (run.spec.step.step.v * kNanosecondsPerSecond) * run.spec.step.tokens;
  r.series = series(run, c, segments, options.bucket);
  if (options.trace) r.events = trace(run, c, segments);
  r.spares_empty = c.spares_empty;
  r.longest_run = to_seconds(c.longest_run);
  return r;
}

}  // namespace assay
