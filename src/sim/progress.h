// Work, saves and rollback, in closed form.
//
// Between two events that change the pace, a job's life is periodic: work for an interval, stall
// for a save, and so on; every r-th save also goes to the next tier. A save that keeps input back
// lets steps wait once what was fetched ahead is used up: a second pause, `starve_after` of work
// behind the save and perhaps behind later saves of other tiers. (A late batch is a wait that its
// segment begins with.) A Segment is such a stretch;
// work, save and stall at any moment of it follow from arithmetic (a search over the number of
// saves), so a run with a save every step costs as much as one without. The list of segments is the
// job's history: the newest save that a failure leaves readable is found by walking back through
// it.
//
// Work is counted in nanoseconds of nominal step time of the whole job.
#pragma once

#include "sim/kernel.h"
#include "sim/run.h"

namespace assay {

struct SaveTier {
  int64_t every = 1;  // of the first tier's saves; each divides the next
  Nanoseconds stall = 0;
  Nanoseconds starve = 0;   // how long steps wait for input that the save keeps back
  Nanoseconds persist = 0;  // until it is durable, from the end of its stall
  Extent survives = Extent::kSite;
  double starve_after = 0;  // work between the save and that wait: what was fetched ahead
};

struct SaveSchedule {
  double interval = 0;  // work between saves of the first tier; zero: never saves
  std::vector<SaveTier> tiers;

  // Stall of all saves with index in (after, upto], without waits. Saves are counted from 1.
  Nanoseconds stalls(int64_t after, int64_t upto) const;
};

// Where a job stands; carried from segment to segment.
struct ProgressState {
  double work = 0;
  double since = 0;        // work since the last save began
  int64_t saves = 0;       // begun in this timeline
  Nanoseconds stall = 0;   // still to go of the save in progress
  Nanoseconds starve = 0;  // still to go of a wait for input; after the stall
  int64_t restored = 0;    // saves up to this one are complete: no wait of theirs is ahead
};

// Where a segment's step time beyond the nominal goes, in units of nominal step time.
struct Excess {
  double thermal = 0, facility = 0, jitter = 0, straggler = 0, data = 0, replay = 0, group = 0;
  double total() const { return thermal + facility + jitter + straggler + data + replay + group; }
  bool operator==(const Excess&) const = default;
};

struct Segment {
  Nanoseconds begin = 0, end = 0;
  ProgressState from;
  double pace = 1;  // wall time per work
  double work_end = 0;
  int64_t saves_end = INT64_MAX;  // begun by its end; more does not harm
  double kept = 0;                // work up to which it counts; lowered by rollbacks
  Nanoseconds stalled = 0;        // of its length, in saves
  Nanoseconds starved = 0;        // of that, waiting for input
  bool late = false;              // it begins with a wait for a late batch
  bool forced = false;            // no length: a save of the last tier at `begin`, durable at once
  // Who does what meanwhile, in accelerators of the job.
  int64_t active = 0, curtailed = 0, replacing = 0, restarting = 0;
  Excess excess;
  double clock = 1;
};

// The state `elapsed` after the segment's begin.
ProgressState state_at(const SaveSchedule&, const Segment&, Nanoseconds elapsed);

// What the segment spent in saves until it reached a state.
struct SaveTime {
  Nanoseconds stalled = 0, starved = 0;  // as in Segment
};
SaveTime save_time(const SaveSchedule&, const Segment&, const ProgressState& at);

// Begin of the segment's n-th save after its own; n = 0 is one that was in progress.
Nanoseconds save_begin(const SaveSchedule&, const Segment&, int64_t n);

// Waits for input, from the segment's begin, each with its end; one that was in progress first.
// Only those that begin before `length`.
std::vector<std::pair<Nanoseconds, Nanoseconds>> waits_within(const SaveSchedule&, const Segment&,
                                                              Nanoseconds length);

// When the segment reaches `work`, after its begin; kTimeMax when its pace is zero work.
Nanoseconds time_of_work(const SaveSchedule&, const Segment&, double work);

struct SavePoint {
  double work = 0;
  int64_t saves = 0;  // its number, so that coarser tiers keep their turn after a restart
  int tier = 0;       // the last when there was no save at all: back to the beginning
};

// A job's segments, oldest first; the first is a forced one at the start.
class History {
 public:
  explicit History(const SaveSchedule& schedule) : schedule_(schedule) {
    lost_at_.assign(schedule.tiers.size(), -1);
  }

  std::vector<Segment>& segments() { return segments_; }
  const std::vector<Segment>& segments() const { return segments_; }

  // The save with the most work, not above `work_most`, that was durable at `time` and that a
  // failure of this extent leaves readable. Tiers before the last keep only their newest save, the
  // last keeps `kept` of them (zero: all).
  SavePoint newest(Extent extent, Nanoseconds time, double work_most, int64_t kept) const;

  // What a failure of this extent destroys is gone for later ones, too.
  void destroy(Extent extent, Nanoseconds time);

  struct Lost {
    size_t segment;
    double from, upto;
  };
  // Work beyond `work` does not count any more; what was lost by that, piece by piece.
  std::vector<Lost> roll_back(double work);

 private:
  struct Found {
    double work;
    int64_t saves;
    int64_t newer;  // saves of the tier between it and the newest durable one
  };
  // The newest save of a tier with more than `work_least` and at most `work_most`.
  bool find(size_t tier, Nanoseconds time, double work_least, double work_most, Found&) const;

  const SaveSchedule& schedule_;
  std::vector<Segment> segments_;
  std::vector<Nanoseconds> lost_at_;  // saves of a tier that ended before are gone
};

}  // namespace assay
