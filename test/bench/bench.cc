// How fast Assay is, against its own bars and against what other planners publish.
//
//   build/bench                              everything, about half a minute
//   build/bench --benchmark_filter=predict   one of them
//   build/bench --check                      fails where a prediction costs too much, two seconds
//
// The last table sets each figure beside its bar. CI runs the suite for a few milliseconds only, to
// see that it works, since timings on shared machines say nothing; and the check, which asks for a
// ratio.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string_view>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/csv.h"
#include "cpu_time.h"
#include "perf/layout.h"
#include "perf/memory.h"
#include "plan/search.h"
#include "validate/validate.h"
#include "world/catalog.h"
#include "world/describe.h"

namespace assay {
namespace {

Description described(const std::string& workload, const std::string& cluster) {
  Request request;
  request.inputs = {workload, cluster};
  tl::expected<Description, Diagnostics> d = describe(request, catalog());
  ASSERT(d.has_value());
  d->setting.accelerators = d->setting.cluster.accelerators();
  return std::move(*d);
}

const Description& gpt3() {
  static const Description d = described("gpt3-175b", "a100-4096");
  return d;
}

// Every possible plan of GPT-3 175B on 4,096 A100, in the order in which the search tries them.
const std::vector<Plan>& space() {
  static const std::vector<Plan> all = [] {
    const Description& d = gpt3();
    const Predictor predictor(d.setting);
    const Space space(d.setting, d.plan, d.plan_keys);
    std::vector<RecomputeChoice> choices = space.by_memory();
    choices.insert(choices.end(), space.others().begin(), space.others().end());
    std::vector<Plan> plans;
    for (const Shape& shape : space.shapes()) {
      for (int64_t micro_batch : space.micro_batches(shape.dp)) {
        for (const RecomputeChoice& choice : choices) {
          Plan plan = shape.plan;
          plan.micro_batch = micro_batch;
          plan.recompute = choice.kind;
          plan.recompute_layers = choice.layers;
          if (!predictor.impossible(plan)) plans.push_back(plan);
        }
      }
    }
    return plans;
  }();
  return all;
}

// Steps through the space; a stride without a common divisor visits plans in no helpful order.
template <class F>
void over_space(benchmark::State& state, size_t stride, F&& each) {
  const std::vector<Plan>& plans = space();
  size_t at = 0;
  for (auto _ : state) {
    each(plans[at]);
    at = (at + stride) % plans.size();
  }
  state.SetItemsProcessed(state.iterations());
  state.counters["plans"] = static_cast<double>(plans.size());
}

void predict(benchmark::State& state) {
  Predictor predictor(gpt3().setting);
  over_space(state, 1, [&](const Plan& p) { benchmark::DoNotOptimize(predictor.predict(p)); });
}
BENCHMARK(predict)->Unit(benchmark::kMicrosecond);

void predict_any_order(benchmark::State& state) {
  Predictor predictor(gpt3().setting);
  over_space(state, 7919, [&](const Plan& p) { benchmark::DoNotOptimize(predictor.predict(p)); });
}
BENCHMARK(predict_any_order)->Unit(benchmark::kMicrosecond);

void predict_new(benchmark::State& state) {  // nothing kept from other plans
  for (auto _ : state) {
    Predictor predictor(gpt3().setting);
    benchmark::DoNotOptimize(predictor.predict(space()[space().size() / 2]));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(predict_new)->Unit(benchmark::kMicrosecond);

void memory(benchmark::State& state) {
  Predictor predictor(gpt3().setting);
  over_space(state, 1, [&](const Plan& p) { benchmark::DoNotOptimize(predictor.memory(p)); });
}
BENCHMARK(memory)->Unit(benchmark::kMicrosecond);

void impossible(benchmark::State& state) {
  const Predictor predictor(gpt3().setting);
  over_space(state, 1, [&](const Plan& p) { benchmark::DoNotOptimize(predictor.impossible(p)); });
}
BENCHMARK(impossible);

void search_whole_space(benchmark::State& state) {
  const Description& d = gpt3();
  SearchResult result;
  for (auto _ : state) {
    Predictor predictor(d.setting);
    result = search(predictor, d.plan, d.plan_keys);
    benchmark::DoNotOptimize(result);
  }
  state.counters["possible"] = static_cast<double>(result.possible);
  state.counters["tried"] = static_cast<double>(result.tried);
  state.counters["fitting"] = static_cast<double>(result.fitting);
}
BENCHMARK(search_whole_space)->Unit(benchmark::kSecond);

void matmul(benchmark::State& state) {
  const Setting& s = gpt3().setting;
  int64_t m = 0;
  for (auto _ : state) {
    m = (m + 257) % 8192;
    const MatmulShape shape{m + 1, 12288, 6144};
    benchmark::DoNotOptimize(matmul_time(shape, s.cluster.accelerator, s.kernels.matmul));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(matmul);

void collective(benchmark::State& state) {
  const Predictor predictor(gpt3().setting);
  double bytes = 1;
  for (auto _ : state) {
    bytes = bytes > 1e10 ? 1 : bytes * 1.7;
    benchmark::DoNotOptimize(
        collective_time(Collective::kAllReduce, Bytes(bytes), {512, 8, 1}, predictor.links()));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(collective);

void read_and_describe(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(described("llama-3.1-70b", "h100-1024"));
}
BENCHMARK(read_and_describe)->Unit(benchmark::kMicrosecond);

void validate(benchmark::State& state) {
  const Result<CsvTable> table = read_csv(ASSAY_ROOT "/data/training_runs.csv");
  ASSERT(table.has_value());
  for (auto _ : state) benchmark::DoNotOptimize(run_validate(*table, catalog()));
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(table->rows.size()));
}
BENCHMARK(validate)->Unit(benchmark::kMillisecond);

// --- bars
// ------------------------------------------------------------------------------------------

// Calculon, measured by us on the same kind of machine: 2,065 predictions per second with its
// output off, 353 as shipped; 218 s for 6 % of its own space of this case. The spaces differ (its
// has more switches, this one more kinds of parallelism), so only the rates are set in relation.
constexpr double kCalculonPerSecond = 2065;

struct Bar {
  const char* benchmark;
  const char* what;
  double bar;
  double peer;  // zero: nothing comparable
  bool rate;    // items per second, more is better; else seconds, less is better
};
constexpr Bar kBars[] = {
    {"predict", "predictions per second and core", 300e3, kCalculonPerSecond, true},
    {"search_whole_space", "whole space of GPT-3 175B, 4,096 A100, s", 10, 0, false},
};

// The usual console output, and what the bars need of it.
class Reporter : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      const double iterations = static_cast<double>(std::max<int64_t>(run.iterations, 1));
      seconds_[run.run_name.function_name] = run.cpu_accumulated_time / iterations;
    }
    ConsoleReporter::ReportRuns(runs);
  }

  void print_bars() const {
    fmt::print("\n{:<42}{:>12}{:>12}{:>10}{:>14}\n", "", "measured", "bar", "met", "of Calculon");
    for (const Bar& bar : kBars) {
      const auto found = seconds_.find(bar.benchmark);
      if (found == seconds_.end()) continue;
      const double value = bar.rate ? 1 / found->second : found->second;
      const bool met = bar.rate ? value >= bar.bar : value <= bar.bar;
      const std::string ratio = bar.peer > 0 ? fmt::format("{:.0f} x", value / bar.peer) : "-";
      fmt::print("{:<42}{:>12.4g}{:>12.4g}{:>10}{:>14}\n", bar.what, value, bar.bar,
                 met ? "yes" : "no", ratio);
    }
  }

 private:
  std::map<std::string, double> seconds_;  // CPU time of one iteration
};

// --- check
// -----------------------------------------------------------------------------------------

// Least CPU seconds of each part of a job over several turns, added up. Other programs only ever
// add, and a part of milliseconds finds a quiet moment where the whole would not.
class Least {
 public:
  template <class F>
  void part(size_t i, F&& work) {
    const double begin = cpu_s();
    work();
    const double spent = cpu_s() - begin;
    if (i == parts_.size()) parts_.push_back(spent);
    parts_[i] = std::min(parts_[i], spent);
  }
  double sum() const { return std::accumulate(parts_.begin(), parts_.end(), 0.0); }

 private:
  std::vector<double> parts_;
};

// Predicts the whole space with a new predictor.
void predict_turn(Least& least) {
  constexpr size_t kPart = 2048;
  Predictor predictor(gpt3().setting);
  const std::vector<Plan>& plans = space();
  for (size_t begin = 0, i = 0; begin < plans.size(); begin += kPart, ++i) {
    least.part(i, [&] {
      const size_t end = std::min(begin + kPart, plans.size());
      for (size_t k = begin; k < end; ++k) benchmark::DoNotOptimize(predictor.predict(plans[k]));
    });
  }
}

// The yardstick: rounds of what a prediction is made of, a power, divisions and additions, from the
// compiler and its library alone. No change of ours moves it. Rounds do not wait for each other, so
// that what else runs on the core slows it about as much as a prediction.
constexpr size_t kYardParts = 32;
constexpr int kYardRounds = 100'000;

void yardstick_turn(Least& least) {
  for (size_t i = 0; i < kYardParts; ++i) {
    least.part(i, [] {
      double x = 1, sum = 0;
      for (int k = 0; k < kYardRounds; ++k) {
        benchmark::DoNotOptimize(x);
        sum += std::pow(x + 0.5, 0.9) / (1 + 1 / (x + 1));
        x += 1e-5;
      }
      benchmark::DoNotOptimize(sum);
    });
  }
}

// Rounds that a prediction may cost.
constexpr double kMostRounds = 130;
constexpr int kTurns = 12;

bool check() {
  Least predictions, yardstick;
  for (int i = 0; i < kTurns; ++i) {
    yardstick_turn(yardstick);
    predict_turn(predictions);
  }
  const double prediction = predictions.sum() / static_cast<double>(space().size());
  const double round = yardstick.sum() / (kYardParts * kYardRounds);
  const double ratio = prediction / round;
  const bool met = ratio <= kMostRounds;
  fmt::print("a prediction costs {:.3g} us, {:.1f} rounds of {:.3g} ns; at most {}: {}\n",
             prediction * 1e6, ratio, round * 1e9, kMostRounds, met ? "met" : "MISSED");
  return met;
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--check") return assay::check() ? 0 : 1;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  assay::Reporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  reporter.print_bars();
  return 0;
}
