// What is assumed of a site that does not say, and what is refused although every value is within
// its limits: lists of the wrong length, dates without prices, a setpoint that no plant can hold.
#pragma once

#include "world/rules.h"

namespace assay {

// Contradictions of a site that was read from `value`, each at its own place.
void check_site(const Site&, const Value& value, Diagnostics&);

// Fills tariff, tier, plant and price where nothing is said. REQUIRES: check_site found nothing.
void complete_site(Site&, const Catalog&, Assumptions&);

// A date as `2026`, `2026-08` or `2026-08-22`.
bool is_date(const std::string&);

}  // namespace assay
