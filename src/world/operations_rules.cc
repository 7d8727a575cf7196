#include "world/operations_rules.h"

#include <functional>
#include <set>

#include <fmt/format.h>

#include "world/names.h"

namespace assay {
namespace {

// The place of what `checkpoint.interval` says, or of the nearest mapping above it.
Mark place(const Value& value, const std::string& path) {
  const Value* at = &value;
  Mark mark = value.at;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t dot = std::min(path.find('.', begin), path.size());
    const Entry* entry = at->is_map() ? at->find(path.substr(begin, dot - begin)) : nullptr;
    if (entry == nullptr) return mark;
    mark = entry->value.is_scalar() ? entry->value.at : entry->key_at;
    at = &entry->value;
    begin = dot + 1;
  }
  return mark;
}

// Longer than anybody runs; what a simulation takes.
constexpr double kTimeMost = 100 * kSecondsPerYear;
// A machine that fails every six minutes; beyond it, a run is nothing but failures.
constexpr double kRateMost = 10;
// Below it nearly all failures fall on one machine.
constexpr double kShapeLeast = 0.01;

template <class T>
concept Mapping = requires(T& t) { fields(t, [](auto&&...) {}); };

// Calls `found(path)` for every time that is too long.
template <class T, class Found>
void long_times(const T& of, const std::string& path, Found&& found) {
  fields(of, [&](std::string_view key, const auto& value, const Limits&, const char*) {
    using V = std::remove_cvref_t<decltype(value)>;
    const std::string here = path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
    if constexpr (std::is_same_v<V, Seconds>) {
      if (!(value.v <= kTimeMost)) found(here);
    } else if constexpr (std::is_same_v<V, std::vector<FailureKind>>) {
      bool any = false;
      for (const FailureKind& f : value)
        long_times(f, here, [&](const std::string&) { any = true; });
      if (any) found(here);
    } else if constexpr (Mapping<const V>) {
      long_times(value, here, found);
    }
  });
}

using Problem = std::function<void(const std::string& path, std::string message, std::string help)>;

void check_reliability(const Reliability& r, const Problem& problem) {
  if (r.fail_slow_most < r.fail_slow_least) {
    problem("reliability.fail_slow_most", "run.reliability.fail_slow_most is below fail_slow_least",
            "exchange them");
  }
  if (r.repair_mean < r.repair_median) {
    problem("reliability.repair_mean",
            "run.reliability.repair_mean is below the median: repairs have a long tail",
            "state a mean of at least the median");
  }
  const auto uneven = [&](double shape, const char* key) {
    if (shape <= 0 || shape >= kShapeLeast) return;
    problem(fmt::format("reliability.{}", key),
            fmt::format("run.reliability.{} is below {}", key, kShapeLeast),
            "state at least that, or zero where all machines are alike");
  };
  uneven(r.lemon_shape, "lemon_shape");
  uneven(r.corruption_shape, "corruption_shape");
  std::set<std::string> kinds;
  bool named = true;
  int64_t often = 0;
  for (const FailureKind& f : r.failures) {
    named = named && !f.kind.empty();
    if (!f.kind.empty() && !kinds.insert(f.kind).second) {
      problem("reliability.failures",
              fmt::format("run.reliability.failures has `{}` twice", sanitize(f.kind, 40)),
              "add their counts");
    }
    // Also catches what no number is.
    if (!(f.count / r.exposure_gpu_hours <= kRateMost)) ++often;
  }
  if (!named) problem("reliability.failures", "a failure without a `kind`", "name its root cause");
  if (often > 0) {
    problem("reliability.exposure_gpu_hours",
            fmt::format("{} of {} kinds of failure {} more than {} times a GPU-hour", often,
                        r.failures.size(), often == 1 ? "comes" : "come", kRateMost),
            "a rate is `count` over `exposure_gpu_hours`: correct either");
  }
}

}  // namespace

void check_operations(const Operations& run, const Value& value, Diagnostics& problems) {
  const Problem problem = [&](const std::string& path, std::string message, std::string help) {
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
  check_reliability(run.reliability, problem);
  long_times(run, "", [&](const std::string& path) {
    problem(path, fmt::format("run.{} is more than 100 years", path), "state a shorter time");
  });
  if (run.prefetch < 1)
    problem("prefetch", "run.prefetch is zero: no batch would ever be fetched", "state 1 or more");
  if (run.maintenance_every.v > 0 && run.maintenance_every.v < 60) {
    problem("maintenance_every", "run.maintenance_every: planned stops more than once a minute",
            "write it in days, as in `7 d`");
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
}

}  // namespace assay
