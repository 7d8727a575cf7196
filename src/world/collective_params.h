// Parameters of the collectives model (src/perf/collective.h): a communication library on a kind of
// link. One entry of catalog/collectives.yaml per library and link generation.
#pragma once

#include "world/fields.h"

namespace assay {

struct CollectiveParams {
  std::string name;
  double bus_efficiency = 0.8;   // large messages, of the link's nominal bandwidth
  Seconds base_latency{10e-6};
};

template <class T, class V>
  requires std::is_same_v<std::remove_const_t<T>, CollectiveParams>
void fields(T& c, V&& visit) {
  visit("bus_efficiency", c.bus_efficiency, Limits{0, 2}, "large messages, of nominal bandwidth");
  visit("base_latency", c.base_latency, kNotNegative, "smallest message");
}

}  // namespace assay
