#include "ingest/flight_recorder.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "base/file.h"

namespace assay {
namespace {

constexpr const char* kSmall = R"({"version": "2.9", "nccl_version": "2.27.3",
 "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"},
               "7": {"name": "7", "desc": "PIPELINE", "ranks": "[1, 3]"}},
 "pg_status": {"0": {"last_enqueued_collective": 4, "last_started_collective": -1,
                     "last_completed_collective": 3},
               "2": {"last_enqueued_collective": 9, "last_completed_collective": 8}},
 "entries": [
  {"record_id": 11, "pg_id": 2, "process_group": ["7", "PIPELINE"], "collective_seq_id": 1,
   "p2p_seq_id": 9, "profiling_name": "nccl:send 1->0", "state": "scheduled", "is_p2p": true,
   "input_sizes": [[8, 2]], "input_dtypes": ["BFloat16"], "time_created_ns": 1700000000000000001},
  {"record_id": 10, "pg_id": 0, "process_group": ["0", "default_pg"], "collective_seq_id": 4,
   "profiling_name": "nccl:all_reduce", "state": "started", "is_p2p": false, "timeout_ms": 600000,
   "input_sizes": [[4, 4], [3]], "output_sizes": [[4, 4], [3]], "retired": false}]})";

TEST(FlightRecorder, ReadsEveryField) {
  const auto dump = read_flight_dump(kSmall, "node-a_rank3.json");
  ASSERT_TRUE(dump.has_value()) << dump.error().message;
  EXPECT_EQ(dump->rank, 3);
  ASSERT_EQ(dump->entries.size(), 2u);
  const FlightEntry& reduce = dump->entries[0];  // by record id
  EXPECT_EQ(reduce.record_id, 10);
  EXPECT_EQ(dump->string(reduce.name), "all_reduce");
  EXPECT_EQ(reduce.input_elements, 19);
  EXPECT_EQ(dump->string(reduce.sizes), "4x4 3");
  EXPECT_EQ(reduce.state, FlightState::kStarted);
  EXPECT_EQ(reduce.timeout_ms, 600000);
  const FlightEntry& send = dump->entries[1];
  EXPECT_EQ(send.kind, FlightKind::kSend);
  EXPECT_EQ(send.self, 1);
  EXPECT_EQ(send.peer, 0);
  EXPECT_EQ(send.created_ns, 1700000000000000001);
  EXPECT_EQ(dump->string(send.dtype), "BFloat16");
  ASSERT_TRUE(dump->groups[0].status.has_value());
  EXPECT_EQ(dump->groups[0].status->completed, 3);
  EXPECT_EQ(dump->groups[1].ranks, (std::vector<int32_t>{1, 3}));
}

// A rank that has nothing in flight has no entry to tie numbers to names: the order of creation
// does.
TEST(FlightRecorder, StatusWithoutEntries) {
  const auto dump = read_flight_dump(
      R"({"pg_config": {"112": {"name": "112", "ranks": "[2]"},
                        "33": {"name": "33", "ranks": "[0,2]"}},
          "pg_status": {"4": {"last_enqueued_collective": 40, "last_completed_collective": 40},
                        "17": {"last_enqueued_collective": 5, "last_completed_collective": 5}},
          "entries": []})",
      "whatever");
  ASSERT_TRUE(dump.has_value());
  EXPECT_EQ(dump->rank, 2);  // the only rank that both groups hold
  ASSERT_TRUE(dump->groups[0].status && dump->groups[1].status);
  EXPECT_EQ(dump->groups[0].status->enqueued, 5);   // 112
  EXPECT_EQ(dump->groups[1].status->enqueued, 40);  // 33
}

TEST(FlightRecorder, RankFromNames) {
  EXPECT_EQ(rank_of_name("/tmp/x9/_dump_3"), 3);
  EXPECT_EQ(rank_of_name("_dump_12.json"), 12);
  EXPECT_EQ(rank_of_name("nccl_trace_rank_7"), 7);
  EXPECT_EQ(rank_of_name("Rank=15-host04.pkl"), 15);
  EXPECT_EQ(rank_of_name("gpu-node-17_rank0004.pickle.gz"), 4);
  EXPECT_EQ(rank_of_name("h100-042_61"), 61);
  EXPECT_EQ(rank_of_name("trace"), -1);
  EXPECT_EQ(rank_of_name("dump_99999999999999999999"), -1);
  EXPECT_EQ(rank_of_name(""), -1);
}

TEST(FlightRecorder, WhatIsMissingIsFine) {
  for (const char* text :
       {R"({"entries": []})", R"({"entries": [3, null, {}]})", R"({"entries": {"a": 1}})",
        R"({"pg_status": {"x": 3}, "entries": 7})",
        R"({"pg_config": {"0": {"ranks": "[0, 1, ..."}}})",
        R"({"pg_config": [1, 2], "pg_status": []})",
        R"({"entries": [{"seq_id": 3, "profiling_name": "nccl:send 1", "input_sizes": [[9]]}]})"}) {
    EXPECT_TRUE(read_flight_dump(text, "d_1").has_value()) << text;
  }
  for (const char* text : {"", "{", "[]", "{}", R"({"a": 1})", "\x80\x02}q", "garbage"}) {
    EXPECT_FALSE(read_flight_dump(text, "d_1").has_value()) << text;
  }
}

TEST(FlightRecorder, NameAgainstGroups) {
  const auto dump = read_flight_dump(
      R"({"pg_config": {"0": {"name": "0", "ranks": [0, 5]},
                        "1": {"name": "1", "ranks": "[5, 6]"}}})",
      "_dump_0");
  ASSERT_TRUE(dump.has_value());
  EXPECT_EQ(dump->rank, 5);
  EXPECT_EQ(dump->problems.size(), 1u);
}

TEST(FlightRecorder, OneDumpPerRank) {
  std::vector<FlightDump> dumps(3);
  for (FlightDump& dump : dumps) dump.rank = 1;
  dumps[1].entries.resize(1);
  dumps[1].entries[0].record_id = 50;
  Diagnostics problems;
  keep_one_dump_per_rank(dumps, problems);
  ASSERT_EQ(dumps.size(), 1u);
  EXPECT_EQ(dumps[0].entries.size(), 1u);
  EXPECT_EQ(problems.size(), 2u);
}

// The pickle and its JSON twin, of 64 real dumps, hold the same.
TEST(FlightRecorder, PicklesAndTheirTwins) {
  const std::filesystem::path root =
      std::filesystem::path(ASSAY_ROOT) / "../shared/data/public/telemetry/flight_recorder";
  if (!std::filesystem::exists(root)) GTEST_SKIP() << "no " << root << ": real dumps not read";
  int seen = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    const std::string path = entry.path().string();
    if (!entry.is_regular_file() || !path.ends_with(".json")) continue;
    const std::string pickle = path.substr(0, path.size() - 5);
    const auto json_bytes = read_file(path), pickle_bytes = read_file(pickle);
    ASSERT_TRUE(json_bytes && pickle_bytes);
    const auto a = read_flight_dump(*json_bytes, path), b = read_flight_dump(*pickle_bytes, pickle);
    ASSERT_TRUE(a && b) << (a ? "" : a.error().message) << (b ? "" : b.error().message);
    EXPECT_EQ(a->rank, rank_of_name(path));
    EXPECT_EQ(a->rank, b->rank);
    EXPECT_TRUE(a->problems.empty() && b->problems.empty());
    ASSERT_EQ(a->entries.size(), b->entries.size());
    for (size_t i = 0; i < a->entries.size(); ++i) {
      EXPECT_EQ(a->entries[i].created_ns, b->entries[i].created_ns);
      EXPECT_EQ(a->string(a->entries[i].sizes), b->string(b->entries[i].sizes));
    }
    for (const FlightGroup& group : a->groups) EXPECT_TRUE(group.status.has_value());
    ++seen;
  }
  EXPECT_EQ(seen, 64);
}

}  // namespace
}  // namespace assay
