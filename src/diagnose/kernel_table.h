// The class of every device event of a trace, each distinct (name, operator, annotation) classified
// once, and the operator and sizes behind it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "diagnose/kernel_class.h"
#include "ingest/trace.h"

namespace assay {

struct KernelTable {
  std::vector<KernelClass> classes;   // distinct
  std::vector<uint32_t> event_class;  // per device event: index into classes

  const KernelClass& of(size_t event) const { return classes[event_class[event]]; }
};
KernelTable kernel_table(const Trace&);

// Device events that a known call launched, in the order of their launch.
std::vector<int32_t> events_by_launch(const Trace&);

// Makes the optimizer's what updates the parameters by hand: see kernel_update.cc.
void mark_updates(const Trace&, KernelTable&);
// Elements that a kernel of an update covers are those of its tensor, to this share.
constexpr double kSameTensor = 0.02;

// Name of the innermost operator that launched an event; empty: unknown.
std::string_view op_name(const Trace&, const DeviceEvent&);

// A matrix multiplication as its operator's recorded shapes tell it: y[m,n] = x[m,k] w[k,n].
struct RecordedMatmul {
  int64_t m = 0, n = 0, k = 0, batch = 1;
  Flops flops() const;
};
// From `Input Dims` of aten::mm, addmm, bmm, baddbmm, linear or _scaled_mm; nothing where shapes
// were not recorded or make no sense.
std::optional<RecordedMatmul> recorded_matmul(const Trace&, const DeviceEvent&);

// FLOPs of the operator behind an event where its shapes tell them: matmuls, convolutions
// (multiply and add of the forward pass), scaled dot-product attention (as if not causal).
std::optional<Flops> recorded_flops(const Trace&, const DeviceEvent&);

// `[[8192, 2048], [], [3, [4, 5]]]` as lists of numbers, one per argument; what is not a list of
// numbers becomes an empty one. At most 64 arguments of 8 numbers; anything odd ends the reading.
std::vector<std::vector<int64_t>> parse_dims(std::string_view text);

// Elements that a PyTorch element-wise kernel covers, from its name and grid; 0: cannot tell.
// elementwise_kernel<T, V> covers T x V a block; vectorized_elementwise_kernel<V> 128 x V.
int64_t elements_of(std::string_view kernel_name, const DeviceEvent&);

}  // namespace assay
