// What a node draws: the one model of power that plans, sites and bills use.
// docs/models/power-and-cooling.md.
#pragma once

#include "world/cluster.h"

namespace assay {

// Of one node, at the rack's busbar: the host and its accelerators, at most the nameplate.
// Nameplate and idle are as stated, else from published ratios.
struct NodePower {
  Watts training, idle, nameplate;
  bool nameplate_stated = false, idle_stated = false;
};

// `accelerator` is what one of them draws in the step that runs (Prediction::power); zero where no
// step is known: what they usually draw in training.
NodePower node_power(const Cluster&, Watts accelerator = Watts(0));

}  // namespace assay
