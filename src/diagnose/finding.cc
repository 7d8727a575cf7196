#include "diagnose/finding.h"

#include <array>

#include "base/diagnostic.h"

namespace assay {

std::string_view cause_name(Cause cause) {
  constexpr std::array<std::string_view, kCauses> kNames = {"data-starved",
                                                            "launch-bound",
                                                            "host-sync",
                                                            "pageable-copies",
                                                            "no-tensor-cores",
                                                            "unfused-attention",
                                                            "memory-bound",
                                                            "misaligned-shapes",
                                                            "exposed-communication",
                                                            "straggler",
                                                            "pipeline-bubble",
                                                            "power-throttle",
                                                            "thermal-throttle",
                                                            "hardware-fault",
                                                            "allocator",
                                                            "garbage-collection",
                                                            "hang",
                                                            "diverged",
                                                            "healthy"};
  return kNames[static_cast<size_t>(cause)];
}

std::string_view confidence_name(Confidence confidence) {
  constexpr std::array<std::string_view, 3> kNames = {"low", "medium", "high"};
  return kNames[static_cast<size_t>(confidence)];
}

std::string base_name(const std::string& path) {
  return sanitize(path.substr(path.find_last_of('/') + 1), 60);
}

}  // namespace assay
