// What an operator could change about a run, one thing at a time, as settings of its description.
//
// A lever is the settings that a person would add to the command line, and the run that the
// description makes of them: what is shown is what was simulated, and what pasting it gives.
#pragma once

#include "sim/many.h"
#include "sim/spec.h"

namespace assay {

// The run with these settings (`run.spares=16`, `site.storage.read=100GB/s`) laid over; nothing
// where they cannot be: replicas that do not hold the state, say.
std::optional<RunSpec> spec_with(const SpecInput&, const std::vector<std::string>& settings);

// Spares, detection, recovery (elastic replicas in several numbers), checkpoints and their tiers,
// storage, slow nodes, jitter, input; and all of good practice at once. Only those that change this
// run and that its description allows. Several may have one name: keep_best().
std::vector<Lever> run_levers(const SpecInput&);

// Of levers with one name the one that gains most; all by what they gain.
void keep_best(std::vector<LeverResult>&);

}  // namespace assay
