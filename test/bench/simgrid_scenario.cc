// The same scenario on SimGrid: one actor a node, flows to one storage host over a star of links.
// Failures are time-outs of what the actor waits for, the cheapest way SimGrid has (no host is
// turned off, no actor restarted).
#include <fmt/format.h>
#include <simgrid/s4u.hpp>

#include "cpu_time.h"
#include "flow_scenario.h"

namespace sg4 = simgrid::s4u;

namespace assay {
namespace {

class NodeActor {
 public:
  NodeActor(int node, const FlowScenario& s, sg4::Host* storage, FlowOutcome& out)
      : luck_(node), s_(s), storage_(storage), out_(out) {}

  void operator()() {
    for (;;) {
      fails_at_ = sg4::Engine::get_clock() +
                  exponential_quantile(luck_.failure.uniform(), s_.failure_mean_s);
      while (compute() && flow()) {
      }
      ++out_.failures;
      sg4::this_actor::sleep_for(s_.repair_s);
      ++out_.repairs;
    }
  }

 private:
  double left() const { return std::max(0.0, fails_at_ - sg4::Engine::get_clock()); }

  bool compute() {
    const double wanted = exponential_quantile(luck_.compute.uniform(), s_.compute_mean_s);
    const bool lives = wanted < left();
    sg4::this_actor::sleep_for(std::min(wanted, left()));
    if (lives) ++out_.computes;
    return lives;
  }

  bool flow() {
    sg4::CommPtr comm = sg4::Comm::sendto_async(sg4::this_actor::get_host(), storage_,
                                                static_cast<uint64_t>(s_.shard_bytes));
    try {
      comm->wait_for(left());
    } catch (const simgrid::TimeoutException&) {
      comm->cancel();
      return false;
    }
    ++out_.flows;
    return true;
  }

  NodeLuck luck_;
  const FlowScenario& s_;
  sg4::Host* storage_;
  FlowOutcome& out_;
  double fails_at_ = 0;
};

}  // namespace

FlowOutcome simgrid_flows(const FlowScenario& s) {
  std::string name = "sim_bench", quiet = "--log=root.threshold:warning";
  char* argv[] = {name.data(), quiet.data(), nullptr};
  int argc = 2;
  sg4::Engine engine(&argc, argv);
  sg4::Engine::set_config("network/model:CM02");
  sg4::Engine::set_config("network/crosstraffic:0");
  sg4::NetZone* zone = sg4::create_star_zone("cluster");
  const auto add = [&](const std::string& host, double bandwidth) {
    sg4::Host* h = zone->create_host(host, 1e9);
    sg4::Link* link = zone->create_link(host + "-link", bandwidth)->set_latency(0)->seal();
    zone->add_route(h->get_netpoint(), nullptr, nullptr, nullptr,
                    {{link, sg4::LinkInRoute::Direction::NONE}}, true);
    return h;
  };
  sg4::Host* storage = add("storage", s.storage);
  std::vector<sg4::Host*> hosts;
  for (int n = 0; n < s.nodes; ++n) hosts.push_back(add(fmt::format("node-{}", n), s.nic));
  zone->seal();
  FlowOutcome out;
  const double begin = cpu_s();
  for (int n = 0; n < s.nodes; ++n) {
    sg4::Actor::create("node", hosts[static_cast<size_t>(n)], NodeActor(n, s, storage, out))
        ->daemonize();
  }
  // Daemons end with the last actor that is none.
  sg4::Actor::create("clock", storage, [&] { sg4::this_actor::sleep_for(s.days * 86400); });
  engine.run();
  out.cpu_s = cpu_s() - begin;
  return out;
}

}  // namespace assay
