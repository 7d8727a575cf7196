// Physical quantities as types, so that a bandwidth can never be passed where a time is expected.
//
// A Quantity holds a double in the SI base unit (seconds, bytes, floating-point operations, watts,
// dollars). Same-unit arithmetic and scaling by plain numbers work; the few mixed products that the
// model needs are spelled out below, everything else does not compile. At -O2 this is the same code
// as bare doubles.
#pragma once

#include <compare>
#include <cstdint>

namespace assay {

// A count that enters a product.
constexpr double real(int64_t n) { return static_cast<double>(n); }

template <class Tag>
struct Quantity {
  double v = 0;

  constexpr Quantity() = default;
  constexpr explicit Quantity(double value) : v(value) {}

  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity operator-() const { return Quantity(-v); }
  constexpr Quantity& operator+=(Quantity o) {
    v += o.v;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity o) {
    v -= o.v;
    return *this;
  }
  constexpr Quantity& operator*=(double s) {
    v *= s;
    return *this;
  }
  constexpr Quantity& operator/=(double s) {
    v /= s;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity(a.v + b.v); }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity(a.v - b.v); }
  friend constexpr Quantity operator*(Quantity a, double s) { return Quantity(a.v * s); }
  friend constexpr Quantity operator*(double s, Quantity a) { return Quantity(a.v * s); }
  friend constexpr Quantity operator/(Quantity a, double s) { return Quantity(a.v / s); }
  friend constexpr double operator/(Quantity a, Quantity b) { return a.v / b.v; }
};

using Seconds = Quantity<struct SecondsTag>;
using Bytes = Quantity<struct BytesTag>;
using Flops = Quantity<struct FlopsTag>;          // an amount of floating-point operations
using FlopRate = Quantity<struct FlopRateTag>;    // FLOP per second
using Bandwidth = Quantity<struct BandwidthTag>;  // bytes per second
using Watts = Quantity<struct WattsTag>;
using Joules = Quantity<struct JoulesTag>;
using Hertz = Quantity<struct HertzTag>;
using Dollars = Quantity<struct DollarsTag>;
using DollarRate = Quantity<struct DollarRateTag>;    // dollars per second
using EnergyPrice = Quantity<struct EnergyPriceTag>;  // dollars per joule

constexpr Seconds operator/(Bytes b, Bandwidth w) { return Seconds(b.v / w.v); }
constexpr Bytes operator*(Bandwidth w, Seconds t) { return Bytes(w.v * t.v); }
constexpr Seconds operator/(Flops f, FlopRate r) { return Seconds(f.v / r.v); }
constexpr Flops operator*(FlopRate r, Seconds t) { return Flops(r.v * t.v); }
constexpr FlopRate operator/(Flops f, Seconds t) { return FlopRate(f.v / t.v); }
constexpr Joules operator*(Watts p, Seconds t) { return Joules(p.v * t.v); }
constexpr Dollars operator*(DollarRate r, Seconds t) { return Dollars(r.v * t.v); }
constexpr Dollars operator*(Joules e, EnergyPrice p) { return Dollars(e.v * p.v); }

constexpr Seconds kMicrosecond{1e-6};
constexpr Bytes kGB{1e9};            // decimal, as vendors and bandwidths count
constexpr Bytes kGiB{1073741824.0};  // binary, as allocators count
constexpr double kSecondsPerHour = 3600;
constexpr double kSecondsPerDay = 86400;
constexpr double kSecondsPerYear = 365.25 * kSecondsPerDay;
constexpr double kJoulesPerKwh = 3.6e6;

}  // namespace assay
