#include "diagnose/hang.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "base/file.h"
#include "diagnose/hang_test_job.h"

namespace assay {
namespace {

std::vector<FlightDump> incident(const std::string& name, const std::string& ending = "") {
  std::vector<FlightDump> out;
  for (int rank = 0; rank < 16; ++rank) {
    const std::string path = std::string(ASSAY_ROOT) +
                             "/../shared/data/public/telemetry/flight_recorder/" + name +
                             "/_dump_" + std::to_string(rank) + ending;
    const auto bytes = read_file(path);
    if (!bytes) return {};
    out.push_back(*read_flight_dump(*bytes, path));
  }
  return out;
}

TEST(Hang, FourRealIncidents) {
  struct Case {
    const char* name;
    std::vector<int> convicted, undecided;
  };
  for (const Case& c : {Case{"gpu_error_1st", {12}, {14}}, Case{"gpu_error_2nd", {9, 14}, {}},
                        Case{"lock_gil_1st", {9, 14}, {}}, Case{"lock_gil_2nd", {10, 15}, {}}}) {
    for (const char* ending : {"", ".json"}) {
      const std::vector<FlightDump> dumps = incident(c.name, ending);
      if (dumps.empty()) GTEST_SKIP() << "no real Flight Recorder dumps in ../shared";
      const HangReport report = diagnose_hang(dumps);
      EXPECT_TRUE(report.hung);
      EXPECT_EQ(report.convicted, c.convicted) << c.name;
      EXPECT_EQ(report.undecided, c.undecided) << c.name;
      EXPECT_TRUE(report.by_evidence.empty() && report.mismatched.empty());
      ASSERT_EQ(report.analysis.findings.size(), 1u);
      EXPECT_EQ(report.analysis.open.size(), c.undecided.size());
    }
  }
}

// What decides rank 14 of the first incident.
TEST(Hang, EvidenceDecides) {
  const std::vector<FlightDump> dumps = incident("gpu_error_1st");
  if (dumps.empty()) GTEST_SKIP() << "no real Flight Recorder dumps in ../shared";
  const int64_t then = dumps[14].entries.back().created_ns;
  HangEvidence evidence;
  for (int r = 0; r < 16; ++r) {
    RankEvidence row;
    row.rank = r;
    row.kernel_log_read = true;
    row.utilisation = 1.0;
    evidence.ranks.push_back(row);
  }
  // Busy like the others and no XID: cleared.
  HangReport report = diagnose_hang(dumps, evidence);
  EXPECT_EQ(report.convicted, std::vector<int>{12});
  EXPECT_TRUE(report.undecided.empty() && report.by_evidence.empty());

  const auto with = [&](auto change) {
    HangEvidence changed = evidence;
    change(changed.ranks[14]);
    return diagnose_hang(dumps, changed);
  };
  report = with([&](RankEvidence& row) { row.xids.push_back({31, then + 2'000'000'000}); });
  EXPECT_EQ(report.by_evidence, std::vector<int>{14});
  EXPECT_TRUE(report.undecided.empty());
  EXPECT_EQ(report.analysis.findings[0].where, (std::vector<std::string>{"rank 12", "rank 14"}));
  report = with([&](RankEvidence& row) { row.utilisation = 0.0; });
  EXPECT_EQ(report.by_evidence, std::vector<int>{14});
  report = with([&](RankEvidence& row) { row.stopped_reporting = true; });
  EXPECT_EQ(report.by_evidence, std::vector<int>{14});
  // What came hours before, what follows the end of the job, and what only informs: not.
  for (const RankEvidence::Xid& xid : {RankEvidence::Xid{31, then - int64_t{7200} * 1'000'000'000},
                                       RankEvidence::Xid{31, then + int64_t{7200} * 1'000'000'000},
                                       RankEvidence::Xid{45, then}, RankEvidence::Xid{63, then}}) {
    report = with([&](RankEvidence& row) { row.xids.push_back(xid); });
    EXPECT_TRUE(report.by_evidence.empty()) << xid.code;
  }
  // The last signs of life alone: 14 falls silent seconds before those that wait.
  HangEvidence activity;
  for (int r = 0; r < 16; ++r) {
    RankEvidence row;
    row.rank = r;
    row.last_activity_ns = then + (r == 14 ? -5'000'000'000 : r * 1'000'000);
    activity.ranks.push_back(row);
  }
  report = diagnose_hang(dumps, activity);
  EXPECT_EQ(report.by_evidence, std::vector<int>{14});
  activity.ranks[14].last_activity_ns = then;
  report = diagnose_hang(dumps, activity);
  EXPECT_TRUE(report.by_evidence.empty());
  EXPECT_EQ(report.undecided, std::vector<int>{14});
}

// ---- generated jobs ----

test::Mesh random_mesh(std::mt19937& random) {
  const auto pick = [&](std::initializer_list<int> of) {
    return *(of.begin() + static_cast<ptrdiff_t>(random() % of.size()));
  };
  test::Mesh mesh;
  mesh.tp = pick({1, 2, 4});
  mesh.dp = pick({1, 2, 4});
  mesh.pp = pick({1, 2, 3, 4});
  if (mesh.tp * mesh.dp * mesh.pp < 4) mesh.dp = 4;
  mesh.layers = pick({1, 2, 3});
  mesh.microbatches = pick({1, 2, 4});
  mesh.experts = random() % 2;
  mesh.async_sends = random() % 2;
  mesh.async_gradients = random() % 2;
  mesh.seed = static_cast<unsigned>(random());
  return mesh;
}

std::vector<test::Stop> random_stops(const test::Job& job, std::mt19937& random, bool device) {
  std::vector<test::Stop> stops;
  const size_t count = random() % 4 == 0 && job.programs.size() > 4 ? 2 : 1;
  while (stops.size() < count) {
    const size_t r = random() % job.programs.size();
    if (!stops.empty() && stops[0].rank == static_cast<int>(r)) continue;
    stops.push_back({static_cast<int>(r), random() % job.programs[r].size(), device});
  }
  return stops;
}

bool within(const std::vector<int>& some, const std::vector<int>& all) {
  return std::all_of(some.begin(), some.end(),
                     [&](int r) { return std::find(all.begin(), all.end(), r) != all.end(); });
}

TEST(HangGenerated, StoppedHosts) {
  std::mt19937 random(7);
  size_t culprits = 0, found = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const test::Mesh mesh = random_mesh(random);
    const test::Job job = test::make_job(mesh);
    test::Simulation simulation(job, random_stops(job, random, false));
    simulation.run();
    const std::vector<int> stopped = simulation.stopped();
    const bool only_active = random() % 2, status = random() % 2;
    std::vector<FlightDump> dumps = simulation.dumps(only_active, status);
    const HangReport report = diagnose_hang(dumps);
    EXPECT_TRUE(within(report.convicted, stopped)) << trial;
    EXPECT_TRUE(report.mismatched.empty() && report.undecided.empty()) << trial;
    culprits += stopped.size();
    found += report.convicted.size();

    // Any one dump is missing: fewer are convicted, never another.
    dumps.erase(dumps.begin() + static_cast<ptrdiff_t>(random() % dumps.size()));
    EXPECT_TRUE(within(diagnose_hang(dumps).convicted, stopped)) << trial;
  }
  RecordProperty("culprits", static_cast<int>(culprits));
  RecordProperty("found", static_cast<int>(found));
  EXPECT_GT(culprits, 400u);
  EXPECT_GE(static_cast<double>(found), 0.93 * static_cast<double>(culprits));
}

// The culprit's own dump is missing.
TEST(HangGenerated, CulpritLeftNoDump) {
  std::mt19937 random(11);
  size_t found = 0, trials = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const test::Job job = test::make_job(random_mesh(random));
    test::Simulation simulation(job, random_stops(job, random, false));
    simulation.run();
    const std::vector<int> stopped = simulation.stopped();
    if (stopped.size() != 1) continue;
    std::vector<FlightDump> dumps = simulation.dumps(true, true);
    dumps.erase(dumps.begin() + stopped[0]);
    const HangReport report = diagnose_hang(dumps);
    EXPECT_TRUE(within(report.convicted, stopped)) << trial;
    EXPECT_FALSE(report.analysis.findings.empty() && report.analysis.open.empty());
    found += report.convicted.size();
    ++trials;
  }
  EXPECT_GE(static_cast<double>(found), 0.9 * static_cast<double>(trials));
}

// A device dies with its recorder while the host enqueues on: the order seldom proves it, but the
// innocent stay unnamed, and an XID decides.
TEST(HangGenerated, DeadDevices) {
  std::mt19937 random(13);
  size_t decided = 0, hung = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const test::Job job = test::make_job(random_mesh(random));
    test::Simulation simulation(job, random_stops(job, random, true));
    simulation.run();
    const std::vector<int> stopped = simulation.stopped();
    const std::vector<FlightDump> dumps = simulation.dumps(random() % 2, true);
    const HangReport report = diagnose_hang(dumps);
    EXPECT_TRUE(within(report.convicted, stopped)) << trial;
    EXPECT_TRUE(within(report.undecided, stopped)) << trial;
    HangEvidence evidence;
    for (const int rank : stopped) {
      RankEvidence row;
      row.rank = rank;
      row.xids.push_back({79, {}});
      evidence.ranks.push_back(row);
    }
    const HangReport informed = diagnose_hang(dumps, evidence);
    EXPECT_TRUE(within(informed.by_evidence, stopped));
    if (!informed.hung) continue;
    hung += stopped.size();
    decided += informed.convicted.size() + informed.by_evidence.size();
  }
  EXPECT_EQ(decided, hung);
}

TEST(HangGenerated, FinishedJobsDoNotHang) {
  std::mt19937 random(17);
  for (int trial = 0; trial < 50; ++trial) {
    const test::Job job = test::make_job(random_mesh(random));
    test::Simulation simulation(job, {});
    simulation.run();
    const HangReport report = diagnose_hang(simulation.dumps(random() % 2, true));
    EXPECT_FALSE(report.hung);
    EXPECT_TRUE(report.analysis.findings.empty() && report.analysis.open.empty());
    EXPECT_EQ(report.analysis.notes.size(), 1u);
  }
}

// Dumps of a running job, taken a few rounds apart.
TEST(HangGenerated, SlowJobsDoNotHang) {
  std::mt19937 random(19);
  for (int trial = 0; trial < 200; ++trial) {
    const test::Job job = test::make_job(random_mesh(random));
    // One rank is slow: it stands still until all have been dumped.
    test::Simulation simulation(job, random_stops(job, random, false));
    simulation.run(static_cast<int>(20 + random() % 100));
    std::vector<FlightDump> dumps;
    for (size_t r = 0; r < job.programs.size(); ++r) {
      dumps.push_back(simulation.dump(r, random() % 2, true));
      if (random() % 3 == 0) simulation.run(static_cast<int>(random() % 5));
    }
    const HangReport report = diagnose_hang(dumps);
    EXPECT_TRUE(report.convicted.empty()) << trial;
    EXPECT_TRUE(report.analysis.findings.empty()) << trial;
  }
}

// One rank skips a collective or calls it with another size.
TEST(HangGenerated, Mismatches) {
  std::mt19937 random(23);
  size_t told = 0, mismatched = 0;
  for (int trial = 0; trial < 200; ++trial) {
    test::Job job = test::make_job(random_mesh(random));
    const size_t r = random() % job.programs.size();
    std::vector<test::Op>& program = job.programs[r];
    const size_t at = random() % program.size();
    if (program[at].kind != FlightKind::kCollective) continue;
    if (job.groups[static_cast<size_t>(program[at].group)].ranks.size() < 2) continue;
    if (random() % 2) {
      if (program[at].name == "all_to_all") continue;
      program[at].elements = 99;
    } else {
      program.erase(program.begin() + static_cast<ptrdiff_t>(at));
    }
    test::Simulation simulation(job, {});
    simulation.run();
    const HangReport report = diagnose_hang(simulation.dumps(random() % 2, true));
    EXPECT_TRUE(within(report.mismatched, {static_cast<int>(r)})) << trial;
    EXPECT_TRUE(within(report.convicted, {static_cast<int>(r)})) << trial;
    if (!report.hung) continue;
    ++mismatched;
    told += !report.analysis.findings.empty();
  }
  RecordProperty("mismatched", static_cast<int>(mismatched));
  RecordProperty("told", static_cast<int>(told));
  EXPECT_GT(mismatched, 50u);
  EXPECT_GE(static_cast<double>(told), 0.8 * static_cast<double>(mismatched));
}

TEST(HangGenerated, FourThousandRanks) {
  test::Mesh mesh;
  mesh.tp = 8;
  mesh.dp = 64;
  mesh.pp = 8;
  mesh.layers = 1;
  mesh.microbatches = 1;
  const test::Job job = test::make_job(mesh);
  ASSERT_EQ(job.programs.size(), 4096u);
  test::Simulation simulation(job, {{1234, 5, false}, {77, 3, false}});
  simulation.run();
  const std::vector<int> stopped = simulation.stopped();
  const HangReport report = diagnose_hang(simulation.dumps(true, true));
  EXPECT_FALSE(report.convicted.empty());
  EXPECT_TRUE(within(report.convicted, stopped));
}

TEST(Hang, HostileDumps) {
  std::vector<FlightDump> dumps(3);
  EXPECT_FALSE(diagnose_hang({}).hung);
  EXPECT_FALSE(diagnose_hang(dumps).hung);  // no rank
  for (int r = 0; r < 3; ++r) {
    FlightDump& dump = dumps[static_cast<size_t>(r)];
    dump.rank = r;
    dump.strings = {"", "all_reduce", "send"};
    dump.groups.resize(2);
    dump.groups[0].name = "0";
    dump.groups[0].ranks = {0, 0, 7, 7};  // repeats, and not even a member
    dump.groups[1].name = "1";            // no members listed
    dump.entries.resize(3);
    for (FlightEntry& entry : dump.entries) entry.group = r % 2;
    dump.entries[0].name = 1;
    dump.entries[1].kind = FlightKind::kSend;
    dump.entries[1].peer = 999;
    dump.entries[2].kind = FlightKind::kRecv;
    dump.entries[2].peer = 1;
  }
  const HangReport report = diagnose_hang(dumps);
  EXPECT_TRUE(report.convicted.empty());
}

}  // namespace
}  // namespace assay
