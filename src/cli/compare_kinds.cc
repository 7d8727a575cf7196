#include "cli/compare_kinds.h"

#include <fmt/format.h>

#include "base/file.h"
#include "cli/inputs.h"
#include "cli/interrupt.h"
#include "cli/simulation.h"
#include "report/diagnose_compare.h"
#include "report/offers_report.h"
#include "report/simulate_compare.h"
#include "world/model_size.h"
#include "world/place.h"

namespace assay {
namespace {

constexpr size_t kDocumentBytes = size_t{64} << 20;

struct OffersAsk {
  SimulationAsk simulation;
  double deadline_days = 0;  // zero: none
  std::vector<Gate> gates;
};

// Offers are of one job: days and dollars of another one say nothing.
Diagnostics other_jobs(const std::vector<Description>& sides) {
  Diagnostics problems;
  for (const Description& d : sides) {
    const Workload &w = d.setting.workload, &first = sides.front().setting.workload;
    const bool same = parameters(w.model) == parameters(first.model) && w.seq == first.seq &&
                      attended(w) == attended(first) && w.tokens == first.tokens &&
                      w.task == first.task;
    if (same) continue;
    const auto job = [](const Workload& of) {
      return fmt::format("{} ({} tokens, seq {})", sanitize(of.model.name, 40), scaled(of.tokens),
                         of.seq);
    };
    problems.push_back(problem_of(
        d.origins, "workload",
        fmt::format("offers are compared for one job: {} here, {} before", job(w), job(first)),
        "state the workload once, beside the offers, or the same in each"));
  }
  return problems;
}

// What is wrong is added to `wrong`, and the usual stands for it.
OffersAsk read_offers_ask(const Context& context, const Arguments& args, UsageErrors& wrong) {
  OffersAsk ask;
  ask.simulation = read_simulation_ask(context, args, wrong);
  ask.simulation.levers = false;
  ask.simulation.to_target = !args.has("days");  // offers are compared by when the job is done
  if (const auto gates = parse_gates(args)) {
    ask.gates = *gates;
  } else {
    wrong.insert(wrong.end(), gates.error().begin(), gates.error().end());
  }
  if (args.has("deadline")) {
    const std::string text = args.get("deadline");
    char* end = nullptr;
    ask.deadline_days = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != 0 || !(ask.deadline_days > 0 && ask.deadline_days < 1e5)) {
      wrong.push_back({fmt::format("--deadline: `{}` is not a number of days", sanitize(text, 40)),
                       "as in --deadline 60"});
    }
  }
  if (const auto request = make_request(args, {}); !request)
    wrong.insert(wrong.end(), request.error().begin(), request.error().end());
  return ask;
}

}  // namespace

UsageErrors offers_usage(const Context& context, const Arguments& args) {
  UsageErrors wrong;
  read_offers_ask(context, args, wrong);
  return wrong;
}

InputRefusal offers_refusal(const Context& context, const Arguments& args,
                            const std::vector<std::string>& sides,
                            const std::vector<std::string>& shared) {
  InputRefusal wrong;
  const SimulationAsk ask = read_offers_ask(context, args, wrong.usage).simulation;
  for (const std::string& side : sides) {
    std::vector<std::string> inputs{side};
    inputs.insert(inputs.end(), shared.begin(), shared.end());
    merge(wrong,
          description_refusal(
              args, inputs, [](Request& r) { r.needs_operations = true; },
              [&](const DescribeAttempt& attempt) { return run_problems(context, attempt, ask); }));
  }
  return wrong;
}

int compare_offers(const Context& context, const Arguments& args,
                   const std::vector<std::string>& sides, const std::vector<std::string>& shared) {
  InputRefusal wrong;
  const OffersAsk asked = read_offers_ask(context, args, wrong.usage);
  std::vector<Description> descriptions;
  bool broken = wrong.any();
  for (const std::string& side : sides) {
    std::vector<std::string> inputs{side};
    inputs.insert(inputs.end(), shared.begin(), shared.end());
    tl::expected<Description, InputRefusal> description = describe_run(args, inputs);
    if (!description) {
      broken = true;
      continue;
    }
    print_error(render(description->warnings));
    descriptions.push_back(std::move(*description));
  }
  if (broken) return refuse(context, offers_refusal(context, args, sides, shared));
  wrong.problems = other_jobs(descriptions);
  // Every side is planned before any is run: what is wrong with the last one is told now.
  std::vector<std::unique_ptr<ReadyRun>> ready;
  std::optional<RunRefusal> misfit;
  for (size_t i = 0; i < sides.size(); ++i) {
    auto run = ready_run(context, std::move(descriptions[i]), asked.simulation);
    if (run) {
      ready.push_back(std::move(*run));
    } else {
      add_further(wrong.problems, run.error().problems);
      if (run.error().problems.empty() && !misfit) misfit = std::move(run.error());
    }
  }
  if (wrong.any()) return refuse(context, wrong);
  if (misfit) return refuse_run(context, *misfit);
  OffersResult result;
  result.deadline_days = asked.deadline_days;
  for (size_t i = 0; i < sides.size(); ++i) {
    SimulateResult run = run_it(context, *ready[i], asked.simulation);
    ready[i].reset();
    if (run.many.done > 0) result.sides.push_back({file_name(sides[i]), std::move(run)});
    if (interrupted()) break;
  }
  result.partial = interrupted();
  const bool failed =
      !result.sides.empty() && any_tripped(asked.gates, gate_figures(result.sides.back().run));
  return deliver(context, offers_text(result, context.style, context.stamp),
                 offers_json(result, context.stamp),
                 result.partial ? kInterrupted
                 : failed       ? kNo
                                : kYes);
}

std::vector<std::string> documents_of(const std::vector<std::string>& operands,
                                      bool (*is_one)(const std::string&)) {
  std::vector<std::string> texts;
  for (const std::string& operand : operands) {
    if (!file_exists(operand)) return {};
    Result<std::string> text = read_file(operand, kDocumentBytes);
    if (!text || !is_one(*text)) return {};
    texts.push_back(std::move(*text));
  }
  return operands.size() >= 2 ? texts : std::vector<std::string>{};
}

int compare_simulations(const Context& context, const std::vector<std::string>& operands,
                        const std::vector<std::string>& texts) {
  std::vector<SimulationSide> sides;
  Diagnostics problems;
  for (size_t i = 0; i < texts.size(); ++i) {
    SimulationSide side;
    side.name = file_name(operands[i]);
    if (read_simulation(texts[i], operands[i], side, problems)) sides.push_back(std::move(side));
  }
  if (has_errors(problems)) return reject(context, problems);
  return deliver(context, simulate_compare_text(sides, context.style, context.stamp),
                 simulate_compare_json(sides, context.stamp), kYes);
}

int compare_diagnoses(const Context& context, const std::vector<std::string>& operands,
                      const std::vector<std::string>& texts) {
  std::vector<DiagnosisSide> sides;
  Diagnostics problems;
  for (size_t i = 0; i < texts.size(); ++i) {
    DiagnosisSide side;
    side.name = file_name(operands[i]);
    if (read_diagnosis(texts[i], operands[i], side, problems)) sides.push_back(std::move(side));
  }
  if (has_errors(problems)) return reject(context, problems);
  return deliver(context, diagnose_compare_text(sides, context.style, context.stamp),
                 diagnose_compare_json(sides, context.stamp), kYes);
}

}  // namespace assay
