#include "report/review_report.h"

#include <algorithm>

#include <cmath>

#include <fmt/format.h>

#include "plan/words.h"
#include "report/result_json.h"

namespace assay {
namespace {

constexpr int64_t kUnlimited = 1'000'000'000;  // a limit that does not bind at all

std::string head(const ReviewInput& in, const NodePower& p, const Style& style) {
  const Site& s = *in.site;
  const Cluster& c = *in.cluster;
  std::string where =
      fmt::format("Review  {}: {}, {} contracted on {} feed{}, {}", s.name,
                  s.climate.name.empty() ? "its own climate" : s.climate.name,
                  watts(s.power.contracted.v), s.power.feeds, s.power.feeds == 1 ? "" : "s",
                  s.cooling.name.empty() ? "its own plant" : s.cooling.name);
  if (!s.tier.name.empty()) where += ", " + s.tier.name;
  const std::string what =
      fmt::format("For     {}: {} {} x {} {}, {} a node in training, {} nameplate", c.name,
                  count(c.nodes), c.nodes == 1 ? "node" : "nodes", c.node.accelerators,
                  c.accelerator.name, watts(p.training.v), watts(p.nameplate.v));
  return wrap(where, style.width, 8) + "\n" + wrap(what, style.width, 8) + "\n";
}

// A domain that fills a rack is all there or not at all.
std::string rack_words(const RackPlan& r) {
  if (!r.fixed) return fmt::format("A rack holds {} node{}", r.nodes, r.nodes == 1 ? "" : "s");
  return fmt::format("A rack must hold {} nodes, one scale-up domain{}", r.by_height,
                     r.nodes > 0 ? "" : ", and none here can");
}

std::string limits_table(const Density& d, const Style& style) {
  int64_t most = 1;
  for (const Bottleneck& b : d.limits) {
    if (b.stated && b.nodes < kUnlimited) most = std::max(most, b.nodes);
  }
  const int columns = 14;
  std::string out = "\nWhat each limit would allow alone       nodes    racks\n";
  std::string unstated;
  for (const Bottleneck& b : d.limits) {
    if (!b.stated) {
      unstated += (unstated.empty() ? "" : ", ") + std::string(limit_name(b.limit));
      continue;
    }
    const bool binds = b.limit == d.binding;
    const double share = static_cast<double>(b.nodes) / static_cast<double>(most);
    const std::string line =
        fmt::format("{} {}{} {} {}  {}", binds ? ">" : " ", left(limit_name(b.limit), 18),
                    left(bar(share, columns, style), columns), right(count(b.nodes), 9),
                    right(count(b.racks), 8), b.why);
    out += wrap(line, style.width, 55) + "\n";
  }
  out += fmt::format("  {} {} {}\n", left("asked for", 18 + columns),
                     right(count(d.asked_nodes), 9), right(count(d.asked_racks), 8));
  if (!unstated.empty()) {
    out += wrap("  not stated, so not limiting: " + unstated, style.width, 4) + "\n";
  }
  const RackPlan& r = d.rack;
  out += wrap(fmt::format("  {}: {} nameplate, {:.0f} kg{}, {:.0f} kg/m2 with its aisle.",
                          rack_words(r), watts(r.power.v), r.weight_kg,
                          r.weight_assumed ? " (assumed)" : "", r.floor_kg_m2),
              style.width, 2) +
         "\n";
  return out;
}

std::string failures_table(const std::vector<FailureCase>& all, const Style& style) {
  std::string out = "\nWhat fails                    stops  then\n";
  for (const FailureCase& f : all) {
    const std::string line = fmt::format("{} {}{}  {}", f.tolerated ? " " : "!", left(f.what, 25),
                                         right(percent(f.lost), 8), f.consequence);
    out += wrap(line, style.width, 37) + "\n";
  }
  return out;
}

std::string questions(const std::vector<Answer>& all, const Style& style) {
  std::string out = "\n";
  int number = 0;
  for (const Answer& a : all) {
    const size_t column = style.width < 96 ? 44 : 50;
    out += fmt::format("{} {}{}\n", ++number, left(a.question, column),
                       a.word.empty() ? verdict_name(a.verdict) : a.word);
    for (const Fact& f : a.facts) {
      out += wrap(fmt::format("    {}  {}", f.text, f.mark), style.width, 6) + "\n";
    }
    if (!a.missing.empty()) {
      out +=
          wrap(fmt::format("    missing: {}", fmt::join(a.missing, ", ")), style.width, 13) + "\n";
    }
  }
  return out;
}

Json density_json(const Density& d) {
  Json limits = Json::array();
  for (const Bottleneck& b : d.limits) {
    Json l{{"limit", limit_name(b.limit)}, {"stated", b.stated}};
    if (b.stated) {
      l["nodes"] = b.nodes;
      l["racks"] = b.racks;
      l["why"] = b.why;
      l["binds"] = b.limit == d.binding;
    }
    limits.push_back(std::move(l));
  }
  return {{"limits", std::move(limits)},
          {"binding", limit_name(d.binding)},
          {"nodes", d.nodes},
          {"racks", d.racks},
          {"asked_nodes", d.asked_nodes},
          {"asked_racks", d.asked_racks},
          {"fits", d.fits()},
          {"rack",
           {{"nodes", d.rack.nodes},
            {"power_w", d.rack.power.v},
            {"weight_kg", d.rack.weight_kg},
            {"floor_kg_m2", d.rack.floor_kg_m2}}}};
}

Json bill_json(const Bill& b) {
  return {{"rented", b.rented},
          {"price_known", b.price_known},
          {"price_from", b.price_from},
          {"usd_per_accelerator_hour", b.per_hour.v * kSecondsPerHour},
          {"total_usd", b.total.v},
          {"rent_usd", b.rent.v},
          {"hardware_usd", b.hardware.v},
          {"network_usd", b.network.v},
          {"energy_usd", b.energy.v},
          {"space_usd", b.space.v},
          {"maintenance_usd", b.maintenance.v},
          {"people_usd", b.people.v}};
}

Json job_json(const JobFigures& j) {
  if (!j.fits) return {{"workload", j.name}, {"fits", false}};
  Json job{{"workload", j.name}, {"fits", true}, {"mfu", j.mfu}, {"days", j.days}};
  if (j.runs == 0) return job;
  job["simulated"] = {
      {"runs", j.runs},
      {"days", j.simulated_days},
      {"run", j.operations},
      {"goodput", {{"mean", j.goodput}, {"p5", j.goodput_low}, {"p95", j.goodput_high}}},
      {"useful_share", j.useful_share},
      {"interrupted_every_s",
       std::isfinite(j.interrupted_every.v) ? Json(j.interrupted_every.v) : Json(nullptr)},
      {"lost_to_failures", j.restart_share}};
  return job;
}

}  // namespace

std::string review_text(const Review& r, const ReviewInput& in, const Style& style,
                        const Stamp& stamp) {
  std::string out = head(in, r.node, style);
  out += limits_table(r.density, style);
  out += failures_table(r.failures, style);
  out += questions(r.answers, style);
  out += "\n";
  if (!style.quiet) {
    std::string legend = "m measured  s stated or catalog  c calculated  a assumed";
    if (!in.assumed->empty())
      legend += fmt::format(": {} settings (-v lists them)", in.assumed->size());
    out += wrap(legend, style.width) + "\n";
  }
  if (style.verbose) {
    for (const Assumption& a : *in.assumed) {
      out += wrap(fmt::format("  a  {} = {}: {}", a.path, a.value, a.why), style.width, 5) + "\n";
    }
  }
  if (!style.quiet) out += footer(stamp) + "\n\n";
  return trimmed_lines(out) + bold(wrap(r.verdict, style.width), style) + "\n";
}

std::string review_json(const Review& r, const ReviewInput& in, const Stamp& stamp) {
  Json doc = start_document("assay.review/1", stamp);
  doc["site"] = in.site->name;
  doc["cluster"] = in.cluster->name;
  doc["passes"] = r.passes;
  doc["verdict"] = r.verdict;
  doc["density"] = density_json(r.density);
  const FacilityTotals& y = r.year;
  doc["year"] = {{"it_kwh", y.it_kwh},
                 {"facility_kwh", y.facility_kwh},
                 {"energy_usd", y.energy_cost.v},
                 {"carbon_kg", y.carbon_kg},
                 {"water_l", y.water_l},
                 {"pue", y.pue},
                 {"highest_w", y.highest.v},
                 {"running", y.running},
                 {"clock", y.clock},
                 {"hottest_coolant_c", y.hottest_coolant_c}};
  doc["bill"] = bill_json(r.bill);
  Json failures = Json::array();
  for (const FailureCase& f : r.failures) {
    failures.push_back({{"what", f.what},
                        {"consequence", f.consequence},
                        {"lost", f.lost},
                        {"tolerated", f.tolerated}});
  }
  doc["failures"] = std::move(failures);
  Json answers = Json::array();
  for (const Answer& a : r.answers) {
    Json facts = Json::array();
    for (const Fact& f : a.facts)
      facts.push_back({{"text", f.text}, {"mark", std::string(1, f.mark)}});
    answers.push_back({{"id", a.id},
                       {"question", a.question},
                       {"verdict", verdict_name(a.verdict)},
                       {"facts", std::move(facts)},
                       {"missing", a.missing}});
  }
  doc["answers"] = std::move(answers);
  if (r.job) doc["job"] = job_json(*r.job);
  doc["assumed"] = assumed_json(*in.assumed);
  doc["description"] = {{"site", value_json(*in.site)}, {"cluster", value_json(*in.cluster)}};
  return print(doc);
}

}  // namespace assay
