// What the replay of the job says: who is late and why, what communication costs, and the chain of
// ranks that the job's time follows.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "diagnose/ranks_replay.h"

namespace assay {
namespace {

constexpr double kScatterWorthALine = 0.10;  // of the time: less is what healthy ranks show
constexpr size_t kRanksNamed = 8;            // ranks named in one finding

std::string us(int64_t ns) { return fmt::format("{:.0f} us", static_cast<double>(ns) / 1e3); }
std::string rank_ms(int64_t ns) { return fmt::format("{:.2f} ms", static_cast<double>(ns) / 1e6); }
Seconds seconds(int64_t ns) { return Seconds(static_cast<double>(ns) * 1e-9); }

// The graph with what each member did before its collective, and the medians of its peers.
struct RankJudge {
  RanksDiagnosis& d;
  const std::vector<RankSummary>& ranks;
  JobGraph graph;
  int64_t original_ns = 0;
  std::vector<int64_t> median_local;  // by collective; -1: no peers to compare with

  const CollectiveUse& use(const JobMember& m) const {
    return ranks[static_cast<size_t>(m.rank)].collectives[m.use];
  }
  int64_t replay(const std::function<int64_t(const JobMember&)>& local) const {
    return replay_job_ns(graph, local, [](const JobCollective& c) { return c.wire_ns; });
  }
  // Of the steps, of which the collectives may cover a part only; of the replay without steps.
  double share(int64_t gain_ns) const {
    const double steps_ns = d.steps * d.step.v * 1e9;
    const double period_ns = std::max(steps_ns, static_cast<double>(original_ns));
    return period_ns <= 0 ? 0 : static_cast<double>(gain_ns) / period_ns;
  }
};

void price(const RankJudge& j, Finding& f, int64_t gain_ns) {
  f.gain = seconds(gain_ns);
  f.share = j.share(gain_ns);
  if (j.d.steps == 0) return;
  f.gain /= j.d.steps;
  f.step_after = j.d.step - f.gain;
}

std::string rank_name(const RanksDiagnosis& d, int32_t index) {
  return fmt::format("rank {}", d.ranks[static_cast<size_t>(index)].rank);
}

// --- Stragglers --------------------------------------------------------------------------------

// What a set of ranks does beyond its peers between collectives, by what it consists of.
struct Excess {
  int64_t local_ns = 0, compute_ns = 0, data_ns = 0;
  int64_t kernels = 0, peer_kernels = 0;
};

Excess excess_of(const RankJudge& j, const std::vector<bool>& slow) {
  Excess e;
  const auto others = [&](const JobMember& m) { return !slow[static_cast<size_t>(m.rank)]; };
  for (const JobCollective& c : j.graph.collectives) {
    if (!c.comparable) continue;
    const auto median = [&](const std::function<int64_t(const JobMember&)>& value) {
      return median_over(j.graph, c, value, others);
    };
    const int64_t local = median([](const JobMember& m) { return m.local_ns; });
    if (local < 0) continue;
    const int64_t compute = median([&](const JobMember& m) { return j.use(m).compute_ns; });
    const int64_t data = median([&](const JobMember& m) { return j.use(m).data_ns; });
    const int64_t kernels = median([&](const JobMember& m) { return int64_t{j.use(m).kernels}; });
    for (uint32_t i = c.first; i < c.end; ++i) {
      const JobMember& m = j.graph.members[i];
      if (m.before < 0 || others(m)) continue;
      e.local_ns += m.local_ns - local;
      e.compute_ns += j.use(m).compute_ns - compute;
      e.data_ns += j.use(m).data_ns - data;
      e.kernels += j.use(m).kernels;
      e.peer_kernels += kernels;
    }
  }
  return e;
}

struct Why {
  std::string words, fix;
  Confidence confidence = Confidence::kMedium;
};

Why why_late(const Excess& e) {
  const auto most = [&](int64_t part) { return e.local_ns > 0 && part * 2 >= e.local_ns; };
  constexpr double kMoreWork = 1.05;  // kernels against those of its peers
  if (most(e.data_ns))
    return {"the host waits for the data loader",
            "Give the loader there more workers and prefetch, or move its shard to storage as "
            "fast as the others'.",
            Confidence::kHigh};
  if (most(e.compute_ns)) {
    const bool more = static_cast<double>(e.kernels) >
                      kMoreWork * static_cast<double>(std::max<int64_t>(1, e.peer_kernels));
    if (more)
      return {"more kernels to run than the peers have",
              "Balance the work: sequence lengths, experts or tables are spread unevenly.",
              Confidence::kMedium};
    return {"the device runs the same kernels slower",
            "Check clocks, throttle reasons and ECC there (nvidia-smi -q -d "
            "CLOCK,PERFORMANCE,ECC); exclude the node and rerun.",
            Confidence::kHigh};
  }
  return {"the host launches later while the device idles",
          "Look at the host: CPU frequency, NUMA binding, other processes, garbage "
          "collection; pin the rank (numactl --cpunodebind) and compare.",
          Confidence::kMedium};
}

// By the skew that they are to blame for.
std::vector<int32_t> latest_first(const RanksDiagnosis& d) {
  std::vector<int32_t> order(d.ranks.size());
  for (size_t r = 0; r < order.size(); ++r) order[r] = static_cast<int32_t>(r);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return d.ranks[static_cast<size_t>(a)].blamed_ns > d.ranks[static_cast<size_t>(b)].blamed_ns;
  });
  return order;
}

Evidence ranks_evidence(const RanksDiagnosis& d) {
  Evidence e;
  e.title = "ranks by lateness at collectives";
  e.file = fmt::format("{} files", d.ranks.size());
  e.columns = {"rank", "late", "last at", "skew blamed", "waited", "clock"};
  for (const int32_t r : latest_first(d)) {
    if (e.rows.size() >= kEvidenceRows) break;
    const RankView& v = d.ranks[static_cast<size_t>(r)];
    e.rows.push_back({fmt::format("{}", v.rank), us(v.late_ns), fmt::format("{}", v.last_at),
                      us(v.blamed_ns), us(v.waiting_ns), us(v.clock_offset_ns)});
  }
  return e;
}

Evidence collectives_evidence(const RanksDiagnosis& d) {
  Evidence e;
  e.title = "collectives with the largest skew";
  e.file = fmt::format("{} files", d.ranks.size());
  e.columns = {"collective", "number", "ranks", "last", "skew", "wire"};
  std::vector<size_t> order(d.collectives.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return d.collectives[a].skew_ns > d.collectives[b].skew_ns;
  });
  for (const size_t i : order) {
    if (e.rows.size() >= kEvidenceRows) break;
    const MatchedCollective& c = d.collectives[i];
    e.rows.push_back({c.name, fmt::format("{}", i), fmt::format("{}", c.members.size()),
                      rank_name(d, c.last), us(c.skew_ns), us(c.wire_ns)});
  }
  return e;
}

// Ranks nearly as late as the latest.
std::vector<bool> slow_ranks(const RanksDiagnosis& d) {
  int64_t latest = 0;
  for (const RankView& view : d.ranks) latest = std::max(latest, view.late_ns);
  std::vector<bool> slow;
  for (const RankView& view : d.ranks) slow.push_back(latest > 0 && view.late_ns * 2 >= latest);
  return slow;
}

// The host that all of them share and nobody else is on; empty: none is known.
std::string common_host(const RanksDiagnosis& d, const std::vector<bool>& slow) {
  std::string host;
  for (size_t r = 0; r < slow.size(); ++r)
    if (slow[r]) host = d.ranks[r].host;
  for (size_t r = 0; r < slow.size(); ++r)
    if (slow[r] != (d.ranks[r].host == host)) return {};
  return host;
}

void straggler_finding(RankJudge& j, int64_t even_ns) {
  const std::vector<bool> slow = slow_ranks(j.d);
  const size_t count = static_cast<size_t>(std::count(slow.begin(), slow.end(), true));
  const int64_t scatter_ns = j.original_ns - even_ns;
  if (count == 0 || j.share(scatter_ns) < kWorthFixing) return;
  const auto others = [&](const JobMember& m) { return !slow[static_cast<size_t>(m.rank)]; };
  std::vector<int64_t> peers;  // by collective
  for (const JobCollective& c : j.graph.collectives)
    peers.push_back(!c.comparable
                        ? -1
                        : median_over(
                              j.graph, c, [](const JobMember& m) { return m.local_ns; }, others));
  std::vector<int32_t> of_member(j.graph.members.size());
  for (size_t c = 0; c < j.graph.collectives.size(); ++c)
    for (uint32_t m = j.graph.collectives[c].first; m < j.graph.collectives[c].end; ++m)
      of_member[m] = static_cast<int32_t>(c);
  const int64_t fixed_ns = j.replay([&](const JobMember& m) {
    const int64_t peer =
        peers[static_cast<size_t>(of_member[static_cast<size_t>(&m - j.graph.members.data())])];
    return others(m) || peer < 0 ? m.local_ns : std::min(m.local_ns, peer);
  });
  const int64_t gain_ns = j.original_ns - fixed_ns;
  const bool few = count * 2 <= j.d.ranks.size() && gain_ns * 2 >= scatter_ns;
  if (few ? j.share(gain_ns) < kWorthFixing : j.share(scatter_ns) < kScatterWorthALine) return;

  Finding f;
  f.cause = Cause::kStraggler;
  price(j, f, few ? gain_ns : scatter_ns);
  if (few) {
    const Why why = why_late(excess_of(j, slow));
    for (const int32_t r : latest_first(j.d))
      if (slow[static_cast<size_t>(r)] && f.where.size() < kRanksNamed)
        f.where.push_back(rank_name(j.d, r));
    if (const std::string node = common_host(j.d, slow); !node.empty())
      f.where.push_back("node " + node);
    f.title = count == 1 ? fmt::format("{} arrives last: {}", f.where[0], why.words)
                         : fmt::format("{} ranks arrive last: {}", count, why.words);
    f.title[0] = f.title[0] == 'r' ? 'R' : f.title[0];
    f.fix = why.fix;
    f.confidence = why.confidence;
  } else {
    f.title = "Ranks take turns at being late";
    f.where = {"all ranks"};
    f.fix =
        "No single rank is to blame: look for pauses on every host (garbage collection, "
        "checkpoints, logging on one rank at a time) and uneven batches.";
    f.confidence = Confidence::kLow;
  }
  f.detail = fmt::format(
      "Between {} matched collectives the ranks' work differs; the others wait for the last one. "
      "Replayed with {} like the median of its peers, {} become {}.",
      j.d.collectives.size(), few ? "the late work" : "everybody", rank_ms(j.original_ns),
      rank_ms(few ? fixed_ns : even_ns));
  f.evidence.push_back(ranks_evidence(j.d));
  f.evidence.push_back(collectives_evidence(j.d));
  j.d.analysis.findings.push_back(std::move(f));
}

// --- Communication and bubbles -----------------------------------------------------------------

void communication_finding(RankJudge& j) {
  std::vector<int64_t> exposed(j.graph.collectives.size(), 0);
  int64_t wire_ns = 0, exposed_ns = 0;
  for (size_t c = 0; c < exposed.size(); ++c) {
    const JobCollective& collective = j.graph.collectives[c];
    if (collective.point_to_point) continue;
    wire_ns += collective.wire_ns;
    for (uint32_t m = collective.first; m < collective.end; ++m)
      if (j.graph.members[m].rank == j.d.collectives[c].last)
        exposed[c] = std::min(collective.wire_ns, j.use(j.graph.members[m]).exposed_ns);
    exposed_ns += exposed[c];
  }
  const int64_t hidden_ns = replay_job_ns(
      j.graph, [](const JobMember& m) { return m.local_ns; },
      [&](const JobCollective& c) {
        return c.wire_ns - exposed[static_cast<size_t>(&c - j.graph.collectives.data())];
      });
  // It can only hide behind computation that hides nothing yet.
  std::vector<int64_t> free_ns;
  for (const RankView& view : j.d.ranks)
    free_ns.push_back(view.breakdown.compute_ns - view.breakdown.overlapped_communication_ns);
  std::nth_element(free_ns.begin(), free_ns.begin() + static_cast<ptrdiff_t>(free_ns.size() / 2),
                   free_ns.end());
  const int64_t gain_ns = std::min(j.original_ns - hidden_ns, free_ns[free_ns.size() / 2]);
  if (j.share(gain_ns) < kWorthFixing) return;
  Finding f;
  f.cause = Cause::kExposedCommunication;
  price(j, f, gain_ns);
  f.title = "Wire time of collectives is not hidden behind computation";
  f.detail = fmt::format(
      "After the last rank has arrived the collectives need {}; {} of it leave the devices "
      "without computation. Waiting for late ranks is not counted here.",
      rank_ms(wire_ns), rank_ms(exposed_ns));
  f.fix =
      "Overlap: DDP with larger buckets started earlier (bucket_cap_mb, gradient_as_bucket_view), "
      "FSDP with forward and backward prefetch, Megatron --overlap-grad-reduce "
      "--overlap-param-gather; or send less (bf16 gradients, fewer groups).";
  f.where = {"all ranks"};
  if (j.d.missing_count > 0) {
    f.confidence = Confidence::kLow;
    f.detail += fmt::format(" {} ranks have no file: part of it may be waiting for them.",
                            j.d.missing_count);
  }
  f.evidence.push_back(collectives_evidence(j.d));
  j.d.analysis.findings.push_back(std::move(f));
}

// Stages of a pipeline that compute for different times: replayed with the same work spread evenly,
// which makes the short ones longer. Returns the gain.
int64_t stage_finding(RankJudge& j) {
  constexpr double kLongStage = 1.05;  // computation against the mean: beyond jitter
  double sum = 0;
  std::vector<int32_t> order;
  for (size_t r = 0; r < j.d.ranks.size(); ++r) {
    if (j.d.ranks[r].breakdown.compute_ns <= 0) return 0;
    sum += static_cast<double>(j.d.ranks[r].breakdown.compute_ns);
    order.push_back(static_cast<int32_t>(r));
  }
  const double mean = sum / static_cast<double>(order.size());
  const auto longer = [&](int32_t r) {
    return static_cast<double>(j.d.ranks[static_cast<size_t>(r)].breakdown.compute_ns) / mean;
  };
  const int64_t even_ns = j.replay([&](const JobMember& m) {
    return static_cast<int64_t>(static_cast<double>(m.local_ns) / longer(m.rank));
  });
  const int64_t gain_ns = j.original_ns - even_ns;
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return longer(a) > longer(b); });
  if (j.share(gain_ns) < kWorthFixing || longer(order[0]) < kLongStage) return 0;
  Finding f;
  f.cause = Cause::kStraggler;
  price(j, f, gain_ns);
  f.title =
      fmt::format("The stage of {} computes longer than the others", rank_name(j.d, order[0]));
  f.detail = fmt::format(
      "Its device computes {:.0f} % longer than the mean of all stages, and the others wait for it "
      "at transfers. With the same work spread evenly {} become {}.",
      (longer(order[0]) - 1) * 100, rank_ms(j.original_ns), rank_ms(even_ns));
  f.fix =
      "Move layers off that stage (the first and the last also have the embedding and the loss): "
      "Megatron --decoder-first-pipeline-num-layers, --decoder-last-pipeline-num-layers. If its "
      "work is the same, check the clocks of its devices.";
  f.confidence = Confidence::kMedium;
  Evidence e;
  e.title = "computation of each rank";
  e.file = fmt::format("{} files", j.d.ranks.size());
  e.columns = {"rank", "computes", "against the mean"};
  for (const int32_t r : order) {
    if (e.rows.size() >= kEvidenceRows) break;
    if (longer(r) >= kLongStage && f.where.size() < kRanksNamed)
      f.where.push_back(rank_name(j.d, r));
    e.rows.push_back({rank_name(j.d, r),
                      rank_ms(j.d.ranks[static_cast<size_t>(r)].breakdown.compute_ns),
                      fmt::format("{:.3f}", longer(r))});
  }
  f.evidence.push_back(std::move(e));
  j.d.analysis.findings.push_back(std::move(f));
  return gain_ns;
}

void bubble_finding(RankJudge& j) {
  std::vector<int64_t> waited(j.ranks.size(), 0);
  int64_t sum_ns = 0;
  std::set<int32_t> taking_part;
  for (const MatchedCollective& c : j.d.collectives) {
    if (!c.point_to_point) continue;
    for (const MatchedMember& m : c.members) {
      waited[static_cast<size_t>(m.rank)] += m.waiting_ns;
      sum_ns += m.waiting_ns;
      taking_part.insert(m.rank);
    }
  }
  if (taking_part.empty()) return;
  const int64_t mean_ns = sum_ns / static_cast<int64_t>(taking_part.size());
  // Twice the chunks of layers a stage halve the time in which the pipeline fills and drains. What
  // even stages give back is theirs.
  const int64_t gain_ns = (mean_ns - stage_finding(j)) / 2;
  if (j.share(gain_ns) < kWorthFixing) return;
  Finding f;
  f.cause = Cause::kPipelineBubble;
  price(j, f, gain_ns);
  f.title = "Stages wait for each other";
  f.detail = fmt::format(
      "A rank waits {} of {} for the other end of transfers between stages. Interleaving two "
      "chunks of layers a stage halves what is fill and drain.",
      rank_ms(mean_ns), rank_ms(j.original_ns));
  f.fix =
      "More microbatches, or an interleaved schedule (Megatron "
      "--num-layers-per-virtual-pipeline-stage), or layers moved off the stage the others wait "
      "for.";
  f.confidence = Confidence::kMedium;
  std::vector<int32_t> order(taking_part.begin(), taking_part.end());
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return waited[static_cast<size_t>(a)] > waited[static_cast<size_t>(b)];
  });
  Evidence e;
  e.title = "waiting at transfers between stages";
  e.file = fmt::format("{} files", j.d.ranks.size());
  e.columns = {"rank", "waited"};
  for (const int32_t r : order) {
    if (e.rows.size() >= kEvidenceRows) break;
    if (f.where.size() < kRanksNamed) f.where.push_back(rank_name(j.d, r));
    e.rows.push_back({rank_name(j.d, r), us(waited[static_cast<size_t>(r)])});
  }
  f.evidence.push_back(std::move(e));
  j.d.analysis.findings.push_back(std::move(f));
}

// --- The path ----------------------------------------------------------------------------------

// Backwards from the collective that ends last: its wire time, then the work of the rank that came
// last, then the collective that this rank had left before.
void fill_path(RankJudge& j) {
  int32_t at = -1;
  int64_t last = INT64_MIN;
  const auto last_member = [&](int32_t c) {
    const JobCollective& collective = j.graph.collectives[static_cast<size_t>(c)];
    for (uint32_t m = collective.first; m < collective.end; ++m)
      if (j.graph.members[m].rank == j.d.collectives[static_cast<size_t>(c)].last) return m;
    return collective.first;
  };
  for (size_t c = 0; c < j.graph.collectives.size(); ++c) {
    const int64_t end = j.graph.collectives[c].anchor_ns + j.graph.collectives[c].wire_ns;
    if (end < last) continue;
    last = end;
    at = static_cast<int32_t>(c);
  }
  while (at >= 0) {
    const JobCollective& c = j.graph.collectives[static_cast<size_t>(at)];
    const JobMember& m = j.graph.members[last_member(at)];
    const std::string& name = j.d.collectives[static_cast<size_t>(at)].name;
    j.d.path.push_back({m.rank, true, name, c.anchor_ns, c.wire_ns, 0, 0});
    if (m.before >= 0) {
      const CollectiveUse& use = j.use(m);
      j.d.path.push_back({m.rank, false, name, c.anchor_ns - m.local_ns, m.local_ns,
                          std::min(use.compute_ns, m.local_ns), std::min(use.data_ns, m.local_ns)});
    }
    at = m.before;
  }
  std::reverse(j.d.path.begin(), j.d.path.end());
}

void add_notes(RankJudge& j) {
  std::vector<std::string>& notes = j.d.analysis.notes;
  int64_t wire_ns = 0, skew_ns = 0;
  for (const MatchedCollective& c : j.d.collectives) {
    wire_ns += c.wire_ns;
    skew_ns += c.skew_ns;
  }
  notes.push_back(fmt::format("{} ranks, {} collectives matched: wire time {}, skew of arrival {}",
                              j.d.ranks.size(), j.d.collectives.size(), rank_ms(wire_ns),
                              rank_ms(skew_ns)));
  if (j.d.unmatched > 0)
    notes.push_back(fmt::format("{} collectives were seen on one rank only", j.d.unmatched));
  if (j.d.missing_count > 0)
    notes.push_back(fmt::format("{} ranks of the job have no file", j.d.missing_count));
  size_t corrected = 0;
  int64_t most = 0;
  for (const RankView& view : j.d.ranks) {
    corrected += view.corrected;
    most = std::max(most, std::abs(view.clock_offset_ns));
  }
  if (corrected > 0)
    notes.push_back(
        fmt::format("clocks of {} ranks differ by up to {} and were corrected from the "
                    "common ends of collectives",
                    corrected, rank_ms(most)));
}

void fill_steps(RanksDiagnosis& d, const std::vector<RankSummary>& ranks) {
  std::vector<int64_t> counts, durations;
  for (const RankSummary& rank : ranks) {
    counts.push_back(static_cast<int64_t>(rank.steps_ns.size()));
    durations.insert(durations.end(), rank.steps_ns.begin(), rank.steps_ns.end());
  }
  const auto median = [](std::vector<int64_t>& values) {
    if (values.empty()) return int64_t{0};
    const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
  };
  d.steps = static_cast<int>(median(counts));
  d.step = seconds(d.steps == 0 ? 0 : median(durations));
}

}  // namespace

void judge_ranks(RanksDiagnosis& d, const std::vector<RankSummary>& ranks) {
  fill_steps(d, ranks);
  if (d.ranks.size() < 2) return;
  RankJudge j{d, ranks, job_graph(d, ranks), 0, {}};
  add_notes(j);
  if (d.collectives.empty()) return;
  j.original_ns = j.replay([](const JobMember& m) { return m.local_ns; });
  // A host that runs ahead has shorter steps than the job.
  if (d.steps > 0) d.step = std::max(d.step, seconds(j.original_ns / d.steps));
  for (const JobCollective& c : j.graph.collectives) {
    const int64_t median = !c.comparable
                               ? -1
                               : median_over(
                                     j.graph, c, [](const JobMember& m) { return m.local_ns; },
                                     [](const JobMember&) { return true; });
    j.median_local.push_back(median);
    for (uint32_t m = c.first; m < c.end && median >= 0; ++m)
      if (j.graph.members[m].before >= 0)
        d.ranks[static_cast<size_t>(j.graph.members[m].rank)].late_ns +=
            j.graph.members[m].local_ns - median;
  }
  std::vector<int64_t> even(j.graph.members.size());
  for (size_t c = 0; c < j.graph.collectives.size(); ++c)
    for (uint32_t m = j.graph.collectives[c].first; m < j.graph.collectives[c].end; ++m) {
      const int64_t local = j.graph.members[m].local_ns, median = j.median_local[c];
      even[m] = median < 0 ? local : std::min(local, median);
    }
  const int64_t even_ns = j.replay(
      [&](const JobMember& m) { return even[static_cast<size_t>(&m - j.graph.members.data())]; });
  d.replayed = seconds(j.original_ns);
  fill_path(j);
  straggler_finding(j, even_ns);
  communication_finding(j);
  bubble_finding(j);
  std::stable_sort(d.analysis.findings.begin(), d.analysis.findings.end(),
                   [](const Finding& a, const Finding& b) { return a.gain > b.gain; });
}

}  // namespace assay
