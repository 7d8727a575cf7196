// One scenario for two simulators: nodes compute, then write a shard to shared storage; the
// storage's bandwidth is shared fairly, each flow limited by its own NIC; nodes fail and come back.
// Both simulators draw the same numbers in the same order, so that both must finish the same work.
#pragma once

#include "base/random.h"

namespace assay {

struct FlowScenario {
  int nodes = 512;
  double days = 4;
  double compute_mean_s = 600;
  double shard_bytes = 40e9;
  double nic = 25e9;              // bytes/s, one node
  double storage = 50e9;          // bytes/s, all of it
  double failure_mean_s = 86400;  // of one node in service
  double repair_s = 3600;
};

// The luck of one node: compute times and times to failure, each from its own stream.
struct NodeLuck {
  Stream compute, failure;
  explicit NodeLuck(int node)
      : compute(1, cause_id("compute"), static_cast<uint64_t>(node)),
        failure(1, cause_id("failure"), static_cast<uint64_t>(node)) {}
};

struct FlowOutcome {
  int64_t computes = 0, flows = 0, failures = 0, repairs = 0;
  double cpu_s = 0;
  int64_t events() const { return computes + flows + failures + repairs; }
};

FlowOutcome assay_flows(const FlowScenario&);
FlowOutcome simgrid_flows(const FlowScenario&);  // only where SimGrid is installed

}  // namespace assay
