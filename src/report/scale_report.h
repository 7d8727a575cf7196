// The screen and the document of `assay scale`.
#pragma once

#include "plan/scale.h"
#include "report/screen.h"

namespace assay {

std::string scale_text(const ScaleResult&, const Setting&, const Style&, const Stamp&);
std::string scale_json(const ScaleResult&, const Description&, const Stamp&);

}  // namespace assay
