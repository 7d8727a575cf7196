#include "diagnose/hang_evidence.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

std::vector<FlightDump> dumps(int ranks) {
  std::vector<FlightDump> all(static_cast<size_t>(ranks));
  for (int i = 0; i < ranks; ++i) all[static_cast<size_t>(i)].rank = i;
  return all;
}

KernelLog xid_log(const std::string& file, const std::string& host, const std::string& pci) {
  KernelLog log;
  log.file = file;
  KernelEvent e;
  e.host = host;
  e.pci = pci;
  e.code = 79;
  e.at_s = 100;
  log.events.push_back(e);
  return log;
}

NcclTests rank_table(int ranks, int per_host) {
  NcclTests tests;
  tests.tests.resize(1);
  for (int i = 0; i < ranks; ++i) {
    NcclRank r;
    r.rank = i;
    r.host = "n" + std::to_string(i / per_host);
    r.device = i % per_host;
    r.bus = "0x" + std::to_string(10 + i % per_host);
    tests.tests[0].ranks.push_back(r);
  }
  return tests;
}

TEST(HangEvidence, AFileThatNamesItsRank) {
  const HangEvidence e =
      hang_evidence(dumps(16), {xid_log("/logs/dmesg_rank14.log", "", "0000:38:00")}, {}, {});
  ASSERT_EQ(e.ranks.size(), 1u);
  EXPECT_EQ(e.ranks[0].rank, 14);
  EXPECT_TRUE(e.ranks[0].kernel_log_read);
  ASSERT_EQ(e.ranks[0].xids.size(), 1u);
  EXPECT_EQ(e.ranks[0].xids[0].code, 79);
}

TEST(HangEvidence, AListOfRanksJoinsHostAndBus) {
  const HangEvidence e =
      hang_evidence(dumps(16), {xid_log("kern.log", "n1", "0000:16:00")}, {}, {rank_table(16, 8)});
  int convicted = -1, read = 0;
  for (const RankEvidence& r : e.ranks) {
    if (!r.xids.empty()) convicted = r.rank;
    read += r.kernel_log_read ? 1 : 0;
  }
  EXPECT_EQ(convicted, 14);
  EXPECT_EQ(read, 8);  // the others of that host have no XID, which is known now
}

TEST(HangEvidence, WhatCannotBeJoinedIsLeftOut) {
  EXPECT_TRUE(
      hang_evidence(dumps(16), {xid_log("kern.log", "n1", "0000:16:00")}, {}, {}).ranks.empty());
  // A table of another job says nothing.
  EXPECT_TRUE(
      hang_evidence(dumps(16), {xid_log("kern.log", "n1", "0000:16:00")}, {}, {rank_table(8, 8)})
          .ranks.empty());
}

TEST(HangEvidence, ADeviceThatFallsSilent) {
  Telemetry t;
  t.file = "dcgm.prom";
  for (int i = 0; i < 8; ++i) {
    GpuSeries g;
    g.index = i;
    for (int k = 0; k < (i == 3 ? 20 : 60); ++k) g.at_s.push_back(1000 + k);
    t.gpus.push_back(g);
  }
  const HangEvidence e = hang_evidence(dumps(8), {}, {t}, {});
  ASSERT_EQ(e.ranks.size(), 8u);
  for (const RankEvidence& r : e.ranks) EXPECT_EQ(r.stopped_reporting, r.rank == 3) << r.rank;
}

}  // namespace
}  // namespace assay
