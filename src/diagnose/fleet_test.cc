#include "diagnose/fleet.h"

#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>

#include "ingest/text_file.h"

namespace assay {
namespace {

const std::string kPublic = std::string(ASSAY_ROOT) + "/../shared/data/public/telemetry/";

std::vector<FleetMember> members(const std::vector<double>& values) {
  std::vector<FleetMember> out;
  for (const double v : values) out.push_back({"n", v});
  return out;
}

TEST(Robust, MedianAndSigma) {
  EXPECT_DOUBLE_EQ(median_of({3, 1, 2}), 2);
  EXPECT_DOUBLE_EQ(median_of({4, 1, 2, 3}), 2.5);
  EXPECT_DOUBLE_EQ(median_of({}), 0);
  EXPECT_NEAR(robust_sigma({1, 2, 3, 4, 1000}), 1.4826, 1e-9);
  EXPECT_DOUBLE_EQ(quantile_of({1, 2, 3, 4, 5}, 0.5), 3);
  EXPECT_DOUBLE_EQ(quantile_of({1, 2, 3, 4, 5}, 1), 5);
}

// The level is what it says: of uniform and normal-like samples, hardly any has two modes.
TEST(Robust, TwoModesKeepTheirLevel) {
  uint64_t state = 1;
  const auto uniform = [&] {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<double>(state >> 11) * 0x1.0p-53;
  };
  for (const size_t n : {6u, 20u}) {
    int flat = 0, bell = 0;
    constexpr int kTrials = 60;
    for (int trial = 0; trial < kTrials; ++trial) {
      std::vector<double> a, b;
      for (size_t i = 0; i < n; ++i) {
        a.push_back(uniform());
        b.push_back(uniform() + uniform() + uniform() + uniform());
      }
      flat += two_modes(a) ? 1 : 0;
      bell += two_modes(b) ? 1 : 0;
    }
    // 0.6 are expected of 60 at 1 %; four or more would have a chance of 0.3 %.
    EXPECT_LE(flat, 3) << n;
    EXPECT_LE(bell, 3) << n;
  }
}

TEST(Robust, TwoModesFindThem) {
  const auto modes = two_modes({100, 101, 99, 130, 131, 129, 130.5, 100.5});
  ASSERT_TRUE(modes);
  EXPECT_EQ(modes->low_count, 4u);
  EXPECT_DOUBLE_EQ(modes->low, 100.25);
  EXPECT_DOUBLE_EQ(modes->high, 130.25);
  EXPECT_FALSE(two_modes({1, 1, 1, 1, 1, 1}));
  EXPECT_FALSE(two_modes({1, 2}));
  EXPECT_FALSE(two_modes({}));
}

TEST(Fleet, SuspectsAreFarAndOutside) {
  EXPECT_EQ(judge_fleet(members({466, 467, 468, 466.5, 450})).suspects, std::vector<size_t>{4});
  // 2.9 % below is not yet a suspect; neither is 5 % in a fleet that scatters by as much.
  EXPECT_TRUE(judge_fleet(members({100, 100.1, 99.9, 100, 97.1})).suspects.empty());
  EXPECT_TRUE(judge_fleet(members({100, 108, 93, 104, 96, 95})).suspects.empty());
  EXPECT_TRUE(judge_fleet(members({100, 50})).suspects.empty()) << "two have no majority";
  EXPECT_TRUE(judge_fleet({}).suspects.empty());
}

std::vector<NcclTests> read_folder(const std::string& folder) {
  std::vector<NcclTests> out;
  for (const auto& entry : std::filesystem::directory_iterator(kPublic + "nccl_tests/" + folder)) {
    const Result<std::string> text = read_text(entry.path().string());
    out.push_back(read_nccl_tests(*text, entry.path().string()));
  }
  return out;
}

TEST(Fleet, PublishedH200RunsHaveTwoModes) {
  if (!std::filesystem::exists(kPublic)) GTEST_SKIP() << "SKIPPED: " << kPublic << " is absent";
  const Analysis a = diagnose_nccl_tests(read_folder("mlperf_v5.0_google_h200_8x8"));
  ASSERT_EQ(a.findings.size(), 1u);
  EXPECT_EQ(a.findings[0].cause, Cause::kHardwareFault);
  EXPECT_NE(a.findings[0].detail.find("4 runs near 23"), std::string::npos) << a.findings[0].detail;
  EXPECT_NE(a.findings[0].detail.find("6 near 32"), std::string::npos) << a.findings[0].detail;
  EXPECT_TRUE(a.findings[0].where.empty()) << "it is not tied to a node";
  EXPECT_GT(a.findings[0].share, 0.10);
  EXPECT_LT(a.findings[0].share, 0.20);
}

TEST(Fleet, PublishedHealthyFleetsAreHealthy) {
  if (!std::filesystem::exists(kPublic)) GTEST_SKIP() << "SKIPPED: " << kPublic << " is absent";
  for (const char* folder : {"mlperf_v5.0_google_h200_h200_nemo", "mlperf_v4.0_oracle_h100x8",
                             "mlperf_v4.0_supermicro_h100x8", "mlperf_v5.0_supermicro_b200x8"}) {
    const Analysis a = diagnose_nccl_tests(read_folder(folder));
    EXPECT_TRUE(a.findings.empty()) << folder << ": " << a.findings[0].title;
  }
}

NcclTests test_on(const std::string& host, double bus) {
  NcclTests file;
  file.file = host + ".log";
  NcclTest test;
  test.collective = "all_reduce";
  for (int i = 0; i < 8; ++i) test.ranks.push_back({i, host, i, "", "NVIDIA H100"});
  NcclRow row;
  row.size = Bytes(1e9);
  row.type = "float";
  row.in_place = NcclTiming{Seconds(1), Bandwidth(bus), Bandwidth(bus), 0.0};
  test.rows.push_back(row);
  file.tests.push_back(test);
  return file;
}

TEST(Fleet, OneSlowNodeAmongMany) {
  std::vector<NcclTests> files;
  for (int i = 0; i < 9; ++i) {
    files.push_back(test_on("n" + std::to_string(i), i == 4 ? 440e9 : 467e9 + i * 0.1e9));
  }
  const Analysis a = diagnose_nccl_tests(files);
  ASSERT_EQ(a.findings.size(), 1u);
  EXPECT_EQ(a.findings[0].where, std::vector<std::string>{"node n4"});
  EXPECT_NEAR(a.findings[0].share, 1 - 440 / 467.5, 0.002);
  ASSERT_EQ(a.findings[0].evidence.size(), 1u);
  EXPECT_EQ(a.findings[0].evidence[0].rows[0][0], "n4.log");
}

TEST(Fleet, SlowHalfIsNamed) {
  std::vector<NcclTests> files;
  for (int i = 0; i < 8; ++i) {
    files.push_back(test_on("n" + std::to_string(i), (i % 2 == 0 ? 467e9 : 300e9) + i * 0.1e9));
  }
  const Analysis a = diagnose_nccl_tests(files);
  ASSERT_EQ(a.findings.size(), 1u);
  EXPECT_EQ(a.findings[0].where.size(), 4u);
  EXPECT_EQ(a.findings[0].where[0], "node n1");
}

TEST(Fleet, TwoKindsOfGpuAreTwoFleets) {
  std::vector<NcclTests> files;
  for (int i = 0; i < 8; ++i) {
    files.push_back(test_on("n" + std::to_string(i), (i % 2 == 0 ? 467e9 : 300e9) + i * 0.1e9));
    for (NcclRank& rank : files.back().tests[0].ranks) {
      rank.model = i % 2 == 0 ? "NVIDIA H100" : "NVIDIA A100";
    }
  }
  EXPECT_TRUE(diagnose_nccl_tests(files).findings.empty());
}

TEST(Fleet, WrongValuesAreUrgent) {
  NcclTests file = test_on("n1", 467e9);
  file.tests[0].rows[0].in_place->wrong = 12;
  const Analysis a = diagnose_nccl_tests({file});
  ASSERT_EQ(a.findings.size(), 1u);
  EXPECT_TRUE(a.findings[0].urgent);
}

TEST(Fleet, AGpuThatLostLinks) {
  Topology node;
  node.file = "topo.txt";
  for (int i = 0; i < 8; ++i) {
    TopoDevice gpu;
    gpu.name = "GPU" + std::to_string(i);
    gpu.nvlinks = i == 3 ? 7 * 16 : 6 * 18 + 16;  // GPU3 lost two links to the switch
    node.devices.push_back(gpu);
  }
  const Analysis a = diagnose_topologies({node});
  ASSERT_EQ(a.findings.size(), 1u);
  EXPECT_EQ(a.findings[0].where, std::vector<std::string>{"GPU3"});
  node.devices[3].nvlinks = 0;
  EXPECT_TRUE(diagnose_topologies({node}).findings.empty());
}

TEST(Fleet, PublishedTopologiesAreHealthy) {
  if (!std::filesystem::exists(kPublic)) GTEST_SKIP() << "SKIPPED: " << kPublic << " is absent";
  std::vector<Topology> all;
  for (const auto& entry : std::filesystem::directory_iterator(kPublic + "topo")) {
    if (!entry.is_regular_file()) continue;
    all.push_back(read_topo_matrix(*read_text(entry.path().string()), entry.path().string()));
  }
  for (const auto& entry : std::filesystem::directory_iterator(kPublic + "topo/nccl_xml")) {
    all.push_back(read_nccl_xml(*read_text(entry.path().string()), entry.path().string()));
  }
  for (const auto& entry : std::filesystem::directory_iterator(kPublic + "lstopo")) {
    all.push_back(read_hwloc_xml(*read_text(entry.path().string()), entry.path().string()));
  }
  EXPECT_GE(all.size(), 12u);
  const Analysis a = diagnose_topologies(all);
  EXPECT_TRUE(a.findings.empty()) << a.findings[0].title;
  EXPECT_TRUE(a.open.empty()) << a.open[0].text;
}

// Counters have no time, so they ask; a node without errors has nothing to ask.
TEST(Topologies, LinksWithErrorsAreAsked) {
  Topology node;
  for (int g = 0; g < 4; ++g) {
    TopoDevice gpu;
    gpu.name = "GPU" + std::to_string(g);
    for (int l = 0; l < 4; ++l) gpu.errors.push_back({l, g == 0 ? 3 : 0, 0, 0});
    node.devices.push_back(gpu);
  }
  EXPECT_TRUE(diagnose_topologies({node}).open.empty());
  node.devices[2].errors[1].recoveries = 1;
  node.devices[3].errors[0].crc = 500;
  const Analysis a = diagnose_topologies({node});
  EXPECT_TRUE(a.findings.empty());
  ASSERT_EQ(a.open.size(), 1u);
  EXPECT_NE(a.open[0].text.find("GPU2 link 1 (1 recoveries"), std::string::npos) << a.open[0].text;
  EXPECT_NE(a.open[0].text.find("GPU3 link 0"), std::string::npos) << a.open[0].text;
}

}  // namespace
}  // namespace assay
