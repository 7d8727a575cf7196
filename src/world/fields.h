// The schema of the world, as code that is read once and used everywhere.
//
// Each struct of src/world has a function template `fields(T&, V&& visit)` that calls
//     visit("key", member, Limits, "what it is")
// for every field a person may write in YAML. The YAML reader, `--set path=value`, `catalog show`,
// `check`, JSON output and tools/calibrate are all visitors, so a new field needs one line.
//
// The member's type says how it is written: Bytes wants `80 GB`, Bandwidth `450 GB/s`, FlopRate
// `989 TFLOPS`, Watts `700 W`, Seconds `5 us`; int64_t and double are bare numbers; an enum is one
// of `enum_names(E{})`; a nested struct with its own `fields` is a nested mapping.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace assay {

// Inclusive limits in base units; a value outside is an input error.
struct Limits {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
};

constexpr Limits kAny{};
constexpr Limits kPositive{1e-300, 1e300};
constexpr Limits kNotNegative{0, 1e300};
constexpr Limits kFraction{0, 1};
constexpr Limits kCount{1, 1e9};
constexpr Limits kCountOrZero{0, 1e9};

}  // namespace assay
