// assay compare: plans, clusters or results side by side, and what each difference is worth.
#include <algorithm>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/compare_kinds.h"
#include "cli/inputs.h"
#include "cli/outlook.h"
#include "plan/compare.h"
#include "plan/study.h"
#include "report/compare_report.h"
#include "report/diagnose_compare.h"
#include "report/simulate_compare.h"
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
      if (operands[i].kind() > 0 && operands[i].kind() == operands[j].kind())
        alternatives = operands[i].kind();
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

// What a side is described by.
std::vector<std::string> side_inputs(const std::string& side, const Parts& parts) {
  std::vector<std::string> inputs{side};
  std::string content;
  if (!result_file(side, content))
    inputs.insert(inputs.end(), parts.shared.begin(), parts.shared.end());
  return inputs;
}

// The description of each side; nothing where something is wrong with any of them.
std::optional<std::vector<Description>> describe_sides(const Arguments& args, const Parts& parts,
                                                       InputRefusal& wrong) {
  std::vector<Description> sides;
  for (const std::string& side : parts.sides) {
    tl::expected<Description, InputRefusal> description =
        describe_inputs(args, side_inputs(side, parts), "", true);
    if (description) {
      sides.push_back(std::move(*description));
    } else {
      merge(wrong, description.error());
    }
  }
  if (wrong.any()) return std::nullopt;
  return sides;
}

// Plans each side. Whatever cannot be planned is told at once, and the exit code returned.
tl::expected<std::vector<PlanResult>, int> plan_sides(const Context& context, const Parts& parts,
                                                      std::vector<Description> described) {
  std::vector<PlanResult> results;
  Diagnostics impossible;
  std::vector<Failure> misfits;
  for (size_t i = 0; i < described.size(); ++i) {
    print_error(render(described[i].warnings));
    StudyOptions options;
    options.what_ifs = false;
    results.push_back(study(std::move(described[i]), catalog(), options));
    PlanResult& r = results.back();
    if (r.fits) continue;
    const Diagnostics problems = impossible_problems(r);
    add_further(impossible, problems);
    if (problems.empty() && !r.miss)
      misfits.push_back({"no plan fits", sanitize(parts.sides[i]), "assay plan shows why", kNo});
    // What comes closest stands beside the others: by how much it misses is an answer, too.
    if (r.miss && r.searched) r.prediction = Predictor(r.description.setting).predict(r.plan);
  }
  if (!impossible.empty()) return tl::unexpected(reject(context, impossible));
  if (!misfits.empty()) return tl::unexpected(fail(context, misfits));
  return results;
}

Side make_side(const std::string& input, size_t given, const PlanResult& result) {
  Side side;
  side.name = file_name(input);
  side.given = given;
  side.setting = result.description.setting;
  side.assumed = result.description.assumed;
  side.origins = result.description.origins;
  side.plan = result.plan;
  side.searched = result.searched;
  side.prediction = result.prediction;
  side.run = run_figures(result.description, side.prediction);
  return side;
}

// What operands are, and the kind of comparison that follows.
struct Recognised {
  std::vector<std::string> diagnoses, simulations;  // their texts, where all operands are such
  Diagnostics problems;                             // where not empty, nothing else is known
  bool offers = false;
  Parts parts;
};

Recognised recognise_all(const std::vector<std::string>& texts) {
  Recognised r;
  r.diagnoses = documents_of(texts, is_diagnosis);
  r.simulations = documents_of(texts, is_simulation);
  if (!r.diagnoses.empty() || !r.simulations.empty()) return r;
  std::vector<Operand> operands;
  for (const std::string& text : texts) operands.push_back(recognise(text, r.problems));
  if (!has_errors(r.problems)) r.problems.clear();
  r.offers =
      std::count_if(operands.begin(), operands.end(), [](const Operand& o) { return o.site; }) >= 2;
  if (!r.offers) {
    r.parts = split(operands);
    return r;
  }
  for (const Operand& o : operands) (o.site ? r.parts.sides : r.parts.shared).push_back(o.text);
  return r;
}

// Options that only offers have: plans are not run.
UsageErrors idle_options(const Arguments& args) {
  UsageErrors idle;
  for (const char* option : {"runs", "days", "deadline"}) {
    if (!args.has(option)) continue;
    idle.push_back({fmt::format("--{} changes nothing here: it is for offers", option),
                    "give sides that each hold a `site:`, or leave it out"});
  }
  return idle;
}

InputRefusal check(const Context& context, const Arguments& args) {
  InputRefusal refusal{offers_usage(context, args), {}, missing_inputs(args.operands)};
  if (args.operands.size() < 2)
    refusal.usage.push_back({"compare needs two descriptions", "assay compare -h"});
  if (args.operands.size() < 2 || !refusal.failures.empty()) return refusal;
  const Recognised what = recognise_all(args.operands);
  refusal.problems = what.problems;
  if (!what.diagnoses.empty() || !what.simulations.empty() || !what.problems.empty())
    return refusal;
  if (what.offers) {
    merge(refusal, offers_refusal(context, args, what.parts.sides, what.parts.shared));
    return refusal;
  }
  if (what.parts.sides.size() < 2) {
    refusal.usage.push_back(
        {"compare found only one description among these",
         "give two files that each hold a workload and a cluster, or one workload and "
         "two clusters"});
  }
  const UsageErrors idle = idle_options(args);
  refusal.usage.insert(refusal.usage.end(), idle.begin(), idle.end());
  for (const std::string& side : what.parts.sides) {
    merge(refusal, description_refusal(
                       args, side_inputs(side, what.parts),
                       [](Request& r) { r.needs_operations = true; }, plan_problems));
  }
  return refusal;
}

int compare_plans(const Context& context, const Arguments& args, const Parts& parts,
                  const std::vector<Gate>& gates) {
  InputRefusal wrong;
  std::optional<std::vector<Description>> described = describe_sides(args, parts, wrong);
  if (!described) {
    merge(wrong, check(context, args));
    return refuse(context, wrong);
  }
  const auto planned = plan_sides(context, parts, std::move(*described));
  if (!planned) return planned.error();
  std::vector<Side> sides;
  std::vector<PlanOutlook> given;
  for (size_t i = 0; i < planned->size(); ++i) {
    sides.push_back(make_side(parts.sides[i], i, (*planned)[i]));
    given.push_back(plan_outlook((*planned)[i], context.stamp.seed));
  }
  const Comparison result = compare(std::move(sides));
  std::vector<PlanOutlook> outlook;
  for (const Side& s : result.sides) outlook.push_back(given[s.given]);
  const Side& last = result.sides.back();
  const bool failed = any_tripped(gates, gate_figures(last.prediction, last.run, outlook.back()));
  const bool fit = std::all_of(result.sides.begin(), result.sides.end(), fits);
  return deliver(context, compare_text(result, context.style, context.stamp, outlook),
                 compare_json(result, context.stamp, outlook), failed || !fit ? kNo : kYes);
}

int run(const Context& context, const Arguments& args) {
  const auto gates = parse_gates(args);
  if (!gates || args.operands.size() < 2 || !missing_inputs(args.operands).empty())
    return refuse(context, check(context, args));
  const Recognised what = recognise_all(args.operands);
  if (!what.diagnoses.empty()) {
    if (args.has("fail-if"))
      return reject(context, UsageError{"--fail-if knows no figure of a diagnosis",
                                        "`assay diagnose --fail-on SHARE` is its gate"});
    return compare_diagnoses(context, args.operands, what.diagnoses);
  }
  if (!what.simulations.empty()) {
    if (args.has("fail-if"))
      return reject(context, UsageError{"--fail-if is not for documents of `assay simulate`",
                                        "`assay simulate --fail-if` is their gate"});
    return compare_simulations(context, args.operands, what.simulations);
  }
  if (!what.problems.empty()) return refuse(context, check(context, args));
  if (what.offers) return compare_offers(context, args, what.parts.sides, what.parts.shared);
  if (what.parts.sides.size() < 2 || !idle_options(args).empty())
    return refuse(context, check(context, args));
  return compare_plans(context, args, what.parts, *gates);
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
      "Diagnoses and simulated runs: documents of `assay diagnose -o` are subtracted account by "
      "account, those of `assay simulate -o` stand side by side.\n"
      "Ratios carry their 90 % range; where it holds 1, there is no significant difference in "
      "speed. "
      "On the same accelerators and stack most of an error is common to both sides.",
      {{"gpus", 0, "N", "use N accelerators of each cluster", ""},
       {"tokens", 0, "T", "tokens to train on, e.g. 2T", ""},
       {"runs", 0, "N", "offers: how many runs, each with other luck", "Default: 200."},
       {"days", 0, "D", "offers: run so long instead of until the tokens are done", ""},
       {"deadline", 0, "DAYS", "offers: the risk of being later than this", ""},
       {"fail-if", 0, "COND", "exit 1 when COND holds for the last side (repeatable)",
        "As in `assay plan`: 'mfu < 0.40', 'goodput < 0.9', 'cost > 1.5e6'; of offers all figures "
        "are with failures."}},
      {"assay compare examples/lambda-before.yaml examples/lambda-after.yaml",
       "assay compare examples/llama-70b.yaml examples/h100-128.yaml examples/offer-cheap.yaml",
       "assay compare last-week.json today.json --fail-if 'mfu < 0.40'"},
      run,
      check};
}

}  // namespace assay
