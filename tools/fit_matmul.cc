// The matmul model for tools/fit_matmul.py, so that what is fitted is what is shipped: a shared
// library with one accelerator, one set of parameters and the rows of one or more data sets.
#include <string_view>
#include <type_traits>

#include "perf/matmul.h"

namespace {

struct Setter {
  std::string_view key;
  double value;
  bool found = false;
  template <class M>
  void operator()(const char* name, M& member, assay::Limits, const char*) {
    if (key != name) return;
    found = true;
    if constexpr (std::is_same_v<M, double>) member = value;
    if constexpr (std::is_same_v<M, assay::Seconds>) member = assay::Seconds(value);
  }
};

}  // namespace

extern "C" {

void* params_new() { return new assay::MatmulParams; }

int params_set(void* params, const char* key, double value) {
  Setter setter{key, value};
  fields(*static_cast<assay::MatmulParams*>(params), setter);
  return setter.found ? 1 : 0;
}

// peaks: fp32, tf32, fp16, bf16, fp8, fp4, int8 in FLOP/s; 0 where absent.
void* accelerator_new(const double* peaks, double bandwidth, long units) {
  assay::Accelerator* a = new assay::Accelerator;
  assay::FlopRate* to[] = {&a->fp32, &a->tf32, &a->fp16, &a->bf16, &a->fp8, &a->fp4, &a->int8};
  for (int i = 0; i < 7; ++i) *to[i] = assay::FlopRate(peaks[i]);
  a->memory_bandwidth = assay::Bandwidth(bandwidth);
  a->compute_units = units;
  return a;
}

// shapes: rows of m, n, k, batch, precision, pass. out: seconds.
void times(const void* accelerator, const void* params, const long* shapes, long rows,
           double* out) {
  for (long i = 0; i < rows; ++i) {
    const long* s = shapes + 6 * i;
    out[i] = matmul_time({s[0], s[1], s[2], s[3], static_cast<assay::Precision>(s[4]),
                          static_cast<assay::MatmulPass>(s[5])},
                         *static_cast<const assay::Accelerator*>(accelerator),
                         *static_cast<const assay::MatmulParams*>(params))
                 .v;
  }
}
}
