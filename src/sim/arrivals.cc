#include "sim/arrivals.h"

#include <algorithm>
#include <cmath>

namespace assay {
namespace {

// Calendar time to operational time and back.
class Ageing {
 public:
  explicit Ageing(const InfantMortality& infant)
      : extra_((infant.multiplier - 1) * infant.decay.v), decay_(infant.decay.v) {
    if (infant.decay.v <= 0) extra_ = 0;
  }
  double operational(double t) const {
    return extra_ == 0 ? t : t + extra_ * -std::expm1(-t / decay_);
  }
  // Newton's method: s is increasing and concave, so from below every step stays below.
  double calendar(double s) const {
    if (extra_ == 0) return s;
    double t = std::max(0.0, s - extra_);
    for (int i = 0; i < 40; ++i) {
      const double decayed = std::exp(-t / decay_);
      const double step = (s - t - extra_ * (1 - decayed)) / (1 + extra_ / decay_ * decayed);
      t += step;
      if (std::abs(step) < 1e-7) break;
    }
    return t;
  }

 private:
  double extra_, decay_;
};

struct Clock {
  uint64_t id;
  double per_second;  // mean rate in operational time
  double shape = 1;   // Weibull
};

// A lemon is a lemon for every cause: one draw a machine, read through each cause's gamma. The
// exact factor costs two transcendental functions, and most machines never fail whatever it is: so
// it is computed only where a bound, looked up in the draw's cell, cannot rule a failure out.
class Lemons {
 public:
  Lemons(uint64_t seed, int64_t machines) : family_(Stream::family(seed, cause_id("lemon"))) {
    cell_.reserve(static_cast<size_t>(machines));
    for (int64_t m = 0; m < machines; ++m) cell_.push_back(Frailty::cell(quality(m)));
  }
  double most(const Frailty& f, int64_t m) const { return f.most[cell_[static_cast<size_t>(m)]]; }
  double exact(const Frailty& f, int64_t m) const { return f.factor(quality(m)); }

 private:
  double quality(int64_t m) const { return Stream(family_, static_cast<uint64_t>(m)).uniform(); }

  Stream::Family family_;
  std::vector<uint16_t> cell_;
};

class Drawer {
 public:
  Drawer(const PreparedRun& run, uint64_t seed, std::vector<Arrival>& out)
      : seed_(seed), out_(out), ageing_(run.spec.infant), steady_(InfantMortality{}) {
    horizon_ = to_seconds(run.horizon).v;
  }

  // `rate(e)` multiplies the rate of entity e and is at most `most(e)`.
  template <class Most, class Rate>
  void draw(const Clock& c, Arrival kind, int64_t entities, bool ages, Most&& most, Rate&& rate) {
    if (c.per_second <= 0) return;
    const Ageing& ageing = ages ? ageing_ : steady_;
    const double span = ageing.operational(horizon_);
    // Gap = scale x (-ln u)^(1/shape), with mean 1 / rate.
    const double scale = 1 / (c.per_second * std::tgamma(1 + 1 / c.shape));
    const Stream::Family family = Stream::family(seed_, c.id);
    const double expected = span / scale;  // with shape 1
    // Most machines never fail within the run. e^-x >= 1 - x decides it for most of them.
    fails_.clear();
    for (int64_t e = 0; e < entities; ++e) {
      const double u = Stream(family, static_cast<uint64_t>(e)).uniform();
      if (c.shape == 1 && u < 1 - expected * most(e)) continue;
      fails_.push_back(static_cast<int32_t>(e));
    }
    for (const int32_t e : fails_) {
      Stream luck(family, static_cast<uint64_t>(e));
      const double own = scale / rate(e);
      kind.entity = e;
      kind.ordinal = 0;
      for (double at = 0;;) {
        const double gap = -std::log(luck.uniform());
        at += own * (c.shape == 1 ? gap : std::pow(gap, 1 / c.shape));
        if (!(at < span)) break;
        kind.time = to_ns(Seconds(ageing.calendar(at)));
        out_.push_back(kind);
        ++kind.ordinal;
      }
    }
  }

 private:
  uint64_t seed_;
  std::vector<Arrival>& out_;
  Ageing ageing_, steady_;
  double horizon_;
  std::vector<int32_t> fails_;  // entities that may, of one cause
};

}  // namespace

std::vector<Arrival> draw_arrivals(const PreparedRun& run, uint64_t seed) {
  std::vector<Arrival> out;
  Drawer drawer(run, seed, out);
  const auto alike = [](int64_t) { return 1.0; };
  const Lemons lemons(seed, run.frailties.empty() ? 0 : run.machines);
  const auto draw = [&](const Clock& clock, Arrival kind, const Frailty* frailty, bool ages) {
    if (frailty == nullptr) return drawer.draw(clock, kind, run.machines, ages, alike, alike);
    drawer.draw(
        clock, kind, run.machines, ages, [&](int64_t m) { return lemons.most(*frailty, m); },
        [&](int64_t m) { return lemons.exact(*frailty, m); });
  };
  for (size_t i = 0; i < run.processes.size(); ++i) {
    const PreparedProcess& p = run.processes[i];
    const Clock clock{p.id, p.per_second, p.spec.shape};
    const Arrival kind{0, ArrivalKind::kFailure, static_cast<uint16_t>(i), 0, 0};
    if (p.whole_job)
      drawer.draw(clock, kind, 1, false, alike, alike);
    else
      draw(clock, kind, p.frailty, true);
  }
  for (size_t i = 0; i < run.spec.shocks.size(); ++i) {
    const ShockProcess& s = run.spec.shocks[i];
    const int64_t domains = s.nodes > 0 ? (run.machines + s.nodes - 1) / s.nodes : 1;
    drawer.draw({cause_id(s.name), s.per_year / kSecondsPerYear, 1},
                {0, ArrivalKind::kShock, static_cast<uint16_t>(i), 0, 0}, domains, false, alike,
                alike);
  }
  const SilentCorruption& c = run.spec.corruption;
  const double per_machine = static_cast<double>(run.node_gpus) / kSecondsPerHour;
  draw({cause_id("silent corruption"), c.per_gpu_hour * per_machine, 1},
       {0, ArrivalKind::kCorruption, 0, 0, 0},
       c.frailty > 0 ? &run.frailties.at(c.frailty) : nullptr, false);
  const Stragglers& s = run.spec.stragglers;
  draw({cause_id("fail-slow"), s.fail_slow_per_node_day / kSecondsPerDay, 1},
       {0, ArrivalKind::kFailSlow, 0, 0, 0}, nullptr, false);
  draw({cause_id("slow link"), s.slow_link_per_node_day / kSecondsPerDay, 1},
       {0, ArrivalKind::kSlowLink, 0, 0, 0}, nullptr, false);
  return out;
}

std::vector<Arrival> by_time(const std::vector<Arrival>& arrivals) {
  std::vector<std::pair<Nanoseconds, uint32_t>> keys;
  keys.reserve(arrivals.size());
  for (const Arrival& a : arrivals) keys.emplace_back(a.time, static_cast<uint32_t>(keys.size()));
  std::sort(keys.begin(), keys.end());
  std::vector<Arrival> sorted;
  sorted.reserve(arrivals.size());
  for (const auto& [time, index] : keys) sorted.push_back(arrivals[index]);
  return sorted;
}

Stream attributes(uint64_t seed, uint64_t cause, const Arrival& a) {
  const uint64_t entity = static_cast<uint64_t>(static_cast<uint32_t>(a.entity));
  const uint64_t ordinal = static_cast<uint64_t>(static_cast<uint32_t>(a.ordinal));
  return Stream(seed, cause ^ cause_id("attributes"), (entity << 32) | ordinal);
}

}  // namespace assay
