// The clock that a step can hold: kernels draw power by kind, the limit and the coolant say how
// much may be drawn. docs/models/clocks.md.
#pragma once

#include "perf/layer.h"

namespace assay {

struct HeldClock {
  double clock = 1;    // held over burst clock, as cooled
  double cool = 1;     // the same with coolant at the reference temperature: the power limit alone
  double draw = 0;     // mean power drawn above idle, of (tdp - idle)
  double waiting = 0;  // the same where the device waits
};

// Standard deviation of the draw among parts of a kind, of its mean. Under the cap speed goes with
// its 2.4th root: 1.5 % among 48 B200 in six nodes, 1.6 % among 129 V100, 0.1 % where no cap binds
// (test/data/public_parts.csv, docs/models/clocks.md).
inline constexpr double kDrawSpread = 0.035;

// What the part that draws the most of `n` draws for the same work, over the mean of them: it holds
// the lowest clock, and the others wait for it.
double worst_draw(int64_t n);

// What a matmul draws at its precision's peak, of what one in bf16 does.
double precision_draw(Precision, const Kernels&);

// For device kernels `p` (forward and backward together) out of `total` seconds.
HeldClock held_clock(const Setting&, Precision, const PassCost& p, double total);

}  // namespace assay
