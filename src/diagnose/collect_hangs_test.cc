#include <gtest/gtest.h>

#include "diagnose/collect.h"

namespace assay {
namespace {

// Rank `stopped` of three never enqueued the second all-reduce, which the others wait for.
FlightDump dump(const std::string& file, int rank, int stopped, int64_t at_ns) {
  FlightDump d;
  d.file = file;
  d.rank = rank;
  d.strings = {"", "all_reduce"};
  d.groups.push_back({"0", "", {0, 1, 2}, 0, std::nullopt});
  for (int64_t i = 0; i < (rank == stopped ? 1 : 2); ++i) {
    FlightEntry e;
    e.record_id = i;
    e.group = 0;
    e.sequence = i + 1;
    e.name = 1;
    e.created_ns = at_ns + i * 1'000'000'000;
    e.state = i == 0 ? FlightState::kCompleted : FlightState::kStarted;
    e.started_ns = e.created_ns;
    e.timeout_ms = 60'000;
    d.entries.push_back(e);
  }
  d.written_ns = at_ns + 600'000'000'000;
  return d;
}

constexpr int64_t kDay = 86'400'000'000'000;

TEST(CollectHangs, RanksMayBeSpreadOverFolders) {
  Collected c;
  Diagnosis d;
  for (const int rank : {0, 1, 2}) {
    c.dumps.push_back(dump("host" + std::to_string(rank) + "/dump", rank, 1, kDay));
  }
  c.dumps.push_back(dump("copy/dump_0", 0, 1, kDay));  // the same once more
  analyse_hangs(c, d);
  ASSERT_EQ(d.hangs.size(), 1u);
  EXPECT_EQ(d.hangs[0].convicted, std::vector<int>{1});
}

TEST(CollectHangs, FoldersWithTheSameRanksAreIncidents) {
  Collected c;
  Diagnosis d;
  for (const int rank : {0, 1, 2}) {
    c.dumps.push_back(dump("monday/dump_" + std::to_string(rank), rank, 1, kDay));
    c.dumps.push_back(dump("tuesday/dump_" + std::to_string(rank), rank, 2, 2 * kDay));
  }
  analyse_hangs(c, d);
  ASSERT_EQ(d.hangs.size(), 2u);
  EXPECT_EQ(d.hangs[0].folder, "monday");
  EXPECT_EQ(d.hangs[0].convicted, std::vector<int>{1});
  EXPECT_EQ(d.hangs[1].convicted, std::vector<int>{2});
  ASSERT_EQ(d.findings.size(), 2u);
  EXPECT_EQ(d.findings[1].title.substr(0, 9), "tuesday: ");
  EXPECT_TRUE(d.problems.empty());
}

}  // namespace
}  // namespace assay
