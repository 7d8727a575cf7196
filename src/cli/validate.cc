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

// Why a table of which not one row can be predicted is of no use, row by row.
Diagnostics useless(const CsvTable& table, const ValidateReport& report) {
  Diagnostics all = table.problems;
  Diagnostic whole;
  whole.at.file = sanitize(table.file);
  whole.message = report.rows.empty()
                      ? "holds no row of a measured run"
                      : fmt::format("not one of {} rows can be predicted", report.rows.size());
  whole.help =
      "columns are those of data/training_runs.csv, by name: at least model_name, gpu, n_gpus, "
      "seq_len";
  for (size_t i = 0; i < std::min(report.rows.size(), kRowsTold); ++i) {
    Diagnostic& d = all.emplace_back();
    d.at.file = whole.at.file;
    d.at.line = table.rows[i].line;
    d.message = report.rows[i].reason;
  }
  if (report.rows.size() > kRowsTold)
    whole.message += fmt::format("; the reasons of the first {} are above", kRowsTold);
  all.push_back(whole);
  return all;
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
  if (!any) return reject(context, useless(*table, report));
  if (!table->problems.empty()) print_error(render(table->problems));
  return deliver(context, to_text(report, context.style.width), to_json(report), kYes);
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
