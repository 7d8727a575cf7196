#include <map>

#include <fmt/format.h>

#include "validate/validate.h"

namespace assay {
namespace {

// No step is as short as the launch of a few kernels, or as long as a fortnight; the shortest and
// the longest of data/*_runs.csv are 17 ms and 13 hours.
constexpr double kShortestStep = 1e-4, kLongestStep = 1e6;  // seconds

Diagnostic doubt(const CsvTable& table, const CsvRow& row, std::string_view column,
                 std::string message, std::string help) {
  Diagnostic d;
  d.severity = Severity::kWarning;
  d.at = table.place(row, column);
  d.at.file = sanitize(table.file);
  d.message = std::move(message);
  d.help = std::move(help);
  return d;
}

// Keeps the first of them and says how many more there are.
void cut(const CsvTable& table, Diagnostics& all, size_t most, const char* what) {
  if (all.size() <= most) return;
  Diagnostic more;
  more.severity = Severity::kWarning;
  more.at.file = sanitize(table.file);
  more.message = fmt::format("{} more {}", all.size() - most, what);
  all.resize(most);
  all.push_back(std::move(more));
}

Diagnostics unread_cells(const CsvTable& table, const ValidateReport& report) {
  Diagnostics all;
  for (size_t i = 0; i < report.rows.size(); ++i) {
    for (const IgnoredCell& cell : report.rows[i].ignored) {
      all.push_back(doubt(table, table.rows[i], cell.column,
                          fmt::format("cannot read {}: taken as blank", cell.text), cell.fix));
    }
  }
  return all;
}

Diagnostics odd_times(const CsvTable& table, const ValidateReport& report) {
  Diagnostics all;
  for (size_t i = 0; i < report.rows.size(); ++i) {
    const std::optional<double> time = report.rows[i].measured_s;
    if (!time || (*time >= kShortestStep && *time <= kLongestStep)) continue;
    all.push_back(doubt(table, table.rows[i], report.rows[i].time_column,
                        fmt::format("no step takes {:g} s", *time),
                        "check the unit: times are seconds of one optimizer step"));
  }
  return all;
}

Diagnostics repeated_ids(const CsvTable& table, const ValidateReport& report) {
  Diagnostics all;
  std::map<std::string, int> first;
  for (size_t i = 0; i < report.rows.size(); ++i) {
    const RowResult& r = report.rows[i];
    const auto [seen, fresh] = first.emplace(r.id, r.line);
    if (fresh) continue;
    all.push_back(
        doubt(table, table.rows[i], "id",
              fmt::format("the id `{}` stands on line {}, too", sanitize(r.id, 60), seen->second),
              "give each run an id of its own; `--row` shows the first"));
  }
  return all;
}

}  // namespace

Diagnostics doubts(const CsvTable& table, const ValidateReport& report, size_t most) {
  Diagnostics unread = unread_cells(table, report);
  Diagnostics odd = odd_times(table, report);
  Diagnostics repeated = repeated_ids(table, report);
  cut(table, unread, most, "cells cannot be read and are taken as blank");
  cut(table, odd, most, "times that no step takes");
  cut(table, repeated, most, "ids that stand twice");
  Diagnostics all = std::move(unread);
  all.insert(all.end(), odd.begin(), odd.end());
  all.insert(all.end(), repeated.begin(), repeated.end());
  return all;
}

}  // namespace assay
