// assay explain: the chain from a figure to its equation, inputs and sources.
#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/outlook.h"
#include "cli/progress.h"
#include "plan/study.h"
#include "report/explain_document.h"
#include "report/explain_report.h"

namespace assay {
namespace {

// Each once: what a document holds and what every plan has overlap.
std::vector<std::string> each_once(const std::vector<std::string>& all) {
  std::vector<std::string> names;
  for (const std::string& name : all) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

UsageError unknown_figure(const std::string& figure, const std::vector<std::string>& all) {
  const std::vector<std::string> names = each_once(all);
  const std::string near = nearest(figure, names);
  return {fmt::format("unknown figure `{}`", sanitize(figure, 60)),
          near.empty() ? fmt::format("figures: {}", fmt::join(names, ", "))
                       : fmt::format("did you mean `{}`?", near)};
}

// A part by its name, or a side by its number; sizes are numbers already.
bool is_part(const std::string& which, const std::vector<std::string>& parts) {
  const bool sizes =
      !parts.empty() && parts[0].find_first_not_of("0123456789") == std::string::npos;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i] == which || (!sizes && fmt::format("{}", i + 1) == which)) return true;
  }
  return false;
}

// `mfu@128`: a figure of one part of a document that holds several.
struct Asked {
  std::string figure, which;
};

// What screens call a figure, where that is not its name.
constexpr std::pair<std::string_view, std::string_view> kLabels[] = {
    {"step", "step_time"},
    {"tflops_per_gpu", "tflops"},
    {"samples_per_s", "tokens_per_s"},
    {"run", "days"},
    {"gpu-hours", "gpu_hours"},
    {"gpu-h", "gpu_hours"},
    {"total", "gpu_hours"},
    {"memory,_worst_rank", "memory"},
    {"with_failures", "days_with_failures"},
    {"run_with_failures", "days_with_failures"},
    {"steps_kept", "goodput"},
    {"runner-up", "runner_up"},
    {"spare_nodes", "spares"},
    {"a_failure_every", "mtbf"},
    {"a_checkpoint_every", "checkpoint_interval"},
    {"sequence", "seq"},
    {"closest_misses_by", "misses_by"},
    {"too_much", "misses_by"},
    {"fit", "fitting"},
    {"plans", "possible"},
    {"what_grew", "grew"},
    {"what_grew_(points)", "grew"},
    {"what_binds", "binds"},
    {"break-even", "break_even"},
    {"times_faster", "speedup"},
    {"times_slower", "speedup"},
    {"change", "change.step_time"},
    {"speed-up", "speedup"},
    {"$/m_tokens", "usd_per_million_tokens"},
    {"per_useful_exaflop", "usd_per_useful_exaflop"}};

// Figures may be written as screens print them: `comm: gradients` is `comm.gradients`.
Asked parse_asked(const std::string& word) {
  const size_t at = word.find('@');
  Asked asked{word.substr(0, at), at == std::string::npos ? "" : word.substr(at + 1)};
  if (const size_t colon = asked.figure.find(": "); colon != std::string::npos)
    asked.figure.replace(colon, 2, ".");
  for (char& c : asked.figure)
    c = c == ' ' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const auto& [label, name] : kLabels) {
    if (asked.figure == label) asked.figure = name;
  }
  return asked;
}

// Figures over weeks, and of other plans, are those of the document that `plan` would write.
bool of_document(const std::string& figure) {
  const std::vector<std::string>& names = plan_figures();
  return std::find(names.begin(), names.end(), figure) != names.end();
}

bool is_any_figure(const std::string& figure) { return is_figure(figure) || of_document(figure); }

int explain_plan(const Context& context, const Arguments& args, const Asked& asked) {
  const std::vector<std::string> inputs(args.operands.begin(), args.operands.end() - 1);
  const bool document = of_document(asked.figure);
  tl::expected<Description, InputRefusal> description =
      describe_inputs(args, inputs, asked.which, true);
  if (!description) return refuse(context, description.error());
  Progress progress(context, "explain");
  StudyOptions options;
  options.what_ifs = false;
  options.progress = progress.callback();
  const PlanResult result = study(std::move(*description), catalog(), options);
  if (!result.fits && !result.miss) {
    Diagnostics problems = impossible_problems(result);
    if (problems.empty()) problems.emplace_back().message = "plan: no plan is possible";
    return reject(context, problems);
  }
  if (document) {
    const PlanOutlook outlook = plan_outlook(result, context.stamp.seed);
    const std::optional<DocumentFigure> found =
        explain_document(plan_json(result, context.stamp, outlook), asked.figure, "", catalog());
    if (!found)
      return reject(context, UsageError{fmt::format("{} is not estimated here", asked.figure),
                                        !outlook.why_not.empty() ? outlook.why_not
                                        : result.fits ? "the screen of this plan does not print it"
                                                      : "no plan fits"});
    return deliver(
        context,
        explain_text(found->derivation, asked.figure, found->range, context.style, context.stamp),
        explain_json(found->derivation, asked.figure, context.stamp), kYes);
  }
  const Derivation derivation = explain_figure(result, asked.figure, catalog());
  return deliver(context, explain_text(derivation, asked.figure, "", context.style, context.stamp),
                 explain_json(derivation, asked.figure, context.stamp), kYes);
}

int run(const Context& context, const Arguments& args) {
  std::vector<std::string> names = figure_names();
  names.insert(names.end(), plan_figures().begin(), plan_figures().end());
  if (args.operands.size() < 2) {
    return reject(context,
                  UsageError{"explain needs a result (or a workload and a cluster) and a figure",
                             fmt::format("figures: {}", fmt::join(names, ", "))});
  }
  const Asked asked = parse_asked(args.operands.back());
  if (const std::vector<Failure> missing =
          missing_inputs({args.operands.begin(), args.operands.end() - 1});
      !missing.empty())
    return fail(context, missing);
  std::string text;
  if (args.operands.size() == 2 && result_file(args.operands[0], text)) {
    const std::vector<std::string> parts = document_parts(text);
    if (!asked.which.empty() && !is_part(asked.which, parts)) {
      return reject(
          context,
          UsageError{fmt::format("{} has no part `{}`", sanitize(args.operands[0]),
                                 sanitize(asked.which, 60)),
                     parts.empty() ? "it holds one plan: leave `@` out"
                                   : fmt::format("its parts: {}", fmt::join(parts, ", "))});
    }
    std::optional<DocumentFigure> found =
        explain_document(text, asked.figure, asked.which, catalog());
    if (!found) {  // limits and causes have hyphens
      std::string hyphened = asked.figure;
      std::replace(hyphened.begin(), hyphened.end(), '_', '-');
      found = explain_document(text, hyphened, asked.which, catalog());
    }
    if (found) {
      return deliver(
          context,
          explain_text(found->derivation, asked.figure, found->range, context.style, context.stamp),
          explain_json(found->derivation, asked.figure, context.stamp), kYes);
    }
    const std::vector<std::string> more = document_figures(text);
    if (!document_holds_plan(text)) {
      if (!is_any_figure(asked.figure) && !more.empty())
        return reject(context, unknown_figure(asked.figure, more));
      return reject(
          context,
          UsageError{
              fmt::format("this result does not hold `{}`, nor a plan", sanitize(asked.figure, 60)),
              more.empty() ? "`assay plan ... -o result.json` writes one"
                           : fmt::format("its figures: {}", fmt::join(each_once(more), ", "))});
    }
    names = more;
    const std::vector<std::string> of_plan = figure_names();
    names.insert(names.end(), of_plan.begin(), of_plan.end());
    if (asked.which.empty() && parts.size() > 1 && is_any_figure(asked.figure)) {
      return reject(context,
                    UsageError{"this result holds several plans",
                               fmt::format("say which, as in `{}@{}`; its parts: {}", asked.figure,
                                           parts[0], fmt::join(parts, ", "))});
    }
  }
  if (!is_any_figure(asked.figure)) return reject(context, unknown_figure(asked.figure, names));
  return explain_plan(context, args, asked);
}

}  // namespace

Command explain_command() {
  return {
      "explain",
      "RESULT FIGURE",
      "where a number comes from: its equation, inputs and sources",
      "RESULT is a file that any command wrote with -o, or the same inputs as `assay plan` "
      "takes. FIGURE is a figure of that screen, by name or as it is printed there (mfu, "
      "step_time, memory, days, cost, energy; "
      "goodput, spares, runner_up; weights, misses_by; in a file, a line of what would move it or "
      "make it fit (\"FP8 matrix math\"); "
      "interruptions; efficiency, binds, break_even; change.cost; a cause; a limit "
      "of a site), a setting that `compare` attributes, or an account of the ledger "
      "(kernels.matmul, failure.restart). "
      "Of a result with several plans, FIGURE@PART is the one of a size (mfu@128; of the plan "
      "kept by --fix-plan: mfu@128-kept) or of a side, by name or number (mfu@2).\n"
      "Marks: m measured, s vendor spec or stated, c calibrated model, a assumed.",
      {{"gpus", 0, "N", "use N accelerators of the cluster", ""},
       {"tokens", 0, "T", "tokens to train on, e.g. 2T", ""}},
      {"assay explain plan.json mfu", "assay explain llama-3.1-70b h100-128 kernels.matmul",
       "assay explain month.json goodput", "assay explain scale.json step_time@128"},
      run};
}

}  // namespace assay
