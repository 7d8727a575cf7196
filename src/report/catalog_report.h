// What is known, with sources: the screens and documents of `assay catalog`.
#pragma once

#include "report/screen.h"
#include "world/catalog.h"

namespace assay {

// `accelerators`, `nodes`, `fabrics`, `clusters`, `models`, `stacks`, `kernels`, `collectives`.
const std::vector<std::string>& catalog_kinds();

// All kinds where `kind` is empty.
std::string catalog_list_text(const Catalog&, const std::string& kind, const Style&);
std::string catalog_list_json(const Catalog&, const std::string& kind, const Stamp&);

// Every entry of that name; empty where there is none.
std::string catalog_show_text(const Catalog&, const std::string& name, const Style&);
std::string catalog_show_json(const Catalog&, const std::string& name, const Stamp&);

std::vector<std::string> catalog_names(const Catalog&);

}  // namespace assay
