// What is known of the world: catalog/*.yaml, embedded in the program, each figure with its source.
//
// A catalog file is a mapping from name to entry; an entry has the keys of the struct's `fields`,
// plus `source:` (where its figures come from), `mark:` (one letter for the whole entry) and, where
// single fields differ, `sources: {key: text}` and `marks: {key: letter}`. `base: other-name`
// copies another, earlier entry of the same file first; `aliases: [other, spellings]` add names.
#pragma once

#include <map>

#include "base/diagnostic.h"
#include "world/operations.h"
#include "world/setting.h"
#include "world/site.h"

namespace assay {

// Where a figure was born. Marks: m measured, s vendor spec, c calibrated, a assumed.
struct Origin {
  char mark = 'a';
  std::string source;  // a citation, or why it was assumed
  std::string file;    // `catalog/accelerators.yaml` or the user's file
  int line = 0;
  // Of the value in that file, in bytes, for whoever has something to say about it later.
  size_t offset = static_cast<size_t>(-1), length = 1;
};
using Origins = std::map<std::string, Origin>;  // by path: `accelerators.h100-sxm5-80gb.memory`

struct Catalog {
  std::vector<Accelerator> accelerators;
  std::vector<Node> nodes;
  std::vector<Fabric> fabrics;
  std::vector<Cluster> clusters;
  std::vector<Model> models;
  std::vector<Stack> stacks;
  std::vector<Kernels> kernels;
  std::vector<CollectiveParams> collectives;
  std::vector<Climate> climates;
  std::vector<Tariff> tariffs;
  std::vector<Cooling> cooling;
  std::vector<Tier> tiers;
  std::vector<Storage> storage;
  std::vector<Offer> offers;
  std::vector<Site> sites;
  std::vector<Reliability> reliability;
  std::vector<Operations> operations;
  Origins origins;
  // `models.llama370b` -> `llama-3-70b`: names and aliases, normalised, by section.
  std::map<std::string, std::string> aliases;
  std::string date;  // version of the catalog: the latest top-level `date:` of its files
};

// The built-in catalog, parsed once. Its validity is tested; an error here is our bug.
const Catalog& catalog();

// The same from a folder, for tools/calibrate and for tests.
tl::expected<Catalog, Diagnostics> load_catalog(const std::string& folder);

// Look-ups by name or alias in any spelling (case, punctuation and vendor words do not matter:
// `H100`, `NVIDIA H100-SXM5-80GB`, `A100 80GB`). Null when nothing matches.
const Accelerator* find_accelerator(const Catalog&, const std::string& name);
const Node* find_node(const Catalog&, const std::string& name);
const Fabric* find_fabric(const Catalog&, const std::string& name);
const Cluster* find_cluster(const Catalog&, const std::string& name);
const Model* find_model(const Catalog&, const std::string& name);
const Stack* find_stack(const Catalog&, const std::string& name);  // exact name or alias only

// The entry for an architecture, a scale-up link or a fabric; falls back to `generic`,
// `generic-scaleup`, `generic-fabric`. Never null for the built-in catalog.
const Kernels* find_kernels(const Catalog&, const std::string& architecture);
const CollectiveParams* find_collectives(const Catalog&, const std::string& link, bool scaleup);

// Fills kernels and collective parameters of a setting whose cluster and stack are resolved.
void resolve(Setting&, const Catalog&);

}  // namespace assay
