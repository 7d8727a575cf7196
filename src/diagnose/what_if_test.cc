#include "diagnose/what_if.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "diagnose/straggler.h"
#include "diagnose/test_random.h"

namespace assay {
namespace {

const std::string kPublic = std::string(ASSAY_ROOT) + "/../shared/data/public/straggler/";

struct Job {
  int stages = 4, dps = 3, microbatches = 8, steps = 3;
  int chunks = 1;  // of layers a stage: all forwards, then all backwards, where there are several
  // Of forward (false) or backward (true), in milliseconds.
  std::function<double(int dp, int stage, int step, int microbatch, bool backward)> compute;
  double transfer_ms = 0.5, sync_ms = 10;
};

// A 1F1B schedule run by the obvious rule: go round until no operation's start changes any more.
// Nothing here is shared with the code under test.
class Schedule {
 public:
  explicit Schedule(const Job& job) : job_(job) {}

  std::string csv() {
    std::string text = "dp_rank,stage,rank,step,optype,start_ts,duration,seq_id,mc,mb_id,gmc\n";
    for (int step = 0; step < job_.steps; ++step) text += one_step(step);
    return text;
  }
  std::vector<double> makespans_ms;

 private:
  struct Item {
    bool backward;
    int microbatch;
    int chunk = 0;
  };
  // The stage and chunk that hands an item to this one (or takes it); stage -1: none.
  struct Neighbour {
    int stage, chunk;
  };
  Neighbour beside(int stage, int chunk, int step) const {
    const int place = chunk * job_.stages + stage + step;
    if (place < 0 || place >= job_.chunks * job_.stages) return {-1, 0};
    return {place % job_.stages, place / job_.stages};
  }

  std::vector<Item> order(int stage) const {
    std::vector<Item> items;
    if (job_.chunks > 1) {
      for (int c = 0; c < job_.chunks; ++c)
        for (int k = 0; k < job_.microbatches; ++k) items.push_back({false, k, c});
      for (int c = job_.chunks - 1; c >= 0; --c)
        for (int k = 0; k < job_.microbatches; ++k) items.push_back({true, k, c});
      return items;
    }
    const int warm = std::min(job_.stages - 1 - stage, job_.microbatches);
    for (int k = 0; k < warm; ++k) items.push_back({false, k});
    for (int k = warm; k < job_.microbatches; ++k) {
      items.push_back({false, k});
      items.push_back({true, k - warm});
    }
    for (int k = job_.microbatches - warm; k < job_.microbatches; ++k) items.push_back({true, k});
    return items;
  }

  static std::string row(int dp, int stage, int rank, int step, const char* type, double start,
                         double end, int sequence, int chunk = -1) {
    return fmt::format("{},{},{},{},{},{:.9f},{:.9f},{},{},0,0\n", dp, stage, rank, step, type,
                       start * 1e-3, (end - start) * 1e-3, sequence, chunk);
  }

  std::string one_step(int step) {
    const int ranks = job_.stages * job_.dps;
    std::map<std::array<int, 5>, double> end;  // dp, stage, chunk, backward, microbatch
    std::vector<double> done(static_cast<size_t>(ranks), 0);
    std::string text;
    for (bool changed = true; changed;) {
      changed = false;
      text.clear();
      for (int dp = 0; dp < job_.dps; ++dp)
        for (int stage = 0; stage < job_.stages; ++stage) {
          const int rank = stage * job_.dps + dp;
          double now = 0;
          for (const Item& item : order(stage)) {
            const bool back = item.backward;
            const Neighbour from = beside(stage, item.chunk, back ? 1 : -1);
            double ready = now;
            if (from.stage >= 0) {
              const double sent = end[{dp, from.stage, from.chunk, back, item.microbatch}];
              ready = std::max(now, sent + job_.transfer_ms);
              text += row(dp, stage, rank, step, back ? "backward-recv" : "forward-recv",
                          std::min(now, sent), sent + job_.transfer_ms, item.microbatch);
            }
            const double finish = ready + job_.compute(dp, stage, step, item.microbatch, back);
            text += row(dp, stage, rank, step, back ? "backward-compute" : "forward-compute", ready,
                        finish, item.microbatch, item.chunk);
            if (beside(stage, item.chunk, back ? -1 : 1).stage >= 0)
              text += row(dp, stage, rank, step, back ? "backward-send" : "forward-send", finish,
                          finish + job_.transfer_ms, item.microbatch);
            double& known = end[{dp, stage, item.chunk, back, item.microbatch}];
            changed = changed || known != finish;
            known = now = finish;
          }
          done[static_cast<size_t>(rank)] = now;
        }
    }
    double last = 0;
    for (int stage = 0; stage < job_.stages; ++stage) {
      const auto first = done.begin() + stage * job_.dps;
      const double all = *std::max_element(first, first + job_.dps) + job_.sync_ms;
      for (int dp = 0; dp < job_.dps; ++dp)
        text +=
            row(dp, stage, stage * job_.dps + dp, step, "grads-reduce-scatter", first[dp], all, 0);
      last = std::max(last, all);
    }
    makespans_ms.push_back(last);
    return text;
  }

  const Job& job_;
};

OperationTrace parse(const std::string& text) {
  OperationReader reader("generated.csv");
  reader.feed(text);
  return reader.finish();
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

const Finding* find(const Analysis& analysis, Cause cause) {
  for (const Finding& f : analysis.findings)
    if (f.cause == cause) return &f;
  return nullptr;
}

double even(int, int, int, int, bool backward) { return backward ? 20 : 10; }

TEST(WhatIf, ReplayEqualsTheScheduleItCameFrom) {
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    TestRandom random(seed);
    Job job;
    job.stages = 1 + static_cast<int>(random.unit() * 5);
    job.dps = 1 + static_cast<int>(random.unit() * 3);
    job.microbatches = 1 + static_cast<int>(random.unit() * 7);
    job.chunks = seed > 20 ? 2 + static_cast<int>(random.unit() * 2) : 1;
    std::map<std::array<int, 5>, double> drawn;
    job.compute = [&](int dp, int stage, int step, int microbatch, bool backward) {
      double& ms = drawn[{dp, stage, step, microbatch, backward}];
      if (ms == 0) ms = (backward ? 20 : 10) * (0.5 + random.unit());
      return ms;
    };
    Schedule schedule(job);
    const OperationTrace trace = parse(schedule.csv());
    ASSERT_TRUE(trace.problems.empty());
    const WhatIf w = what_if(trace);
    ASSERT_TRUE(w.usable);
    EXPECT_EQ(w.unreplayable_steps, 0u);
    EXPECT_NEAR(w.original.v * 1e3, mean(schedule.makespans_ms), 1e-3) << seed;
    EXPECT_LE(w.ideal.v, w.original.v * 1.2);
    EXPECT_NEAR((w.split.variation + w.split.ranks + w.split.stages).v, (w.original - w.ideal).v,
                1e-12);
  }
}

TEST(WhatIf, AnEvenJobIsSilent) {
  Job job;
  job.microbatches = 64;
  TestRandom random(7);
  job.compute = [&](int dp, int stage, int step, int k, bool backward) {
    return even(dp, stage, step, k, backward) * (0.998 + 0.004 * random.unit());
  };
  // The schedule asks again until it is stable: noise must be the same every time.
  std::map<std::array<int, 5>, double> drawn;
  const auto noisy = job.compute;
  job.compute = [&](int dp, int stage, int step, int k, bool backward) {
    double& ms = drawn[{dp, stage, step, k, backward}];
    return ms == 0 ? ms = noisy(dp, stage, step, k, backward) : ms;
  };
  const OperationTrace trace = parse(Schedule(job).csv());
  const WhatIf w = what_if(trace);
  EXPECT_NEAR(w.slowdown, 1, 0.01);
  EXPECT_TRUE(diagnose_operations(trace, w).findings.empty());
}

TEST(WhatIf, ASlowRankIsNamed) {
  Job job;
  job.compute = [](int dp, int stage, int step, int k, bool backward) {
    return even(dp, stage, step, k, backward) * (dp == 2 && stage == 1 ? 1.4 : 1);
  };
  const OperationTrace trace = parse(Schedule(job).csv());
  const WhatIf w = what_if(trace);
  EXPECT_EQ(w.worst, std::vector<int32_t>{1 * 3 + 2});
  EXPECT_GT(w.worst_together.explains, 0.9);
  const Analysis analysis = diagnose_operations(trace, w);
  ASSERT_FALSE(analysis.findings.empty());
  EXPECT_EQ(analysis.findings[0].cause, Cause::kStraggler);
  EXPECT_EQ(analysis.findings[0].where, std::vector<std::string>{"rank 5"});
}

TEST(WhatIf, ASlowStageIsNamed) {
  Job job;
  job.compute = [](int dp, int stage, int step, int k, bool backward) {
    return even(dp, stage, step, k, backward) * (stage == 3 ? 1.4 : 1);
  };
  const OperationTrace trace = parse(Schedule(job).csv());
  const WhatIf w = what_if(trace);
  EXPECT_EQ(w.stages[0].id, 3);
  const Analysis analysis = diagnose_operations(trace, w);
  const Finding* f = find(analysis, Cause::kStraggler);
  ASSERT_NE(f, nullptr);
  EXPECT_EQ(f->where[0], "stage 3");
  // An even spread of the same work takes 1.1 of an even stage: the schedule itself says how long.
  Job spread = job;
  spread.compute = [](int dp, int stage, int step, int k, bool backward) {
    return even(dp, stage, step, k, backward) * 1.1;
  };
  Schedule after(spread);
  (void)after.csv();
  EXPECT_NEAR(f->step_after->v * 1e3, mean(after.makespans_ms), 0.01 * mean(after.makespans_ms));
}

TEST(WhatIf, UnevenMicrobatchesAreToldFromSlowMachines) {
  Job job;
  job.microbatches = 16;
  job.compute = [](int dp, int stage, int step, int k, bool backward) {
    return even(dp, stage, step, k, backward) * ((k * 7 + dp * 5 + step) % 8 == 0 ? 2.5 : 1);
  };
  const OperationTrace trace = parse(Schedule(job).csv());
  const WhatIf w = what_if(trace);
  EXPECT_GT(w.forward_backward_correlation, 0.99);
  EXPECT_GT(w.split.variation.v, 5 * w.split.ranks.v);
  const Analysis analysis = diagnose_operations(trace, w);
  ASSERT_FALSE(analysis.findings.empty());
  EXPECT_EQ(analysis.findings[0].title, "Microbatches are uneven");
  EXPECT_EQ(analysis.findings[0].where[0], "backward-compute");
}

TEST(WhatIf, FewMicrobatchesAreABubble) {
  Job job;
  job.microbatches = 4;
  job.compute = even;
  const OperationTrace trace = parse(Schedule(job).csv());
  const Analysis analysis = diagnose_operations(trace, what_if(trace));
  ASSERT_EQ(analysis.findings.size(), 1u);
  EXPECT_EQ(analysis.findings[0].cause, Cause::kPipelineBubble);
  EXPECT_NEAR(analysis.findings[0].gain.v, 3 * 0.030 / 2, 1e-6);
}

TEST(WhatIf, MissingRanksStillReplay) {
  Job job;
  job.compute = even;
  const std::string text = Schedule(job).csv();
  std::string kept;
  for (size_t at = 0; at < text.size();) {
    const size_t next = text.find('\n', at) + 1;
    const std::string line = text.substr(at, next - at);
    if (line.find("1,1,4,") != 0) kept += line;
    at = next;
  }
  const OperationTrace trace = parse(kept);
  const WhatIf w = what_if(trace);
  ASSERT_TRUE(w.usable);
  EXPECT_GT(w.unmatched, 0u);
  EXPECT_EQ(w.rank_count, 11);
  EXPECT_NEAR(w.original.v, what_if(parse(text)).original.v, 1e-3);
}

struct Published {
  const char* file;
  double slowdown, original_s, ideal_s;
  const char* responsible;
};

// ByteDance-Seed/StragglerAnalysis: expected_result-{ST,SE}.json and ms-{ST,SE}.json.
TEST(WhatIf, PublishedJobsWithinOnePercent) {
  const Published jobs[] = {
      {"trace-ST.csv", 1.1787021836556841, 2.172696813310722, 1.843295824372035, "stage 3"},
      {"trace-SE.csv.gz", 1.5373613711484118, 9.066555374169395, 5.897478331588793,
       "backward-compute"}};
  for (const Published& job : jobs) {
    if (!std::filesystem::exists(kPublic + job.file))
      GTEST_SKIP() << kPublic << job.file << " is absent: the published slowdown is NOT checked";
    const Result<OperationTrace> trace = read_operations(kPublic + job.file);
    ASSERT_TRUE(trace);
    EXPECT_TRUE(trace->problems.empty());
    const WhatIf w = what_if(*trace);
    fmt::print("{}: slowdown {:.4f} (published {:.4f}), original {:.4f} s, ideal {:.4f} s\n",
               job.file, w.slowdown, job.slowdown, w.original.v, w.ideal.v);
    EXPECT_NEAR(w.slowdown, job.slowdown, 0.001 * job.slowdown);
    EXPECT_NEAR(w.original.v, job.original_s, 0.001 * job.original_s);
    EXPECT_NEAR(w.ideal.v, job.ideal_s, 0.001 * job.ideal_s);
    const Analysis analysis = diagnose_operations(*trace, w);
    const Finding* straggler = find(analysis, Cause::kStraggler);
    ASSERT_NE(straggler, nullptr);
    const std::vector<std::string>& where = straggler->where;
    EXPECT_NE(std::find(where.begin(), where.end(), job.responsible), where.end());
  }
}

// blocking_decompose_by_stage and by_optype of the same files.
TEST(WhatIf, PublishedSlicesWithinOnePercent) {
  if (!std::filesystem::exists(kPublic + "trace-SE.csv.gz"))
    GTEST_SKIP() << kPublic << " is absent: the published what-ifs are NOT checked";
  const WhatIf st = what_if(*read_operations(kPublic + "trace-ST.csv"));
  EXPECT_EQ(st.stages[0].id, 3);
  EXPECT_NEAR(st.stages[0].slowdown, 1.2322559543157936, 0.002);
  EXPECT_NEAR(st.stages[0].explains, 1.2193563788811714, 0.01);
  EXPECT_EQ(st.kinds[static_cast<size_t>(st.types[0].id)], "forward-compute");
  EXPECT_NEAR(st.types[0].slowdown, 1.0874989663025318, 0.001);
  EXPECT_EQ(st.worst, std::vector<int32_t>{7});
  EXPECT_NEAR(st.worst_together.explains, 0.031404269124045224, 0.005);
  const WhatIf se = what_if(*read_operations(kPublic + "trace-SE.csv.gz"));
  EXPECT_EQ(se.stages[0].id, 1);
  EXPECT_NEAR(se.stages[0].slowdown, 1.4354480066634938, 0.002);
  EXPECT_NEAR(se.stages[0].explains, 0.6877108929755429, 0.01);
  EXPECT_EQ(se.kinds[static_cast<size_t>(se.types[0].id)], "backward-compute");
  EXPECT_NEAR(se.types[0].slowdown, 1.412770613588, 0.002);
  EXPECT_EQ(se.dp_ranks[0].id, 8);
  EXPECT_NEAR(se.worst_together.explains, 0.025062266911209777, 0.01);
}

TEST(WhatIf, OrderThatContradictsItselfIsLeftOut) {
  // Each of two ranks waits for what the other sends only later.
  const OperationTrace trace = parse(
      "dp_rank,stage,rank,step,optype,start_ts,duration,seq_id,mc\n"
      "0,0,0,1,backward-recv,0,1,0,0\n0,0,0,1,backward-compute,1,1,0,0\n"
      "0,0,0,1,forward-compute,2,1,0,0\n0,0,0,1,forward-send,3,1,0,0\n"
      "0,1,1,1,forward-recv,0,1,0,0\n0,1,1,1,forward-compute,1,1,0,0\n"
      "0,1,1,1,backward-compute,2,1,0,0\n0,1,1,1,backward-send,3,1,0,0\n");
  const WhatIf w = what_if(trace);
  EXPECT_EQ(w.unreplayable_steps, 1u);
  EXPECT_FALSE(w.usable);
  EXPECT_EQ(diagnose_operations(trace, w).open.size(), 1u);
}

}  // namespace
}  // namespace assay
