// The screen, the document and the annotated trace of `assay diagnose`.
#pragma once

#include <optional>

#include "diagnose/diagnose.h"
#include "perf/predict.h"
#include "report/screen.h"

namespace assay {

// A diagnosis and, where workload and cluster are known, the step as it should be.
struct DiagnoseResult {
  Diagnosis diagnosis;
  std::optional<Prediction> predicted;
  std::string predicted_of;  // `llama-3.1-70b on 1,024 h100-sxm5-80gb`
};

std::string diagnose_text(const DiagnoseResult&, const Style&, const Stamp&);
std::string diagnose_json(const DiagnoseResult&, const Stamp&);

// The rows behind one piece of evidence (`e3`), or nothing when there is none of that name.
std::optional<std::string> evidence_text(const Diagnosis&, const std::string& id, const Style&);
// The same as a document, assay.evidence/1. REQUIRES: there is one.
std::string evidence_json(const Diagnosis&, const std::string& id, const Stamp&);

}  // namespace assay
