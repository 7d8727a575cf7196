#include "diagnose/ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>

#include <fmt/format.h>

#include "diagnose/test_random.h"
#include "ingest/kineto.h"

namespace assay {
namespace {

const std::string kDlrm =
    std::string(ASSAY_ROOT) + "/../shared/data/public/kineto/param_dlrm_8rank/";

struct Job {
  int ranks = 8, rounds = 40;
  int steps = 0;  // profiler steps, each of as many rounds; 0: none recorded
  int64_t wire_ns = 200'000;
  bool metadata = true;
  // Computing time of a round, idle time of the host before it, data loading before it.
  std::function<double(int rank, int round)> compute_us = [](int, int) { return 10'000; };
  std::function<double(int rank, int round)> idle_us = [](int, int) { return 0; };
  std::function<double(int rank, int round)> data_us = [](int, int) { return 0; };
  std::function<int64_t(int rank)> clock_ns = [](int) { return 0; };
};

constexpr uint32_t kKernel = 1, kAllReduce = 2, kGroup = 3, kLoader = 4, kMembers = 5, kName = 6,
                   kStep = 7;

Trace empty_rank(const Job& job, int rank) {
  Trace trace;
  trace.file = fmt::format("node{}_17.1234.pt.trace.json", rank / 4);
  trace.rank = rank;
  trace.world_size = job.ranks;
  trace.base_ns = 1'700'000'000'000'000'000 + job.clock_ns(rank);
  trace.threads.push_back({1, 1, 0});
  trace.strings = {"",
                   "gemm",
                   "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgs)",
                   "dp_0",
                   "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
                   "[0, 1, 2, 3, 4, 5, 6, 7]",
                   "allreduce",
                   "ProfilerStep#1"};
  return trace;
}

// The same job run by hand: work, arrive, wait for the last, wire, again.
std::vector<Trace> run(const Job& job) {
  std::vector<Trace> traces;
  for (int r = 0; r < job.ranks; ++r) traces.push_back(empty_rank(job, r));
  std::vector<int64_t> now(static_cast<size_t>(job.ranks), 1'000'000);
  for (int round = 0; round < job.rounds; ++round) {
    std::vector<int64_t> arrival;
    for (int r = 0; r < job.ranks; ++r) {
      int64_t& t = now[static_cast<size_t>(r)];
      Trace& trace = traces[static_cast<size_t>(r)];
      if (job.steps > 0 && round % (job.rounds / job.steps) == 0) {
        if (!trace.steps.empty()) {
          HostEvent& before = trace.host[static_cast<size_t>(trace.steps.back())];
          before.duration_ns = t - before.start_ns;
        }
        trace.steps.push_back(static_cast<int32_t>(trace.host.size()));
        HostEvent step;
        step.start_ns = t;
        step.duration_ns = 100'000'000;
        step.name = kStep;
        step.kind = HostKind::kAnnotation;
        trace.host.push_back(step);
      }
      const auto ns = [](double us) { return static_cast<int64_t>(us * 1e3); };
      if (const int64_t data = ns(job.data_us(r, round)); data > 0) {
        HostEvent e;
        e.start_ns = t;
        e.duration_ns = data;
        e.name = kLoader;
        e.kind = HostKind::kAnnotation;
        trace.host.push_back(e);
        t += data;
      }
      t += ns(job.idle_us(r, round));
      for (int k = 0; k < 10; ++k) {
        DeviceEvent e;
        e.start_ns = t;
        e.duration_ns = ns(job.compute_us(r, round) / 10);
        e.stream = 7;
        e.name = kKernel;
        trace.device.push_back(e);
        t += e.duration_ns;
      }
      arrival.push_back(t);
    }
    const int64_t last = *std::max_element(arrival.begin(), arrival.end());
    for (int r = 0; r < job.ranks; ++r) {
      Trace& trace = traces[static_cast<size_t>(r)];
      DeviceEvent e;
      e.start_ns = arrival[static_cast<size_t>(r)];
      e.duration_ns = last + job.wire_ns - e.start_ns;
      e.stream = 20;
      e.name = kAllReduce;
      e.role = Role::kCommunication;
      if (job.metadata) {
        e.collective = static_cast<int32_t>(trace.collectives.size());
        CollectiveInfo info;
        info.name = kName;
        info.group = kGroup;
        info.group_ranks = kMembers;
        info.sequence = round;
        trace.collectives.push_back(info);
      }
      trace.device.push_back(e);
      now[static_cast<size_t>(r)] = last + job.wire_ns;
    }
  }
  return traces;
}

std::vector<RankSummary> summaries(const std::vector<Trace>& traces) {
  std::vector<RankSummary> all;
  for (const Trace& trace : traces) all.push_back(summarise(trace));
  return all;
}

RanksDiagnosis diagnose(const Job& job) { return diagnose_ranks(summaries(run(job))); }

double span_s(const Job& job) {
  const std::vector<Trace> traces = run(job);
  const DeviceEvent& last = traces[0].device.back();
  return static_cast<double>(last.start_ns + last.duration_ns) * 1e-9;
}

std::function<double(int, int)> noisy(uint32_t seed, double us, double spread) {
  return [=](int rank, int round) {
    TestRandom random(seed + static_cast<uint32_t>(rank) * 7919u +
                      static_cast<uint32_t>(round) * 104729u);
    (void)random.unit();
    return us * (1 + spread * (random.unit() - 0.5));
  };
}

const Finding* find(const RanksDiagnosis& d, Cause cause) {
  for (const Finding& f : d.analysis.findings)
    if (f.cause == cause) return &f;
  return nullptr;
}

TEST(Ranks, AHealthyJobIsSilent) {
  for (const bool metadata : {true, false}) {
    Job job;
    job.metadata = metadata;
    job.compute_us = noisy(3, 10'000, 0.008);
    const RanksDiagnosis d = diagnose(job);
    EXPECT_EQ(d.collectives.size(), 40u);
    EXPECT_EQ(d.unmatched, 0u);
    for (const Finding& f : d.analysis.findings) ADD_FAILURE() << f.title << " " << f.share;
    EXPECT_NEAR(d.replayed.v, 39 * 0.0102, 0.003);
  }
}

TEST(Ranks, ASlowDeviceIsNamedAndPriced) {
  for (const bool metadata : {true, false}) {
    Job job;
    job.metadata = metadata;
    const auto healthy = noisy(5, 10'000, 0.008);
    job.compute_us = [&](int rank, int round) {
      return healthy(rank, round) * (rank == 5 ? 1.2 : 1);
    };
    const RanksDiagnosis d = diagnose(job);
    ASSERT_EQ(d.analysis.findings.size(), 1u);
    const Finding& f = d.analysis.findings[0];
    EXPECT_EQ(f.cause, Cause::kStraggler);
    EXPECT_EQ(f.where, std::vector<std::string>{"rank 5"});
    EXPECT_NE(f.title.find("same kernels slower"), std::string::npos) << f.title;
    // The truth: the same job without the slow device.
    Job repaired = job;
    repaired.compute_us = healthy;
    const double gain = span_s(job) - span_s(repaired);
    EXPECT_NEAR(f.gain.v, gain, 0.05 * gain);
    EXPECT_GT(d.ranks[0].waiting_ns, 30 * 1'900'000);
    // With steps the gain is that of one, and so is the step that remains.
    job.steps = 4;
    const RanksDiagnosis stepped = diagnose(job);
    ASSERT_EQ(stepped.analysis.findings.size(), 1u);
    EXPECT_EQ(stepped.steps, 4);
    EXPECT_NEAR(stepped.analysis.findings[0].gain.v, gain / 4, 0.05 * gain / 4);
    EXPECT_NEAR(stepped.analysis.findings[0].step_after->v, 10 * 0.0102, 0.003);
    EXPECT_NEAR(stepped.analysis.findings[0].share, f.share, 0.01);
    EXPECT_EQ(d.ranks[5].last_at, 40);
  }
}

TEST(Ranks, LateHostAndLoaderAreToldApart) {
  Job job;
  job.idle_us = [](int rank, int) { return rank == 2 ? 1'500 : 0; };
  const RanksDiagnosis host = diagnose(job);
  const Finding* f = find(host, Cause::kStraggler);
  ASSERT_NE(f, nullptr);
  EXPECT_EQ(f->where, std::vector<std::string>{"rank 2"});
  EXPECT_NE(f->title.find("host launches later"), std::string::npos) << f->title;

  Job loader;
  loader.data_us = [](int rank, int) { return rank == 6 ? 2'000 : 0; };
  const RanksDiagnosis data = diagnose(loader);
  f = find(data, Cause::kStraggler);
  ASSERT_NE(f, nullptr);
  EXPECT_EQ(f->where, std::vector<std::string>{"rank 6"});
  EXPECT_NE(f->title.find("data loader"), std::string::npos) << f->title;
}

TEST(Ranks, ASlowNodeIsNamedWhole) {
  Job job;
  job.ranks = 16;
  job.compute_us = [](int rank, int) { return rank >= 8 && rank < 12 ? 11'500 : 10'000; };
  const RanksDiagnosis d = diagnose(job);
  const Finding* f = find(d, Cause::kStraggler);
  ASSERT_NE(f, nullptr);
  std::vector<std::string> where = f->where;
  std::sort(where.begin(), where.end());
  EXPECT_EQ(where,
            (std::vector<std::string>{"node node2", "rank 10", "rank 11", "rank 8", "rank 9"}));
  EXPECT_EQ(d.ranks[8].host, "node2");
  EXPECT_NEAR(f->gain.v, 39 * 0.0015, 0.001);
}

TEST(Ranks, ClocksAreCorrectedFromCommonEnds) {
  for (const bool metadata : {true, false}) {
    Job job;
    job.metadata = metadata;
    job.clock_ns = [](int rank) { return rank < 4 ? 0 : 7'000'000 + rank * 1'000'000; };
    job.compute_us = [](int rank, int) { return rank == 1 ? 12'000 : 10'000; };
    const RanksDiagnosis d = diagnose(job);
    ASSERT_EQ(d.collectives.size(), 40u);
    const Finding* f = find(d, Cause::kStraggler);
    ASSERT_NE(f, nullptr);
    EXPECT_EQ(f->where, std::vector<std::string>{"rank 1"});
    EXPECT_EQ(d.ranks[7].clock_offset_ns - d.ranks[0].clock_offset_ns, 14'000'000);
    EXPECT_TRUE(d.ranks[7].corrected);
    for (const MatchedCollective& c : d.collectives) EXPECT_LE(c.end_skew_ns, 1000);
    EXPECT_EQ(d.ranks[1].last_at, 40);
  }
}

TEST(Ranks, MissingRanksAndMissingKernels) {
  Job job;
  job.metadata = false;
  job.compute_us = [](int rank, int) { return rank == 5 ? 12'000 : 10'000; };
  std::vector<Trace> traces = run(job);
  traces.erase(traces.begin() + 2);
  // Rank 0's window began later, and one kernel was lost in the middle.
  std::vector<DeviceEvent>& device = traces[0].device;
  device.erase(device.begin() + 110);
  device.erase(device.begin(), device.begin() + 33);
  const RanksDiagnosis d = diagnose_ranks(summaries(traces));
  EXPECT_EQ(d.missing, std::vector<int>{2});
  EXPECT_EQ(d.collectives.size(), 40u);
  const Finding* f = find(d, Cause::kStraggler);
  ASSERT_NE(f, nullptr);
  EXPECT_EQ(f->where, std::vector<std::string>{"rank 5"});
  for (const MatchedCollective& c : d.collectives) EXPECT_LE(c.end_skew_ns, 1000);
}

TEST(Ranks, ThePathFollowsTheLastArrival) {
  Job job;
  job.rounds = 6;
  job.compute_us = [](int rank, int round) { return rank == round ? 15'000 : 10'000; };
  const RanksDiagnosis d = diagnose(job);
  ASSERT_EQ(d.path.size(), 11u);  // six wires and the work between them
  int64_t sum = 0;
  for (size_t i = 0; i < d.path.size(); ++i) {
    EXPECT_EQ(d.path[i].wire, i % 2 == 0);
    EXPECT_EQ(d.ranks[static_cast<size_t>(d.path[i].rank)].rank, static_cast<int>((i + 1) / 2));
    sum += d.path[i].duration_ns;
    EXPECT_EQ(d.path[i].compute_ns, d.path[i].wire ? 0 : 15'000'000);
  }
  EXPECT_EQ(sum, 6 * 200'000 + 5 * 15'000'000);
  // A stretch in detail: the kernels of rank 3 before the fourth collective.
  const CriticalPath part = detail(d, d.path[5], run(job)[3]);
  EXPECT_EQ(part.of(PathKind::kDevice), 15'000'000);
  EXPECT_EQ(part.segments.size(), 10u);
  EXPECT_EQ(part.segments[0].rank, 3);
  EXPECT_NEAR(d.replayed.v, static_cast<double>(sum) * 1e-9, 1e-9);
}

TEST(Ranks, ExposedWireTimeIsAFindingOfItsOwn) {
  Job job;
  job.wire_ns = 3'000'000;
  const RanksDiagnosis d = diagnose(job);
  EXPECT_EQ(find(d, Cause::kStraggler), nullptr);
  const Finding* f = find(d, Cause::kExposedCommunication);
  ASSERT_NE(f, nullptr);
  EXPECT_NEAR(f->gain.v, 40 * 0.003, 0.004);
}

// Stages that hand microbatches on, one after the other: receive, compute, send. A transfer begins
// when both ends are there and holds both until it is over.
std::vector<Trace> pipeline(const std::vector<double>& stage_us, int microbatches) {
  Job job;
  job.ranks = static_cast<int>(stage_us.size());
  std::vector<Trace> traces;
  for (int s = 0; s < job.ranks; ++s) {
    traces.push_back(empty_rank(job, s));
    traces.back().strings.insert(traces.back().strings.end(), {"send", "recv"});
  }
  const auto add = [&](size_t s, int64_t start, int64_t end, int from) {
    DeviceEvent e;
    e.start_ns = start;
    e.duration_ns = end - start;
    e.stream = from < 0 ? 7 : 20;
    e.name = from < 0 ? kKernel : kAllReduce;
    if (from >= 0) {
      e.role = Role::kCommunication;
      e.collective = static_cast<int32_t>(traces[s].collectives.size());
      CollectiveInfo info;
      info.name = static_cast<size_t>(from) == s ? 8 : 9;
      info.group = kGroup;
      info.source = from;
      info.destination = from + 1;
      traces[s].collectives.push_back(info);
    }
    traces[s].device.push_back(e);
  };
  std::vector<int64_t> now(stage_us.size(), 1000);
  for (int k = 0; k < microbatches; ++k)
    for (size_t s = 0; s < stage_us.size(); ++s) {
      if (s > 0) {
        const int64_t end = std::max(now[s - 1], now[s]) + 10'000;
        add(s - 1, now[s - 1], end, static_cast<int>(s) - 1);
        add(s, now[s], end, static_cast<int>(s) - 1);
        now[s - 1] = now[s] = end;
      }
      const int64_t end = now[s] + static_cast<int64_t>(stage_us[s] * 1e3);
      add(s, now[s], end, -1);
      now[s] = end;
    }
  return traces;
}

TEST(Ranks, WaitingForTheOtherStageIsABubble) {
  const RanksDiagnosis d = diagnose_ranks(summaries(pipeline({1000, 1000, 1000, 1000}, 4)));
  EXPECT_EQ(d.collectives.size(), 12u);
  EXPECT_EQ(find(d, Cause::kStraggler), nullptr);
  const Finding* f = find(d, Cause::kPipelineBubble);
  ASSERT_NE(f, nullptr);
  EXPECT_EQ(f->where[0], "rank 3");  // it waits for the first microbatch of all
  // With many microbatches there is nothing to gain.
  const RanksDiagnosis full = diagnose_ranks(summaries(pipeline({1000, 1000, 1000, 1000}, 200)));
  EXPECT_TRUE(full.analysis.findings.empty());
}

TEST(Ranks, AStageWithMoreWorkIsAStraggler) {
  const std::vector<Trace> traces = pipeline({1000, 1000, 1600, 1000}, 100);
  const RanksDiagnosis d = diagnose_ranks(summaries(traces));
  const Finding* f = find(d, Cause::kStraggler);
  ASSERT_NE(f, nullptr);
  EXPECT_EQ(f->where[0], "rank 2");
  const auto span = [](const std::vector<Trace>& all) {
    int64_t end = 0;
    for (const Trace& t : all)
      end = std::max(end, t.device.back().start_ns + t.device.back().duration_ns);
    return static_cast<double>(end) * 1e-9;
  };
  // The truth: the same work, evenly spread.
  const double gain = span(traces) - span(pipeline({1150, 1150, 1150, 1150}, 100));
  EXPECT_NEAR(f->gain.v, gain, 0.05 * gain);
}

// Pairs that reduce tensors after every computation, and then gradients over all ranks of the same
// place in their pair; no sequence numbers, and a clock for each node of four.
TEST(Ranks, GroupsWithinGroupsAndTheirClocks) {
  Job job;
  job.clock_ns = [](int rank) { return rank < 4 ? 0 : 3'000'000'000; };
  std::vector<Trace> traces;
  for (int r = 0; r < 8; ++r) {
    traces.push_back(empty_rank(job, r));
    traces.back().strings.insert(traces.back().strings.end(),
                                 {fmt::format("tp_{}", r / 2), fmt::format("dp_{}", r % 2)});
  }
  std::vector<int64_t> now(8, 1'000'000);
  const auto reduce = [&](const std::vector<size_t>& members, uint32_t group) {
    int64_t last = 0;
    for (const size_t r : members) last = std::max(last, now[r]);
    for (const size_t r : members) {
      DeviceEvent e;
      e.start_ns = now[r];
      e.duration_ns = last + 20'000 - now[r];
      e.stream = group == 8 ? 20 : 24;
      e.name = kAllReduce;
      e.role = Role::kCommunication;
      e.collective = static_cast<int32_t>(traces[r].collectives.size());
      CollectiveInfo info;
      info.name = kName;
      info.group = group;
      traces[r].collectives.push_back(info);
      traces[r].device.push_back(e);
      now[r] = last + 20'000;
    }
  };
  for (int round = 0; round < 30; ++round) {
    for (int layer = 0; layer < 4; ++layer) {
      for (size_t r = 0; r < 8; ++r) {
        DeviceEvent e;
        e.start_ns = now[r];
        e.duration_ns = r == 5 ? 1'300'000 : 1'000'000;
        e.stream = 7;
        e.name = kKernel;
        traces[r].device.push_back(e);
        now[r] += e.duration_ns;
      }
      for (size_t pair = 0; pair < 4; ++pair) reduce({2 * pair, 2 * pair + 1}, 8);
    }
    reduce({0, 2, 4, 6}, 9);
    reduce({1, 3, 5, 7}, 9);
  }
  const RanksDiagnosis d = diagnose_ranks(summaries(traces));
  EXPECT_EQ(d.collectives.size(), 30u * (4 * 4 + 2));
  EXPECT_EQ(d.unmatched, 0u);
  EXPECT_EQ(d.ranks[7].clock_offset_ns - d.ranks[0].clock_offset_ns, 3'000'000'000);
  for (const MatchedCollective& c : d.collectives) EXPECT_EQ(c.end_skew_ns, 0);
  const Finding* f = find(d, Cause::kStraggler);
  ASSERT_NE(f, nullptr);
  EXPECT_EQ(f->where, std::vector<std::string>{"rank 5"});
  EXPECT_NE(f->title.find("same kernels slower"), std::string::npos) << f->title;
  EXPECT_NEAR(f->gain.v, 30 * 4 * 0.0003, 0.001);
}

TEST(Ranks, OddInputsAreHarmless) {
  EXPECT_TRUE(diagnose_ranks({}).analysis.findings.empty());
  EXPECT_TRUE(diagnose_ranks({RankSummary{}}).analysis.findings.empty());
  Job job;
  job.rounds = 1;
  std::vector<RankSummary> twice = summaries(run(job));
  twice.push_back(twice[0]);
  EXPECT_EQ(diagnose_ranks(twice).ranks.size(), 8u);
  RankSummary none;
  none.rank = 8;
  none.world_size = 1 << 30;
  twice.push_back(none);
  EXPECT_EQ(diagnose_ranks(twice).missing.size(), 64u);
}

// Two of 128 ranks, half of their kernels left out: order says nothing, ends do.
TEST(Ranks, SampledTracesAreMatchedByTheirEnds) {
  std::vector<RankSummary> ranks;
  for (int r = 0; r < 2; ++r) {
    const std::string file = kDlrm + fmt::format("../hta/trace_filter/sampled_rank-{}.json.gz", r);
    if (!std::filesystem::exists(file))
      GTEST_SKIP() << file << " is absent: matching by ends is NOT checked on real traces";
    Diagnostics warnings;
    const Result<Trace> trace = read_kineto(file, warnings);
    ASSERT_TRUE(trace);
    ranks.push_back(summarise(*trace));
  }
  const RanksDiagnosis d = diagnose_ranks(ranks);
  EXPECT_EQ(d.collectives.size(), 5u);
  for (const MatchedCollective& c : d.collectives) EXPECT_LE(c.end_skew_ns, 350'000);
  EXPECT_EQ(d.missing_count, 126u);
  EXPECT_FALSE(d.ranks[0].corrected);
}

// trace_reference.json, multirank_dlrm_skew: eight V100, no metadata; microseconds.
TEST(Ranks, DlrmSkewToTheMicrosecond) {
  std::vector<RankSummary> ranks;
  for (int r = 0; r < 8; ++r) {
    const std::string file = kDlrm + fmt::format("worker{}.pt.trace.json.gz", r);
    if (!std::filesystem::exists(file))
      GTEST_SKIP() << file << " is absent: the reference skew is NOT checked";
    Diagnostics warnings;
    const Result<Trace> trace = read_kineto(file, warnings);
    ASSERT_TRUE(trace);
    ranks.push_back(summarise(*trace));
    EXPECT_EQ(ranks.back().collectives.size(), 8u);
  }
  const RanksDiagnosis d = diagnose_ranks(ranks);
  ASSERT_EQ(d.collectives.size(), 8u);
  const int64_t skew[] = {7624, 1101, 168, 125, 223, 534, 584, 885};
  const int last[] = {7, 7, 7, 7, 7, 5, 5, 4}, first[] = {1, 4, 0, 3, 1, 1, 3, 0};
  const int64_t end_skew[] = {2, 2, 1, 2, 5, 3, 5, 7};
  const int64_t shortest[] = {10, 8, 7, 7, 86, 10, 20, 69};
  const int64_t longest[] = {7635, 1108, 176, 133, 307, 545, 602, 952};
  for (size_t i = 0; i < 8; ++i) {
    const MatchedCollective& c = d.collectives[i];
    EXPECT_EQ(c.skew_ns, skew[i] * 1000) << i;
    EXPECT_EQ(c.last, last[i]) << i;
    EXPECT_EQ(c.first, first[i]) << i;
    EXPECT_EQ(c.end_skew_ns, end_skew[i] * 1000) << i;
    EXPECT_EQ(c.shortest_ns, shortest[i] * 1000) << i;
    EXPECT_EQ(c.wire_ns, shortest[i] * 1000) << i;
    EXPECT_EQ(c.longest_ns, longest[i] * 1000) << i;
  }
  const int64_t waited[] = {5580, 11125, 3280, 9571, 6370, 6041, 3342, 1534};
  for (size_t r = 0; r < 8; ++r) EXPECT_EQ(d.ranks[r].waiting_ns, waited[r] * 1000) << r;
  EXPECT_EQ(d.ranks[7].blamed_ns, 9'241'000);
  EXPECT_EQ(d.ranks[5].blamed_ns, 1'118'000);
  EXPECT_EQ(d.ranks[4].blamed_ns, 885'000);
  const Finding* f = find(d, Cause::kStraggler);
  ASSERT_NE(f, nullptr);
  EXPECT_EQ(f->where[0], "rank 7");
}

}  // namespace
}  // namespace assay
