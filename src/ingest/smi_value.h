// How nvidia-smi writes one value, in each of its ways of printing. Internal to its readers.
#pragma once

#include <optional>
#include <string_view>

#include "ingest/metrics.h"

namespace assay {

// `[N/A]`, `N/A`, `[Not Supported]`, `[Unknown Error]`, `-` of a scrolling screen: no value.
bool is_absent_value(std::string_view cell);

// Numbers with or without a unit, hexadecimal masks, and the words of yes-or-no fields.
std::optional<double> smi_value(Metric, std::string_view cell);

}  // namespace assay
