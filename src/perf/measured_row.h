// A row of a measured table, for tests.
#pragma once

#include <string>

#include "base/csv.h"

namespace assay {

struct MeasuredRow {
  const CsvTable& table;
  const CsvRow& row;
  std::string text(const char* name) const { return std::string(table.cell(row, name)); }
  int64_t whole(const char* name) const { return std::stoll(text(name)); }
  double number(const char* name) const { return std::stod(text(name)); }
};

}  // namespace assay
