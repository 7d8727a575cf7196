// The exact breakdown of every trace of trace_reference.json, and of our own four.
#include <gtest/gtest.h>

#include <simdjson.h>

#include <filesystem>
#include <map>
#include <string>

#include "ingest/breakdown.h"
#include "ingest/kineto.h"

namespace assay {
namespace {

namespace json = simdjson::dom;

int64_t integer(json::element e, const char* key) { return int64_t{e[key]}; }

int64_t integer_or_zero(json::element e, const char* a, const char* b) {
  int64_t value = 0;
  return e[a][b].get(value) == simdjson::SUCCESS ? value : 0;
}

void expect_launches(const Trace& trace, json::element expected) {
  std::map<std::string, int64_t> calls, wanted;
  for (const RuntimeEvent& call : trace.runtime) {
    const std::string name(trace.text(call.name));
    if (name.find("Launch") != std::string::npos) ++calls[name];
  }
  for (const json::key_value_pair one : json::object(expected["launch_apis"])) {
    wanted[std::string(one.key)] = int64_t{one.value};
  }
  EXPECT_EQ(calls, wanted);
}

void expect_steps(const Trace& trace, json::element expected) {
  std::vector<std::pair<std::string, int64_t>> steps, wanted;
  for (const int32_t step : trace.steps) {
    const HostEvent& e = trace.host[static_cast<size_t>(step)];
    steps.emplace_back(trace.text(e.name), e.duration_ns);
  }
  json::array list;
  if (expected["profiler_steps"].get(list) == simdjson::SUCCESS) {
    for (const json::element one : list) {
      wanted.emplace_back(std::string(std::string_view(one.at(0))), int64_t{one.at(1)});
    }
  }
  EXPECT_EQ(steps, wanted);
}

void expect_same(const Trace& trace, json::element expected) {
  const Breakdown b = breakdown(trace);
  EXPECT_EQ(b.span_ns, integer(expected, "span_ns"));
  EXPECT_EQ(b.busy_ns, integer(expected, "busy_ns"));
  EXPECT_EQ(b.idle_ns, integer(expected, "idle_ns"));
  EXPECT_EQ(b.compute_ns, integer(expected, "compute_union_ns"));
  EXPECT_EQ(b.communication_ns, integer(expected, "comm_union_ns"));
  EXPECT_EQ(b.memory_ns, integer(expected, "memory_union_ns"));
  EXPECT_EQ(b.overlapped_communication_ns, integer(expected, "comm_overlapped_by_compute_ns"));
  EXPECT_EQ(b.exposed_communication_ns, integer(expected, "exposed_comm_ns"));
  EXPECT_EQ(b.exposed_memory_ns, integer(expected, "exposed_memory_ns"));
  EXPECT_EQ(b.compute_sum_ns, integer_or_zero(expected, "kernel_sum_ns", "compute"));
  EXPECT_EQ(b.communication_sum_ns, integer_or_zero(expected, "kernel_sum_ns", "comm"));
  EXPECT_EQ(b.memory_sum_ns, integer_or_zero(expected, "kernel_sum_ns", "memory"));
  EXPECT_EQ(b.copies, integer_or_zero(expected, "n", "memory"));
  EXPECT_EQ(b.communication_kernels, integer_or_zero(expected, "n", "comm"));
  EXPECT_EQ(b.kernels - b.communication_kernels, integer_or_zero(expected, "n", "compute"));
  EXPECT_EQ(b.streams, integer(expected, "streams"));
  EXPECT_EQ(b.negative_durations, integer(expected, "negative_dur"));
  EXPECT_EQ(static_cast<int64_t>(trace.syncs.size()), integer(expected, "cuda_sync_events"));
  expect_launches(trace, expected);
  expect_steps(trace, expected);
}

// Every trace of a reference file against its figures. Returns how many there are.
size_t check_all(const std::string& figures, const std::string& folder) {
  json::parser parser;
  const json::element root = parser.load(figures);
  size_t traces = 0;
  for (const json::key_value_pair one : json::object(root["exact"])) {
    SCOPED_TRACE(std::string(one.key));
    Diagnostics warnings;
    const Result<Trace> trace = read_kineto(folder + std::string(one.key), warnings);
    EXPECT_TRUE(trace) << trace.error().message;
    EXPECT_TRUE(warnings.empty()) << render(warnings);
    if (trace) expect_same(*trace, one.value);
    ++traces;
  }
  return traces;
}

TEST(KinetoReference, OurTracesToTheNanosecond) {
  const std::string folder = std::string(ASSAY_ROOT) + "/test/data/traces/";
  EXPECT_EQ(check_all(folder + "reference.json", folder), 4u);
}

TEST(KinetoReference, EveryPublicTraceToTheNanosecond) {
  const std::string folder = std::string(ASSAY_ROOT) + "/../shared/data/";
  const std::string figures = folder + "figures/trace_reference.json";
  if (!std::filesystem::exists(figures)) GTEST_SKIP() << figures << " is not here: NOT CHECKED";
  EXPECT_EQ(check_all(figures, folder), 41u);
}

}  // namespace
}  // namespace assay
