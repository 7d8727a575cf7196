// Our own H200 traces, each with the cause that was put in and its measured twin without it
// (test/data/traces): the cause is found, a healthy run stays silent, and the predicted step after
// the repair is within 10 % of the measured one.
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "diagnose/diagnose.h"
#include "diagnose/infer_steps.h"
#include "diagnose/trace_causes.h"
#include "ingest/kineto.h"

namespace assay {
namespace {

const std::string kTraces = ASSAY_ROOT "/test/data/traces/";

TraceDiagnosis diagnose_file(const std::string& path) {
  Diagnostics warnings;
  Result<Trace> trace = read_kineto(path, warnings);
  EXPECT_TRUE(trace.has_value()) << path;
  if (trace) infer_steps(*trace);
  return trace ? diagnose_trace(*trace) : TraceDiagnosis{};
}

// What must hold of every diagnosis.
void expect_sound(const TraceDiagnosis& d, const std::string& name) {
  EXPECT_NEAR(d.step.paid().v, d.step_time.v, 1e-9) << name;
  for (Seconds s : d.step.leaf) EXPECT_GE(s.v, 0) << name;
  int64_t idle = std::llround(d.unexplained.v * 1e9);
  for (int64_t ns : d.idle_ns) {
    EXPECT_GE(ns, 0) << name;
    idle += ns;
  }
  if (!d.uneven) {
    EXPECT_NEAR(static_cast<double>(idle),
                static_cast<double>(d.to_ns - d.from_ns - d.window.busy_ns), 2)
        << name;
  }
  // The replay of the unchanged step is the step without the profiler, which makes hosts up to
  // twice as slow; no replay may be slower than what was measured.
  EXPECT_LT(d.replayed.v, d.step_time.v * 1.02) << name;
  EXPECT_GT(d.replayed.v, d.step_time.v * 0.5) << name;
  ASSERT_FALSE(d.analysis.findings.empty()) << name;
  for (size_t i = 0; i < d.analysis.findings.size(); ++i) {
    const Finding& f = d.analysis.findings[i];
    if (f.cause == Cause::kHealthy) {
      EXPECT_EQ(d.analysis.findings.size(), 1u) << name;
      continue;
    }
    EXPECT_GE(f.share, kWorthFixing) << name;
    EXPECT_FALSE(f.evidence.empty()) << name << ' ' << cause_name(f.cause);
    EXPECT_FALSE(f.fix.empty()) << name;
    if (i > 0) {
      EXPECT_GE(d.analysis.findings[i - 1].gain, f.gain) << name;
    }
    for (const Evidence& e : f.evidence) {
      EXPECT_LE(e.rows.size(), kEvidenceRows);
      for (const auto& row : e.rows) EXPECT_EQ(row.size(), e.columns.size());
    }
  }
}

struct Labelled {
  std::string name, label;
  double twin = 0;    // s, the step without the cause, measured
  std::string price;  // of sets that were judged before any rule saw them
};

std::vector<Labelled> labelled(const std::string& file) {
  std::ifstream csv(kTraces + file);
  EXPECT_TRUE(csv.good()) << file;
  std::string line;
  std::getline(csv, line);
  EXPECT_EQ(line.substr(0, 24), "name,label,step_s,twin_s") << file;
  std::vector<Labelled> rows;
  while (std::getline(csv, line)) {
    std::istringstream row(line);
    std::string name, label, step, twin, price;
    std::getline(row, name, ',');
    std::getline(row, label, ',');
    std::getline(row, step, ',');
    std::getline(row, twin, ',');
    std::getline(row, price, ',');
    rows.push_back({name, label, price == "none" ? 0 : std::stod(twin), price});
  }
  return rows;
}

TEST(TraceLabels, EveryCauseIsFoundAndPriced) {
  const std::vector<Labelled> rows = labelled("labels.csv");
  EXPECT_GE(rows.size(), 30u);
  for (const auto& [name, label, measured, price] : rows) {
    ASSERT_EQ(price, "") << name;
    const TraceDiagnosis d = diagnose_file(kTraces + name + ".json.gz");
    expect_sound(d, name);
    ASSERT_EQ(d.analysis.findings.size(), 1u) << name;
    const Finding& f = d.analysis.findings.front();
    EXPECT_EQ(cause_name(f.cause), label) << name;
    ASSERT_TRUE(f.step_after.has_value()) << name;
    EXPECT_EQ(d.accelerator, "h200-sxm5-141gb");
    if (name == "vision_fp32") continue;  // see test/data/traces/README.md
    // The twin of launch_160m leaves the optimizer outside its graphs: 11 % above what is told.
    const double near = name == "launch_160m" ? 0.12 : 0.10;
    EXPECT_NEAR(f.step_after->v, measured, near * measured) << name;
  }
}

// A set that was judged before any rule saw it. Real code has more than one fault, so the cause
// that was put in must come first, not alone. `price`: told, the predicted step is within 10 % of
// the twin; off, it is not, and the day it is this test says so; none, there is no price.
void expect_first(const std::string& file, size_t expected) {
  const std::vector<Labelled> rows = labelled(file);
  EXPECT_EQ(rows.size(), expected);
  for (const auto& [name, label, measured, price] : rows) {
    const Diagnosis d = diagnose({kTraces + name + ".json.gz"}, {});
    ASSERT_FALSE(d.findings.empty()) << name;
    const Finding& f = d.findings.front();
    EXPECT_EQ(cause_name(f.cause), label) << name;
    if (price == "none") continue;
    ASSERT_TRUE(price == "told" || price == "off") << name << ' ' << price;
    ASSERT_TRUE(f.step_after.has_value()) << name;
    const double error = std::abs(f.step_after->v - measured) / measured;
    EXPECT_EQ(error <= 0.10, price == "told") << name << ' ' << f.step_after->v;
  }
}

// Models of public libraries (tools/measure/blind.py).
TEST(TraceLabels, PublicModelsNameTheirCauseFirst) { expect_first("blind.csv", 15); }

// Slow habits in the training of language models (tools/measure/habits.py and again.py).
TEST(TraceLabels, SlowHabitsNameTheirCauseFirst) { expect_first("habits.csv", 10); }

// Networks of thirteen families: recurrent, graphs, convolutions, towers, decoding.
TEST(TraceLabels, OtherNetworksNameTheirCauseFirst) { expect_first("seventh.csv", 8); }

// Habits put into vision, language, diffusion and expert models by somebody who never saw a rule.
TEST(TraceLabels, HabitsOfOthersNameTheirCauseFirst) { expect_first("eighth.csv", 8); }

// Faults in forms that no earlier set has (tools/measure/ninth.py).
TEST(TraceLabels, NewFormsNameTheirCauseFirst) { expect_first("ninth.csv", 5); }

// Ten families by somebody who had seen neither a rule nor an earlier set.
TEST(TraceLabels, OtherFamiliesNameTheirCauseFirst) { expect_first("tenth.csv", 5); }

// Families and ways to record by somebody who had seen neither a rule nor an earlier set.
TEST(TraceLabels, AnEleventhSetNamesItsCauseFirst) { expect_first("eleventh.csv", 8); }

// In the style of the first labelled ones, by somebody who had seen neither a rule nor another set.
TEST(TraceLabels, ATwelfthSetNamesItsCauseFirst) { expect_first("twelfth.csv", 10); }

// Of two repairs the larger is the finding's; the smaller one was measured as well.
TEST(TraceLabels, TheSmallerRepairIsToldBeside) {
  const auto expect_alternative = [](const char* name, const char* repair, double measured) {
    const TraceDiagnosis d = diagnose_file(kTraces + name + ".json.gz");
    const Finding& f = d.analysis.findings.front();
    ASSERT_TRUE(f.alternative.has_value()) << name;
    EXPECT_EQ(f.alternative->repair, repair) << name;
    EXPECT_NEAR(f.alternative->step_after.v, measured, 0.10 * measured) << name;
  };
  expect_alternative("gelu_by_hand", "fused-operations", 0.046615);
  expect_alternative("llama_fp32", "tf32", 0.023570);
}

// Copies that turn heads for batched matmuls go with them (10.9 and 9.5 % too slow otherwise).
TEST(TraceLabels, HeadsThatAreTurned) {
  for (const auto& [name, twin] : std::vector<std::pair<const char*, double>>{
           {"bert_softmax32", 0.042215}, {"vit_softmax", 0.0571}}) {
    const TraceDiagnosis d = diagnose_file(kTraces + name + ".json.gz");
    EXPECT_NEAR(d.analysis.findings.front().step_after->v, twin, 0.05 * twin) << name;
  }
}

// Two that no file can decide: workers that starve the device without the profiler alone, and a
// collector that runs while a batch is made. They are asked about.
TEST(TraceLabels, WhatAFileLeavesOpenAboutInput) {
  const auto asks = [](const char* name, const char* about) {
    for (const OpenQuestion& q : diagnose_file(kTraces + name + ".json.gz").analysis.open) {
      if (q.text.find(about) != std::string::npos) return true;
    }
    return false;
  };
  EXPECT_TRUE(asks("two_workers", "workers keep up with the profiled step"));
  EXPECT_TRUE(asks("collector", "garbage collector"));
  for (const char* other : {"ok_workers", "loader", "own_loader", "healthy_loader", "slow_disk"}) {
    EXPECT_FALSE(asks(other, "workers keep up") || asks(other, "garbage collector")) << other;
  }
}

// Steps that the host paces, timed before the profiler was ever loaded, from traces whose hosts it
// makes 1.3 to 2.0 times as slow.
TEST(TraceLabels, TheHostWithoutTheProfiler) {
  double off = 0;
  const std::vector<std::pair<const char*, double>> measured = {
      {"egnn_small", 0.013916},  {"rl_rollout", 0.026236}, {"gnn_mask", 0.030265},
      {"llama_empty", 0.079174}, {"gat_small", 0.01187},   {"host_sync", 0.036698}};
  for (const auto& [name, seconds] : measured) {
    const TraceDiagnosis d = diagnose_file(kTraces + name + ".json.gz");
    const double error = std::abs(d.replayed.v / seconds - 1);
    EXPECT_LT(error, 0.20) << name << ' ' << d.replayed.v;
    EXPECT_GT(d.step_time.v, 1.2 * seconds) << name;
    off += error / static_cast<double>(measured.size());
  }
  EXPECT_LT(off, 0.10);
}

// Two ranks that were really run, over sockets: who is late, and what the job would take.
TEST(TraceLabels, RanksThatWereReallyLate) {
  const auto job = [](const std::string& name) {
    const std::string folder = kTraces + "ranks/" + name;
    return diagnose({folder + "/rank0.json.gz", folder + "/rank1.json.gz"}, {});
  };
  const Diagnosis even = job("ddp");
  ASSERT_TRUE(even.step.has_value());
  for (const Finding& f : even.findings) EXPECT_NE(f.cause, Cause::kStraggler) << f.title;
  constexpr double kEven = 0.111472;  // measured without the profiler
  for (const char* name : {"late", "uneven"}) {
    const Diagnosis d = job(name);
    ASSERT_FALSE(d.findings.empty()) << name;
    const Finding& f = d.findings.front();
    EXPECT_EQ(f.cause, Cause::kStraggler) << name;
    EXPECT_EQ(f.where, std::vector<std::string>{"rank 1"}) << name;
    // While one rank sleeps the other has the card to itself, so `late` promises a little much.
    EXPECT_NEAR(f.step_after->v, kEven, 0.12 * kEven) << name;
  }
}

// The gain, its share and the step that it is taken from are of one step, the mean over ranks.
TEST(TraceLabels, SharesOverRanksAreOfTheMeanStep) {
  const std::string folder = kTraces + "ranks/late";
  const Diagnosis d = diagnose({folder + "/rank0.json.gz", folder + "/rank1.json.gz"}, {});
  ASSERT_TRUE(d.step.has_value());
  int priced = 0;
  for (const Finding& f : d.findings) {
    if (f.cause == Cause::kStraggler || f.cause == Cause::kExposedCommunication) continue;
    EXPECT_NEAR(f.gain.v / f.share, d.step->usual.v, 1e-9) << f.title;
    ++priced;
  }
  EXPECT_GT(priced, 0);
}

// Traces that have nothing to do with one another are diagnosed one by one, not averaged.
TEST(TraceLabels, UnrelatedTracesStayApart) {
  const Diagnosis d = diagnose({kTraces + "healthy_1b.json.gz", kTraces + "host_sync.json.gz",
                                kTraces + "ranks/late/rank0.json.gz",
                                kTraces + "ranks/late/rank1.json.gz", kTraces + "loader.json.gz"},
                               {});
  ASSERT_GE(d.findings.size(), 3u);
  EXPECT_EQ(d.findings[0].cause, Cause::kDataStarved);
  EXPECT_EQ(d.findings[0].where, std::vector<std::string>{"loader.json.gz"});
  EXPECT_GT(d.findings[0].share, 0.6);  // of its own step
  EXPECT_FALSE(d.findings[0].elsewhere);
  EXPECT_NEAR(d.step->step.v, 0.124, 0.001);
  bool late = false;
  for (const Finding& f : d.findings) {
    if (f.cause != Cause::kStraggler) continue;
    late = true;
    EXPECT_TRUE(f.elsewhere);
    EXPECT_EQ(f.where, (std::vector<std::string>{"late (2 ranks)", "rank 1"}));
  }
  EXPECT_TRUE(late);
  ASSERT_FALSE(d.notes.empty());
  EXPECT_NE(d.notes.back().find("4 jobs"), std::string::npos) << d.notes.back();

  // Two folders with the same ranks are two jobs.
  const std::string ranks = kTraces + "ranks/";
  const Diagnosis two = diagnose({ranks + "ddp/rank0.json.gz", ranks + "ddp/rank1.json.gz",
                                  ranks + "late/rank0.json.gz", ranks + "late/rank1.json.gz"},
                                 {});
  EXPECT_EQ(two.step->ranks, 2);
  EXPECT_NE(two.notes.back().find("2 jobs"), std::string::npos) << two.notes.back();
}

// Three quarters of the step are traffic: hiding it cannot make the step shorter than that.
TEST(TraceLabels, MoreTrafficThanWorkIsNotHealthy) {
  const TraceDiagnosis d = diagnose_file(ASSAY_ROOT "/test/data/ranks/pipeline/rank0.json.gz");
  const Finding& f = d.analysis.findings.front();
  EXPECT_EQ(f.cause, Cause::kPipelineBubble);
  EXPECT_GE(f.step_after->v, 0.74 * d.step_time.v);
  EXPECT_LE(f.step_after->v, 0.78 * d.step_time.v);
}

TEST(TraceLabels, FirstFour) {
  const TraceDiagnosis healthy = diagnose_file(kTraces + "healthy.json.gz");
  expect_sound(healthy, "healthy");
  EXPECT_EQ(healthy.analysis.findings.front().cause, Cause::kHealthy);

  const TraceDiagnosis data = diagnose_file(kTraces + "data_starved.json.gz");
  expect_sound(data, "data_starved");
  ASSERT_EQ(data.analysis.findings.size(), 1u);
  EXPECT_EQ(data.analysis.findings.front().cause, Cause::kDataStarved);
  // The same step with its batch on the device (410m, 8 x 2048), measured on an H200.
  constexpr double kFed = 0.120885;
  EXPECT_NEAR(data.analysis.findings.front().step_after->v, kFed, 0.10 * kFed);

  const TraceDiagnosis launch = diagnose_file(kTraces + "launch_bound.json.gz");
  expect_sound(launch, "launch_bound");
  ASSERT_EQ(launch.analysis.findings.size(), 1u);
  EXPECT_EQ(launch.analysis.findings.front().cause, Cause::kLaunchBound);

  const TraceDiagnosis attention = diagnose_file(kTraces + "unfused_attention.json.gz");
  expect_sound(attention, "unfused_attention");
  ASSERT_EQ(attention.analysis.findings.size(), 1u);
  EXPECT_EQ(attention.analysis.findings.front().cause, Cause::kUnfusedAttention);
  // The sizes are not recorded; the kernels' grids tell them (410m: 4 x 16 heads of 64).
  const std::string& detail = attention.analysis.findings.front().detail;
  EXPECT_NE(detail.find("64 sequences x heads, 4096 x 4096 scores, head size 64"),
            std::string::npos)
      << detail;
  constexpr double kFused = 0.134776;  // with SDPA, measured on an H200
  EXPECT_NEAR(attention.analysis.findings.front().step_after->v, kFused, 0.10 * kFused);
}

// ResNet-50 on a V100 (pytorch/kineto's samples): the step with four loader workers, predicted from
// the trace with none. Deleting the stall gives 106.5 ms.
TEST(TraceLabels, ResNetWithWorkersFromTheTraceWithout) {
  const std::string folder = ASSAY_ROOT "/../shared/data/public/kineto/resnet50/";
  if (!std::ifstream(folder + "num_workers_0.json.gz").good()) {
    GTEST_SKIP() << "no ../shared/data/public/kineto/resnet50: the public traces are not here";
  }
  const TraceDiagnosis d = diagnose_file(folder + "num_workers_0.json.gz");
  expect_sound(d, "resnet50");
  const Finding& f = d.analysis.findings.front();
  EXPECT_EQ(f.cause, Cause::kDataStarved);
  constexpr double kMeasured = 0.1265;  // median of the six steps with four workers
  EXPECT_NEAR(f.step_after->v, kMeasured, 0.08 * kMeasured);
}

}  // namespace
}  // namespace assay
