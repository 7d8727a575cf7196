// assay diagnose: files of any kind -> the measured ledger, findings, fixes.
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>

#include <fmt/format.h>

#include "base/file.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/progress.h"
#include "diagnose/diagnose.h"
#include "diagnose/infer_steps.h"
#include "ingest/kineto.h"
#include "plan/study.h"
#include "report/annotated_trace.h"
#include "report/diagnose_report.h"

namespace assay {
namespace {

// The description of --workload, --cluster, --stack and --plan, in that order.
std::vector<std::string> described(const Arguments& args) {
  std::vector<std::string> inputs;
  for (const char* name : {"workload", "cluster", "stack", "plan"}) {
    if (args.has(name)) inputs.push_back(args.get(name));
  }
  return inputs;
}

// The accelerator of --cluster, to judge traces whose device has no name that the catalog knows.
struct Known {
  std::optional<Description> description;  // with workload and cluster: the step can be predicted
  std::optional<Accelerator> accelerator;
  Kernels kernels;
};

// A --set that changes nothing about what is known here.
std::optional<UsageError> idle_set(const Arguments& args, const std::vector<std::string>& inputs) {
  if (!args.has("set") || args.has("workload")) return std::nullopt;
  if (inputs.empty())
    return UsageError{"--set changes nothing here: no description was given",
                      "give what it changes, too, as in --cluster C --workload W"};
  for (const std::string& set : args.all("set")) {
    const std::string section = set.substr(0, set.find_first_of(".="));
    if (section != "workload" && section != "plan") continue;
    return UsageError{fmt::format("--set {} changes nothing here: a cluster alone is no prediction",
                                  sanitize(set, 60)),
                      "give --workload, too"};
  }
  return std::nullopt;
}

tl::expected<Description, InputRefusal> describe_cluster(const Arguments& args,
                                                         const std::vector<std::string>& inputs) {
  if (std::vector<Failure> missing = missing_inputs(inputs); !missing.empty())
    return tl::unexpected(InputRefusal{{}, {}, std::move(missing)});
  tl::expected<Request, UsageErrors> request = make_request(args, inputs);
  if (!request) return tl::unexpected(InputRefusal{request.error(), {}, {}});
  request->needs_workload = false;
  tl::expected<Description, Diagnostics> d = describe(*request, catalog());
  if (!d) return tl::unexpected(InputRefusal{{}, d.error(), {}});
  return std::move(*d);
}

tl::expected<Known, int> describe_known(const Context& context, const Arguments& args) {
  Known known;
  const std::vector<std::string> inputs = described(args);
  if (const std::optional<UsageError> idle = idle_set(args, inputs))
    return tl::unexpected(reject(context, *idle));
  if (inputs.empty()) return known;
  if (!args.has("cluster"))
    return tl::unexpected(
        reject(context, UsageError{"a prediction needs --cluster too", "--cluster C"}));
  if (args.has("workload")) {
    tl::expected<Description, InputRefusal> d = describe_inputs(args, inputs);
    if (!d) return tl::unexpected(refuse(context, d.error()));
    print_error(render(d->warnings));
    known.accelerator = d->setting.cluster.accelerator;
    known.kernels = d->setting.kernels;
    known.description = std::move(*d);
    return known;
  }
  // Of a cluster alone the accelerator is taken.
  tl::expected<Description, InputRefusal> d = describe_cluster(args, inputs);
  if (!d) return tl::unexpected(refuse(context, d.error()));
  print_error(render(d->warnings));
  known.accelerator = d->setting.cluster.accelerator;
  known.kernels = d->setting.kernels;
  return known;
}

void predict(Known& known, DiagnoseResult& result) {
  if (!known.description) return;
  const std::vector<MeasuredPeriod>& periods = result.diagnosis.periods;
  const bool logged = std::any_of(periods.begin(), periods.end(),
                                  [](const MeasuredPeriod& p) { return p.step.v > 0; });
  if (!result.diagnosis.step && !logged) {
    result.diagnosis.notes.push_back(
        "no prediction: none of these files says how long a step takes");
    return;
  }
  StudyOptions options;
  options.what_ifs = false;
  const PlanResult plan = study(std::move(*known.description), catalog(), options);
  if (!plan.fits) {
    result.diagnosis.notes.push_back("no prediction: no plan of the stated workload fits");
    return;
  }
  const Setting& s = plan.description.setting;
  result.predicted = plan.prediction;
  result.predicted_of = fmt::format("{} on {} {}", s.workload.model.name,
                                    count(accelerators_used(s)), s.cluster.accelerator.name);
  for (const MeasuredPeriod& p : result.diagnosis.periods) {
    if (p.batch <= 0 || p.batch == static_cast<double>(s.workload.global_batch)) continue;
    result.diagnosis.notes.push_back(
        fmt::format("the log's steps are of {} sequences, predicted were {}: state it with --set "
                    "workload.global_batch={:.0f}",
                    count(static_cast<int64_t>(p.batch)), count(s.workload.global_batch), p.batch));
  }
  // A sick step may take long; one several times faster than predicted is another workload's.
  constexpr double kAnother = 2;
  if (result.diagnosis.step && result.diagnosis.step->step * kAnother < plan.prediction.step) {
    result.diagnosis.notes.push_back(fmt::format(
        "the trace is much faster than predicted: is it of this workload? It was predicted for {} "
        "sequences of {} tokens a step (workload.global_batch, workload.seq)",
        count(s.workload.global_batch), count(s.workload.seq)));
  }
}

tl::expected<double, UsageError> fail_on(const Arguments& args) {
  if (!args.has("fail-on")) return -1;
  const std::string text = args.get("fail-on");
  char* end = nullptr;
  const double share = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != 0 || !(share >= 0 && share <= 1)) {
    return tl::unexpected(
        UsageError{fmt::format("--fail-on: `{}` is not a share", sanitize(text, 40)),
                   "a number from 0 to 1, e.g. --fail-on 0.1 for a tenth of the time"});
  }
  return share;
}

bool fails(const Diagnosis& d, double share) {
  if (share < 0) return false;
  for (const Finding& f : d.findings) {
    if (f.cause != Cause::kHealthy && (f.urgent || f.share >= share)) return true;
  }
  return false;
}

// Whether something was asked for and could not be read, or not to its end.
bool any_unread(const Diagnosis& d) {
  return std::any_of(d.files.begin(), d.files.end(),
                     [](const FileRead& f) { return f.missing || f.cut; });
}

// What the evidence is numbered by: the files and what is known of the job.
Stamp stamp_of(const Context& context, const Arguments& args) {
  Stamp stamp = context.stamp;
  for (const auto& [name, value] : args.options) {
    if (name == "cluster" || name == "workload" || name == "plan" || name == "stack" ||
        name == "set") {
      stamp.inputs += fmt::format(" --{} {}", name, shell_quoted(value));
    }
  }
  return stamp;
}

int show(const DiagnoseResult& result, const Context& context, const std::string& id) {
  const std::optional<std::string> text = evidence_text(result.diagnosis, id, context.style);
  if (!text) {
    return reject(context, UsageError{fmt::format("no evidence `{}`", sanitize(id, 40)),
                                      "the last column of the findings lists them"});
  }
  return deliver(context, *text, evidence_json(result.diagnosis, id, context.stamp), kYes);
}

// The first profiler trace once more, with what was found on a track of its own.
Result<bool> write_trace(const Diagnosis& d, const Known& known, const std::string& path) {
  const Failure none{"cannot be written: no profiler trace was given as a file", sanitize(path),
                     "it annotates a Kineto trace; name one among the files"};
  const auto file = std::find_if(d.files.begin(), d.files.end(), [](const FileRead& f) {
    return f.used && f.kind == FileKind::kKinetoTrace;
  });
  if (file == d.files.end() || file->path == "-") return tl::unexpected(none);  // - is gone by now
  Diagnostics ignored;  // told when it was read for the diagnosis
  Result<Trace> trace = read_kineto(file->path, ignored);
  if (!trace) return tl::unexpected(trace.error());
  infer_steps(*trace);
  TraceContext context;
  context.accelerator = known.accelerator ? &*known.accelerator : nullptr;
  context.kernels = known.accelerator ? &known.kernels : nullptr;
  errno = 0;
  std::ofstream out(path, std::ios::binary);
  write_annotated_trace(*trace, diagnose_trace(*trace, context), out);
  if (!out.flush()) return tl::unexpected(write_failure(path, errno));
  return true;
}

int run(const Context& context, const Arguments& args) {
  if (args.operands.empty())
    return reject(context, UsageError{"diagnose needs files or folders", "assay diagnose -h"});
  const tl::expected<double, UsageError> limit = fail_on(args);
  if (!limit) return reject(context, limit.error());
  FileList list = list_files(args.operands);
  tl::expected<Known, int> known = describe_known(context, args);
  if (!known) return known.error();

  DiagnoseResult result;
  {
    Progress progress(context, "diagnose");
    DiagnoseOptions options;
    options.accelerator = known->accelerator ? &*known->accelerator : nullptr;
    options.kernels = known->accelerator ? &known->kernels : nullptr;
    options.progress = progress.callback();
    result.diagnosis = diagnose(list.files, options);
  }
  const bool incomplete = has_errors(list.problems) || any_unread(result.diagnosis);
  Diagnostics& problems = result.diagnosis.problems;
  problems.insert(problems.begin(), list.problems.begin(), list.problems.end());
  print_error(render(problems));
  const Diagnosis& d = result.diagnosis;
  if (std::none_of(d.files.begin(), d.files.end(), [](const FileRead& f) { return f.used; })) {
    const int code = reject(
        context,
        UsageError{"none of the files could be read", "assay diagnose --help lists what can be"},
        problems);
    return incomplete ? kWorldWrong : code;
  }
  // Where a file ends in the middle, that is why, and the document says so.
  if (const Diagnostics lacks = lacking(d); !lacks.empty() && !incomplete)
    return reject(context, lacks);
  predict(*known, result);
  if (args.has("trace")) {
    const Result<bool> written = write_trace(d, *known, args.get("trace"));
    if (!written) return fail(context, {written.error()});
  }
  if (args.has("show")) return show(result, context, args.get("show"));
  // What could not be opened, or ends in the middle, is told by the exit code even though the rest
  // was diagnosed: a script would take the answer for that of the whole.
  const int answer = fails(d, *limit) ? kNo : kYes;
  return deliver(context, diagnose_text(result, context.style, stamp_of(context, args)),
                 diagnose_json(result, context.stamp), incomplete ? kWorldWrong : answer);
}

}  // namespace

Command diagnose_command() {
  return {
      "diagnose",
      "FILE...",
      "traces, telemetry, logs in; the measured ledger, causes, and fixes ranked by gain",
      "Files are recognised by content, plain or gzip, in any mix; a folder stands for its files, "
      "- "
      "for standard input:\n"
      "PyTorch profiler traces, NCCL Flight Recorder dumps, nvidia-smi, DCGM and Prometheus pages, "
      "nccl-tests, topologies, kernel logs, Slurm accounting, training logs.\n"
      "With --workload and --cluster the measured ledger stands beside the predicted one. A "
      "finding gives back at least 3 % of the time; its gain is predicted with everything else "
      "kept.",
      {{"cluster", 0, "C", "the cluster, a catalog name or a YAML file", ""},
       {"workload", 0, "W", "the workload: predicts what the step should take", ""},
       {"plan", 0, "P", "the plan, a YAML file", "Without one, the best plan is searched."},
       {"stack", 0, "S", "the software stack", ""},
       {"show", 0, "EVIDENCE", "print the events behind a finding, e.g. e1", ""},
       {"trace", 0, "FILE", "write an annotated trace for ui.perfetto.dev", ""},
       {"fail-on", 0, "SHARE", "exit 1 when a finding gives back this share, e.g. 0.1",
        "Urgent findings (a hang, a node to drain) always count."}},
      {"assay diagnose rank0.pt.trace.json.gz dmesg.log dcgm.prom",
       "assay diagnose traces/ --cluster h100-1024 --workload llama-3.1-70b",
       "assay diagnose sacct.txt sinfo.txt --json | jq .findings[].cause"},
      run};
}

}  // namespace assay
