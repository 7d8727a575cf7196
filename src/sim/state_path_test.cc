#include "sim/state_path.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

// 70B: 141 GB of weights, 847 GB of optimizer; 16 nodes of 8, storage of 50 and 20 GB/s.
StatePath usual() {
  StatePath p;
  p.nodes = 16;
  p.weights = Bytes(140e9);
  p.optimizer = Bytes(840e9);
  p.weight_copies = 8;
  p.read = Bandwidth(50e9);
  p.write = Bandwidth(20e9);
  p.node = p.ports = Bandwidth(400e9);
  return p;
}

TEST(StatePath, ByHand) {
  const StateTimes t = state_times(usual());
  EXPECT_NEAR(t.copy.v, 980e9 / 128 / 25e9, 1e-12);
  EXPECT_NEAR(t.persist.v, 980e9 / 20e9, 1e-9);
  EXPECT_EQ(t.read.v, 980e9);
  // Read once, 19.6 s; every accelerator lacks seven eighths of its 140 / 16 GB of weights, which
  // come over a port of 50 GB/s.
  EXPECT_NEAR(t.restore.v, 980e9 / 50e9 + 140e9 / 16 * 7 / 8 / 50e9, 1e-9);
  EXPECT_NEAR(t.peer_persist.v, 980e9 / 128 / 50e9, 1e-12);
  EXPECT_NEAR(t.heal.v, (140e9 / 16 + 840e9 / 128) / 50e9, 1e-9);
  EXPECT_EQ(t.starved, 0);
  EXPECT_EQ(t.starves, 0);
}

// Fan-in: where every replica reads, storage serves the weights once for each, so a job of four
// times as many accelerators waits longer; where one copy is read, it does not.
TEST(StatePath, FanInGrowsWithTheJob) {
  StatePath p = usual();
  p.every_replica_reads = true;
  const StateTimes small = state_times(p);
  EXPECT_NEAR(small.read.v, 8 * 140e9 + 840e9, 1);
  EXPECT_NEAR(small.restore.v, (8 * 140e9 + 840e9) / 50e9, 1e-9);
  p.nodes *= 4;
  p.weight_copies *= 4;
  const StateTimes large = state_times(p);
  EXPECT_NEAR(large.restore.v, (32 * 140e9 + 840e9) / 50e9, 1e-9);
  p.every_replica_reads = false;
  EXPECT_LT(state_times(p).restore.v, small.restore.v);
  // A job without sharding has as many optimizers, too.
  p.every_replica_reads = true;
  p.optimizer_copies = 32;
  EXPECT_NEAR(state_times(p).read.v, 32 * 980e9, 1);
}

TEST(StatePath, ANodesOwnWayBinds) {
  StatePath p = usual();
  p.node = Bandwidth(0.5e9);  // eight streams of 60 MB/s
  const StateTimes t = state_times(p);
  EXPECT_NEAR(t.persist.v, 980e9 / 16 / 0.5e9, 1e-9);
  EXPECT_GT(t.restore.v, 980e9 / 16 / 0.5e9);
  // Storage without a figure does not bind at all.
  p.read = p.write = Bandwidth(0);
  EXPECT_NEAR(state_times(p).persist.v, t.persist.v, 1e-9);
}

TEST(StatePath, InputAndSavesShareTheStorage) {
  StatePath p = usual();
  const double alone = state_times(p).persist.v;
  double last = 0;
  for (const double wanted : {0.0, 0.1, 0.4, 0.5, 0.8, 1.0, 1.5}) {
    p.input = Bandwidth(50e9 * wanted);
    const StateTimes t = state_times(p);
    EXPECT_EQ(t.persist_alone.v, alone);
    EXPECT_NEAR(t.persist.v, alone / std::max(0.5, 1 - wanted), 1e-9) << wanted;
    EXPECT_NEAR(t.starved, std::max(0.0, wanted - 1), 1e-12) << wanted;
    // While a save is persisted, half of the storage is left for input.
    EXPECT_NEAR(t.starved + t.starves, std::max(0.0, 2 * wanted - 1), 1e-12) << wanted;
    EXPECT_GE(t.persist.v, last);
    last = t.persist.v;
    EXPECT_EQ(t.restore.v, state_times(usual()).restore.v);  // nobody trains while it is read
  }
}

}  // namespace
}  // namespace assay
