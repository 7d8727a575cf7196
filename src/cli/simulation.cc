#include "cli/simulation.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "cli/inputs.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/site_levers.h"
#include "economics/cost.h"
#include "report/plan_report.h"
#include "sim/levers.h"
#include "world/place.h"
#include "world/site_rules.h"

namespace assay {
namespace {

constexpr int64_t kRunsMost = 1'000'000;
constexpr double kDaysUsual = 30;
// Levers are differences with the same luck: they need fewer runs than the run itself.
constexpr int64_t kLeverRuns = 40;

UsageError bad_number(const char* option, const std::string& text, const char* wanted,
                      const char* example) {
  return {fmt::format("--{}: `{}` is not {}", option, sanitize(text, 40), wanted),
          fmt::format("as in --{} {}", option, example)};
}

// The first hour of a date `2026-07` or `2026-07-15`; of January where no month is stated.
int64_t start_hour(const std::string& start) {
  constexpr int kDays[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
  if (start.size() < 7) return 0;
  const int month = std::clamp(std::atoi(start.substr(5, 2).c_str()), 1, 12);
  const int day = start.size() >= 10 ? std::clamp(std::atoi(start.substr(8, 2).c_str()), 1, 31) : 1;
  return 24 * (kDays[month - 1] + day - 1);
}

// One of so many kinds of weather.
void add_weather(const Bill& b, double weathers, RunMoney& m) {
  const double hours = weathers * b.accelerator_hours;
  m.kwh_per_gpu_hour += b.kwh / hours;
  m.kg_co2_per_gpu_hour += b.carbon_kg / hours;
  m.water_l_per_gpu_hour += b.water_l / hours;
}

// The hours of a series that a run meets; they repeat where it is longer.
SiteSeries within(SiteSeries s, Seconds period) {
  const double hours = std::ceil(period.v / kSecondsPerHour);
  if (hours < static_cast<double>(s.hours.size()))
    s.hours.resize(std::max<size_t>(1, static_cast<size_t>(hours)));
  return s;
}

// Hours of weather for a run: its period, or for a token target twice what the step alone would
// take; a year at least where it may take longer, ten at most.
int64_t weather_hours(double days, const SpecInput& input, double tokens_per_s) {
  double wanted = std::max(1.0, days);
  if (input.tokens > 0 && tokens_per_s > 0) {
    const double ideal = input.tokens / tokens_per_s / kSecondsPerDay;
    wanted = std::min(wanted, std::max(2 * ideal, static_cast<double>(kHoursPerYear) / 24));
  }
  return static_cast<int64_t>(std::ceil(std::min(wanted, kDaysMost) * 24));
}

void run_all(const Context& context, const SimulationAsk& ask, const std::vector<Lever>& levers,
             SimulateResult& r) {
  const Simulator simulator(r.spec.spec);
  r.intervals = simulator.intervals();
  r.mtbf = simulator.mtbf();
  r.formulas = simulator.formulas();
  RunSpec best = r.spec.spec;
  for (CheckpointTier& t : best.checkpoints) {
    if (t.rule == IntervalRule::kFixed) t.least = std::min(t.least, t.interval);
    t.rule = IntervalRule::kOptimal;
  }
  r.best_intervals = Simulator(std::move(best)).intervals();
  Progress progress(context, "simulate");
  const std::function<void(double)> show = progress.callback();
  const int64_t lever_runs = std::min(ask.runs, kLeverRuns);
  const int64_t pairs = levers.empty() ? 0 : static_cast<int64_t>(levers.size() + 1) * lever_runs;
  int64_t before = 0;
  ManyOptions options;
  options.runs = ask.runs;
  options.seed = ask.seed;
  options.cancel = &interrupt_flag();
  options.progress = [&](int64_t done) {
    note_run_done();
    if (show) show(static_cast<double>(before + done) / static_cast<double>(ask.runs + pairs));
  };
  r.many = simulate_many(r.spec.spec, options);
  if (levers.empty() || interrupted()) return;
  before = ask.runs;
  options.runs = lever_runs;
  r.levers = measure_levers(r.spec.spec, levers, options);
  // A lever of which no pair is complete says nothing.
  std::erase_if(r.levers, [](const LeverResult& l) { return l.pairs == 0; });
  keep_best(r.levers);
  r.levers_cut = interrupted();
}

}  // namespace

std::unique_ptr<RunParts> run_parts(const Setting& setting, const Plan& plan,
                                    const Prediction& prediction, const Operations& operations,
                                    const Site* site, const RunAsk& ask) {
  auto parts = std::make_unique<RunParts>();
  SpecInput& input = parts->input;
  input.setting = &setting;
  input.plan = &plan;
  input.prediction = &prediction;
  input.operations = &operations;
  input.tokens = ask.tokens;
  const double days = ask.days > 0 ? ask.days : ask.tokens > 0 ? kDaysMost : kDaysUsual;
  input.period = Seconds(days * kSecondsPerDay);
  if (site == nullptr) return parts;
  FacilityOptions& facility = parts->facility;
  facility.start_hour = start_hour(ask.start.empty() ? site->offer.start : ask.start);
  facility.hours = weather_hours(days, input, prediction.tokens_per_s);
  facility.seed = ask.seed;
  facility.step_power = prediction.power;
  const int64_t weathers = ask.weathers > 0 ? ask.weathers : weather_count(facility.hours);
  parts->other_weather = facility_weather(*site, setting.cluster, facility, weathers);
  parts->site = std::move(parts->other_weather.back());
  parts->other_weather.pop_back();
  input.site = site;
  input.series = &*parts->site;
  input.other_weather = &parts->other_weather;
  return parts;
}

RunMoney run_money(const PlanResult& plan, const RunParts& r, Seconds period) {
  RunMoney m;
  const double gpus = static_cast<double>(accelerators_used(plan.description.setting));
  if (plan.run.price_known) m.usd_per_gpu_hour = plan.run.price_per_hour;
  m.kwh_per_gpu_hour = plan.run.power_w / 1000 / gpus;
  if (!r.site) return m;
  const Site& site = *r.input.site;
  const Cluster& cluster = plan.description.setting.cluster;
  const SiteSeries met = within(*r.site, period);
  const Bill b = bill(site, cluster, met, period);
  if (b.price_known && b.accelerator_hours > 0) m.usd_per_gpu_hour = b.per_hour.v * kSecondsPerHour;
  if (b.accelerator_hours > 0) {
    const double weathers = static_cast<double>(r.other_weather.size() + 1);
    m.kwh_per_gpu_hour = 0;
    add_weather(b, weathers, m);
    for (const SiteSeries& s : r.other_weather)
      add_weather(bill(site, cluster, within(s, period)), weathers, m);
  }
  m.rented = b.rented;
  m.people_unknown = !b.rented && site.offer.staff <= 0;
  if (b.rented && b.total.v > 0) m.energy_in_rent = totals(met).energy_cost / b.total;
  m.shares = {{"rent", b.share(b.rent)},       {"hardware", b.share(b.hardware)},
              {"network", b.share(b.network)}, {"energy", b.share(b.energy)},
              {"space", b.share(b.space)},     {"maintenance", b.share(b.maintenance)},
              {"people", b.share(b.people)}};
  return m;
}

Diagnostics unpowered(const RunParts& parts, const Description& d) {
  if (!parts.site || parts.site->hours.empty()) return {};
  double running = 0;
  Watts least = parts.site->hours.front().facility_power;
  for (const SiteHour& h : parts.site->hours) {
    running = std::max(running, h.running);
    least = std::min(least, h.facility_power);
  }
  if (running > 0 || least <= d.site.power.contracted) return {};
  return {problem_of(
      d.origins, "site.power.contracted",
      fmt::format("site.power.contracted: {} nodes at rest draw {}, the site has {}: nothing would "
                  "ever run",
                  count(d.setting.cluster.nodes), watts(least.v), watts(d.site.power.contracted.v)),
      "contract more, or use fewer nodes (--set cluster.nodes=N)")};
}

SimulationAsk read_simulation_ask(const Context& context, const Arguments& args,
                                  UsageErrors& wrong) {
  SimulationAsk ask;
  if (args.has("days") && args.has("tokens"))
    wrong.push_back({"--days and --tokens contradict each other", "give one"});
  ask.to_target = args.has("tokens");
  if (args.has("days")) {
    const std::string text = args.get("days");
    char* end = nullptr;
    ask.days = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != 0 || !(ask.days * kSecondsPerDay >= 1 && ask.days <= kDaysMost)) {
      wrong.push_back(
          bad_number("days", text, "a number of days, from a second (1.2e-5) to 3650", "30"));
      ask.days = 0;
    }
  }
  if (args.has("runs")) {
    const std::string text = args.get("runs");
    char* end = nullptr;
    ask.runs = std::strtoll(text.c_str(), &end, 10);
    if (text.empty() || *end != 0 || ask.runs < 1 || ask.runs > kRunsMost)
      wrong.push_back(bad_number("runs", text, "a whole number from 1 to 1000000", "200"));
  }
  ask.seed = static_cast<uint64_t>(std::strtoll(context.stamp.seed.c_str(), nullptr, 10));
  ask.levers = !args.has("no-what-ifs");
  ask.start = args.get("start");
  if (!ask.start.empty() && !is_date(ask.start)) {
    wrong.push_back(bad_number("start", ask.start, "a date like 2026-07 or 2026-07-15", "2026-07"));
    ask.start.clear();
  }
  return ask;
}

tl::expected<Description, InputRefusal> describe_run(const Arguments& args,
                                                     const std::vector<std::string>& inputs) {
  tl::expected<Request, UsageErrors> request = make_request(args, inputs);
  if (!request) return tl::unexpected(InputRefusal{request.error(), {}, {}});
  if (std::vector<Failure> missing = missing_inputs(inputs); !missing.empty())
    return tl::unexpected(InputRefusal{{}, {}, std::move(missing)});
  request->needs_operations = true;
  tl::expected<Description, Diagnostics> description = describe(*request, catalog());
  if (!description) return tl::unexpected(InputRefusal{{}, description.error(), {}});
  return std::move(*description);
}

namespace {

// A run that begins on a stated date pays the prices of that date, where the offer has any.
Diagnostics start_problems(const Description& d, bool site_broken, const std::string& start) {
  if (start.empty()) return {};
  Diagnostic problem;
  if (!d.has_site && !site_broken) {
    problem.message = "--start changes nothing without a site";
    problem.help = "weather and prices are a site's: --site S";
    return {problem};
  }
  Offer offer = d.site.offer;
  const bool dated = std::all_of(offer.prices.begin(), offer.prices.end(),
                                 [](const PricePoint& p) { return is_date(p.from); });
  if (offer.tenure != Tenure::kRented || offer.prices.empty() || !dated) return {};
  offer.start = start;
  if (rented_price(offer, start)) return {};
  problem.at.file = "--start " + start;
  problem.message = fmt::format("no price is known before {}", offer.prices.front().from);
  problem.help = "start later, or add an earlier price to `site.offer.prices`";
  return {problem};
}

PlanResult studied(const Context& context, Description d, bool what_ifs) {
  Progress progress(context, "plan");
  StudyOptions options;
  options.what_ifs = what_ifs;
  options.progress = progress.callback();
  return study(std::move(d), catalog(), options);
}

// Plans a run; what is wrong with it goes to `problems`.
std::unique_ptr<ReadyRun> planned_run(const Context& context, Description description,
                                      const SimulationAsk& ask, Diagnostics& problems) {
  auto ready = std::make_unique<ReadyRun>();
  SimulateResult& r = ready->result;
  r.operations_name = description.operations_name;
  r.site_name = description.has_site ? description.site_name : "";
  ready->operations = description.operations;
  ready->site = description.site;
  if (!ask.start.empty() && !ready->site.offer.prices.empty()) ready->site.offer.start = ask.start;
  const bool has_site = description.has_site;
  r.plan = studied(context, std::move(description), false);
  const Diagnostics impossible = impossible_problems(r.plan);
  problems.insert(problems.end(), impossible.begin(), impossible.end());
  RunAsk what{ask.days, 0, ask.start, ask.seed, 0};
  if (ask.to_target) what.tokens = r.plan.description.setting.workload.tokens;
  ready->parts = run_parts(r.plan.description.setting, r.plan.plan, r.plan.prediction,
                           ready->operations, has_site ? &ready->site : nullptr, what);
  if (!ask.dark) add_further(problems, unpowered(*ready->parts, r.plan.description));
  if (!r.plan.fits) return ready;  // the rest needs a plan
  r.spec = make_spec(ready->parts->input);
  add_further(problems, spec_problems(r.spec, r.plan.description.origins));
  return ready;
}

}  // namespace

tl::expected<std::unique_ptr<ReadyRun>, RunRefusal> ready_run(const Context& context,
                                                              Description description,
                                                              const SimulationAsk& ask) {
  RunRefusal refusal{start_problems(description, false, ask.start), {}};
  std::unique_ptr<ReadyRun> ready =
      planned_run(context, std::move(description), ask, refusal.problems);
  if (!ready->result.plan.fits) refusal.misfit = std::move(ready->result.plan);
  if (refusal.misfit || !refusal.problems.empty()) return tl::unexpected(std::move(refusal));
  return ready;
}

Diagnostics run_problems(const Context& context, const DescribeAttempt& attempt,
                         const SimulationAsk& ask) {
  const Description& d = *attempt.readable;
  Diagnostics problems = start_problems(d, attempt.site_broken, ask.start);
  if (d.has_workload) planned_run(context, d, ask, problems);
  return problems;
}

SimulateResult run_it(const Context& context, ReadyRun& ready, const SimulationAsk& ask) {
  SimulateResult& r = ready.result;
  RunParts& parts = *ready.parts;
  std::vector<Lever> levers;
  if (ask.levers) levers = run_levers(parts.input);
  if (parts.site && ask.levers) {
    for (Lever& lever : site_levers(parts.input, parts.facility))
      levers.push_back(std::move(lever));
  }
  run_all(context, ask, levers, r);
  // How long it takes to a target is known only now.
  r.money = run_money(r.plan, parts, Seconds(r.many.done > 0 ? r.many.period.mean : 0));
  r.site = std::move(parts.site);
  r.other_weather = std::move(parts.other_weather);
  return std::move(r);
}

int refuse_run(const Context& context, const RunRefusal& refusal) {
  if (!refusal.problems.empty()) return reject(context, refusal.problems);
  print_error("nothing to simulate: no plan fits this cluster\n");
  const PlanResult plan = studied(context, refusal.misfit->description, true);
  return deliver(context, plan_text(plan, context.style, context.stamp),
                 plan_json(plan, context.stamp), kNo);
}

}  // namespace assay
