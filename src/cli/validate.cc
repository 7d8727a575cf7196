// assay validate: predict measured runs and say how far off the model is.
#include "validate/validate.h"

#include "base/csv.h"
#include "cli/commands.h"
#include "cli/progress.h"

namespace assay {
namespace {

int run(const Context& context, const Arguments& args) {
  if (args.operands.size() != 1) {
    return reject(context,
                  UsageError{"validate needs one file of measured runs", "assay validate -h"});
  }
  const Result<CsvTable> table = read_csv(args.operands[0]);
  if (!table) return fail(context, {table.error()});
  if (!table->problems.empty()) print_error(render(table->problems));
  Progress progress(context, "validate");
  const ValidateReport report = run_validate(*table, catalog(), progress.callback());
  return deliver(context, to_text(report, context.style.width), to_json(report), kYes);
}

}  // namespace

Command validate_command() {
  return {
      "validate",
      "RUNS.csv",
      "predict every row of a file of measured runs and report the error",
      "The columns are those of data/training_runs.csv, in any order; blank cells mean the stack's "
      "default. Every row is reported: ok, oom, incomplete or unsupported, with the reason.",
      {},
      {"assay validate data/training_runs.csv", "assay validate runs.csv --json > report.json"},
      run};
}

}  // namespace assay
