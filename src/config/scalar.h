// Scalars as people write them: numbers with their unit in the value.
//
//   80 GB   80 GiB   450 GB/s   400 Gbps   989 TFLOPS   700 W   5 us   1.98 GHz   $2.49/h
//   $0.08/kWh   $2.10/GPU-h   50 GB / sec
//   1_000   1e3   2.0 T   15e12   40 %   2:1   true   off
//
// An error reads as a predicate (`needs the unit W`), so that the caller can put the key before it.
#pragma once

#include <string>
#include <string_view>

#include <tl/expected.hpp>

#include "base/units.h"

namespace assay {

enum class Dimension {
  kNumber,
  kBytes,
  kBandwidth,
  kFlopRate,
  kFlops,
  kWatts,
  kJoules,
  kSeconds,
  kHertz,
  kDollars,
  kDollarRate,
  kEnergyPrice
};

struct ScalarError {
  std::string message;  // `needs the unit W`
  std::string help;     // `a bare number is ambiguous; write `700 W``
};

// The value in the base unit of its dimension. Never NaN or infinite. Zero needs no unit. Where the
// unit is missing, `usual_unit` is proposed: what such a quantity is usually stated in.
tl::expected<double, ScalarError> parse_quantity(std::string_view text, Dimension,
                                                 std::string_view usual_unit = "");

// A whole number, exactly representable (below 2^53). `1e3` and `1_000` are whole, `8k` is refused:
// it means 8000 to one and 8192 to another.
tl::expected<double, ScalarError> parse_whole(std::string_view text);

tl::expected<bool, ScalarError> parse_bool(std::string_view text);

// The value as a person would write it, with the unit of its dimension: `700 W`, `450 GB/s`.
std::string format_quantity(double value, Dimension);

template <class Q>
struct DimensionOf;
template <>
struct DimensionOf<Bytes> {
  static constexpr Dimension kIs = Dimension::kBytes;
};
template <>
struct DimensionOf<Bandwidth> {
  static constexpr Dimension kIs = Dimension::kBandwidth;
};
template <>
struct DimensionOf<FlopRate> {
  static constexpr Dimension kIs = Dimension::kFlopRate;
};
template <>
struct DimensionOf<Flops> {
  static constexpr Dimension kIs = Dimension::kFlops;
};
template <>
struct DimensionOf<Watts> {
  static constexpr Dimension kIs = Dimension::kWatts;
};
template <>
struct DimensionOf<Joules> {
  static constexpr Dimension kIs = Dimension::kJoules;
};
template <>
struct DimensionOf<Seconds> {
  static constexpr Dimension kIs = Dimension::kSeconds;
};
template <>
struct DimensionOf<Hertz> {
  static constexpr Dimension kIs = Dimension::kHertz;
};
template <>
struct DimensionOf<Dollars> {
  static constexpr Dimension kIs = Dimension::kDollars;
};
template <>
struct DimensionOf<DollarRate> {
  static constexpr Dimension kIs = Dimension::kDollarRate;
};
template <>
struct DimensionOf<EnergyPrice> {
  static constexpr Dimension kIs = Dimension::kEnergyPrice;
};

}  // namespace assay
