// For tests alone: numbers that are the same everywhere (Knuth's MMIX generator).
#pragma once

#include <cstdint>

namespace assay {

class TestRandom {
 public:
  explicit TestRandom(uint64_t seed) : state_(seed) {}
  int64_t below(int64_t n) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int64_t>((state_ >> 33) % static_cast<uint64_t>(n));
  }

 private:
  uint64_t state_;
};

}  // namespace assay
