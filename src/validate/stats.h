// Error statistics: every source of at least five usable rows weighs the same, whatever its number
// of rows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "validate/scenario.h"

namespace assay {

constexpr size_t kLeastRowsPerSource = 5;

// What came out for one row. Absent figures stay absent.
struct RowResult {
  std::string id, source, accelerator, stack;  // the latter two as read
  RunStatus status = RunStatus::kOk;
  std::string reason;
  int line = 0;             // of the file
  std::string column, fix;  // as in Refusal; a row that is predicted has none
  std::optional<double> measured_s, predicted_s, low_s, high_s;
  std::optional<double> measured_mem_gb, predicted_mem_gb;  // in the unit of the file's column
  std::vector<std::string> assumed;
  std::vector<IgnoredCell> ignored;  // cells that were taken as blank
  RunClass kind = RunClass::kDense;
  int64_t accelerators = 0;
  bool usable = false;
  std::optional<double> by_tokens_s;  // what its tokens per second come to, where both are stated
  std::optional<double> peak_share;   // of the devices' peak that the measured time comes to
  double device_gb = 0;               // what one device holds
  std::string unusable_for;           // the column to blame
  std::string_view time_column;       // where its time stands, or should
  bool extrapolated = false;
  bool failed_for_memory = false;  // the authors saw it run out of memory
  std::optional<bool> fits;        // by predicted reserved memory
  std::string sweep;               // rows with the same text differ only in their plan

  // Counts in the statistics: usable, predicted, and measured.
  bool counts() const {
    return usable && status == RunStatus::kOk && predicted_s && measured_s && *measured_s > 0;
  }
  double error() const { return *predicted_s / *measured_s - 1; }
};

struct GroupStats {
  std::string kind, name;  // `source`, `vtrain-multi`
  int64_t rows = 0, usable = 0, predicted = 0;
  int64_t sources = 0;                            // with enough rows to weigh; 0: rows are pooled
  std::optional<double> median, mean, p90, bias;  // of |error|; bias is the median error
  std::optional<double> coverage, range_width;
  int64_t memory_rows = 0;
  std::optional<double> memory_median, memory_p90;  // of |error| of peak memory
  int64_t sweeps = 0;                               // groups of rows that differ only in their plan
  std::optional<double> regret_max, regret_mean;
  int64_t oom_rows = 0, oom_called_fitting = 0;
};

double score_median(std::vector<double>);  // REQUIRES: not empty
double score_quantile(std::vector<double>,
                      double q);  // the int(q n)-th smallest; REQUIRES: not empty

// Statistics of a group. Rows of several sources weigh by source.
GroupStats stats_of(const std::string& kind, const std::string& name,
                    const std::vector<const RowResult*>& rows);

// Measured time of the plan that the model would pick over the best measured, minus 1, for every
// sweep of at least two rows.
std::vector<double> regrets(const std::vector<const RowResult*>& rows);

}  // namespace assay
