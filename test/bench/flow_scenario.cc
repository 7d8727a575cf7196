#include "flow_scenario.h"

#include "cpu_time.h"
#include "sim/kernel.h"

namespace assay {
namespace {

// Flows of equal size limits share a link equally: rate = min(nic, storage / n). In the time of a
// single flow's progress ("virtual bytes") every flow ends at start + size, so the order of endings
// never changes and one pending event is enough.
class FlowSimulation {
 public:
  explicit FlowSimulation(const FlowScenario& s) : s_(s) {
    for (int n = 0; n < s.nodes; ++n) nodes_.push_back({NodeLuck(n)});
  }

  FlowOutcome run() {
    const double begin = cpu_s();
    const Nanoseconds end = to_ns(Seconds(s_.days * 86400));
    for (int n = 0; n < s_.nodes; ++n) {
      start_life(n);
      start_compute(n);
    }
    while (!queue_.empty() && queue_.top().time < end) {
      const auto e = queue_.pop();
      now_ = e.time;
      dispatch(e.payload);
    }
    out_.cpu_s = cpu_s() - begin;
    return out_;
  }

 private:
  enum class Kind : uint8_t { kFlow, kCompute, kFailure, kRepair };
  struct Event {
    Kind kind;
    int node;
    uint32_t generation;
  };
  struct Node {
    NodeLuck luck;
    uint32_t generation = 0;  // of what it does
    bool flowing = false;
  };

  void push(Nanoseconds delay, Kind kind, int node, uint32_t generation) {
    queue_.push(now_ + delay, static_cast<uint8_t>(kind), {kind, node, generation});
  }
  void start_life(int n) {
    const double u = nodes_[static_cast<size_t>(n)].luck.failure.uniform();
    push(to_ns(Seconds(exponential_quantile(u, s_.failure_mean_s))), Kind::kFailure, n, 0);
  }
  void start_compute(int n) {
    Node& node = nodes_[static_cast<size_t>(n)];
    const double u = node.luck.compute.uniform();
    push(to_ns(Seconds(exponential_quantile(u, s_.compute_mean_s))), Kind::kCompute, n,
         ++node.generation);
  }

  double rate() const {
    return std::min(s_.nic, s_.storage / static_cast<double>(std::max(1, flowing_)));
  }
  void advance() {  // virtual bytes up to now
    virtual_ += rate() * static_cast<double>(now_ - virtual_at_) * 1e-9;
    virtual_at_ = now_;
  }
  void start_flow(int n) {
    advance();
    Node& node = nodes_[static_cast<size_t>(n)];
    node.flowing = true;
    ++flowing_;
    ++node.generation;
    ends_.push(static_cast<Nanoseconds>(virtual_ + s_.shard_bytes), 0,
               {Kind::kFlow, n, node.generation});
    schedule_end();
  }
  void leave_flow(int n) {
    nodes_[static_cast<size_t>(n)].flowing = false;
    --flowing_;
  }
  void schedule_end() {
    while (!ends_.empty() && stale(ends_.top().payload)) ends_.pop();
    ++end_generation_;
    if (ends_.empty()) return;
    const double left = std::max(0.0, static_cast<double>(ends_.top().time) - virtual_);
    push(static_cast<Nanoseconds>(left / rate() * 1e9), Kind::kFlow, -1, end_generation_);
  }
  bool stale(const Event& e) const {
    const Node& node = nodes_[static_cast<size_t>(e.node)];
    return !node.flowing || node.generation != e.generation;
  }

  void dispatch(const Event& e) {
    switch (e.kind) {
      case Kind::kFlow: {
        if (e.generation != end_generation_) return;
        advance();
        const int n = ends_.pop().payload.node;
        leave_flow(n);
        ++out_.flows;
        start_compute(n);
        return schedule_end();
      }
      case Kind::kCompute:
        if (nodes_[static_cast<size_t>(e.node)].generation != e.generation) return;
        ++out_.computes;
        return start_flow(e.node);
      case Kind::kFailure: {
        Node& node = nodes_[static_cast<size_t>(e.node)];
        ++out_.failures;
        ++node.generation;
        push(to_ns(Seconds(s_.repair_s)), Kind::kRepair, e.node, 0);
        if (!node.flowing) return;
        advance();
        leave_flow(e.node);
        return schedule_end();
      }
      case Kind::kRepair:
        ++out_.repairs;
        start_life(e.node);
        return start_compute(e.node);
    }
  }

  const FlowScenario& s_;
  std::vector<Node> nodes_;
  EventQueue<Event> queue_, ends_;  // by time; by virtual bytes
  Nanoseconds now_ = 0, virtual_at_ = 0;
  double virtual_ = 0;
  int flowing_ = 0;
  uint32_t end_generation_ = 0;
  FlowOutcome out_;
};

}  // namespace

FlowOutcome assay_flows(const FlowScenario& s) { return FlowSimulation(s).run(); }

}  // namespace assay
