// Any bytes as a table of measured runs: every row comes back with a status, predictions are finite
// and in order, and the report is text and JSON without control characters.
#include <cmath>
#include <cstdint>

#include "base/assert.h"
#include "validate/validate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 64 * 1024) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const assay::CsvTable table = assay::parse_csv(text, "fuzz.csv");
  const assay::ValidateReport report = assay::run_validate(table, assay::catalog());
  ASSERT(report.rows.size() == table.rows.size());
  for (const assay::RowResult& row : report.rows) {
    ASSERT(!row.id.empty());
    ASSERT(row.status == assay::RunStatus::kOk || !row.reason.empty());
    if (!row.predicted_s) continue;
    ASSERT(std::isfinite(*row.predicted_s) && *row.predicted_s > 0);
    ASSERT(*row.low_s <= *row.predicted_s && *row.predicted_s <= *row.high_s);
  }
  for (const char c : assay::to_json(report))
    ASSERT(c == '\n' || static_cast<unsigned char>(c) >= 0x20);
  ASSERT(!assay::to_text(report).empty());
  return 0;
}
