#include "cli/inputs.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/file.h"
#include "plan/study.h"
#include "report/result_file.h"
#include "site/facility.h"
#include "world/place.h"

namespace assay {
namespace {

constexpr size_t kResultBytesMost = size_t{64} << 20;

bool ends_with_json(const std::string& name) {
  return name.size() > 5 && name.compare(name.size() - 5, 5, ".json") == 0;
}

tl::expected<Description, InputRefusal> from_result(const Arguments& args, const std::string& text,
                                                    const std::string& file,
                                                    const std::string& which) {
  for (const char* option : {"set", "gpus", "tokens"}) {
    if (!args.has(option)) continue;
    return tl::unexpected(InputRefusal{
        {{fmt::format("--{} does not change a result that is already computed", option),
          "give the workload and the cluster again"}},
        {},
        {}});
  }
  tl::expected<Description, Diagnostics> read = read_result(text, file, catalog(), which);
  if (!read) return tl::unexpected(InputRefusal{{}, read.error(), {}});
  return std::move(*read);
}

// A site knows its own PUE; the usual one is for those who name none.
void take_pue_of_site(Description& d) {
  const auto assumed = std::find_if(d.assumed.begin(), d.assumed.end(),
                                    [](const Assumption& a) { return a.path == "cluster.pue"; });
  if (!d.has_site || assumed == d.assumed.end()) return;
  const double pue = totals(facility_series(d.site, d.setting.cluster, {})).pue;
  d.setting.cluster.pue = std::round(pue * 1000) / 1000;  // weather is not known better
  d.origins["cluster.pue"] = Origin{'c', "climate and plant of the site, over a year", "", 0};
  d.assumed.erase(assumed);
}

}  // namespace

int refuse(const Context& context, const InputRefusal& r) {
  if (r.problems.empty() && r.failures.empty()) return reject(context, r.usage);
  if (r.usage.empty() && r.problems.empty()) return fail(context, r.failures);
  Diagnostics all;
  for (const UsageError& e : r.usage) {
    all.emplace_back().message = e.message;
    all.back().help = e.help;
  }
  all.insert(all.end(), r.problems.begin(), r.problems.end());
  for (const Failure& f : r.failures) all.push_back(to_diagnostic(f));
  return reject(context, all);
}

void add_further(Diagnostics& problems, const Diagnostics& further) {
  const auto same = [](const Diagnostic& a, const Diagnostic& b) {
    const bool place = !a.at.file.empty() && a.at.file == b.at.file && a.at.line == b.at.line &&
                       a.at.column == b.at.column;
    return place || render(a) == render(b);
  };
  const size_t before = problems.size();
  for (const Diagnostic& d : further) {
    const auto end = problems.begin() + static_cast<std::ptrdiff_t>(before);
    if (std::none_of(problems.begin(), end, [&](const Diagnostic& p) { return same(p, d); }))
      problems.push_back(d);
  }
  sort_by_place(problems);
}

InputRefusal description_refusal(const Arguments& args, const std::vector<std::string>& inputs,
                                 const std::function<void(Request&)>& needs,
                                 const FurtherProblems& further) {
  InputRefusal refusal;
  if (inputs.empty()) return refusal;
  if (std::string ignored; inputs.size() == 1 && result_file(inputs[0], ignored)) return refusal;
  if (refusal.failures = missing_inputs(inputs); !refusal.failures.empty()) return refusal;
  Arguments readable = args;
  if (tl::expected<Request, UsageErrors> request = make_request(args, inputs); !request) {
    refusal.usage = request.error();
    std::erase_if(readable.options,
                  [](const auto& o) { return o.first == "gpus" || o.first == "tokens"; });
  }
  Request request = *make_request(readable, inputs);
  needs(request);
  const DescribeAttempt attempt = try_describe(request, catalog());
  if (has_errors(attempt.problems)) refusal.problems = attempt.problems;
  if (attempt.readable && further) add_further(refusal.problems, further(attempt));
  return refusal;
}

void merge(InputRefusal& into, const InputRefusal& more) {
  if (into.usage.empty()) into.usage = more.usage;  // of the one command line
  if (into.failures.empty()) into.failures = more.failures;
  for (const Diagnostic& d : more.problems) {
    const std::string text = render(d);
    const bool told = std::any_of(into.problems.begin(), into.problems.end(),
                                  [&](const Diagnostic& p) { return render(p) == text; });
    if (!told) into.problems.push_back(d);
  }
}

std::vector<std::string> all_inputs(const Arguments& args) {
  std::vector<std::string> inputs = args.operands;
  for (const char* option : {"site", "run"}) {
    if (args.has(option)) inputs.push_back(args.get(option));
  }
  return inputs;
}

bool result_file(const std::string& input, std::string& text) {
  if (input != "-" && (!ends_with_json(input) || !file_exists(input))) return false;
  Result<std::string> read = read_file(input, kResultBytesMost);
  if (!read || !is_result(*read)) return false;
  text = std::move(*read);
  return true;
}

tl::expected<Description, InputRefusal> describe_inputs(const Arguments& args,
                                                        const std::vector<std::string>& inputs,
                                                        const std::string& which, bool over_weeks) {
  std::string text;
  if (inputs.size() == 1 && result_file(inputs[0], text))
    return from_result(args, text, inputs[0], which);
  if (std::vector<Failure> missing = missing_inputs(inputs); !missing.empty()) {
    return tl::unexpected(InputRefusal{{}, {}, std::move(missing)});
  }
  tl::expected<Request, UsageErrors> request = make_request(args, inputs);
  if (!request) return tl::unexpected(InputRefusal{request.error(), {}, {}});
  request->needs_operations = over_weeks;
  tl::expected<Description, Diagnostics> described = describe(*request, catalog());
  if (!described) return tl::unexpected(InputRefusal{{}, described.error(), {}});
  take_pue_of_site(*described);
  return std::move(*described);
}

tl::expected<std::vector<Gate>, UsageErrors> parse_gates(const Arguments& args) {
  std::vector<Gate> gates;
  UsageErrors wrong;
  for (const std::string& text : args.all("fail-if")) {
    const tl::expected<Gate, std::string> gate = parse_gate(text);
    if (!gate) {
      wrong.push_back(
          {fmt::format("--fail-if: `{}` is not a condition", sanitize(text, 80)), gate.error()});
    } else {
      gates.push_back(*gate);
    }
  }
  if (!wrong.empty()) return tl::unexpected(std::move(wrong));
  return gates;
}

bool any_tripped(const std::vector<Gate>& gates, const GateFigures& figures) {
  bool any = false;
  for (const Gate& g : gates) {
    const std::optional<std::string> why = tripped(g, figures);
    if (!why) continue;
    print_error(fmt::format("gate failed: {}\n", *why));
    any = true;
  }
  return any;
}

Diagnostics impossible_problems(const PlanResult& r) {
  if (!r.impossible || r.miss) return {};
  std::vector<Impossible> all{*r.impossible};
  if (!r.searched) all = Predictor(r.description.setting).all_impossible(r.plan);
  Diagnostics problems;
  for (const Impossible& why : all) {
    problems.push_back(problem_of(r.description.origins, why.setting,
                                  fmt::format("{}: {}", why.setting, why.reason), why.fix));
  }
  sort_by_place(problems);
  return problems;
}

Diagnostics plan_problems(const DescribeAttempt& attempt) {
  if (!attempt.readable || !attempt.readable->has_workload) return {};
  StudyOptions options;
  options.what_ifs = false;
  return impossible_problems(study(*attempt.readable, catalog(), options));
}

std::string file_name(const std::string& path) {
  if (path == "-") return "stdin";
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

}  // namespace assay
