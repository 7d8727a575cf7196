// One reader for every struct of the world: a mapping of values into the struct's `fields`.
//
// A type of the catalog may be given by name (`node: dgx-h100`), or as a mapping with `base:` and
// overrides. Every mapping may say where its figures come from: `source`, `mark`, `sources`,
// `marks`. All problems are collected, none stops the reading.
#pragma once

#include <set>

#include "config/scalar.h"
#include "config/value.h"
#include "world/names.h"

namespace assay {

// Where figures that are read now come from, unless their mapping says otherwise.
struct Provenance {
  char mark = 's';
  std::string source = "stated";
  std::string at;  // path of the mapping that has `marks` and `sources`
  const Value* marks = nullptr;
  const Value* sources = nullptr;
};

template <class T>
concept Described = requires(T& t) { fields(t, [](auto&&...) {}); };

class Reader {
 public:
  // `catalog` may still be filling: look-ups see what is there when they happen.
  Reader(const Catalog& catalog, Diagnostics& problems, Origins& origins)
      : catalog_(catalog), problems_(problems), origins_(origins) {}

  // Reads any value the world knows. `path` names it in messages and in the origins.
  void read(const Value&, int64_t&, const std::string& path, const Limits&);
  void read(const Value&, double&, const std::string& path, const Limits&);
  void read(const Value&, bool&, const std::string& path, const Limits&);
  void read(const Value&, std::string&, const std::string& path, const Limits&);
  void read(const Value&, std::vector<std::string>&, const std::string& path, const Limits&);
  void read(const Value&, std::vector<int64_t>&, const std::string& path, const Limits&);
  void read(const Value&, std::vector<double>&, const std::string& path, const Limits&);

  template <class Tag>
  void read(const Value& value, Quantity<Tag>& into, const std::string& path,
            const Limits& limits) {
    quantity(value, into.v, DimensionOf<Quantity<Tag>>::kIs, path, limits);
  }

  template <class E>
    requires std::is_enum_v<E>
  void read(const Value& value, E& into, const std::string& path, const Limits&) {
    constexpr auto kNames = enum_names(E{});
    const int index = choice(value, {kNames.begin(), kNames.end()}, path);
    if (index >= 0) into = static_cast<E>(index);
  }

  template <Described T>
  void read(const Value& value, T& into, const std::string& path, const Limits&) {
    read_struct(value, into, path);
  }

  // A list of mappings; `path[2]` names the third in messages.
  template <Described T>
  void read(const Value& value, std::vector<T>& into, const std::string& path, const Limits&) {
    if (!want_list(value, path, "[{...}, {...}]")) return;
    into.clear();
    for (const Value& item : value.items) {
      const std::string element = path + "[" + std::to_string(into.size()) + "]";
      read_struct(item, into.emplace_back(), element);
    }
  }

  template <Described T>
  void read_struct(const Value& value, T& into, const std::string& path);

  // Reads a name of the catalog into `into`, with the origins of its figures. False (and a problem)
  // when there is no such entry.
  template <InCatalog T>
  bool read_name(const Value& value, T& into, const std::string& path);

  void problem(const Mark&, std::string message, std::string help = "");
  const Catalog& catalog() const { return catalog_; }
  Origins& origins() { return origins_; }
  Provenance provenance;

 private:
  // Reads the keys of a mapping that are not in `done`, and reports the unknown ones.
  template <class T>
  void read_fields(const Value& map, T& into, const std::string& path, std::set<std::string> done);

  void read_cluster(const Value& map, Cluster& into, const std::string& path);
  void read_cluster_accelerator(const Value& map, Cluster& into, const std::string& path);
  bool read_model_file(const Value& value, Model& into, const std::string& path);
  void quantity(const Value&, double& into, Dimension, const std::string& path, const Limits&);
  int choice(const Value&, const std::vector<std::string_view>& names, const std::string& path);
  bool want_scalar(const Value&, const std::string& path);
  bool want_map(const Value&, const std::string& path);
  bool want_list(const Value&, const std::string& path, const char* example);
  bool in_limits(const Value&, double value, Dimension, const std::string& path, const Limits&);
  void note_origin(const Value&, const std::string& path);
  void copy_origins(const std::string& from, const std::string& to,
                    const std::set<std::string>& fields);
  void enter_provenance(const Value& map, const std::string& path);
  void check_field_names(const Value& map, const std::vector<std::string>& known,
                         const std::string& path);
  void unknown_key(const Entry&, const std::vector<std::string>& known, const std::string& path);
  void unknown_name(const Value&, std::string_view section, const std::vector<std::string>& known,
                    const std::string& path);

  const Catalog& catalog_;
  Diagnostics& problems_;
  Origins& origins_;
};

// Keys that any mapping may have beside its fields.
bool is_reserved_key(const std::string& key);

template <class T>
std::vector<std::string> field_keys() {
  std::vector<std::string> keys;
  T any{};
  fields(any, [&](const char* key, auto&, const Limits&, const char*) { keys.push_back(key); });
  return keys;
}

template <InCatalog T>
bool Reader::read_name(const Value& value, T& into, const std::string& path) {
  const T* entry = find_entry<T>(catalog_, value.text);
  if (entry == nullptr) {
    unknown_name(value, CatalogOf<T>::kSection, entry_names<T>(catalog_), path);
    return false;
  }
  into = *entry;
  const std::vector<std::string> keys = field_keys<T>();
  copy_origins(std::string(CatalogOf<T>::kSection) + "." + entry->name, path,
               {keys.begin(), keys.end()});
  return true;
}

template <class T>
void Reader::read_fields(const Value& map, T& into, const std::string& path,
                         std::set<std::string> done) {
  std::vector<std::string> known;
  fields(into, [&](const char* key, auto& member, const Limits& limits, const char*) {
    known.emplace_back(key);
    const Entry* entry = map.find(key);
    if (entry == nullptr || !done.insert(key).second) return;
    read(entry->value, member, path + "." + key, limits);
  });
  for (const Entry& entry : map.entries) {
    if (!done.contains(entry.key) && !is_reserved_key(entry.key)) unknown_key(entry, known, path);
    const bool about_fields = entry.key == "marks" || entry.key == "sources";
    if (about_fields) check_field_names(entry.value, known, path + "." + entry.key);
  }
}

template <Described T>
void Reader::read_struct(const Value& value, T& into, const std::string& path) {
  if constexpr (InCatalog<T>) {
    if (value.is_scalar()) {
      if constexpr (std::is_same_v<T, Model>) {
        if (read_model_file(value, into, path)) return;
      }
      read_name(value, into, path);
      return;
    }
  }
  if (!want_map(value, path)) return;
  const Provenance outer = provenance;
  if constexpr (InCatalog<T>) {
    const Entry* base = value.find("base");
    if (base != nullptr && want_scalar(base->value, path + ".base")) {
      bool from_file = false;
      if constexpr (std::is_same_v<T, Model>) from_file = read_model_file(base->value, into, path);
      if (!from_file) read_name(base->value, into, path);
      if constexpr (HasAliases<T>) into.aliases.clear();
    }
    const Entry* name = value.find("name");
    if (name != nullptr) read(name->value, into.name, path + ".name", kAny);
  }
  enter_provenance(value, path);
  if constexpr (std::is_same_v<T, Cluster>) {
    read_cluster(value, into, path);
  } else {
    read_fields(value, into, path, {});
  }
  provenance = outer;
}

}  // namespace assay
