#include "ingest/trace_index.h"

#include <gtest/gtest.h>

#include "ingest/kineto.h"

namespace assay {
namespace {

Trace small_trace() {
  const std::string text = R"([
    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 1, "ts": 0,
     "dur": 100},
    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#2", "pid": 1, "tid": 1, "ts": 100,
     "dur": 100},
    {"ph": "X", "cat": "python_function", "name": "train.py:1", "pid": 1, "tid": 1, "ts": 5,
     "dur": 90},
    {"ph": "X", "cat": "cpu_op", "name": "aten::linear", "pid": 1, "tid": 1, "ts": 10, "dur": 50},
    {"ph": "X", "cat": "cpu_op", "name": "aten::addmm", "pid": 1, "tid": 1, "ts": 12, "dur": 40},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 20,
     "dur": 10, "args": {"correlation": 1}},
    {"ph": "X", "cat": "cuda_driver", "name": "cuLaunchKernel", "pid": 1, "tid": 1, "ts": 22,
     "dur": 2, "args": {"correlation": 2}},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaGraphLaunch", "pid": 1, "tid": 2, "ts": 30,
     "dur": 10, "args": {"correlation": 3}},
    {"ph": "X", "cat": "kernel", "name": "a", "pid": 0, "tid": 7, "ts": 40, "dur": 5,
     "args": {"device": 0, "stream": 7, "correlation": 1}},
    {"ph": "X", "cat": "kernel", "name": "b", "pid": 0, "tid": 9, "ts": 50, "dur": 5,
     "args": {"device": 0, "stream": 9, "correlation": 3}},
    {"ph": "X", "cat": "kernel", "name": "c", "pid": 0, "tid": 7, "ts": 60, "dur": 5,
     "args": {"device": 0, "stream": 7, "correlation": 3}},
    {"ph": "X", "cat": "kernel", "name": "d", "pid": 0, "tid": 7, "ts": 70, "dur": 5,
     "args": {"device": 0, "stream": 7, "correlation": 99}}])";
  Diagnostics warnings;
  Result<Trace> t = read_kineto_text(text, "t", warnings);
  EXPECT_TRUE(t);
  return std::move(*t);
}

TEST(TraceIndex, ListsOfThreadsStreamsAndLaunches) {
  const Trace t = small_trace();
  const TraceIndex x = index_trace(t);
  ASSERT_EQ(x.host_of_thread.size(), 2u);
  EXPECT_EQ(x.host_of_thread[0].size(), 5u);
  EXPECT_EQ(x.host_of_thread[1].size(), 0u);
  EXPECT_EQ(x.runtime_of_thread[1].size(), 1u);
  ASSERT_EQ(x.streams.size(), 2u);
  EXPECT_EQ(x.streams[0], (StreamId{0, 7}));
  EXPECT_EQ(x.device_of_stream[0].size(), 3u);
  EXPECT_EQ(x.device_of_stream[1].size(), 1u);
  EXPECT_EQ(x.device_of_launch[2].size(), 2u);
  EXPECT_EQ(x.main_thread, 1);
}

TEST(TraceIndex, ChainsUpToTheRoot) {
  const Trace t = small_trace();
  EXPECT_EQ(t.text(launch_of(t, t.device[0])->name), "cudaLaunchKernel");
  EXPECT_EQ(launch_of(t, t.device[3]), nullptr);
  EXPECT_EQ(op_path(t, t.device[0]), "aten::linear > aten::addmm");
  EXPECT_EQ(op_path(t, t.device[3]), "");
  EXPECT_EQ(op_chain(t, t.device[0]).size(), 2u);
  EXPECT_EQ(op_chain(t, t.device[0], 1).size(), 1u);
  EXPECT_EQ(host_chain(t, t.device[0]).size(), 4u);
  EXPECT_TRUE(host_chain(t, t.device[1]).empty());
}

TEST(TraceIndex, WhatIsOpenAtAMoment) {
  const Trace t = small_trace();
  const TraceIndex x = index_trace(t);
  const auto name = [&](int64_t us) -> std::string {
    const int32_t at = host_at(t, x, 0, us * 1000);
    return at < 0 ? "-" : std::string(t.text(t.host[static_cast<size_t>(at)].name));
  };
  EXPECT_EQ(name(-1), "-");
  EXPECT_EQ(name(0), "ProfilerStep#1");
  EXPECT_EQ(name(15), "aten::addmm");
  EXPECT_EQ(name(55), "aten::linear");
  EXPECT_EQ(name(70), "train.py:1");
  EXPECT_EQ(name(97), "ProfilerStep#1");
  EXPECT_EQ(name(100), "ProfilerStep#2");
  EXPECT_EQ(name(200), "-");
  EXPECT_EQ(host_at(t, x, 1, 10), -1);
  EXPECT_EQ(t.text(t.runtime[static_cast<size_t>(runtime_at(t, x, 0, 23'000))].name),
            "cuLaunchKernel");
  EXPECT_EQ(t.text(t.runtime[static_cast<size_t>(runtime_at(t, x, 0, 27'000))].name),
            "cudaLaunchKernel");
  EXPECT_EQ(runtime_at(t, x, 0, 35'000), -1);
  EXPECT_EQ(step_at(t, 50'000), 0);
  EXPECT_EQ(step_at(t, 150'000), 1);
  EXPECT_EQ(step_at(t, 250'000), -1);
  EXPECT_EQ(step_at(Trace(), 0), -1);
}

TEST(TraceIndex, NamesOfCalls) {
  for (const char* call :
       {"cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernelEx", "hipExtModuleLaunchKernel",
        "cudaLaunchCooperativeKernel", "hipGraphLaunch"}) {
    EXPECT_TRUE(launches_kernel(call)) << call;
  }
  EXPECT_FALSE(launches_kernel("cudaLaunchHostFunc"));
  EXPECT_FALSE(launches_kernel("cudaMemcpyAsync"));
  EXPECT_TRUE(launches_graph("cudaGraphLaunch"));
  EXPECT_TRUE(waits_for_device("cudaStreamSynchronize"));
  EXPECT_TRUE(waits_for_device("hipDeviceSynchronize"));
  EXPECT_FALSE(waits_for_device("cudaLaunchKernel"));
}

}  // namespace
}  // namespace assay
