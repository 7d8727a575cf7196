// What could be changed at a site, as levers of a run: each is the run with other hours.
#pragma once

#include "sim/many.h"
#include "sim/spec.h"
#include "site/facility.h"

namespace assay {

// A chiller for hot hours, a pump that is told ahead, a larger contract; only those that change an
// hour. REQUIRES: `input` with its site and series.
std::vector<Lever> site_levers(const SpecInput& input, const FacilityOptions&);

}  // namespace assay
