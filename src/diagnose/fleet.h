// A fleet judged by its own distribution: nodes, links and runs against their peers.
//
// Fixed thresholds are blind (75 % of a data sheet lets a link at half its speed pass) and wrong
// from one site to the next. Healthy nodes of one kind differ by some 0.4 %, so one that is 3 %
// below the median of its peers is suspect, if it also lies outside the fleet's own scatter. And a
// fleet may have two modes, each of them tight: then no single value is an outlier, and the test
// for two modes finds them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "diagnose/finding.h"
#include "diagnose/robust.h"
#include "ingest/nccl_tests.h"
#include "ingest/topo.h"

namespace assay {

// Suspect below the median by more than this. Ten GCP H200 nodes spread by 0.4 %, eight Oracle H100
// by 0.4 %, five Supermicro H100 by 0.2 % (nccl-tests beside submissions to MLPerf:
// mlcommons/training_results_v5.0, Google; training_results_v4.0, Oracle and smc).
constexpr double kSuspectShare = 0.03;
// And by more than this many robust standard deviations (Iglewicz and Hoaglin, 1993).
constexpr double kSuspectSigmas = 3.5;

struct FleetMember {
  std::string name;  // `a3-u07`, `run 3`
  double value = 0;  // larger is better
};

struct FleetVerdict {
  double median = 0, sigma = 0;
  std::vector<size_t> suspects;   // the worst first
  std::optional<TwoModes> modes;  // apart by kSuspectShare at least
};

// At least three members, or there are no peers and no suspects.
FleetVerdict judge_fleet(const std::vector<FleetMember>&);

// nccl-tests of one kind against each other: the same collective, GPUs, size and type. Also what a
// single test says by itself: wrong values, failures.
Analysis diagnose_nccl_tests(const std::vector<NcclTests>&);

// Asymmetries inside a node: a GPU with fewer NVLinks or a narrower PCIe link than its peers.
Analysis diagnose_topologies(const std::vector<Topology>&);

}  // namespace assay
