// Names as people spell them, and entries of the catalog found by them.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "world/catalog.h"

namespace assay {

// `H100-SXM5-80GB` and `h100_sxm5 80gb` become `h100sxm580gb`: lower case, letters and digits only,
// without an owner before a slash (`meta-llama/Llama-3.1-70B`). A point between digits stays, for
// 1.3B is not 13B.
std::string normalised(const std::string& name);

// The same without vendors' words: `NVIDIA A100 GPU` becomes `a100`.
std::string without_vendor(const std::string& name);

// The section of the catalog that holds a type, and its entries.
template <class T>
struct CatalogOf;
template <>
struct CatalogOf<Accelerator> {
  static constexpr std::string_view kSection = "accelerators";
  static constexpr auto kEntries = &Catalog::accelerators;
};
template <>
struct CatalogOf<Node> {
  static constexpr std::string_view kSection = "nodes";
  static constexpr auto kEntries = &Catalog::nodes;
};
template <>
struct CatalogOf<Fabric> {
  static constexpr std::string_view kSection = "fabrics";
  static constexpr auto kEntries = &Catalog::fabrics;
};
template <>
struct CatalogOf<Cluster> {
  static constexpr std::string_view kSection = "clusters";
  static constexpr auto kEntries = &Catalog::clusters;
};
template <>
struct CatalogOf<Model> {
  static constexpr std::string_view kSection = "models";
  static constexpr auto kEntries = &Catalog::models;
};
template <>
struct CatalogOf<Stack> {
  static constexpr std::string_view kSection = "stacks";
  static constexpr auto kEntries = &Catalog::stacks;
};
template <>
struct CatalogOf<Kernels> {
  static constexpr std::string_view kSection = "kernels";
  static constexpr auto kEntries = &Catalog::kernels;
};
template <>
struct CatalogOf<CollectiveParams> {
  static constexpr std::string_view kSection = "collectives";
  static constexpr auto kEntries = &Catalog::collectives;
};

template <>
struct CatalogOf<Climate> {
  static constexpr std::string_view kSection = "climates";
  static constexpr auto kEntries = &Catalog::climates;
};
template <>
struct CatalogOf<Tariff> {
  static constexpr std::string_view kSection = "tariffs";
  static constexpr auto kEntries = &Catalog::tariffs;
};
template <>
struct CatalogOf<Cooling> {
  static constexpr std::string_view kSection = "cooling";
  static constexpr auto kEntries = &Catalog::cooling;
};
template <>
struct CatalogOf<Tier> {
  static constexpr std::string_view kSection = "tiers";
  static constexpr auto kEntries = &Catalog::tiers;
};
template <>
struct CatalogOf<Storage> {
  static constexpr std::string_view kSection = "storage";
  static constexpr auto kEntries = &Catalog::storage;
};
template <>
struct CatalogOf<Offer> {
  static constexpr std::string_view kSection = "offers";
  static constexpr auto kEntries = &Catalog::offers;
};
template <>
struct CatalogOf<Site> {
  static constexpr std::string_view kSection = "sites";
  static constexpr auto kEntries = &Catalog::sites;
};
template <>
struct CatalogOf<Reliability> {
  static constexpr std::string_view kSection = "reliability";
  static constexpr auto kEntries = &Catalog::reliability;
};
template <>
struct CatalogOf<Operations> {
  static constexpr std::string_view kSection = "operations";
  static constexpr auto kEntries = &Catalog::operations;
};

template <class T>
concept InCatalog = requires { CatalogOf<T>::kSection; };

template <class T>
concept HasAliases = requires(T t) { t.aliases; };

// The entry whose name or alias has these letters and digits, or null.
template <InCatalog T>
const T* find_spelling(const Catalog& catalog, const std::string& wanted) {
  if (wanted.empty()) return nullptr;
  const std::vector<T>& entries = catalog.*CatalogOf<T>::kEntries;
  const auto known = catalog.aliases.find(std::string(CatalogOf<T>::kSection) + "." + wanted);
  for (const T& entry : entries) {
    const bool same = known != catalog.aliases.end() ? entry.name == known->second
                                                     : normalised(entry.name) == wanted;
    if (same) return &entry;
  }
  return nullptr;
}

// The entry of that name, else the one with that alias, else the same without vendors' words.
template <InCatalog T>
const T* find_entry(const Catalog& catalog, const std::string& name) {
  const T* exact = find_spelling<T>(catalog, normalised(name));
  if (exact != nullptr) return exact;
  const std::string bare = without_vendor(name);
  const T* loose = find_spelling<T>(catalog, bare);
  if (loose != nullptr || bare.empty()) return loose;
  for (const T& entry : catalog.*CatalogOf<T>::kEntries) {
    if (without_vendor(entry.name) == bare) return &entry;
  }
  return nullptr;
}

// The entry whose own name this is, in any spelling; aliases do not count.
template <InCatalog T>
const T* find_own_name(const Catalog& catalog, const std::string& name) {
  const T* found = find_spelling<T>(catalog, normalised(name));
  return found != nullptr && normalised(found->name) == normalised(name) ? found : nullptr;
}

template <InCatalog T>
std::vector<std::string> entry_names(const Catalog& catalog) {
  std::vector<std::string> names;
  for (const T& entry : catalog.*CatalogOf<T>::kEntries) names.push_back(entry.name);
  return names;
}

}  // namespace assay
