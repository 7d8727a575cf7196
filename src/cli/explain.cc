// assay explain: the chain from a figure to its equation, inputs and sources.
#include <algorithm>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/inputs.h"
#include "plan/study.h"
#include "report/explain_report.h"

namespace assay {
namespace {

UsageError unknown_figure(const std::string& figure, const std::vector<std::string>& names) {
  const std::string near = nearest(figure, names);
  return {fmt::format("unknown figure `{}`", sanitize(figure, 60)),
          near.empty() ? fmt::format("figures: {}", fmt::join(names, ", "))
                       : fmt::format("did you mean `{}`?", near)};
}

std::string range_of(const PlanResult& r, const std::string& figure) {
  const Prediction& p = r.prediction;
  if (!r.fits) return "";
  if (figure == "mfu") return percent_range(mfu_range(p));
  if (figure == "step_time" || figure == "step")
    return seconds_range({p.step.v, p.low.v, p.high.v});
  if (figure == "cost") return dollars_range(r.run.cost_usd);
  if (figure == "energy") return energy_range(r.run.energy_kwh);
  return "";
}

int run(const Context& context, const Arguments& args) {
  const std::vector<std::string> names = figure_names();
  if (args.operands.size() < 2) {
    return reject(UsageError{"explain needs a result (or a workload and a cluster) and a figure",
                             fmt::format("figures: {}", fmt::join(names, ", "))});
  }
  const std::string figure = args.operands.back();
  if (!is_figure(figure)) return reject(unknown_figure(figure, names));
  const std::vector<std::string> inputs(args.operands.begin(), args.operands.end() - 1);
  tl::expected<Description, InputRefusal> description = describe_inputs(args, inputs);
  if (!description) return refuse(context, description.error());

  Progress progress(context, "explain");
  StudyOptions options;
  options.what_ifs = false;
  options.progress = progress.callback();
  const PlanResult result = study(std::move(*description), catalog(), options);
  if (!result.fits && !result.miss) {
    return reject(context, impossible_problem(result.impossible.value_or(
                               Impossible{"plan", "no plan is possible", ""})));
  }
  const Derivation derivation = explain_figure(result, figure);
  return deliver(
      context,
      explain_text(derivation, figure, range_of(result, figure), context.style, context.stamp),
      explain_json(derivation, figure, context.stamp), kYes);
}

}  // namespace

Command explain_command() {
  return {"explain",
          "RESULT FIGURE",
          "where a number comes from: its equation, inputs and sources",
          "RESULT is a file written by `assay plan -o`, or the same inputs as `assay plan` takes. "
          "FIGURE "
          "is a figure of the plan screen (mfu, step_time, memory, days, cost, energy) or an "
          "account of "
          "the ledger (kernels.matmul, comm.tensor).\n"
          "Marks: m measured, s vendor spec or stated, c calibrated model, a assumed.",
          {{"gpus", 0, "N", "use N accelerators of the cluster", ""},
           {"tokens", 0, "T", "tokens to train on, e.g. 2T", ""}},
          {"assay explain plan.json mfu", "assay explain llama-3.1-70b h100-128 kernels.matmul"},
          run};
}

}  // namespace assay
