// Comparisons that are not of predictions: offers (sites with their clusters) and diagnoses.
#pragma once

#include "cli/inputs.h"

namespace assay {

// Simulates each of `sides` together with `shared`, all with the same luck.
int compare_offers(const Context&, const Arguments&, const std::vector<std::string>& sides,
                   const std::vector<std::string>& shared);

// What is wrong with its options.
UsageErrors offers_usage(const Context&, const Arguments&);
// All that is wrong with them and with any side.
InputRefusal offers_refusal(const Context&, const Arguments&, const std::vector<std::string>& sides,
                            const std::vector<std::string>& shared);

// Whether every operand is a document of `assay diagnose`; their texts then.
bool all_diagnoses(const std::vector<std::string>& operands, std::vector<std::string>& texts);
int compare_diagnoses(const Context&, const std::vector<std::string>& operands,
                      const std::vector<std::string>& texts);

}  // namespace assay
