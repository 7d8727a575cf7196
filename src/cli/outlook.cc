#include "cli/outlook.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "cli/simulation.h"
#include "sim/expect.h"

namespace assay {
namespace {

// Weather enough for a mean; a run's luck needs more.
constexpr int64_t kWeathers = 3;

struct Known {
  const PlanResult* plan;
  Operations operations;
  const Site* site;
  RunAsk ask;
};

std::optional<Outlook> outlook_of(const Known& known, const Candidate& c, std::string& why_not) {
  const Description& d = known.plan->description;
  const std::unique_ptr<RunParts> parts =
      run_parts(d.setting, c.plan, c.prediction, known.operations, known.site, known.ask);
  if (const Diagnostics dark = unpowered(*parts, d); !dark.empty()) {
    why_not = dark.front().message;
    return {};
  }
  const SpecResult made = make_spec(parts->input);
  if (const Diagnostics problems = spec_problems(made); !problems.empty()) {
    why_not = problems.front().message;
    return {};
  }
  Outlook o;
  o.expected = expect_run(made.spec);
  o.spares = made.spec.spares.nodes;
  const double hours = o.expected.time.v / kSecondsPerHour;
  const double usd_per_hour = run_money(*known.plan, *parts, o.expected.time).usd_per_gpu_hour;
  o.usd_per_gpu_hour = usd_per_hour;
  o.gpu_hours = static_cast<double>(made.spec.gpus) * hours;
  o.spares_usd = static_cast<double>(o.spares * made.spec.gpus_per_node) * hours * usd_per_hour;
  o.usd = o.gpu_hours * usd_per_hour + o.spares_usd;
  return o;
}

}  // namespace

PlanOutlook plan_outlook(const PlanResult& r, const std::string& seed) {
  PlanOutlook outlook;
  if (!r.fits) return outlook;
  const Description& d = r.description;
  Known known{&r, d.operations, d.has_site ? &d.site : nullptr, {}};
  outlook.operations_name = d.operations_name;
  outlook.stated = d.has_operations;
  if (d.operations_name.empty()) {  // a result that is read again holds none
    const std::vector<Operations>& all = catalog().operations;
    const auto usual =
        std::find_if(all.begin(), all.end(), [](const Operations& o) { return o.name == "usual"; });
    if (usual == all.end()) return outlook;
    known.operations = *usual;
    outlook.operations_name = usual->name;
  }
  known.ask.tokens = r.run.tokens;
  known.ask.seed = static_cast<uint64_t>(std::strtoll(seed.c_str(), nullptr, 10));
  known.ask.weathers = kWeathers;
  outlook.best = outlook_of(known, {r.plan, r.prediction}, outlook.why_not);
  std::string ignored;
  if (outlook.best && r.runner_up) outlook.runner_up = outlook_of(known, *r.runner_up, ignored);
  return outlook;
}

ScaleOutlook scale_outlook(const Description& d, const ScaleResult& r, const std::string& seed) {
  ScaleOutlook outlook;
  PlanResult at;
  at.description = d;
  for (const ScalePoint& p : r.best) {
    at.description.setting = sized(d.setting, p.accelerators);
    at.fits = p.fits;
    at.plan = p.plan;
    at.prediction = p.prediction;
    if (p.fits) at.run = run_figures(at.description, p.prediction);
    outlook.best.push_back(plan_outlook(at, seed));
  }
  relate_outlook(r, outlook);
  return outlook;
}

}  // namespace assay
