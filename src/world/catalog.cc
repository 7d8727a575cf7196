#include "world/catalog.h"

#include <cstdio>
#include <functional>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/file.h"
#include "base/text.h"
#include "config/yaml.h"
#include "world/embedded.h"
#include "world/read.h"

namespace assay {
namespace {

// Words of makers, and of what a model was tuned to: neither changes what it is.
constexpr std::string_view kVendorWords[] = {
    "nvidia", "amd",   "google", "aws",     "amazon", "intel",    "habana", "instinct",
    "gpu",    "tesla", "cloud",  "geforce", "hf",     "instruct", "chat",   "it"};

bool is_vendor_word(std::string_view word) {
  for (std::string_view vendor : kVendorWords) {
    if (word == vendor) return true;
  }
  return false;
}

// Reads all files of a catalog; entries refer only to entries read before them.
class Loader {
 public:
  using File = std::function<tl::expected<std::string, Diagnostic>(const std::string& name)>;

  tl::expected<Catalog, Diagnostics> load(const File& file) {
    section<Accelerator>(file);
    section<Node>(file);
    section<Fabric>(file);
    section<Cluster>(file);
    section<Model>(file);
    section<Stack>(file);
    section<Kernels>(file);
    section<CollectiveParams>(file);
    section<Climate>(file);
    section<Tariff>(file);
    section<Cooling>(file);
    section<Tier>(file);
    section<Storage>(file);
    section<Offer>(file);
    section<Site>(file);
    section<Reliability>(file);
    section<Operations>(file);
    if (has_errors(problems_)) return tl::unexpected(std::move(problems_));
    return std::move(catalog_);
  }

 private:
  template <class T>
  void section(const File& file) {
    const std::string section(CatalogOf<T>::kSection);
    const tl::expected<std::string, Diagnostic> text = file(section + ".yaml");
    if (!text) {
      problems_.push_back(text.error());
      return;
    }
    const Source* source = sources_.add("catalog/" + section + ".yaml", *text);
    const std::optional<Value> root = parse_yaml(*source, problems_);
    if (!root || root->is_null()) return;
    if (!root->is_map()) {
      problems_.push_back(problem_at(root->at, section + " must be a mapping of names"));
      return;
    }
    for (const Entry& entry : root->entries) {
      if (entry.key == "date" && entry.value.is_scalar()) {
        catalog_.date = std::max(catalog_.date, entry.value.text);
      } else {
        add_entry<T>(entry, section);
      }
    }
  }

  template <class T>
  void add_entry(const Entry& entry, const std::string& section) {
    Value body = entry.value;
    const Value aliases = take_aliases<T>(body);
    T item{};
    const std::string path = section + "." + entry.key;
    Reader reader(catalog_, problems_, catalog_.origins);
    reader.provenance = {'a', "", path, nullptr, nullptr};
    if (!body.is_map()) {
      problems_.push_back(problem_at(entry.key_at, path + " must be a mapping"));
      return;
    }
    reader.read_struct(body, item, path);
    item.name = entry.key;
    (catalog_.*CatalogOf<T>::kEntries).push_back(item);
    add_alias(section, item.name, item.name, entry);
    if constexpr (HasAliases<T>) {
      for (const std::string& alias : item.aliases) add_alias(section, alias, item.name, entry);
    }
    for (const Value& alias : aliases.items) add_alias(section, alias.text, item.name, entry);
  }

  // Types without a field for them may have aliases in the catalog all the same.
  template <class T>
  static Value take_aliases(Value& body) {
    Value aliases;
    if constexpr (!HasAliases<T>) {
      Entry* entry = body.find("aliases");
      if (entry != nullptr && entry->value.is_list()) {
        aliases = std::move(entry->value);
        body.entries.erase(body.entries.begin() + (entry - body.entries.data()));
      }
    }
    return aliases;
  }

  void add_alias(const std::string& section, const std::string& alias, const std::string& name,
                 const Entry& entry) {
    const auto [at, fresh] = catalog_.aliases.emplace(section + "." + normalised(alias), name);
    if (!fresh && at->second != name) {
      problems_.push_back(problem_at(
          entry.key_at, fmt::format("the name `{}` belongs to {} already", alias, at->second)));
    }
  }

  Sources sources_;
  Catalog catalog_;
  Diagnostics problems_;
};

Catalog load_embedded() {
  const std::vector<std::pair<std::string_view, std::string_view>> files = embedded_catalog();
  Loader loader;
  tl::expected<Catalog, Diagnostics> loaded =
      loader.load([&](const std::string& name) -> tl::expected<std::string, Diagnostic> {
        for (const auto& [file, text] : files) {
          if (file == name) return std::string(text);
        }
        return std::string();  // a section that does not exist yet
      });
  if (!loaded) std::fputs(render(loaded.error()).c_str(), stderr);
  ASSERT(loaded && "the built-in catalog is valid");
  return std::move(*loaded);
}

// Runs of letters and digits, in lower case, without an organisation in front: of `ViT-L/16` the
// number is the model's.
std::vector<std::string> words_of(const std::string& name) {
  const size_t slash = name.rfind('/');
  const bool number = slash != std::string::npos && slash + 1 < name.size() &&
                      name.find_first_not_of("0123456789", slash + 1) == std::string::npos;
  const size_t from = number && slash > 0 ? name.rfind('/', slash - 1) : slash;
  const std::string spelled = lower(name.substr(from + 1));
  std::vector<std::string> words(1);
  for (size_t i = 0; i < spelled.size(); ++i) {
    const char c = spelled[i];
    const bool decimal_point = c == '.' && i > 0 && i + 1 < spelled.size() &&
                               is_digit(spelled[i - 1]) && is_digit(spelled[i + 1]);
    if ((c >= 'a' && c <= 'z') || is_digit(c) || decimal_point) {
      words.back() += c;
    } else {
      words.emplace_back();
    }
  }
  return words;
}

}  // namespace

std::string normalised(const std::string& name) {
  std::string out;
  for (const std::string& word : words_of(name)) out += word;
  return out;
}

std::string without_vendor(const std::string& name) {
  std::string out;
  for (const std::string& word : words_of(name)) {
    if (!is_vendor_word(word)) out += word;
  }
  return out;
}

const Catalog& catalog() {
  static const Catalog kBuiltIn = load_embedded();
  return kBuiltIn;
}

tl::expected<Catalog, Diagnostics> load_catalog(const std::string& folder) {
  Loader loader;
  return loader.load([&](const std::string& name) -> tl::expected<std::string, Diagnostic> {
    const std::string path = folder + "/" + name;
    if (!file_exists(path)) return std::string();
    Result<std::string> text = read_file(path);
    if (text) return std::move(*text);
    return tl::unexpected(to_diagnostic(text.error()));
  });
}

const Accelerator* find_accelerator(const Catalog& c, const std::string& name) {
  return find_entry<Accelerator>(c, name);
}
const Node* find_node(const Catalog& c, const std::string& name) {
  return find_entry<Node>(c, name);
}
const Fabric* find_fabric(const Catalog& c, const std::string& name) {
  return find_entry<Fabric>(c, name);
}
const Cluster* find_cluster(const Catalog& c, const std::string& name) {
  return find_entry<Cluster>(c, name);
}
const Model* find_model(const Catalog& c, const std::string& name) {
  return find_entry<Model>(c, name);
}
const Stack* find_stack(const Catalog& c, const std::string& name) {
  return find_entry<Stack>(c, name);
}

const Kernels* find_kernels(const Catalog& c, const std::string& architecture) {
  const Kernels* found = find_entry<Kernels>(c, architecture);
  return found != nullptr ? found : find_entry<Kernels>(c, "generic");
}

const CollectiveParams* find_collectives(const Catalog& c, const std::string& link, bool scaleup) {
  const CollectiveParams* found = find_entry<CollectiveParams>(c, link);
  if (found != nullptr) return found;
  return find_entry<CollectiveParams>(c, scaleup ? "generic-scaleup" : "generic-fabric");
}

void resolve(Setting& setting, const Catalog& c) {
  const Accelerator& accelerator = setting.cluster.accelerator;
  const auto fabric = static_cast<size_t>(setting.cluster.fabric.kind);
  const std::string transport(enum_names(FabricKind{})[fabric]);
  if (const Kernels* k = find_kernels(c, accelerator.architecture)) setting.kernels = *k;
  if (const CollectiveParams* p = find_collectives(c, accelerator.scaleup_link, true)) {
    setting.scaleup_params = *p;
  }
  if (const CollectiveParams* p = find_collectives(c, transport, false)) setting.fabric_params = *p;
}

}  // namespace assay
