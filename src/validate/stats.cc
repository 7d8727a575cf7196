#include "validate/stats.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/assert.h"

namespace assay {
namespace {

double mean_of(const std::vector<double>& xs) {
  ASSERT(!xs.empty());
  double sum = 0;
  for (const double x : xs) sum += x;
  return sum / static_cast<double>(xs.size());
}

struct SourceErrors {
  std::vector<double> errors, absolute, covered;
};

// Averages of the sources' figures, each source once.
void set_errors(const std::vector<const SourceErrors*>& sources, GroupStats& out) {
  std::vector<double> median, mean, p90, bias, coverage;
  for (const SourceErrors* s : sources) {
    median.push_back(score_median(s->absolute));
    mean.push_back(mean_of(s->absolute));
    p90.push_back(score_quantile(s->absolute, 0.9));
    bias.push_back(score_median(s->errors));
    coverage.push_back(mean_of(s->covered));
  }
  out.median = mean_of(median);
  out.mean = mean_of(mean);
  out.p90 = mean_of(p90);
  out.bias = mean_of(bias);
  out.coverage = mean_of(coverage);
}

void count_row(const RowResult& r, GroupStats& out) {
  ++out.rows;
  out.usable += r.usable ? 1 : 0;
  if (r.failed_for_memory && r.fits) {
    ++out.oom_rows;
    out.oom_called_fitting += *r.fits ? 1 : 0;
  }
}

}  // namespace

double score_median(std::vector<double> xs) {
  ASSERT(!xs.empty());
  std::sort(xs.begin(), xs.end());
  const size_t half = xs.size() / 2;
  return xs.size() % 2 == 1 ? xs[half] : (xs[half - 1] + xs[half]) / 2;
}

double score_quantile(std::vector<double> xs, double q) {
  ASSERT(!xs.empty());
  std::sort(xs.begin(), xs.end());
  const auto index = static_cast<size_t>(q * static_cast<double>(xs.size()));
  return xs[std::min(index, xs.size() - 1)];
}

GroupStats stats_of(const std::string& kind, const std::string& name,
                    const std::vector<const RowResult*>& rows) {
  GroupStats out;
  out.kind = kind;
  out.name = name;
  std::map<std::string, SourceErrors> by_source;
  SourceErrors pooled;
  std::vector<double> widths, memory;
  for (const RowResult* r : rows) {
    count_row(*r, out);
    if (!r->counts()) continue;
    ++out.predicted;
    const bool covered =
        r->low_s && r->high_s && *r->low_s <= *r->measured_s && *r->measured_s <= *r->high_s;
    for (SourceErrors* s : {&by_source[r->source], &pooled}) {
      s->errors.push_back(r->error());
      s->absolute.push_back(std::abs(r->error()));
      s->covered.push_back(covered ? 1 : 0);
    }
    if (r->low_s && r->high_s) widths.push_back((*r->high_s - *r->low_s) / *r->predicted_s);
    if (r->measured_mem_gb && r->predicted_mem_gb) {
      memory.push_back(std::abs(*r->predicted_mem_gb / *r->measured_mem_gb - 1));
    }
  }
  std::vector<const SourceErrors*> weighty;
  for (const auto& [source, errors] : by_source) {
    if (errors.errors.size() >= kLeastRowsPerSource) weighty.push_back(&errors);
  }
  out.sources = static_cast<int64_t>(weighty.size());
  if (weighty.empty() && !pooled.errors.empty()) weighty.push_back(&pooled);
  if (!weighty.empty()) set_errors(weighty, out);
  if (!widths.empty()) out.range_width = score_median(widths);
  out.memory_rows = static_cast<int64_t>(memory.size());
  if (!memory.empty()) {
    out.memory_median = score_median(memory);
    out.memory_p90 = score_quantile(memory, 0.9);
  }
  const std::vector<double> regret = regrets(rows);
  out.sweeps = static_cast<int64_t>(regret.size());
  if (!regret.empty()) {
    out.regret_max = *std::max_element(regret.begin(), regret.end());
    out.regret_mean = mean_of(regret);
  }
  return out;
}

std::vector<double> regrets(const std::vector<const RowResult*>& rows) {
  struct Sweep {
    int64_t rows = 0;
    double best = 0, picked = 0, least_predicted = 0;
  };
  std::map<std::string, Sweep> sweeps;
  for (const RowResult* r : rows) {
    if (!r->counts()) continue;
    Sweep& s = sweeps[r->sweep];
    if (s.rows == 0 || *r->measured_s < s.best) s.best = *r->measured_s;
    if (s.rows == 0 || *r->predicted_s < s.least_predicted) {
      s.least_predicted = *r->predicted_s;
      s.picked = *r->measured_s;
    }
    ++s.rows;
  }
  std::vector<double> out;
  for (const auto& [key, s] : sweeps) {
    if (s.rows >= 2) out.push_back(s.picked / s.best - 1);
  }
  return out;
}

}  // namespace assay
