#include "sim/run.h"

#include "base/assert.h"
#include "base/random.h"
#include "sim/engine.h"

namespace assay {

std::string_view to_string(Extent e) {
  constexpr std::string_view kNames[] = {"process", "node", "domain", "site"};
  return kNames[static_cast<size_t>(e)];
}

std::string_view to_string(RecoveryPolicy p) {
  constexpr std::string_view kNames[] = {"requeue", "warm standby", "elastic"};
  return kNames[static_cast<size_t>(p)];
}

std::string_view to_string(IntervalRule r) {
  constexpr std::string_view kNames[] = {"fixed", "young", "daly", "optimal"};
  return kNames[static_cast<size_t>(r)];
}

size_t weather_of(const HourSeries& site, uint64_t seed) {
  const double all = static_cast<double>(site.others.size() + 1);
  const auto drawn = static_cast<size_t>(Stream(seed, cause_id("weather")).uniform() * all);
  return std::min(drawn, site.others.size());
}

struct Simulator::Prepared {
  PreparedRun run;
  explicit Prepared(RunSpec spec) : run(std::move(spec)) {}
};

Simulator::Simulator(RunSpec spec) {
  ASSERT(check(spec).empty());
  prepared_ = std::make_unique<const Prepared>(std::move(spec));
}
Simulator::~Simulator() = default;
Simulator::Simulator(Simulator&&) noexcept = default;

RunResult Simulator::run(uint64_t seed, const RunOptions& options) const {
  return Engine(prepared_->run, seed, options).run();
}

const RunSpec& Simulator::spec() const { return prepared_->run.spec; }
const std::vector<Seconds>& Simulator::intervals() const { return prepared_->run.intervals; }
std::vector<FormulaError> Simulator::formulas() const {
  const PreparedRun& run = prepared_->run;
  if (run.spec.checkpoints.empty()) return {};
  const std::optional<CheckpointCosts> costs = run.tier_costs(run.spec.checkpoints.size() - 1);
  return costs ? formula_errors(*costs) : std::vector<FormulaError>();
}
Seconds Simulator::mtbf() const { return prepared_->run.mtbf; }
double Simulator::data_excess() const {
  const PreparedRun& run = prepared_->run;
  double excess = run.data_excess;
  for (size_t i = 0; i < run.intervals.size(); ++i)
    excess += to_seconds(run.schedule.tiers[i].starve) / run.intervals[i];
  return excess;
}

}  // namespace assay
