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

// What somebody wants to see; of any kind where none is said.
struct CatalogName {
  std::string kind, name;
};
// Every entry of that name; where there is none, those with that alias; empty where nothing is.
std::string catalog_show_text(const Catalog&, const CatalogName&, const Style&);
std::string catalog_show_json(const Catalog&, const CatalogName&, const Stamp&);

// All kinds where `kind` is empty.
std::vector<std::string> catalog_names(const Catalog&, const std::string& kind = "");

}  // namespace assay
