// Random numbers that mean the same on every machine and in every what-if.
//
// A Stream is named by (seed, cause, index): for instance the run, the kind of failure and the
// machine. Streams are counter-based (SplitMix64 from a hashed start), so making one is free and no
// stream ever shifts another: a cause that draws more or less leaves all others' luck as it was.
// Every variate takes exactly one draw and is the inverse of its distribution function at that
// draw, so two specs with the same seed meet the same quantile, whatever their parameters.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace assay {

// Bijective, every input bit reaches every output bit (Stafford's variant 13, as in SplitMix64).
constexpr uint64_t mix_bits(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

// The identity of a cause: FNV-1a of its name.
constexpr uint64_t cause_id(std::string_view name) {
  uint64_t hash = 0xCBF29CE484222325ULL;
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3ULL;
  return hash;
}

// The middle of one of 2^52 cells: never 0, never 1.
constexpr double unit_interval(uint64_t bits) {
  return (static_cast<double>(bits >> 12) + 0.5) * 0x1p-52;
}

class Stream {
 public:
  constexpr Stream(uint64_t seed, uint64_t cause, uint64_t index = 0)
      : Stream(family(seed, cause), index) {}

  // What all streams of one seed and cause have in common, for loops over many of them.
  struct Family {
    uint64_t key;
  };
  static constexpr Family family(uint64_t seed, uint64_t cause) {
    return {mix_bits(mix_bits(seed + kStep) ^ cause)};
  }
  constexpr Stream(Family f, uint64_t index) : state_(mix_bits(f.key + kStep * (index + 1))) {}

  constexpr uint64_t bits() {
    state_ += kStep;
    return mix_bits(state_);
  }
  constexpr double uniform() { return unit_interval(bits()); }

 private:
  static constexpr uint64_t kStep = 0x9E3779B97F4A7C15ULL;  // 2^64 / golden ratio, odd
  uint64_t state_;
};

// Inverse distribution functions; 0 < u < 1.
double exponential_quantile(double u, double mean);
double normal_quantile(double u);  // standard; Wichura's AS 241, 16 digits
double lognormal_quantile(double u, double median, double sigma);
double gamma_quantile(double u, double shape);  // scale 1
double log_uniform_quantile(double u, double least, double most);

double normal_cdf(double x);

// Mean of the largest of n standard normals, by integration; 0 for n <= 1.
double expected_max_normal(double n);
double gamma_cdf(double x, double shape);  // regularised lower incomplete gamma

// gamma_quantile for many draws of one shape, with mean 1 (scale 1 / shape): a table in the normal
// score of u, within 0.2 % between 1e-6 and 1 - 1e-6; monotone.
class GammaTable {
 public:
  explicit GammaTable(double shape);  // REQUIRES: 0.01 <= shape
  double operator()(double u) const { return at_score(normal_quantile(u)); }
  double at_score(double normal_score) const;

 private:
  std::vector<double> log_value_;
};

}  // namespace assay
