// Where every GPU-hour of simulated runs went: in GPU-hours, dollars and kWh. Only for the .cc
// files of report/.
#pragma once

#include "report/json.h"
#include "report/simulate_report.h"

namespace assay {

std::string ledger_text(const SimulateResult&, const Style&);
// 5th to 95th percentiles of each line in GPU-hours, dollars and kWh; only for the verbose.
std::string ranges_text(const SimulateResult&, const Style&);

Json band_json(const Band&, double scale = 1);
// `ledger`: by account, bands of `gpu_hours`, `usd` and `kwh`; `ledger_gpu_s` and `ledger_kwh` hold
// the same in other units.
void add_ledger(Json& doc, const SimulateResult&);

}  // namespace assay
