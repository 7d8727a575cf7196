// A generated training job for tests of hangs: ranks in a mesh of tensor, data, pipeline and expert
// groups run a schedule of collectives, sends and receives; some of them stop. Everything else
// follows from simulating what blocks what:
//  - a host enqueues its operations in order; after one with `sync` it waits for its completion;
//  - a device starts an operation once it is enqueued, all earlier operations of the same group are
//    done, and all earlier operations of the rank that later work depends on (not `async`) are
//    done;
//  - a collective completes when all members started the same call, a send when its receive did.
// Time is the number of the round; a round lets every host and device do one thing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "ingest/flight_recorder.h"

namespace assay::test {

struct Op {
  int group = 0;
  FlightKind kind = FlightKind::kCollective;
  std::string name;
  int64_t elements = 16;
  int peer = -1;  // index within the group
  bool sync = false, async = false;
};

struct Group {
  std::string description;
  std::vector<int> ranks;
};

struct Stop {
  int rank = 0;
  size_t before = 0;    // the host stops before its operation of this index; npos: never
  bool device = false;  // instead, the device and the recorder stop there; the host goes on
};

struct Job {
  std::vector<Group> groups;
  std::vector<std::vector<Op>> programs;  // by rank
};

struct Mesh {
  int tp = 2, dp = 2, pp = 2, layers = 2, microbatches = 3;
  bool experts = true, async_sends = false, async_gradients = true;
  unsigned seed = 1;
};

// The groups of each rank in a mesh.
struct Groups {
  int everyone = 0;
  std::map<int, int> tp_of, dp_of, pp_of, ep_of;
};

inline Groups add_groups(const Mesh& mesh, Job& job) {
  Groups out;
  const auto rank = [&](int t, int d, int p) { return (p * mesh.dp + d) * mesh.tp + t; };
  const auto add = [&](const char* description, std::vector<int> ranks, std::map<int, int>& of) {
    for (const int r : ranks) of[r] = static_cast<int>(job.groups.size());
    job.groups.push_back({description, std::move(ranks)});
  };
  std::map<int, int> all_of;
  std::vector<int> all;
  for (int r = 0; r < mesh.tp * mesh.dp * mesh.pp; ++r) all.push_back(r);
  add("default_pg", all, all_of);
  for (int p = 0; p < mesh.pp; ++p) {
    std::vector<int> stage;
    for (int d = 0; d < mesh.dp; ++d) {
      std::vector<int> ranks;
      for (int t = 0; t < mesh.tp; ++t) ranks.push_back(rank(t, d, p));
      stage.insert(stage.end(), ranks.begin(), ranks.end());
      add("TENSOR", ranks, out.tp_of);
    }
    for (int t = 0; t < mesh.tp; ++t) {
      std::vector<int> ranks;
      for (int d = 0; d < mesh.dp; ++d) ranks.push_back(rank(t, d, p));
      add("DATA", ranks, out.dp_of);
    }
    add("EXPERT", stage, out.ep_of);
  }
  for (int t = 0; t < mesh.tp; ++t) {
    for (int d = 0; d < mesh.dp; ++d) {
      std::vector<int> ranks;
      for (int p = 0; p < mesh.pp; ++p) ranks.push_back(rank(t, d, p));
      add("PIPELINE", ranks, out.pp_of);
    }
  }
  return out;
}

inline Job make_job(const Mesh& mesh) {
  Job job;
  const int world = mesh.tp * mesh.dp * mesh.pp;
  job.programs.resize(static_cast<size_t>(world));
  Groups groups = add_groups(mesh, job);
  std::mt19937 random(mesh.seed);
  // The same choices on every rank, as one program has them.
  std::vector<int> layer_kinds;
  for (int l = 0; l < mesh.layers; ++l) layer_kinds.push_back(static_cast<int>(random() % 3));
  for (int r = 0; r < world; ++r) {
    std::vector<Op>& program = job.programs[static_cast<size_t>(r)];
    const int stage = r / (mesh.tp * mesh.dp);
    const auto collective = [&](int group, const char* name, bool sync, bool async) {
      program.push_back({group, FlightKind::kCollective, name, 64, -1, sync, async});
    };
    const auto single = [&](bool send, int peer) {
      program.push_back({groups.pp_of[r], send ? FlightKind::kSend : FlightKind::kRecv,
                         send ? "send" : "recv", 128, peer, !send, send && mesh.async_sends});
    };
    const auto layers = [&](bool forward) {
      for (const int kind : layer_kinds) {
        if (mesh.tp > 1) collective(groups.tp_of[r], "_all_gather_base", false, false);
        if (mesh.experts && kind > 0) collective(groups.ep_of[r], "all_to_all", kind == 2, false);
        if (mesh.tp > 1) collective(groups.tp_of[r], "_reduce_scatter_base", false, false);
        if (!forward && mesh.async_gradients && mesh.dp > 1) {
          collective(groups.dp_of[r], "all_reduce", false, true);
        }
      }
    };
    for (int step = 0; step < 2; ++step) {
      if (mesh.tp > 1) collective(groups.tp_of[r], "broadcast", false, false);
      for (int m = 0; m < mesh.microbatches; ++m) {
        if (stage > 0) single(false, stage - 1);
        layers(true);
        if (stage + 1 < mesh.pp) single(true, stage + 1);
      }
      for (int m = 0; m < mesh.microbatches; ++m) {
        if (stage + 1 < mesh.pp) single(false, stage + 1);
        layers(false);
        if (stage > 0) single(true, stage - 1);
      }
      if (mesh.dp > 1) collective(groups.dp_of[r], "_reduce_scatter_base", false, false);
      collective(groups.everyone, "all_reduce", true, false);
    }
  }
  return job;
}

class Simulation {
 public:
  Simulation(const Job& job, std::vector<Stop> stops) : job_(job), stops_(std::move(stops)) {
    const size_t n = job.programs.size();
    ranks_.resize(n);
    for (size_t r = 0; r < n; ++r) {
      Rank& rank = ranks_[r];
      std::map<int, int64_t> collectives, singles;
      std::map<std::pair<int, bool>, int64_t> ways;  // per peer and direction
      for (const Op& op : job.programs[r]) {
        const bool single = op.kind != FlightKind::kCollective;
        rank.sequence.push_back(single ? collectives[op.group] : ++collectives[op.group]);
        rank.single.push_back(single ? ++singles[op.group] : 0);
        const bool send = op.kind == FlightKind::kSend;
        rank.way.push_back(single ? ++ways[{op.peer, send}] : 0);
      }
      rank.started.resize(job.programs[r].size());
      rank.done.resize(job.programs[r].size());
      rank.seen.resize(job.programs[r].size());
      rank.created.resize(job.programs[r].size());
    }
  }

  // Runs until nothing moves, or for so many rounds. True: something still moved.
  bool run(int rounds = 1 << 30) {
    for (int i = 0; i < rounds; ++i) {
      ++now_;
      bool moved = false;
      for (size_t r = 0; r < ranks_.size(); ++r) moved |= advance_host(r);
      for (size_t r = 0; r < ranks_.size(); ++r) moved |= advance_device(r);
      if (!moved) return false;
    }
    return true;
  }

  // Ranks that reached the place where they stop.
  std::vector<int> stopped() const {
    std::vector<int> out;
    for (const Stop& stop : stops_) {
      const Rank& rank = ranks_[static_cast<size_t>(stop.rank)];
      if (stop.device ? rank.dead : rank.enqueued == stop.before) out.push_back(stop.rank);
    }
    return out;
  }

  FlightDump dump(size_t r, bool only_active, bool status) const {
    FlightDump out;
    out.rank = static_cast<int32_t>(r);
    out.file = "dump_" + std::to_string(r);
    out.strings = {
        "",     "all_reduce", "_all_gather_base", "_reduce_scatter_base", "all_to_all", "broadcast",
        "send", "recv"};
    out.written_ns = (kStart + now_) * kRoundNs;
    std::map<int, int32_t> own;
    for (size_t g = 0; g < job_.groups.size(); ++g) {
      const std::vector<int>& members = job_.groups[g].ranks;
      if (std::find(members.begin(), members.end(), static_cast<int>(r)) == members.end()) continue;
      own[static_cast<int>(g)] = static_cast<int32_t>(out.groups.size());
      FlightGroup group;
      group.name = std::to_string(g);
      group.description = job_.groups[g].description;
      group.ranks.assign(members.begin(), members.end());
      group.id = static_cast<int64_t>(out.groups.size());
      if (status) group.status = FlightStatus{0, -1, 0};
      out.groups.push_back(std::move(group));
    }
    const Rank& rank = ranks_[r];
    for (size_t i = 0; i < rank.enqueued; ++i) {
      const Op& op = job_.programs[r][i];
      const bool single = op.kind != FlightKind::kCollective;
      FlightGroup& group = out.groups[static_cast<size_t>(own[op.group])];
      const int64_t number = single ? rank.single[i] : rank.sequence[i];
      if (group.status) {
        group.status->enqueued = number;
        if (rank.seen[i]) group.status->completed = number;
      }
      if (only_active && rank.seen[i]) continue;
      FlightEntry entry;
      entry.record_id = static_cast<int64_t>(i);
      entry.group = own[op.group];
      entry.sequence = rank.sequence[i];
      entry.p2p_sequence = rank.single[i];
      entry.created_ns = (kStart + rank.created[i]) * kRoundNs;
      entry.timeout_ms = 600000;
      entry.input_elements = op.elements;
      entry.kind = op.kind;
      entry.peer = op.peer;
      entry.state = rank.seen[i] ? FlightState::kCompleted : FlightState::kScheduled;
      for (uint32_t s = 0; s < out.strings.size(); ++s) {
        if (out.strings[s] == op.name) entry.name = s;
      }
      out.entries.push_back(entry);
    }
    return out;
  }
  std::vector<FlightDump> dumps(bool only_active, bool status) const {
    std::vector<FlightDump> out;
    for (size_t r = 0; r < ranks_.size(); ++r) out.push_back(dump(r, only_active, status));
    for (FlightDump& one : out) one.written_ns.reset();
    return out;
  }

  static constexpr int64_t kRoundNs = 1'000'000;
  static constexpr int64_t kStart = 1'700'000'000'000;

 private:
  struct Rank {
    size_t enqueued = 0;
    size_t first = 0;  // all before it are done
    bool dead = false;
    std::vector<int64_t> sequence, single, way, created;
    std::vector<char> started, done, seen;  // `seen`: the recorder knows that it is done
  };

  bool advance_host(size_t r) {
    Rank& rank = ranks_[r];
    const std::vector<Op>& program = job_.programs[r];
    if (rank.enqueued >= program.size()) return false;
    if (rank.enqueued > 0 && program[rank.enqueued - 1].sync && !rank.seen[rank.enqueued - 1]) {
      return false;
    }
    for (const Stop& stop : stops_) {
      if (stop.rank != static_cast<int>(r) || stop.device) continue;
      if (rank.enqueued == stop.before) return false;
    }
    rank.created[rank.enqueued++] = now_;
    return true;
  }

  bool advance_device(size_t r) {
    Rank& rank = ranks_[r];
    const std::vector<Op>& program = job_.programs[r];
    for (const Stop& stop : stops_) {
      if (stop.device && stop.rank == static_cast<int>(r) && rank.first >= stop.before) {
        rank.dead = true;
        return false;
      }
    }
    while (rank.first < rank.enqueued && rank.done[rank.first]) ++rank.first;
    bool moved = false;
    std::map<int, bool> busy;  // groups with an earlier operation in flight
    for (size_t i = rank.first; i < rank.enqueued; ++i) {
      if (rank.done[i]) continue;
      const Op& op = program[i];
      const int way = op.kind == FlightKind::kSend ? 1000 + op.peer : op.peer;
      const int stream = op.group * 4096 + way + 1;
      if (!busy[stream] && !rank.started[i]) {
        rank.started[i] = 1;
        start(r, i);
        moved = true;
      }
      if (rank.done[i]) continue;
      busy[stream] = true;
      if (!op.async) break;  // later work depends on it
    }
    return moved;
  }

  void start(size_t r, size_t i) {
    const Op& op = job_.programs[r][i];
    const Group& group = job_.groups[static_cast<size_t>(op.group)];
    const bool single = op.kind != FlightKind::kCollective;
    const int other = single ? group.ranks[static_cast<size_t>(op.peer)] : -1;
    const bool send = op.kind == FlightKind::kSend;
    const int from = send ? static_cast<int>(r) : other, to = send ? other : static_cast<int>(r);
    const auto key = single ? std::make_tuple(op.group, from, to, ranks_[r].way[i])
                            : std::make_tuple(op.group, -1, -1, ranks_[r].sequence[i]);
    auto& meeting = meetings_[key];
    meeting.emplace_back(r, i);
    if (meeting.size() < (single ? 2 : group.ranks.size())) return;
    for (const auto& [rank, index] : meeting) {
      const Op& theirs = job_.programs[rank][index];
      // Different calls under one number never complete.
      if (!single && (theirs.name != op.name || theirs.elements != op.elements)) return;
    }
    for (const auto& [rank, index] : meeting) {
      ranks_[rank].done[index] = 1;
      ranks_[rank].seen[index] = !ranks_[rank].dead;
    }
    meetings_.erase(key);
  }

  const Job& job_;
  std::vector<Stop> stops_;
  std::vector<Rank> ranks_;
  std::map<std::tuple<int, int, int, int64_t>, std::vector<std::pair<size_t, size_t>>> meetings_;
  int64_t now_ = 0;
};

}  // namespace assay::test
