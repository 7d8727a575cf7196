#include "ingest/straggler_csv.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

constexpr std::string_view kHeader =
    "dp_rank,stage,rank,step,optype,start_ts,duration,seq_id,mc,mb_id,gmc\n";

OperationTrace parse(const std::string& text, size_t piece = 0) {
  OperationReader reader("ops.csv");
  if (piece == 0) piece = text.size() + 1;
  for (size_t at = 0; at < text.size(); at += piece)
    reader.feed(std::string_view(text).substr(at, piece));
  return reader.finish();
}

TEST(StragglerCsv, ReadsRowsInAnyPieces) {
  const std::string text =
      std::string(kHeader) +
      "0,0,0,23,backward-compute,0.8486716747283936,0.13867968320846558,0,0,0,0\r\n"
      "1,3,7,23,forward-send,-0.5,1e-3,2,-1,-1,-1";
  for (const size_t piece : {size_t{0}, size_t{1}, size_t{7}}) {
    const OperationTrace trace = parse(text, piece);
    EXPECT_TRUE(trace.problems.empty());
    ASSERT_EQ(trace.operations.size(), 2u);
    EXPECT_EQ(trace.operations[0].start_ns, 848671675);
    EXPECT_EQ(trace.operations[0].duration_ns, 138679683);
    EXPECT_EQ(trace.operations[1].start_ns, -500000000);
    EXPECT_EQ(trace.operations[1].duration_ns, 1000000);
    EXPECT_EQ(trace.operations[1].rank, 7);
    EXPECT_EQ(trace.operations[1].stage, 3);
    EXPECT_EQ(trace.operations[1].chunk, -1);
    EXPECT_EQ(trace.types[trace.operations[1].type], "forward-send");
  }
}

TEST(StragglerCsv, ColumnsAreFoundByName) {
  const OperationTrace trace =
      parse("extra,optype,rank,dp_rank,stage,step,duration,start_ts\nx,gc,3,1,2,9,0.5,1\n");
  EXPECT_TRUE(trace.problems.empty());
  ASSERT_EQ(trace.operations.size(), 1u);
  EXPECT_EQ(trace.operations[0].rank, 3);
  EXPECT_EQ(trace.operations[0].start_ns, 1000000000);
  EXPECT_EQ(trace.operations[0].sequence, -1);
}

TEST(StragglerCsv, HostileRowsAreRefusedWithTheirLine) {
  const char* rows[] = {
      "0,0,0,1,gc,nan,1,0,0,0,0",
      "0,0,0,1,gc,0,inf,0,0,0,0",
      "0,0,0,1,gc,0,-1,0,0,0,0",
      "0,0,0,1,gc,1e300,1,0,0,0,0",
      "0,0,-1,1,gc,0,1,0,0,0,0",
      "0,0,99999999999999999999,1,gc,0,1,0,0,0,0",
      "0,0,0,1,,0,1,0,0,0,0",
      "0,0",
      "\xff\x00\x01",
      "0,0,0,x,gc,0,1,0,0,0,0",
  };
  for (const char* row : rows) {
    const OperationTrace trace =
        parse(std::string(kHeader) + "0,0,0,1,gc,0,1,0,0,0,0\n" + row + "\n");
    EXPECT_EQ(trace.operations.size(), 1u) << row;
    ASSERT_EQ(trace.problems.size(), 1u) << row;
    EXPECT_EQ(trace.problems[0].at.line, 3) << row;
    EXPECT_FALSE(has_errors(trace.problems));
  }
}

TEST(StragglerCsv, ARankAtTwoPlacesIsRefused) {
  const OperationTrace trace =
      parse(std::string(kHeader) + "0,0,5,1,gc,0,1,0,0,0,0\n0,1,5,1,gc,0,1,0,0,0,0\n");
  EXPECT_EQ(trace.operations.size(), 1u);
  EXPECT_EQ(trace.refused, 1u);
}

TEST(StragglerCsv, LongLinesAndManyTypesAreBounded) {
  const std::string line(3 * kMaxOperationLine, '7');
  const OperationTrace trace = parse(std::string(kHeader) + line + "\n0,0,5,1,gc,0,1,0,0,0,0\n");
  EXPECT_EQ(trace.operations.size(), 1u);
  EXPECT_EQ(trace.refused, 1u);
  EXPECT_TRUE(has_errors(parse(line).problems));

  std::string types(kHeader);
  for (size_t i = 0; i <= kMaxOperationTypes; ++i)
    types += "0,0,0,1,t" + std::to_string(i) + ",0,1,0,0,0,0\n";
  EXPECT_TRUE(has_errors(parse(types).problems));
}

TEST(StragglerCsv, WhatIsNoSuchTableIsAnError) {
  for (const char* text : {"", "\n\n", "a,b,c\n1,2,3\n", "{\"traceEvents\": []}"}) {
    EXPECT_TRUE(has_errors(parse(text).problems)) << text;
  }
}

TEST(StragglerCsv, AnAbsentFileFails) {
  EXPECT_FALSE(read_operations("/nonexistent/ops.csv"));
  EXPECT_FALSE(read_operations("/"));
}

}  // namespace
}  // namespace assay
