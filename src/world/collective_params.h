// Parameters of the collectives model (src/perf/collective.h): a communication library on a kind of
// link. One entry of catalog/collectives.yaml per link generation (`nvlink4`, `xgmi3`, `pcie5`) and
// per kind of fabric (`infiniband`, `efa`). docs/models/collectives.md has the equations in which
// they stand. The defaults are those of `generic-scaleup`.
#pragma once

#include "world/fields.h"

namespace assay {

struct CollectiveParams {
  std::string name;

  // Ring and tree algorithms. A step is one hop of one chunk to the neighbour.
  double bus_efficiency = 0.8;  // Simple protocol, large messages, of the nominal bandwidth
  Seconds base_latency{6e-6};   // launch and first synchronisation, once
  Seconds ll_step{0.9e-6};      // one step, LL: flag and data in the same 8-byte store
  double ll_cost = 8;           // stream time with LL over stream time with Simple
  Seconds ll128_step{1.3e-6};   // one step, LL128: flag in every 128-byte line
  double ll128_cost = 2;
  Seconds simple_step{2e-6};    // one step, Simple: bulk stores, then a fence and a flag
  double copy_cost = 0.5;       // local copy of one byte over moving one at nominal bandwidth
  Seconds fill_latency{40e-6};  // Simple: longest time to fill the pipeline with full chunks
  Seconds fill_scale{60e-6};    // stream time at which half of that is reached
  double group_slowdown = 0;    // shared links: extra stream time of a very large group

  // Direct algorithms: all-to-all and send/receive.
  Seconds direct_latency{7e-6};     // launch and first synchronisation
  Seconds direct_step{0.3e-6};      // each further peer
  Seconds direct_simple{6e-6};      // extra synchronisation once the message is too big for LL
  double direct_efficiency = 0.75;  // large messages, of the nominal bandwidth

  // Reduction inside the switch (NVLink SHARP; SHARP on a fabric).
  int64_t in_switch_ranks = 0;  // smallest group that uses it; zero: there is none
  Seconds in_switch_latency{20e-6};
  Seconds in_switch_fill{40e-6};      // as fill_latency
  double in_switch_efficiency = 0.6;  // message bytes over time, of the nominal bandwidth
};

template <class T, class V>
  requires std::is_same_v<std::remove_const_t<T>, CollectiveParams>
void fields(T& c, V&& visit) {
  constexpr Limits kEfficiency{0.001, 2};
  visit("bus_efficiency", c.bus_efficiency, kEfficiency, "large messages, of nominal bandwidth");
  visit("base_latency", c.base_latency, kNotNegative, "launch and first synchronisation");
  visit("ll_step", c.ll_step, kNotNegative, "one step with the LL protocol");
  visit("ll_cost", c.ll_cost, Limits{1, 1000}, "stream time with LL over that with Simple");
  visit("ll128_step", c.ll128_step, kNotNegative, "one step with the LL128 protocol");
  visit("ll128_cost", c.ll128_cost, Limits{1, 1000}, "stream time with LL128 over Simple's");
  visit("simple_step", c.simple_step, kNotNegative, "one step with the Simple protocol");
  visit("copy_cost", c.copy_cost, Limits{0, 10}, "local copy of a byte over moving one");
  visit("fill_latency", c.fill_latency, kNotNegative, "longest fill of the Simple pipeline");
  visit("fill_scale", c.fill_scale, kPositive, "stream time at which half the fill is reached");
  visit("group_slowdown", c.group_slowdown, Limits{0, 100}, "extra stream time of large groups");
  visit("direct_latency", c.direct_latency, kNotNegative, "start of an all-to-all or a send");
  visit("direct_step", c.direct_step, kNotNegative, "each further peer of an all-to-all");
  visit("direct_simple", c.direct_simple, kNotNegative, "extra synchronisation beyond LL's sizes");
  visit("direct_efficiency", c.direct_efficiency, kEfficiency, "all-to-all, of nominal bandwidth");
  visit("in_switch_ranks", c.in_switch_ranks, kCountOrZero, "smallest group reduced in the switch");
  visit("in_switch_latency", c.in_switch_latency, kNotNegative, "start of an in-switch reduction");
  visit("in_switch_fill", c.in_switch_fill, kNotNegative, "longest fill of its pipeline");
  visit("in_switch_efficiency", c.in_switch_efficiency, kEfficiency,
        "message over time, of nominal");
}

}  // namespace assay
