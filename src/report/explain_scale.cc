// Figures of `assay scale` and `assay compare` that none of their plans holds: what one size or
// side is against another, what grew, what a changed setting is worth.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "report/explain_parts.h"

namespace assay {
namespace {

constexpr std::string_view kWithFailures = "_with_failures";

// ---- assay.scale/1

bool point_fits(const Json& point) {
  const Json& fits = at(point, {"fits"});
  return fits.is_boolean() && fits.get<bool>();
}

const Json* size_of(const Json& doc, const std::string& which) {
  const Json* found = nullptr;
  const bool kept = which.ends_with("-kept");
  const std::string size = kept ? which.substr(0, which.size() - 5) : which;
  for (const Json& p : at(doc, {kept ? "fixed" : "best"})) {
    if (!point_fits(p)) continue;
    if (size.empty() || fmt::format("{:.0f}", number(p, {"accelerators"})) == size) found = &p;
  }
  return found;
}

// The first size that fits of the list that holds `point`, and the one before it; null: none.
struct Neighbours {
  const Json* first = nullptr;
  const Json* before = nullptr;
};

Neighbours neighbours_of(const Json& list, const Json* point) {
  Neighbours n;
  for (const Json& q : list) {
    if (!point_fits(q)) continue;
    if (n.first == nullptr) n.first = &q;
    if (&q == point) break;
    n.before = &q;
  }
  return n;
}

// Tokens per second, of steps alone or over all the time of the run.
double speed_of(const Json& point, bool weeks) {
  const double steps = number(point, {"result", "tokens_per_s"});
  const double slowdown = number(point, {"over_weeks", "slowdown"});
  if (!weeks) return steps;
  return slowdown > 0 ? steps * number(point, {"over_weeks", "goodput"}) / slowdown : 0;
}

Derivation tokens_at(const Json& point, bool weeks) {
  return figure(fmt::format("at {:.0f} GPUs", number(point, {"accelerators"})),
                speed_of(point, weeks), "tokens/s",
                weeks ? "tokens per second x goodput / slowdown" : "",
                weeks ? weeks_mark(at(point, {"over_weeks"})) : 'c',
                weeks ? "docs/models/goodput.md" : "docs/models/step.md");
}

// `speedup`, `efficiency`, `doubling`, each with failures or without.
std::optional<DocumentFigure> relation_figure(const Json& list, const Json& point,
                                              const std::string& asked) {
  const bool weeks = asked.ends_with(kWithFailures);
  const std::string name = weeks ? asked.substr(0, asked.size() - kWithFailures.size()) : asked;
  const Neighbours near = neighbours_of(list, &point);
  const Json* base = name == "doubling" ? near.before : near.first;
  const double against = base == nullptr ? 0 : speed_of(*base, weeks);
  if (against <= 0 || (name != "speedup" && name != "efficiency" && name != "doubling"))
    return std::nullopt;
  const double ratio = speed_of(point, weeks) / against;
  const double growth = number(point, {"accelerators"}) / number(*base, {"accelerators"});
  Derivation d =
      name == "speedup"    ? figure(asked, ratio, "x", "tokens per second over the first size's")
      : name == "doubling" ? figure(asked, ratio, "x", "tokens per second over the size before")
                           : figure(asked, 100 * ratio / growth, "%",
                                    "speed-up / growth in accelerators; 100 % is ideal");
  d.source = weeks ? "docs/models/goodput.md" : "docs/models/step.md";
  d.inputs = {tokens_at(*base, weeks), tokens_at(point, weeks)};
  d.mark = d.inputs[1].mark;
  return DocumentFigure{std::move(d), ""};
}

const Json* account_in(const Json& point, const std::string& account) {
  for (const Json& a : at(point, {"ledger"})) {
    if (text_at(a, {"account"}) == account) return &a;
  }
  return nullptr;
}

double share_in(const Json& point, const std::string& account) {
  const Json* a = account_in(point, account);
  return a == nullptr ? 0 : 100 * number(*a, {"share"});
}

std::optional<DocumentFigure> binds_figure(const Json& point) {
  std::string largest;
  for (const Json& a : at(point, {"ledger"})) {
    const std::string account = text_at(a, {"account"});
    if (account != "useful" && share_in(point, account) > share_in(point, largest))
      largest = account;
  }
  if (largest.empty()) return std::nullopt;
  Derivation d = figure("binds", share_in(point, largest), "%",
                        largest + ": the largest account of the step beside useful work, of it",
                        'c', "docs/models/step.md");
  d.inputs = {figure(largest, number(*account_in(point, largest), {"seconds"}), "s",
                     fmt::format("`assay explain` of {}@{:.0f} has its equation", largest,
                                 number(point, {"accelerators"}))),
              figure("step time", number(point, {"result", "step_s"}), "s", "")};
  return DocumentFigure{std::move(d), ""};
}

std::optional<DocumentFigure> grew_figure(const Json& list, const Json& point) {
  const std::string account = text_at(point, {"binds", "account"});
  const Neighbours near = neighbours_of(list, &point);
  if (account.empty() || near.first == nullptr) return std::nullopt;
  Derivation d = figure("grew", 100 * number(point, {"binds", "growth"}), "points",
                        account +
                            ": the account whose share of the step grew most since the "
                            "first size that fits",
                        'c', "docs/models/step.md");
  for (const Json* q : {near.first, &point}) {
    d.inputs.push_back(figure(fmt::format("at {:.0f} GPUs", number(*q, {"accelerators"})),
                              share_in(*q, account), "%", "of the step"));
  }
  return DocumentFigure{std::move(d), ""};
}

// Where doubling stops paying; screens say it of the kept plan where there is one.
std::optional<DocumentFigure> break_even_figure(const Json& doc, const std::string& name) {
  const bool weeks = name.ends_with(kWithFailures);
  const Json& size = at(doc, {weeks ? "break_even_over_weeks" : "break_even"});
  const double pays = number(doc, {"doubling_pays"});
  if (!size.is_number()) {
    return DocumentFigure{
        figure(name, 0, "word", fmt::format("every doubling here gives {:g}x or more", pays)), ""};
  }
  Derivation d = figure(name, size.get<double>(), "GPUs",
                        fmt::format("the first size whose doubling gives less than {:g}x the "
                                    "tokens per second",
                                    pays),
                        'c', "docs/models/step.md");
  const bool kept = !weeks && !at(doc, {"fixed"}).empty();
  const Json* here = nullptr;
  const Json* next = nullptr;
  for (const Json& p : at(doc, {kept ? "fixed" : "best"})) {
    if (number(p, {"accelerators"}) == d.value) here = &p;
    if (number(p, {"accelerators"}) == 2 * d.value) next = &p;
  }
  if (here == nullptr || next == nullptr || speed_of(*here, weeks) <= 0) return std::nullopt;
  const double ratio = speed_of(*next, weeks) / speed_of(*here, weeks);
  d.inputs = {tokens_at(*here, weeks), tokens_at(*next, weeks),
              figure("the next doubling", ratio, "x", "the second over the first")};
  d.mark = d.inputs[0].mark;
  if (ratio > 0)
    d.inputs.push_back(figure("a token costs more by", 100 * (2 / ratio - 1), "%",
                              "2 / the next doubling, less 1"));
  return DocumentFigure{std::move(d), ""};
}

std::optional<DocumentFigure> best_over_kept(const Json& doc) {
  const Json &best = at(doc, {"best"}), &kept = at(doc, {"fixed"});
  if (!best.is_array() || !kept.is_array() || best.empty() || kept.empty()) return std::nullopt;
  if (!point_fits(best.back()) || !point_fits(kept.back())) return std::nullopt;
  Derivation d =
      figure("times_as_fast", speed_of(best.back(), false) / speed_of(kept.back(), false), "x",
             "tokens per second of the best plan over the kept one's, at the last size", 'c',
             "docs/models/step.md");
  d.inputs = {tokens_at(best.back(), false), tokens_at(kept.back(), false)};
  d.inputs[0].name += ", best", d.inputs[1].name += ", kept";
  return DocumentFigure{std::move(d), ""};
}

// ---- assay.compare/1

// A row of the table: where its value stands in a side.
struct ChangeRow {
  const char* name;
  JsonPath path;
  const char* unit;
  double by;
  bool difference;  // the change is told as one; else as a share of the first side's
};

const std::vector<ChangeRow>& change_rows() {
  static const std::vector<ChangeRow> rows{
      {"mfu", {"result", "mfu"}, "%", 100, true},
      {"step_time", {"result", "step_s"}, "s", 1, false},
      {"tokens_per_s", {"result", "tokens_per_s"}, "tokens/s", 1, false},
      {"days", {"run", "days"}, "days", 1, false},
      {"cost", {"run", "cost_usd"}, "$", 1, false},
      {"energy", {"run", "energy_kwh"}, "kWh", 1, false},
      {"memory", {"result", "memory_bytes", "reserved"}, "B", 1, true},
      {"goodput", {"over_weeks", "goodput"}, "%", 100, true},
      {"days_with_failures", {"over_weeks", "days"}, "days", 1, false},
      {"cost_with_failures", {"over_weeks", "cost_usd"}, "$", 1, false}};
  return rows;
}

// Dollars are as sure as their price; weeks as how they are operated.
char row_mark(const Json& side, const ChangeRow& row) {
  const bool dollars = row.unit == std::string_view("$");
  if (dollars && text_at(side, {"run", "marks", "cost_usd"}) == "a") return 'a';
  return row.path.front() == "over_weeks" ? weeks_mark(at(side, {"over_weeks"})) : 'c';
}

// What stands in the column `change`, of the row `change.cost`.
std::optional<DocumentFigure> row_change_figure(const Json& sides, const std::string& name) {
  const bool asked = name.starts_with("change.");
  if (!asked || !sides.is_array() || sides.size() != 2) return std::nullopt;
  for (const ChangeRow& row : change_rows()) {
    if (name.substr(7) != row.name) continue;
    const Json &first = at(sides.front(), row.path), &last = at(sides.back(), row.path);
    if (!first.is_number() || !last.is_number()) return std::nullopt;
    const double before = row.by * first.get<double>(), after = row.by * last.get<double>();
    if (!row.difference && before <= 0) return std::nullopt;
    const bool share = row.unit == std::string_view("%");
    Derivation d = row.difference ? figure(name, after - before, share ? "points" : row.unit,
                                           "the second side's less the first's")
                                  : figure(name, 100 * (after / before - 1), "%",
                                           "the second side's over the first's, less 1");
    d.source = "docs/models/range.md";
    d.inputs = {
        figure(text_at(sides.front(), {"name"}), before, row.unit, "",
               row_mark(sides.front(), row)),
        figure(text_at(sides.back(), {"name"}), after, row.unit, "", row_mark(sides.back(), row))};
    if (d.inputs[0].mark == 'a' || d.inputs[1].mark == 'a') d.mark = 'a';
    if (!row.difference)
      d.inputs.push_back(figure("difference", after - before, row.unit, "second - first"));
    return DocumentFigure{std::move(d), ""};
  }
  return std::nullopt;
}

std::optional<DocumentFigure> speedup_figure(const Json& doc) {
  const Json& sides = at(doc, {"sides"});
  if (!sides.is_array() || sides.size() < 2) return std::nullopt;
  Derivation d =
      figure("speedup", number(doc, {"speedup"}), "x",
             "tokens per second of the last side over the first's", 'c', "docs/models/range.md");
  for (const Json* side : {&sides.front(), &sides.back()}) {
    d.inputs.push_back(figure(text_at(*side, {"name"}), number(*side, {"result", "tokens_per_s"}),
                              "tokens/s", ""));
  }
  const Json& range = at(doc, {"speedup_range"});
  const bool known =
      range.is_array() && range.size() == 2 && range[0].is_number() && range[1].is_number();
  if (!known) return DocumentFigure{std::move(d), ""};
  d.low = range[0].get<double>(), d.high = range[1].get<double>();
  return DocumentFigure{std::move(d), fmt::format("({:.2f}-{:.2f})", d.low, d.high)};
}

Derivation interaction_figure(const Json& interaction) {
  return figure("interaction", number(interaction, {"step_s"}), "s",
                "the whole difference less the gains of all settings", 'c',
                "docs/internals/life-of-a-plan.md");
}

void add_settings(const Json& changes, std::vector<std::string>& names) {
  for (const Json& c : changes) {
    names.push_back(text_at(c, {"setting"}));
    for (const Json& w : at(c, {"with"})) names.push_back(text_at(w, {"setting"}));
  }
}

}  // namespace

std::optional<DocumentFigure> change_figure(const Json& changes, const std::string& setting) {
  for (const Json& c : changes) {
    const auto values = [](const Json& s) {
      return fmt::format("{} -> {}", text_at(s, {"before"}), text_at(s, {"after"}));
    };
    std::string together;
    bool asked = text_at(c, {"setting"}) == setting;
    for (const Json& w : at(c, {"with"})) {
      asked |= text_at(w, {"setting"}) == setting;
      together += fmt::format("; together with {} {}", text_at(w, {"setting"}), values(w));
    }
    if (!asked) continue;
    if (!together.empty()) together += ", as one without the other does not fit in memory";
    Derivation d = figure(text_at(c, {"setting"}), number(c, {"step_s"}), "s",
                          fmt::format("{}: the mean of switching it first (all else as before) and "
                                      "last (all else as after){}",
                                      values(c), together),
                          'c', "docs/internals/life-of-a-plan.md");
    if (at(c, {"step_s"}).is_null()) d.equation += "; it cannot be switched alone";
    const auto part = [&](const char* key, const char* name, const char* among) {
      if (!at(c, {key}).is_null()) d.inputs.push_back(figure(name, number(c, {key}), "s", among));
    };
    part("first_s", "switched first", "all else as before");
    part("last_s", "switched last", "all else as after");
    d.inputs.push_back(figure("MFU", 100 * number(c, {"mfu"}), "points", "by the same switching"));
    return DocumentFigure{std::move(d), ""};
  }
  return std::nullopt;
}

std::optional<DocumentFigure> scale_figure(const Json& doc, const std::string& name,
                                           const std::string& which) {
  if (name.starts_with("break_even")) return break_even_figure(doc, name);
  if (name == "times_as_fast") return best_over_kept(doc);
  if (name == "interaction" && !at(doc, {"wrong_choice"}).empty())
    return DocumentFigure{interaction_figure(at(doc, {"wrong_choice_interaction"})), ""};
  if (auto change = change_figure(at(doc, {"wrong_choice"}), name)) return change;
  const Json* p = size_of(doc, which);
  if (p == nullptr) return std::nullopt;
  // The screen's days and dollars are those over weeks, spares included.
  const std::string over_weeks =
      name == "days" || name == "cost" ? name + std::string(kWithFailures) : name;
  if (auto weeks = outlook_figure(at(*p, {"over_weeks"}), *p, over_weeks)) return weeks;
  const Json& list = at(doc, {which.ends_with("-kept") ? "fixed" : "best"});
  if (name == "binds") return binds_figure(*p);
  if (name == "grew") return grew_figure(list, *p);
  if (name != "usd_per_million_tokens") return relation_figure(list, *p, name);
  const bool stated = text_at(*p, {"run", "marks", "price_usd_per_gpu_hour"}) == "s";
  Derivation d =
      figure(name, number(*p, {name}), "$", "price x accelerators / tokens per second x 1e6",
             stated ? 'c' : 'a', "docs/models/economics.md");
  const Json& known = at(*p, {"run", "price_usd_per_gpu_hour"});  // older documents hold none
  const double price = known.is_number()
                           ? known.get<double>()
                           : number(doc, {"description", "cluster", "price"}) * kSecondsPerHour;
  d.inputs = {figure("price", price, "$/h", "", stated ? 's' : 'a', "cluster.price"),
              figure("accelerators", number(*p, {"accelerators"}), "", "", 's'),
              tokens_at(*p, false)};
  return DocumentFigure{std::move(d), ""};
}

std::vector<std::string> scale_figures(const Json& doc) {
  std::vector<std::string> names{"speedup", "efficiency", "doubling",
                                 "binds",   "grew",       "usd_per_million_tokens",
                                 "days",    "cost",       "break_even"};
  names.insert(names.end(), outlook_figures().begin(), outlook_figures().end());
  for (const char* name : {"speedup", "efficiency", "doubling", "break_even"})
    names.push_back(name + std::string(kWithFailures));
  names.insert(names.end(), {"times_as_fast", "interaction"});
  add_settings(at(doc, {"wrong_choice"}), names);
  std::erase_if(names, [&](const std::string& name) { return !scale_figure(doc, name, ""); });
  return names;
}

std::optional<DocumentFigure> compare_figure(const Json& doc, const std::string& name,
                                             const Json* side) {
  if (name == "speedup") return speedup_figure(doc);
  if (auto change = row_change_figure(at(doc, {"sides"}), name)) return change;
  if (auto change = change_figure(at(doc, {"changes"}), name)) return change;
  if (name == "interaction" && !at(doc, {"changes"}).empty())
    return DocumentFigure{interaction_figure(at(doc, {name})), ""};
  if (side == nullptr) return std::nullopt;
  return outlook_figure(at(*side, {"over_weeks"}), *side, name);
}

std::vector<std::string> compare_figures(const Json& doc) {
  std::vector<std::string> names{"speedup", "interaction"};
  add_settings(at(doc, {"changes"}), names);
  if (at(doc, {"sides"}).size() == 2) {
    for (const ChangeRow& row : change_rows()) names.push_back(fmt::format("change.{}", row.name));
  }
  names.insert(names.end(), outlook_figures().begin(), outlook_figures().end());
  const Json* side = at(doc, {"sides"}).empty() ? nullptr : &at(doc, {"sides"}).front();
  std::erase_if(names, [&](const std::string& name) { return !compare_figure(doc, name, side); });
  return names;
}

}  // namespace assay
