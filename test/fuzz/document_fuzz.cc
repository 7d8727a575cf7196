// Any bytes as a saved document, as `assay explain` and `assay compare` take one: every figure that
// it claims to hold is explained in clean text, and a plan inside it is read within the limits of
// its fields, or refused with an error.
#include <cstdint>
#include <cstdlib>

#include "report/explain_document.h"
#include "report/explain_report.h"
#include "report/result_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const assay::Catalog& known = assay::catalog();
  std::vector<std::string> parts = assay::document_parts(bytes);
  if (parts.size() > 8) parts.resize(8);
  parts.emplace_back("");
  for (const std::string& part : parts) {
    for (const std::string& name : assay::document_figures(bytes)) {
      const auto found = assay::explain_document(bytes, name, part, known);
      if (!found) continue;
      const std::string text =
          assay::explain_text(found->derivation, "figure", found->range, {}, {});
      for (const char c : text) {
        if (static_cast<unsigned char>(c) < 0x20 && c != '\n') std::abort();
      }
    }
    const auto read = assay::read_result(bytes, "fuzz.json", known, part);
    if (!read && assay::render(read.error()).empty()) std::abort();
    if (!read) continue;
    assay::Predictor predictor(read->setting);  // whatever was read can be predicted, or not be
    if (!predictor.impossible(read->plan)) predictor.predict(read->plan);
  }
  return 0;
}
