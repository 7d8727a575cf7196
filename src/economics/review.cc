#include "economics/review.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "site/rejection.h"

namespace assay {
namespace {

constexpr double kStoragePerGpu = 0.1e9;  // B/s of reads that training wants at least; a usual rule
constexpr double kDaysToStage = 7;        // staging that takes longer delays a project
constexpr double kSmallShare = 0.05;      // of a cluster that a job can do without
constexpr double kFewCents = 0.02;        // of a bill; below it a shift is not worth the idle hours

std::string mw(Watts w) {
  return w.v < 1e6 ? fmt::format("{:.3g} kW", w.v / 1e3) : fmt::format("{:.3g} MW", w.v / 1e6);
}
std::string energy_text(double kwh) {
  return kwh < 1e6 ? fmt::format("{:.3g} MWh", kwh / 1e3) : fmt::format("{:.3g} GWh", kwh / 1e6);
}
std::string carbon_text(double kg) {
  return kg < 1e6 ? fmt::format("{:.3g} t", kg / 1e3) : fmt::format("{:.3g} kt", kg / 1e6);
}
std::string water_text(double litres) {
  if (litres <= 0) return "no water";
  return litres < 1e6 ? fmt::format("{:.3g} m3 of water", litres / 1e3)
                      : fmt::format("{:.3g} M litres of water", litres / 1e6);
}

std::string money(double usd) {
  if (std::abs(usd) >= 1e6) return fmt::format("${:.3g} M", usd / 1e6);
  if (std::abs(usd) >= 1e3) return fmt::format("${:.3g} k", usd / 1e3);
  return fmt::format("${:.3g}", usd);
}

std::string span(Seconds s) {
  if (s.v >= 2 * kSecondsPerDay) return fmt::format("{:.3g} days", s.v / kSecondsPerDay);
  if (s.v >= kSecondsPerHour) return fmt::format("{:.3g} hours", s.v / kSecondsPerHour);
  return fmt::format("{:.3g} minutes", s.v / 60);
}

bool has(const std::vector<std::string>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

class Reviewer {
 public:
  Reviewer(const Site& site, const Cluster& cluster, const Origins& origins,
           const std::optional<JobFigures>& job)
      : site_(site), cluster_(cluster), origins_(origins) {
    out_.job = job;
    out_.node = node_power(cluster, step_power());
  }

  Review run() {
    out_.density = density(site_, cluster_);
    FacilityOptions whole;
    whole.step_power = step_power();
    const SiteSeries year = facility_series(site_, cluster_, whole);
    out_.year = totals(year);
    out_.bill = bill(site_, cluster_, year);
    failures();
    scale();
    observe();
    power_bill();
    failing();
    data();
    documented();
    conclude();
    return std::move(out_);
  }

 private:
  bool stated(const std::string& path) const {
    const auto at = origins_.lower_bound(path);
    return at != origins_.end() && at->first.starts_with(path);
  }
  Answer& ask(const char* id, const char* question) {
    out_.answers.push_back({id, question, Verdict::kUnknown, "", {}, {}});
    return out_.answers.back();
  }
  static void fact(Answer& a, char mark, std::string text) {
    a.facts.push_back({std::move(text), mark});
  }

  Watts step_power() const { return out_.job ? out_.job->power : Watts(0); }

  // Of the cluster, in one full rack.
  double rack_share() const {
    const auto nodes = static_cast<double>(std::max<int64_t>(1, cluster_.nodes));
    return std::min(1.0, static_cast<double>(out_.density.rack.nodes) / nodes);
  }
  void failures();
  void cooling_failures();
  void scale();
  void observe();
  void power_bill();
  void shifting(Answer& a);
  void failing();
  void data();
  void documented();
  void conclude();

  const Site& site_;
  const Cluster& cluster_;
  const Origins& origins_;
  Review out_;
};

void Reviewer::failures() {
  const Power& p = site_.power;
  const double draw = out_.year.highest / std::max(p.contracted, Watts(1));
  if (p.feeds > 1) {
    out_.failures.push_back({fmt::format("one of {} feeds", p.feeds),
                             "the other carries the whole contract", 0, draw <= 1});
  } else {
    out_.failures.push_back(
        {"the only feed", fmt::format("everything stops; {}", site_.tier.name), 1, false});
  }
  const int64_t per_rack =
      std::clamp<int64_t>(out_.density.rack.nodes, 1, std::max<int64_t>(1, cluster_.nodes));
  const double rack = rack_share();
  const std::string without =
      rack < 1 ? fmt::format("{} node{} out; the job restarts without", per_rack,
                             per_rack == 1 ? " is" : "s are")
               : std::string("every node is in it: everything stops until it is back");
  out_.failures.push_back({"one rack's power", without, rack, rack < kSmallShare});
  const int64_t leaf = cluster_.fabric.nodes_per_leaf;
  // Accelerators of a torus are each other's switches.
  const bool switched = cluster_.nodes > 1 && cluster_.fabric.kind != FabricKind::kTorus;
  if (leaf > 0 && switched && cluster_.fabric.rail_optimised && cluster_.node.nics > 1) {
    out_.failures.push_back(
        {"one leaf switch",
         fmt::format("{} nodes lose one of {} ports; the job restarts, with less network there",
                     std::min(leaf, cluster_.nodes), cluster_.node.nics),
         0, true});
  } else if (leaf > 0 && switched) {
    const double share =
        std::min(1.0, static_cast<double>(leaf) / static_cast<double>(cluster_.nodes));
    const std::string then =
        share < 1 ? fmt::format("{} nodes cannot be reached; the job restarts without", leaf)
                  : std::string("every node is behind it: everything stops until it is replaced");
    out_.failures.push_back({"one leaf switch", then, share, share < kSmallShare});
  }
  cooling_failures();
  const double hours = site_.tier.outage_mean.v / kSecondsPerHour;
  out_.failures.push_back(
      {"the site",
       fmt::format("{:.2g} times a year for {:.2g} h, and the work since the last checkpoint",
                   site_.tier.outages_per_year, hours),
       1, site_.tier.fault_tolerant || site_.tier.maintainable});
  double least = 1;
  for (const Curtailment& c : p.curtailment) least = std::min(least, c.share);
  if (least < 1) {
    out_.failures.push_back({"the grid, in its windows",
                             fmt::format("{:.0f} % of the contract is left", least * 100),
                             std::max(0.0, 1 - least / std::max(draw, 1e-9)), least >= draw});
  }
}

void Reviewer::cooling_failures() {
  const bool liquid = site_.cooling.method == CoolingMethod::kDirectLiquid ||
                      site_.cooling.method == CoolingMethod::kImmersion;
  if (liquid) {
    const FlowLoss loss = loss_of_flow(thermal_of(cluster_.accelerator), site_.cooling.supply_c);
    out_.failures.push_back(
        {"coolant flow of one loop",
         fmt::format("clocks fall after {:.0f} s, parts shut down after {:.0f} s", loss.throttle.v,
                     loss.shutdown.v),
         0.05, false});
  }
  const double clock = 1 - out_.year.clock;
  if (out_.year.hottest_coolant_c > site_.cooling.supply_c + 0.1) {
    out_.failures.push_back(
        {"a usual hot afternoon",
         fmt::format("coolant {:.1f} C instead of {:.1f}; clocks over the year fall by {:.2f} %",
                     out_.year.hottest_coolant_c, site_.cooling.supply_c, 100 * clock),
         0, clock < 0.01});
  }
  const WeatherHour worst = design_hour(Weather(site_.climate));
  const Watts heat = out_.node.training * static_cast<double>(cluster_.nodes);
  const PlantState hot = plant_at(site_.cooling, worst, heat, heat);
  if (hot.heat_share < 1) {
    out_.failures.push_back({"the hottest 35 hours",
                             fmt::format("at {:.1f} C outside the plant takes {:.0f} % of the heat",
                                         worst.dry_c, 100 * hot.heat_share),
                             1 - hot.heat_share, false});
  }
}

void Reviewer::scale() {
  Answer& a = ask("scale", "Does it scale?");
  const Density& d = out_.density;
  a.verdict = !d.any_stated ? Verdict::kUnknown : d.fits() ? Verdict::kGood : Verdict::kBad;
  if (d.any_stated) {
    fact(a, 'c',
         fmt::format("{} of {} nodes fit; {} binds", std::min(d.nodes, d.asked_nodes),
                     d.asked_nodes, limit_name(d.binding)));
  }
  for (const Bottleneck& b : d.limits) {
    if (b.stated) continue;
    static constexpr std::pair<Limit, const char*> kKeys[] = {
        {Limit::kDistribution, "site.power.distribution"},
        {Limit::kCooling, "site.cooling.capacity"},
        {Limit::kRackPower, "site.hall.rack_power"},
        {Limit::kFloorLoad, "site.hall.floor_kg_m2"},
        {Limit::kSpace, "site.hall.racks"},
        {Limit::kReach, "site.hall.reach_m"}};
    for (const auto& [limit, key] : kKeys) {
      if (limit == b.limit) a.missing.emplace_back(key);
    }
  }
  if (out_.job && !out_.job->fits) {
    a.verdict = Verdict::kBad;
    fact(a, 'c',
         fmt::format("{} does not fit: no plan for {} accelerators; `assay plan` shows why",
                     out_.job->name, cluster_.accelerators()));
  }
  const Fabric& f = cluster_.fabric;
  if (cluster_.nodes > 1 && f.kind != FabricKind::kTorus) {
    fact(a, 's', fmt::format("fabric {:g}:1 above {} nodes", f.oversubscription, f.nodes_per_leaf));
    if (f.oversubscription > 1 && a.verdict == Verdict::kGood) a.verdict = Verdict::kPartly;
  }
  const double gpus = static_cast<double>(cluster_.accelerators());
  if (site_.storage.read.v > 0) {
    const double each = site_.storage.read.v / gpus;
    fact(a, 's',
         fmt::format("storage reads {:.3g} GB/s, {} an accelerator", site_.storage.read.v / 1e9,
                     each < 1e9 ? fmt::format("{:.3g} MB/s", each / 1e6)
                                : fmt::format("{:.3g} GB/s", each / 1e9)));
    if (each < kStoragePerGpu && a.verdict == Verdict::kGood) a.verdict = Verdict::kPartly;
  } else {
    a.missing.emplace_back("site.storage");
  }
}

void Reviewer::observe() {
  Answer& a = ask("observe", "Can it be observed?");
  std::vector<std::string> absent;
  for (std::string_view item : kObservable) {
    if (!has(site_.observed, item)) absent.emplace_back(item);
  }
  const size_t seen = kObservable.size() - absent.size();
  if (site_.observed.empty()) {
    a.missing.emplace_back("site.observed");
    return;
  }
  fact(a, 's', fmt::format("{} of {} are measured and kept", seen, kObservable.size()));
  if (!site_.scheduler.empty())
    fact(a, 's',
         fmt::format("jobs and waits are in the accounts of {}", sanitize(site_.scheduler)));
  if (!absent.empty()) {
    a.missing.push_back(fmt::format("site.observed ({})", fmt::join(absent, ", ")));
  }
  const bool heat = has(site_.observed, "coolant") && has(site_.observed, "gpu-telemetry");
  a.verdict = absent.empty() ? Verdict::kGood : heat ? Verdict::kPartly : Verdict::kBad;
  if (!heat) fact(a, 'c', "a throttled node cannot be told from a slow one");
}

void Reviewer::shifting(Answer& a) {
  const Tariff& t = site_.power.tariff;
  if (t.flat.v > 0 || t.usd_per_mwh.empty()) return;
  constexpr int kNight = 8;
  const ShiftValue v = shift_value(price_profile(t), kNight, out_.bill.kwh, out_.bill.per_hour,
                                   cluster_.accelerators());
  fact(a, 'c',
       fmt::format(
           "the cheapest {} hours start at {:02d}:00 and save {:.0f} % of energy, {} a year; "
           "accelerators that wait for them cost {}",
           kNight, v.window.start, v.saving * 100, money(v.energy_saved.v),
           money(v.capital_idle.v)));
}

void Reviewer::power_bill() {
  Answer& a = ask("bill", "What is the power bill?");
  const FacilityTotals& y = out_.year;
  a.verdict = y.highest <= site_.power.contracted ? Verdict::kGood : Verdict::kBad;
  fact(a, 'c',
       fmt::format("{} a year for {} at PUE {:.2f}; {} at the most", money(y.energy_cost.v),
                   energy_text(y.facility_kwh), y.pue, mw(y.highest)));
  fact(a, 'c',
       fmt::format("{} of CO2 and {} a year", carbon_text(y.carbon_kg), water_text(y.water_l)));
  const Bill& b = out_.bill;
  if (b.rented && b.price_known) {
    const double share = y.energy_cost.v / std::max(b.total.v, 1e-9);
    fact(a, 's',
         fmt::format("rent is {} an hour ({}): energy is {}", money(b.per_hour.v * kSecondsPerHour),
                     b.price_from,
                     share <= 1 ? fmt::format("{:.1f} % of that", 100 * share)
                                : fmt::format("{:.3g} times that", share)));
  } else if (!b.rented) {
    fact(a, 'c',
         fmt::format("owned at {} an accelerator-hour: hardware {:.0f} %, network {:.0f} %, "
                     "energy {:.0f} %, space {:.0f} %, people and maintenance {:.0f} %",
                     money(b.per_hour.v * kSecondsPerHour), 100 * b.share(b.hardware),
                     100 * b.share(b.network), 100 * b.share(b.energy), 100 * b.share(b.space),
                     100 * b.share(b.people + b.maintenance)));
  }
  shifting(a);
  if (y.running < 1 - kFewCents) {
    // Nodes at rest draw power, too; what even they exceed no schedule keeps.
    if (a.verdict == Verdict::kGood) a.verdict = Verdict::kPartly;
    fact(a, 'c',
         fmt::format("power and cooling let {:.1f} % of the cluster run on average",
                     100 * y.running));
  }
  a.word = a.verdict == Verdict::kGood     ? money(y.energy_cost.v) + " a year"
           : a.verdict == Verdict::kPartly ? "within the contract, by shedding load"
                                           : "above the contract";
  if (!b.price_known) a.missing.emplace_back("site.offer");
  if (!b.rented && site_.offer.staff <= 0) a.missing.emplace_back("site.offer.staff");
  if (!stated("site.power.tariff")) a.missing.emplace_back("site.power.tariff");
  if (out_.job && out_.job->mfu > 0 && out_.job->useful_share > 0 && b.price_known) {
    const double usd = usd_per_useful_exaflop(b.per_hour, cluster_.accelerator.bf16, out_.job->mfu,
                                              out_.job->useful_share);
    fact(a, 'c',
         fmt::format("{} per useful exaFLOP: {:.1f} % MFU, of which a simulated run keeps {:.1f} %",
                     money(usd), 100 * out_.job->mfu, 100 * out_.job->useful_share));
  }
}

void Reviewer::failing() {
  Answer& a = ask("failure", "What happens when X fails?");
  bool all = true;
  for (const FailureCase& f : out_.failures) all = all && f.tolerated;
  a.verdict = all ? Verdict::kGood : Verdict::kPartly;
  if (site_.power.feeds < 2 && !site_.tier.maintainable) a.verdict = Verdict::kBad;
  fact(
      a, 's',
      fmt::format("{} promises {:.3f} %: {:.0f} minutes a year, {} of accelerator time",
                  site_.tier.name.empty() ? "the site" : site_.tier.name,
                  100 * site_.tier.availability, downtime_minutes(site_.tier),
                  money(downtime_cost(site_.tier, cluster_.accelerators(), out_.bill.per_hour).v)));
  a.word = a.verdict == Verdict::kGood     ? "it goes on"
           : a.verdict == Verdict::kPartly ? "it goes on, but for those marked !"
                                           : "it stops";
  if (out_.job && out_.job->runs > 0) {
    const JobFigures& j = *out_.job;
    const std::string often =
        std::isfinite(j.interrupted_every.v)
            ? fmt::format("is interrupted every {}", span(j.interrupted_every))
            : std::string("is not interrupted");
    fact(a, 'c',
         fmt::format("{} {} and loses {:.1f} % to it; goodput {:.1f} % ({:.1f}-{:.1f}), from {} "
                     "simulated runs of {:.0f} days operated as `{}`",
                     j.name, often, 100 * j.restart_share, 100 * j.goodput, 100 * j.goodput_low,
                     100 * j.goodput_high, j.runs, j.simulated_days, j.operations));
  }
  if (!stated("site.tier")) a.missing.emplace_back("site.tier");
  if (!has(site_.documented, "failure-drills"))
    a.missing.emplace_back("site.documented (failure-drills)");
}

void Reviewer::data() {
  Answer& a = ask("data", "Is the data near, and allowed to be there?");
  const DataPlace& d = site_.data;
  const bool here = d.at == "here" || d.at == site_.name;
  bool allowed = true, known = !d.jurisdictions.empty() && !site_.jurisdiction.empty();
  if (known) {
    allowed = has(d.jurisdictions, site_.jurisdiction) || has(d.jurisdictions, site_.country);
    fact(a, 's',
         fmt::format("data may be in {}; the site is in {}", fmt::join(d.jurisdictions, ", "),
                     site_.jurisdiction));
  }
  if (!site_.certified.empty())
    fact(a, 's',
         fmt::format("certified: {}",
                     sanitize(fmt::format("{}", fmt::join(site_.certified, ", ")))));
  double days = 0;
  if (!here && d.size.v > 0 && d.link.v > 0) {
    days = (d.size / d.link).v / kSecondsPerDay;
    fact(a, 'c',
         fmt::format("{:.3g} TB from {} take {:.2g} days", d.size.v / 1e12,
                     d.at.empty() ? "afar" : d.at, days));
  } else if (here) {
    fact(a, 's', "the data are here");
  }
  if (d.at.empty()) a.missing.emplace_back("site.data.at");
  if (d.jurisdictions.empty()) a.missing.emplace_back("site.data.jurisdictions");
  if (site_.jurisdiction.empty()) a.missing.emplace_back("site.jurisdiction");
  if (!here && (d.size.v <= 0 || d.link.v <= 0)) a.missing.emplace_back("site.data.{size,link}");
  const bool near = here || (days > 0 && days <= kDaysToStage);
  if (known && !allowed) {
    a.verdict = Verdict::kBad;
  } else if (known && near) {
    a.verdict = Verdict::kGood;
  } else if (known || near || days > 0) {
    a.verdict = Verdict::kPartly;
  }
}

void Reviewer::documented() {
  Answer& a = ask("documented", "Is it documented?");
  std::vector<std::string> absent;
  for (std::string_view item : kDocuments) {
    if (!has(site_.documented, item)) absent.emplace_back(item);
  }
  if (site_.documented.empty()) {
    a.missing.emplace_back("site.documented");
    return;
  }
  fact(a, 's',
       fmt::format("{} of {} are written down", kDocuments.size() - absent.size(),
                   kDocuments.size()));
  if (!absent.empty()) {
    a.missing.push_back(fmt::format("site.documented ({})", fmt::join(absent, ", ")));
  }
  a.verdict = absent.empty() ? Verdict::kGood : Verdict::kPartly;
}

void Reviewer::conclude() {
  const Density& d = out_.density;
  size_t no = 0, missing = 0;
  for (const Answer& a : out_.answers) {
    no += a.verdict == Verdict::kBad ? 1 : 0;
    missing += a.missing.size();
  }
  out_.passes = d.fits() && no == 0;
  const std::string gaps =
      missing == 0 ? "nothing is missing"
                   : fmt::format("{} thing{} missing", missing, missing == 1 ? " is" : "s are");
  if (!d.fits()) {
    out_.verdict = fmt::format("No: the site holds {} of {} nodes; {} binds ({} racks of {}); {}.",
                               d.nodes, d.asked_nodes, limit_name(d.binding), d.racks,
                               std::max<int64_t>(1, d.rack.nodes), gaps);
  } else if (no > 0) {
    out_.verdict = fmt::format("No: {} of {} questions are answered with no; {}.", no,
                               out_.answers.size(), gaps);
  } else {
    out_.verdict = fmt::format("Yes: {} {} ({} would, {} binds next); {}.", d.asked_nodes,
                               d.asked_nodes == 1 ? "node fits" : "nodes fit", d.nodes,
                               limit_name(d.binding), gaps);
  }
}

}  // namespace

const char* verdict_name(Verdict v) {
  switch (v) {
    case Verdict::kGood:
      return "yes";
    case Verdict::kPartly:
      return "partly";
    case Verdict::kBad:
      return "no";
    case Verdict::kUnknown:
      return "unknown";
  }
  return "";
}

FlowLoss loss_of_flow(const GpuThermal& g, double supply_c) {
  const double start = steady_junction(g, supply_c, 1);
  // Without flow the plate takes all heat: it rises at power over its heat capacity.
  const double rate = g.tdp.v / g.plate_j_per_k;
  const auto until = [&](double limit) { return Seconds(std::max(0.0, (limit - start) / rate)); };
  return {until(g.max_c), until(g.shutdown_c)};
}

Review review(const Site& site, const Cluster& cluster, const Origins& origins,
              const std::optional<JobFigures>& job) {
  return Reviewer(site, cluster, origins, job).run();
}

}  // namespace assay
