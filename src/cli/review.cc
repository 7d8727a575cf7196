// assay review: how much a site holds, and what a design review asks before a cluster goes live.
#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/interrupt.h"
#include "cli/simulation.h"
#include "report/review_report.h"

#include <limits>

#include <fmt/format.h>

namespace assay {
namespace {

// Enough for a figure in a review; `assay simulate` has the rest.
constexpr double kSimulatedDays = 30;
constexpr int64_t kSimulatedRuns = 24;

tl::expected<Description, InputRefusal> describe_site(const Arguments& args) {
  if (std::vector<Failure> missing = missing_inputs(args.operands); !missing.empty()) {
    return tl::unexpected(InputRefusal{{}, {}, std::move(missing)});
  }
  tl::expected<Request, UsageErrors> request = make_request(args, args.operands);
  if (!request) return tl::unexpected(InputRefusal{request.error(), {}, {}});
  request->needs_workload = false;
  request->needs_site = true;
  request->needs_operations = true;
  tl::expected<Description, Diagnostics> described = describe(*request, catalog());
  if (!described) return tl::unexpected(InputRefusal{{}, described.error(), {}});
  // How a job is operated matters only where there is one.
  if (!described->has_workload)
    std::erase_if(described->assumed, [](const Assumption& a) { return a.path == "run"; });
  return std::move(*described);
}

SimulationAsk month(const Context& context) {
  SimulationAsk ask;
  ask.days = kSimulatedDays;
  ask.runs = kSimulatedRuns;
  ask.levers = false;
  ask.dark = true;  // a review asks what else binds, and gets its answer from the run
  ask.seed = static_cast<uint64_t>(std::strtoll(context.stamp.seed.c_str(), nullptr, 10));
  return ask;
}

// What the workload's best plan reaches, and what a month of it keeps; nothing where none was
// given. All that is wrong where the description cannot be run at all.
tl::expected<std::optional<JobFigures>, Diagnostics> job_figures(const Context& context,
                                                                 const Description& d) {
  if (!d.has_workload) return std::nullopt;
  const SimulationAsk ask = month(context);
  const auto ready = ready_run(context, d, ask);
  if (!ready && !ready.error().problems.empty()) return tl::unexpected(ready.error().problems);
  if (!ready) {
    JobFigures misfit;
    misfit.name = d.workload_name;
    misfit.fits = false;
    return misfit;
  }
  const SimulateResult r = run_it(context, **ready, ask);
  if (r.many.done == 0) return std::nullopt;
  const ManyResult& many = r.many;
  JobFigures job;
  job.name = d.workload_name;
  job.mfu = r.plan.prediction.mfu;
  job.days = r.plan.run.time_s.value / kSecondsPerDay;
  job.power = r.plan.prediction.power;
  job.accelerators = static_cast<double>(accelerators_used(d.setting));
  job.runs = many.done;
  job.simulated_days = kSimulatedDays;
  job.operations = r.operations_name;
  job.goodput = many.goodput.mean;
  job.goodput_low = many.goodput.p5;
  job.goodput_high = many.goodput.p95;
  job.useful_share = many.useful_share.mean;
  job.interrupted_every =
      Seconds(many.interruptions.mean > 0 ? many.period.mean / many.interruptions.mean
                                          : std::numeric_limits<double>::infinity());
  Seconds lost;
  for (const Account a : {Account::kUndetected, Account::kDetection, Account::kReplacement,
                          Account::kRestart, Account::kLostWork, Account::kCorruption})
    lost += many.mean[a];
  job.restart_share = many.paid.mean > 0 ? lost.v / many.paid.mean : 0;
  return job;
}

InputRefusal check(const Context& context, const Arguments& args) {
  return description_refusal(
      args, args.operands,
      [](Request& request) {
        request.needs_workload = false;
        request.needs_site = request.needs_operations = true;
      },
      [&](const DescribeAttempt& attempt) {
        return run_problems(context, attempt, month(context));
      });
}

int run(const Context& context, const Arguments& args) {
  if (args.operands.empty())
    return reject(context, UsageError{"review needs a site and a cluster", "assay review -h"});
  tl::expected<Description, InputRefusal> description = describe_site(args);
  if (!description) return refuse(context, check(context, args));
  print_error(render(description->warnings));
  // With --gpus everything is about so many: limits, bill, failures.
  Cluster cluster = description->setting.cluster;
  if (description->setting.accelerators > 0) {
    const int64_t each = std::max<int64_t>(1, cluster.node.accelerators);
    cluster.nodes = std::min(cluster.nodes, (description->setting.accelerators + each - 1) / each);
  }
  const auto job = job_figures(context, *description);
  if (!job) return reject(context, job.error());
  const Review result = review(description->site, cluster, description->origins, *job);
  const int code = interrupted() ? kInterrupted : result.passes ? kYes : kNo;
  const ReviewInput input{&description->site, &cluster, &description->assumed};
  return deliver(context, review_text(result, input, context.style, context.stamp),
                 review_json(result, input, context.stamp), code);
}

}  // namespace

Command review_command() {
  return {"review",
          "SITE CLUSTER [WORKLOAD]",
          "design review of a site: what binds, what it costs, what fails, what is missing",
          "Inputs are catalog names (`assay catalog list sites`) or YAML files with the sections "
          "site, cluster and workload, in any order.\n"
          "First the density as a series of bottlenecks: contracted power, distribution, cooling, "
          "rack power, floor load, space, network reach; which one binds and how many nodes it "
          "leaves. Then the questions that a review asks, answered from the description, with what "
          "is missing named by its key. With a WORKLOAD its best plan is simulated for a month, "
          "and goodput and cost come from that.\n"
          "Exit code 1 when something binds below what is asked, or an answer is no.",
          {{"gpus", 0, "N", "use N accelerators of the cluster", "Default: all of them."},
           {"tokens", 0, "T", "tokens to train on, e.g. 2T", ""}},
          {"assay review examples/site-24mw.yaml h100-8192",
           "assay review phoenix h100-1024 llama-3.1-70b --json",
           "assay review examples/site-24mw.yaml h100-8192 --set site.hall.floor_kg_m2=1220"},
          run,
          check};
}

}  // namespace assay
