// assay validate: predict measured runs and say how far off the model is.
#include "validate/validate.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/csv.h"
#include "cli/commands.h"
#include "cli/progress.h"

namespace assay {
namespace {

constexpr size_t kRowsTold = 20;

// Why a table of which not one row can be predicted is of no use: the first rows' reasons with
// their lines, then the whole.
void add_useless(const CsvTable& table, const ValidateReport& report, Diagnostics& problems) {
  const size_t told = std::min(report.rows.size(), kRowsTold);
  for (size_t i = 0; i < told; ++i) {
    Diagnostic& d = problems.emplace_back();
    d.at.file = sanitize(table.file);
    d.at.line = table.rows[i].line;
    d.message = report.rows[i].reason;
  }
  Diagnostic& whole = problems.emplace_back();
  whole.at.file = sanitize(table.file);
  whole.message = report.rows.empty()
                      ? "holds no row of a measured run"
                      : fmt::format("not one of {} rows can be predicted", report.rows.size());
  if (told < report.rows.size())
    whole.message += fmt::format("; the reasons of the first {} are above", told);
  whole.help =
      "columns are those of data/training_runs.csv, by name: at least model_name, gpu, n_gpus, "
      "seq_len";
}

int run(const Context& context, const Arguments& args) {
  if (args.operands.size() != 1) {
    return reject(context,
                  UsageError{"validate needs one file of measured runs", "assay validate -h"});
  }
  const Result<CsvTable> table = read_csv(args.operands[0]);
  if (!table) return fail(context, {table.error()});
  ValidateReport report;
  {
    Progress progress(context, "validate");
    report = run_validate(*table, catalog(), progress.callback());
  }
  const bool any = std::any_of(report.rows.begin(), report.rows.end(), [](const RowResult& r) {
    return r.status == RunStatus::kOk || r.status == RunStatus::kOom;
  });
  Diagnostics problems = table->problems;
  if (!any) add_useless(*table, report, problems);
  if (report.rows.empty()) return reject(context, problems);  // else the report has every row
  if (!problems.empty()) print_error(render(problems));
  return deliver(context, to_text(report, context.style.width), to_json(report),
                 any ? kYes : kInputWrong);
}

}  // namespace

Command validate_command() {
  return {
      "validate",
      "RUNS.csv",
      "predict every row of a file of measured runs and report the error",
      "The columns are those of data/training_runs.csv, in any order; blank cells mean the stack's "
      "default. Every row is reported: ok, oom, incomplete or unsupported, with the reason.\n"
      "Exit code 2 when not one row can be predicted.",
      {},
      {"assay validate data/training_runs.csv", "assay validate runs.csv --json > report.json"},
      run};
}

}  // namespace assay
