// What can be said of a text before any parser sees it.
#pragma once

#include <optional>

#include "config/yaml.h"

namespace assay {

// The first reason why this text is not safe or not plausible YAML; nothing when it may be parsed.
// One pass, no memory.
std::optional<Diagnostic> check_text(const Source&, const YamlLimits&);

}  // namespace assay
