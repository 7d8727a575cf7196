#include "report/explain_document.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "report/explain_parts.h"
#include "report/result_file.h"

namespace assay {
namespace {

const Json& nothing() {
  static const Json none;
  return none;
}

}  // namespace

const Json& at(const Json& doc, const JsonPath& path) {
  const Json* here = &doc;
  for (const std::string_view key : path) {
    if (!here->is_object() || !here->contains(key)) return nothing();
    here = &(*here)[std::string(key)];
  }
  return *here;
}

double number(const Json& doc, const JsonPath& path) {
  const Json& value = at(doc, path);
  return value.is_number() ? value.get<double>() : 0;
}

// Text of a document is somebody's: it may not steer a terminal.
std::string text_at(const Json& doc, const JsonPath& path) {
  const Json& value = at(doc, path);
  return value.is_string() ? sanitize(value.get<std::string>(), 400) : "";
}

Derivation figure(std::string name, double value, std::string unit, std::string equation, char mark,
                  std::string source) {
  Derivation d;
  d.name = std::move(name);
  d.value = value;
  d.unit = std::move(unit);
  d.equation = std::move(equation);
  d.mark = mark;
  d.source = std::move(source);
  return d;
}

std::string band_text(const Json& band, double by) {
  if (!band.is_object() || number(band, {"p95"}) <= 0) return "";
  return fmt::format("(p5 {}, p95 {})", significant(by * number(band, {"p5"})),
                     significant(by * number(band, {"p95"})));
}

namespace {

// ---- what a run over weeks makes of a plan: assay.plan/1 and the sizes of assay.scale/1

Derivation goodput_of(const Json& weeks) {
  const char mark = text_at(weeks, {"mark"}) == "c" ? 'c' : 'a';
  Derivation d = figure("goodput", 100 * number(weeks, {"goodput"}), "%",
                        "product of what each leaves of the time", mark, "docs/models/goodput.md");
  const auto factor = [&](const char* key, const char* name, const char* equation) {
    const double share = number(weeks, {"factors", key});
    if (share < 1) d.inputs.push_back(figure(name, 100 * share, "%", equation, mark));
  };
  factor("failures_and_saves", "failures and saves",
         "exact effective time of each place of checkpoints");
  if (!d.inputs.empty()) {
    const auto add = [&](const char* key, const char* name, const std::string& source) {
      if (at(weeks, {key}).is_number())
        d.inputs.back().inputs.push_back(figure(name, number(weeks, {key}), "s", "", mark, source));
    };
    add("mtbf_s", "mean time between failures", "run: " + text_at(weeks, {"run"}));
    add("checkpoint_interval_s", "work between saves", "");
  }
  factor("missing_machines", "machines in repair or away",
         "P(in repair <= spares), or replicas that are up");
  factor("planned_stops", "planned stops", "1 - stop / time between them");
  factor("site_hours", "hours of the site", "share of the accelerators that it powers");
  factor("late_batches", "waits for late batches", "steps / (steps + waits)");
  factor("start_up", "start", "1 - start-up / time");
  return d;
}

std::optional<DocumentFigure> outlook_figure(const Json& weeks, const Json& result,
                                             const std::string& name) {
  if (!weeks.is_object()) return std::nullopt;
  const char mark = text_at(weeks, {"mark"}) == "c" ? 'c' : 'a';
  Derivation slow = figure("slowdown", number(weeks, {"slowdown"}), "x",
                           "1 / mean of nominal over real step: jitter, data stalls, replays, "
                           "clocks, the slowest machine",
                           mark, "docs/models/goodput.md");
  if (name == "goodput") return DocumentFigure{goodput_of(weeks), ""};
  if (name == "slowdown") return DocumentFigure{std::move(slow), ""};
  Derivation days = figure("days_with_failures", number(weeks, {"days"}), "days",
                           "days without failures x slowdown / goodput", mark);
  if (at(result, {"run", "days"}).is_number())
    days.inputs.push_back(
        figure("days without failures", number(result, {"run", "days"}), "days", ""));
  days.inputs.push_back(std::move(slow));
  days.inputs.push_back(goodput_of(weeks));
  if (name == "days_with_failures") return DocumentFigure{std::move(days), ""};
  if (name != "cost_with_failures") return std::nullopt;
  Derivation cost = figure(name, number(weeks, {"cost_usd"}), "$",
                           "accelerators of the job x hours x price; spares aside", mark,
                           "docs/models/economics.md");
  cost.inputs = {figure("GPU-hours", number(weeks, {"gpu_hours"}), "h", ""), std::move(days)};
  return DocumentFigure{std::move(cost), ""};
}

// ---- assay.plan/1: what the screen says beside the best plan

// Labels as people type them: letters and digits, a hyphen for all between.
std::string plain(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const unsigned char u = static_cast<unsigned char>(c);
    if (std::isalnum(u)) {
      out += static_cast<char>(std::tolower(u));
    } else if (!out.empty() && out.back() != '-') {
      out += '-';
    }
  }
  while (out.ends_with('-')) out.pop_back();
  return out;
}

Derivation step_of(const Json& result, const char* name) {
  Derivation d = figure(name, number(result, {"step_s"}), "s", "the accounts of its ledger", 'c',
                        "docs/models/step.md");
  d.inputs = {figure("MFU, of its own peak", 100 * number(result, {"mfu"}), "%", "")};
  const double reserved = number(result, {"memory_bytes", "reserved"});
  if (reserved > 0)
    d.inputs.push_back(figure("memory, worst rank", reserved / (1024.0 * 1024 * 1024), "GiB", ""));
  return d;
}

Derivation lever_figure(const Json& doc, const Json& lever) {
  const std::string command = text_at(lever, {"command"});
  Derivation d = figure(text_at(lever, {"label"}), 100 * number(lever, {"step_change"}), "%",
                        "time per token with " + command +
                            " over that without, less 1; where it changes what fits or the batch, "
                            "the rest of the plan is searched again",
                        'c', "docs/internals/life-of-a-plan.md");
  d.inputs = {step_of(at(doc, {"best"}), "step time of the best plan"),
              step_of(at(lever, {"result"}), "step time with it")};
  return d;
}

std::optional<DocumentFigure> beside_plan(const Json& doc, const std::string& name) {
  const std::string asked = plain(name);
  const Json& second = at(doc, {"runner_up"});
  if (asked == "runner-up" && second.is_object() && number(doc, {"best", "step_s"}) > 0) {
    const double more = number(second, {"step_s"}) / number(doc, {"best", "step_s"}) - 1;
    Derivation d = figure("runner_up", 100 * more, "%",
                          "its step time over that of the best plan, less 1; it lost by " +
                              text_at(second, {"why_lost"}),
                          'c', "docs/internals/life-of-a-plan.md");
    d.inputs = {step_of(at(doc, {"best"}), "step time of the best plan"),
                step_of(second, "step time of the runner-up")};
    return DocumentFigure{std::move(d), ""};
  }
  const Json& weeks = at(doc, {"best", "over_weeks"});
  if (asked == "spares" && at(weeks, {"spare_nodes"}).is_number()) {
    Derivation d = figure("spares", number(weeks, {"spare_nodes"}), "nodes",
                          "the larger of run.spares and run.spare_share x nodes", 'a',
                          "docs/models/goodput.md");
    d.inputs = {figure("mean time between failures", number(weeks, {"mtbf_s"}), "s", "")};
    if (at(weeks, {"spares_usd"}).is_number())
      d.inputs.push_back(figure("their cost", number(weeks, {"spares_usd"}), "$",
                                "nodes x accelerators x hours x price"));
    return DocumentFigure{std::move(d), ""};
  }
  for (const Json& lever : at(doc, {"levers"})) {
    if (!asked.empty() && plain(text_at(lever, {"label"})) == asked)
      return DocumentFigure{lever_figure(doc, lever), ""};
  }
  return std::nullopt;
}

// ---- assay.scale/1

const Json* size_of(const Json& doc, const std::string& which) {
  const Json* found = nullptr;
  const bool kept = which.ends_with("-kept");
  const std::string size = kept ? which.substr(0, which.size() - 5) : which;
  for (const Json& p : at(doc, {kept ? "fixed" : "best"})) {
    const Json& fits = at(p, {"fits"});
    if (!fits.is_boolean() || !fits.get<bool>()) continue;
    if (size.empty() || fmt::format("{:.0f}", number(p, {"accelerators"})) == size) found = &p;
  }
  return found;
}

std::optional<DocumentFigure> scale_figure(const Json& doc, const std::string& name,
                                           const std::string& which) {
  const Json* p = size_of(doc, which);
  if (p == nullptr) return std::nullopt;
  if (auto weeks = outlook_figure(at(*p, {"over_weeks"}), at(*p, {"result"}), name)) return weeks;
  const auto tokens = [](const Json& point) {
    return figure(fmt::format("at {:.0f} GPUs", number(point, {"accelerators"})),
                  number(point, {"result", "tokens_per_s"}), "tokens/s", "");
  };
  const Json* first = nullptr;
  const Json* before = nullptr;
  const Json& main = at(doc, {"fixed"}).empty() ? at(doc, {"best"}) : at(doc, {"fixed"});
  for (const Json& q : main) {
    if (first == nullptr && number(q, {"result", "tokens_per_s"}) > 0) first = &q;
  }
  for (const Json& q : at(doc, {which.ends_with("-kept") ? "fixed" : "best"})) {
    if (&q == p) break;
    if (number(q, {"result", "tokens_per_s"}) > 0) before = &q;
  }
  Derivation d;
  if (name == "speedup" || name == "efficiency") {
    const bool speed = name == "speedup";
    d = speed ? figure(name, number(*p, {name}), "x", "tokens per second over the first size's")
              : figure(name, 100 * number(*p, {name}), "%",
                       "speed-up / growth in accelerators; 100 % is ideal");
    if (first != nullptr) d.inputs = {tokens(*first)};
  } else if (name == "doubling") {
    d = figure(name, number(*p, {"marginal"}), "x", "tokens per second over the size before");
    if (before != nullptr) d.inputs = {tokens(*before)};
  } else if (name == "usd_per_million_tokens") {
    d = figure(name, number(*p, {name}), "$", "price x accelerators / tokens per second x 1e6");
    d.inputs = {figure("price", number(doc, {"description", "cluster", "price"}) * kSecondsPerHour,
                       "$/h", "", 's', "cluster.price"),
                figure("accelerators", number(*p, {"accelerators"}), "", "", 's')};
  } else {
    return std::nullopt;
  }
  d.inputs.push_back(tokens(*p));
  return DocumentFigure{std::move(d), ""};
}

// ---- assay.compare/1

std::optional<DocumentFigure> compare_figure(const Json& doc, const std::string& name) {
  const Json& sides = at(doc, {"sides"});
  if (name == "speedup" && sides.is_array() && sides.size() >= 2) {
    Derivation d =
        figure(name, number(doc, {"speedup"}), "x",
               "tokens per second of the last side over the first's", 'c', "docs/models/range.md");
    for (const Json* side : {&sides.front(), &sides.back()}) {
      d.inputs.push_back(figure(text_at(*side, {"name"}), number(*side, {"result", "tokens_per_s"}),
                                "tokens/s", ""));
    }
    const Json& range = at(doc, {"speedup_range"});
    const bool known =
        range.is_array() && range.size() == 2 && range[0].is_number() && range[1].is_number();
    return DocumentFigure{
        std::move(d),
        known ? fmt::format("({:.2f}-{:.2f})", range[0].get<double>(), range[1].get<double>())
              : ""};
  }
  for (const Json& c : at(doc, {"changes"})) {
    if (text_at(c, {"setting"}) != name) continue;
    Derivation d = figure(name, number(c, {"step_s"}), "s",
                          fmt::format("{} -> {}: the mean of switching it first (all else as "
                                      "before) and last (all else as after)",
                                      text_at(c, {"before"}), text_at(c, {"after"})));
    if (at(c, {"step_s"}).is_null()) d.equation += "; it cannot be switched alone";
    d.inputs = {figure("MFU", 100 * number(c, {"mfu"}), "points", "by the same switching")};
    return DocumentFigure{std::move(d), ""};
  }
  if (name != "interaction") return std::nullopt;
  return DocumentFigure{figure(name, number(doc, {"interaction", "step_s"}), "s",
                               "the whole difference less the gains of all settings"),
                        ""};
}

// ---- assay.offers/1

const Json* side_of(const Json& doc, const std::string& which) {
  const Json* found = nullptr;
  int64_t i = 0;
  for (const Json& side : at(doc, {"sides"})) {
    ++i;
    if (which.empty() || text_at(side, {"name"}) == which || fmt::format("{}", i) == which)
      found = &side;
  }
  return found;
}

std::optional<DocumentFigure> offers_figure(const Json& doc, const std::string& name,
                                            const std::string& which, const Catalog& known) {
  const Json* side = side_of(doc, which);
  if (side == nullptr) return std::nullopt;
  if (name == "usd_per_useful_exaflop") {
    Derivation d = figure(name, number(*side, {name}), "$", "cost / (useful share x paid x peak)",
                          'c', "docs/models/economics.md");
    d.inputs = {
        figure("cost", number(*side, {"cost_usd"}), "$", ""),
        figure("useful", 100 * number(*side, {"shares", "useful"}), "%", "of what is paid")};
    return DocumentFigure{std::move(d), ""};
  }
  if (name == "missed_deadline")
    return DocumentFigure{
        figure(name, 100 * number(*side, {name}), "%",
               fmt::format("runs that took longer than {:g} days", number(doc, {"deadline_days"}))),
        ""};
  return simulate_figure(at(*side, {"simulation"}), name, known);
}

// ---- assay.diagnose/1

std::optional<DocumentFigure> diagnose_figure(const Json& doc, const std::string& name) {
  const double step = number(doc, {"measured", "step_s"});
  const std::string from = fmt::format("{} {}", text_at(doc, {"measured", "source"}),
                                       text_at(doc, {"measured", "accelerator"}));
  if (name == "step_time") {
    Derivation d = figure(name, step, "s",
                          fmt::format("median of {:.0f} steps; sum of the ledger's accounts",
                                      number(doc, {"measured", "steps"})),
                          'm', from);
    for (const Json& a : at(doc, {"measured", "ledger"}))
      d.inputs.push_back(figure(text_at(a, {"account"}), number(a, {"seconds"}), "s", "", 'm'));
    return DocumentFigure{std::move(d), ""};
  }
  for (const Json& a : at(doc, {"measured", "ledger"})) {
    if (text_at(a, {"account"}) != name) continue;
    Derivation d = figure(name, number(a, {"seconds"}), "s", "measured, mean of the steps", 'm',
                          from + "; docs/reference/causes.md");
    d.inputs = {figure("of the step", 100 * number(a, {"share"}), "%", "", 'm')};
    return DocumentFigure{std::move(d), ""};
  }
  for (const Json& f : at(doc, {"findings"})) {
    if (text_at(f, {"cause"}) != name) continue;
    Derivation d = figure(name, number(f, {"gain_s"}), "s", text_at(f, {"detail"}), 'c',
                          "docs/models/what-if.md");
    d.inputs = {figure("step now", number(doc, {"measured", "usual_s"}), "s",
                       "measured, the profiler's cost taken out", 'm'),
                figure("step without the cause", number(f, {"step_after_s"}), "s",
                       "replayed with the cause removed and all else kept")};
    for (const Json& e : at(f, {"evidence"})) {
      d.inputs.push_back(figure("evidence " + text_at(e, {"id"}),
                                static_cast<double>(at(e, {"rows"}).size()), "",
                                "lines: " + text_at(e, {"title"}), 'm', text_at(e, {"file"})));
    }
    return DocumentFigure{std::move(d), ""};
  }
  return std::nullopt;
}

// ---- assay.review/1

std::string hyphened(std::string text) {
  std::replace(text.begin(), text.end(), ' ', '-');
  return text;
}

std::optional<DocumentFigure> review_figure(const Json& doc, const std::string& name) {
  for (const Json& l : at(doc, {"density", "limits"})) {
    if (hyphened(text_at(l, {"limit"})) != name) continue;
    Derivation d = figure(name, number(l, {"nodes"}), "nodes", text_at(l, {"why"}), 'c',
                          "docs/models/power-and-cooling.md");
    d.inputs = {figure("racks", number(l, {"racks"}), "", "")};
    return DocumentFigure{std::move(d), ""};
  }
  if (name == "nodes") {
    Derivation d = figure(name, number(doc, {"density", "nodes"}), "nodes",
                          "the smallest limit: " + text_at(doc, {"density", "binding"}));
    for (const Json& l : at(doc, {"density", "limits"})) {
      if (number(l, {"nodes"}) > 0)
        d.inputs.push_back(
            figure(text_at(l, {"limit"}), number(l, {"nodes"}), "", text_at(l, {"why"})));
    }
    return DocumentFigure{std::move(d), ""};
  }
  const Json& year = at(doc, {"year"});
  if (name == "pue") {
    Derivation d = figure(name, number(year, {"pue"}), "", "facility energy / IT energy of a year",
                          'c', "docs/models/power-and-cooling.md");
    d.inputs = {figure("facility", number(year, {"facility_kwh"}), "kWh", ""),
                figure("IT", number(year, {"it_kwh"}), "kWh", "")};
    return DocumentFigure{std::move(d), ""};
  }
  if (name == "energy_bill") {
    Derivation d =
        figure(name, number(year, {"energy_usd"}), "$", "energy x tariff, hour by hour over a year",
               'c', "docs/models/economics.md");
    d.inputs = {figure("energy", number(year, {"facility_kwh"}), "kWh", ""),
                figure("highest power", number(year, {"highest_w"}) / 1000, "kW", "")};
    return DocumentFigure{std::move(d), ""};
  }
  if (name != "bill") return std::nullopt;
  Derivation d = figure(name, number(doc, {"bill", "total_usd"}), "$", "of a year", 'c',
                        "docs/models/economics.md");
  for (const auto& [key, part] : at(doc, {"bill"}).items()) {
    if (key.ends_with("_usd") && key != "total_usd" && part.is_number() && part.get<double>() > 0)
      d.inputs.push_back(figure(sanitize(key, 40), part.get<double>(), "$", ""));
  }
  return DocumentFigure{std::move(d), ""};
}

std::string schema_of(const Json& doc) {
  const std::string schema = text_at(doc, {"schema"});
  return schema.starts_with("assay.") ? schema.substr(6, schema.find('/') - 6) : "";
}

Json parsed(const std::string& text) { return Json::parse(text, nullptr, false); }

}  // namespace

const std::vector<std::string>& outlook_figures() {
  static const std::vector<std::string> names{"goodput", "slowdown", "days_with_failures",
                                              "cost_with_failures"};
  return names;
}

const std::vector<std::string>& plan_figures() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all = outlook_figures();
    all.insert(all.end(), {"spares", "runner_up"});
    return all;
  }();
  return names;
}

std::optional<DocumentFigure> explain_document(const std::string& text, const std::string& name,
                                               const std::string& which, const Catalog& known) {
  const Json doc = parsed(text);
  const std::string schema = schema_of(doc);
  if (schema == "plan") {
    std::optional<DocumentFigure> found = beside_plan(doc, name);
    return found ? std::move(found)
                 : outlook_figure(at(doc, {"best", "over_weeks"}), at(doc, {"best"}), name);
  }
  if (schema == "simulate") return simulate_figure(doc, name, known);
  if (schema == "scale") return scale_figure(doc, name, which);
  if (schema == "compare") return compare_figure(doc, name);
  if (schema == "offers") return offers_figure(doc, name, which, known);
  if (schema == "diagnose") return diagnose_figure(doc, name);
  if (schema == "review") return review_figure(doc, name);
  return std::nullopt;
}

std::vector<std::string> document_figures(const std::string& text) {
  const Json doc = parsed(text);
  const std::string schema = schema_of(doc);
  std::vector<std::string> names;
  const auto add = [&](const Json& list, const char* key) {
    for (const Json& item : list) names.push_back(hyphened(text_at(item, {key})));
  };
  if (schema == "simulate") return simulate_figures(doc);
  if (schema == "plan") {
    names = plan_figures();
    for (const Json& lever : at(doc, {"levers"})) names.push_back(plain(text_at(lever, {"label"})));
  }
  if (schema == "scale") {
    names = {"speedup", "efficiency", "doubling", "usd_per_million_tokens"};
    names.insert(names.end(), outlook_figures().begin(), outlook_figures().end());
  }
  if (schema == "compare") {
    names = {"speedup", "interaction"};
    add(at(doc, {"changes"}), "setting");
  }
  if (schema == "offers") {
    const Json* side = side_of(doc, "");
    if (side != nullptr) names = simulate_figures(at(*side, {"simulation"}));
    for (const char* name : {"usd_per_useful_exaflop", "missed_deadline"}) names.emplace_back(name);
  }
  if (schema == "diagnose") {
    names = {"step_time"};
    add(at(doc, {"measured", "ledger"}), "account");
    add(at(doc, {"findings"}), "cause");
  }
  if (schema == "review") {
    names = {"nodes", "pue", "energy_bill", "bill"};
    add(at(doc, {"density", "limits"}), "limit");
  }
  return names;
}

bool document_holds_plan(const std::string& text) {
  const std::string schema = schema_of(parsed(text));
  return schema != "diagnose" && schema != "review" && schema != "validate";
}

std::vector<std::string> document_parts(const std::string& text) {
  const Json doc = parsed(text);
  std::vector<std::string> parts;
  for (const char* list : {"best", "fixed"}) {
    if (schema_of(doc) != "scale") break;
    for (const Json& p : at(doc, {list}))
      parts.push_back(fmt::format("{:.0f}{}", number(p, {"accelerators"}),
                                  std::string_view(list) == "fixed" ? "-kept" : ""));
  }
  for (const Json& s : at(doc, {"sides"})) parts.push_back(text_at(s, {"name"}));
  return parts;
}

}  // namespace assay
