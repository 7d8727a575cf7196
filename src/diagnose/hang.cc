// The conviction, in the words of the header: others wait for it, and it waits for nobody. Why this
// is safe: a rank that is blocked by the job's communication has, by definition, an operation in
// flight. So a rank with none that is waited for stopped for a reason of its own (a lock, a loader,
// a dead device, an exception). The price is recall: a rank that stopped with asynchronous
// operations of its own in flight looks like a waiting one. Sends are the common case (pipelines
// post them and go on), so a rank whose only operations in flight are sends to ranks that, in turn,
// wait for it is convicted as well; with a lesser confidence, because two ranks that send to each
// other without receiving look the same.
//
// Checked on generated jobs (hang_test.cc): random meshes of tensor, data, pipeline and expert
// groups under blocking semantics, with one or several ranks stopped at random places.
#include "diagnose/hang.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "diagnose/hang_words.h"
#include "diagnose/robust.h"
#include "diagnose/xid.h"

namespace assay {
namespace {

// A job that was dumped while it ran has ranks ahead and behind as a hung one has. Watchdogs wait
// minutes before they dump; a dump written so soon after the last collective proves no hang.
constexpr int64_t kQuietNs = int64_t{30} * 1'000'000'000;
// Clocks of hosts and of kernel logs differ by seconds at worst where time is kept by NTP.
constexpr int64_t kClockNs = int64_t{60} * 1'000'000'000;
constexpr int64_t kDefaultTimeoutNs = int64_t{600} * 1'000'000'000;  // PyTorch's for NCCL
// Against the median of the other ranks: a spinning device draws well above idle power.
constexpr double kSilentUtilisation = 0.1, kComputingUtilisation = 0.5, kSilentPower = 0.75;

class Judge {
 public:
  Judge(const std::vector<FlightDump>& dumps, const HangEvidence& evidence)
      : dumps_(dumps), model_(model_hang(dumps)) {
    for (const RankEvidence& known : evidence.ranks) evidence_.emplace(known.rank, &known);
  }

  HangReport run() {
    look_around();
    if (out_.hung) {
      convict_by_order();
      convict_senders();
      convict_odd_ones();
      convict_unstarted();
      convict_absent();
      doubt_majorities();
      suspect_stopped_recorders();
      weigh_evidence();
    }
    judge_mismatches();
    report();
    return std::move(out_);
  }

 private:
  size_t count() const { return model_.ranks.size(); }
  const HangRank& rank(int index) const { return model_.ranks[static_cast<size_t>(index)]; }

  void look_around() {
    waited_by_.resize(count());
    maybe_waited_.resize(count());
    for (size_t i = 0; i < model_.ops.size(); ++i) {
      for (const int r : model_.ops[i].lacks) {
        waited_by_[static_cast<size_t>(r)].push_back(static_cast<int>(i));
      }
      for (const int r : model_.ops[i].unknown) {
        maybe_waited_[static_cast<size_t>(r)].push_back(static_cast<int>(i));
      }
    }
    int64_t last = -1, written = -1;
    bool all_written = !dumps_.empty();
    for (const HangRank& one : model_.ranks) {
      if (one.dump < 0) {
        out_.no_dump.push_back(one.rank);
        continue;
      }
      out_.waiting += one.in_flight.empty() ? 0 : 1;
      early_ |= one.early;
      last = std::max(last, one.last_ns);
      const std::optional<int64_t>& at = dumps_[static_cast<size_t>(one.dump)].written_ns;
      all_written &= at.has_value();
      if (at) written = std::max(written, *at);
    }
    last_ns_ = last;
    out_.hung = out_.waiting > 0;
    // A file older than what it tells has a date that means nothing.
    const int64_t quiet =
        model_.timeout_ms > 0 ? std::min(kQuietNs, model_.timeout_ms * (1'000'000 / 2)) : kQuietNs;
    soon_ = all_written && last >= 0 && written >= last && written - last < quiet;
  }

  bool absent(int index) const { return rank(index).dump < 0; }

  void convict_by_order() {
    for (size_t r = 0; r < count(); ++r) {
      const HangRank& one = model_.ranks[r];
      if (one.dump < 0 || one.early || waited_by_[r].empty() || !one.in_flight.empty()) continue;
      convict(static_cast<int>(r), Confidence::kHigh, "nothing in flight while others wait");
    }
  }
  void convict(int index, Confidence confidence, std::string why) {
    verdicts_.emplace(index, Verdict{confidence, std::move(why)});
  }

  // Every rank that `from` waits for, over collectives and receives, not over sends.
  std::vector<char> reach(int from) const {
    std::vector<char> seen(count(), 0);
    std::vector<char> seen_op(model_.ops.size(), 0);
    std::vector<int> todo = {from};
    while (!todo.empty()) {
      const int at = todo.back();
      todo.pop_back();
      for (const int id : rank(at).in_flight) {
        const HangOp& op = model_.ops[static_cast<size_t>(id)];
        if (op.kind == FlightKind::kSend || seen_op[static_cast<size_t>(id)]) continue;
        seen_op[static_cast<size_t>(id)] = 1;
        for (const int next : op.lacks) {
          if (seen[static_cast<size_t>(next)]) continue;
          seen[static_cast<size_t>(next)] = 1;
          todo.push_back(next);
        }
      }
    }
    return seen;
  }
  void convict_senders() {
    for (size_t r = 0; r < count(); ++r) {
      const HangRank& one = model_.ranks[r];
      if (one.dump < 0 || one.early || waited_by_[r].empty() || one.in_flight.empty()) continue;
      bool all = true;
      for (const int id : one.in_flight) {
        const HangOp& op = model_.ops[static_cast<size_t>(id)];
        all = all && op.kind == FlightKind::kSend && op.peer >= 0 && !absent(op.peer) &&
              reach(op.peer)[r];
        if (!all) break;
      }
      if (all) {
        convict(static_cast<int>(r), Confidence::kMedium,
                "only sends in flight, to ranks that wait in turn");
      }
    }
  }

  // A circle with one rank on one side: it alone is in a collective that at least two others have
  // not reached, and these are in one that lacks only it. It skipped theirs, or stopped with its
  // own in flight; either way it is the odd one.
  void convict_odd_ones() {
    for (size_t r = 0; r < count(); ++r) {
      const HangRank& one = model_.ranks[r];
      if (one.dump < 0 || one.early || one.in_flight.empty() || waited_by_[r].empty()) continue;
      if (verdicts_.count(static_cast<int>(r)) == 0 && odd(one, waited_by_[r])) {
        convict(static_cast<int>(r), Confidence::kMedium,
                "alone in a collective while the others are in one that lacks no one else: theirs "
                "was skipped, or the rank stopped with its own in flight");
      }
    }
  }
  bool odd(const HangRank& one, const std::vector<int>& waited_by) const {
    for (const int own : one.in_flight) {
      const HangOp& b = model_.ops[static_cast<size_t>(own)];
      if (b.kind != FlightKind::kCollective || b.waiting.size() != 1 || b.lacks.size() < 2)
        continue;
      const std::set<int> behind(b.lacks.begin(), b.lacks.end());
      for (const int theirs : waited_by) {
        const HangOp& a = model_.ops[static_cast<size_t>(theirs)];
        if (a.kind != FlightKind::kCollective || a.lacks.size() != 1) continue;
        const auto both = std::count_if(a.waiting.begin(), a.waiting.end(),
                                        [&](int r) { return behind.count(r) > 0; });
        if (both >= 2) return true;
      }
    }
    return false;
  }

  // All have enqueued it and some have started: a device that has not, with nothing before it in
  // the queue, is stuck in something else.
  void convict_unstarted() {
    if (!verdicts_.empty()) return;
    for (const HangOp& op : model_.ops) {
      if (op.kind != FlightKind::kCollective || !op.lacks.empty() || !op.unknown.empty()) continue;
      std::vector<int> unstarted;
      bool started = false, sure = true;
      for (const int r : op.waiting) {
        const FlightState state = state_of(r, op);
        started |= state == FlightState::kStarted;
        if (state != FlightState::kScheduled) continue;
        sure &= rank(r).records_starts && rank(r).stale == 0 &&
                &model_.ops[static_cast<size_t>(rank(r).in_flight.front())] == &op;
        unstarted.push_back(r);
      }
      if (!started || !sure || unstarted.size() * 2 >= op.waiting.size()) continue;
      for (const int r : unstarted) {
        convict(r, Confidence::kMedium,
                "enqueued what the others are in, but the device never started it");
      }
    }
  }
  FlightState state_of(int index, const HangOp& op) const {
    const FlightDump& dump = dumps_[static_cast<size_t>(rank(index).dump)];
    for (const FlightEntry& entry : dump.entries) {
      if (entry.kind == op.kind && entry.sequence == op.sequence &&
          dump.groups[static_cast<size_t>(entry.group)].name ==
              model_.groups[static_cast<size_t>(op.group)].name) {
        return entry.state;
      }
    }
    return FlightState::kScheduled;
  }

  // Everyone who left a dump waits, and the only rank that may be missing left none.
  void convict_absent() {
    if (!verdicts_.empty() || early_) return;
    std::vector<int> candidates;
    for (size_t r = 0; r < count(); ++r) {
      if (absent(static_cast<int>(r)) && !maybe_waited_[r].empty()) {
        candidates.push_back(static_cast<int>(r));
      }
      if (!absent(static_cast<int>(r)) && model_.ranks[r].in_flight.empty()) return;
    }
    if (candidates.size() == 1) {
      convict(candidates[0], Confidence::kMedium, "no dump, and all others wait");
    }
  }

  // When most ranks seem to be to blame, they wait for something that no dump shows (a barrier of
  // another backend, the store): then the order of collectives proves nothing.
  void doubt_majorities() {
    if (verdicts_.size() * 2 <= count() - out_.no_dump.size()) return;
    outside_ = verdicts_.size();
    verdicts_.clear();
  }

  void suspect_stopped_recorders() {
    for (size_t r = 0; r < count(); ++r) {
      if (model_.ranks[r].stale >= kStopped && verdicts_.count(static_cast<int>(r)) == 0) {
        suspects_.insert(static_cast<int>(r));
      }
    }
  }

  // ---- evidence ----
  const RankEvidence* evidence(int index) const {
    const auto found = evidence_.find(rank(index).rank);
    return found == evidence_.end() ? nullptr : found->second;
  }
  // An XID counts from just before the last collective until the watchdog's patience ends; what
  // comes later is the end of the job, what came earlier did not stop it.
  const RankEvidence::Xid* fatal_xid(const RankEvidence& known) const {
    const int64_t timeout =
        model_.timeout_ms > 0 ? model_.timeout_ms * 1'000'000 : kDefaultTimeoutNs;
    for (const RankEvidence::Xid& xid : known.xids) {
      if (!xid_stops_work(xid.code)) continue;
      if (!xid.at_ns || last_ns_ < 0) return &xid;
      if (*xid.at_ns > last_ns_ - kClockNs && *xid.at_ns < last_ns_ + timeout + kClockNs) {
        return &xid;
      }
    }
    return nullptr;
  }
  // Against the others: one reading alone has no measure.
  enum class Device { kUnknown, kBusy, kSilent };
  Device device(const RankEvidence& known) const {
    if (known.stopped_reporting) return Device::kSilent;
    std::vector<double> utilisation, power;
    for (const auto& [other, row] : evidence_) {
      if (other == known.rank) continue;
      if (row->utilisation) utilisation.push_back(*row->utilisation);
      if (row->power_w) power.push_back(*row->power_w);
    }
    if (known.utilisation && !utilisation.empty() &&
        median_of(utilisation) > kComputingUtilisation) {
      return *known.utilisation < kSilentUtilisation ? Device::kSilent : Device::kBusy;
    }
    if (known.power_w && !power.empty()) {
      return *known.power_w < kSilentPower * median_of(power) ? Device::kSilent : Device::kBusy;
    }
    return Device::kUnknown;
  }
  // Silent before all those that are not suspected, by more than these differ among themselves.
  bool first_to_fall_silent(int index) const {
    const RankEvidence* known = evidence(index);
    if (!known || !known->last_activity_ns) return false;
    int64_t first = INT64_MAX, last = INT64_MIN;
    size_t others = 0;
    for (size_t r = 0; r < count(); ++r) {
      const int other = static_cast<int>(r);
      const RankEvidence* row = evidence(other);
      if (other == index || suspects_.count(other) || verdicts_.count(other)) continue;
      if (!row || !row->last_activity_ns) continue;
      first = std::min(first, *row->last_activity_ns);
      last = std::max(last, *row->last_activity_ns);
      ++others;
    }
    constexpr size_t kEnough = 3;
    constexpr int64_t kLeastNs = 1'000'000'000;
    return others >= kEnough && *known->last_activity_ns < first - std::max(last - first, kLeastNs);
  }

  void weigh_evidence() {
    for (size_t r = 0; r < count(); ++r) {
      const int index = static_cast<int>(r);
      const RankEvidence* known = evidence(index);
      if (!known || verdicts_.count(index)) continue;
      const Device state = device(*known);
      if (const RankEvidence::Xid* xid = fatal_xid(*known)) {
        convict(index, xid->at_ns ? Confidence::kHigh : Confidence::kMedium,
                fmt::format("the device reported XID {}", xid->code));
      } else if (state == Device::kSilent && !rank(index).in_flight.empty()) {
        convict(index, Confidence::kHigh,
                "collectives in flight, yet the device does nothing while the others spin");
      } else if (suspects_.count(index) && first_to_fall_silent(index)) {
        convict(index, Confidence::kMedium,
                "the recorder stopped, and the process fell silent first");
      } else if (suspects_.count(index) && known->kernel_log_read && state == Device::kBusy) {
        acquit(index);
        continue;
      } else {
        continue;
      }
      by_evidence_.insert(index);
      suspects_.erase(index);
    }
  }
  void acquit(int index) {
    suspects_.erase(index);
    out_.analysis.notes.push_back(fmt::format(
        "rank {} is cleared: no XID in its kernel log, and its device is as busy as its "
        "peers'",
        rank(index).rank));
  }

  // ---- mismatches ----
  void judge_mismatches() {
    for (const HangMismatch& mismatch : model_.mismatches) {
      size_t others = 0;
      for (size_t i = 1; i < mismatch.callers.size(); ++i) others += mismatch.callers[i].size();
      // Two against one can be told; one against one cannot.
      if (mismatch.callers[0].size() < 2 || mismatch.callers[0].size() <= others) continue;
      for (size_t i = 1; i < mismatch.callers.size(); ++i) {
        for (const int r : mismatch.callers[i]) out_.mismatched.push_back(rank(r).rank);
      }
    }
    std::sort(out_.mismatched.begin(), out_.mismatched.end());
    out_.mismatched.erase(std::unique(out_.mismatched.begin(), out_.mismatched.end()),
                          out_.mismatched.end());
  }

  // ---- report ----
  void report() {
    HangView view{model_, dumps_, waited_by_, maybe_waited_, {}, {}, {}, 0, early_, soon_};
    for (const auto& [index, verdict] : verdicts_) {
      // A device that stopped is no job that merely runs on; a rank that is behind may be.
      const bool sure = by_evidence_.count(index) || rank(index).stale >= kStopped;
      if ((early_ || soon_) && !sure) {
        view.running.push_back(index);
        continue;
      }
      view.blamed.push_back({index, verdict.confidence, verdict.why});
      (by_evidence_.count(index) ? out_.by_evidence : out_.convicted).push_back(rank(index).rank);
    }
    for (const int index : suspects_) {
      view.suspects.push_back(index);
      out_.undecided.push_back(rank(index).rank);
    }
    view.outside = outside_;
    describe_hang(view, evidence_, out_.hung, out_.analysis);
  }

  struct Verdict {
    Confidence confidence;
    std::string why;
  };

  const std::vector<FlightDump>& dumps_;
  HangModel model_;
  std::map<int, const RankEvidence*> evidence_;  // by the job's rank
  HangReport out_;
  std::vector<std::vector<int>> waited_by_, maybe_waited_;  // ops, by index of rank
  std::map<int, Verdict> verdicts_;                         // by index of rank
  std::set<int> by_evidence_, suspects_;
  size_t outside_ = 0;
  int64_t last_ns_ = -1;
  bool early_ = false, soon_ = false;
};

}  // namespace

bool xid_stops_work(int code) {
  if (const XidInfo* info = find_xid(code); info && info->kind == XidClass::kInformation) {
    return false;
  }
  // 45 follows an error elsewhere or the end of the process; 63, 92, 121, 156 and 160 tell of a
  // remapping, a rate, corrected errors and retirements, and work goes on.
  for (const int harmless : {45, 63, 92, 121, 156, 160}) {
    if (code == harmless) return false;
  }
  return code > 0;
}

HangReport diagnose_hang(const std::vector<FlightDump>& dumps, const HangEvidence& evidence) {
  return Judge(dumps, evidence).run();
}

}  // namespace assay
