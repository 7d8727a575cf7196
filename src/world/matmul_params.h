// Parameters of the matmul model (src/perf/matmul.h), one set per architecture.
#pragma once

#include "world/fields.h"

namespace assay {

struct MatmulParams {
  double efficiency = 0.8;  // of the dense peak, large aligned shapes, burst clocks
};

template <class T, class V>
  requires std::is_same_v<std::remove_const_t<T>, MatmulParams>
void fields(T& m, V&& visit) {
  visit("efficiency", m.efficiency, kFraction, "of the dense peak, large aligned shapes");
}

}  // namespace assay
