#include "diagnose/hang_model.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_map>

#include <fmt/format.h>

namespace assay {
namespace {

// Sizes that must agree between members; for other collectives (all-to-all with uneven splits,
// lists of tensors) they may differ rightly.
bool sizes_must_agree(std::string_view name) {
  for (const std::string_view known :
       {"all_reduce", "allreduce", "broadcast", "_all_gather_base", "_allgather_base",
        "all_gather_into_tensor", "_reduce_scatter_base", "reduce_scatter_tensor", "reduce"}) {
    if (name == known) return true;
  }
  return false;
}

class Builder {
 public:
  explicit Builder(const std::vector<FlightDump>& dumps) : dumps_(dumps) {}

  HangModel build() {
    number_ranks();
    collect_groups();
    collect_progress();
    prove();
    collect_collectives();
    collect_pairs();
    find_lacking();
    find_mismatches();
    return std::move(out_);
  }

 private:
  int index_of(int32_t rank) const {
    const auto at =
        std::lower_bound(out_.ranks.begin(), out_.ranks.end(), rank,
                         [](const HangRank& known, int32_t wanted) { return known.rank < wanted; });
    return at != out_.ranks.end() && at->rank == rank ? static_cast<int>(at - out_.ranks.begin())
                                                      : -1;
  }

  void number_ranks() {
    std::set<int32_t> all;
    std::set<std::string> seen;  // groups repeat in every dump: each is read once
    for (const FlightDump& dump : dumps_) {
      if (dump.rank < 0) continue;
      all.insert(dump.rank);
      for (const FlightGroup& group : dump.groups) {
        if (!group.ranks.empty() && seen.insert(key_of(group)).second) {
          all.insert(group.ranks.begin(), group.ranks.end());
        }
      }
    }
    for (const int32_t rank : all) {
      out_.ranks.emplace_back();
      out_.ranks.back().rank = rank;
    }
    for (size_t d = 0; d < dumps_.size(); ++d) {
      if (dumps_[d].rank < 0) continue;
      HangRank& rank = out_.ranks[static_cast<size_t>(index_of(dumps_[d].rank))];
      rank.dump = static_cast<int>(d);
      for (const FlightEntry& entry : dumps_[d].entries) {
        rank.last_ns = std::max(rank.last_ns, entry.created_ns);
        rank.lists_completed |= entry.state == FlightState::kCompleted;
        rank.records_starts |= entry.started_ns > 0 || entry.state == FlightState::kStarted;
      }
      for (const FlightGroup& group : dumps_[d].groups) {
        rank.records_starts |= group.status && group.status->started > 0;
      }
    }
  }

  // Names may repeat between jobs' halves in old versions; the members tell them apart.
  static std::string key_of(const FlightGroup& group) {
    uint64_t hash = 1469598103934665603u;  // FNV-1a
    for (const int32_t rank : group.ranks) {
      hash = (hash ^ static_cast<uint32_t>(rank)) * 1099511628211u;
    }
    return fmt::format("{}|{}|{:x}", group.name, group.ranks.size(), hash);
  }

  void collect_groups() {
    std::unordered_map<std::string, int> by_key, by_name;
    group_of_.resize(dumps_.size());
    for (size_t d = 0; d < dumps_.size(); ++d) {
      if (dumps_[d].rank < 0) continue;
      for (const FlightGroup& group : dumps_[d].groups) {
        const bool listed = !group.ranks.empty();
        auto& table = listed ? by_key : by_name;
        const std::string key = listed ? key_of(group) : group.name;
        if (!listed && by_name.find(key) == by_name.end()) {
          // Another dump may list the members of a group of this name.
          for (size_t g = 0; g < out_.groups.size(); ++g) {
            if (out_.groups[g].name == key) by_name.emplace(key, static_cast<int>(g));
          }
        }
        const auto [at, added] = table.try_emplace(key, static_cast<int>(out_.groups.size()));
        if (added) {
          out_.groups.emplace_back();
          out_.groups.back().name = group.name;
          for (const int32_t rank : group.ranks) {
            out_.groups.back().members.push_back(index_of(rank));
          }
        }
        HangGroup& known = out_.groups[static_cast<size_t>(at->second)];
        if (known.description.empty()) known.description = group.description;
        const int self = index_of(dumps_[d].rank);
        if (!listed && member(known, self) < 0) known.members.push_back(self);
        group_of_[d].push_back(at->second);
      }
      for (const FlightEntry& entry : dumps_[d].entries) {
        if (entry.kind == FlightKind::kCollective) continue;
        group(d, entry).point_to_point = true;
      }
    }
    for (HangGroup& group : out_.groups) {
      group.enqueued.assign(group.members.size(), -1);
      group.completed.assign(group.members.size(), -1);
      position_.emplace_back();
      for (size_t i = 0; i < group.members.size(); ++i) {
        position_.back().emplace(group.members[i], static_cast<int>(i));
      }
    }
  }
  HangGroup& group(size_t dump, const FlightEntry& entry) {
    return out_.groups[static_cast<size_t>(group_of_[dump][static_cast<size_t>(entry.group)])];
  }
  static int member(const HangGroup& group, int rank) {
    const auto at = std::find(group.members.begin(), group.members.end(), rank);
    return at == group.members.end() ? -1 : static_cast<int>(at - group.members.begin());
  }
  int position(int group, int rank) const {
    const auto& known = position_[static_cast<size_t>(group)];
    const auto at = known.find(rank);
    return at == known.end() ? -1 : at->second;
  }

  void collect_progress() {
    for (const HangRank& rank : out_.ranks) {
      if (rank.dump < 0) continue;
      const size_t d = static_cast<size_t>(rank.dump);
      const int self = static_cast<int>(&rank - out_.ranks.data());
      for (size_t g = 0; g < dumps_[d].groups.size(); ++g) {
        const int global = group_of_[d][g];
        const int at = position(global, self);
        HangGroup& known = out_.groups[static_cast<size_t>(global)];
        const auto& status = dumps_[d].groups[g].status;
        // The status counts point-to-point operations too; where a group has them it is ambiguous.
        if (at < 0 || !status || known.point_to_point) continue;
        known.enqueued[static_cast<size_t>(at)] = status->enqueued;
        known.completed[static_cast<size_t>(at)] = status->completed;
      }
      for (const FlightEntry& entry : dumps_[d].entries) {
        const int global = group_of_[d][static_cast<size_t>(entry.group)];
        const int at = position(global, self);
        if (at < 0 || entry.sequence < 0) continue;
        // A send's `collective_seq_id` is the number of the last collective before it.
        if (entry.kind != FlightKind::kCollective && entry.p2p_sequence < 0) continue;
        HangGroup& known = out_.groups[static_cast<size_t>(global)];
        int64_t& enqueued = known.enqueued[static_cast<size_t>(at)];
        enqueued = std::max(enqueued, entry.sequence);
        if (entry.kind == FlightKind::kCollective && entry.state == FlightState::kCompleted) {
          int64_t& completed = known.completed[static_cast<size_t>(at)];
          completed = std::max(completed, entry.sequence);
        }
      }
    }
  }

  // The largest symmetric collective that some member completed: all up to it are done for all.
  void prove() {
    std::vector<int64_t> most(out_.groups.size(), -1);
    for (size_t g = 0; g < out_.groups.size(); ++g) {
      for (const int64_t completed : out_.groups[g].completed) {
        most[g] = std::max(most[g], completed);
      }
    }
    for (size_t d = 0; d < dumps_.size(); ++d) {
      if (dumps_[d].rank < 0) continue;
      for (const FlightEntry& entry : dumps_[d].entries) {
        const size_t g = static_cast<size_t>(group_of_[d][static_cast<size_t>(entry.group)]);
        if (entry.kind != FlightKind::kCollective || entry.sequence > most[g]) continue;
        if (!symmetric_collective(dumps_[d].string(entry.name))) continue;
        out_.groups[g].proven = std::max(out_.groups[g].proven, entry.sequence);
      }
    }
    for (const HangGroup& group : out_.groups) {
      if (group.point_to_point) continue;  // there the last number enqueued is only a lower bound
      for (size_t i = 0; i < group.members.size(); ++i) {
        HangRank& rank = out_.ranks[static_cast<size_t>(group.members[i])];
        if (group.enqueued[i] >= 0 && group.enqueued[i] < group.proven) rank.early = true;
      }
    }
  }

  bool proven(size_t dump, const FlightEntry& entry) {
    return entry.kind == FlightKind::kCollective && entry.sequence >= 0 &&
           entry.sequence <= group(dump, entry).proven;
  }

  void collect_collectives() {
    std::map<std::pair<int, int64_t>, int> ids;
    for (HangRank& rank : out_.ranks) {
      if (rank.dump < 0) continue;
      const size_t d = static_cast<size_t>(rank.dump);
      int64_t last_proven = -1;  // record id
      for (const FlightEntry& entry : dumps_[d].entries) {
        if (entry.state == FlightState::kCompleted || !proven(d, entry)) continue;
        ++rank.stale;
        last_proven = std::max(last_proven, entry.record_id);
      }
      // One may be a race between the watchdog and the end; more are a recorder that stopped. What
      // it had posted to single peers before is done as well, as far as anyone can know.
      if (rank.stale < kStopped) last_proven = -1;
      for (const FlightEntry& entry : dumps_[d].entries) {
        if (entry.state == FlightState::kCompleted || proven(d, entry)) continue;
        if (entry.kind != FlightKind::kCollective) {
          if (entry.record_id > last_proven) add_single(rank, d, entry);
          continue;
        }
        const int g = group_of_[d][static_cast<size_t>(entry.group)];
        const auto [at, added] =
            ids.try_emplace({g, entry.sequence}, static_cast<int>(out_.ops.size()));
        if (added) new_op(g, d, entry);
        attach(rank, at->second, entry);
      }
    }
  }
  void new_op(int group, size_t dump, const FlightEntry& entry) {
    HangOp op;
    op.group = group;
    op.sequence = entry.kind == FlightKind::kCollective ? entry.sequence : -1;
    op.kind = entry.kind;
    op.name = dumps_[dump].string(entry.name);
    op.sizes = dumps_[dump].string(entry.sizes);
    out_.ops.push_back(std::move(op));
  }
  void attach(HangRank& rank, int op, const FlightEntry& entry) {
    rank.in_flight.push_back(op);
    rank.records.push_back(entry.record_id);
    out_.ops[static_cast<size_t>(op)].waiting.push_back(
        static_cast<int>(&rank - out_.ranks.data()));
    if (entry.timeout_ms > 0 && (out_.timeout_ms < 0 || entry.timeout_ms < out_.timeout_ms)) {
      out_.timeout_ms = entry.timeout_ms;
    }
  }
  // A send or a receive: an operation of its own, paired later.
  void add_single(HangRank& rank, size_t dump, const FlightEntry& entry) {
    const int g = group_of_[dump][static_cast<size_t>(entry.group)];
    const HangGroup& known = out_.groups[static_cast<size_t>(g)];
    new_op(g, dump, entry);
    const int id = static_cast<int>(out_.ops.size()) - 1;
    const bool listed = !dumps_[dump].groups[static_cast<size_t>(entry.group)].ranks.empty();
    if (entry.peer >= 0 && listed && static_cast<size_t>(entry.peer) < known.members.size()) {
      const int peer = known.members[static_cast<size_t>(entry.peer)];
      out_.ops.back().peer = peer;
      const int self = static_cast<int>(&rank - out_.ranks.data());
      const bool send = entry.kind == FlightKind::kSend;
      auto& way = ways_[{g, send ? self : peer, send ? peer : self}];
      (send ? way.sends : way.receives).push_back(id);
    }
    attach(rank, id, entry);
  }

  // On each way the n-th send in flight meets the n-th receive in flight.
  void collect_pairs() {
    for (const auto& [key, way] : ways_) {
      const int from = std::get<1>(key), to = std::get<2>(key);
      for (size_t i = way.receives.size(); i < way.sends.size(); ++i) {
        lack(out_.ops[static_cast<size_t>(way.sends[i])], to);
      }
      for (size_t i = way.sends.size(); i < way.receives.size(); ++i) {
        lack(out_.ops[static_cast<size_t>(way.receives[i])], from);
      }
    }
  }
  void lack(HangOp& op, int rank) {
    const HangRank& other = out_.ranks[static_cast<size_t>(rank)];
    (other.dump < 0 || other.early ? op.unknown : op.lacks).push_back(rank);
  }

  void find_lacking() {
    for (HangOp& op : out_.ops) {
      if (op.kind != FlightKind::kCollective) continue;
      const HangGroup& group = out_.groups[static_cast<size_t>(op.group)];
      for (size_t i = 0; i < group.members.size(); ++i) {
        const HangRank& rank = out_.ranks[static_cast<size_t>(group.members[i])];
        if (group.enqueued[i] >= op.sequence) continue;
        // Dumps of active operations alone leave a gap where a group has sends: a collective that
        // is not listed may be done.
        const bool sure = !group.point_to_point || rank.lists_completed;
        // But nobody can be done with a symmetric one that is in flight elsewhere: whoever lists
        // what is in flight and not this has not enqueued it.
        const bool listed = rank.dump >= 0 && symmetric_collective(op.name) &&
                            dumps_[static_cast<size_t>(rank.dump)].lists_entries;
        const bool known =
            rank.dump >= 0 && !rank.early && (listed || (group.enqueued[i] >= 0 && sure));
        (known ? op.lacks : op.unknown).push_back(group.members[i]);
      }
    }
  }

  void find_mismatches() {
    using Call = std::pair<std::string, std::vector<int>>;
    std::map<std::pair<int, int64_t>, std::map<std::string, std::vector<int>>> calls;
    for (size_t r = 0; r < out_.ranks.size(); ++r) {
      if (out_.ranks[r].dump < 0) continue;
      const size_t d = static_cast<size_t>(out_.ranks[r].dump);
      for (const FlightEntry& entry : dumps_[d].entries) {
        if (entry.kind != FlightKind::kCollective || entry.sequence < 0) continue;
        if (entry.state == FlightState::kCompleted || proven(d, entry)) continue;
        const std::string& name = dumps_[d].string(entry.name);
        std::string call = name;
        if (sizes_must_agree(name) && entry.input_elements >= 0) {
          call += fmt::format(" of {} elements {}", entry.input_elements,
                              dumps_[d].string(entry.dtype));
        }
        const int g = group_of_[d][static_cast<size_t>(entry.group)];
        calls[{g, entry.sequence}][call].push_back(static_cast<int>(r));
      }
    }
    std::set<int> told;  // the first number of a group; later ones follow from it
    for (const auto& [key, by_call] : calls) {
      if (by_call.size() < 2 || !told.insert(key.first).second) continue;
      std::vector<Call> sorted(by_call.begin(), by_call.end());
      std::stable_sort(sorted.begin(), sorted.end(), [](const Call& a, const Call& b) {
        return a.second.size() > b.second.size();
      });
      HangMismatch mismatch{key.first, key.second, {}, {}};
      for (const Call& call : sorted) {
        mismatch.calls.push_back(call.first);
        mismatch.callers.push_back(call.second);
      }
      out_.mismatches.push_back(std::move(mismatch));
    }
  }

  struct Way {
    std::vector<int> sends, receives;  // ops
  };

  const std::vector<FlightDump>& dumps_;
  HangModel out_;
  std::vector<std::vector<int>> group_of_;  // by dump and its own index
  std::vector<std::unordered_map<int, int>> position_;
  std::map<std::tuple<int, int, int>, Way> ways_;  // group, from, to
};

}  // namespace

bool symmetric_collective(std::string_view name) {
  for (const std::string_view part : {"all_reduce", "allreduce", "all_gather", "allgather",
                                      "reduce_scatter", "all_to_all", "alltoall", "barrier"}) {
    if (name.find(part) != std::string_view::npos) return true;
  }
  return false;
}

HangModel model_hang(const std::vector<FlightDump>& dumps) { return Builder(dumps).build(); }

}  // namespace assay
