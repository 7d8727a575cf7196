#include "diagnose/gain_replay.h"

#include <gtest/gtest.h>

#include "diagnose/gain_whatif.h"

namespace assay {
namespace {

constexpr int64_t kUs = 1000;

// A step of `n` launches, each after `work` us of the host and 5 us in the call, of kernels of
// `kernel` us.
StepGraph plain(int n, int64_t work, int64_t kernel) {
  StepGraph g;
  g.repeats = true;
  g.lanes = 1;
  g.queue_limit = 1024;
  for (int i = 0; i < n; ++i) {
    HostCall call;
    call.kind = CallKind::kLaunch;
    call.work_ns = work * kUs;
    call.call_ns = 5 * kUs;
    call.first_op = i;
    call.ops = 1;
    call.runtime = i;
    g.calls.push_back(call);
    DeviceOp op;
    op.duration_ns = kernel * kUs;
    op.gap_ns = 1 * kUs;
    op.latency_ns = 8 * kUs;
    op.event = i;
    g.ops.push_back(op);
  }
  g.calls.push_back({});
  return g;
}

double us(Seconds s) { return s.v * 1e6; }

TEST(Replay, TheSlowerOfHostAndDeviceSetsThePace) {
  EXPECT_NEAR(us(replay(plain(100, 20, 50))), 100 * 51, 1);  // the device
  EXPECT_NEAR(us(replay(plain(100, 20, 3))), 100 * 25, 1);   // the host
  EXPECT_NEAR(us(replay(plain(100, 20, 3), {0.5})), 100 * 12.5, 1);
}

TEST(Replay, ASynchronisationAddsThem) {
  StepGraph g = plain(10, 20, 50);
  HostCall sync;
  sync.kind = CallKind::kSync;
  sync.wait_lane = kAllLanes;
  sync.return_ns = 5 * kUs;
  g.calls.insert(g.calls.end() - 1, sync);
  // The first kernel starts 20 us of work and 8 us of latency after the host is released; the other
  // nine follow; the host returns 5 us after the last.
  EXPECT_NEAR(us(replay(g)), 20 + 8 + 10 * 50 + 9 * 1 + 5, 1);
  EXPECT_NEAR(us(replay(without_syncs(g))), 10 * 51, 1);
}

TEST(Replay, AFullQueueHoldsTheHost) {
  StepGraph g = plain(100, 1, 50);
  g.queue_limit = 10;
  EXPECT_NEAR(us(replay(g)), 100 * 51, 1);
}

TEST(Replay, AStreamThatWaitsForAnother) {
  StepGraph g = plain(3, 1, 50);
  g.lanes = 2;
  g.ops[1].lane = 1;  // beside the first
  g.ops[2].after = 1;
  g.ops[2].after_ns = 2 * kUs;
  // 0 and 1 start together but for the calls between them; 2 waits for 1.
  EXPECT_NEAR(us(replay(g)), 100 + 2, 8);
  g.ops[1].duration_ns = 10 * kUs;
  EXPECT_NEAR(us(replay(g)), 2 * 51, 2);
}

TEST(Replay, GraphsLeaveTheDeviceAndWhatCannotBeCaptured) {
  EXPECT_NEAR(us(replay(with_graphs(plain(100, 20, 3)))), 100 * 3.3, 25);
  StepGraph g = plain(100, 20, 3);
  g.calls[0].data_ns = 900 * kUs;
  EXPECT_NEAR(us(replay(with_graphs(g))), 900, 25);
  // A launch that took long to arrive is none any more.
  StepGraph late = plain(100, 20, 3);
  late.ops[50].late_ns = 400 * kUs;
  EXPECT_NEAR(us(replay(with_graphs(late))), 100 * 3.3, 25);
}

// Workers that are waited for set the pace: a host that got faster waits longer.
TEST(Replay, LoaderWorkersKeepTheirPace) {
  StepGraph g = plain(100, 20, 3);
  g.calls[0].data_ns = 900 * kUs;
  const Seconds measured(4000e-6);
  EXPECT_NEAR(us(replay(g)), 100 * 25 + 900, 1);
  EXPECT_NEAR(us(replay(paced_by_loader(g, measured))), 4000, 1);
  g.loader_in_process = true;
  EXPECT_NEAR(us(replay(paced_by_loader(g, measured))), 100 * 25 + 900, 1);
  g.loader_in_process = false;
  g.calls[0].data_ns = 100 * kUs;  // less than 3 %: a hiccup
  EXPECT_NEAR(us(replay(paced_by_loader(g, measured))), 100 * 25 + 100, 1);
}

TEST(Replay, TheAllocatorsOwnWorkGoesWithItsCalls) {
  StepGraph g = plain(100, 20, 3);
  for (size_t i : {50u, 51u, 52u}) g.calls[i].kind = CallKind::kAllocate;
  for (size_t i : {50u, 51u, 52u}) g.calls[i].ops = 0;
  // 97 launches, and the work before the first of the three.
  EXPECT_NEAR(us(replay(without_allocation(g))), 97 * 25 + 20, 1);
}

TEST(Replay, AFileThatRanOnce) {
  StepGraph g = plain(10, 1, 50);
  g.repeats = false;
  EXPECT_NEAR(us(replay(g)), 10 * 50 + 9 * 1, 1);
  EXPECT_EQ(us(replay(StepGraph{})), 0);
}

// Waiting for data while the device still works costs nothing.
TEST(Replay, HiddenStallsAreFree) {
  StepGraph g = plain(100, 5, 50);
  g.calls[0].data_ns = 3000 * kUs;
  EXPECT_NEAR(us(replay(g)), 100 * 51, 1);
  g.calls[0].data_ns = 6000 * kUs;
  EXPECT_NEAR(us(replay(g)), 6000 + 100 * 10, 1);
}

}  // namespace
}  // namespace assay
