// Any bytes as a table of operations: rows or problems, and whatever was read replays to a time
// that is no shorter than nothing.
#include <cstdint>
#include <cstdlib>

#include "diagnose/straggler.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 64 * 1024) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  assay::OperationReader reader("fuzz.csv");
  reader.feed(text.substr(0, size / 2));
  reader.feed(text.substr(size / 2));
  const assay::OperationTrace trace = reader.finish();
  if (trace.operations.size() + trace.refused > trace.rows) std::abort();
  if (trace.rows == 0 && trace.problems.empty() && size > 4096) std::abort();
  const assay::WhatIf w = assay::what_if(trace);
  if (w.original.v < 0 || w.ideal.v < 0) std::abort();
  (void)assay::diagnose_operations(trace, w);
  return 0;
}
