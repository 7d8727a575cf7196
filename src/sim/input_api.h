// Inference behind an input API of finite bandwidth: request -> fetch of its input -> batcher ->
// one accelerator. Where the latency goes, and why the last ten percent of an API's bandwidth cost
// more than all the others.
//
// Requests arrive at random (Poisson). An input is fetched from the API, one after another at its
// bandwidth, or from one of the nodes of a cache. The batcher sends what waits when `batch_most`
// have come or the oldest has waited `batch_wait`, and never while the accelerator is busy. A batch
// of b takes `gpu_base + b x gpu_per_item`.
#pragma once

#include <cstdint>

#include "base/units.h"

namespace assay {

struct InputApi {
  double requests_per_s = 1;
  Bytes input{8e6};     // mean size of an input
  double input_cv = 1;  // coefficient of variation of sizes (gamma): 0 all alike, 1 exponential
  Bandwidth api{800e6};
  double cached = 0;  // share of inputs that the cache has
  int64_t cache_nodes = 4;
  Bandwidth cache_node{2.5e9};
  int64_t batch_most = 3;
  Seconds batch_wait{5e-3};
  Seconds gpu_base{17.5e-3};
  Seconds gpu_per_item{2.5e-3};
};

struct InputApiResult {
  Seconds mean, p50, p95, p99;
  Seconds fetch, wait, gpu;    // means; they sum to `mean`
  double api_utilisation = 0;  // offered bytes over bandwidth; 1 and above: the queue never ends
  double mean_batch = 0;
};

// `requests` of them, after a tenth as many to warm up. REQUIRES: requests > 0, rates and
// bandwidths positive, batch_most >= 1.
InputApiResult simulate_input_api(const InputApi&, int64_t requests, uint64_t seed);

// Mean wait in front of the API alone (Pollaczek-Khinchine), infinite at and above full load.
Seconds api_queueing(const InputApi&);

}  // namespace assay
