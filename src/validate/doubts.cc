#include <algorithm>
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

// Two figures of one time, and a rate that no device has.
Diagnostics contradictions(const CsvTable& table, const ValidateReport& report) {
  constexpr double kApart = 1.1;  // rounding explains less
  Diagnostics all;
  for (size_t i = 0; i < report.rows.size(); ++i) {
    const RowResult& r = report.rows[i];
    if (!r.measured_s || *r.measured_s <= 0) continue;
    if (r.by_tokens_s &&
        std::max(*r.by_tokens_s / *r.measured_s, *r.measured_s / *r.by_tokens_s) > kApart) {
      all.push_back(
          doubt(table, table.rows[i], "tokens_per_s_per_gpu",
                fmt::format("a step takes {:.4g} s by its time and {:.4g} s by its tokens "
                            "per second: the former is taken",
                            *r.measured_s, *r.by_tokens_s),
                "a time is one of an optimizer step, a rate one of a single GPU; check "
                "global_batch (sequences), seq_len and n_gpus"));
    } else if (r.peak_share && *r.peak_share > 1 && *r.measured_s >= kShortestStep) {
      all.push_back(doubt(table, table.rows[i], r.time_column,
                          fmt::format("{:.4g} s come to {:.0f} % of the peak of its GPUs",
                                      *r.measured_s, 100 * *r.peak_share),
                          "check global_batch (sequences), seq_len, n_gpus and precision"));
    }
  }
  return all;
}

// Of all GPUs together, or in another unit.
Diagnostics odd_peaks(const CsvTable& table, const ValidateReport& report) {
  constexpr double kMore = 2;  // drivers that swap to the host reach 1.2
  Diagnostics all;
  for (size_t i = 0; i < report.rows.size(); ++i) {
    const RowResult& r = report.rows[i];
    if (!r.measured_mem_gb || r.device_gb <= 0 || *r.measured_mem_gb <= kMore * r.device_gb)
      continue;
    all.push_back(
        doubt(table, table.rows[i], "peak_mem_gb",
              fmt::format("{:g} GB on a device of {:.0f} GB", *r.measured_mem_gb, r.device_gb),
              "write the peak of one device in GB, or with its unit: `22528 MiB`"));
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
  Diagnostics apart = contradictions(table, report);
  Diagnostics peaks = odd_peaks(table, report);
  Diagnostics repeated = repeated_ids(table, report);
  cut(table, unread, most, "cells cannot be read and are taken as blank");
  cut(table, odd, most, "times that no step takes");
  cut(table, apart, most, "rows that contradict themselves");
  cut(table, peaks, most, "peaks that no device holds");
  cut(table, repeated, most, "ids that stand twice");
  Diagnostics all = std::move(unread);
  for (const Diagnostics* more : {&odd, &apart, &peaks, &repeated})
    all.insert(all.end(), more->begin(), more->end());
  return all;
}

}  // namespace assay
