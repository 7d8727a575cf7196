// Latent attention's heads: what turning them moves, and what making them again spares.
#include <gtest/gtest.h>

#include "perf/layer.h"
#include "world/catalog.h"

namespace assay {
namespace {

// Elements a token of DeepSeek-V3's queries, keys and values; 64 of each head's 192 turn.
constexpr double kQueries = 128 * 192, kKeys = 128 * 192, kValues = 128 * 128, kTurning = 128 * 64;

struct Latent {
  Setting s;
  Plan p;

  Latent() {
    s.workload.model = *find_model(catalog(), "deepseek-v3");
    s.workload.seq = 4096, s.workload.global_batch = 64;
    s.cluster = *find_cluster(catalog(), "h100-64");
    s.stack = *find_stack(catalog(), "megatron-core");
    s.accelerators = 64;
    resolve(s, catalog());
    p = s.stack.defaults;
    p.ep = 8, p.recompute = Recompute::kSelective;
  }
  LayerCost layer() const {
    const Layout l = make_layout(s, p);
    return microbatch_cost(s, p, l, links_of(s)).moe;
  }
};

TEST(Latent, HeadsThatAreMadeAgainAreNotKept) {
  Latent job;
  job.s.stack.selective_attention = 0;
  const LayerCost kept = job.layer();
  job.s.stack.selective_latent = true;
  const LayerCost again = job.layer();
  const double heads = 4096 * (kQueries + kKeys + kValues) * 2;
  EXPECT_NEAR((kept.saved - again.saved).v / heads, 1, 1e-9);
  EXPECT_EQ(kept.again.matmul.v, 0);
  const double flops = 2.0 * 4096 * (1536 * kQueries + 512 * (128 * 128 + kValues));
  EXPECT_NEAR((again.again.matmul_peak.v * 989.4e12) / flops, 1, 1e-3);
  EXPECT_GT(again.again.memory.v, 0);
}

// One kernel turns the positions of queries where they are, another reads what keys and values are
// made of and writes both.
TEST(Latent, FusedKernelsMoveLessThanHalf) {
  Latent job;
  ASSERT_TRUE(job.s.stack.fused_latent);
  const double fused = job.layer().streamed_forward.v;
  job.s.stack.fused_latent = false;
  const double apart = job.layer().streamed_forward.v;
  const double joined = 4 * (kQueries + kKeys);
  const double turned = 2 * kTurning + (128 * 128 + kValues) + kKeys + kValues;
  EXPECT_NEAR(turned / joined, 0.458, 1e-3);
  job.s.workload.seq = 8192;  // as much again of everything that is streamed
  EXPECT_NEAR(job.layer().streamed_forward.v / apart, 2, 0.01);
  EXPECT_LT(fused, apart);
  EXPECT_GT(fused, apart * turned / joined);
}

}  // namespace
}  // namespace assay
