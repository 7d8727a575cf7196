// How fast runs are simulated, against the bars, and the event queue against SimGrid's on the same
// scenario in the same process.
//
//   build/sim_bench           all, about ten seconds
//   build/sim_bench --check   a tenth of it; fails where a bar is missed three times in a row
//   build/sim_bench --quick   a fiftieth of it, to see that it works
//
// Times are CPU times, the least of several tries: a busy machine only ever adds, so one try within
// a bar proves it. SimGrid is compared only where Debian's
// libsimgrid-dev was installed when the build was configured.
#include <sys/resource.h>

#include <cstdio>
#include <string_view>

#include <fmt/format.h>

#include "cpu_time.h"
#include "flow_scenario.h"
#include "sim/full_spec.h"
#include "sim/many.h"

namespace assay {
namespace {

constexpr double kDays = 54;

// How much of it is run.
enum class Size { kQuick, kCheck, kAll };

struct Table {
  bool all_met = true;
  void row(const std::string& what, double value, const char* unit, double bar, bool at_most) {
    const bool met = at_most ? value <= bar : value >= bar;
    all_met = all_met && met;
    fmt::print("{:<58}{:>12.4g} {:<10}{} {:<10.4g}{}\n", what, value, unit,
               at_most ? "<=" : ">=", bar, met ? "met" : "MISSED");
  }
  void note(const std::string& what, double value, const char* unit) {
    fmt::print("{:<58}{:>12.4g} {}\n", what, value, unit);
  }
};

// CPU times of a run at two sizes, everything on: the mean over seeds of the least of seven tries,
// after one to warm up; other programs on the machine only ever add. The sizes take turns, so that
// a busy minute meets both.
std::pair<double, double> run_seconds(int64_t gpus_small, int64_t gpus_large, int runs) {
  const Simulator small(everything_on(gpus_small, kDays));
  const Simulator large(everything_on(gpus_large, kDays));
  const auto once = [](const Simulator& simulator, int seed) {
    const double begin = cpu_s();
    simulator.run(static_cast<uint64_t>(seed));
    return cpu_s() - begin;
  };
  once(small, 0);
  once(large, 0);
  double small_sum = 0, large_sum = 0;
  for (int k = 1; k <= runs; ++k) {
    double small_least = 1e300, large_least = 1e300;
    for (int i = 0; i < 7; ++i) {
      small_least = std::min(small_least, once(small, k));
      large_least = std::min(large_least, once(large, k));
    }
    small_sum += small_least;
    large_sum += large_least;
  }
  return {small_sum / runs, large_sum / runs};
}

double megabytes_peak() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

void bench_runs(Table& table, Size size) {
  const int seeds = size == Size::kQuick ? 1 : size == Size::kCheck ? 4 : 20;
  const auto [small, large] = run_seconds(8192, 131072, seeds);
  table.row("54 days of 8,192 accelerators, everything on", small * 1e3, "ms CPU", 50, true);
  table.note("54 days of 131,072 accelerators", large * 1e3, "ms CPU");
  table.row("  over 8,192", large / small, "x", 10, true);
  ManyOptions o;
  o.runs = size == Size::kQuick ? 20 : size == Size::kCheck ? 200 : 1000;
  o.threads = 2;
  const double begin = cpu_s();
  simulate_many(everything_on(8192, kDays), o);
  const double per_run = (cpu_s() - begin) / static_cast<double>(o.runs);
  table.row("1,000 such runs on 2 cores", per_run * 1000 / o.threads, "s", 30, true);
  table.row("  peak memory", megabytes_peak(), "MB", 300, true);
}

void bench_kernel(Table& table, Size size) {
  FlowScenario s;
  s.days /= size == Size::kQuick ? 50 : size == Size::kCheck ? 5 : 1;
  const FlowOutcome ours = assay_flows(s);
  table.note("failures and flows: events", static_cast<double>(ours.events()), "");
  table.note("failures and flows: Assay", static_cast<double>(ours.events()) / ours.cpu_s,
             "events/s");
#ifdef ASSAY_SIMGRID
  const FlowOutcome theirs = simgrid_flows(s);
  const double apart =
      std::abs(static_cast<double>(theirs.flows) / static_cast<double>(ours.flows) - 1);
  table.note("failures and flows: SimGrid", static_cast<double>(theirs.events()) / theirs.cpu_s,
             "events/s");
  table.row("  difference in finished flows", 100 * apart, "%", 0.5, true);
  table.row("  Assay over SimGrid",
            static_cast<double>(ours.events()) / ours.cpu_s /
                (static_cast<double>(theirs.events()) / theirs.cpu_s),
            "x", 5, false);
#else
  fmt::print("SimGrid: not installed when this was built (libsimgrid-dev)\n");
#endif
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  using assay::Size;
  const std::string_view mode = argc > 1 ? argv[1] : "";
  const Size size = mode == "--quick"   ? Size::kQuick
                    : mode == "--check" ? Size::kCheck
                                        : Size::kAll;
  const int tries = size == Size::kCheck ? 3 : 1;
  for (int i = 0; i < tries; ++i) {
    assay::Table table;
    assay::bench_runs(table, size);
    assay::bench_kernel(table, size);
    // Timings of a few milliseconds say nothing: quick only sees that the suite works.
    if (size == Size::kQuick || table.all_met) return 0;
  }
  return 1;
}
