// The catalog's files as they were when the program was built. CMake generates the definition.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

namespace assay {

// File name without folder (`nodes.yaml`) and text.
std::vector<std::pair<std::string_view, std::string_view>> embedded_catalog();

}  // namespace assay
