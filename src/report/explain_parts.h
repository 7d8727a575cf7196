// What the figures of saved documents are built with. Only for the .cc files of report/.
#pragma once

#include <optional>

#include "report/explain_document.h"
#include "report/json.h"

namespace assay {

using JsonPath = std::vector<std::string_view>;

// The value at a path of keys; null where there is none.
const Json& at(const Json& doc, const JsonPath& path);
double number(const Json& doc, const JsonPath& path);  // zero where there is none
// Text of a document is somebody's: it may not steer a terminal.
std::string text_at(const Json& doc, const JsonPath& path);

Derivation figure(std::string name, double value, std::string unit, std::string equation,
                  char mark = 'c', std::string source = "");
// `(p5 91.5, p95 93.0)` of a band, in other units.
std::string band_text(const Json& band, double by);

// Labels as people type them: letters and digits, a hyphen for all between.
std::string plain_label(const std::string& text);

// Calibrated where the operations were stated, else assumed.
char weeks_mark(const Json& weeks);

// What a run over weeks makes of a plan, `over_weeks` of it. `result` holds its `run`. A cost is
// with what spares cost where the screen counts them in.
std::optional<DocumentFigure> outlook_figure(const Json& weeks, const Json& result,
                                             const std::string& name);

// A figure of an `assay.plan/1` document, and the names of all.
std::optional<DocumentFigure> plan_figure(const Json& doc, const std::string& name);
std::vector<std::string> plan_figures(const Json& doc);

// Of `assay.scale/1`, at the size that `which` names; without one, at the last that fits.
std::optional<DocumentFigure> scale_figure(const Json& doc, const std::string& name,
                                           const std::string& which);
std::vector<std::string> scale_figures(const Json& doc);

// Of `assay.compare/1`; `side` is the one that was asked for, or null.
std::optional<DocumentFigure> compare_figure(const Json& doc, const std::string& name,
                                             const Json* side);
std::vector<std::string> compare_figures(const Json& doc);
// What a list of changes says of a setting; nothing where it is not among them.
std::optional<DocumentFigure> change_figure(const Json& changes, const std::string& setting);

// A figure of an `assay.simulate/1` document.
std::optional<DocumentFigure> simulate_figure(const Json& doc, const std::string& name,
                                              const Catalog&);
std::vector<std::string> simulate_figures(const Json& doc);

}  // namespace assay
