#include "world/operations_rules.h"

#include <fmt/format.h>

#include "world/names.h"

namespace assay {
namespace {

// The place of a key such as `checkpoint.interval`, or of the nearest mapping above it.
Mark place(const Value& value, const std::string& path) {
  const Value* at = &value;
  Mark mark = value.at;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t dot = std::min(path.find('.', begin), path.size());
    const Entry* entry = at->is_map() ? at->find(path.substr(begin, dot - begin)) : nullptr;
    if (entry == nullptr) return mark;
    mark = entry->key_at;
    at = &entry->value;
    begin = dot + 1;
  }
  return mark;
}

}  // namespace

void check_operations(const Operations& run, const Value& value, Diagnostics& problems) {
  const auto problem = [&](const std::string& path, std::string message, std::string help) {
    problems.push_back(problem_at(place(value, path), std::move(message), std::move(help)));
  };
  const Checkpointing& c = run.checkpoint;
  if (c.rule == SaveRule::kFixed && c.interval.v <= 0) {
    problem("checkpoint.rule", "run.checkpoint.rule is `fixed`, but there is no interval",
            "add `interval: 30 min`, or choose `optimal`");
  }
  if (run.recovery == Restart::kElastic && run.replicas < 2) {
    problem("recovery", "run.recovery is `elastic` with a single replica",
            "state how many data-parallel groups can come and go: `replicas: 12`");
  }
  if (run.recovery == Restart::kElastic && run.replicas_least > run.replicas) {
    problem("replicas_least", "run.replicas_least is above run.replicas: the job would never start",
            "state at most `replicas`");
  }
  const Reliability& r = run.reliability;
  if (r.fail_slow_most < r.fail_slow_least) {
    problem("reliability.fail_slow_most", "run.reliability.fail_slow_most is below fail_slow_least",
            "exchange them");
  }
  if (r.repair_mean < r.repair_median) {
    problem("reliability.repair_mean",
            "run.reliability.repair_mean is below the median: repairs have a long tail",
            "state a mean of at least the median");
  }
  if ((run.maintenance_every.v > 0) != (run.maintenance.v > 0)) {
    problem(run.maintenance.v > 0 ? "maintenance" : "maintenance_every",
            "planned stops need both `maintenance_every` and `maintenance`",
            "state both, or neither");
  }
  if (run.container_memory.v > 0 && run.memory_demand.v <= 0) {
    problem("container_memory", "a limit of container memory has no effect without a demand",
            "state `memory_demand`, the median of a node's daily peak");
  }
  for (const FailureKind& f : r.failures) {
    if (f.kind.empty()) {
      problem("reliability.failures", "a failure without a `kind`", "name its root cause");
      break;
    }
  }
}

}  // namespace assay
