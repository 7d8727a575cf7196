// At clock f the energy a step draws above idle, in units of (tdp - idle) x seconds, is
//
//     cores f^a + rest        a = power_exponent - 1, since time stretches by 1/f
//
// with cores the matmuls (by the share of peak they reach) and attention at burst clocks, rest the
// memory-bound kernels and waiting. It may not exceed the budget over the step's time, work/f +
// other. If burst clocks (f = 1) are within the budget they are held; else f is where both sides
// meet, found by Newton's method.
//
// Parts of one kind differ: for the same work at the same clock some draw more, and the one that
// draws the most holds the lowest clock. All others wait for it in the next collective, so the step
// runs at the clock of the worst of n parts.
//
// Heat enters twice. Leakage: under the cap, every kelvin of warmer coolant costs 0.11 % of speed
// (measured on the H200 at 55-59 C junction, test/data/telemetry/h200_thermal.csv.gz). And a cooler
// that is designed to hold the limit at a rise of 52 K reaches the slow-down temperature, 87 C on
// NVIDIA's data-centre parts, when the coolant is above 35 C; from there on the budget shrinks with
// the rise that is left.
#include "perf/clocks.h"

#include <algorithm>
#include <cmath>

namespace assay {
namespace {

constexpr double kReferenceCoolant = 25;    // C, at which the constants were fitted
constexpr double kSpeedPerKelvin = 0.0011;  // lost per kelvin, only under the cap
constexpr double kSlowdown = 87;            // C, junction (docs/models/heat.md: limits)
constexpr double kRiseAtLimit = 52;         // K, junction over coolant at the power limit
constexpr int kClockSteps = 4;              // from 1, four Newton steps leave less than 1e-6
constexpr double kLeastClock = 0.3;
// Attention draws with the share of the peak that it reaches, and this much at none: eight cases of
// two kernels held on one H200 at 0.25 to 0.69 of it (test/data/h200_waits.csv).
constexpr double kAttentionBase = 0.4;
// Unfused scores stream through memory as fast as it goes, as long vectors do (587 W on the H200);
// a layer's norms, activations and sums draw three quarters of that above idle (449 to 488 W: four
// models eager against compiled, test/data/h200_small_models.csv), which is `power_memory`.
constexpr double kStreaming = 4.0 / 3;

struct Draw {
  double cores, rest;  // energy above idle at burst clocks
  double work, other;  // seconds that stretch with the clock, and that do not
  double exponent;
};

double solve_clock(const Draw& d, double budget) {
  if (d.cores + d.rest <= budget * (d.work + d.other)) return 1;
  double f = 1;
  for (int i = 0; i < kClockSteps; ++i) {
    const double power = f == 1 ? d.cores : d.cores * std::pow(f, d.exponent);
    const double over = power + d.rest - budget * (d.work / f + d.other);
    f -= over / (d.exponent * power / f + budget * d.work / (f * f));
    f = std::clamp(f, kLeastClock, 1.0);
  }
  return f;
}

// What the mean part draws, which does the same work at its own clock and waits for the worst one.
double mean_draw(Draw d, double cores, double worst_clock, double waiting) {
  if (worst_clock >= 1) return (cores + d.rest) / (d.work + d.other);
  if (cores >= d.cores) return 1;  // it is the worst one
  d.cores = cores;
  const double own = solve_clock(d, 1);
  const double time = d.work / worst_clock + d.other;
  const double wait = d.work * (1 / worst_clock - 1 / own);
  const double busy = own < 1 ? time - wait : cores + d.rest;  // under the cap it draws all of it
  return (busy + wait * waiting) / time;
}

}  // namespace

// Vector arithmetic draws less than tensor cores at their own peak: a held fp32 matmul keeps the
// burst clock on the H200 (test/data/h200_sustained.csv), bf16 and fp8 do not.
double precision_draw(Precision p, const Kernels& k) {
  if (p == Precision::kFp32) return 0.5;
  if (p == Precision::kTf32) return 0.7;
  if (p == Precision::kBf16) return 1;
  return p == Precision::kFp16 ? k.power_fp16 : k.power_narrow;
}

double worst_draw(int64_t n) {
  if (n <= 1) return 1;
  // expected_max_normal, too slow for every plan: this is within 5.5 % of it from 4 to 65,536.
  const double largest = 0.64 * std::pow(std::log2(real(n)), 0.7);
  return 1 + kDrawSpread * largest;
}

HeldClock held_clock(const Setting& s, Precision precision, const PassCost& p, double total) {
  const Kernels& k = s.kernels;
  const Accelerator& a = s.cluster.accelerator;
  const double range = std::max(1.0, (a.tdp - a.idle).v);
  const double unit = k.power_unit * peak(a, Precision::kBf16).v / 1e12 / range;
  Draw d;
  const double memory = p.memory.v + p.scores.v;
  const double attention = p.attention.v - p.scores.v;
  d.work = p.matmul.v + attention;
  const double idle = std::max(0.0, total - d.work - memory);
  d.other = memory + idle;
  // Of the peak, the FLOPs that run: the backward pass does 2.5 times the forward's, and the ledger
  // counts 2.
  const double scale = peak(a, precision) / peak(a, Precision::kBf16);
  const double at_peak = p.attention_peak.v * scale * (3.5 / 3);
  const double mean = unit * (p.matmul_draw.v * k.power_matmul +
                              k.power_attention * (kAttentionBase * attention + at_peak));
  d.cores = mean * worst_draw(s.accelerators);
  const double moving = p.memory.v + p.scores.v * kStreaming;
  d.rest = unit * (moving * k.power_memory + idle * k.power_idle_wait);
  d.exponent = k.power_exponent - 1;
  HeldClock c;
  c.cool = c.clock = solve_clock(d, 1);
  c.waiting = unit * k.power_idle_wait;
  c.draw = mean_draw(d, mean, c.clock, c.waiting);
  const double coolant = s.cluster.inlet_c;
  if (coolant == kReferenceCoolant) return c;
  const double left = std::clamp((kSlowdown - coolant) / kRiseAtLimit, 0.0, 1.0);
  const double budget = std::max(0.05, (left * a.tdp.v - a.idle.v) / range);
  if (budget < 1) c.clock = solve_clock(d, budget);
  if (c.clock < 1) c.clock *= 1 - kSpeedPerKelvin * (coolant - kReferenceCoolant);
  c.clock = std::clamp(c.clock, kLeastClock, 1.0);
  c.cool = std::max(c.cool, c.clock);  // colder than the reference: the cap itself takes less
  c.draw = std::min(c.draw, budget);
  return c;
}

}  // namespace assay
