#include "plan/scale.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace assay {
namespace {

constexpr int64_t kAcceleratorsMost = 1'000'000;

std::string does_not_fit(const MemoryUse& m) {
  return fmt::format("needs {} of {}", gibibytes(m.reserved.v), gibibytes(m.capacity.v));
}

ScalePoint best_at(const Setting& s, const Plan& base, const std::set<std::string>& stated) {
  ScalePoint point;
  point.accelerators = s.accelerators;
  Predictor predictor(s);
  SearchOptions options;
  options.keep = 1;
  const SearchResult found = search(predictor, base, stated, options);
  point.possible = found.possible > 0;
  if (found.found()) {
    point.fits = true;
    point.plan = found.top[0].plan;
    point.prediction = found.top[0].prediction;
  } else if (found.nearest_miss) {
    point.why_not = does_not_fit(found.nearest_miss->memory);
  } else {
    point.why_not = found.impossible ? found.impossible->reason : "the batch cannot be divided";
  }
  return point;
}

// The same plan on more ranks. A micro-batch that no longer divides the rank's share of the batch
// becomes the largest smaller one that does.
ScalePoint fixed_at(const Setting& s, Plan plan) {
  ScalePoint point;
  point.accelerators = s.accelerators;
  plan.dp = 0;
  const int64_t ranks = plan.tp * plan.pp * plan.cp;
  const int64_t dp = s.accelerators / std::max<int64_t>(ranks, 1);
  if (dp >= 1 && s.workload.global_batch % dp == 0) {
    const int64_t share = s.workload.global_batch / dp;
    plan.micro_batch = std::min(plan.micro_batch, share);
    while (share % plan.micro_batch != 0) --plan.micro_batch;
  }
  point.plan = plan;
  Predictor predictor(s);
  if (const std::optional<Impossible> why = predictor.impossible(plan)) {
    point.why_not = why->reason;
    return point;
  }
  point.possible = true;
  point.prediction = predictor.predict(plan);
  point.fits = point.prediction.memory.fits();
  if (!point.fits) point.why_not = does_not_fit(point.prediction.memory);
  return point;
}

double share(const Prediction& p, Account a) { return p.ledger[a] / p.step; }

void find_binding(ScalePoint& point, const Prediction& first) {
  point.binds = point.grew = largest_loss(point.prediction.ledger);
  point.binds_share = share(point.prediction, point.binds);
  for (int i = 1; i < kAccounts; ++i) {
    const Account a = static_cast<Account>(i);
    const double growth = share(point.prediction, a) - share(first, a);
    if (growth > point.growth) point.growth = growth, point.grew = a;
  }
}

double usd_per_mtoken(const Setting& s, const Prediction& p) {
  const RunFigures run = run_figures(s, p);
  const double n = static_cast<double>(accelerators_used(s));
  return p.tokens_per_s > 0 ? run.price_per_hour / kSecondsPerHour * n / p.tokens_per_s * 1e6 : 0;
}

// Speed-ups against the smallest size that fits.
void relate(std::vector<ScalePoint>& points, const Setting& s) {
  if (first_fitting(points) == nullptr) return;
  const ScalePoint first = *first_fitting(points);
  const ScalePoint* previous = nullptr;
  for (ScalePoint& p : points) {
    if (!p.fits) continue;
    p.speedup = p.prediction.tokens_per_s / first.prediction.tokens_per_s;
    p.efficiency =
        p.speedup * static_cast<double>(first.accelerators) / static_cast<double>(p.accelerators);
    if (previous) p.marginal = p.prediction.tokens_per_s / previous->prediction.tokens_per_s;
    find_binding(p, first.prediction);
    p.usd_per_mtoken = usd_per_mtoken(sized(s, p.accelerators), p.prediction);
    previous = &p;
  }
}

std::optional<int64_t> break_even(const std::vector<ScalePoint>& points) {
  for (size_t i = 1; i < points.size(); ++i) {
    const bool doubled = points[i].accelerators == 2 * points[i - 1].accelerators;
    if (!points[i].fits || !points[i - 1].fits || !doubled) continue;
    if (points[i].marginal < kDoublingPays) return points[i - 1].accelerators;
  }
  return std::nullopt;
}

Side side_of(const Setting& s, const ScalePoint& p) {
  Side side;
  side.setting = sized(s, p.accelerators);
  side.plan = p.plan;
  side.prediction = p.prediction;
  return side;
}

void keep_one_plan(ScaleResult& result, const Setting& s, const Plan& base, bool whole) {
  const ScalePoint* start = first_fitting(result.best);
  const Plan kept = whole || !start ? base : start->plan;
  for (const ScalePoint& p : result.best) {
    result.fixed.push_back(fixed_at(sized(s, p.accelerators), kept));
  }
}

bool parse_one(std::string_view text, int64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 1 &&
         value <= kAcceleratorsMost;
}

}  // namespace

Setting sized(const Setting& s, int64_t accelerators) {
  Setting t = s;
  t.accelerators = accelerators;
  const int64_t nodes =
      (accelerators + s.cluster.node.accelerators - 1) / s.cluster.node.accelerators;
  t.cluster.nodes = std::max(t.cluster.nodes, nodes);
  return t;
}

const ScalePoint* first_fitting(const std::vector<ScalePoint>& points) {
  for (const ScalePoint& p : points) {
    if (p.fits) return &p;
  }
  return nullptr;
}

std::string usual_sizes(const Cluster& cluster) {
  constexpr int64_t kLeast = 16, kMost = 10000;
  const int64_t node = std::max<int64_t>(1, cluster.node.accelerators);
  const int64_t least = (kLeast + node - 1) / node * node;
  int64_t most = least;
  while (2 * most <= kMost) most *= 2;
  return fmt::format("{}..{}", least, most);
}

std::vector<int64_t> parse_sizes(const std::string& text) {
  std::vector<int64_t> sizes;
  const size_t dots = text.find("..");
  if (dots != std::string::npos) {
    int64_t from = 0, to = 0;
    if (!parse_one(std::string_view(text).substr(0, dots), from)) return {};
    if (!parse_one(std::string_view(text).substr(dots + 2), to) || to < from) return {};
    for (int64_t n = from; n < to; n *= 2) sizes.push_back(n);
    sizes.push_back(to);
    return sizes;
  }
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    int64_t n = 0;
    if (!parse_one(std::string_view(text).substr(at, comma - at), n)) return {};
    sizes.push_back(n);
    at = comma + 1;
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

ScaleResult scale(const Setting& setting, const Plan& base, const std::set<std::string>& stated,
                  const ScaleOptions& options) {
  ScaleResult result;
  const bool whole = fully_stated(setting, base, stated);
  result.whole_plan = whole && !options.fix_plan;
  // A whole plan kept by --fix-plan must not bind the search of the best one beside it.
  const bool drop = options.fix_plan && whole;
  const std::set<std::string> bound = drop ? std::set<std::string>{} : stated;
  const Plan start = drop ? open_plan(setting, base) : base;
  for (size_t i = 0; i < options.sizes.size(); ++i) {
    const Setting s = sized(setting, options.sizes[i]);
    result.beyond_cluster |= s.cluster.nodes > setting.cluster.nodes;
    if (result.whole_plan) {
      result.best.push_back(fixed_at(s, base));
    } else {
      result.best.push_back(best_at(s, start, bound));
    }
    if (options.progress) {
      options.progress(static_cast<double>(i + 1) / static_cast<double>(options.sizes.size()));
    }
  }
  if (options.fix_plan) keep_one_plan(result, setting, base, whole);
  relate(result.best, setting);
  relate(result.fixed, setting);
  result.break_even = break_even(options.fix_plan ? result.fixed : result.best);
  if (options.fix_plan && result.best.back().fits && result.fixed.back().fits) {
    result.wrong_choice =
        attribute(side_of(setting, result.fixed.back()), side_of(setting, result.best.back()));
  }
  return result;
}

}  // namespace assay
