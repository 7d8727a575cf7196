#include "cli/compare_kinds.h"

#include <fmt/format.h>

#include "base/file.h"
#include "cli/inputs.h"
#include "cli/interrupt.h"
#include "cli/simulation.h"
#include "report/diagnose_compare.h"
#include "report/offers_report.h"

namespace assay {
namespace {

constexpr size_t kDiagnosisBytes = size_t{64} << 20;

// What gates ask for, of the simulated run instead of the step alone.
RunFigures simulated_figures(const SimulateResult& r) {
  RunFigures figures = r.plan.run;
  const OfferFigures offer = offer_figures(r, 0);
  figures.time_s.value = r.many.period.mean;
  figures.accelerator_hours.value = r.many.paid.mean / kSecondsPerHour;
  figures.cost_usd.value = offer.cost_usd;
  figures.energy_kwh.value = offer.kwh;
  return figures;
}

struct OffersAsk {
  SimulationAsk simulation;
  double deadline_days = 0;  // zero: none
  std::vector<Gate> gates;
};

tl::expected<OffersAsk, UsageErrors> read_offers_ask(const Context& context,
                                                     const Arguments& args) {
  OffersAsk ask;
  UsageErrors wrong;
  if (const auto simulation = read_simulation_ask(context, args)) {
    ask.simulation = *simulation;
  } else {
    wrong = simulation.error();
  }
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
  if (!wrong.empty()) return tl::unexpected(std::move(wrong));
  return ask;
}

}  // namespace

UsageErrors offers_usage(const Context& context, const Arguments& args) {
  const tl::expected<OffersAsk, UsageErrors> asked = read_offers_ask(context, args);
  return asked ? UsageErrors() : asked.error();
}

int compare_offers(const Context& context, const Arguments& args,
                   const std::vector<std::string>& sides, const std::vector<std::string>& shared) {
  tl::expected<OffersAsk, UsageErrors> asked = read_offers_ask(context, args);
  std::vector<Description> descriptions;
  InputRefusal wrong;
  if (!asked) wrong.usage = asked.error();
  for (const std::string& side : sides) {
    std::vector<std::string> inputs{side};
    inputs.insert(inputs.end(), shared.begin(), shared.end());
    tl::expected<Description, InputRefusal> description = describe_run(args, inputs);
    if (!description) {
      merge(wrong,
            description_refusal(args, inputs, [](Request& r) { r.needs_operations = true; }));
      continue;
    }
    print_error(render(description->warnings));
    descriptions.push_back(std::move(*description));
  }
  if (wrong.any()) return refuse(context, wrong);
  OffersResult result;
  result.deadline_days = asked->deadline_days;
  for (size_t i = 0; i < sides.size(); ++i) {
    const std::string& side = sides[i];
    tl::expected<SimulateResult, int> run =
        simulate_description(context, std::move(descriptions[i]), asked->simulation);
    if (!run) return run.error();
    if (run->many.done > 0) result.sides.push_back({file_name(side), std::move(*run)});
    if (interrupted()) break;
  }
  result.partial = interrupted();
  const bool failed =
      !result.sides.empty() && any_tripped(asked->gates, result.sides.back().run.plan.prediction,
                                           simulated_figures(result.sides.back().run));
  return deliver(context, offers_text(result, context.style, context.stamp),
                 offers_json(result, context.stamp),
                 result.partial ? kInterrupted
                 : failed       ? kNo
                                : kYes);
}

bool all_diagnoses(const std::vector<std::string>& operands, std::vector<std::string>& texts) {
  for (const std::string& operand : operands) {
    if (!file_exists(operand) || operand == "-") return false;
    Result<std::string> text = read_file(operand, kDiagnosisBytes);
    if (!text || !is_diagnosis(*text)) return false;
    texts.push_back(std::move(*text));
  }
  return operands.size() >= 2;
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
