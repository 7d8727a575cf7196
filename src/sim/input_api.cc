#include "sim/input_api.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <vector>

#include "base/assert.h"
#include "base/random.h"
#include "sim/kernel.h"

namespace assay {
namespace {

struct Call {
  Nanoseconds arrived = 0, fetched = 0, sent = 0, done = 0;
};

enum class What : uint8_t { kFetched, kTimer, kFree };
struct Event {
  What what = What::kFetched;
  size_t request = 0;
};
// At one instant a finished batch frees the accelerator before anything else is decided.
constexpr uint8_t kFreeFirst = 0, kThenFetched = 1, kThenTimer = 2;

double input_bytes(const InputApi& s, double u) {
  if (s.input_cv <= 0) return s.input.v;
  if (s.input_cv == 1) return exponential_quantile(u, s.input.v);
  const double shape = 1 / (s.input_cv * s.input_cv);
  return s.input.v * gamma_quantile(u, shape) / shape;
}

// When each request has its input: queues served in the order of arrival need no events.
std::vector<Call> fetch_all(const InputApi& s, size_t count, uint64_t seed) {
  Stream arrivals(seed, cause_id("request"));
  Stream sizes(seed, cause_id("size"));
  Stream hits(seed, cause_id("hit"));
  Stream nodes(seed, cause_id("cache node"));
  std::vector<Call> all(count);
  std::vector<double> node_free(static_cast<size_t>(std::max<int64_t>(s.cache_nodes, 1)), 0);
  double now = 0, api_free = 0;
  for (Call& r : all) {
    now += exponential_quantile(arrivals.uniform(), 1 / s.requests_per_s);
    const double bytes = input_bytes(s, sizes.uniform());
    const bool hit = hits.uniform() < s.cached;
    const size_t node =
        static_cast<size_t>(nodes.uniform() * static_cast<double>(node_free.size()));
    double& free = hit ? node_free[node] : api_free;
    free = std::max(free, now) + bytes / (hit ? s.cache_node : s.api).v;
    r.arrived = to_ns(Seconds(now));
    r.fetched = to_ns(Seconds(free));
  }
  return all;
}

class Batcher {
 public:
  Batcher(const InputApi& s, std::vector<Call>& requests) : spec_(s), requests_(requests) {
    for (size_t i = 0; i < requests.size(); ++i)
      queue_.push(requests[i].fetched, kThenFetched, {What::kFetched, i});
  }

  void run() {
    while (!queue_.empty()) {
      const auto e = queue_.pop();
      if (e.payload.what == What::kFetched) {
        waiting_.push_back(e.payload.request);
        queue_.push(e.time + to_ns(spec_.batch_wait), kThenTimer, {What::kTimer, 0});
      } else if (e.payload.what == What::kFree) {
        busy_ = false;
      }
      send(e.time);
    }
  }
  double mean_batch() const {
    return batches_ == 0 ? 0
                         : static_cast<double>(requests_.size()) / static_cast<double>(batches_);
  }

 private:
  void send(Nanoseconds now) {
    if (busy_ || waiting_.empty()) return;
    const size_t most = static_cast<size_t>(spec_.batch_most);
    const bool full = waiting_.size() >= most;
    const bool late = now - requests_[waiting_.front()].fetched >= to_ns(spec_.batch_wait);
    if (!full && !late) return;
    const size_t size = std::min(most, waiting_.size());
    const Nanoseconds done =
        now + to_ns(spec_.gpu_base + static_cast<double>(size) * spec_.gpu_per_item);
    for (size_t i = 0; i < size; ++i, waiting_.pop_front()) {
      requests_[waiting_.front()].sent = now;
      requests_[waiting_.front()].done = done;
    }
    ++batches_;
    busy_ = true;
    queue_.push(done, kFreeFirst, {What::kFree, 0});
  }

  const InputApi& spec_;
  std::vector<Call>& requests_;
  EventQueue<Event> queue_;
  std::deque<size_t> waiting_;
  bool busy_ = false;
  int64_t batches_ = 0;
};

}  // namespace

InputApiResult simulate_input_api(const InputApi& s, int64_t requests, uint64_t seed) {
  ASSERT(requests > 0 && s.requests_per_s > 0 && s.api.v > 0 && s.batch_most >= 1);
  const size_t warm = static_cast<size_t>(requests / 10);
  std::vector<Call> all = fetch_all(s, warm + static_cast<size_t>(requests), seed);
  Batcher batcher(s, all);
  batcher.run();

  InputApiResult result;
  std::vector<double> latency;
  latency.reserve(static_cast<size_t>(requests));
  for (size_t i = warm; i < all.size(); ++i) {
    const Call& r = all[i];
    result.fetch += to_seconds(r.fetched - r.arrived);
    result.wait += to_seconds(r.sent - r.fetched);
    result.gpu += to_seconds(r.done - r.sent);
    latency.push_back(to_seconds(r.done - r.arrived).v);
  }
  const double n = static_cast<double>(requests);
  result.fetch /= n, result.wait /= n, result.gpu /= n;
  result.mean = result.fetch + result.wait + result.gpu;
  std::sort(latency.begin(), latency.end());
  const auto quantile = [&](double q) {
    return Seconds(latency[std::min(latency.size() - 1, static_cast<size_t>(q * n))]);
  };
  result.p50 = quantile(0.50), result.p95 = quantile(0.95), result.p99 = quantile(0.99);
  result.api_utilisation = s.requests_per_s * (1 - s.cached) * (s.input / s.api).v;
  result.mean_batch = batcher.mean_batch();
  return result;
}

Seconds api_queueing(const InputApi& s) {
  const double service = (s.input / s.api).v;
  const double load = s.requests_per_s * (1 - s.cached) * service;
  if (load >= 1) return Seconds(std::numeric_limits<double>::infinity());
  return Seconds(load * service * (1 + s.input_cv * s.input_cv) / (2 * (1 - load)));
}

}  // namespace assay
