// Figures of a saved document that none of its plans holds: the goodput of a simulation, the
// efficiency of a size, what a changed setting is worth, an account that was measured, a limit of a
// site. They follow from other figures of the same document; settings are cited from it or from
// the catalog. Hostile input safe: what a document does not hold is not explained.
#pragma once

#include <optional>

#include "plan/study.h"

namespace assay {

struct DocumentFigure {
  Derivation derivation;
  std::string range;  // `(p5 91.5, p95 93.0)` where it is not the derivation's own, or empty
};

// `which` is one of document_parts(), or empty: the last.
std::optional<DocumentFigure> explain_document(const std::string& text, const std::string& figure,
                                               const std::string& which, const Catalog&);

// What a run over weeks makes of a plan, of documents of `plan` and `scale`.
const std::vector<std::string>& outlook_figures();
// With what a document of `plan` says beside its best plan; its levers go by their labels.
const std::vector<std::string>& plan_figures();

// Names that explain_document() knows for this text.
std::vector<std::string> document_figures(const std::string& text);

// The command that wrote it: `plan`; empty where it is no document of ours.
std::string document_kind(const std::string& text);

// Whether it holds a plan, whose figures are explained beside the document's own.
bool document_holds_plan(const std::string& text);

// The parts of a document that holds several plans: sizes of `scale`, sides of `compare`.
std::vector<std::string> document_parts(const std::string& text);

}  // namespace assay
