// The graph of one step. What waits for what:
//
// - A rank computes one thing at a time, in the order in which it did: forward, backward and every
//   operation on the same stream (gradient norm, optimizer, ...) waits for the one before it.
// - A forward computation waits for the activations it receives, and what it sends waits for it;
//   likewise backward. The k-th receipt feeds the k-th computation that needs one (all but those of
//   the first chunk of the first stage), and the k-th send carries the k-th result that leaves.
//   Transfers of a kind follow each other.
// - The k-th send of a stage and the k-th receipt of the next one are one transfer: it begins when
//   both ends are ready. (Counting also holds for virtual stages: what leaves the last stage for
//   the next chunk of the first one arrives there in the same order.)
// - Gathering a chunk's parameters comes before its first forward; reducing its gradients after its
//   last backward and after what the rank had finished by then; the operations after the last
//   backward wait for the reductions that were done when they began.
// - The members of a collective begin together.
#include "diagnose/what_if_graph.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/assert.h"
#include "diagnose/what_if.h"

namespace assay {

StepRole step_role(std::string_view type) {
  constexpr std::pair<std::string_view, StepRole> kRoles[] = {
      {"forward-compute", StepRole::kForward},
      {"backward-compute", StepRole::kBackward},
      {"forward-send", StepRole::kForwardSend},
      {"forward-recv", StepRole::kForwardReceive},
      {"backward-send", StepRole::kBackwardSend},
      {"backward-recv", StepRole::kBackwardReceive},
      {"params-all-gather", StepRole::kGather},
      {"grads-reduce-scatter", StepRole::kReduce},
      {"embedding-grads-all-reduce", StepRole::kEmbedding},
      {"optimizer-clip-main-grad", StepRole::kNorm},
  };
  for (const auto& [name, role] : kRoles)
    if (name == type) return role;
  return StepRole::kLocal;
}

namespace {

using Index = uint32_t;
constexpr Index kNone = ~Index{0};

// Places of ranks in the grid. Ranks that share a place (tensor or sequence parallel) are told
// apart by their lane.
struct Grid {
  std::map<int32_t, int32_t> lane_of;  // by rank
  int32_t stages = 0;

  explicit Grid(const OperationTrace& trace) {
    std::map<std::tuple<int32_t, int32_t, int32_t>, int32_t> places;
    for (const Operation& op : trace.operations) {
      places[{op.dp, op.stage, op.rank}] = 0;
      stages = std::max(stages, op.stage + 1);
    }
    std::pair<int32_t, int32_t> at{-1, -1};
    int32_t lane = 0;
    for (const auto& [place, unused] : places) {
      const std::pair<int32_t, int32_t> here{std::get<0>(place), std::get<1>(place)};
      lane = here == at ? lane + 1 : 0;
      at = here;
      lane_of[std::get<2>(place)] = lane;
    }
  }
};

struct GraphBuilder {
  const OperationTrace& trace;
  const std::vector<StepRole>& roles;  // by type
  const Grid& grid;
  std::vector<Index> ops;                      // of this step, by rank and start
  std::vector<std::pair<Index, Index>> edges;  // positions in ops: before, after
  std::map<std::array<int64_t, 5>, std::vector<Index>> groups;

  const Operation& at(Index i) const { return trace.operations[ops[i]]; }
  StepRole role(Index i) const { return roles[at(i).type]; }
  void edge(Index before, Index after) {
    if (before != kNone && before != after) edges.emplace_back(before, after);
  }
};

int64_t end_ns(const Operation& op) { return op.start_ns + op.duration_ns; }

// The group of the k-th operation of its type on its rank.
std::array<int64_t, 5> group_key(const GraphBuilder& b, Index i, int64_t k) {
  const Operation& op = b.at(i);
  const int64_t lane = b.grid.lane_of.at(op.rank);
  const int64_t stages = b.grid.stages;
  const int64_t previous = (op.stage + stages - 1) % stages;
  const StepRole role = b.role(i);
  const int64_t kind = static_cast<int64_t>(role);
  switch (role) {
    case StepRole::kForwardSend:
      return {kind, op.dp, op.stage, lane, k};
    case StepRole::kForwardReceive:
      return {static_cast<int64_t>(StepRole::kForwardSend), op.dp, previous, lane, k};
    case StepRole::kBackwardSend:
      return {kind, op.dp, previous, lane, k};
    case StepRole::kBackwardReceive:
      return {static_cast<int64_t>(StepRole::kBackwardSend), op.dp, op.stage, lane, k};
    case StepRole::kGather:
    case StepRole::kReduce:
      return {kind, -1, op.stage, lane, k};
    case StepRole::kEmbedding:
      return {kind, op.dp, -1, lane, k};
    case StepRole::kNorm:
      return {kind, -1, -1, -1, k};
    default:
      return {kind, -2, static_cast<int64_t>(i), 0, 0};
  }
}

// Ties transfers to the computations they feed or carry.
void tie_transfers(GraphBuilder& b, const std::vector<Index>& computations,
                   const std::vector<Index>& transfers, bool feeds) {
  for (size_t k = 0; k < std::min(computations.size(), transfers.size()); ++k) {
    if (feeds) {
      b.edge(transfers[k], computations[k]);
    } else {
      b.edge(computations[k], transfers[k]);
    }
  }
  for (size_t k = 1; k < transfers.size(); ++k) b.edge(transfers[k - 1], transfers[k]);
}

// Gathers and reductions of a rank, which run beside its computations.
void tie_sync(GraphBuilder& b, Index first, Index last, const std::vector<Index>& gathers,
              const std::vector<Index>& reduces, const std::vector<Index>& forwards,
              const std::vector<Index>& backwards) {
  const auto same_chunk = [&](Index a, Index c) {
    return b.at(a).chunk < 0 || b.at(c).chunk < 0 || b.at(a).chunk == b.at(c).chunk;
  };
  Index before = kNone;
  for (const Index gather : gathers) {
    b.edge(std::exchange(before, gather), gather);
    for (const Index forward : forwards)
      if (same_chunk(gather, forward)) {
        b.edge(gather, forward);
        break;
      }
  }
  before = kNone;
  for (const Index reduce : reduces) {
    b.edge(std::exchange(before, reduce), reduce);
    Index backward = kNone, finished = kNone;
    for (const Index i : backwards)
      if (same_chunk(reduce, i)) backward = i;
    // Clocks of host and device differ a little, so the stamps of neighbours may overlap.
    const int64_t middle = b.at(reduce).start_ns + b.at(reduce).duration_ns / 2;
    for (Index i = first; i < last; ++i) {
      if (b.role(i) < StepRole::kEmbedding) continue;
      if (end_ns(b.at(i)) <= middle) {
        finished = i;
      } else if (b.at(i).start_ns >= middle) {
        b.edge(reduce, i);
        break;
      }
    }
    b.edge(backward, reduce);
    b.edge(finished, reduce);
  }
}

// The operations [first, last) of one rank, by start.
void tie_rank(GraphBuilder& b, Index first, Index last) {
  std::vector<Index> by_role[static_cast<size_t>(StepRole::kLocal) + 1];
  std::vector<Index> into[2], out_of[2];  // computations that receive, that send; fwd, bwd
  int32_t last_chunk = 0;
  for (Index i = first; i < last; ++i) last_chunk = std::max(last_chunk, b.at(i).chunk);
  Index previous = kNone;
  for (Index i = first; i < last; ++i) {
    const Operation& op = b.at(i);
    const StepRole role = b.role(i);
    std::vector<Index>& same = by_role[static_cast<size_t>(role)];
    if (is_shared(role)) {
      const std::array<int64_t, 5> key = group_key(b, i, static_cast<int64_t>(same.size()));
      b.groups[key].push_back(i);
    } else {
      b.groups[group_key(b, i, 0)].push_back(i);
    }
    same.push_back(i);
    if (role == StepRole::kForward || role == StepRole::kBackward) {
      const size_t way = role == StepRole::kBackward;
      const bool is_first = op.stage == 0 && op.chunk <= 0;
      const bool is_last = op.stage == b.grid.stages - 1 && std::max(op.chunk, 0) == last_chunk;
      if (!(way == 0 ? is_first : is_last)) into[way].push_back(i);
      if (!(way == 0 ? is_last : is_first)) out_of[way].push_back(i);
    }
    const bool on_stream =
        !is_transfer(role) && role != StepRole::kGather && role != StepRole::kReduce;
    if (on_stream) {
      b.edge(previous, i);
      previous = i;
    }
  }
  const auto of = [&](StepRole role) -> std::vector<Index>& {
    return by_role[static_cast<size_t>(role)];
  };
  tie_transfers(b, into[0], of(StepRole::kForwardReceive), true);
  tie_transfers(b, out_of[0], of(StepRole::kForwardSend), false);
  tie_transfers(b, into[1], of(StepRole::kBackwardReceive), true);
  tie_transfers(b, out_of[1], of(StepRole::kBackwardSend), false);
  tie_sync(b, first, last, of(StepRole::kGather), of(StepRole::kReduce), of(StepRole::kForward),
           of(StepRole::kBackward));
}

// Own times of a group's members: what is left after the last of them began.
void fill_own(const GraphBuilder& b, const std::vector<Index>& members, int64_t zero_ns,
              Replay& replay) {
  const StepRole role = b.role(members[0]);
  int64_t begun = b.at(members[0]).start_ns;
  for (const Index i : members) begun = std::max(begun, b.at(i).start_ns);
  // Half a transfer says when it ended, and nothing of how long it took.
  const bool half = is_transfer(role) && members.size() < 2;
  for (const Index i : members) {
    const Operation& op = b.at(i);
    replay.operation.push_back(b.ops[i]);
    replay.own_ns.push_back(half ? 0 : std::max<int64_t>(0, end_ns(op) - begun));
    replay.not_before_ns.push_back(half ? std::max<int64_t>(0, end_ns(op) - zero_ns) : 0);
  }
  replay.unmatched += half;
}

// Groups in an order of dependency (Kahn), which numbers the operations.
void order_groups(GraphBuilder& b, int64_t zero_ns, Replay& replay) {
  std::vector<const std::vector<Index>*> members;
  std::vector<Index> group_of(b.ops.size());
  for (const auto& [key, group] : b.groups) {
    for (const Index i : group) group_of[i] = static_cast<Index>(members.size());
    members.push_back(&group);
  }
  std::vector<std::pair<Index, Index>> by_before, by_after;  // group -> group; group -> operation
  for (const auto& [before, after] : b.edges) {
    if (group_of[before] == group_of[after]) continue;
    by_before.emplace_back(group_of[before], group_of[after]);
    by_after.emplace_back(group_of[after], before);
  }
  std::sort(by_before.begin(), by_before.end());
  std::sort(by_after.begin(), by_after.end());
  std::vector<Index> waiting(members.size(), 0), ready;
  for (const auto& [before, after] : by_before) ++waiting[after];
  for (Index g = 0; g < members.size(); ++g)
    if (waiting[g] == 0) ready.push_back(g);
  std::vector<Index> number(b.ops.size(), kNone);
  for (size_t next = 0; next < ready.size(); ++next) {
    const Index g = ready[next];
    replay.group_first.push_back(static_cast<uint32_t>(replay.operation.size()));
    replay.before_first.push_back(static_cast<uint32_t>(replay.before.size()));
    const auto from = std::lower_bound(by_after.begin(), by_after.end(), std::pair{g, Index{0}});
    for (auto it = from; it != by_after.end() && it->first == g; ++it)
      replay.before.push_back(number[it->second]);
    for (size_t k = 0; k < members[g]->size(); ++k)
      number[(*members[g])[k]] = static_cast<Index>(replay.operation.size() + k);
    fill_own(b, *members[g], zero_ns, replay);
    auto it = std::lower_bound(by_before.begin(), by_before.end(), std::pair{g, Index{0}});
    for (; it != by_before.end() && it->first == g; ++it)
      if (--waiting[it->second] == 0) ready.push_back(it->second);
  }
  replay.group_first.push_back(static_cast<uint32_t>(replay.operation.size()));
  replay.before_first.push_back(static_cast<uint32_t>(replay.before.size()));
  replay.contradictory = ready.size() != members.size();
}

Replay replay_of(GraphBuilder& b) {
  Replay replay;
  replay.step = b.at(0).step;
  int64_t zero_ns = b.at(0).start_ns, last_ns = end_ns(b.at(0));
  for (Index i = 0; i < b.ops.size(); ++i) {
    zero_ns = std::min(zero_ns, b.at(i).start_ns);
    last_ns = std::max(last_ns, end_ns(b.at(i)));
  }
  replay.measured_ns = last_ns - zero_ns;
  for (Index first = 0; first < b.ops.size();) {
    Index last = first;
    while (last < b.ops.size() && b.at(last).rank == b.at(first).rank) ++last;
    tie_rank(b, first, last);
    first = last;
  }
  order_groups(b, zero_ns, replay);
  return replay;
}

}  // namespace

std::vector<Replay> replays(const OperationTrace& trace) {
  const Grid grid(trace);
  std::vector<StepRole> roles;
  for (const std::string& type : trace.types) roles.push_back(step_role(type));
  std::vector<Index> order(trace.operations.size());
  for (Index i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](Index x, Index y) {
    const Operation &a = trace.operations[x], &c = trace.operations[y];
    const int64_t a_end = end_ns(a), c_end = end_ns(c);
    return std::tie(a.step, a.rank, a.start_ns, a_end, x) <
           std::tie(c.step, c.rank, c.start_ns, c_end, y);
  });
  std::vector<Replay> all;
  for (size_t first = 0; first < order.size();) {
    size_t last = first;
    const int64_t step = trace.operations[order[first]].step;
    while (last < order.size() && trace.operations[order[last]].step == step) ++last;
    GraphBuilder builder{trace, roles, grid, {}, {}, {}};
    builder.ops.assign(order.begin() + static_cast<ptrdiff_t>(first),
                       order.begin() + static_cast<ptrdiff_t>(last));
    all.push_back(replay_of(builder));
    first = last;
  }
  return all;
}

}  // namespace assay
