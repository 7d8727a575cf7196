// Comparisons that are not of predictions: offers (sites with their clusters), simulated runs
// and diagnoses.
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

// The texts of the operands where every one of them is such a document; else none.
std::vector<std::string> documents_of(const std::vector<std::string>& operands,
                                      bool (*is_one)(const std::string&));
int compare_simulations(const Context&, const std::vector<std::string>& operands,
                        const std::vector<std::string>& texts);
int compare_diagnoses(const Context&, const std::vector<std::string>& operands,
                      const std::vector<std::string>& texts);

}  // namespace assay
