#include "sim/input_api.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

// An input API of 800 MB/s: 35 -> 220 -> 42 ms, as published. The middle figure implies the arrival
// rate: 220 ms less 44 ms of batching and compute is what Pollaczek-Khinchine gives at 94.3 %.
InputApi loaded() {
  InputApi s;
  s.requests_per_s = 94.3;
  return s;
}

constexpr int64_t kRequests = 400'000;

TEST(InputApi, LightLoadIsFetchPlusWaitPlusCompute) {
  InputApi s;
  const InputApiResult r = simulate_input_api(s, 20'000, 1);
  EXPECT_NEAR(r.mean.v, 35.2e-3, 0.6e-3);
  EXPECT_NEAR(r.fetch.v, 10.1e-3, 0.3e-3);
  EXPECT_NEAR((r.fetch + r.wait + r.gpu - r.mean).v, 0, 1e-12);
}

TEST(InputApi, NinetyFourPercentOfTheApiIsSixTimesSlower) {
  const InputApiResult r = simulate_input_api(loaded(), kRequests, 1);
  EXPECT_NEAR(r.api_utilisation, 0.943, 1e-9);
  // The mean of a queue at this load converges slowly: 8 % is about two standard errors here.
  EXPECT_NEAR(r.mean.v, 220e-3, 0.08 * 220e-3);
  InputApi light = loaded();
  light.requests_per_s = 1;
  EXPECT_GT(r.mean.v, 5 * simulate_input_api(light, 20'000, 1).mean.v);
}

TEST(InputApi, CacheAndBatcherTakeTheCauseAway) {
  InputApi s = loaded();
  s.cached = 0.8;
  s.batch_most = 8;
  s.batch_wait = Seconds(2e-3);
  EXPECT_NEAR(simulate_input_api(s, kRequests, 1).mean.v, 42.1e-3, 0.03 * 42.1e-3);
  // The batcher alone cannot: the queue is in front of the API.
  s.cached = 0;
  EXPECT_GT(simulate_input_api(s, kRequests, 1).mean.v, 180e-3);
  // A faster API does, without a cache.
  s.api = Bandwidth(1.6e9);
  EXPECT_LT(simulate_input_api(s, kRequests, 1).mean.v, 50e-3);
}

TEST(InputApi, AgreesWithPollaczekKhinchine) {
  for (const double cv : {0.0, 1.0}) {
    for (const double rate : {30.0, 60.0, 85.0}) {
      InputApi s;
      s.requests_per_s = rate;
      s.input_cv = cv;
      const double fetch = simulate_input_api(s, kRequests, 7).fetch.v;
      EXPECT_NEAR(fetch, api_queueing(s).v + (s.input / s.api).v, 0.04 * fetch) << cv << rate;
    }
  }
}

TEST(InputApi, MoreBandwidthIsNeverSlower) {
  InputApi s = loaded();
  double before = 1e9;
  for (const double bandwidth : {800e6, 900e6, 1.2e9, 2.4e9}) {
    s.api = Bandwidth(bandwidth);
    const double mean = simulate_input_api(s, 50'000, 3).fetch.v;
    EXPECT_LE(mean, before);
    before = mean;
  }
}

TEST(InputApi, SameSeedSameBytes) {
  const InputApiResult a = simulate_input_api(loaded(), 10'000, 5);
  const InputApiResult b = simulate_input_api(loaded(), 10'000, 5);
  EXPECT_EQ(a.mean.v, b.mean.v);
  EXPECT_EQ(a.p99.v, b.p99.v);
}

}  // namespace
}  // namespace assay
