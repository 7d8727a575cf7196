#include "ingest/breakdown.h"
#include "ingest/test_random.h"

#include <gtest/gtest.h>

#include <set>

namespace assay {
namespace {

// The naive twin: every boundary cuts time into pieces, and each piece asks every event whether it
// covers it.
Breakdown naive(const Trace& t) {
  Breakdown b;
  std::set<int64_t> points;
  std::set<std::pair<int32_t, int32_t>> streams;
  for (const DeviceEvent& e : t.device) {
    streams.insert({e.device, e.stream});
    e.kind == DeviceKind::kKernel ? ++b.kernels : ++b.copies;
    if (e.role == Role::kCommunication) ++b.communication_kernels;
    if (e.duration_ns < 0) {
      ++b.negative_durations;
      continue;
    }
    points.insert(e.start_ns);
    points.insert(e.start_ns + e.duration_ns);
    (e.role == Role::kCompute         ? b.compute_sum_ns
     : e.role == Role::kCommunication ? b.communication_sum_ns
                                      : b.memory_sum_ns) += e.duration_ns;
  }
  b.streams = static_cast<int64_t>(streams.size());
  if (points.empty()) return b;
  b.start_ns = *points.begin();
  b.end_ns = *points.rbegin();
  b.span_ns = b.end_ns - b.start_ns;
  for (auto it = points.begin(); std::next(it) != points.end(); ++it) {
    const int64_t length = *std::next(it) - *it;
    bool compute = false, communication = false, memory = false;
    for (const DeviceEvent& e : t.device) {
      if (e.duration_ns < 0 || e.start_ns > *it || e.start_ns + e.duration_ns <= *it) continue;
      compute = compute || e.role == Role::kCompute;
      communication = communication || e.role == Role::kCommunication;
      memory = memory || e.role == Role::kMemory;
    }
    if (compute) b.compute_ns += length;
    if (communication) b.communication_ns += length;
    if (memory) b.memory_ns += length;
    if (compute && communication) b.overlapped_communication_ns += length;
    if (communication && !compute) b.exposed_communication_ns += length;
    if (memory && !compute && !communication) b.exposed_memory_ns += length;
    if (compute || communication || memory) b.busy_ns += length;
  }
  b.idle_ns = b.span_ns - b.busy_ns;
  return b;
}

void expect_equal(const Breakdown& a, const Breakdown& b) {
  EXPECT_EQ(a.start_ns, b.start_ns);
  EXPECT_EQ(a.end_ns, b.end_ns);
  EXPECT_EQ(a.span_ns, b.span_ns);
  EXPECT_EQ(a.busy_ns, b.busy_ns);
  EXPECT_EQ(a.idle_ns, b.idle_ns);
  EXPECT_EQ(a.compute_ns, b.compute_ns);
  EXPECT_EQ(a.communication_ns, b.communication_ns);
  EXPECT_EQ(a.memory_ns, b.memory_ns);
  EXPECT_EQ(a.overlapped_communication_ns, b.overlapped_communication_ns);
  EXPECT_EQ(a.exposed_communication_ns, b.exposed_communication_ns);
  EXPECT_EQ(a.exposed_memory_ns, b.exposed_memory_ns);
  EXPECT_EQ(a.compute_sum_ns, b.compute_sum_ns);
  EXPECT_EQ(a.communication_sum_ns, b.communication_sum_ns);
  EXPECT_EQ(a.memory_sum_ns, b.memory_sum_ns);
  EXPECT_EQ(a.kernels, b.kernels);
  EXPECT_EQ(a.copies, b.copies);
  EXPECT_EQ(a.communication_kernels, b.communication_kernels);
  EXPECT_EQ(a.streams, b.streams);
  EXPECT_EQ(a.negative_durations, b.negative_durations);
}

// Starts crowd together so that ties, touching ends and full covers all happen.
Trace random_trace(TestRandom& random, int64_t events) {
  Trace t;
  for (int64_t i = 0; i < events; ++i) {
    DeviceEvent e;
    e.start_ns = 1'700'000'000'000'000'000 + random.below(60);
    e.duration_ns = random.below(12) - 1;
    e.device = static_cast<int32_t>(random.below(2));
    e.stream = static_cast<int32_t>(random.below(3));
    e.role = static_cast<Role>(random.below(3));
    e.kind = e.role == Role::kMemory ? DeviceKind::kCopy : DeviceKind::kKernel;
    t.device.push_back(e);
  }
  std::stable_sort(t.device.begin(), t.device.end(),
                   [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; });
  return t;
}

TEST(Breakdown, EqualsTheNaiveTwin) {
  TestRandom random(42);
  for (int64_t i = 0; i < 3000; ++i) {
    const Trace t = random_trace(random, i % 20);
    expect_equal(breakdown(t), naive(t));
  }
}

TEST(Breakdown, AWindowCutsEventsAtItsEdges) {
  TestRandom random(42);
  for (int i = 0; i < 1000; ++i) {
    const Trace t = random_trace(random, 15);
    const int64_t from = 1'700'000'000'000'000'000 + random.below(60);
    const int64_t to = from + 1 + random.below(30);
    Trace cut;
    for (DeviceEvent e : t.device) {
      const int64_t end = e.start_ns + e.duration_ns;
      if (e.start_ns >= to || end <= from) continue;
      if (e.duration_ns >= 0) {
        e.start_ns = std::max(e.start_ns, from);
        e.duration_ns = std::min(end, to) - e.start_ns;
      }
      cut.device.push_back(e);
    }
    expect_equal(breakdown(t, from, to), naive(cut));
  }
}

TEST(Breakdown, NothingRan) {
  const Breakdown b = breakdown(Trace());
  EXPECT_EQ(b.span_ns, 0);
  EXPECT_EQ(b.idle_ns, 0);
  EXPECT_EQ(b.streams, 0);
}

TEST(Breakdown, ExtremesDoNotOverflow) {
  Trace t;
  DeviceEvent e;
  for (int i = 0; i < 20; ++i) {
    e.start_ns = i == 0 ? -4'000'000'000'000'000'000 : 4'000'000'000'000'000'000;
    e.duration_ns = 1'000'000'000'000'000'000;
    t.device.push_back(e);
  }
  const Breakdown b = breakdown(t);
  EXPECT_EQ(b.span_ns, 9'000'000'000'000'000'000);
  EXPECT_EQ(b.busy_ns, 2'000'000'000'000'000'000);
  EXPECT_EQ(b.compute_sum_ns, INT64_MAX);
}

TEST(Intervals, GapsAreWhatIsLeft) {
  const Intervals left = gaps({{10, 20}, {30, 40}}, 5, 35);
  ASSERT_EQ(left.size(), 2u);
  EXPECT_EQ(left[0].start_ns, 5);
  EXPECT_EQ(left[0].end_ns, 10);
  EXPECT_EQ(left[1].start_ns, 20);
  EXPECT_EQ(left[1].end_ns, 30);
  EXPECT_TRUE(gaps({}, 5, 5).empty());
  EXPECT_EQ(length_ns(gaps({}, 5, 9)), 4);
}

// Once quadratic: minutes for a file of a few megabytes.
TEST(Breakdown, AStreamForEveryKernel) {
  Trace trace;
  for (int32_t i = 0; i < 200'000; ++i) {
    DeviceEvent e;
    e.start_ns = 10 * i;
    e.duration_ns = 5;
    e.device = i % 1000;
    e.stream = i;
    trace.device.push_back(e);
  }
  EXPECT_EQ(breakdown(trace).streams, 200'000);
}

}  // namespace
}  // namespace assay
