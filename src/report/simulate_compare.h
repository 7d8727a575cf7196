// Two or more simulated runs side by side: what each keeps, costs and loses where.
#pragma once

#include "base/diagnostic.h"
#include "ledger/ledger.h"
#include "report/screen.h"
#include "sim/many.h"

namespace assay {

// What a comparison needs of an `assay.simulate/1` document.
struct SimulationSide {
  std::string name, workload, cluster, operations, site, seed;
  double step_s = 0, mfu = 0, paid_gpu_s = 0, usd = 0, kwh = 0;
  double runs = 0;
  Band goodput, useful_share, days, tokens, interruptions;  // mean and percentiles
  Ledger ledger;                                            // accelerator-seconds
};

// Whether text is a document of `assay simulate`; a look at its beginning.
bool is_simulation(const std::string& text);

// Hostile input safe: whatever is missing or of another kind keeps its default. False where it is
// no such document, and `problems` says so.
bool read_simulation(const std::string& text, const std::string& file, SimulationSide&,
                     Diagnostics& problems);

std::string simulate_compare_text(const std::vector<SimulationSide>&, const Style&, const Stamp&);
std::string simulate_compare_json(const std::vector<SimulationSide>&, const Stamp&);

}  // namespace assay
