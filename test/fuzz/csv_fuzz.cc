// Any bytes as a table: every byte ends up in a row or a problem, nothing crashes.
#include <cstdint>
#include <cstdlib>

#include "base/csv.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const assay::CsvTable table = assay::parse_csv(text, "fuzz.csv");
  if (table.header.empty() && table.problems.empty()) std::abort();
  int line = 0;
  size_t bytes = 0;
  for (const assay::CsvRow& row : table.rows) {
    if (row.line <= line || row.fields.empty()) std::abort();
    line = row.line;
    for (const std::string& field : row.fields) bytes += field.size();
    (void)table.cell(row, 0);
    (void)table.cell(row, -1);
  }
  if (bytes > size) std::abort();
  (void)assay::render(table.problems);
  return 0;
}
