// Any bytes as a table of measured runs: every row comes back with a status, predictions are finite
// and in order, and the report is text and JSON without control characters.
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "validate/validate.h"

namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 64 * 1024) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const assay::CsvTable table = assay::parse_csv(text, "fuzz.csv");
  const assay::ValidateReport report = assay::run_validate(table, assay::catalog());
  check(report.rows.size() == table.rows.size());
  for (const assay::RowResult& row : report.rows) {
    check(!row.id.empty());
    check(row.status == assay::RunStatus::kOk || !row.reason.empty());
    if (!row.predicted_s) continue;
    check(std::isfinite(*row.predicted_s) && *row.predicted_s > 0);
    check(*row.low_s <= *row.predicted_s && *row.predicted_s <= *row.high_s);
  }
  for (const char c : assay::to_json(report))
    check(c == '\n' || static_cast<unsigned char>(c) >= 0x20);
  check(!assay::to_text(report).empty());
  return 0;
}
