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

std::string plain_label(const std::string& text) {
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

namespace {

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

std::optional<DocumentFigure> explain_document(const std::string& text, const std::string& name,
                                               const std::string& which, const Catalog& known) {
  const Json doc = parsed(text);
  const std::string schema = schema_of(doc);
  if (schema == "plan") return plan_figure(doc, name);
  if (schema == "simulate") return simulate_figure(doc, name, known);
  if (schema == "scale") return scale_figure(doc, name, which);
  if (schema == "compare")
    return compare_figure(doc, name, which.empty() ? nullptr : side_of(doc, which));
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
  if (schema == "plan") return plan_figures(doc);
  if (schema == "scale") return scale_figures(doc);
  if (schema == "compare") return compare_figures(doc);
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

std::string document_kind(const std::string& text) { return schema_of(parsed(text)); }

bool document_holds_plan(const std::string& text) {
  const std::string schema = schema_of(parsed(text));
  return schema != "diagnose" && schema != "review" && schema != "validate" &&
         schema != "explain" && schema != "check" && schema != "error";
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
