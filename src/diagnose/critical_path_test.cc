#include "diagnose/critical_path.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "diagnose/test_random.h"
#include "ingest/kineto.h"

namespace assay {
namespace {

const std::string kPublic = std::string(ASSAY_ROOT) + "/../shared/data/public/kineto/";
constexpr int64_t kTick = 10'000;  // ns; ten of them are a hand-over

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
  TestRandom random(seed);
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
class Naive {
 public:
  explicit Naive(const Trace& trace) : trace_(trace), kernel_(trace.device.size(), -1) {}

  int64_t ticks() {
    int64_t last = 0;
    for (const HostEvent& e : trace_.host) last = std::max(last, end(e));
    for (const RuntimeEvent& e : trace_.runtime) last = std::max(last, end(e));
    for (const DeviceEvent& e : trace_.device) last = std::max(last, end(e));
    for (int64_t tick = 0; tick <= last; ++tick) {
      for (size_t thread = 0; thread < 2; ++thread) resume(thread, tick);
      for (const RuntimeEvent& e : trace_.runtime)
        if (is_wait(e) && end(e) == tick) waited(e, tick);
      for (size_t i = 0; i < trace_.runtime.size(); ++i)
        if (trace_.runtime[i].start_ns / kTick == tick)
          asked_[static_cast<int32_t>(i)] = length_[static_cast<size_t>(trace_.runtime[i].thread)];
      for (size_t k = 0; k < kernel_.size(); ++k)
        if (trace_.device[k].start_ns / kTick == tick) start(k, tick);
      for (size_t thread = 0; thread < 2; ++thread) advance(thread, tick);
    }
    return longest_;
  }

 private:
  template <class Event>
  static int64_t end(const Event& e) {
    return (e.start_ns + e.duration_ns) / kTick;
  }
  bool is_wait(const RuntimeEvent& e) const {
    return trace_.text(e.name) == "cudaDeviceSynchronize";
  }
  bool works(size_t thread, int64_t tick) const {
    const auto holds = [&](const auto& e) {
      return static_cast<size_t>(e.thread) == thread && e.start_ns / kTick <= tick && tick < end(e);
    };
    for (const RuntimeEvent& e : trace_.runtime)
      if (holds(e)) return !is_wait(e);
    return std::any_of(trace_.host.begin(), trace_.host.end(), holds);
  }
  void resume(size_t thread, int64_t tick) {
    const size_t other = 1 - thread;
    if (works(thread, tick) && idle_[thread] >= 10 && paused_at_[other] > tick - idle_[thread])
      length_[thread] = std::max(length_[thread], paused_length_[other]);
  }
  void waited(const RuntimeEvent& call, int64_t tick) {
    int64_t latest = -1, best = -1;
    for (size_t k = 0; k < kernel_.size(); ++k) {
      const int64_t ended = end(trace_.device[k]);
      if (ended > tick || ended < latest) continue;
      best = ended > latest ? kernel_[k] : std::max(best, kernel_[k]);
      latest = ended;
    }
    int64_t& length = length_[static_cast<size_t>(call.thread)];
    if (latest >= call.start_ns / kTick) length = std::max(length, best);
  }
  void start(size_t k, int64_t tick) {
    const DeviceEvent& e = trace_.device[k];
    const int64_t launch = trace_.runtime[static_cast<size_t>(e.launch)].start_ns / kTick;
    int64_t before = -1, before_end = -1;
    for (size_t j = 0; j < k; ++j)
      if (trace_.device[j].stream == e.stream && end(trace_.device[j]) > before_end) {
        before_end = end(trace_.device[j]);
        before = kernel_[j];
      }
    kernel_[k] =
        before_end > launch ? before + tick - before_end : asked_[e.launch] + tick - launch;
    kernel_[k] += e.duration_ns / kTick;
    longest_ = std::max(longest_, kernel_[k]);
  }
  void advance(size_t thread, int64_t tick) {
    longest_ = std::max(longest_, length_[thread]);
    const bool now = works(thread, tick);
    if (tick > 0 && works(thread, tick - 1) && !now) {
      bool soon = false;
      for (int64_t ahead = tick; ahead < tick + 10; ++ahead) soon = soon || works(thread, ahead);
      if (!soon) {
        paused_at_[thread] = tick;
        paused_length_[thread] = length_[thread];
      }
    }
    length_[thread] += now;
    idle_[thread] = now ? 0 : idle_[thread] + 1;
  }

  const Trace& trace_;
  std::vector<int64_t> kernel_;
  std::map<int32_t, int64_t> asked_;
  int64_t length_[2] = {0, 0}, idle_[2] = {1'000'000, 1'000'000};
  int64_t paused_at_[2] = {-1, -1}, paused_length_[2] = {0, 0};
  int64_t longest_ = 0;
};

TEST(CriticalPath, EqualsTheNaiveTwin) {
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    const Trace trace = random_trace(seed);
    const CriticalPath path = critical_path(trace);
    ASSERT_EQ(path.total_ns / kTick, Naive(trace).ticks()) << "seed " << seed;
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
