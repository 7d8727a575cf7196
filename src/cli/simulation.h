// From a description to a simulated run: shared by `simulate` and by `compare` of offers.
#pragma once

#include "cli/inputs.h"
#include "report/simulate_report.h"

namespace assay {

struct SimulationAsk {
  double days = 0;         // zero: until the tokens are done, else the usual month
  bool to_target = false;  // run until the workload's tokens are done
  int64_t runs = 200;
  uint64_t seed = 1;
  bool levers = true;
  bool dark = false;  // a site that lets nothing run is simulated, too
  std::string start;  // date at which the run begins, `2026-07`; empty: the offer's, or January
};

// Options --days, --tokens, --runs, --start and --seed. What is wrong with them is added to
// `wrong`, and the usual stands for it.
SimulationAsk read_simulation_ask(const Context&, const Arguments&, UsageErrors& wrong);

// How long a run to a token target is waited for.
constexpr double kDaysMost = 3650;

// A run's numbers before it is run: what a plan, its operations and its site come to.
struct RunParts {
  SpecInput input;  // points into the plan, the operations and the site that it was made from
  FacilityOptions facility;
  std::optional<SiteSeries> site;
  std::vector<SiteSeries> other_weather;
};
// `days` zero: until the tokens are done, else the usual month. `site` null: none given; its
// weather begins at `start`, or with its offer. Other weather is as much as the luck of runs needs;
// none where `weathers` is 1.
struct RunAsk {
  double days = 0, tokens = 0;
  std::string start;
  uint64_t seed = 1;
  int64_t weathers = 0;  // zero: as many as a run's luck is drawn from
};
std::unique_ptr<RunParts> run_parts(const Setting&, const Plan&, const Prediction&,
                                    const Operations&, const Site*, const RunAsk&);
// A site that lets nothing run in any hour: of what is asked, even nodes at rest are too many.
Diagnostics unpowered(const RunParts&, const Description&);
// What an accelerator-hour of it costs, on average over the time that it takes.
RunMoney run_money(const PlanResult&, const RunParts&, Seconds period);

// A run that is planned and found to be possible.
struct ReadyRun {
  SimulateResult result;  // without runs
  Operations operations;
  Site site;
  std::unique_ptr<RunParts> parts;  // points into the above
};
// Why there is none: all that is wrong; or nothing is, and no plan fits.
struct RunRefusal {
  Diagnostics problems;
  std::optional<PlanResult> misfit;
};
tl::expected<std::unique_ptr<ReadyRun>, RunRefusal> ready_run(const Context&, Description,
                                                              const SimulationAsk&);
// What ready_run would refuse, as far as it can be seen. Nothing about whether a plan fits.
Diagnostics run_problems(const Context&, const DescribeAttempt&, const SimulationAsk&);

// Runs it. Ctrl-C ends it early with the runs that are complete: none where another run was
// complete before.
SimulateResult run_it(const Context&, ReadyRun&, const SimulationAsk&);

// Tells why there is no run; the exit code. Where no plan fits, its screen or document with what
// would make it fit is the answer.
int refuse_run(const Context&, const RunRefusal&);

// A description for a run: like describe_inputs, with operations.
tl::expected<Description, InputRefusal> describe_run(const Arguments&,
                                                     const std::vector<std::string>& inputs);

}  // namespace assay
