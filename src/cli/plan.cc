// assay plan: describe -> search or predict -> what-ifs -> screen.
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/gate.h"
#include "cli/inputs.h"
#include "cli/outlook.h"
#include "cli/progress.h"
#include "plan/study.h"
#include "report/plan_report.h"

namespace assay {
namespace {

InputRefusal check(const Context&, const Arguments& args) {
  UsageErrors wrong;
  if (args.operands.empty())
    wrong.push_back({"plan needs a workload and a cluster", "assay plan -h"});
  if (const auto gates = parse_gates(args); !gates)
    wrong.insert(wrong.end(), gates.error().begin(), gates.error().end());
  InputRefusal refusal = description_refusal(
      args, all_inputs(args), [](Request& request) { request.needs_operations = true; },
      plan_problems);
  refusal.usage.insert(refusal.usage.begin(), wrong.begin(), wrong.end());
  return refusal;
}

int run(const Context& context, const Arguments& args) {
  const auto gates = parse_gates(args);
  if (!gates || args.operands.empty()) return refuse(context, check(context, args));

  tl::expected<Description, InputRefusal> description =
      describe_inputs(args, all_inputs(args), "", true);
  if (!description) {
    const InputRefusal all = check(context, args);
    return refuse(context, all.any() ? all : description.error());
  }
  print_error(render(description->warnings));

  Progress progress(context, "plan");
  StudyOptions options;
  options.what_ifs = !args.has("no-what-ifs");
  options.progress = progress.callback();
  const PlanResult result = study(std::move(*description), catalog(), options);
  if (const Diagnostics problems = impossible_problems(result); !problems.empty())
    return reject(context, problems);

  int code = result.fits ? kYes : kNo;
  const PlanOutlook outlook = plan_outlook(result, context.stamp.seed);
  if (result.fits && any_tripped(*gates, gate_figures(result.prediction, result.run, outlook)))
    code = kNo;
  return deliver(context, plan_text(result, context.style, context.stamp, outlook),
                 plan_json(result, context.stamp, outlook), code);
}

}  // namespace

Command plan_command() {
  return {
      "plan",
      "WORKLOAD CLUSTER [STACK] [PLAN] [RUN] [SITE]",
      "best plan for a workload on a cluster: fit, MFU, days, dollars, and why",
      "Inputs are catalog names (`assay catalog list`) or YAML files with the sections workload, "
      "cluster, stack, plan, in any order; a Hugging Face config.json stands for a model.\n"
      "Without a plan, the whole space is searched: tp, pp, vpp, cp, ep, ZeRO stage (of those that "
      "the stack's programs have), sharding group of weights, micro-batch, sequence parallel, "
      "recompute. Where only some of tp, pp and micro_batch are stated (in a file or with "
      "--set plan.tp=8), they stay and the others are searched. With all three stated, that plan "
      "is predicted as it is.\n"
      "Plans are ranked half-way from the median to the slow end of their 90 % range; those "
      "outside what was ever measured, or that hardly fit in memory, at the slow end.\n"
      "What a run over weeks makes of the plan (goodput, days and dollars with failures) is "
      "estimated by closed forms from RUN and SITE as `assay simulate` has them; it simulates "
      "them.",
      {{"gpus", 0, "N", "use N accelerators of the cluster", "Default: all of them."},
       {"tokens", 0, "T", "tokens to train on, e.g. 2T",
        "Default: the workload's, or 20 per parameter."},
       {"site", 0, "S", "where it runs, a catalog name or a file", ""},
       {"run", 0, "R", "how it is operated, a catalog name or a file", ""},
       {"fail-if", 0, "COND", "exit 1 when COND holds, e.g. 'mfu < 0.40' (repeatable)",
        "Figures: mfu (a share: 0.4), step_time (s), tokens_per_s, days, gpu_hours, cost ($), "
        "energy (kWh), memory (GiB, worst rank); over weeks goodput (a share), days_with_failures, "
        "cost_with_failures ($)."},
       {"no-what-ifs", 0, "", "skip levers and fixes: only the search", ""}},
      {"assay plan llama-3.1-70b examples/h100-128.yaml",
       "assay plan examples/llama-70b.yaml examples/h100-128.yaml --set plan.tp=8 -o plan.json",
       "assay plan gpt3-175b a100-4096 --json | jq .best.mfu"},
      run,
      check};
}

}  // namespace assay
