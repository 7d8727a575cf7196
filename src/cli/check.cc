// assay check: every problem of every file, and what would be assumed.
#include "cli/commands.h"
#include "cli/inputs.h"
#include "report/check_report.h"

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
    files.push_back({path, check_file(path, catalog())});
    Diagnostics& problems = files.back().report.problems;
    if (!has_errors(problems)) add_further(problems, stated_plan_problems(path));
    wrong |= has_errors(problems);
  }
  return deliver(context, check_text(files, context.style), check_json(files, context.stamp),
                 wrong ? kInputWrong : kYes);
}

}  // namespace

Command check_command() {
  return {"check",
          "FILE...",
          "validate input files: all errors, each with line, column and fix",
          "Reads YAML descriptions and Hugging Face config.json files, reports every problem at "
          "once, and "
          "lists what would be assumed where nothing is stated.",
          {},
          {"assay check examples/llama-70b.yaml examples/h100-128.yaml"},
          run};
}

}  // namespace assay
