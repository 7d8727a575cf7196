#include "diagnose/critical_path.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "ingest/kineto.h"

namespace assay {
namespace {

const std::string kPublic = std::string(ASSAY_ROOT) + "/../shared/data/public/kineto/";
constexpr int64_t kTick = 10'000;  // ns; ten of them are a hand-over

class Random {
 public:
  explicit Random(uint32_t seed) : state_(seed) {}
  int64_t below(int64_t n) {
    state_ = state_ * 1664525u + 1013904223u;
    return static_cast<int64_t>((uint64_t{state_} * static_cast<uint64_t>(n)) >> 32);
  }

 private:
  uint32_t state_;
};

uint32_t intern(Trace& trace, const std::string& text) {
  for (size_t i = 0; i < trace.strings.size(); ++i)
    if (trace.strings[i] == text) return static_cast<uint32_t>(i);
  trace.strings.push_back(text);
  return static_cast<uint32_t>(trace.strings.size() - 1);
}

Trace empty_trace(int threads) {
  Trace trace;
  trace.strings = {""};
  for (int t = 0; t < threads; ++t) trace.threads.push_back({1, t, 0});
  return trace;
}

void add_op(Trace& trace, int thread, int64_t start, int64_t end, const std::string& name) {
  HostEvent e;
  e.start_ns = start * kTick;
  e.duration_ns = (end - start) * kTick;
  e.thread = thread;
  e.name = intern(trace, name);
  trace.host.push_back(e);
}

int32_t add_call(Trace& trace, int thread, int64_t start, int64_t end, const std::string& name) {
  RuntimeEvent e;
  e.start_ns = start * kTick;
  e.duration_ns = (end - start) * kTick;
  e.thread = thread;
  e.name = intern(trace, name);
  e.correlation = trace.runtime.size() + 1;
  trace.runtime.push_back(e);
  return static_cast<int32_t>(trace.runtime.size() - 1);
}

void add_kernel(Trace& trace, int32_t launch, int stream, int64_t start, int64_t end) {
  DeviceEvent e;
  e.start_ns = start * kTick;
  e.duration_ns = (end - start) * kTick;
  e.stream = stream;
  e.launch = launch;
  e.name = intern(trace, "kernel");
  trace.device.push_back(e);
}

template <class Event>
void sort_by_start(std::vector<Event>& events) {
  std::stable_sort(events.begin(), events.end(),
                   [](const Event& a, const Event& b) { return a.start_ns < b.start_ns; });
}

// Two threads that work, launch and wait; kernels that run in order on three streams.
Trace random_trace(uint32_t seed) {
  Random random(seed);
  Trace trace = empty_trace(2);
  std::vector<int64_t> stream_end(3, 0);
  int64_t now[2] = {0, random.below(40)};
  for (int i = 0; i < 60; ++i) {
    const int thread = now[0] <= now[1] ? 0 : 1;
    int64_t& t = now[thread];
    t += random.below(8) == 0 ? random.below(30) : random.below(3);
    const int64_t start = t;
    const int what = static_cast<int>(random.below(6));
    if (what == 0) {
      int64_t last = t + 1;
      const bool worth = random.below(2) == 0;
      for (const int64_t end : stream_end)
        if (worth) last = std::max(last, end);
      add_call(trace, thread, t, last, "cudaDeviceSynchronize");
      t = last;
    } else if (what <= 3) {
      t += 1 + random.below(3);
      const int32_t call = add_call(trace, thread, t, t + 2, "cudaLaunchKernel");
      const size_t stream = static_cast<size_t>(random.below(3));
      const int64_t run = std::max(t + 1 + random.below(4), stream_end[stream] + random.below(2));
      const int64_t length = 1 + random.below(12);
      add_kernel(trace, call, static_cast<int>(stream), run, run + length);
      stream_end[stream] = run + length;
      t += 2 + random.below(3);
      add_op(trace, thread, start, t, "aten::op");
    } else {
      t += 1 + random.below(15);
      add_op(trace, thread, start, t, "aten::cpu");
    }
  }
  // Calls are stored by start; launches refer to them, so they are sorted together.
  std::vector<int32_t> order(trace.runtime.size()), place(order.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return trace.runtime[static_cast<size_t>(a)].start_ns <
           trace.runtime[static_cast<size_t>(b)].start_ns;
  });
  for (size_t i = 0; i < order.size(); ++i)
    place[static_cast<size_t>(order[i])] = static_cast<int32_t>(i);
  for (DeviceEvent& e : trace.device) e.launch = place[static_cast<size_t>(e.launch)];
  sort_by_start(trace.runtime);
  sort_by_start(trace.device);
  sort_by_start(trace.host);
  return trace;
}

// The same definition, tick by tick: every thread and kernel carries its length through time.
int64_t naive_ticks(const Trace& trace) {
  int64_t last = 0;
  const auto end = [](const auto& e) { return (e.start_ns + e.duration_ns) / kTick; };
  for (const HostEvent& e : trace.host) last = std::max(last, end(e));
  for (const RuntimeEvent& e : trace.runtime) last = std::max(last, end(e));
  for (const DeviceEvent& e : trace.device) last = std::max(last, end(e));
  const auto is_wait = [&](const RuntimeEvent& e) {
    return trace.text(e.name) == "cudaDeviceSynchronize";
  };
  const auto works = [&](int32_t thread, int64_t tick) {
    bool busy = false;
    for (const HostEvent& e : trace.host)
      busy = busy || (e.thread == thread && e.start_ns / kTick <= tick && tick < end(e));
    for (const RuntimeEvent& e : trace.runtime) {
      if (e.thread != thread || e.start_ns / kTick > tick || tick >= end(e)) continue;
      if (is_wait(e)) return false;
      busy = true;
    }
    return busy;
  };
  std::vector<int64_t> length(2, 0), idle(2, 1'000'000);
  std::vector<int64_t> kernel(trace.device.size(), -1);
  int64_t paused_at[2] = {-1, -1}, paused_length[2] = {0, 0};
  int64_t longest = 0;
  std::map<int32_t, int64_t> asked;
  for (int64_t tick = 0; tick <= last; ++tick) {
    for (int thread = 0; thread < 2; ++thread)  // resume
      if (works(thread, tick) && idle[static_cast<size_t>(thread)] >= 10) {
        const int other = 1 - thread;
        if (paused_at[other] > tick - idle[static_cast<size_t>(thread)])
          length[static_cast<size_t>(thread)] =
              std::max(length[static_cast<size_t>(thread)], paused_length[other]);
      }
    for (const RuntimeEvent& e : trace.runtime) {  // waits that end now
      if (!is_wait(e) || end(e) != tick) continue;
      int64_t latest = -1, best = -1;
      for (size_t k = 0; k < kernel.size(); ++k)
        if (end(trace.device[k]) <= tick && end(trace.device[k]) >= latest) {
          if (end(trace.device[k]) > latest) best = -1;
          latest = end(trace.device[k]);
          best = std::max(best, kernel[k]);
        }
      if (latest >= e.start_ns / kTick)
        length[static_cast<size_t>(e.thread)] =
            std::max(length[static_cast<size_t>(e.thread)], best);
    }
    // Launches read the length of their thread at this very tick; a kernel starts later.
    for (size_t i = 0; i < trace.runtime.size(); ++i)
      if (trace.runtime[i].start_ns / kTick == tick)
        asked[static_cast<int32_t>(i)] = length[static_cast<size_t>(trace.runtime[i].thread)];
    for (size_t k = 0; k < kernel.size(); ++k) {
      const DeviceEvent& e = trace.device[k];
      if (e.start_ns / kTick != tick) continue;
      const int64_t launch = trace.runtime[static_cast<size_t>(e.launch)].start_ns / kTick;
      int64_t before = -1, before_end = -1;
      for (size_t j = 0; j < k; ++j)
        if (trace.device[j].stream == e.stream && end(trace.device[j]) > before_end) {
          before_end = end(trace.device[j]);
          before = kernel[j];
        }
      kernel[k] =
          before_end > launch ? before + tick - before_end : asked[e.launch] + tick - launch;
      kernel[k] += e.duration_ns / kTick;
      longest = std::max(longest, kernel[k]);
    }
    for (int thread = 0; thread < 2; ++thread) {
      const auto t = static_cast<size_t>(thread);
      const bool worked = tick > 0 && works(thread, tick - 1);
      longest = std::max(longest, length[t]);
      if (worked && !works(thread, tick)) {
        bool soon = false;
        for (int64_t ahead = tick; ahead < tick + 10; ++ahead) soon = soon || works(thread, ahead);
        if (!soon) {
          paused_at[thread] = tick;
          paused_length[thread] = length[t];
        }
      }
      if (works(thread, tick)) {
        ++length[t];
        idle[t] = 0;
      } else {
        ++idle[t];
      }
    }
  }
  return longest;
}

TEST(CriticalPath, EqualsTheNaiveTwin) {
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    const Trace trace = random_trace(seed);
    const CriticalPath path = critical_path(trace);
    ASSERT_EQ(path.total_ns / kTick, naive_ticks(trace)) << "seed " << seed;
    int64_t sum = 0, end = 0;
    for (const PathSegment& s : path.segments) {
      EXPECT_GT(s.duration_ns, 0);
      EXPECT_GE(s.start_ns, 0);
      if (s.kind != PathKind::kGap) sum += s.duration_ns;
      EXPECT_GE(s.start_ns, end - 4 * kTick);  // in order; a kernel may start while its call runs
      end = std::max(end, s.start_ns);
    }
    EXPECT_EQ(sum, path.total_ns);
  }
}

TEST(CriticalPath, HostLaunchDeviceAndWait) {
  Trace trace = empty_trace(1);
  add_op(trace, 0, 0, 50, "aten::work");
  const int32_t call = add_call(trace, 0, 10, 12, "cudaLaunchKernel");
  add_kernel(trace, call, 7, 15, 95);
  add_call(trace, 0, 50, 100, "cudaStreamSynchronize");
  add_op(trace, 0, 101, 111, "aten::after");
  const CriticalPath path = critical_path(trace);
  EXPECT_EQ(path.of(PathKind::kHost), 20 * kTick);
  EXPECT_EQ(path.of(PathKind::kLaunch), 5 * kTick);
  EXPECT_EQ(path.of(PathKind::kDevice), 80 * kTick);
  EXPECT_EQ(path.total_ns, 105 * kTick);
  ASSERT_EQ(path.segments.size(), 4u);
  EXPECT_EQ(trace.text(path.segments[0].name), "aten::work");
  EXPECT_EQ(trace.text(path.segments[3].name), "aten::after");
}

TEST(CriticalPath, KernelsOfAGraphShareALaunch) {
  Trace trace = empty_trace(1);
  const int32_t call = add_call(trace, 0, 0, 2, "cudaGraphLaunch");
  for (int i = 0; i < 10; ++i) add_kernel(trace, call, 7, 5 + 10 * i, 14 + 10 * i);
  const CriticalPath path = critical_path(trace);
  EXPECT_EQ(path.of(PathKind::kLaunch), 5 * kTick);
  EXPECT_EQ(path.of(PathKind::kDevice), 90 * kTick);
  EXPECT_EQ(path.of(PathKind::kBetween), 9 * kTick);
}

TEST(CriticalPath, NothingAndNoHostWork) {
  EXPECT_EQ(critical_path(empty_trace(0)).total_ns, 0);
  Trace trace = empty_trace(0);
  for (int i = 0; i < 3; ++i) add_kernel(trace, -1, 1, 10 * i, 10 * i + 8);
  const CriticalPath path = critical_path(trace);
  EXPECT_EQ(path.of(PathKind::kDevice), 24 * kTick);
  EXPECT_EQ(path.of(PathKind::kBetween), 4 * kTick);
  EXPECT_EQ(critical_path_of_step(trace, 3).total_ns, path.total_ns);
}

TEST(CriticalPath, AMillionEventsInAboutASecond) {
  Trace trace = empty_trace(1);
  trace.strings.insert(trace.strings.end(), {"kernel", "aten::op", "cudaLaunchKernel"});
  constexpr int64_t kKernels = 350'000;
  for (int64_t i = 0; i < kKernels; ++i) {
    HostEvent op;
    op.start_ns = i * 1000;
    op.duration_ns = 900;
    op.name = 2;
    trace.host.push_back(op);
    RuntimeEvent call;
    call.start_ns = i * 1000 + 100;
    call.duration_ns = 300;
    call.name = 3;
    trace.runtime.push_back(call);
    DeviceEvent kernel;
    kernel.start_ns = i * 1000 + 600;
    kernel.duration_ns = 990;
    kernel.stream = 7;
    kernel.launch = static_cast<int32_t>(i);
    kernel.name = 1;
    trace.device.push_back(kernel);
  }
  const auto begin = std::chrono::steady_clock::now();
  const CriticalPath path = critical_path(trace);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  EXPECT_EQ(path.of(PathKind::kDevice), kKernels * 990);
  fmt::print("critical path of {} events in {:.2f} s\n", 3 * kKernels, seconds);
  EXPECT_LT(seconds, 20);  // a second in release; sanitisers and a busy machine may take longer
}

struct Golden {
  const char* file;
  const char* annotation;                       // its second occurrence; empty: the whole file
  double total, host, device, launch, between;  // us; negative: not published
};

// Holistic Trace Analysis 0.6.1 on its own test traces (research notes, section 3).
TEST(CriticalPath, ReferencePathsWithinOnePercent) {
  const Golden goldens[] = {
      {"hta/critical_path/simple_add/benchmark_result_493459_1694039959_trace.json.gz",
       "measure|forward", 241724, 241190, 508, 17, 9},
      {"hta/critical_path/alexnet/benchmark_result_2869224_1695835535_trace.json.gz",
       "measure|forward", 35834, 32042, 3712, 30, 50},
      {"hta/critical_path/cuda_event_sync/event_sync_trace.json.gz", "", 2411, -1, -1, -1, -1},
      {"hta/critical_path/cuda_event_sync_multi_stream/event_sync_trace.json.gz", "", 1178, -1, -1,
       -1, -1},
      {"hta/ns_resolution_trace/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz", "ProfilerStep",
       95735, 0, 93692, 0, 2043},
      {"hta/nccl_parser_config/nccl_data.json.gz", "ProfilerStep", 190909, 190909, 0, 0, 0}};
  for (const Golden& golden : goldens) {
    const std::string file = kPublic + golden.file;
    if (!std::filesystem::exists(file))
      GTEST_SKIP() << file << " is absent: the reference critical paths are NOT checked";
    Diagnostics warnings;
    const Result<Trace> trace = read_kineto(file, warnings);
    ASSERT_TRUE(trace) << file;
    CriticalPath path = critical_path(*trace);
    int seen = 0;
    for (const HostEvent& e : trace->host) {
      const bool named = e.kind == HostKind::kAnnotation && *golden.annotation != 0 &&
                         trace->text(e.name).find(golden.annotation) != std::string_view::npos;
      if (named && seen++ == 1)
        path = critical_path(*trace, e.start_ns, e.start_ns + e.duration_ns);
    }
    const auto us = [&](PathKind kind) { return static_cast<double>(path.of(kind)) / 1e3; };
    EXPECT_NEAR(static_cast<double>(path.total_ns) / 1e3, golden.total, 0.01 * golden.total)
        << file;
    if (golden.host < 0) continue;
    // By kind within 1 % of the path: the reference rounds every kernel to whole microseconds.
    EXPECT_NEAR(us(PathKind::kHost), golden.host, 0.01 * golden.total) << file;
    EXPECT_NEAR(us(PathKind::kDevice), golden.device, 0.01 * golden.total) << file;
    EXPECT_NEAR(us(PathKind::kLaunch), golden.launch, 0.01 * golden.total) << file;
    EXPECT_NEAR(us(PathKind::kBetween), golden.between, 0.01 * golden.total) << file;
  }
}

// Where the reference aborts: Kineto of 2021, MTIA; and CUDA graphs, which it leaves out.
TEST(CriticalPath, WorksWhereTheReferenceAborts) {
  const char* files[] = {"resnet50/num_workers_0.json.gz", "resnet50/num_workers_4.json.gz",
                         "hta/mtia_inference_trace/mtia_inference_rank_0.json.gz",
                         "tracelens/inference/vllm_decode_full/graph_execution.json.gz"};
  for (const char* name : files) {
    const std::string file = kPublic + name;
    if (!std::filesystem::exists(file))
      GTEST_SKIP() << file << " is absent: old and foreign traces are NOT checked";
    Diagnostics warnings;
    const Result<Trace> trace = read_kineto(file, warnings);
    ASSERT_TRUE(trace) << file;
    const CriticalPath path = critical_path(*trace);
    EXPECT_GT(path.total_ns, 0) << file;
    EXPECT_LE(path.total_ns, path.to_ns - path.from_ns) << file;
  }
}

}  // namespace
}  // namespace assay
