#include "diagnose/what_if.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>

#include "diagnose/what_if_graph.h"

namespace assay {
namespace {

constexpr double kWorstWorkers = 0.03;  // the share that the study calls the worst workers

// Operations replayed for one list of slices (each slice twice): about half a second.
constexpr size_t kReplayedOperations = size_t{32} << 20;
constexpr size_t kLeastSlices = 8;

// One operation as the scenarios see it: flat, in the order of the replay.
struct Row {
  int64_t own_ns, not_before_ns;
  uint32_t kind, worker;
  uint32_t of_stage, of_worker;  // indices of (stage, kind) and (worker, kind), for their means
  int32_t stage, dp;
};

struct WhatIfModel {
  std::vector<Replay> replays;
  std::vector<std::vector<Row>> rows;  // by replay
  std::vector<std::string> kinds;
  std::vector<bool> shared;                      // by kind
  std::vector<int32_t> workers;                  // ranks
  std::vector<int64_t> ideal;                    // by kind
  std::vector<int64_t> stage_mean, worker_mean;  // by of_stage, of_worker
  uint32_t stage_kinds = 0, worker_kinds = 0;
  std::vector<int64_t> end;               // scratch
  int64_t ideal_ns = 0, original_ns = 0;  // sums over steps
};

template <class Duration>
int64_t step_ns(const Replay& replay, const std::vector<Row>& rows, std::vector<int64_t>& end,
                const Duration& duration) {
  end.resize(rows.size());
  int64_t last = 0;
  for (size_t g = 0; g + 1 < replay.group_first.size(); ++g) {
    int64_t start = 0;
    for (uint32_t k = replay.before_first[g]; k < replay.before_first[g + 1]; ++k)
      start = std::max(start, end[replay.before[k]]);
    for (uint32_t i = replay.group_first[g]; i < replay.group_first[g + 1]; ++i) {
      end[i] = std::max(start + duration(rows[i]), rows[i].not_before_ns);
      last = std::max(last, end[i]);
    }
  }
  return last;
}

// The sum over steps, with every operation as long as `duration` says.
template <class Duration>
int64_t total_ns(WhatIfModel& m, const Duration& duration) {
  int64_t sum = 0;
  for (size_t s = 0; s < m.replays.size(); ++s)
    sum += step_ns(m.replays[s], m.rows[s], m.end, duration);
  return sum;
}

template <class Slow>
int64_t total_where(WhatIfModel& m, const Slow& keeps_own) {
  return total_ns(m, [&](const Row& r) { return keeps_own(r) ? r.own_ns : m.ideal[r.kind]; });
}

Seconds mean_step(const WhatIfModel& m, int64_t sum_ns) {
  return Seconds(static_cast<double>(sum_ns) * 1e-9 / static_cast<double>(m.replays.size()));
}

// Both ends of a transfer are one kind.
std::string kind_name(const std::string& type) {
  switch (step_role(type)) {
    case StepRole::kForwardSend:
    case StepRole::kForwardReceive:
      return "forward-pp-comm";
    case StepRole::kBackwardSend:
    case StepRole::kBackwardReceive:
      return "backward-pp-comm";
    default:
      return type;
  }
}

WhatIfModel model_of(const OperationTrace& trace, WhatIf& result) {
  WhatIfModel m;
  std::vector<uint32_t> kind_of_type;
  for (const std::string& type : trace.types) {
    const std::string name = kind_name(type);
    const auto found = std::find(m.kinds.begin(), m.kinds.end(), name);
    kind_of_type.push_back(static_cast<uint32_t>(found - m.kinds.begin()));
    if (found != m.kinds.end()) continue;
    m.kinds.push_back(name);
    m.shared.push_back(is_shared(step_role(type)));
  }
  std::set<int32_t> ranks;
  for (const Operation& op : trace.operations) {
    ranks.insert(op.rank);
    result.stage_count = std::max(result.stage_count, op.stage + 1);
  }
  m.workers.assign(ranks.begin(), ranks.end());
  result.rank_count = static_cast<int>(ranks.size());

  std::unordered_map<uint64_t, uint32_t> of_stage, of_worker;
  const auto number = [](std::unordered_map<uint64_t, uint32_t>& ids, uint32_t who, uint32_t kind) {
    const uint64_t key = uint64_t{who} << 32 | kind;
    return ids.try_emplace(key, static_cast<uint32_t>(ids.size())).first->second;
  };
  for (Replay& replay : replays(trace)) {
    result.unmatched += replay.unmatched;
    if (replay.contradictory) {
      ++result.unreplayable_steps;
      continue;
    }
    std::vector<Row> rows;
    rows.reserve(replay.operation.size());
    for (size_t i = 0; i < replay.operation.size(); ++i) {
      const Operation& op = trace.operations[replay.operation[i]];
      const uint32_t kind = kind_of_type[op.type];
      const auto found = std::lower_bound(m.workers.begin(), m.workers.end(), op.rank);
      const auto worker = static_cast<uint32_t>(found - m.workers.begin());
      rows.push_back({replay.own_ns[i], replay.not_before_ns[i], kind, worker,
                      number(of_stage, static_cast<uint32_t>(op.stage), kind),
                      number(of_worker, worker, kind), op.stage, op.dp});
    }
    m.rows.push_back(std::move(rows));
    m.replays.push_back(std::move(replay));
  }
  m.stage_kinds = static_cast<uint32_t>(of_stage.size());
  m.worker_kinds = static_cast<uint32_t>(of_worker.size());
  return m;
}

struct Mean {
  double sum = 0;
  int64_t count = 0;
  int64_t rounded() const {
    return count == 0 ? 0 : std::llround(sum / static_cast<double>(count));
  }
  void add(int64_t value) {
    sum += static_cast<double>(value);
    ++count;
  }
};

std::vector<int64_t> rounded(const std::vector<Mean>& means) {
  std::vector<int64_t> values;
  for (const Mean& mean : means) values.push_back(mean.rounded());
  return values;
}

// Fills the ideal times. A half transfer has no time of its own and takes no part.
void idealise(WhatIfModel& m) {
  const size_t kinds = m.kinds.size();
  std::vector<std::vector<int64_t>> shared(kinds);
  std::vector<Mean> all(kinds), stage(m.stage_kinds), worker(m.worker_kinds);
  for (const std::vector<Row>& rows : m.rows)
    for (const Row& r : rows) {
      if (m.shared[r.kind]) {
        if (r.not_before_ns == 0) shared[r.kind].push_back(r.own_ns);
        continue;
      }
      all[r.kind].add(r.own_ns);
      stage[r.of_stage].add(r.own_ns);
      worker[r.of_worker].add(r.own_ns);
    }
  m.ideal = rounded(all);
  m.stage_mean = rounded(stage);
  m.worker_mean = rounded(worker);
  for (size_t kind = 0; kind < kinds; ++kind) {
    std::vector<int64_t>& own = shared[kind];
    if (own.empty()) continue;
    const size_t half = own.size() / 2;
    std::nth_element(own.begin(), own.begin() + static_cast<ptrdiff_t>(half), own.end());
    int64_t median = own[half];
    if (own.size() % 2 == 0) {
      const auto below = std::max_element(own.begin(), own.begin() + static_cast<ptrdiff_t>(half));
      median = *below + (median - *below) / 2;
    }
    m.ideal[kind] = median;
  }
}

void fill_split(WhatIfModel& m, WhatIf& result) {
  const int64_t even_workers = total_ns(m, [&](const Row& r) {
    return m.shared[r.kind] ? m.ideal[r.kind] : m.worker_mean[r.of_worker];
  });
  const int64_t even_stages = total_ns(m, [&](const Row& r) {
    return m.shared[r.kind] ? m.ideal[r.kind] : m.stage_mean[r.of_stage];
  });
  result.split.variation = mean_step(m, m.original_ns - even_workers);
  result.split.ranks = mean_step(m, even_workers - even_stages);
  result.split.stages = mean_step(m, even_stages - m.ideal_ns);
}

template <class Is>
WhatIfSlice slice(WhatIfModel& m, int32_t id, const Is& is) {
  const int64_t alone = total_where(m, is);
  const int64_t without = total_where(m, [&](const Row& r) { return !is(r); });
  const double lost = static_cast<double>(m.original_ns - m.ideal_ns);
  WhatIfSlice s{id, mean_step(m, alone), mean_step(m, without)};
  if (m.ideal_ns > 0) s.slowdown = static_cast<double>(alone) / static_cast<double>(m.ideal_ns);
  if (lost > 0) s.explains = static_cast<double>(m.original_ns - without) / lost;
  return s;
}

void sort_slices(std::vector<WhatIfSlice>& slices) {
  std::stable_sort(slices.begin(), slices.end(),
                   [](const WhatIfSlice& a, const WhatIfSlice& b) { return a.alone > b.alone; });
}

// Candidates for one-by-one simulation: those whose own times exceed the ideal by most.
template <class Key>
std::vector<int32_t> slowest(const WhatIfModel& m, const Key& key) {
  std::map<int32_t, double> excess;
  for (const std::vector<Row>& rows : m.rows)
    for (const Row& r : rows) excess[key(r)] += static_cast<double>(r.own_ns - m.ideal[r.kind]);
  std::vector<std::pair<double, int32_t>> order;
  for (const auto& [id, ns] : excess) order.emplace_back(-ns, id);
  std::sort(order.begin(), order.end());
  size_t operations = 1;
  for (const std::vector<Row>& rows : m.rows) operations += rows.size();
  const size_t most = std::clamp(kReplayedOperations / operations, kLeastSlices, kWhatIfWorkers);
  std::vector<int32_t> ids;
  for (const auto& [ns, id] : order)
    if (ids.size() < most) ids.push_back(id);
  return ids;
}

void fill_slices(WhatIfModel& m, WhatIf& result) {
  for (const int32_t stage : slowest(m, [](const Row& r) { return r.stage; }))
    result.stages.push_back(slice(m, stage, [&](const Row& r) { return r.stage == stage; }));
  for (const int32_t kind : slowest(m, [](const Row& r) { return static_cast<int32_t>(r.kind); }))
    result.types.push_back(
        slice(m, kind, [&](const Row& r) { return r.kind == static_cast<uint32_t>(kind); }));
  for (const int32_t dp : slowest(m, [](const Row& r) { return r.dp; }))
    result.dp_ranks.push_back(slice(m, dp, [&](const Row& r) { return r.dp == dp; }));
  for (const int32_t w : slowest(m, [](const Row& r) { return static_cast<int32_t>(r.worker); }))
    result.workers.push_back(
        slice(m, w, [&](const Row& r) { return r.worker == static_cast<uint32_t>(w); }));
  for (std::vector<WhatIfSlice>* slices :
       {&result.stages, &result.types, &result.dp_ranks, &result.workers})
    sort_slices(*slices);

  const double share = std::ceil(kWorstWorkers * static_cast<double>(m.workers.size()));
  const size_t count = std::min(result.workers.size(), static_cast<size_t>(share));
  std::vector<bool> worst(m.workers.size(), false);
  for (size_t i = 0; i < count; ++i) worst[static_cast<size_t>(result.workers[i].id)] = true;
  result.worst_together = slice(m, -1, [&](const Row& r) { return worst[r.worker]; });
  for (WhatIfSlice& w : result.workers) w.id = m.workers[static_cast<size_t>(w.id)];
  for (size_t i = 0; i < count; ++i) result.worst.push_back(result.workers[i].id);
}

// Forward and backward of a microbatch against the means of their stage.
void fill_correlation(const OperationTrace& trace, const WhatIfModel& m, WhatIf& result) {
  double xx = 0, yy = 0, xy = 0;
  int64_t forwards = 0, rank_steps = 0;
  for (size_t s = 0; s < m.replays.size(); ++s) {
    std::map<std::array<int32_t, 3>, double> forward;  // worker, chunk, sequence
    std::set<uint32_t> workers;
    for (const bool backward_pass : {false, true})
      for (size_t i = 0; i < m.rows[s].size(); ++i) {
        const Row& r = m.rows[s][i];
        const Operation& op = trace.operations[m.replays[s].operation[i]];
        const StepRole role = step_role(trace.types[op.type]);
        if (role != (backward_pass ? StepRole::kBackward : StepRole::kForward)) continue;
        const std::array<int32_t, 3> key{static_cast<int32_t>(r.worker), op.chunk, op.sequence};
        const double off = static_cast<double>(r.own_ns - m.stage_mean[r.of_stage]);
        if (!backward_pass) {
          forward[key] = off;
          workers.insert(r.worker);
          ++forwards;
        } else if (const auto found = forward.find(key); found != forward.end()) {
          xx += found->second * found->second;
          yy += off * off;
          xy += off * found->second;
        }
      }
    rank_steps += static_cast<int64_t>(workers.size());
  }
  if (xx > 0 && yy > 0) result.forward_backward_correlation = xy / std::sqrt(xx * yy);
  if (rank_steps > 0) result.microbatches = forwards / rank_steps;
}

}  // namespace

WhatIf what_if(const OperationTrace& trace) {
  WhatIf result;
  WhatIfModel m = model_of(trace, result);
  result.kinds = m.kinds;
  result.usable = !m.replays.empty();
  if (!result.usable) return result;
  idealise(m);

  int64_t measured_ns = 0;
  for (size_t s = 0; s < m.replays.size(); ++s) {
    const int64_t original =
        step_ns(m.replays[s], m.rows[s], m.end, [](const Row& r) { return r.own_ns; });
    const int64_t ideal =
        step_ns(m.replays[s], m.rows[s], m.end, [&](const Row& r) { return m.ideal[r.kind]; });
    m.original_ns += original;
    m.ideal_ns += ideal;
    measured_ns += m.replays[s].measured_ns;
    const auto seconds = [](int64_t ns) { return Seconds(static_cast<double>(ns) * 1e-9); };
    result.steps.push_back(
        {m.replays[s].step, seconds(m.replays[s].measured_ns), seconds(original), seconds(ideal)});
  }
  result.measured = mean_step(m, measured_ns);
  result.original = mean_step(m, m.original_ns);
  result.ideal = mean_step(m, m.ideal_ns);
  if (m.ideal_ns > 0) result.slowdown = result.original / result.ideal;
  for (const int64_t ns : m.ideal)
    result.ideal_of.push_back(Seconds(static_cast<double>(ns) * 1e-9));
  fill_split(m, result);
  fill_slices(m, result);
  fill_correlation(trace, m, result);
  return result;
}

}  // namespace assay
