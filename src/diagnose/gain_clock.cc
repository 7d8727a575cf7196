#include "diagnose/gain_clock.h"

#include <algorithm>
#include <cmath>

#include "diagnose/gain_share.h"
#include "perf/clocks.h"

namespace assay {
namespace {

// Share of the peak that a training step's matmuls reach on average where no shapes are recorded,
// over the library's best (test/data/h200_train.csv against h200_gemm.csv).
constexpr double kUsualOfBest = 0.9;
constexpr int kRounds = 4;  // the clock's own effect on the durations settles within these

bool stretches(const KernelClass& k) { return is_math_kind(k.kind); }

}  // namespace

double held_clock_of(const StepGraph& g, const KernelTable& table, const DeviceModel& d,
                     Seconds period) {
  if (d.accelerator == nullptr || period.v <= 0) return 1;
  PassCost cost;
  int64_t vector_ns = 0, matmul_ns = 0;
  for (const DeviceOp& op : g.ops) {
    const KernelClass& k = table.of(static_cast<size_t>(op.event));
    const Seconds time(static_cast<double>(op.busy_ns) * 1e-9);
    if (k.kind == KernelKind::kAttention) {
      cost.attention += time;
    } else if (is_math_kind(k.kind)) {
      cost.matmul += time;
      matmul_ns += op.busy_ns;
      if (k.precision_known && !k.tensor_cores) vector_ns += op.busy_ns;
    } else if (k.kind != KernelKind::kCommunication && k.kind != KernelKind::kHostCopy) {
      cost.memory += time;
    }
  }
  const bool vector = 2 * vector_ns > matmul_ns;
  const MatmulParams& m = d.kernels->matmul;
  const double best = vector ? m.efficiency_fp32 : m.efficiency;
  const Precision precision = vector ? Precision::kFp32 : Precision::kBf16;
  Setting setting;
  setting.kernels = *d.kernels;
  setting.cluster.accelerator = *d.accelerator;
  // Durations were measured at the clock that is sought: at burst clocks they would be shorter.
  double clock = 1;
  for (int i = 0; i < kRounds; ++i) {
    PassCost burst = cost;
    burst.matmul *= clock;
    burst.attention *= clock;
    burst.matmul_draw =
        burst.matmul * (best * kUsualOfBest * precision_draw(precision, *d.kernels));
    // No shapes, no kernel's name: as the vendor's.
    burst.attention_peak = burst.attention * d.kernels->attention_vendor_backward;
    const double total = std::max(period.v, burst.device().v);
    clock = held_clock(setting, precision, burst, total).clock;
  }
  return clock;
}

StepGraph at_clock(StepGraph g, const KernelTable& table, double before, double after) {
  if (after >= before || after <= 0) return g;
  for (DeviceOp& op : g.ops) {
    if (!stretches(table.of(static_cast<size_t>(op.event)))) continue;
    set_duration(op, std::llround(static_cast<double>(op.duration_ns) * before / after));
  }
  return g;
}

}  // namespace assay
