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

// A figure of an `assay.simulate/1` document.
std::optional<DocumentFigure> simulate_figure(const Json& doc, const std::string& name,
                                              const Catalog&);
std::vector<std::string> simulate_figures(const Json& doc);

}  // namespace assay
