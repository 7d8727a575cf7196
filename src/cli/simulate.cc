// assay simulate: describe -> plan -> spec -> many runs -> levers -> screen.
#include <fmt/format.h>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/simulation.h"

namespace assay {
namespace {

// Writes one run as a Perfetto trace.
Result<bool> write_trace(SimulateResult r, const SimulationAsk& ask, const std::string& path) {
  // The counters are of the weather that this run meets.
  const size_t weather = weather_of(r.spec.spec.site, ask.seed);
  if (weather > 0) r.site = r.other_weather[weather - 1];
  RunOptions options;
  options.trace = true;
  options.bucket = trace_bucket(r.spec.spec.period);
  const RunResult run = Simulator(r.spec.spec).run(ask.seed, options);
  return write_file(path, run_trace_json(r, run, options.bucket,
                                         fmt::format("assay simulate, seed {}", ask.seed)));
}

InputRefusal check(const Context& context, const Arguments& args) {
  UsageErrors wrong;
  if (args.operands.empty())
    wrong.push_back({"simulate needs a workload and a cluster", "assay simulate -h"});
  const SimulationAsk ask = read_simulation_ask(context, args, wrong);
  const auto gates = parse_gates(args);
  if (!gates) wrong.insert(wrong.end(), gates.error().begin(), gates.error().end());
  InputRefusal refusal = description_refusal(
      args, all_inputs(args), [](Request& request) { request.needs_operations = true; },
      [&](const DescribeAttempt& attempt) { return run_problems(context, attempt, ask); });
  refusal.usage.insert(refusal.usage.begin(), wrong.begin(), wrong.end());
  return refusal;
}

int run(const Context& context, const Arguments& args) {
  UsageErrors wrong;
  const SimulationAsk ask = read_simulation_ask(context, args, wrong);
  const auto gates = parse_gates(args);
  if (!wrong.empty() || !gates || args.operands.empty())
    return refuse(context, check(context, args));
  tl::expected<Description, InputRefusal> description = describe_run(args, all_inputs(args));
  if (!description) return refuse(context, check(context, args));
  print_error(render(description->warnings));
  const auto ready = ready_run(context, std::move(*description), ask);
  if (!ready) return refuse_run(context, ready.error());
  const SimulateResult r = run_it(context, **ready, ask);
  if (args.has("trace")) {
    const Result<bool> written = write_trace(r, ask, args.get("trace"));
    if (!written) return fail(context, {written.error()});
  }
  const bool partial = r.many.partial() || r.levers_cut;
  const bool failed = r.many.done > 0 && any_tripped(*gates, gate_figures(r));
  return deliver(context, simulate_text(r, context.style, context.stamp),
                 simulate_json(r, context.stamp),
                 partial  ? kInterrupted
                 : failed ? kNo
                          : kYes);
}

}  // namespace

Command simulate_command() {
  return {
      "simulate",
      "WORKLOAD CLUSTER [SITE] [RUN] [PLAN]",
      "weeks with failures, checkpoints, heat and power: where every GPU-hour goes",
      "The step is that of `assay plan`: the best plan, or the one that is stated. Around it a run "
      "of weeks: failures by published rates, detection, repair, restarts, checkpoints and lost "
      "work, stragglers, data stalls, the site's hours.\n"
      "SITE and RUN are catalog names (`assay catalog list sites`, `operations`) or sections "
      "`site:` and `run:` of a file; without RUN, good practice of 2026 is assumed.\n"
      "Each run has its own luck; the same seed gives the same bytes. Levers are measured with the "
      "same luck as the run. Ctrl-C shows what is known so far.",
      {{"site", 0, "S", "the site, a catalog name or a file", ""},
       {"run", 0, "R", "how it is operated, a catalog name or a file", ""},
       {"gpus", 0, "N", "use N accelerators of the cluster", "Default: all of them."},
       {"days", 0, "D", "how long to run", "Default: 30, or until --tokens are done."},
       {"tokens", 0, "T", "run until so many tokens are done, e.g. 2T", ""},
       {"start", 0, "DATE", "when it begins, e.g. 2026-07: the site's weather and prices", ""},
       {"runs", 0, "N", "how many runs, each with other luck", "Default: 200."},
       {"trace", 0, "FILE", "write the run of the seed as a Perfetto trace",
        "Tracks of job, input, machines and spares; counters of goodput, clocks, power and "
        "coolant."},
       {"fail-if", 0, "COND", "exit 1 when COND holds, e.g. 'goodput < 0.9' (repeatable)",
        "Figures as in `assay plan`; all of them are means of the runs."},
       {"no-what-ifs", 0, "", "skip the levers", ""}},
      {"assay simulate llama-3.1-405b h100-24k-meta --gpus 16384 --run meta-llama3 --days 54",
       "assay simulate llama-3.1-70b h100-1024 --site phoenix --tokens 2T --json",
       "assay simulate llama-3.1-70b h100-1024 --set run.spares=8 --trace run.json"},
      run,
      check};
}

}  // namespace assay
