#include "plan/search.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "plan/cost.h"

#include "perf/range.h"

namespace assay {
namespace {

bool better(const Candidate& a, const Candidate& b) {
  return cautious(a.prediction) < cautious(b.prediction);
}

bool same_neighbourhood(const Plan& a, const Plan& b) {
  return a.tp == b.tp && a.pp == b.pp && a.cp == b.cp && a.ep == b.ep &&
         (a.zero == 3) == (b.zero == 3);
}

class Walk {
 public:
  Walk(Predictor& predictor, const Space& space, const SearchOptions& options)
      : predictor_(predictor), space_(space), options_(options) {
    result_.top.reserve(options.keep + 1);
  }

  void visit(const Shape& shape) {
    if (neighbourhood_ && !same_neighbourhood(neighbourhood_->plan, shape.plan)) close();
    const std::vector<int64_t>& sizes = space_.micro_batches(shape.dp);
    for (size_t i = 0; i < sizes.size(); ++i) {
      plan_ = shape.plan;
      plan_.micro_batch = sizes[i];
      if (!chosen_possible(shape)) continue;
      result_.possible += choices();
      if (!most_frugal_fits(shape)) {
        for (size_t j = i + 1; j < sizes.size(); ++j) {
          plan_.micro_batch = sizes[j];
          if (chosen_possible(shape)) result_.possible += choices();
        }
        try_whole_batch(shape, sizes, i);
        return;
      }
      try_recompute_choices();
    }
  }

  // Larger micro-batches need more memory, but for the largest: where it is a rank's whole batch
  // there are no gradients to add up, which stacks that keep them whole hold beside their shards.
  void try_whole_batch(const Shape& shape, const std::vector<int64_t>& sizes, size_t failed) {
    const int64_t all = space_.batch() / shape.dp;
    if (sizes[failed] >= all || sizes.back() != all) return;
    plan_.micro_batch = all;
    if (chosen_possible(shape) && most_frugal_fits(shape)) try_recompute_choices();
  }

  SearchResult finish() {
    close();
    std::stable_sort(result_.neighbours.begin(), result_.neighbours.end(), better);
    if (result_.found()) result_.nearest_miss.reset();
    if (result_.possible > 0) result_.impossible.reset();
    return std::move(result_);
  }

 private:
  int64_t choices() const {
    return static_cast<int64_t>(space_.by_memory().size() + space_.others().size());
  }

  bool chosen_possible(const Shape& shape) {
    const int64_t per_rank = space_.batch() / shape.dp;
    if (plan_.micro_batch < 1 || per_rank % plan_.micro_batch != 0) return note_impossible();
    set(space_.by_memory().front());
    return !predictor_.impossible(plan_) || note_impossible();
  }

  bool note_impossible() {
    if (!result_.impossible && result_.possible == 0)
      result_.impossible = predictor_.impossible(plan_);
    return false;
  }

  void set(const RecomputeChoice& choice) {
    plan_.recompute = choice.kind;
    plan_.recompute_layers = choice.layers;
  }

  bool most_frugal_fits(const Shape& shape) {
    set(space_.by_memory().front());
    const MemoryUse use = predictor_.memory(plan_);
    if (use.fits()) return true;
    if (!result_.nearest_miss || use.reserved < result_.nearest_miss->memory.reserved) {
      result_.nearest_miss = Miss{plan_, use, shape.dp};
    }
    return false;
  }

  void try_recompute_choices() {
    for (const RecomputeChoice& choice : space_.by_memory()) {
      set(choice);
      if (part_of_a_layer(predictor_.setting().workload.model, plan_)) continue;
      if (!try_plan()) break;
    }
    for (const RecomputeChoice& choice : space_.others()) {
      set(choice);
      try_plan();
    }
  }

  // Whether it fits.
  bool try_plan() {
    ++result_.tried;
    Candidate c{plan_, predictor_.predict(plan_)};
    if (!c.prediction.memory.fits()) return false;
    ++result_.fitting;
    if (!neighbourhood_ || better(c, *neighbourhood_)) neighbourhood_ = c;
    if (result_.top.size() == options_.keep && !better(c, result_.top.back())) return true;
    result_.top.insert(std::upper_bound(result_.top.begin(), result_.top.end(), c, better), c);
    if (result_.top.size() > options_.keep) result_.top.pop_back();
    return true;
  }

  void close() {
    if (neighbourhood_) result_.neighbours.push_back(*neighbourhood_);
    neighbourhood_.reset();
  }

  Predictor& predictor_;
  const Space& space_;
  const SearchOptions& options_;
  SearchResult result_;
  Plan plan_;
  std::optional<Candidate> neighbourhood_;
};

// Shapes come in the order of tp, pp, cp, ep, so a neighbourhood's shapes are nearly together; the
// few that come apart (etp, ZeRO stage between) are joined here.
void join_neighbourhoods(std::vector<Candidate>& sorted) {
  std::vector<Candidate> kept;
  for (const Candidate& c : sorted) {
    const bool known = std::any_of(kept.begin(), kept.end(), [&c](const Candidate& k) {
      return same_neighbourhood(k.plan, c.plan);
    });
    if (!known) kept.push_back(c);
  }
  sorted = std::move(kept);
}

// A stated micro-batch that divides the batch with no number of replicas: the one of the plan that
// was tried first is not the reason.
void blame_micro_batch(const Setting& s, const Plan& base, const std::set<std::string>& stated,
                       Impossible& why) {
  const int64_t batch = s.workload.global_batch, size = base.micro_batch;
  if (stated.count("micro_batch") == 0 || size < 1 || batch % size == 0) return;
  if (why.setting != "plan.micro_batch") return;
  why.reason = fmt::format("global batch {} is not a multiple of micro-batch {}", batch, size);
  why.fix = fmt::format("set plan.micro_batch to a divisor of {}, or workload.global_batch to {}",
                        batch, (batch / size + 1) * size);
}

}  // namespace

Seconds cautious(const Prediction& p) {
  const bool risky = p.extrapolated || p.memory.tight();
  const double slow = std::exp(p.spread);
  // Where storage sets the pace all plans take as long: the one with the least work of its own
  // wins.
  const Seconds storage = p.ledger[Account::kStorage], own = p.step - storage;
  const Seconds believed = own * (1 + 0.5 * std::max(0.0, p.mfu / kBestShareSeen - 1));
  return believed * (risky ? slow : 0.5 * (1 + slow)) + storage;
}

SearchResult search(Predictor& predictor, const Plan& base, const std::set<std::string>& stated,
                    const SearchOptions& options) {
  const Space space(predictor.setting(), base, stated);
  const std::vector<Shape> shapes = space.shapes();
  Walk walk(predictor, space, options);
  for (size_t i = 0; i < shapes.size(); ++i) {
    walk.visit(shapes[i]);
    if (options.progress && i % 256 == 255) {
      options.progress(static_cast<double>(i) / static_cast<double>(shapes.size()));
    }
  }
  SearchResult result = walk.finish();
  join_neighbourhoods(result.neighbours);
  if (result.possible == 0 && !result.impossible) result.impossible = predictor.impossible(base);
  if (result.possible == 0 && result.impossible)
    blame_micro_batch(predictor.setting(), base, stated, *result.impossible);
  return result;
}

Plan open_plan(const Setting& setting, const Plan& stated) {
  Plan plan = setting.stack.defaults;
  plan.precision = stated.precision;
  return plan;
}

bool fully_stated(const Setting& setting, const Plan& plan, const std::set<std::string>& stated) {
  const bool pipelines = has_pipelines(setting.stack);
  const bool tensor = has_tensor_parallel(setting.stack);
  const int64_t n = accelerators_used(setting);
  const bool all_used = stated.count("dp") > 0 && plan.tp <= n && plan.pp <= n && plan.cp <= n &&
                        n / plan.tp / plan.pp / plan.cp == plan.dp;
  return stated.count("micro_batch") > 0 && (!tensor || stated.count("tp") > 0) &&
         (!pipelines || stated.count("pp") > 0 || all_used);
}

}  // namespace assay
