// Two or more diagnoses side by side: measured ledgers subtracted, findings gone and new.
#pragma once

#include "base/diagnostic.h"
#include "ledger/ledger.h"
#include "report/screen.h"

namespace assay {

// What a comparison needs of an `assay.diagnose/1` document.
struct DiagnosisSide {
  std::string name;
  bool has_step = false;
  Seconds step, spread;
  Ledger ledger;  // of the step
  // The first period (a week of a cluster, a log, telemetry): its accounts' shares, in their order.
  std::vector<std::pair<std::string, double>> period;
  std::vector<std::string> causes;  // of its findings, in their order
  std::vector<double> shares;       // what each gives back
};

// Whether text is a document of `assay diagnose`; a look at its beginning.
bool is_diagnosis(const std::string& text);

// Hostile input safe: whatever is missing or of another kind is a problem or keeps its default.
bool read_diagnosis(const std::string& text, const std::string& file, DiagnosisSide&, Diagnostics&);

std::string diagnose_compare_text(const std::vector<DiagnosisSide>&, const Style&, const Stamp&);
std::string diagnose_compare_json(const std::vector<DiagnosisSide>&, const Stamp&);

}  // namespace assay
