#include "report/offers_report.h"

#include <algorithm>

#include <fmt/format.h>

#include "plan/words.h"
#include "report/result_json.h"
#include "report/simulate_json.h"

namespace assay {
namespace {

constexpr double kOfferLineLeast = 0.002;  // of what was paid, on any side

using Rows = std::vector<std::vector<std::string>>;

double share_of(const SimulateResult& r, Account a) {
  return r.many.paid.mean > 0 ? r.many.mean[a].v / r.many.paid.mean : 0;
}

bool has_target(const SimulateResult& r) { return r.spec.spec.target_tokens > 0; }

Rows figure_rows(const OffersResult& o) {
  Rows rows{{""}};
  const auto row = [&](const std::string& name, auto&& of) {
    std::vector<std::string> cells{name};
    for (const OfferSide& s : o.sides) cells.push_back(of(s));
    rows.push_back(std::move(cells));
  };
  for (const OfferSide& s : o.sides) rows[0].push_back(s.name);
  const auto figures = [&o](const OfferSide& s) { return offer_figures(s.run, o.deadline_days); };
  row("accelerators", [](const OfferSide& s) {
    return count(s.run.spec.spec.gpus) + " " +
           s.run.plan.description.setting.cluster.accelerator.name;
  });
  row("site", [](const OfferSide& s) { return s.run.site_name.empty() ? "-" : s.run.site_name; });
  row("step time", [](const OfferSide& s) { return seconds(s.run.plan.prediction.step.v); });
  row("MFU of the step", [](const OfferSide& s) { return percent(s.run.plan.prediction.mfu); });
  row("goodput", [](const OfferSide& s) {
    return fmt::format("{:.1f} % ({:.1f}-{:.1f})", 100 * s.run.many.goodput.mean,
                       100 * s.run.many.goodput.p5, 100 * s.run.many.goodput.p95);
  });
  row("days", [&](const OfferSide& s) {
    const OfferFigures f = figures(s);
    if (f.done <= 0) return fmt::format("not done in {}", significant(f.days.mean));
    // Runs that are not done count as long as they were waited for.
    return fmt::format("{}{} ({}-{})", f.done < 1 ? ">= " : "", significant(f.days.mean),
                       significant(f.days.p5), significant(f.days.p95));
  });
  const bool unfinished = std::any_of(o.sides.begin(), o.sides.end(), [&](const OfferSide& s) {
    return !has_target(s.run) || figures(s).done < 1;
  });
  if (unfinished) row("tokens", [&](const OfferSide& s) { return scaled(figures(s).tokens.mean); });
  if (o.deadline_days > 0) {
    row(fmt::format("later than {} days", significant(o.deadline_days)),
        [&](const OfferSide& s) { return percent(figures(s).missed); });
  }
  row("interruptions",
      [](const OfferSide& s) { return significant(s.run.many.interruptions.mean); });
  row("cost", [&](const OfferSide& s) {
    const double usd = figures(s).cost_usd;
    return usd > 0 ? dollars(usd) : std::string("no price");
  });
  row("per useful exaFLOP", [&](const OfferSide& s) {
    const double usd = figures(s).usd_per_useful_exaflop;
    return usd > 0 ? dollars(usd) : std::string("-");
  });
  row("energy", [&](const OfferSide& s) { return energy(figures(s).kwh); });
  row("CO2 and water", [&](const OfferSide& s) {
    const OfferFigures f = figures(s);
    if (f.carbon_kg <= 0) return std::string("not known");
    return fmt::format("{} t, {} m3", significant(f.carbon_kg / 1000),
                       significant(f.water_l / 1000));
  });
  return rows;
}

Rows loss_rows(const OffersResult& o) {
  std::vector<std::pair<double, Account>> order;
  for (int i = 0; i < kAccounts; ++i) {
    const Account a = static_cast<Account>(i);
    double most = 0;
    for (const OfferSide& s : o.sides) most = std::max(most, share_of(s.run, a));
    if (most > kOfferLineLeast) order.emplace_back(most, a);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  Rows rows{{"of what is paid"}};
  for (const OfferSide& s : o.sides) rows[0].push_back(s.name);
  for (const auto& [most, account] : order) {
    std::vector<std::string> cells{account_name(account)};
    for (const OfferSide& s : o.sides)
      cells.push_back(fmt::format("{:.1f} %", 100 * share_of(s.run, account)));
    rows.push_back(std::move(cells));
  }
  return rows;
}

// Who gets further where none is done, or none was asked to be.
std::string further(const OffersResult& o) {
  const auto tokens = [](const OfferSide& s) { return s.run.many.tokens; };
  const auto by = [&](const OfferSide& a, const OfferSide& b) {
    return tokens(a).mean < tokens(b).mean;
  };
  const auto [least, most] = std::minmax_element(o.sides.begin(), o.sides.end(), by);
  const std::string both =
      fmt::format("{} against {}", scaled(tokens(*most).mean), scaled(tokens(*least).mean));
  std::string text =
      has_target(o.sides.front().run)
          ? fmt::format("None is done in {} days: ",
                        significant(o.sides.front().run.many.period.mean / kSecondsPerDay))
          : "";
  if (tokens(*most).p5 > tokens(*least).p95)
    return text + fmt::format("{} gets further ({} tokens)", most->name, both);
  return text +
         fmt::format("{} significant difference in tokens ({})", text.empty() ? "No" : "no", both);
}

std::string sooner_of(const OffersResult& o) {
  const auto figures = [&o](const OfferSide& s) { return offer_figures(s.run, o.deadline_days); };
  const bool any_done = std::any_of(o.sides.begin(), o.sides.end(), [&](const OfferSide& s) {
    return has_target(s.run) && figures(s).done > 0;
  });
  if (!any_done) return further(o);
  const auto sooner =
      std::min_element(o.sides.begin(), o.sides.end(), [&](const OfferSide& a, const OfferSide& b) {
        return figures(a).days.mean < figures(b).days.mean;
      });
  const OfferSide& other = sooner == o.sides.begin() ? o.sides.back() : o.sides.front();
  const OfferFigures best = figures(*sooner), worst = figures(other);
  if (worst.done <= 0) {
    return fmt::format("{} is done in {} days; {} is not done in {}", sooner->name,
                       significant(best.days.mean), other.name, significant(worst.days.mean));
  }
  const bool apart = best.days.p95 < worst.days.p5;
  return apart ? fmt::format("{} is done {} days sooner than {} ({} against {})", sooner->name,
                             significant(worst.days.mean - best.days.mean), other.name,
                             significant(best.days.mean), significant(worst.days.mean))
               : fmt::format("No significant difference in days ({} against {})",
                             significant(best.days.mean), significant(worst.days.mean));
}

std::string verdict(const OffersResult& o) {
  if (o.partial) return "Interrupted: nothing is compared.";
  std::string text = sooner_of(o);
  const auto usd = [&o](const OfferSide& s) {
    return offer_figures(s.run, o.deadline_days).usd_per_useful_exaflop;
  };
  const auto by = [&](const OfferSide& a, const OfferSide& b) { return usd(a) < usd(b); };
  const auto [cheaper, dearer] = std::minmax_element(o.sides.begin(), o.sides.end(), by);
  const double cost = usd(*cheaper);
  if (cost > 0 && cost == usd(*dearer)) {
    text += fmt::format("; each costs {} per useful exaFLOP", dollars(cost));
  } else if (cost > 0)
    text += fmt::format("; {} costs least per useful exaFLOP, {}", cheaper->name, dollars(cost));
  return text + ".";
}

Json side_json(const OfferSide& s, double deadline) {
  const OfferFigures f = offer_figures(s.run, deadline);
  Json ledger = Json::object();
  for (int i = 0; i < kAccounts; ++i) {
    const double share = share_of(s.run, static_cast<Account>(i));
    if (share > 0) ledger[std::string(info(static_cast<Account>(i)).key)] = share;
  }
  return {{"name", s.name},
          {"site", s.run.site_name},
          {"accelerators", s.run.spec.spec.gpus},
          {"accelerator", s.run.plan.description.setting.cluster.accelerator.name},
          {"step_s", s.run.plan.prediction.step.v},
          {"mfu", s.run.plan.prediction.mfu},
          {"goodput", s.run.many.goodput.mean},
          {"days", {{"mean", f.days.mean}, {"p5", f.days.p5}, {"p95", f.days.p95}}},
          {"done", f.done},
          {"tokens", f.tokens.mean},
          {"missed_deadline", f.missed},
          {"cost_usd", f.cost_usd},
          {"usd_per_useful_exaflop", f.usd_per_useful_exaflop},
          {"kwh", f.kwh},
          {"carbon_kg", f.carbon_kg},
          {"water_l", f.water_l},
          {"interruptions", s.run.many.interruptions.mean},
          {"shares", ledger},
          {"simulation", simulate_document(s.run, Json::object())}};
}

}  // namespace

OfferFigures offer_figures(const SimulateResult& r, double deadline_days) {
  OfferFigures f;
  const ManyResult& m = r.many;
  f.days = {m.period.p5 / kSecondsPerDay, m.period.p50 / kSecondsPerDay,
            m.period.p95 / kSecondsPerDay, m.period.mean / kSecondsPerDay};
  f.tokens = m.tokens;
  if (has_target(r)) f.done = m.finished;
  const double hours = m.paid.mean / kSecondsPerHour;
  f.cost_usd = hours * r.money.usd_per_gpu_hour;
  const RunEnergy drawn = run_energy(r);
  f.kwh = drawn.kwh;
  f.carbon_kg = drawn.carbon_kg;
  f.water_l = drawn.water_l;
  const double per_step = r.spec.spec.step.tokens;
  const double steps = per_step > 0 ? m.tokens.mean / per_step : 0;
  const double exaflop = r.plan.prediction.model_flops.v * steps / 1e18;
  if (exaflop > 0) f.usd_per_useful_exaflop = f.cost_usd / exaflop;
  if (deadline_days <= 0) return f;
  f.missed = m.later_than(Seconds(deadline_days * kSecondsPerDay));
  return f;
}

std::string offers_text(const OffersResult& o, const Style& style, const Stamp& stamp) {
  if (o.sides.empty()) return "";
  const SimulateResult& first = o.sides.front().run;
  std::string out = fmt::format("Compare  {} offers, {} runs each, the same seeds", o.sides.size(),
                                count(first.many.done));
  if (o.partial)
    out = fmt::format("Compare  PARTIAL, interrupted: {} of {} runs of {}", count(first.many.done),
                      count(first.many.requested), o.sides.front().name);
  if (first.spec.spec.target_tokens > 0)
    out += fmt::format("; until {} tokens are done", scaled(first.spec.spec.target_tokens));
  out += "\n\n" + table(figure_rows(o)) + "\nWhat each loses where\n" + table(loss_rows(o));
  if (!style.quiet) out += "\n" + footer(stamp) + "\n";
  return trimmed_lines(out + "\n" + bold(wrap(verdict(o), style.width), style) + "\n");
}

std::string offers_json(const OffersResult& o, const Stamp& stamp) {
  Json doc = start_document("assay.offers/1", stamp);
  doc["sides"] = Json::array();
  for (const OfferSide& s : o.sides) doc["sides"].push_back(side_json(s, o.deadline_days));
  doc["deadline_days"] = o.deadline_days;
  doc["partial"] = o.partial;
  doc["verdict"] = verdict(o);
  return print(doc);
}

}  // namespace assay
