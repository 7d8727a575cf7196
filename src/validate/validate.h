// Predict every row of a table of measured runs and say how far off the model is: `assay validate`.
// Every row of the table appears in the report, also one that cannot be read.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "validate/stats.h"
#include "world/describe.h"

namespace assay {

// A row read and mapped once; tools/calibrate predicts the scenarios again and again.
struct Case {
  Run run;
  tl::expected<Scenario, Refusal> scenario = tl::unexpected(Refusal{});
};
std::vector<Case> read_cases(const CsvTable&, const Catalog&);

// One row predicted. Plans that the model calls impossible are first brought to the nearest
// possible one where that is plain: experts over fewer ranks, fewer model chunks. A measured step
// proves that a run fitted, so a predicted misfit is then only a remark; without one the row is
// `oom`.
RowResult predict_case(const Case&);

// A row as somebody would have described it to `plan`, its plan stated: all other commands work on
// that. What the row leaves open stands in `assumed`, without a path.
tl::expected<Description, Refusal> describe_case(const Case&);

struct ValidateReport {
  std::string file;
  std::string catalog_date;
  int64_t lost_lines = 0;  // of the file, in no row
  std::vector<RowResult> rows;
  // `all` first, then by source, class, accelerator and size.
  std::vector<GroupStats> groups;
};

// `progress` takes the fraction done, now and then; may be empty.
ValidateReport run_validate(const CsvTable&, const Catalog&,
                            const std::function<void(double)>& progress = {});
ValidateReport run_validate(const std::vector<Case>&,
                            const std::function<void(double)>& progress = {});

// What a reader of the table should know of rows that were read: cells taken as blank, figures that
// cannot be or disagree, ids that stand twice. Warnings, in the order of the table, at most `most`
// of each sort; the others are counted.
Diagnostics doubts(const CsvTable&, const ValidateReport&, size_t most = 20);

// The screen: one table, the verdict last. Plain ASCII, at most `width` columns (80 or more): a
// narrow one leaves out memory and regret, which the JSON has.
std::string to_text(const ValidateReport&, int width = 100);
// Schema assay.validate/1.
std::string to_json(const ValidateReport&);

}  // namespace assay
