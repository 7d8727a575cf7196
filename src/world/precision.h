// Number formats of matrix arithmetic, by the name of the hardware path they take.
#pragma once

#include <array>
#include <string_view>

namespace assay {

// fp8: per-tensor scaled; mxfp8: block scaled in hardware (in published runs on Hopper, by
// software); nvfp4, mxfp4: 4-bit forward and backward, with some layers kept at 8 or 16 bits by the
// stack; NVIDIA's format and the open one (OCP MX), on the same hardware path.
enum class Precision { kFp32, kTf32, kFp16, kBf16, kFp8, kMxfp8, kNvfp4, kMxfp4, kInt8 };
constexpr int kPrecisions = 9;

constexpr std::array<std::string_view, kPrecisions> enum_names(Precision) {
  return {"fp32", "tf32", "fp16", "bf16", "fp8", "mxfp8", "nvfp4", "mxfp4", "int8"};
}

// 32 bits in memory, whichever units multiply them.
constexpr bool single_precision(Precision p) {
  return p == Precision::kFp32 || p == Precision::kTf32;
}

}  // namespace assay
