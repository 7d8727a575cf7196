// assay compare: plans, clusters or results side by side, and what each difference is worth.
#include <algorithm>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/compare_kinds.h"
#include "cli/inputs.h"
#include "plan/compare.h"
#include "plan/study.h"
#include "report/compare_report.h"
#include "world/inputs.h"

namespace assay {
namespace {

// Which descriptions an operand brings.
struct Operand {
  std::string text;
  bool result = false;
  bool workload = false, cluster = false, stack = false, plan = false, site = false;

  bool complete() const { return result || (workload && cluster); }
  // Operands that bring the same are alternatives to each other.
  int kind() const {
    return (workload ? 1 : 0) + (cluster ? 2 : 0) + (stack ? 4 : 0) + (plan ? 8 : 0);
  }
};

// What is wrong with a file goes to `problems`: it may hold what nobody can see.
Operand recognise(const std::string& text, Diagnostics& problems) {
  Operand o;
  o.text = text;
  std::string content;
  o.result = result_file(text, content);
  if (o.result) return o;
  Request request;
  request.inputs = {text};
  Inputs inputs;
  gather_inputs(request, catalog(), inputs, problems);
  o.workload = inputs.workload.given;
  o.cluster = inputs.cluster.given;
  o.stack = inputs.stack.given;
  o.plan = inputs.plan.given;
  o.site = inputs.site.given;
  return o;
}

// The operands that are compared, and those that all of them share. Complete descriptions are
// always sides; otherwise the first kind of which there are two or more.
struct Parts {
  std::vector<std::string> sides, shared;
};

Parts split(const std::vector<Operand>& operands) {
  Parts parts;
  const bool any_complete =
      std::any_of(operands.begin(), operands.end(), [](const Operand& o) { return o.complete(); });
  int alternatives = -1;
  for (size_t i = 0; i < operands.size() && !any_complete && alternatives < 0; ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (operands[i].kind() == operands[j].kind()) alternatives = operands[i].kind();
    }
  }
  // A cluster with a plan beside a bare cluster: whatever brings a cluster is an alternative.
  for (const Operand& o : operands) {
    const bool side = any_complete ? o.complete()
                      : alternatives >= 0
                          ? o.kind() == alternatives || ((o.kind() & alternatives) != 0)
                          : o.cluster;
    (side ? parts.sides : parts.shared).push_back(o.text);
  }
  return parts;
}

// The description of each side, or all that is wrong with any of them.
tl::expected<std::vector<Description>, InputRefusal> describe_sides(const Arguments& args,
                                                                    const Parts& parts) {
  std::vector<Description> sides;
  InputRefusal wrong;
  for (const std::string& input : parts.sides) {
    std::vector<std::string> inputs{input};
    std::string content;
    if (!result_file(input, content))
      inputs.insert(inputs.end(), parts.shared.begin(), parts.shared.end());
    tl::expected<Description, InputRefusal> description = describe_inputs(args, inputs);
    if (description) {
      sides.push_back(std::move(*description));
    } else {
      merge(wrong, description.error());
    }
  }
  if (sides.size() < parts.sides.size()) return tl::unexpected(std::move(wrong));
  return sides;
}

tl::expected<Side, int> make_side(const Context& context, const std::string& input,
                                  Description description) {
  print_error(render(description.warnings));
  StudyOptions options;
  options.what_ifs = false;
  PlanResult result = study(std::move(description), catalog(), options);
  if (!result.fits && (result.searched || result.impossible)) {
    const Impossible why =
        result.impossible.value_or(Impossible{"plan", "no plan fits", "assay plan shows why"});
    const int code = result.impossible && !result.searched ? kInputWrong : kNo;
    return tl::unexpected(fail(context, {Failure{why.reason, sanitize(input), why.fix, code}}));
  }
  Side side;
  side.name = file_name(input);
  side.setting = result.description.setting;
  side.assumed = result.description.assumed;
  side.origins = result.description.origins;
  side.plan = result.plan;
  side.searched = result.searched;
  side.prediction = result.prediction;
  side.run = run_figures(side.setting, side.prediction);
  return side;
}

InputRefusal check(const Context& context, const Arguments& args) {
  InputRefusal refusal{offers_usage(context, args), {}, {}};
  if (args.operands.size() < 2)
    refusal.usage.push_back({"compare needs two descriptions", "assay compare -h"});
  return refusal;
}

int run(const Context& context, const Arguments& args) {
  if (args.operands.size() < 2)
    return reject(context, UsageError{"compare needs two descriptions", "assay compare -h"});
  if (const std::vector<Failure> missing = missing_inputs(args.operands); !missing.empty())
    return fail(context, missing);
  std::vector<std::string> texts;
  if (all_diagnoses(args.operands, texts)) {
    if (args.has("fail-if"))
      return reject(context, UsageError{"--fail-if knows no figure of a diagnosis",
                                        "`assay diagnose --fail-on SHARE` is its gate"});
    return compare_diagnoses(context, args.operands, texts);
  }
  std::vector<Operand> operands;
  Diagnostics problems;
  for (const std::string& text : args.operands) operands.push_back(recognise(text, problems));
  if (has_errors(problems)) return reject(context, problems);
  if (std::count_if(operands.begin(), operands.end(), [](const Operand& o) { return o.site; }) >=
      2) {
    Parts offers;
    for (const Operand& o : operands) (o.site ? offers.sides : offers.shared).push_back(o.text);
    return compare_offers(context, args, offers.sides, offers.shared);
  }
  const auto gates = parse_gates(args);
  if (!gates) return reject(context, gates.error());
  const Parts parts = split(operands);
  if (parts.sides.size() < 2) {
    return reject(
        context,
        UsageError{"compare found only one description among these",
                   "give two files that each hold a workload and a cluster, or one workload and "
                   "two clusters"});
  }
  tl::expected<std::vector<Description>, InputRefusal> described = describe_sides(args, parts);
  if (!described) return refuse(context, described.error());
  std::vector<Side> sides;
  for (size_t i = 0; i < parts.sides.size(); ++i) {
    tl::expected<Side, int> side = make_side(context, parts.sides[i], std::move((*described)[i]));
    if (!side) return side.error();
    sides.push_back(std::move(*side));
  }
  const Comparison result = compare(std::move(sides));
  const Side& last = result.sides.back();
  const int code = any_tripped(*gates, last.prediction, last.run) ? kNo : kYes;
  return deliver(context, compare_text(result, context.style, context.stamp),
                 compare_json(result, context.stamp), code);
}

}  // namespace

Command compare_command() {
  return {
      "compare",
      "A B [C...]",
      "what differs between plans, clusters or results, and what each difference is worth",
      "A, B, ... are files that hold a workload, a cluster and a plan; results of `assay plan -o`; "
      "or "
      "clusters (stacks, plans, workloads) together with one workload (and what else they share). "
      "Where no plan is stated, the best one is searched for each.\n"
      "Two sides: the difference is attributed to each changed setting by switching one at a time, "
      "first and last, and taking the mean; what is left is named interaction. More sides: a "
      "table, "
      "the best last.\n"
      "Offers: sides that each hold a `site:` (with its cluster and prices) are simulated with the "
      "same "
      "luck until the workload's tokens are done: days, dollars per useful exaFLOP, energy, "
      "losses.\n"
      "Diagnoses: documents of `assay diagnose -o` are subtracted account by account.\n"
      "Ratios carry their uncertainty. Where the 90 % ranges overlap, there is no significant "
      "difference.",
      {{"gpus", 0, "N", "use N accelerators of each cluster", ""},
       {"tokens", 0, "T", "tokens to train on, e.g. 2T", ""},
       {"runs", 0, "N", "offers: how many runs, each with other luck", "Default: 200."},
       {"days", 0, "D", "offers: run so long instead of until the tokens are done", ""},
       {"deadline", 0, "DAYS", "offers: the risk of being later than this", ""},
       {"fail-if", 0, "COND", "exit 1 when COND holds for the last side (repeatable)",
        "As in `assay plan`: 'mfu < 0.40', 'cost > 1.5e6'."}},
      {"assay compare examples/lambda-before.yaml examples/lambda-after.yaml",
       "assay compare examples/llama-70b.yaml examples/h100-128.yaml examples/offer-cheap.yaml",
       "assay compare last-week.json today.json --fail-if 'mfu < 0.40'"},
      run,
      check};
}

}  // namespace assay
