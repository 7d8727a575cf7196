// Other ways to recover from failures, as levers of a run: policies and tiers of checkpoints that
// need the description, since their steps and sizes are predicted anew.
#pragma once

#include "sim/many.h"
#include "sim/spec.h"

namespace assay {

// Elastic replicas (several numbers of them), warm standby instead of elastic replicas, saves to
// the nodes' own disks, and all of good practice at once. Only those that the description allows:
// replicas that hold the state, disks that are stated. Several may have one name: keep_best().
std::vector<Lever> policy_levers(const SpecInput&);

// Of levers with one name the one that gains most; all by what they gain.
void keep_best(std::vector<LeverResult>&);

}  // namespace assay
