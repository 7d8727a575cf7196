// assay validate: predict measured runs and say how far off the model is.
#include "validate/validate.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/csv.h"
#include "cli/commands.h"
#include "cli/progress.h"
#include "plan/study.h"
#include "report/plan_report.h"

namespace assay {
namespace {

constexpr size_t kRowsTold = 20;

// The first rows that were refused, at the cells to blame. Returns how many of them there are.
size_t add_refused(const CsvTable& table, const ValidateReport& report, Severity severity,
                   Diagnostics& problems) {
  size_t refused = 0;
  for (size_t i = 0; i < report.rows.size(); ++i) {
    const RowResult& r = report.rows[i];
    if (r.status == RunStatus::kOk || r.status == RunStatus::kOom) continue;
    if (++refused > kRowsTold) continue;
    Diagnostic& d = problems.emplace_back();
    d.severity = severity;
    d.at = table.place(table.rows[i], r.column);
    d.at.file = sanitize(table.file);
    d.message = r.reason;
    d.help = r.fix;
    if (!r.column.empty() && table.column(r.column) < 0)
      d.help = fmt::format("add a column `{}`; {}", r.column, r.fix);
  }
  return refused;
}

// Why a table of which not one row can be predicted is of no use.
void add_useless(const CsvTable& table, const ValidateReport& report, Diagnostics& problems) {
  const size_t told = std::min(add_refused(table, report, Severity::kError, problems), kRowsTold);
  Diagnostic& whole = problems.emplace_back();
  whole.at.file = sanitize(table.file);
  whole.message = report.rows.empty() ? "holds no row of a measured run"
                  : report.rows.size() == 1
                      ? "its one row cannot be predicted"
                      : fmt::format("not one of {} rows can be predicted", report.rows.size());
  if (told < report.rows.size())
    whole.message += fmt::format("; the reasons of the first {} are above", told);
  whole.help =
      "columns are those of data/training_runs.csv, by name: at least model_name, gpu, n_gpus, "
      "seq_len";
}

// One row of the table as `plan` shows it.
int show_row(const Context& context, const CsvTable& table, const std::string& id) {
  const std::vector<Run> runs = read_runs(table);
  const auto named = [&](const Run& r) { return r.id == id; };
  const auto on_line = [&](const Run& r) { return std::to_string(r.line) == id; };
  auto found = std::find_if(runs.begin(), runs.end(), named);
  if (found == runs.end()) found = std::find_if(runs.begin(), runs.end(), on_line);
  if (found == runs.end()) {
    std::vector<std::string> ids;
    for (const Run& r : runs) ids.push_back(r.id);
    const std::string near = nearest(id, ids);
    return reject(context, UsageError{fmt::format("no row `{}` in {}", sanitize(id, 60),
                                                  sanitize(table.file, 60)),
                                      near.empty() ? "give its id, or its line in the file"
                                                   : fmt::format("did you mean `{}`?", near)});
  }
  const Case chosen{*found, to_scenario(*found, catalog())};
  tl::expected<Description, Refusal> description = describe_case(chosen);
  if (!description) {
    Diagnostic d;
    d.at = table.place(table.rows[static_cast<size_t>(found - runs.begin())],
                       description.error().column);
    d.at.file = sanitize(table.file);
    d.message = description.error().reason;
    d.help = description.error().fix;
    return reject(context, Diagnostics{d});
  }
  const auto twins = std::count_if(runs.begin(), runs.end(), named);
  if (twins > 1) {
    Diagnostic d;
    d.severity = Severity::kWarning;
    d.at.file = sanitize(table.file);
    d.message = fmt::format("{} rows are named `{}`: the first is shown", twins, sanitize(id, 60));
    d.help = "name another by its line in the file";
    print_error(render(d));
  }
  const RowResult row = predict_case(chosen);
  Progress progress(context, "validate");
  StudyOptions options;
  options.progress = progress.callback();
  options.ran = row.measured_s.has_value();
  PlanResult result = study(std::move(*description), catalog(), options);
  result.measured = MeasuredRun{row.id,
                                table.file,
                                row.line,
                                row.measured_s.value_or(0),
                                row.measured_mem_gb.value_or(0),
                                row.predicted_mem_gb.value_or(0)};
  return deliver(context, plan_text(result, context.style, context.stamp),
                 plan_json(result, context.stamp), result.fits ? kYes : kNo);
}

// The first refused rows as warnings, where others can be predicted.
void add_refused_few(const CsvTable& table, const ValidateReport& report, Diagnostics& problems) {
  const size_t refused = add_refused(table, report, Severity::kWarning, problems);
  if (refused <= kRowsTold) return;
  Diagnostic& d = problems.emplace_back();
  d.severity = Severity::kWarning;
  d.at.file = sanitize(table.file);
  d.message = fmt::format("{} more rows are refused", refused - kRowsTold);
  d.help = "--json has every row with its reason, line, column and fix";
}

// A broken table is wrong input although some of it could be read: a script would take the answer
// for that of the whole.
int show_table(const Context& context, const CsvTable& table, const ValidateReport& report) {
  const bool any = std::any_of(report.rows.begin(), report.rows.end(), [](const RowResult& r) {
    return r.status == RunStatus::kOk || r.status == RunStatus::kOom;
  });
  Diagnostics problems = table.problems;
  const Diagnostics doubtful = doubts(table, report, kRowsTold);
  problems.insert(problems.end(), doubtful.begin(), doubtful.end());
  if (!any) add_useless(table, report, problems);
  if (any && context.style.verbose) add_refused_few(table, report, problems);
  if (report.rows.empty()) return reject(context, problems);  // else the report has every row
  if (!problems.empty()) print_error(render(problems));
  const bool whole = any && !has_errors(table.problems);
  return deliver(context, to_text(report, context.style.width), to_json(report),
                 whole ? kYes : kInputWrong);
}

int run(const Context& context, const Arguments& args) {
  if (args.operands.size() != 1) {
    return reject(context,
                  UsageError{"validate needs one file of measured runs", "assay validate -h"});
  }
  if (args.has("set")) {
    return reject(context,
                  UsageError{"validate takes rows as they are, without --set",
                             "write it into the table; or `--row ID -o run.json` shows one "
                             "run, and assay plan tries others"});
  }
  const Result<CsvTable> table = read_csv(args.operands[0]);
  if (!table) return fail(context, {table.error()});
  // Nothing can be read of a table that is parted by something else: that alone is said.
  if (table->separator != ',') return reject(context, table->problems);
  if (args.has("row")) {
    print_error(render(table->problems));
    const int code = show_row(context, *table, args.get("row"));
    return has_errors(table->problems) ? kInputWrong : code;
  }
  ValidateReport report;
  {
    Progress progress(context, "validate");
    report = run_validate(*table, catalog(), progress.callback());
  }
  return show_table(context, *table, report);
}

}  // namespace

Command validate_command() {
  return {
      "validate",
      "RUNS.csv",
      "predict every row of a file of measured runs and report the error",
      "The columns are those of data/training_runs.csv, in any order; blank cells mean the stack's "
      "default. Every row is reported: ok, oom, incomplete or unsupported, with the reason. "
      "-v tells where refused rows stand and what would mend them; --json has all of them.\n"
      "Exit code 2 when not one row can be predicted, and where the table is broken (a quote that "
      "never ends, rows of another length): the rows that could be read are reported all the same.",
      {{"row", 0, "ID", "one run as `plan` shows it: how its row is read, where its time goes",
        "By its id, or by its line in the file. The screen and the document are those of `assay "
        "plan`; with -o FILE, `explain` and "
        "`compare` go on from it."}},
      {"assay validate data/training_runs.csv",
       "assay validate data/training_runs.csv --row torchtitan-h100-0001",
       "assay validate runs.csv --json > report.json"},
      run};
}

}  // namespace assay
