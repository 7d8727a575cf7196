// The texts of a trace, each kept once. Internal to the Kineto reader.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ingest/kineto_scan.h"

namespace assay {

// REQUIRES: strings[0] is empty and nobody else adds to it.
class Interner {
 public:
  explicit Interner(std::vector<std::string>& strings);
  uint32_t add(std::string_view text);    // as it is
  uint32_t add_text(scan::Slice text);    // escapes resolved, repaired where needed
  uint32_t add_value(scan::Slice value);  // JSON as it stands in the file, on one line
  uint64_t bytes() const { return bytes_; }
  size_t repaired() const { return repaired_; }

 private:
  struct Slot {
    uint32_t hash = 0, index = 0;  // index 0: free
  };
  uint32_t* find(std::string_view text, uint32_t hash);
  void grow();

  std::vector<std::string>& strings_;
  std::vector<Slot> slots_;
  uint64_t bytes_ = 0;
  size_t repaired_ = 0;
};

}  // namespace assay
