// The screen and the document of `assay compare`.
#pragma once

#include "plan/compare.h"
#include "report/screen.h"

namespace assay {

std::string compare_text(const Comparison&, const Style&, const Stamp&);
std::string compare_json(const Comparison&, const Stamp&);

}  // namespace assay
