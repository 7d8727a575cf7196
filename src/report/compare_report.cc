#include "report/compare_report.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "report/plan_report.h"
#include "report/result_json.h"

namespace assay {
namespace {

// Accounts of a step drawn as one bar, a letter each. Several accounts may share a letter.
struct Stripe {
  char letter;
  const char* name;
  std::vector<Account> accounts;
};

const std::vector<Stripe>& stripes() {
  static const std::vector<Stripe> all{
      {'#', "useful", {Account::kUseful}},
      {'k',
       "kernels",
       {Account::kMatmul, Account::kAttention, Account::kMemoryBound, Account::kOptimizer}},
      {'r', "recompute", {Account::kRecompute}},
      {'c', "clocks", {Account::kPowerCap, Account::kThermal, Account::kFacilityCap}},
      {'t',
       "tensor, context, expert traffic",
       {Account::kCommTensor, Account::kCommContext, Account::kCommExpert}},
      {'d', "parameters, gradients", {Account::kCommParam, Account::kCommGrad}},
      {'p', "pipeline", {Account::kCommPipeline, Account::kBubble, Account::kStageImbalance}},
      {'w', "waiting", {Account::kExpertImbalance, Account::kStraggler}},
      {'h',
       "host, data",
       {Account::kLaunch, Account::kSync, Account::kAllocator, Account::kGarbage, Account::kStorage,
        Account::kDecode, Account::kHostCopy}},
  };
  return all;
}

double stripe_seconds(const Stripe& s, const Ledger& ledger) {
  double sum = 0;
  for (Account a : s.accounts) sum += ledger[a].v;
  return sum;
}

std::string striped_bar(const Ledger& ledger, double seconds_per_column) {
  std::string text;
  double until = 0;
  for (const Stripe& s : stripes()) {
    until += stripe_seconds(s, ledger);
    const size_t end = static_cast<size_t>(std::lround(until / seconds_per_column));
    while (text.size() < end) text += s.letter;
  }
  return text;
}

// `# useful  k kernels`, of what was drawn; broken between items only.
std::string stripe_legend(const std::string& drawn, size_t width, size_t indent) {
  std::vector<std::string> used;
  for (const Stripe& s : stripes()) {
    if (drawn.find(s.letter) != std::string::npos)
      used.push_back(fmt::format("{} {}", s.letter, s.name));
  }
  std::string out(indent, ' ');
  size_t column = indent;
  for (const std::string& item : used) {
    if (column > indent && column + item.size() > width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    }
    out += item + "  ";
    column += item.size() + 2;
  }
  return trimmed_lines(out);
}

// The ledger of the time that a side needs for the tokens of the first side's step.
Ledger same_tokens(const Comparison& c, const Side& s) {
  Ledger ledger = s.prediction.ledger;
  const double step = time_per_token(s).value / time_per_token(c.sides.front()).value *
                      c.sides.front().prediction.step.v;
  ledger *= step / s.prediction.step.v;
  return ledger;
}

// Two that can be subtracted; else what fits stands side by side.
bool is_pair(const Comparison& c) {
  return c.sides.size() == 2 && std::none_of(c.sides.begin(), c.sides.end(), closest_miss);
}

std::string bars(const Comparison& c, const Style& style) {
  double longest = 0;
  for (const Side& s : c.sides) {
    if (is_pair(c) || fits(s)) longest = std::max(longest, same_tokens(c, s).paid().v);
  }
  if (longest <= 0) return "";  // none of several can run
  const size_t room = static_cast<size_t>(std::max(style.width - 34, 30));
  const double per_column = longest / static_cast<double>(room);
  std::string out = fmt::format("  the time for one step's tokens of {}\n", c.sides.front().name);
  std::string drawn;
  for (const Side& s : c.sides) {
    if (!is_pair(c) && !fits(s)) continue;
    const Ledger ledger = same_tokens(c, s);
    const std::string stripe = striped_bar(ledger, per_column);
    drawn += stripe;
    out += "  " + left(s.name.substr(0, 18), 20) + left(stripe, room) +
           right(seconds(ledger.paid().v), 10) + "\n";
  }
  return out + stripe_legend(drawn, static_cast<size_t>(style.width), 22) + "\n";
}

std::string what_is_same(const Comparison& c) {
  const Setting& a = c.sides.front().setting;
  const Setting& b = c.sides.back().setting;
  const bool other =
      std::any_of(c.difference.changes.begin(), c.difference.changes.end(),
                  [](const Change& change) { return change.path.starts_with("workload.model"); });
  const int64_t before = accelerators_used(a), after = accelerators_used(b);
  std::string text = other ? "other model" : "same model";
  if (a.cluster.accelerator.name != b.cluster.accelerator.name) {
    text += ", other accelerators";
  } else {
    text += before == after ? fmt::format(", same {} ", count(before))
                            : fmt::format(", {} and {} ", count(before), count(after));
    text += a.cluster.accelerator.name;
  }
  size_t changed = c.difference.changes.size();
  for (const Change& change : c.difference.changes) changed += change.with.size();
  return text +
         fmt::format("; {} {}", changed, changed == 1 ? "setting differs" : "settings differ");
}

std::string changes_text(const Comparison& c, const Style& style) {
  if (c.difference.changes.empty()) return "\n";
  std::string out =
      "Gains: mean of switching a setting first and last; what is left is interaction\n";
  const Side& first = c.sides.front();
  const double tokens = tokens_per_step(first.setting.workload);
  if (tokens != tokens_per_step(c.sides.back().setting.workload)) {
    out += wrap(fmt::format("Seconds are for one step's tokens of {} ({}), as the batches differ",
                            first.name, scaled(tokens)),
                style.width) +
           "\n";
  }
  out += "\n";
  const size_t value_columns = static_cast<size_t>(std::max(style.width - 62, 18));
  const auto named = [value_columns](const char* sign, const Switched& s) {
    const std::string before = s.before.empty() ? "-" : s.before;
    const std::string after = s.after.empty() ? "-" : s.after;
    std::string values = before == after ? before : before + " -> " + after;
    if (values.size() > value_columns) values = values.substr(0, value_columns - 2) + "..";
    return fmt::format("  {} {} {}", sign, left(s.path, 28), left(values, value_columns));
  };
  for (const Change& change : c.difference.changes) {
    out += named("~", change);
    const bool idle = change.step_s && std::abs(*change.step_s) < 1e-9;
    out += idle         ? right("no effect on time", 23)
           : change.mfu ? right(seconds(*change.step_s), 11) +
                              right("MFU " + points(*change.mfu), 12) + "  " + kPredicted
                        : right("only with the others", 23);
    out += "\n";
    for (const Switched& w : change.with) out += trimmed_lines(named("+", w)) + "\n";
  }
  out += "    " + left("interaction", 29 + value_columns);
  out += c.difference.interaction_step_s == 0
             ? right("none", 23)
             : right(seconds(c.difference.interaction_step_s), 11) +
                   right("MFU " + points(c.difference.interaction_mfu), 12) + "  " + kPredicted;
  return out + "\n" + together_note(c.difference) + "\n";
}

bool all_fit(const Comparison& c) { return std::all_of(c.sides.begin(), c.sides.end(), fits); }

// `(1.02-1.86)`, with the decimals that differ() decides by.
std::string ratio_range(const Interval& r) { return fmt::format("({:.2f}-{:.2f})", r.low, r.high); }

// Nothing differs, and neither do the predictions: then a ratio has no error.
bool identical(const Comparison& c) {
  if (!is_pair(c) || !c.difference.changes.empty()) return false;
  const Side &a = c.sides.front(), &b = c.sides.back();
  return a.prediction.step == b.prediction.step &&
         a.prediction.tokens_per_s == b.prediction.tokens_per_s &&
         a.prediction.memory.reserved == b.prediction.memory.reserved &&
         a.run.time_s.value == b.run.time_s.value && a.run.cost_usd.value == b.run.cost_usd.value &&
         a.run.energy_kwh.value == b.run.energy_kwh.value;
}

// `-19 %`; `78 times` where a percentage would have four digits.
std::string changed_by(double before, double after) {
  constexpr double kMany = 10;
  const double ratio = after / before;
  return ratio > kMany && std::isfinite(ratio) ? significant(ratio, ratio < 100 ? 2 : 3) + " times"
                                               : signed_percent(ratio - 1);
}

std::string speed_text(const Comparison& c) {
  if (identical(c)) return "identical";
  if (!c.significant) return "no significant difference";
  const Interval& s = c.speedup;
  const bool faster = s.value >= 1;
  const Interval ratio = faster ? s : Interval{1 / s.value, 1 / s.high, 1 / s.low};
  return fmt::format("{:.2f} times {} {}", ratio.value, faster ? "faster" : "slower",
                     ratio_range(ratio));
}

// Rows of what weeks make of two plans; `run` and `cost` beside them are of the steps alone.
struct WeeksRow {
  std::string name, before, after, change;
};
std::vector<WeeksRow> weeks_rows(const std::vector<PlanOutlook>& outlook) {
  if (outlook.size() < 2) return {};
  const std::optional<Outlook>&a = outlook.front().best, &b = outlook.back().best;
  const auto shown = [](const std::optional<Outlook>& o, std::string (*text)(const Outlook&)) {
    return o ? text(*o) : std::string("not estimated");
  };
  const auto change = [](double before, double after) {
    return before > 0 && std::isfinite(after / before) ? changed_by(before, after) : std::string();
  };
  const auto goodput = [](const Outlook& o) { return percent(o.expected.goodput); };
  const auto days = [](const Outlook& o) {
    return o.ends() ? duration(o.expected.time.v) : std::string("does not end");
  };
  const auto cost = [](const Outlook& o) {
    return o.ends() && o.usd > 0 ? dollars(o.usd) : std::string("-");
  };
  if (!a && !b) return {};
  const bool both = a && b;
  const bool end = both && a->ends() && b->ends();
  std::vector<WeeksRow> rows;
  rows.push_back({"goodput", shown(a, goodput), shown(b, goodput),
                  both ? points(b->expected.goodput - a->expected.goodput) + " points" : ""});
  rows.push_back({"run with failures", shown(a, days), shown(b, days),
                  end ? change(a->expected.time.v, b->expected.time.v) : ""});
  if ((a && a->usd > 0) || (b && b->usd > 0)) {
    rows.push_back(
        {"cost with failures", shown(a, cost), shown(b, cost),
         end && a->usd > 0 && b->usd > 0
             ? fmt::format("{} ({})", signed_dollars(b->usd - a->usd), change(a->usd, b->usd))
             : ""});
  }
  return rows;
}

// Calibrated where the operations of every side were stated, as `assay plan` has it.
char weeks_mark_of(const std::vector<PlanOutlook>& outlook) {
  const bool stated =
      std::all_of(outlook.begin(), outlook.end(), [](const PlanOutlook& o) { return o.stated; });
  return stated ? kPredicted : 'a';
}

// Runs of other lengths cost other sums: then prices compare by the token.
bool same_tokens_trained(const Comparison& c) {
  const double first = c.sides.front().setting.workload.tokens;
  return std::all_of(c.sides.begin(), c.sides.end(), [first](const Side& s) {
    return std::abs(s.setting.workload.tokens / first - 1) < 1e-3;
  });
}

double dollars_per_token(const Side& s) { return s.run.cost_usd.value / s.setting.workload.tokens; }

std::string pair_table(const Comparison& c, const Style& style,
                       const std::vector<PlanOutlook>& outlook) {
  const Side& a = c.sides.front();
  const Side& b = c.sides.back();
  const bool priced = a.run.price_stated && b.run.price_stated;
  const size_t columns = style.width >= 96 ? 20 : 14;
  const auto row = [columns](const std::string& name, char mark, const std::string& before,
                             const std::string& after, const std::string& change) {
    return "  " + left(name, 19) + mark + "  " + left(before.substr(0, columns - 1), columns) +
           left(after.substr(0, columns - 1), columns) + change + "\n";
  };
  const auto change = changed_by;
  std::string out = row("", ' ', a.name, b.name, "change");
  out += row("MFU", kPredicted, percent(a.prediction.mfu), percent(b.prediction.mfu),
             points(b.prediction.mfu - a.prediction.mfu) + " points");
  out += row("step time", kPredicted, seconds(a.prediction.step.v), seconds(b.prediction.step.v),
             change(a.prediction.step.v, b.prediction.step.v));
  std::string faster = change(a.prediction.tokens_per_s, b.prediction.tokens_per_s);
  const std::string said = speed_text(c);
  const size_t room = static_cast<size_t>(style.width) - 24 - 2 * columns;
  if (all_fit(c) && faster.ends_with("times") && c.significant) {
    faster = said;  // it says the same with its range
  } else if (all_fit(c) && faster.size() + said.size() + 2 <= room) {
    faster += "  " + said;
  }
  out += row("tokens per s", kPredicted, scaled(a.prediction.tokens_per_s),
             scaled(b.prediction.tokens_per_s), faster);
  const bool same_run = same_tokens_trained(c);
  const double trained[] = {a.setting.workload.tokens, b.setting.workload.tokens};
  if (!same_run)
    out += row("trained on", ' ', scaled(trained[0]), scaled(trained[1]),
               change(trained[0], trained[1]));
  out += row("run", kPredicted, duration(a.run.time_s.value), duration(b.run.time_s.value),
             change(a.run.time_s.value, b.run.time_s.value));
  if (a.run.price_known && b.run.price_known) {
    out += row("cost", priced ? kPredicted : 'a', dollars(a.run.cost_usd.value),
               dollars(b.run.cost_usd.value),
               fmt::format("{} ({})", signed_dollars(b.run.cost_usd.value - a.run.cost_usd.value),
                           change(a.run.cost_usd.value, b.run.cost_usd.value)));
  }
  if (!same_run && a.run.price_known && b.run.price_known) {
    constexpr double kBillion = 1e9;
    out += row("cost per B tokens", priced ? kPredicted : 'a',
               dollars(dollars_per_token(a) * kBillion), dollars(dollars_per_token(b) * kBillion),
               change(dollars_per_token(a), dollars_per_token(b)));
  }
  out += row("energy", kPredicted, energy(a.run.energy_kwh.value), energy(b.run.energy_kwh.value),
             change(a.run.energy_kwh.value, b.run.energy_kwh.value));
  const double more = (b.prediction.memory.reserved - a.prediction.memory.reserved).v;
  out += row("memory, worst rank", kPredicted, gibibytes(a.prediction.memory.reserved.v),
             gibibytes(b.prediction.memory.reserved.v),
             fmt::format("{}{} (of {})", more < 0 ? "" : "+", gibibytes(more),
                         gibibytes(b.prediction.memory.capacity.v)));
  const char weeks = weeks_mark_of(outlook);
  for (const WeeksRow& w : weeks_rows(outlook)) {
    const bool dollar_row = w.name.starts_with("cost");
    out += row(w.name, dollar_row && !priced ? 'a' : weeks, w.before, w.after, w.change);
  }
  return trimmed_lines(out) + "\n";
}

std::string fit_warnings(const Comparison& c, const Style& style) {
  std::string out;
  for (const Side& s : c.sides) {
    const MemoryUse& m = s.prediction.memory;
    if (!fits(s)) {
      out += warning(fmt::format("{} does not fit: {} of {}", s.name, gibibytes(m.reserved.v),
                                 gibibytes(m.capacity.v)),
                     style) +
             "\n";
    }
    if (s.prediction.extrapolated) {
      out += warning(s.name + " lies outside what was ever measured", style) + "\n";
    }
  }
  return out.empty() ? out : out + "\n";
}

// Why no sum is called the smaller one.
std::string other_lengths(const Comparison& c) {
  const Side& a = c.sides.front();
  const Side& b = c.sides.back();
  std::string text =
      fmt::format("They train on {} and {} tokens, so days and dollars are of different work",
                  scaled(a.setting.workload.tokens), scaled(b.setting.workload.tokens));
  if (!is_pair(c))
    text = "They train on different numbers of tokens, so days and dollars are of different work";
  if (is_pair(c) && a.run.price_known && b.run.price_known)
    text += fmt::format("; a token's price changes by {}",
                        changed_by(dollars_per_token(a), dollars_per_token(b)));
  return text + ".";
}

std::string verdict(const Comparison& c) {
  const Side& a = c.sides.front();
  const Side& b = c.sides.back();
  if (identical(c))
    return fmt::format("{} and {} are identical: the same settings, the same plan.", a.name,
                       b.name);
  if (!c.significant) {
    std::string text =
        fmt::format("No significant difference in speed: {} is {:.2f} times as fast {} as {}",
                    b.name, c.speedup.value, ratio_range(c.speedup), a.name);
    const double more = b.run.cost_usd.value - a.run.cost_usd.value;
    if (!same_tokens_trained(c)) return text + ". " + other_lengths(c);
    if (a.run.price_known && b.run.price_known && std::abs(more) > 0.01 * a.run.cost_usd.value) {
      text += fmt::format("; as predicted it costs {} {} ({})", dollars(std::abs(more)),
                          more < 0 ? "less" : "more",
                          changed_by(a.run.cost_usd.value, b.run.cost_usd.value));
    }
    return text + ".";
  }
  std::string text = fmt::format("{} is {} than {}", b.name, speed_text(c), a.name);
  if (!same_tokens_trained(c)) return text + ". " + other_lengths(c);
  if (a.run.price_known && b.run.price_known) {
    const double saved = a.run.cost_usd.value - b.run.cost_usd.value;
    text += fmt::format(" and {} {}", dollars(std::abs(saved)), saved >= 0 ? "cheaper" : "dearer");
  }
  return text + ".";
}

// Of a side: goodput and the run with failures.
std::vector<std::string> weeks_cells(const std::vector<PlanOutlook>& outlook, size_t side) {
  if (side >= outlook.size() || !outlook[side].best) return {"-", "-"};
  const Outlook& o = *outlook[side].best;
  return {percent(o.expected.goodput), o.ends() ? duration(o.expected.time.v) : "no end"};
}

std::string many_table(const Comparison& c, const Style& style,
                       const std::vector<PlanOutlook>& outlook) {
  std::vector<std::vector<std::string>> rows{{"", "GPUs", "MFU", "step", "tokens/s", "run",
                                              "goodput", "over weeks", "cost", "energy", "memory"}};
  const bool priced =
      std::all_of(c.sides.begin(), c.sides.end(), [](const Side& s) { return s.run.price_stated; });
  const std::string predicted(1, kPredicted), over_weeks(1, weeks_mark_of(outlook));
  rows.push_back({"", "s", predicted, predicted, predicted, predicted, over_weeks, over_weeks,
                  priced ? predicted : "a", predicted, predicted});
  for (const Side& s : c.sides) {
    const std::vector<std::string> weeks = weeks_cells(outlook, rows.size() - 2);
    if (!fits(s)) {  // what cannot run has no speed
      rows.push_back(std::vector<std::string>(rows.front().size(), "-"));
      rows.back()[0] = s.name.substr(0, 24);
      rows.back()[1] = count(accelerators_used(s.setting));
      rows.back().back() = gibibytes(s.prediction.memory.reserved.v);
      continue;
    }
    rows.push_back({s.name.substr(0, 24), count(accelerators_used(s.setting)),
                    percent(s.prediction.mfu), seconds(s.prediction.step.v),
                    scaled(s.prediction.tokens_per_s), duration(s.run.time_s.value), weeks[0],
                    weeks[1], s.run.price_known ? dollars(s.run.cost_usd.value) : "-",
                    energy(s.run.energy_kwh.value), gibibytes(s.prediction.memory.reserved.v)});
  }
  const auto drop = [&](std::string_view title) {
    const auto at = std::find(rows.front().begin(), rows.front().end(), title);
    const auto column = at - rows.front().begin();
    for (std::vector<std::string>& row : rows) row.erase(row.begin() + column);
  };
  if (outlook.empty()) drop("goodput"), drop("over weeks");
  std::string text = table(rows);
  for (const char* least : {"memory", "energy", "step", "tokens/s"}) {
    if (text.find('\n') <= static_cast<size_t>(style.width)) break;
    drop(least);
    text = table(rows);
  }
  return text + "\n";
}

// What the fastest of sides is, and the cheapest. REQUIRES: two or more sides, the fastest last.
std::string best_of(const std::vector<const Side*>& sides, bool all, bool same_run) {
  const Side* cheapest = nullptr;
  bool priced = true;
  for (const Side* s : sides) {
    priced &= s->run.price_known;
    if (!s->run.price_known) continue;
    if (!cheapest || dollars_per_token(*s) < dollars_per_token(*cheapest)) cheapest = s;
  }
  const Side& fastest = *sides.back();
  std::string text =
      fmt::format("{} is the fastest {}({})", fastest.name, all ? "" : "that fits ",
                  same_run ? duration(fastest.run.time_s.value)
                           : scaled(fastest.prediction.tokens_per_s) + " tokens per s");
  if (!same_run) {
    const bool alike = cheapest && std::all_of(sides.begin(), sides.end(), [&](const Side* s) {
      return !s->run.price_known || dollars_per_token(*s) < 1.005 * dollars_per_token(*cheapest);
    });
    if (cheapest && !alike)
      text += fmt::format("; {} is the cheapest by the token{}", cheapest->name,
                          priced ? "" : ", of those with a price");
  } else if (cheapest == &fastest) {
    text += priced ? " and the cheapest" : " and the cheapest with a price";
  } else if (cheapest) {
    text += fmt::format("; {} is the cheapest {}({})", cheapest->name,
                        priced ? "" : "with a price ", dollars(cheapest->run.cost_usd.value));
  }
  const Side& next = *sides[sides.size() - 2];
  if (!differ(next, fastest))
    text += fmt::format("; no significant difference in speed to {}", next.name);
  return text;
}

// What does not fit is neither fast nor cheap: it cannot run.
std::string verdict_of_fitting(const Comparison& c) {
  std::vector<const Side*> fitting;
  std::vector<std::string> misfits;
  for (const Side& s : c.sides) {
    const MemoryUse& m = s.prediction.memory;
    if (fits(s)) fitting.push_back(&s);
    if (!fits(s))
      misfits.push_back(fmt::format("{} does not fit ({} too much)", s.name,
                                    gibibytes((m.reserved - m.capacity).v)));
  }
  if (fitting.empty()) return fmt::format("None fits: {}.", fmt::join(misfits, "; "));
  std::string text;
  if (fitting.size() > 1) {
    text = best_of(fitting, misfits.empty(), same_tokens_trained(c));
  } else {
    const RunFigures& run = fitting[0]->run;
    text = fmt::format("{} is the only one that fits ({}{})", fitting[0]->name,
                       duration(run.time_s.value),
                       run.price_known ? ", " + dollars(run.cost_usd.value) : "");
  }
  if (!misfits.empty()) text += fmt::format("; {}", fmt::join(misfits, "; "));
  text += ".";
  if (!same_tokens_trained(c) && !is_pair(c)) text += " " + other_lengths(c);
  return text;
}

}  // namespace

std::string compare_text(const Comparison& c, const Style& style, const Stamp& stamp,
                         const std::vector<PlanOutlook>& outlook) {
  std::string out;
  if (is_pair(c)) {
    out = wrap(fmt::format("Compare  {} -> {}: {}", c.sides[0].name, c.sides[1].name,
                           what_is_same(c)),
               style.width, 9) +
          "\n";
    out += changes_text(c, style) + pair_table(c, style, outlook);
  } else {
    out = fmt::format("Compare  {} descriptions, {}\n\n", c.sides.size(),
                      c.sides.size() == 2 ? "of which not every one fits"
                      : all_fit(c)        ? "the best last"
                                          : "what does not fit first, the best last");
    out += many_table(c, style, outlook);
  }
  for (const Side& s : c.sides) {
    out += wrap(fmt::format("  {}  {}{}", left(s.name.substr(0, 18), 18),
                            !s.searched ? ""
                            : fits(s)   ? "best plan: "
                                        : "closest miss: ",
                            layout(s.plan, s.prediction.dp)),
                style.width, 22) +
           "\n";
  }
  out += "\n" + bars(c, style) + "\n" + fit_warnings(c, style);
  if (!style.quiet) out += fmt::format("{}\n{}\n\n", kMarks, footer(stamp));
  const bool pair = c.sides.size() == 2 && all_fit(c);
  std::string last = pair ? verdict(c) : verdict_of_fitting(c);
  for (const Side& s : c.sides) {
    if (fits(s)) last += beyond_record(s.name, s.setting, s.plan, s.prediction);
  }
  return out + bold(wrap(last, style.width), style) + "\n";
}

std::string compare_json(const Comparison& c, const Stamp& stamp,
                         const std::vector<PlanOutlook>& outlook) {
  Json doc = start_document("assay.compare/1", stamp);
  doc["speedup"] = c.speedup.value;
  doc["speedup_range"] = {identical(c) ? 1 : c.speedup.low, identical(c) ? 1 : c.speedup.high};
  doc["significant"] = c.significant;
  Json changes = Json::array();
  for (const Change& change : c.difference.changes) changes.push_back(change_json(change));
  doc["changes"] = std::move(changes);
  doc["interaction"] = {{"mfu", c.difference.interaction_mfu},
                        {"step_s", c.difference.interaction_step_s}};
  Json sides = Json::array();
  for (const Side& s : c.sides) {
    Json side;
    side["name"] = s.name;
    side["searched"] = s.searched;
    side["result"] = candidate_json(s.plan, s.prediction, s.setting);
    side["ledger"] = ledger_json(s.prediction.ledger, s.prediction.step);
    side["run"] = run_json(s.run);
    const size_t place = sides.size();
    if (place < outlook.size())
      side["over_weeks"] = outlook_json(outlook[place].best, outlook[place]);
    side["description"] = description_json(s.setting);
    side["assumed"] = assumed_json(s.assumed);
    side["origins"] = origins_json(s.origins);
    sides.push_back(std::move(side));
  }
  doc["sides"] = std::move(sides);
  return print(doc);
}

}  // namespace assay
