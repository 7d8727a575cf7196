// assay simulate: describe -> plan -> spec -> many runs -> levers -> screen.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <csignal>
#include <fstream>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/inputs.h"
#include "config/scalar.h"
#include "report/simulate_report.h"

namespace assay {
namespace {

constexpr int kInterrupted = 130;
constexpr int64_t kRunsMost = 1'000'000;
constexpr double kDaysUsual = 30;
constexpr double kDaysMost = 3650;
// Levers are differences with the same luck: they need fewer runs than the run itself.
constexpr int64_t kLeverRuns = 40;

// Set by the first Ctrl-C; runs that are complete are shown, marked partial. A second one kills.
std::atomic<bool>& cancelled() {
  static std::atomic<bool> flag{false};
  return flag;
}
void on_interrupt(int) {
  cancelled().store(true);
  std::signal(SIGINT, SIG_DFL);
}

struct Asked {
  double days = 0;
  double tokens = 0;
  int64_t runs = 200;
  int64_t seed = 1;
};

UsageError bad_number(const char* option, const std::string& text, const char* wanted) {
  return {fmt::format("--{}: `{}` is not {}", option, sanitize(text, 40), wanted), ""};
}

tl::expected<Asked, UsageError> read_options(const Arguments& args, const Context& context) {
  Asked asked;
  if (args.has("days") && args.has("tokens"))
    return tl::unexpected(UsageError{"--days and --tokens contradict each other", "give one"});
  if (args.has("days")) {
    const std::string text = args.get("days");
    char* end = nullptr;
    asked.days = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != 0 || !(asked.days > 0 && asked.days <= kDaysMost))
      return tl::unexpected(bad_number("days", text, "a number of days from 0 to 3650"));
  }
  if (args.has("runs")) {
    const std::string text = args.get("runs");
    char* end = nullptr;
    asked.runs = std::strtoll(text.c_str(), &end, 10);
    if (text.empty() || *end != 0 || asked.runs < 1 || asked.runs > kRunsMost)
      return tl::unexpected(bad_number("runs", text, "a whole number from 1 to 1000000"));
  }
  asked.seed = std::strtoll(context.stamp.seed.c_str(), nullptr, 10);
  return asked;
}

// Writes one run as a Perfetto trace; false where the file cannot be written.
bool write_trace(const SimulateResult& r, const Asked& asked, const std::string& path) {
  RunOptions options;
  options.trace = true;
  const RunResult run = Simulator(r.spec.spec).run(static_cast<uint64_t>(asked.seed), options);
  std::ofstream out(path, std::ios::binary);
  out << run_trace_json(run, "assay simulate, seed " + std::to_string(asked.seed));
  return static_cast<bool>(out);
}

RunMoney money(const PlanResult& plan) {
  RunMoney m;
  const double gpus = static_cast<double>(accelerators_used(plan.description.setting));
  if (plan.run.price_known) m.usd_per_gpu_hour = plan.run.price_per_hour;
  m.kwh_per_gpu_hour = plan.run.power_w / 1000 / gpus;
  return m;
}

void simulate_all(const Context& context, const Asked& asked, bool levers, SimulateResult& r) {
  const Simulator simulator(r.spec.spec);
  r.intervals = simulator.intervals();
  r.mtbf = simulator.mtbf();
  Progress progress(context, "simulate");
  const std::function<void(double)> show = progress.callback();
  ManyOptions options;
  options.runs = asked.runs;
  options.seed = static_cast<uint64_t>(asked.seed);
  options.cancel = &cancelled();
  if (show) {
    options.progress = [&](int64_t done) {
      show(static_cast<double>(done) / static_cast<double>(asked.runs));
    };
  }
  std::signal(SIGINT, on_interrupt);
  r.many = simulate_many(r.spec.spec, options);
  if (levers && !cancelled().load()) {
    options.runs = std::min(asked.runs, kLeverRuns);
    options.progress = nullptr;
    r.levers = measure_levers(r.spec.spec, standard_levers(r.spec.spec), options);
  }
  std::signal(SIGINT, SIG_DFL);
}

tl::expected<Description, InputRefusal> describe_run(const Arguments& args) {
  std::vector<std::string> inputs = args.operands;
  if (args.has("site")) inputs.push_back(args.get("site"));
  if (args.has("run")) inputs.push_back(args.get("run"));
  tl::expected<Request, UsageError> request = make_request(args, inputs);
  if (!request) return tl::unexpected(InputRefusal{request.error(), {}, {"", 0}});
  if (const Result<bool> exist = inputs_exist(inputs); !exist)
    return tl::unexpected(InputRefusal{{}, {}, exist.error()});
  request->needs_operations = true;
  tl::expected<Description, Diagnostics> description = describe(*request, catalog());
  if (!description) return tl::unexpected(InputRefusal{{}, description.error(), {"", 0}});
  return std::move(*description);
}

int run(const Context& context, const Arguments& args) {
  if (args.operands.empty())
    return reject(UsageError{"simulate needs a workload and a cluster", "assay simulate -h"});
  const tl::expected<Asked, UsageError> asked = read_options(args, context);
  if (!asked) return reject(asked.error());
  tl::expected<Description, InputRefusal> description = describe_run(args);
  if (!description) return refuse(context, description.error());
  print_error(render(description->warnings));

  SimulateResult r;
  r.operations_name = description->operations_name;
  r.site_name = description->has_site ? description->site_name : "";
  const Operations operations = description->operations;
  const Site site = description->site;
  const bool has_site = description->has_site;
  StudyOptions study_options;
  study_options.what_ifs = false;
  r.plan = study(std::move(*description), catalog(), study_options);
  if (r.plan.impossible && !r.plan.miss)
    return reject(context, impossible_problem(*r.plan.impossible));
  if (!r.plan.fits) {
    print_error("no plan fits this cluster; `assay plan` says by how much\n");
    return kNo;
  }
  SpecInput input;
  input.setting = &r.plan.description.setting;
  input.plan = &r.plan.plan;
  input.prediction = &r.plan.prediction;
  input.operations = &operations;
  input.site = has_site ? &site : nullptr;
  input.tokens = args.has("tokens") ? r.plan.description.setting.workload.tokens : 0;
  input.period = Seconds((asked->days > 0    ? asked->days
                          : input.tokens > 0 ? kDaysMost
                                             : kDaysUsual) *
                         kSecondsPerDay);
  r.spec = make_spec(input);
  if (const Diagnostics problems = spec_problems(r.spec); !problems.empty())
    return reject(context, problems);
  r.money = money(r.plan);
  simulate_all(context, *asked, !args.has("no-what-ifs"), r);
  if (r.many.done == 0) {
    print_error("interrupted before the first run was complete\n");
    return kInterrupted;
  }
  if (args.has("trace") && !write_trace(r, *asked, args.get("trace")))
    return fail(Failure{sanitize(args.get("trace")) + ": cannot be written"});
  return deliver(context, simulate_text(r, context.style, context.stamp),
                 simulate_json(r, context.stamp), r.many.partial() ? kInterrupted : kYes);
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
       {"runs", 0, "N", "how many runs, each with other luck", "Default: 200."},
       {"trace", 0, "FILE", "write the run of the seed as a Perfetto trace", ""},
       {"no-what-ifs", 0, "", "skip the levers", ""}},
      {"assay simulate llama-3.1-405b h100-24k-meta --gpus 16384 --run meta-llama3 --days 54",
       "assay simulate llama-3.1-70b h100-1024 --site phoenix --tokens 2T --json",
       "assay simulate llama-3.1-70b h100-1024 --set run.spares=8 --trace run.json"},
      run};
}

}  // namespace assay
