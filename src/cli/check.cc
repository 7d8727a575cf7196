// assay check: every problem of every file, and what would be assumed.
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/inputs.h"
#include "report/check_report.h"
#include "report/explain_document.h"
#include "report/result_file.h"

namespace assay {
namespace {

// What only a plan shows, such as degrees that do not divide, where a file holds a whole job.
Diagnostics stated_plan_problems(const std::string& path) {
  Request request;
  request.inputs = {path};
  const DescribeAttempt attempt = try_describe(request, catalog());
  const bool stated = attempt.readable && !attempt.readable->plan_keys.empty();
  return stated ? plan_problems(attempt) : Diagnostics();
}

// A result holds the description that it was computed from, or one for each of its parts.
CheckedFile check_result(const std::string& path, const std::string& text) {
  const std::string kind = document_kind(text);
  CheckedFile file{path, {}, fmt::format("a result of `assay {}`", kind)};
  if (!document_holds_plan(text)) {
    file.what += "; it holds no description to check";
    return file;
  }
  std::vector<std::string> parts = document_parts(text);
  if (parts.empty()) parts.emplace_back();
  Diagnostics problems;
  size_t readable = 0;
  for (const std::string& part : parts) {
    const tl::expected<Description, Diagnostics> read = read_result(text, path, catalog(), part);
    if (read) {
      ++readable;
      if (file.report.assumed.empty()) file.report.assumed = read->assumed;
    } else {
      add_further(problems, read.error());
    }
  }
  file.what += "; the description in it is checked";
  // Sizes share one description, and those at which nothing fits hold no plan.
  if (readable == 0 || kind != "scale") file.report.problems = std::move(problems);
  return file;
}

int run(const Context& context, const Arguments& args) {
  if (args.operands.empty())
    return reject(context, UsageError{"check needs a file", "assay check -h"});
  if (args.has("set")) {
    return reject(context, UsageError{"check takes files as they are, without --set",
                                      "write it into the file, or try it with assay plan"});
  }
  if (const std::vector<Failure> missing = missing_inputs(args.operands); !missing.empty())
    return fail(context, missing);
  std::vector<CheckedFile> files;
  bool wrong = false;
  for (const std::string& path : args.operands) {
    std::string text;
    const bool result = result_file(path, text);
    files.push_back(result ? check_result(path, text)
                           : CheckedFile{path, check_file(path, catalog()), ""});
    Diagnostics& problems = files.back().report.problems;
    if (!result && !has_errors(problems)) add_further(problems, stated_plan_problems(path));
    wrong |= has_errors(problems);
  }
  return deliver(context, check_text(files, context.style), check_json(files, context.stamp),
                 wrong ? kInputWrong : kYes);
}

}  // namespace

Command check_command() {
  return {
      "check",
      "FILE...",
      "validate input files: all errors, each with line, column and fix",
      "Reads YAML descriptions and Hugging Face config.json files, reports every problem at "
      "once, and "
      "lists what would be assumed where nothing is stated. Of a result of another command, the "
      "description in it is checked.",
      {},
      {"assay check examples/llama-70b.yaml examples/h100-128.yaml"},
      run};
}

}  // namespace assay
