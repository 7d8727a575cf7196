#include "sim/many.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <thread>

#include "base/random.h"
#include "base/statistics.h"

namespace assay {
namespace {

// What is kept of one run: no events, the series in single precision.
struct Summary {
  Ledger ledger;
  double paid, period, goodput, useful_share, tokens, interruptions, spares_empty, longest_run;
  bool finished;
  std::vector<CauseCount> causes;
  struct Point {
    float goodput, busy, clock;
  };
  std::vector<Point> series;
};

Summary summary_of(RunResult&& r) {
  Summary s{r.ledger,
            r.paid.v,
            r.period.v,
            r.goodput,
            r.useful_share,
            r.tokens,
            static_cast<double>(r.interruptions),
            static_cast<double>(r.spares_empty),
            r.longest_run.v,
            r.finished,
            std::move(r.causes),
            {}};
  for (const SeriesPoint& p : r.series) {
    s.series.push_back(
        {static_cast<float>(p.goodput), static_cast<float>(p.busy), static_cast<float>(p.clock)});
  }
  return s;
}

uint64_t seed_of(uint64_t seed, int64_t run) {
  return Stream(seed, cause_id("run"), static_cast<uint64_t>(run)).bits();
}

int threads_of(const ManyOptions& o) {
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const int wanted = o.threads > 0 ? o.threads : cores;
  return static_cast<int>(std::clamp<int64_t>(o.runs, 1, wanted));
}

// A century by days would be 36,500 points a run; a longer bucket keeps it to some hundreds. A run
// that ends with its tokens is cut by how long it should take, not by when it is given up.
Seconds bucket_of(const RunSpec& spec) {
  Seconds period = spec.period;
  if (spec.target_tokens > 0 && spec.step.tokens > 0)
    period = std::min(period, spec.step.step * (20 * spec.target_tokens / spec.step.tokens));
  return std::max(RunOptions{}.bucket, period / 400);
}

// Runs 0 .. runs-1 on all threads; `take(k, result)` is called by one thread at a time. Which runs
// are complete after a cancel depends on the threads; what each of them holds does not.
template <class Take>
void run_all(const Simulator& simulator, const ManyOptions& o, Take&& take) {
  RunOptions options;
  options.bucket = bucket_of(simulator.spec());
  std::atomic<int64_t> next{0};
  std::mutex mutex;
  int64_t done = 0;
  const auto work = [&] {
    for (;;) {
      const int64_t k = next.fetch_add(1);
      if (k >= o.runs || (o.cancel != nullptr && o.cancel->load())) return;
      Summary s = summary_of(simulator.run(seed_of(o.seed, k), options));
      const std::lock_guard<std::mutex> lock(mutex);
      take(k, std::move(s));
      if (o.progress) o.progress(++done);
    }
  };
  std::vector<std::thread> threads;
  for (int t = 1; t < threads_of(o); ++t) threads.emplace_back(work);
  work();
  for (std::thread& t : threads) t.join();
}

std::vector<std::optional<Summary>> all_runs(const RunSpec& spec, const ManyOptions& o) {
  std::vector<std::optional<Summary>> runs(static_cast<size_t>(std::max<int64_t>(0, o.runs)));
  const Simulator simulator(spec);
  run_all(simulator, o,
          [&](int64_t k, Summary&& s) { runs[static_cast<size_t>(k)].emplace(std::move(s)); });
  return runs;
}

Band band_of(std::vector<double> values) {
  if (values.empty()) return {};
  Band b;
  b.mean = mean(values);
  std::sort(values.begin(), values.end());
  b.p5 = sorted_quantile(values, 0.05);
  b.p50 = sorted_quantile(values, 0.5);
  b.p95 = sorted_quantile(values, 0.95);
  return b;
}

template <class Value>
Band band(const std::vector<const Summary*>& runs, Value&& value) {
  std::vector<double> values;
  values.reserve(runs.size());
  for (const Summary* s : runs) values.push_back(static_cast<double>(value(*s)));
  return band_of(std::move(values));
}

void add_series(const std::vector<const Summary*>& runs, ManyResult& r) {
  size_t length = runs[0]->series.size();
  for (const Summary* s : runs) length = std::min(length, s->series.size());
  for (size_t i = 0; i < length; ++i) {
    r.series.push_back({band(runs, [&](const Summary& s) { return s.series[i].goodput; }),
                        band(runs, [&](const Summary& s) { return s.series[i].busy; }),
                        band(runs, [&](const Summary& s) { return s.series[i].clock; })});
  }
}

}  // namespace

double ManyResult::later_than(Seconds deadline) const {
  if (done == 0) return 0;
  const auto in_time = std::upper_bound(finished_at.begin(), finished_at.end(), deadline.v);
  return 1 - static_cast<double>(in_time - finished_at.begin()) / static_cast<double>(done);
}

ManyResult simulate_many(const RunSpec& spec, const ManyOptions& o) {
  const std::vector<std::optional<Summary>> all = all_runs(spec, o);
  std::vector<const Summary*> runs;
  for (const std::optional<Summary>& s : all) {
    if (s) runs.push_back(&*s);
  }
  ManyResult r;
  r.requested = o.runs;
  r.bucket = bucket_of(spec);
  r.done = static_cast<int64_t>(runs.size());
  if (runs.empty()) return r;
  for (size_t a = 0; a < static_cast<size_t>(kAccounts); ++a) {
    r.ledger[a] = band(runs, [&](const Summary& s) { return s.ledger.leaf[a].v; });
    r.mean.leaf[a] = Seconds(r.ledger[a].mean);
  }
  r.paid = band(runs, [](const Summary& s) { return s.paid; });
  r.period = band(runs, [](const Summary& s) { return s.period; });
  r.goodput = band(runs, [](const Summary& s) { return s.goodput; });
  r.useful_share = band(runs, [](const Summary& s) { return s.useful_share; });
  r.tokens = band(runs, [](const Summary& s) { return s.tokens; });
  r.interruptions = band(runs, [](const Summary& s) { return s.interruptions; });
  r.spares_empty = band(runs, [](const Summary& s) { return s.spares_empty; });
  r.longest_run = band(runs, [](const Summary& s) { return s.longest_run; });
  r.finished = band(runs, [](const Summary& s) { return s.finished ? 1.0 : 0.0; }).mean;
  for (const Summary* s : runs) {
    if (s->finished) r.finished_at.push_back(s->period);
  }
  std::sort(r.finished_at.begin(), r.finished_at.end());
  for (size_t c = 0; c < runs[0]->causes.size(); ++c) {
    r.causes.push_back({runs[0]->causes[c].name,
                        band(runs, [&](const Summary& s) { return s.causes[c].interruptions; }),
                        band(runs, [&](const Summary& s) { return s.causes[c].lost.v; })});
  }
  add_series(runs, r);
  return r;
}

std::vector<LeverResult> measure_levers(const RunSpec& base, const std::vector<Lever>& levers,
                                        const ManyOptions& options) {
  ManyOptions quiet = options;
  int64_t before = 0;  // runs of earlier specs, so that progress goes on
  quiet.progress = [&](int64_t done) {
    if (options.progress) options.progress(before + done);
  };
  const std::vector<std::optional<Summary>> without = all_runs(base, quiet);
  std::vector<LeverResult> results;
  for (const Lever& lever : levers) {
    before += options.runs;
    const std::vector<std::optional<Summary>> with = all_runs(lever.spec, quiet);
    LeverResult r{lever.name, lever.change, lever.settings, 0, {}, {}, {}};
    std::vector<double> useful, goodput, period;
    for (size_t k = 0; k < with.size(); ++k) {
      if (!with[k] || !without[k]) continue;
      useful.push_back(with[k]->useful_share - without[k]->useful_share);
      goodput.push_back(with[k]->goodput - without[k]->goodput);
      period.push_back(with[k]->period - without[k]->period);
    }
    r.pairs = static_cast<int64_t>(useful.size());
    r.useful_share = band_of(useful);
    r.goodput = band_of(goodput);
    r.period = band_of(period);
    results.push_back(r);
  }
  return results;
}

}  // namespace assay
