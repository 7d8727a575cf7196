// For tests alone: numbers that are the same everywhere (Numerical Recipes' generator).
#pragma once

#include <cstdint>

namespace assay {

class TestRandom {
 public:
  explicit TestRandom(uint32_t seed) : state_(seed) {}
  double unit() { return static_cast<double>(next() >> 8) / double{1 << 24}; }
  int64_t below(int64_t n) {
    return static_cast<int64_t>((uint64_t{next()} * static_cast<uint64_t>(n)) >> 32);
  }

 private:
  uint32_t next() { return state_ = state_ * 1664525u + 1013904223u; }

  uint32_t state_;
};

}  // namespace assay
